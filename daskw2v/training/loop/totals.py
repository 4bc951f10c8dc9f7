"""What training tasks report: what they trained, how long it took, and on which worker."""

import time
from collections.abc import Iterable
from typing import NamedTuple

from daskw2v.kernels import compilation


class TaskTotals(NamedTuple):
    """The totals of one training task.

    Parameters
    ----------
    pairs, loss
        Pairs trained, and their summed loss.
    finite
        Whether all trained rows are finite.
    words
        Corpus words read, 0 for a task that reads no text.
    worker
        The worker's address.
    seconds, compiling
        Duration of the task, and how much of it the process compiled kernels.
    """

    pairs: int
    loss: float
    finite: bool
    words: int = 0
    worker: str = ""
    seconds: float = 0.0
    compiling: float = 0.0

    def ended(self, finite: bool, seconds: float, compiling: float) -> "TaskTotals":
        """Return them after what else the task did, in so many more seconds."""
        return self._replace(finite=finite, seconds=self.seconds + seconds, compiling=self.compiling + compiling)


class TaskClock:
    """Measures a task: its seconds, and those in which its process compiled kernels."""

    def __init__(self) -> None:
        self._read = self._now()

    def read(self) -> tuple[float, float]:
        """Return both since the last time, or since the beginning: the last two fields of `TaskTotals`."""
        before, self._read = self._read, self._now()
        return self._read[0] - before[0], self._read[1] - before[1]

    @staticmethod
    def _now() -> tuple[float, float]:
        return time.perf_counter(), compilation.here.seconds


class WorkerShare(NamedTuple):
    """One worker's share of the training: pairs, and seconds of its tasks."""

    pairs: int = 0
    seconds: float = 0.0


class WorkerShares(dict[str, WorkerShare]):
    """The share of each worker by its address, since this client began."""

    def add(self, totals: Iterable[TaskTotals]) -> None:
        """Add the totals of tasks."""
        for t in totals:
            pairs, seconds = self.get(t.worker, WorkerShare())
            self[t.worker] = WorkerShare(pairs + t.pairs, seconds + t.seconds)
