"""A local cluster: worker processes, or one worker in this process; the heap and the log of processes.

One worker in this process is a thread pool: no process is started, and nothing is sent. Dask compares the memory of the
process with a worker's limit, and would pause this worker forever because of its caller's memory. Therefore the worker
neither pauses nor spills. The memory of a run is checked before the run starts (`training.estimates`).

By default glibc allocates blocks of up to 32 MB in heaps, up to eight a core, and keeps freed memory in them. A worker
in this process then holds a third more memory than it uses. Therefore the number of its heaps is bounded; Dask bounds
the heaps of its worker processes, too. Errors of tasks and ends of workers are kept out of the log, as daskw2v reports
them.
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
from daskw2v.kernels import buffers

# Each task allocates and frees arrays of several megabytes. By Dask's default malloc returns them to the system at
# once, and gets new pages for each task: up to a third of a training's processor time.
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
    # The worker cannot be lost without its scheduler. Dask would give it up after a machine slept, or its clock was set
    "distributed.scheduler.worker-ttl": None,
    # Profiles for a dashboard take the interpreter's time from threads that train
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.tick.interval": "1s",
}

_ARENA_MAX, _MMAP_THRESHOLD = -8, -3  # of mallopt
_ARENAS = 2  # heaps of all threads
_MAPPED_BYTES = 4 << 20  # from which an array has pages of its own, which are unmapped when it is freed

# Loggers of errors of tasks; their child loggers, which warn about memory, stay
_TASK_LOGGERS = ("distributed.worker", "distributed.worker.state_machine")


def start_cluster(resources: Resources, options: Mapping[str, Any]) -> LocalCluster:
    """Start the local cluster that `resources` describe, with further options of Dask's LocalCluster.

    Raises
    ------
    ClusterError
        If worker processes do not start.
    ParameterError
        If `processes` does not go with the other options.
    """
    if _needs_processes(resources, options):
        return _start_processes(resources, options)
    return OneWorker(resources.threads, **options)


class OneWorker(LocalCluster):  # type: ignore[misc]  # Dask has no types
    """A cluster of one worker in this process, without a dashboard.

    Parameters
    ----------
    threads
        Number of threads of the worker; None for as many as there are cores.
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
    """Let glibc map large arrays one by one, and let all threads share two heaps; unless MALLOC_* variables are set."""
    if any(name.startswith("MALLOC_") for name in os.environ):
        return
    _call_glibc("mallopt", _ARENA_MAX, _ARENAS)
    _call_glibc("mallopt", _MMAP_THRESHOLD, _MAPPED_BYTES)


def trim_heap() -> None:
    """Return free memory to the system, after a stage whose memory the next stage cannot use."""
    buffers.pool.release()
    _call_glibc("malloc_trim", 0)


class QuietTasks(WorkerPlugin):  # type: ignore[misc]  # Dask has no types
    """A plugin that keeps tracebacks of tasks out of workers' logs, also after restarts; the client raises them."""

    name = "daskw2v-quiet-tasks"

    def setup(self, worker: Worker) -> None:
        """Silence the loggers of tasks in the process of a worker."""
        for name in _TASK_LOGGERS:
            logging.getLogger(name).addFilter(_drop_record)

    def teardown(self, worker: Worker) -> None:
        """Log tracebacks of tasks again, if the worker was in the process of its caller, which goes on.

        A worker process, which has a nanny, ends quietly: a heartbeat may meet a scheduler that has closed already.
        """
        if worker.nanny is None:
            for name in _TASK_LOGGERS:
                logging.getLogger(name).removeFilter(_drop_record)


def silencing_dask() -> AbstractContextManager[None]:
    """Suppress Dask's log of this process in the block."""
    return _filtering(_drop_record, *logging.getLogger("distributed").handlers)


def silencing_shuffles() -> AbstractContextManager[None]:
    """Suppress, in the block, the warnings of Dask's scheduler about shuffles that begin and end as they should."""
    ordinary = "Shuffle %s initialized", "Shuffle %s deactivated"
    scheduler = logging.getLogger("distributed.shuffle._scheduler_plugin")
    return _filtering(lambda record: not str(record.msg).startswith(ordinary), scheduler)


def silencing_interrupts() -> AbstractContextManager[None]:
    """Suppress, in the block, the error that Dask logs if Ctrl-C comes before Dask's loop has begun an awaited call."""
    tornado = logging.getLogger("tornado.application")
    return _filtering(lambda record: "sync.<locals>.cancel" not in record.getMessage(), tornado)


@contextmanager
def _filtering(
    is_kept: Callable[[logging.LogRecord], bool], *targets: logging.Logger | logging.Handler
) -> Iterator[None]:
    """Let loggers or handlers drop, in the block, all records for which `is_kept` returns False."""
    for target in targets:
        target.addFilter(is_kept)
    try:
        yield
    finally:
        for target in targets:
            target.removeFilter(is_kept)


def start_quiet_tracker() -> None:
    """Start Python's resource tracker without its warnings, which would appear after the end of a run.

    The tracker removes the locks of killed workers, and warns about them. A tracker that runs already stays unchanged.
    """
    before = {name: value for name, value in os.environ.items() if name == "PYTHONWARNINGS"}
    os.environ["PYTHONWARNINGS"] = ",".join([*before.values(), "ignore:resource_tracker:UserWarning"])
    try:
        resource_tracker.ensure_running()
    finally:
        del os.environ["PYTHONWARNINGS"]
        os.environ.update(before)


def _needs_processes(resources: Resources, options: Mapping[str, Any]) -> bool:
    """Return whether local workers are processes: as `resources.processes` says, or if a setting needs processes.

    Parameters
    ----------
    resources, options
        As in `start_cluster`.

    Raises
    ------
    ParameterError
        If `resources.processes` is False, but a setting needs processes.
    """
    needs_processes = {
        "workers": resources.workers > 1,
        "memory_limit": resources.memory_limit != "auto",
        "host": resources.host is not None,
        "device": "worker_class" in options,
    }
    values = resources.flat()
    settings = " and ".join(f"{name}={values[name]!r}" for name, is_needed in needs_processes.items() if is_needed)
    if resources.processes is False and settings:
        problem = f"processes=False: a worker in this process cannot have {settings}."
        raise ParameterError(problem, f"Leave out processes, or {settings}.")
    return bool(settings) if resources.processes is None else resources.processes


def _start_processes(resources: Resources, options: Mapping[str, Any]) -> LocalCluster:
    """Start a local cluster of worker processes, each with a nanny, which starts the process again if it dies.

    Parameters
    ----------
    resources, options
        As in `start_cluster`.

    Raises
    ------
    ClusterError
        If the processes do not start.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        sys.exit(1)  # a worker's process that runs the caller's script again: the caller says why it ended
    with _ignoring_interrupts(), dask.config.set(_PROCESSES), silencing_dask():
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
                f"Worker processes ended before they were ready ({_root_cause(error)}).",
                'Each runs the script that starts it: put what the script does below `if __name__ == "__main__":`.',
            ) from None


def _root_cause(error: BaseException) -> BaseException:
    """Return the first error of the chain of causes that an error ends."""
    return error if error.__cause__ is None else _root_cause(error.__cause__)


@contextmanager
def _ignoring_interrupts() -> Iterator[None]:
    """Let processes that are started in the block ignore Ctrl-C; this process handles it, and ends them in order."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set signal handlers
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        if before is not None:  # None: the handler was not set from Python
            signal.signal(signal.SIGINT, before)


def _call_glibc(name: str, *arguments: int) -> None:
    """On Linux, call a function of the C library by its name, such as glibc's "malloc_trim", if the library has it."""
    if sys.platform == "linux" and (function := getattr(ctypes.CDLL(None), name, None)):
        function(*arguments)


def _drop_record(_: logging.LogRecord) -> bool:
    """Return False, so that a filter of a logger drops a record."""
    return False
