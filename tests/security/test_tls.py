"""A cluster that uses TLS trains, from Python and from the command line; who has no certificate is told what to do."""

import os
import subprocess
import sys
from pathlib import Path

import dask
import numpy as np
import pytest
from distributed import Client, LocalCluster
from distributed.security import Security

import daskw2v
from daskw2v import Params, Resources, train
from daskw2v.cluster.connecting import connect
from daskw2v.cluster.shared_memory import share, shared_bytes
from daskw2v.errors import ClusterError

TINY = {"vector_size": 4, "min_count": 1, "epochs": 1, "sample": 0}
LINE = ("--vector-size", "4", "--min-count", "1", "--epochs", "1", "--sample", "0")


@pytest.fixture(scope="module")
def security():
    """Certificates of an authority of its own."""
    return Security.temporary()


@pytest.fixture(scope="module")
def address(security):
    """The address of two worker processes and a scheduler that speak TLS alone."""
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(host="127.0.0.1", protocol="tls://", security=security, **options) as local:
        yield local.scheduler_address


@pytest.fixture(scope="module")
def certificates(security, tmp_path_factory):
    """Dask's settings that name the files of a client's certificates."""
    folder, settings = tmp_path_factory.mktemp("certificates"), {}
    for setting, content in {
        "ca-file": security.tls_ca_file,
        "client.cert": security.tls_client_cert,
        "client.key": security.tls_client_key,
    }.items():
        (folder / setting).write_text(content)
        settings[f"distributed.comm.tls.{setting}"] = str(folder / setting)
    return settings


@pytest.fixture
def text(tmp_path):
    """A text."""
    (tmp_path / "text.txt").write_text("the quick brown fox jumps over the lazy dog\n" * 50)
    return tmp_path / "text.txt"


def test_train__on_a_client_that_uses_tls(address, security, text, tmp_path):
    with Client(address, security=security) as client:
        vectors = train(str(text), work=tmp_path / "work", params=Params(**TINY), client=client)
    assert address.startswith("tls://")
    assert "fox" in vectors


def test_train__takes_certificates_from_the_configuration_of_dask(address, certificates, text, tmp_path):
    with dask.config.set(certificates):
        vectors = train(
            str(text), work=tmp_path / "work", params=Params(**TINY), resources=Resources(scheduler=address)
        )
    assert "fox" in vectors


@pytest.mark.slow
def test_command__takes_certificates_from_the_environment(address, certificates, text, tmp_path):
    variables = {
        "DASK_" + name.upper().replace("-", "_").replace(".", "__"): path for name, path in certificates.items()
    }
    program = [sys.executable, "-m", "daskw2v", "train", str(text), "--work", str(tmp_path / "work")]
    environment = {**os.environ, **variables, "PYTHONPATH": str(Path(daskw2v.__file__).parents[1])}
    done = subprocess.run(
        [*program, "--scheduler", address, *LINE], env=environment, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    assert "model" in done.stdout


@pytest.mark.parametrize("protocol", ["tcp", "tls"])
def test_client__without_certificates_is_told_what_to_do(address, protocol):
    with (
        pytest.raises(ClusterError, match=r"No scheduler answers.*tls://host:port.*TLS__CA_FILE"),
        connect(Resources(scheduler=address.replace("tls", protocol)), timeout=3),
    ):
        pass


CONNECT = """
import sys
from daskw2v import Resources
from daskw2v.cluster.connecting import connect
with connect(Resources(scheduler=sys.argv[1]), timeout=3):
    pass
"""


@pytest.mark.slow
def test_certificates__of_another_authority_are_refused(address, tmp_path):
    other, environment = Security.temporary(), dict(os.environ)
    contents = {
        "CA_FILE": other.tls_ca_file,
        "CLIENT__CERT": other.tls_client_cert,
        "CLIENT__KEY": other.tls_client_key,
    }
    for setting, content in contents.items():
        (tmp_path / setting).write_text(content)
        environment[f"DASK_DISTRIBUTED__COMM__TLS__{setting}"] = str(tmp_path / setting)
    command = [sys.executable, "-c", CONNECT, address]
    done = subprocess.run(command, env=environment, text=True, capture_output=True, check=False, timeout=120)
    assert done.returncode
    assert f"ClusterError: No scheduler answers at scheduler='{address}'" in done.stderr


def _made():
    return share(np.arange(1 << 16))


def _total(array):
    return int(array.sum())


@pytest.mark.slow
def test_shared_memory__is_named_to_neighbours_over_tls(address, security):
    with Client(address, security=security) as client:
        first, second = sorted(client.scheduler_info()["workers"])
        client.submit(_made, workers=[second], pure=False).result()  # a taker shares itself
        for _ in range(20):  # connections that were open before say nothing of shared memory
            made = client.submit(_made, workers=[first], pure=False)
            assert client.submit(_total, made, workers=[second], pure=False).result() == sum(range(1 << 16))
            if client.run(shared_bytes, workers=[first])[first]:
                break
        assert client.run(shared_bytes, workers=[first])[first] >= 8 << 16
