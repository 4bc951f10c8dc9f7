"""The task that trains: one replica's work of one round, a pure function of the model's blocks and the text."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from daskw2v.cluster import this_worker
from daskw2v.cluster.shared_memory import share
from daskw2v.config.params import Params
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.objectives.base import Rate, is_finite
from daskw2v.objectives.registry import find_objective
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import cut
from daskw2v.sampling.text import RunText, open_text
from daskw2v.training.averaging.deltas import delta_of
from daskw2v.training.averaging.round_schedule import ReplicaWork
from daskw2v.training.blocks import TableBlock
from daskw2v.training.devices import TextPiece, Threads, find_device, gpu_memory_watched
from daskw2v.training.prepared import prepared_of
from daskw2v.training.totals import TaskClock, TaskTotals
from daskw2v.types import Float32Array, Float64Array


class Trained(NamedTuple):
    """What a replica's task returns: its blocks, in the order in which they were given, and what was done."""

    blocks: list[Any]
    totals: TaskTotals


@gpu_memory_watched()
def train_replica(
    run: Run, threads: Threads, work: ReplicaWork, alone: bool, blocks: Sequence[TableBlock], *rows: Float32Array
) -> Trained:
    """Task: train one replica from the model given by its blocks; return its blocks, and what was done.

    A block is rows where the replica is alone, and else their difference from the model's, as `deltas.delta_of`
    makes it.
    """
    clock = TaskClock()
    params, objective = run.params, find_objective(run.params.objective)
    text = open_text(run)
    tables: dict[str, list[Float32Array]] = {}
    for block, part in zip(blocks, rows, strict=True):
        tables.setdefault(block.table, []).append(part)
    of_device, words = find_device(run.device).replica_trainer, list[int]()
    replica = of_device(objective, params, prepared_of(run), partial(_touched, run), tables, threads)
    pairs, loss = replica.train(_loads(params, text, work, of_device.positions, words))
    if alone:
        trained: tuple[Any, ...] = tuple(part for parts in replica.take().values() for part in parts)
        finite = all(map(is_finite, trained))
    else:
        taken = replica.take_by(lambda table, number, rows: delta_of(tables[table][number], rows))
        trained, known = zip(*(part for parts in taken.values() for part in parts), strict=True)
        finite = all(known)
    done = TaskTotals(pairs, loss, finite, sum(words), this_worker(), *clock.read())
    return Trained([share(part) for part in trained], done)


@lru_cache(maxsize=2)
def _touched(run: Run) -> dict[str, Float64Array]:
    """Return how likely a window touches each row. Only a cache, as `prepared_of` is."""
    touched = find_objective(run.params.objective).touched
    assert touched is not None  # all objectives have it that train windows
    return touched(prepared_of(run), run.vocabulary.read_counts())


def _loads(
    params: Params, text: RunText, work: ReplicaWork, length: int, words: list[int]
) -> Iterator[Callable[[], TextPiece]]:
    """Yield what loads each piece of the work, of some length, in order; loading one appends its corpus words."""
    for epoch, start, stop, rate in work.pieces(text.length):
        key = stream(params.seed, Purpose.SUBSAMPLE, epoch)
        for a, b in cut(start, stop, length):

            def load(a: int = a, b: int = b, key: np.uint64 = key, rate: Rate = rate, epoch: int = epoch) -> TextPiece:
                segment, known = text.reader.read(a, b, params.window, text.keep, key)
                words.append(known)
                return TextPiece(segment, *segment.centers(a, b), rate, epoch)

            yield load
