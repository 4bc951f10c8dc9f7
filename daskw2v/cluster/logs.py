"""Quieter logs of a local cluster: without errors of tasks and ends of workers, which daskw2v reports itself."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def silenced() -> Iterator[None]:
    """Suppress Dask's log of this process in the block."""
    handlers = list(logging.getLogger("distributed").handlers)
    for handler in handlers:
        handler.addFilter(_nothing)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(_nothing)


@contextmanager
def shuffling() -> Iterator[None]:
    """Suppress the warnings in which Dask's scheduler tells of shuffles that begin and end as they should."""
    logger = logging.getLogger("distributed.shuffle._scheduler_plugin")
    logger.addFilter(_no_ordinary_shuffle)
    try:
        yield
    finally:
        logger.removeFilter(_no_ordinary_shuffle)


def _no_ordinary_shuffle(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith(("Shuffle %s initialized", "Shuffle %s deactivated"))


@contextmanager
def interruptible() -> Iterator[None]:
    """Suppress the error that Dask logs where Ctrl-C comes before its loop has begun what it waits for."""
    logger = logging.getLogger("tornado.application")
    logger.addFilter(_no_interrupt)
    try:
        yield
    finally:
        logger.removeFilter(_no_interrupt)


def _no_interrupt(record: logging.LogRecord) -> bool:
    return "sync.<locals>.cancel" not in record.getMessage()


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
