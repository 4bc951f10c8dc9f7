"""The seconds of training, computed from a strategy's work and the seconds of single steps.

`python -m benchmarks.scale_model` measures the steps.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from daskw2v.config.params import Params
from daskw2v.features.settings import has_features
from daskw2v.objectives.registry import find_objective
from daskw2v.objectives.touched import contexts_of_window
from daskw2v.training.devices import find_device
from daskw2v.training.loop.work import Phase, Work

TERMS = ("text", "store", "train", "copies", "handling", "travel", "waiting", "tasks")
_LINK = 1448 / 1514  # of a packet's bytes on a link are data: Ethernet, IP and TCP take the rest


class Line(NamedTuple):
    """Seconds of a step for vectors of d dimensions: fixed + column * d."""

    fixed: float
    column: float = 0.0

    def value_for(self, d: int) -> float:
        """Return the seconds of the step for vectors of `d` dimensions."""
        return self.fixed + self.column * d


Constants: TypeAlias = Mapping[str, Line]  # seconds of single steps on one core

# Machine B (AMD EPYC Genoa, 2 cores), nearly idle, `python -m benchmarks.scale_model --parts 10 --rates 1000`:
# kernels of sgns with 5 negatives
MACHINE_B: Constants = {
    # A pair in the kernel of replicas, with rows that a cache has; and with rows that no cache has
    "window": Line(1.67e-08, 3.85e-10),
    "far": Line(6.2e-08, 7.9e-10),
    # A pair in the kernel of buckets, whose rows a cache has; and whose rows no cache has
    "warm": Line(1.86e-08, 3.62e-10),
    "cold": Line(7.05e-08, 8.55e-10),
    "crowded": Line(1.18),  # factor of the four above, while all cores train
    "read": Line(5.57e-9),  # a word, read and subsampled
    "deal": Line(1.42e-08),  # a pair, distributed to its bucket and read again
    "piece": Line(0.00083),  # a piece of text, without its pairs
    "copy": Line(2.7e-10),  # a byte of rows, copied into a task or replica, out of it, and checked
    "merge": Line(1.1e-9, 1e-12),  # a byte of a replica's rows, merged: in runs of two workers, with the curvature
    "send": Line(2.3e-10),  # a byte, sent or received by a worker, whose event loop does both
    "file": Line(1.49e-09),  # a byte of rows, written to a file or read from it, with its checksum
    "bucket_task": Line(0.0034),  # a task of `rotation.bucket_task.train_buckets` without buckets: tasks, replies
    "bucket": Line(0.00002),  # a bucket of one pair
    "task": Line(0.001),  # a task in client and scheduler, which are one process where this was measured
    "result": Line(0.0013),  # a task in its worker
    "hop": Line(0.0058),  # from the end of a task to the beginning of one that waits for it
}
_KERNELS = ("window", "far", "warm", "cold")
_COMPOSED = 7.8e-9  # seconds more of a window and dimension, with n-grams (an Intel Xeon)


def find_constants(params: Params, device: str, machine: Constants = MACHINE_B) -> Constants | None:
    """Return the seconds of single steps on a machine, with the kernels of a run; None if these were not measured.

    Objectives know the cost of their kernels; rows that are composed of features' rows take longer.
    """
    cost = find_objective(params.objective.name).cost(params)
    if cost is None or not find_device(device).runs_cpu_kernels:
        return None
    composed = dict.fromkeys(("window", "far"), _COMPOSED / contexts_of_window(params)) if has_features(params) else {}

    def kernel(name: str) -> Line:
        return Line(cost * machine[name].fixed, cost * machine[name].column + composed.get(name, 0.0))

    return {**machine, **{name: kernel(name) for name in _KERNELS}}


class Forecast(NamedTuple):
    """The forecast of training, of all epochs together.

    Parameters
    ----------
    seconds
        Seconds by term, each of `TERMS`; the seconds of "tasks" are the scheduler's, which works beside the workers.
    sent
        Bytes that workers send each other.
    """

    seconds: Mapping[str, float]
    sent: float

    @property
    def total(self) -> float:
        """Seconds of training: of the workers or of the scheduler, whichever takes longer."""
        return max(sum(self.seconds.values()) - self.seconds["tasks"], self.seconds["tasks"])


def forecast(work: Work, constants: Constants) -> Forecast | None:
    """Return the forecast of training, from the seconds of single steps; None for work without phases."""
    seconds, sent = dict.fromkeys(TERMS, 0.0), 0.0
    phases = [*work.phases()]
    for phase in phases:
        steps, travel = _seconds(phase, work, constants)
        seconds[phase.term] += steps + max(0.0, travel - sum(seconds[term] for term in phase.beside))
        sent += phase.sent
    return Forecast(seconds, sent) if phases else None


def _seconds(phase: Phase, work: Work, constants: Constants) -> tuple[float, float]:
    """Return the seconds of a phase.

    Returns
    -------
    steps
        Seconds of its steps, or of reading and writing the store, whichever takes longer.
    travel
        Seconds in which the worker with most to send or to receive does so, by the slower of link and event loop.
    """
    workers, d = work.workers, work.params.vector_size
    n, busy = phase.workers or workers.n, workers.busy(phase.threads)
    crowded = dict.fromkeys(_KERNELS, constants["crowded"].value_for(d)) if busy > 1 else {}
    steps = sum(times * constants[name].value_for(d) * crowded.get(name, 1.0) for name, times in phase.steps.items())
    seconds_per_byte = max(1 / (workers.network * _LINK), 2 * constants["send"].value_for(d) * n / workers.busy(n))
    return (
        max(steps * max(1 / busy, phase.slowest / phase.threads), phase.stored / n / workers.storage),
        phase.sent / n * phase.slowest * seconds_per_byte,
    )
