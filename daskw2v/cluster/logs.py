"""Quieter logs of a local cluster: without errors of tasks and ends of workers, which daskw2v reports itself."""

import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from multiprocessing import resource_tracker

from distributed import Worker, WorkerPlugin

# Their child loggers, which warn about memory, stay
_OF_TASKS = ("distributed.worker", "distributed.worker.state_machine")


def _nothing(_: logging.LogRecord) -> bool:
    return False


class QuietTasks(WorkerPlugin):  # type: ignore[misc]  # Dask has no types
    """Keeps tracebacks of tasks out of a worker's log, also after restarts; the client raises the errors."""

    name = "daskw2v-quiet-tasks"

    def setup(self, worker: Worker) -> None:
        """Set up a worker."""
        for name in _OF_TASKS:
            logging.getLogger(name).addFilter(_nothing)

    def teardown(self, worker: Worker) -> None:
        """Undo it where the process is that of the worker's caller, who goes on.

        A process of its own, under a nanny, ends quietly: a heartbeat may meet a scheduler that has closed already.
        """
        if worker.nanny is not None:
            return
        for name in _OF_TASKS:
            logging.getLogger(name).removeFilter(_nothing)


def silenced() -> AbstractContextManager[None]:
    """Suppress Dask's log of this process in the block."""
    return _filtered(logging.getLogger("distributed").handlers, _nothing)


def shuffling() -> AbstractContextManager[None]:
    """Suppress the warnings in which Dask's scheduler tells of shuffles that begin and end as they should."""
    return _filtered([logging.getLogger("distributed.shuffle._scheduler_plugin")], _no_ordinary_shuffle)


def _no_ordinary_shuffle(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith(("Shuffle %s initialized", "Shuffle %s deactivated"))


def interruptible() -> AbstractContextManager[None]:
    """Suppress the error that Dask logs where Ctrl-C comes before its loop has begun what it waits for."""
    return _filtered([logging.getLogger("tornado.application")], _no_interrupt)


def _no_interrupt(record: logging.LogRecord) -> bool:
    return "sync.<locals>.cancel" not in record.getMessage()


@contextmanager
def _filtered(
    targets: Iterable[logging.Logger | logging.Handler], keep: Callable[[logging.LogRecord], bool]
) -> Iterator[None]:
    """Drop the records that `keep` is false of from loggers or handlers in the block."""
    several = list(targets)
    for target in several:
        target.addFilter(keep)
    try:
        yield
    finally:
        for target in several:
            target.removeFilter(keep)


def start_quiet_tracker() -> None:
    """Start Python's resource tracker without its warnings, which would appear after the end of a run.

    It removes the locks of killed workers, and warns about them. A tracker that runs already stays as it is.
    """
    before = os.environ.get("PYTHONWARNINGS")
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, (before, "ignore:resource_tracker:UserWarning")))
    try:
        resource_tracker.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONWARNINGS"]
        else:
            os.environ["PYTHONWARNINGS"] = before
