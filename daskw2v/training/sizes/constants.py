"""The constants of the formulas: what single steps take, measured by `python -m benchmarks.scale_model`."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from daskw2v.config.params import Params
from daskw2v.features.settings import has_features
from daskw2v.objectives.settings import SGNS


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
    window, far
        A pair in the kernel of replicas, trained on text of few words; and with rows that no cache has.
    warm, cold
        The same in the kernel of buckets.
    crowded
        Times as much while all cores train.
    read, deal, pair_bytes
        A word read and subsampled; a pair dealt into its bucket and read from there; a pair's bytes in it, on disk.
    piece
        A piece of text, dealt without pairs.
    copy, send
        A byte of rows taken into a task or replica, out of it, and checked; and sent or received by a worker, whose
        event loop does both.
    merge
        A byte of a replica's rows, projected and merged.
    file
        A byte of rows, written to a file or read from it, with its checksum.
    bucket_task, bucket
        A task of `rotation.bucket_task.train_buckets` without buckets: tasks, replies; and a bucket of one pair.
    task, result
        A task in client and scheduler, which are one process where this was measured; and in its worker.
    hop
        From the end of a task to the beginning of one that waits for it.
    """

    window: Line
    far: Line
    warm: Line
    cold: Line
    crowded: float
    read: float
    deal: float
    pair_bytes: float
    piece: float
    copy: float
    merge: Line
    send: float
    file: float
    bucket_task: float
    bucket: float
    task: float
    result: float
    hop: float


# Machine B (AMD EPYC Genoa, 2 cores), nearly idle, `python -m benchmarks.scale_model --parts 10 --rates 1000`:
# kernels of sgns with 5 negatives
MACHINE_B = Constants(
    window=Line(1.67e-08, 3.85e-10), far=Line(6.2e-08, 7.9e-10), warm=Line(1.86e-08, 3.62e-10),
    cold=Line(7.05e-08, 8.55e-10), crowded=1.18, read=5.57e-9, deal=1.42e-08, pair_bytes=4, piece=0.00083,
    copy=2.7e-10, merge=Line(8e-10, 8e-12), send=2.3e-10, file=1.49e-09, bucket_task=0.0034, bucket=0.00002, task=0.001,
    result=0.0013, hop=0.0058,
)  # fmt: skip
_MEASURED = {("sgns", "cpu")}  # objectives and devices
_NEGATIVES = 5
_COMPOSED = 7.8e-9  # a window and dimension more with n-grams (an Intel Xeon)


def constants_of(params: Params, device: str) -> Constants | None:
    """Return the constants with the kernels of these Params, which take longer with more negatives.

    Windows whose rows are composed of features' take longer too. None for an objective and device whose kernels were
    not measured.
    """
    of = params.objective
    if (of.name, device) not in _MEASURED or not isinstance(of, SGNS) or of.negative_sharing != "shared":
        return None
    times = (1 + of.negative + of.market_negative) / (1 + _NEGATIVES)
    window, far, warm, cold = (
        Line(times * line.fixed, times * line.column)
        for line in (MACHINE_B.window, MACHINE_B.far, MACHINE_B.warm, MACHINE_B.cold)
    )
    if has_features(params):
        pairs = params.window + 1 if params.shrink_windows else 2 * params.window  # of a window
        window, far = (line._replace(column=line.column + _COMPOSED / pairs) for line in (window, far))
    return replace(MACHINE_B, window=window, far=far, warm=warm, cold=cold)
