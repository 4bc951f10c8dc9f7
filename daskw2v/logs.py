"""What Dask's log says of a local cluster: not what its workers' tasks raise, nor how workers end, which we tell."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker

from distributed import Worker, WorkerPlugin

# Their children say that memory is short, and go on to
_OF_TASKS = ("distributed.worker", "distributed.worker.state_machine")


def _nothing(_: logging.LogRecord) -> bool:
    return False


class QuietTasks(WorkerPlugin):  # type: ignore[misc]  # Dask has no types
    """Keeps tracebacks of tasks, which are raised by the client too, out of a worker's log, after restarts too."""

    name = "daskw2v-quiet-tasks"

    def setup(self, worker: Worker) -> None:
        """Set up a worker."""
        for name in _OF_TASKS:
            logging.getLogger(name).addFilter(_nothing)


@contextmanager
def silenced() -> Iterator[None]:
    """Write none of Dask's log in this process meanwhile."""
    handlers = list(logging.getLogger("distributed").handlers)
    for handler in handlers:
        handler.addFilter(_nothing)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(_nothing)


def start_quiet_tracker() -> None:
    """Start the process of Python's that removes locks of killed workers, and would warn of them after our last word.

    One that runs already stays as it is.
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
