"""A local cluster: worker processes, or one worker in this process; the heap and the log of processes.

One worker in this process is a thread pool: nothing is started, and nothing is sent. Dask compares the memory of the
whole process with a worker's limit, and would pause this worker for ever because of its caller's memory. So it neither
pauses nor spills. The memory of a run is checked before it starts (`training.estimates`).

By default glibc takes memory of up to 32 MB from heaps, one for each of eight threads a core, and keeps freed memory
there. A worker in this process then holds a third more than it uses, so its heap is bounded. Dask bounds those of its
worker processes, too. The log is without errors of tasks and ends of workers, which daskw2v reports itself.
"""

import ctypes
import logging
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import AbstractContextManager, contextmanager
from multiprocessing import resource_tracker
from typing import Any

import dask
from distributed import LocalCluster, Worker, WorkerPlugin

from daskw2v.config.resources import Resources
from daskw2v.errors import ClusterError, ParameterError

# Each task takes and frees arrays of some megabytes. By Dask's default malloc returns them to the system at once, and
# gets new pages for each task: up to a third of a training's processor time.
# Profiles and ticks ten times as rare are as good.
_PROCESSES = {
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 1 << 25,  # the most that glibc takes
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 1 << 28,
    "distributed.worker.profile.interval": "100ms",
    "distributed.admin.tick.interval": "200ms",  # each process of a cluster ticks: scheduler, nannies, workers
}
_ONE_WORKER = {
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    # It cannot be lost alone. Dask would give it up after a machine slept, or its clock was set
    "distributed.scheduler.worker-ttl": None,
    # Profiles for a dashboard take the interpreter's time from threads that train
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.tick.interval": "1s",
}

_ARENA_MAX, _MMAP_THRESHOLD = -8, -3  # of mallopt
_ARENAS = 2  # heaps of all threads
_MAPPED = 4 << 20  # bytes from which an array has pages of its own, which are unmapped when it is freed

# Their child loggers, which warn about memory, stay
_OF_TASKS = ("distributed.worker", "distributed.worker.state_machine")


def start_cluster(resources: Resources, options: Mapping[str, Any]) -> LocalCluster:
    """Start the local cluster that `resources` describe, with further options of Dask's LocalCluster.

    Raises
    ------
    ClusterError
        If worker processes do not start.
    ParameterError
        If `processes` does not go with the other options.
    """
    if _are_processes(resources, options):
        return _start_processes(resources, options)
    return OneWorker(resources.threads, **options)


class OneWorker(LocalCluster):  # type: ignore[misc]  # Dask has no types
    """A cluster of one worker in this process, without a dashboard.

    Parameters
    ----------
    threads
        Threads of the worker; as many as there are cores when not options.
    options
        Further options of Dask's LocalCluster.
    """

    dashboard_link = None

    def __init__(self, threads: int | None, **options: Any) -> None:
        bound_heap()
        with dask.config.set(_ONE_WORKER):
            super().__init__(
                n_workers=1,
                threads_per_worker=threads,
                memory_limit="auto",
                processes=False,
                dashboard_address=None,
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # where Dask always answers whether it lives
                **options,
            )

    def close(self, timeout: float | None = None) -> None:
        """Close the cluster; tasks that still run are ended, as they are with a process.

        Their threads get an exception at their next line of Python, between two kernels.
        """
        for worker in self.workers.values():
            for thread in list(worker.active_threads):
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(CancelledError))
        super().close(timeout)


def bound_heap() -> None:
    """Let large arrays have memory of their own, and threads share heaps; MALLOC_* variables go first."""
    if any(name.startswith("MALLOC_") for name in os.environ):
        return
    _glibc("mallopt", _ARENA_MAX, _ARENAS)
    _glibc("mallopt", _MMAP_THRESHOLD, _MAPPED)


def trim_heap() -> None:
    """Return free memory to the system, after a stage whose memory the next one cannot use."""
    _glibc("malloc_trim", 0)


class QuietTasks(WorkerPlugin):  # type: ignore[misc]  # Dask has no types
    """Keeps tracebacks of tasks out of a worker's log, also after restarts; the client raises the errors."""

    name = "daskw2v-quiet-tasks"

    def setup(self, worker: Worker) -> None:
        """Set up a worker."""
        for name in _OF_TASKS:
            logging.getLogger(name).addFilter(_nothing)

    def teardown(self, worker: Worker) -> None:
        """Show tracebacks again where the process is that of the worker's caller, who goes on.

        A process of its own, under a nanny, ends quietly: a heartbeat may meet a scheduler that has closed already.
        """
        if worker.nanny is None:
            for name in _OF_TASKS:
                logging.getLogger(name).removeFilter(_nothing)


def silenced() -> AbstractContextManager[None]:
    """Suppress Dask's log of this process in the block."""
    return _filtered(_nothing, *logging.getLogger("distributed").handlers)


def shuffling() -> AbstractContextManager[None]:
    """Suppress the warnings of Dask's scheduler about shuffles that begin and end as they should."""
    ordinary = "Shuffle %s initialized", "Shuffle %s deactivated"
    scheduler = logging.getLogger("distributed.shuffle._scheduler_plugin")
    return _filtered(lambda record: not str(record.msg).startswith(ordinary), scheduler)


def interruptible() -> AbstractContextManager[None]:
    """Suppress the error that Dask logs where Ctrl-C comes before its loop has begun the awaited call."""
    tornado = logging.getLogger("tornado.application")
    return _filtered(lambda record: "sync.<locals>.cancel" not in record.getMessage(), tornado)


@contextmanager
def _filtered(keep: Callable[[logging.LogRecord], bool], *targets: logging.Logger | logging.Handler) -> Iterator[None]:
    """Drop the records that `keep` is false of from loggers or handlers in the block."""
    for target in targets:
        target.addFilter(keep)
    try:
        yield
    finally:
        for target in targets:
            target.removeFilter(keep)


def start_quiet_tracker() -> None:
    """Start Python's resource tracker without its warnings, which would appear after the end of a run.

    It removes the locks of killed workers, and warns about them. A tracker that runs already stays as it is.
    """
    before = {name: value for name, value in os.environ.items() if name == "PYTHONWARNINGS"}
    os.environ["PYTHONWARNINGS"] = ",".join([*before.values(), "ignore:resource_tracker:UserWarning"])
    try:
        resource_tracker.ensure_running()
    finally:
        del os.environ["PYTHONWARNINGS"]
        os.environ.update(before)


def _are_processes(resources: Resources, options: Mapping[str, Any]) -> bool:
    """Return whether local workers are processes: as asked for, or where one worker in this process would not do."""
    of_processes = {
        "workers": resources.workers > 1,
        "memory_limit": resources.memory_limit != "auto",
        "host": resources.host is not None,
        "device": "worker_class" in options,
    }
    values = resources.flat()
    asked = " and ".join(f"{name}={values[name]!r}" for name, is_asked in of_processes.items() if is_asked)
    if resources.processes is False and asked:
        problem = f"processes=False: a worker in this process cannot have {asked}."
        raise ParameterError(problem, f"Leave out processes, or {asked}.")
    return bool(asked) if resources.processes is None else resources.processes


def _start_processes(resources: Resources, options: Mapping[str, Any]) -> LocalCluster:
    """Start a process for each worker, and for each a nanny, which starts it again if it dies.

    Raises
    ------
    ClusterError
        If the processes do not start.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        sys.exit(1)  # a worker's process that runs the caller's script again: the caller says why it ended
    with _uninterrupted(), dask.config.set(_PROCESSES), silenced():
        start_quiet_tracker()
        try:
            return LocalCluster(  # on loopback by default, so that only this machine reaches it
                n_workers=resources.workers,
                threads_per_worker=resources.threads,
                memory_limit=resources.memory_limit,
                host=resources.host or "127.0.0.1",
                dashboard_address="127.0.0.1:0",
                **options,
            )
        except RuntimeError as error:
            raise ClusterError(
                f"Worker processes ended before they were ready ({_cause(error)}).",
                'Each runs the script that starts it: put what the script does below `if __name__ == "__main__":`.',
            ) from None


def _cause(error: BaseException) -> BaseException:
    """Return the first of a chain of errors."""
    return error if error.__cause__ is None else _cause(error.__cause__)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let processes that are started in the block ignore Ctrl-C; this process handles it and ends them in order."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set signal handlers
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        if before is not None:  # None: the handler was not set from Python
            signal.signal(signal.SIGINT, before)


def _glibc(name: str, *arguments: int) -> None:
    """Call a function of glibc, where it is this process' C library."""
    if sys.platform == "linux" and (function := getattr(ctypes.CDLL(None), name, None)):
        function(*arguments)


def _nothing(_: logging.LogRecord) -> bool:
    return False
