"""A Dask cluster over links of limited bandwidth: each worker in a network namespace of its own, on one machine.

A bridge joins the namespaces; scheduler and client stand in the root namespace, at the bridge's own address. Each link
is shaped in both directions by a token bucket. Files are shared, without a limit. Needs root, `ip` and `tc`.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from distributed import Client, LocalCluster

HEADERS = 1448 / 1514  # of a packet's bytes on the link are data: Ethernet, IP and TCP take the rest
MBIT = 1e6 / 8  # bytes/s


def missing() -> str | None:
    """Return what this machine lacks for namespaces with limited links, or None."""
    lacking = [tool for tool in ("ip", "tc") if shutil.which(tool) is None]
    if lacking:
        return f"no {' and no '.join(lacking)}"
    if os.geteuid() != 0:
        return "not root"
    try:
        with ExitStack() as stack:
            _limit(_join(stack, _bridge(stack), 0), 100)
    except subprocess.CalledProcessError as error:
        return f"{' '.join(error.cmd)}: {error.stderr.decode().strip()}"
    return None


@dataclass(frozen=True)
class _Link:
    """A namespace, its address, and the end of its link on the bridge; the other end is eth0."""

    namespace: str
    address: str
    port: str


@dataclass(frozen=True)
class Cluster:
    """A client, and the links of its workers."""

    client: Client
    _links: list[_Link]

    def limit(self, mbit: float) -> None:
        """Give every worker so much bandwidth, each way."""
        for link in self._links:
            _limit(link, mbit)

    def sent(self) -> int:
        """Return the bytes of results that workers sent each other so far, as Dask counts them."""
        return sum(self.client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


@contextmanager
def cluster(n_workers: int) -> Iterator[Cluster]:
    """Give a cluster of workers with one thread, each in its namespace; nothing is left of them afterwards."""
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="daskw2v-"))
        bridge = _bridge(stack)
        links = [_join(stack, bridge, number) for number in range(n_workers)]
        scheduler = stack.enter_context(LocalCluster(n_workers=0, host=_address(0), dashboard_address=":0"))
        client = stack.enter_context(Client(scheduler))
        for link in links:
            _start(stack, link, scheduler.scheduler_address, folder)
        client.wait_for_workers(n_workers, timeout=60)
        yield Cluster(client, links)


def _call(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


def _quietly(*command: str) -> None:
    subprocess.run(command, check=False, capture_output=True)


def _name(part: str) -> str:
    return f"dw{os.getpid()}{part}"  # at most 15 letters


def _address(number: int) -> str:
    """Return an address: 0 is the bridge. The process's number keeps two benchmarks apart."""
    return f"10.231.{os.getpid() % 256}.{number + 1}"


def _bridge(stack: ExitStack) -> str:
    name = _name("br")
    _call("ip", "link", "add", name, "type", "bridge")
    stack.callback(_quietly, "ip", "link", "delete", name)
    _call("ip", "address", "add", f"{_address(0)}/24", "dev", name)
    _call("ip", "link", "set", name, "up")
    return name


def _join(stack: ExitStack, bridge: str, number: int) -> _Link:
    """Make a namespace and its link to the bridge."""
    link = _Link(_name(f"n{number}"), _address(number + 1), _name(f"v{number}"))
    _call("ip", "netns", "add", link.namespace)
    stack.callback(_quietly, "ip", "netns", "delete", link.namespace)
    inside = ("ip", "-netns", link.namespace)
    _call("ip", "link", "add", link.port, "type", "veth", "peer", "name", "eth0", "netns", link.namespace)
    stack.callback(_quietly, "ip", "link", "delete", link.port)  # at once: a namespace may linger
    _call("ip", "link", "set", link.port, "master", bridge, "up")
    _call(*inside, "address", "add", f"{link.address}/24", "dev", "eth0")
    _call(*inside, "link", "set", "eth0", "up")
    _call(*inside, "link", "set", "lo", "up")
    return link


def _limit(link: _Link, mbit: float) -> None:
    burst = max(128 << 10, int(mbit * MBIT / 250))  # what may pass at once: 4 ms, and never less than a large packet
    for place in (
        ("-netns", link.namespace, "qdisc", "replace", "dev", "eth0"),
        ("qdisc", "replace", "dev", link.port),
    ):
        _call("tc", *place, "root", "tbf", "rate", f"{mbit}mbit", "burst", str(burst), "latency", "100ms")


def _start(stack: ExitStack, link: _Link, scheduler: str, folder: str) -> None:
    """Start a worker inside a namespace."""
    command = [
        "ip", "netns", "exec", link.namespace, sys.executable, "-m", "distributed.cli.dask_worker", scheduler,
        "--host", link.address, "--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "0",
        "--local-directory", folder,
    ]  # fmt: skip
    with Path(folder, f"{link.namespace}.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    stack.callback(_stop, process)


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
