"""Clusters, and processes of their own: what they took, and the memory that they had."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import NamedTuple

import psutil
from distributed import Client, LocalCluster

_EVERY = 0.2  # seconds between looks at memory


class Usage(NamedTuple):
    """What a process took with all below it; `peak` is in bytes, 0 where nobody looked."""

    seconds: float
    processor_seconds: float
    peak: int


def run_process(command: Sequence[str], environment: Mapping[str, str], *, memory: bool = True) -> Usage:
    """Run a command; end this process where it fails.

    Whoever looks at memory takes a processor's time, and holds up those who ask for memory: `memory=False` does not.
    """
    began, peak, ended = time.perf_counter(), 0, threading.Event()
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )

    def watch() -> None:
        nonlocal peak
        while not ended.wait(_EVERY):
            peak = max(peak, memory_of(process.pid))

    assert process.stderr is not None
    with ThreadPoolExecutor(2) as pool:
        said, watching = pool.submit(process.stderr.read), pool.submit(watch) if memory else None
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        ended.set()
        if watching is not None:
            watching.result()
        if code := os.waitstatus_to_exitcode(status):
            sys.exit(f"{' '.join(command)} ended with {code}: {said.result().decode()}")
    return Usage(seconds, usage.ru_utime + usage.ru_stime, peak)


def memory_of(pid: int) -> int:
    """Return the bytes that a process and all below it have; of what several share, each has its part."""
    total = 0
    try:
        processes = [parent := psutil.Process(pid), *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    for process in processes:
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):  # it has ended
            total += process.memory_full_info().pss
    return total


@contextmanager
def one_thread() -> Iterator[Client]:
    """Give a cluster of one thread inside this process: what one core does, and its memory is this process's."""
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
        yield client


@contextmanager
def cluster_of(n: int, memory_limit: str = "auto") -> Iterator[Client]:
    """Give a cluster of worker processes of one thread; the client's `cluster` is it."""
    with (
        LocalCluster(n_workers=n, threads_per_worker=1, memory_limit=memory_limit, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        yield client


class Peaks:
    """The largest resident size of each process, sampled; -1 of one that has ended."""

    def __init__(self, pids: list[int]) -> None:
        self.rss = dict.fromkeys(pids, 0)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def _watch(self) -> None:
        while not self._stop.wait(_EVERY / 2):
            for pid in self.rss:
                try:
                    self.rss[pid] = max(self.rss[pid], psutil.Process(pid).memory_info().rss)
                except psutil.NoSuchProcess:
                    self.rss[pid] = -1

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()
