"""The constants of the formulas: what single steps take, measured by `python -m benchmarks.scale_model`."""

from dataclasses import dataclass
from typing import NamedTuple


class Line(NamedTuple):
    """Seconds by vector size d: fixed + column * d."""

    fixed: float
    column: float

    def at(self, d: int) -> float:
        """Return the seconds for vectors of d dimensions."""
        return self.fixed + self.column * d


@dataclass(frozen=True)
class Constants:
    """What single steps take on one core, in seconds.

    Parameters
    ----------
    window, warm, cold
        A pair in the kernel of replicas; in that of buckets, trained on text; and there with rows that no cache has.
    crowded
        Times as much while all cores train.
    read, deal, pair_bytes
        A word read and subsampled; a pair dealt into its bucket and read from there; a pair's bytes in it, on disk.
    piece
        A piece of text, dealt without pairs: tasks, files.
    copy, merge, send
        A byte of rows taken into a task or replica, out of it, and checked; of a replica, merged; and sent from
        worker to worker on one machine.
    bucket_task, bucket
        A task of `rotation.bucket_task.train_buckets` without buckets: tasks, replies; and a bucket without rows or
        pairs: reading.
    task
        A task in client and scheduler, which are one process where this was measured.
    """

    window: Line
    warm: Line
    cold: Line
    crowded: float
    read: float
    deal: float
    pair_bytes: float
    piece: float
    copy: float
    merge: float
    send: float
    bucket_task: float
    bucket: float
    task: float
