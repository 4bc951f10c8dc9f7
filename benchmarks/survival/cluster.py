"""A Dask cluster of processes that may be killed: a scheduler, and nannies with a worker each."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

import psutil
from distributed import Client

_START = 60  # seconds


def free_port() -> int:
    """Return a port that nobody listens to."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


class Cluster:
    """A cluster; `with` ends all of it.

    Parameters
    ----------
    folder
        Where processes write what they say, and what workers spill.
    environment
        What processes find in their environment besides ours.
    workers
        Workers of one thread.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str], workers: int = 2) -> None:
        self._folder, self._wanted, self._environment = folder, workers, {**os.environ, **environment}
        self._scheduler: subprocess.Popen[bytes] | None = None
        self._nannies: list[subprocess.Popen[bytes]] = []
        self.address = ""

    def __enter__(self) -> Self:
        self.mend()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill_all()

    def _run(self, *args: str) -> subprocess.Popen[bytes]:
        with (self._folder / "cluster.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", *args], env=self._environment, stdout=log, stderr=log, cwd=self._folder
            )

    def mend(self, *, again: bool = False) -> None:
        """Start what is missing, a scheduler and the workers wanted; start all anew if that does not help."""
        if self._scheduler is None or self._scheduler.poll() is not None:
            self.kill_all()
            self.address = f"tcp://127.0.0.1:{free_port()}"
            port = self.address.rpartition(":")[2]
            self._scheduler = self._run(
                "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", port, "--no-dashboard", "--no-show"
            )
        self._nannies = [nanny for nanny in self._nannies if nanny.poll() is None]
        while len(self._nannies) < self._wanted:
            self.add_worker()
        while len(self._nannies) > self._wanted:
            self.take_away(0)
        try:
            with Client(self.address, timeout=_START) as client:
                client.wait_for_workers(self._wanted, timeout=_START)
        except TimeoutError:  # a worker of the trial before has not ended yet
            if again:
                raise
            self.kill_all()
            self.mend(again=True)

    def add_worker(self) -> None:
        """Start another worker."""
        nanny = self._run(
            "distributed.cli.dask_worker", self.address, "--nthreads", "1", "--nworkers", "1", "--memory-limit", "2 GB",
            "--no-dashboard", "--preload", "benchmarks.survival.flaky", "--local-directory", str(self._folder),
        )  # fmt: skip
        self._nannies.append(nanny)

    def workers(self, *numbers: int) -> list[int]:
        """Return the processes below some nannies, or below all."""
        chosen = [self._nannies[number] for number in numbers] or self._nannies
        return [pid for nanny in chosen for pid in _below(nanny)]

    def kill_workers(self, *numbers: int) -> None:
        """Kill some workers at once, or all; their nannies start others."""
        _send(self.workers(*numbers), signal.SIGKILL)

    def kill_nanny(self, number: int) -> None:
        """Kill a nanny and its worker: nobody starts another."""
        _end(self._nannies[number])

    def kill_scheduler(self) -> None:
        assert self._scheduler is not None
        self._scheduler.kill()
        self._scheduler.wait()

    def kill_all(self) -> None:
        if self._scheduler is not None:
            self.kill_scheduler()
        for nanny in self._nannies:
            _end(nanny)

    def take_away(self, number: int, grace: float = 1.0) -> None:
        """Take a worker away as hosts of spot markets are: a signal, and the end some seconds later."""
        leaving = self._nannies.pop(number)
        _send([leaving.pid], signal.SIGTERM)
        time.sleep(grace)
        _end(leaving)

    def retire(self, number: int) -> None:
        """Let the scheduler retire a worker: it gives its results to others, and leaves with its nanny."""
        pids = self.workers(number)
        leaving = self._nannies.pop(number)  # it takes a while: `mend` must not count it
        with Client(self.address, timeout=_START) as client:
            known = client.run(os.getpid, on_error="return")
            client.retire_workers([address for address, pid in known.items() if pid in pids], close_workers=True)
        with suppress(subprocess.TimeoutExpired):
            leaving.wait(_START)
        _end(leaving)

    def freeze(self, number: int, seconds: float) -> None:
        """Stop a worker for a while: it answers nobody."""
        pids = self.workers(number)
        _send(pids, signal.SIGSTOP)
        time.sleep(seconds)
        _send(pids, signal.SIGCONT)


def _below(process: subprocess.Popen[bytes]) -> list[int]:
    with suppress(psutil.NoSuchProcess):
        return [child.pid for child in psutil.Process(process.pid).children(recursive=True)]
    return []


def _send(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, number)


def _end(nanny: subprocess.Popen[bytes]) -> None:
    """Kill a nanny with all below it; wait, else it would pass for one that runs."""
    below = _below(nanny)
    _send([nanny.pid, *below], signal.SIGKILL)
    nanny.wait()
