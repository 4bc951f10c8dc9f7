"""The task that trains: one replica's work of one round, a pure function of the model's blocks and the text."""

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from daskw2v.cluster import this_worker
from daskw2v.cluster.shared_memory import share
from daskw2v.objectives.base import is_finite
from daskw2v.objectives.registry import find_objective
from daskw2v.sampling.run import Run
from daskw2v.training.averaging.deltas import Delta, delta_of
from daskw2v.training.averaging.pulling import Reached, pulled
from daskw2v.training.averaging.replica_text import loads_of
from daskw2v.training.averaging.round_schedule import ReplicaWork
from daskw2v.training.blocks import TableBlock
from daskw2v.training.devices import SomeRows, Threads, find_device, gpu_memory_watched
from daskw2v.training.prepared import prepared_of
from daskw2v.training.totals import TaskClock, TaskTotals
from daskw2v.types import Float32Array, Float64Array


class Trained(NamedTuple):
    """What a replica's task returns: its blocks, in the order in which they were given, and what was done."""

    blocks: list[Any]
    totals: TaskTotals


@gpu_memory_watched()
def train_replica(
    run: Run,
    threads: Threads,
    work: ReplicaWork,
    alone: bool,
    blocks: Sequence[TableBlock],
    reached: Reached | None,
    *rows: Float32Array,
) -> Trained:
    """Task: train one replica from the model given by its blocks; return its blocks, and what was done.

    Parameters
    ----------
    run, threads, work
        What is trained, and how.
    alone
        Whether it returns its rows, shape of a block; else each block is a `Delta`.
    blocks, rows
        The model's blocks, and their rows; or those that it reaches.
    reached
        Which these are; None where it is given all.
    """
    clock = TaskClock()
    params, objective = run.params, find_objective(run.params.objective)
    given = list(rows) if reached is None else pulled(reached, blocks, rows)
    tables: dict[str, list[Float32Array | SomeRows]] = {}
    for block, part in zip(blocks, given, strict=True):
        tables.setdefault(block.table, []).append(part)
    of_device, words = find_device(run.device).replica_trainer, list[int]()
    replica = of_device(objective, params, prepared_of(run), partial(_touched, run), tables, threads)
    pairs, loss = replica.train(loads_of(run, work, of_device.positions, words))
    if alone:
        trained: tuple[Any, ...] = tuple(share(part) for parts in replica.take().values() for part in parts)
        finite = all(map(is_finite, trained))
    else:
        taken = replica.take_by(lambda table, number, rows: _changes(tables[table][number], rows))
        trained, known = zip(*(part for parts in taken.values() for part in parts), strict=True)
        finite = all(known)
    return Trained(list(trained), TaskTotals(pairs, loss, finite, sum(words), this_worker(), *clock.read()))


def _changes(base: Float32Array | SomeRows, trained: Float32Array) -> tuple[Delta, bool]:
    """Return what was changed in a block, and whether it is finite."""
    values, rows = (base.values, base.rows) if isinstance(base, SomeRows) else (base, None)
    bits, finite = delta_of(values, trained)
    return Delta(share(bits), rows), finite


@lru_cache(maxsize=2)
def _touched(run: Run) -> dict[str, Float64Array]:
    """Return how likely a window touches each row. Only a cache, as `prepared_of` is."""
    touched = find_objective(run.params.objective).touched
    assert touched is not None  # all objectives have it that train windows
    return touched(prepared_of(run), run.vocabulary.read_counts())
