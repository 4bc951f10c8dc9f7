"""A cluster of our own is reached from this machine alone, unless its owner says otherwise."""

import ipaddress

import psutil
import pytest

from daskw2v import Resources
from daskw2v.cluster.connecting import connect
from daskw2v.errors import ParameterError


def _listening():
    """Return the addresses on which this process and its children listen."""
    processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
    connections = [found for process in processes for found in process.net_connections("inet")]
    return {(found.laddr.ip, found.laddr.port) for found in connections if found.status == psutil.CONN_LISTEN}


def test_local_cluster__listens_on_loopback_alone():
    before = _listening()
    with connect(Resources(workers=2, threads=1)) as client:
        opened = _listening() - before
        workers = client.scheduler_info()["workers"]
    assert len(workers) == 2
    assert len(opened) >= 1 + 2 * 2  # the scheduler; workers and their nannies
    assert all(ipaddress.ip_address(ip).is_loopback for ip, _ in opened)


def test_local_cluster__listens_where_it_is_told():
    before = _listening()
    with connect(Resources(workers=1, threads=1, host="0.0.0.0")) as client:
        opened = _listening() - before
        dashboard = client.scheduler_info()["services"]["dashboard"]
    assert "0.0.0.0" in {ip for ip, _ in opened}
    assert {ip for ip, port in opened if port == dashboard} == {"127.0.0.1"}


def test_host__must_be_named():
    with pytest.raises(ParameterError, match="host=''"):
        Resources(host="")
