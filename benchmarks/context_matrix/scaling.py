"""What strategy `columns` takes on more workers: a model of a step, whose parts are measured on this machine.

In a step each table's rows train `gather_every` columns, one table after the other. So a step is two phases, and a
phase on n workers of one core is

* the task of one worker, as it runs on one core here: rows of V / n words and their moments, and the V fixed rows,
  are taken in, train, and are handed out. On one worker a task does many steps, and rows only train;
* what it gathers before: (n - 1) / n of the V rows of the other table, 4 D bytes each. It sends as much. A byte takes
  what the link of 10 Gbps gives, or what a worker here takes to send and to receive it, if that is more
  (`training.cost.base.Hardware.a_byte`): both are printed;
* Dask's work on 4 n tasks (the training, its rows, its moments, its totals), one after the other on client and
  scheduler: seconds a task are those of two workers here with next to no rows to train.

Nothing of this is taken to go on beside the rest, which is the worst case; that all workers are equally fast, the best.
The model of two workers may be held against the two measured, which share one machine's cores and memory.
"""

import math
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from distributed import Client

from benchmarks.context_matrix.training import matrix_of, train_anew
from benchmarks.texts import Text
from benchmarks.transfer import seconds_a_byte
from daskw2v.config.params import Params
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.objectives.base import Columns
from daskw2v.objectives.registry import find_objective
from daskw2v.training.columns.part_task import INPUT, OUTPUT
from daskw2v.training.columns.step_schedule import ColumnRounds
from daskw2v.training.cost.base import Hardware
from daskw2v.training.devices import find_device
from daskw2v.types import Float32Array

TASKS = 4  # of a worker in a phase
COLUMNS = 16  # that are measured
LINK = 10e9 / 8  # bytes/s
CORPORA = {"V=18k, D=500": (18_498, 500), "V=71k, D=128": (71_290, 128)}  # sections 5.1 and 5.7


@dataclass(frozen=True)
class Constants:
    """Seconds of a task in client and scheduler, and of a byte that a worker sends or receives."""

    task: float
    send: float


def measure_constants(two: Client, small: Text, params: Params, times: int) -> Constants:
    """Measure on a cluster of two workers, which compiled before; others who use the machine only add to the least."""
    params = params.replace(vector_size=16, context_size=64, gather_every=1)
    matrix_of(two, small, params)
    tasks = 2 * len(ColumnRounds(params).ends) * TASKS * len(two.nthreads())
    seconds = [float(train_anew(two, small, params).metadata["metrics"]["seconds"]) for _ in range(times)]
    return Constants(min(seconds) / tasks, seconds_a_byte(two))


class Share(NamedTuple):
    """Seconds of a worker's task in a phase: what it takes in and hands out, and each column."""

    copies: float
    column: float


class Work:
    """Tasks that train words of Zipf's law on one core, without Dask."""

    def __init__(self, n_words: int, params: Params) -> None:
        self._n, self._params, self._random = n_words, params, np.random.default_rng(1)
        self._objective = find_objective(params.objective)
        counts = np.maximum(1e9 / np.arange(1, n_words + 1), 50).astype(np.int64)
        self._share = np.cumsum(counts) / counts.sum()
        self._prepared = self._objective.prepare(params, counts)
        rows = self._random.standard_normal((n_words, params.vector_size), np.float32)
        self._rows: Float32Array = rows / np.float32(50)

    def share(self, workers: int) -> Share:
        """Measure the task of one of so many workers."""
        words = -(-self._n // workers)
        contexts = np.searchsorted(self._share, self._random.random((words, COLUMNS))).astype(np.int32)
        columns = Columns(contexts, 0, 0, 0.001, stream(1, Purpose.NEGATIVE, 0))
        own, device, runs = self._rows[:words], find_device("cpu"), []
        trained, fixed = {INPUT: [own, own * 0, own * 0]}, {OUTPUT: [self._rows]}
        for _ in range(4):
            began = time.process_time()
            part = device.row_trainer(self._objective, self._params, self._prepared, trained, fixed, 1)
            ready = time.process_time()
            part.train(INPUT, columns)
            done = time.process_time()
            part.take(INPUT)
            runs.append((time.process_time() - began - (done - ready), (done - ready) / COLUMNS))
        return Share(*(statistics.median(values) for values in zip(*runs[1:], strict=True)))


def speedups(
    n_words: int, d: int, shares: Mapping[int, Share], gather: int, constants: Constants
) -> dict[int, tuple[float, float]]:
    """Return how many times as fast as one worker others are: with bytes as Dask sends them, and as the link does."""
    alone, found = shares[1].column * gather, dict[int, tuple[float, float]]()
    for n in (n for n in shares if n > 1):
        sent, here = (n - 1) / n * n_words * d * 4.0, Hardware("", n, 1, 1, math.inf, LINK)
        rest = shares[n].copies + shares[n].column * gather + TASKS * n * constants.task
        slow, fast = (alone / (rest + sent * here.a_byte(send)) for send in (constants.send, 0.0))
        found[n] = slow, fast
    return found
