"""Hosts on one machine: each with its own network, processes and files, joined by links that can be limited or cut.

A host is a set of Linux namespaces held by a process that sleeps: it ends with this one, and takes all that runs on
the host with it. A switch is one more; this process has a link to it too. Links have a token bucket each way for their
bandwidth; their latency comes from `wire.py`. Needs root, `ip`, `tc`, and what util-linux has for namespaces.
"""

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psutil
from distributed import Client, LocalCluster

from tests.support.quiet import QUIET

MBIT = 1e6 / 8  # bytes/s
REPOSITORY = Path(__file__).parents[2]
TOOLS = ("ip", "tc", "unshare", "nsenter", "setpriv", "mount", "chroot")
PYTHON = (sys.executable, "-P")  # what stands in the current directory is not imported

_DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")
_HELD = (*_DIES_WITH_US, "unshare", "--fork", "--kill-child")
_SLEEP = "echo ready; exec sleep infinity"
_BRIDGE = "bridge"
_MOUNT = """set -e
root=$1; shift
mount --make-rprivate /
for place; do
    path=${place#*:}
    mount --rbind "$path" "$root$path"
    mount --options "remount,bind,${place%%:*}" "$root$path"
done
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/dev/shm"
exec chroot "$root" sh -c 'cd /tmp; echo ready; exec sleep infinity'"""
_numbers = itertools.count()


def missing() -> str | None:
    """Return what this machine lacks for hosts with limited links, or None."""
    if lacking := [tool for tool in TOOLS if shutil.which(tool) is None]:
        return f"no {' and no '.join(lacking)}"
    if os.geteuid() != 0:
        return "not root"
    try:
        with network() as net:
            net.host().limit(100)
    except (subprocess.CalledProcessError, OSError) as error:
        said = error.stderr.decode().strip() if isinstance(error, subprocess.CalledProcessError) else ""
        return f"no namespaces here: {error} {said}"
    return None


def kernels() -> Path:
    """Return the folder of kernels that are compiled here: a place of a host that is not to compile them anew."""
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "daskw2v"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def call(*command: str) -> str:
    """Run a command, and return what it prints."""
    return subprocess.run(command, check=True, capture_output=True, stdin=subprocess.DEVNULL).stdout.decode()


@dataclass(frozen=True)
class Host:
    """A host, and its link: `port` is the end at the switch, and the host's own is eth0.

    Parameters
    ----------
    address
        The host's.
    root
        Where its files lie, for this process.
    """

    address: str
    root: Path
    port: str
    _pid: int
    _switch: int

    def start(self, *command: str, log: str | None = None, environment: dict[str, str] | None = None) -> "Process":
        """Start a command on this host; what it prints goes to a file below /tmp there, or into the process's pipes."""
        output: IO[bytes] | int = subprocess.PIPE if log is None else (self.root / "tmp" / log).open("wb")
        entered = ("nsenter", "-t", str(self._pid), "--mount", "--net", "--pid", "--ipc", "--root", "--wd")
        process = subprocess.Popen(
            [*entered, *_DIES_WITH_US, *command],
            stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT if log else output,
            env=_environment() | (environment or {}),
        )  # fmt: skip
        if not isinstance(output, int):
            output.close()
        return process

    def limit(self, mbit: float) -> None:
        """Give the link so much bandwidth, each way."""
        burst = max(128 << 10, int(mbit * MBIT / 250))  # at once: 4 ms, and never less than a large packet
        for pid, device in ((self._pid, "eth0"), (self._switch, self.port)):
            call(*_inside(pid), "tc", "qdisc", "replace", "dev", device, "root",
                 "tbf", "rate", f"{mbit}mbit", "burst", str(burst), "latency", "100ms")  # fmt: skip

    def unlimit(self) -> None:
        """Give the link all bandwidth."""
        for pid, device in ((self._pid, "eth0"), (self._switch, self.port)):
            subprocess.run([*_inside(pid), "tc", "qdisc", "delete", "dev", device, "root"], capture_output=True)

    def cut(self) -> None:
        """Part this host from all others: packets vanish, and nobody is told."""
        call(*_inside(self._switch), "ip", "link", "set", self.port, "nomaster")

    def mend(self) -> None:
        """Join this host to the others again."""
        call(*_inside(self._switch), "ip", "link", "set", self.port, "master", _BRIDGE)

    def plug(self) -> None:
        """Make the host's link."""
        call(*_inside(self._switch), "ip", "link", "add", self.port, "type", "veth",
             "peer", "name", "eth0", "netns", str(self._pid))  # fmt: skip
        self.bring_up()

    def unplug(self) -> None:
        """Take the host's link away."""
        call(*_inside(self._switch), "ip", "link", "delete", self.port)

    def bring_up(self) -> None:
        """Give a new link its address, and join it to the switch; connections live on if it replaces another."""
        call(*_inside(self._switch), "ip", "link", "set", self.port, "master", _BRIDGE, "up")
        call(*_inside(self._pid), "ip", "address", "add", f"{self.address}/24", "dev", "eth0")
        hardware = f"02:00:00:00:00:{int(self.address.rpartition('.')[2]):02x}"  # what others remember it by
        call(*_inside(self._pid), "ip", "link", "set", "eth0", "address", hardware, "up")


Process = subprocess.Popen[bytes]


def stop(process: Process) -> None:
    """Kill a host's process; what it has started must see to itself, or ends with the host."""
    process.kill()
    process.wait()


@dataclass(frozen=True)
class Network:
    """Hosts on a switch; `address` is this process's own."""

    address: str
    _switch: int
    _hosts: list[Host]
    _stack: ExitStack

    def host(self, *places: Path) -> Host:
        """Make a host: it can read what Python needs for this package, has these places, and all else is its own."""
        number = len(self._hosts)
        root = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="daskw2v-host-")))
        pid = _hold(self._stack, ("--net", "--mount", "--pid", "--ipc"), *_mounts(root, places))
        call(*_inside(pid), "ip", "link", "set", "lo", "up")
        host = Host(_neighbour(self.address, number + 1), root, f"port{number}", pid, self._switch)
        host.plug()
        self._hosts.append(host)
        return host

    @contextmanager
    def delayed(self, seconds: float, loss: float = 0.0) -> Iterator[None]:
        """Let every packet between hosts that are there take this long on each link it passes, and some be lost."""
        for host in self._hosts:
            host.unplug()
        program = (*PYTHON, str(Path(__file__).with_name("wire.py")), str(seconds), str(loss))
        links = [f"{host.port}:{host._pid}" for host in self._hosts]
        command = [*_DIES_WITH_US, *_inside(self._switch), *program, *links]
        wire = subprocess.Popen(command, stdout=subprocess.PIPE)
        try:
            _await_ready(wire)
            for host in self._hosts:
                host.bring_up()
            yield
        finally:
            stop(wire)
            for host in self._hosts:
                host.plug()


@contextmanager
def network() -> Iterator[Network]:
    """Give a network without hosts; nothing is left of it, or of them, afterwards."""
    with ExitStack() as stack:
        switch = _hold(stack, ("--net",), "sh", "-c", _SLEEP)
        address, ours = f"10.231.{os.getpid() % 256}.1", f"dw{os.getpid()}x{next(_numbers)}"
        call(*_inside(switch), "ip", "link", "add", _BRIDGE, "type", "bridge")
        call(*_inside(switch), "ip", "link", "set", _BRIDGE, "up")
        call(*_inside(switch), "ip", "link", "add", "ours", "type", "veth",
             "peer", "name", ours, "netns", str(os.getpid()))  # fmt: skip
        call(*_inside(switch), "ip", "link", "set", "ours", "master", _BRIDGE, "up")
        call("ip", "address", "add", f"{address}/24", "dev", ours)
        call("ip", "link", "set", ours, "up")
        stack.callback(subprocess.run, ["ip", "link", "delete", ours], capture_output=True)  # namespaces linger
        yield Network(address, switch, [], stack)


def _neighbour(address: str, number: int) -> str:
    return f"{address.rpartition('.')[0]}.{number + 1}"


def _inside(pid: int) -> tuple[str, ...]:
    """Return the beginning of a command that sees the network of a process."""
    return ("nsenter", "-t", str(pid), "--net")


def _environment() -> dict[str, str]:
    """Return what processes of a host are told: nothing of this process's but where things lie."""
    names = ("PATH", "HOME", "XDG_CACHE_HOME", "LANG", *QUIET)
    kept = {name: os.environ[name] for name in names if name in os.environ}
    return kept | {"PYTHONPATH": str(REPOSITORY), "PYTHONUNBUFFERED": "1"}


def _hold(stack: ExitStack, namespaces: Sequence[str], *command: str) -> int:
    """Start what holds new namespaces until the stack closes; return its process once it is ready."""
    holder = subprocess.Popen([*_HELD, *namespaces, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    stack.callback(stop, holder)
    _await_ready(holder)
    (held,) = psutil.Process(holder.pid).children()
    stack.callback(holder.wait, timeout=60)
    stack.callback(held.kill)  # first, while its parent can still bury it
    return held.pid


def _await_ready(process: Process) -> None:
    assert process.stdout is not None
    if process.stdout.readline() != b"ready\n":
        _, errors = process.communicate()
        raise OSError(f"{process.args!r}: {(errors or b'').decode().strip()}")


def _mounts(root: Path, places: Sequence[Path]) -> list[str]:
    """Make a host's folders; return the command that fills them and waits."""
    system = [
        path for name in ("bin", "sbin", "lib", "lib64", "usr", "etc", "dev") if (path := Path("/", name)).exists()
    ]
    needed = {p for p in system if not p.is_symlink()} | {Path(sys.prefix), Path(sys.base_prefix), REPOSITORY}
    wanted = needed | set(places)
    shown = sorted(p for p in wanted if not wanted & set(p.parents))
    for path in (p for p in system if p.is_symlink()):
        (root / path.name).symlink_to(path.readlink())
    for path in (*shown, Path("/proc"), Path("/tmp"), Path.home()):
        (root / path.relative_to("/")).mkdir(parents=True, exist_ok=True)
    return ["sh", "-c", _MOUNT, "sh", str(root), *(f"{'rw' if path in places else 'ro'}:{path}" for path in shown)]


@dataclass(frozen=True)
class Cluster:
    """A client, and the hosts of its workers."""

    client: Client
    _hosts: list[Host]

    def limit(self, mbit: float) -> None:
        """Give every worker so much bandwidth, each way."""
        for host in self._hosts:
            host.limit(mbit)

    def sent(self) -> int:
        """Return the bytes of results that workers sent each other so far, as Dask counts them."""
        return sum(self.client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


@contextmanager
def cluster(n_workers: int) -> Iterator[Cluster]:
    """Give a cluster of workers with one thread, each on its host; scheduler and client are on this machine.

    Files below the folder for temporary ones are shared, without a limit, and so are compiled kernels.
    """
    with network() as net:
        hosts = [net.host(Path(tempfile.gettempdir()), kernels()) for _ in range(n_workers)]
        with (
            LocalCluster(n_workers=0, host=net.address, dashboard_address=":0") as scheduler,
            Client(scheduler) as client,
        ):
            for host in hosts:
                host.start(
                    *PYTHON, "-m", "distributed.cli.dask_worker", scheduler.scheduler_address, "--host", host.address,
                    "--nthreads", "1", "--no-nanny", "--no-dashboard", "--memory-limit", "0",
                    "--local-directory", str(host.root), log="worker.log",
                )  # fmt: skip
            client.wait_for_workers(n_workers, timeout=60)
            yield Cluster(client, hosts)
