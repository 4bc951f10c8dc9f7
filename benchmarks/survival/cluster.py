"""A Dask cluster of processes that may be killed: a scheduler, and nannies with a worker each."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil
from distributed import Client

_START = 60  # seconds


class Cluster:
    """A cluster; `with` ends all of it.

    Parameters
    ----------
    folder
        Where processes write what they say, and what workers spill.
    workers
        Workers of one thread.
    environment
        What processes find in their environment besides ours.
    """

    def __init__(self, folder: Path, workers: int = 2, environment: Mapping[str, str] | None = None) -> None:
        self._folder, self._wanted = folder, workers
        self._environment = {**os.environ, **(environment or {})}
        self._scheduler: subprocess.Popen[bytes] | None = None
        self._nannies: list[subprocess.Popen[bytes]] = []
        self.address = ""

    def __enter__(self) -> "Cluster":
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
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            self.address = f"tcp://127.0.0.1:{port}"
            self._scheduler = self._run(
                "distributed.cli.dask_scheduler",
                "--host",
                "127.0.0.1",
                "--port",
                str(port),
                "--no-dashboard",
                "--no-show",
            )
        self._nannies = [nanny for nanny in self._nannies if nanny.poll() is None]
        while len(self._nannies) < self._wanted:
            self.add_worker()
        while len(self._nannies) > self._wanted:
            self.retire(0)
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

    def kill_worker(self, number: int) -> None:
        """Kill a worker; its nanny starts another."""
        for child in self._workers(self._nannies[number]):
            _kill(child)

    def kill_workers(self) -> None:
        """Kill all workers at once; their nannies start others."""
        for child in [child for nanny in self._nannies for child in self._workers(nanny)]:
            _kill(child)

    def kill_nanny(self, number: int) -> None:
        """Kill a nanny and its worker: nobody starts another."""
        nanny = self._nannies[number]
        children = self._workers(nanny)
        for pid in (nanny.pid, *children):
            _kill(pid)

    def retire(self, number: int) -> None:
        """Ask a worker to leave, as a cluster that shrinks does."""
        leaving = self._nannies.pop(number)
        with suppress(ProcessLookupError):
            leaving.send_signal(signal.SIGTERM)
        threading.Thread(target=leaving.wait, daemon=True).start()

    def retire_as_asked(self, number: int) -> None:
        """Let the scheduler retire a worker: it gives its results to others, and leaves with its nanny."""
        pids = self.workers(number)
        leaving = self._nannies.pop(number)  # it takes a while: `mend` must not count it
        threading.Thread(target=leaving.wait, daemon=True).start()
        with Client(self.address, timeout=_START) as client:
            known = client.run(os.getpid, on_error="return")
            client.retire_workers([address for address, pid in known.items() if pid in pids], close_workers=True)

    def take_away(self, number: int, grace: float) -> None:
        """Take a worker away as hosts of spot markets are: a signal, and the end some seconds later."""
        leaving = self._nannies.pop(number)
        with suppress(ProcessLookupError):
            leaving.send_signal(signal.SIGTERM)
        time.sleep(grace)
        for pid in (leaving.pid, *self._workers(leaving)):
            _kill(pid)
        leaving.wait()

    def workers(self, number: int) -> list[int]:
        """Return the processes of a nanny, by their numbers."""
        return self._workers(self._nannies[number])

    def kill_scheduler(self) -> None:
        assert self._scheduler is not None
        _kill(self._scheduler.pid)
        self._scheduler.wait()

    def kill_all(self) -> None:
        if self._scheduler is not None:
            _kill(self._scheduler.pid)
        for number in range(len(self._nannies)):
            self.kill_nanny(number)
        for process in (*self._nannies, *([self._scheduler] if self._scheduler else [])):
            process.wait()  # else it would pass for one that runs

    def freeze(self, number: int, seconds: float) -> None:
        """Stop a worker for a while: it answers nobody."""
        children = self._workers(self._nannies[number])
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGSTOP)
        time.sleep(seconds)
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGCONT)

    @staticmethod
    def _workers(nanny: subprocess.Popen[bytes]) -> list[int]:
        with suppress(psutil.NoSuchProcess):
            return [child.pid for child in psutil.Process(nanny.pid).children(recursive=True)]
        return []


def _kill(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
