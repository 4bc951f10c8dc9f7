"""The constants of the formulas: what single steps take, measured by `python -m benchmarks.scale_model`."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from daskw2v.config.params import Params


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


# Machine B (EPYC Genoa, 2 cores), `python -m benchmarks.scale_model`; kernels of sgns with 5 negatives
MACHINE_B = Constants(
    window=Line(10.2e-9, 0.4495e-9), warm=Line(18.2e-9, 0.546e-9), cold=Line(95e-9, 1.15e-9), crowded=1.03,
    read=15.3e-9, deal=90.6e-9, pair_bytes=4.0, piece=12.2e-3, copy=0.336e-9, merge=0.305e-9, send=2.52e-9,
    bucket_task=6.16e-3, bucket=0.829e-3, task=1.41e-3,
)  # fmt: skip
_MEASURED = {("sgns", "cpu")}  # objectives and devices
_NEGATIVES = 5


def constants_of(params: Params, device: str) -> Constants | None:
    """Return the constants with the kernels of these Params, which take longer with more negatives.

    None for an objective and device whose kernels were not measured.
    """
    if (params.objective, device) not in _MEASURED or params.negative_sharing != "shared":
        return None
    times = (1 + params.negative) / (1 + _NEGATIVES)
    window, warm, cold = (
        Line(times * line.fixed, times * line.column) for line in (MACHINE_B.window, MACHINE_B.warm, MACHINE_B.cold)
    )
    return replace(MACHINE_B, window=window, warm=warm, cold=cold)
