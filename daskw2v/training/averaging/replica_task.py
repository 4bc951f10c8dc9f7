"""The task that trains: one replica's work of one step, a pure function of the model's blocks and the text."""

from collections.abc import Container, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

from daskw2v.cluster import this_worker
from daskw2v.cluster.shared_memory import share
from daskw2v.kernels import buffers
from daskw2v.objectives.base import is_finite
from daskw2v.objectives.registry import find_objective
from daskw2v.sampling.run import Run
from daskw2v.training.averaging.deltas import Delta, delta_of
from daskw2v.training.averaging.pulling import Reached, pulled
from daskw2v.training.averaging.replica_text import loads_of
from daskw2v.training.averaging.round_schedule import ReplicaWork
from daskw2v.training.blocks import TableBlock
from daskw2v.training.devices import Threads, find_device, gpu_memory_watched
from daskw2v.training.prepared import prepared_of
from daskw2v.training.totals import TaskClock, TaskTotals
from daskw2v.types import Float32Array, Float64Array


class Trained(NamedTuple):
    """What a replica's task returns.

    Parameters
    ----------
    changes
        What it changed in each block; None of a block that it keeps.
    kept
        The rows of each block that it keeps, shape (rows, D) or (rows, padded(D)) float32; None of the others.
    totals
        What was done.
    """

    changes: list[Delta | None]
    kept: list[Float32Array | None]
    totals: TaskTotals


@gpu_memory_watched()
def train_replica(
    run: Run,
    threads: Threads,
    work: ReplicaWork,
    blocks: Sequence[TableBlock],
    keeps: Container[TableBlock],
    alone: bool,
    kept: Sequence[Float32Array | None] | None,
    reached: Reached | None,
    *rows: Float32Array | None,
) -> Trained:
    """Task: train one replica from the model given by its blocks; return what it changed, what it keeps, and totals.

    Parameters
    ----------
    run, threads, work
        What is trained, and how.
    blocks, rows
        The model's blocks, and their rows, or those that it reaches; None of a block that it kept and keeps on.
    keeps
        The blocks whose rows it keeps as it trains them; of the others it returns changes.
    alone
        Whether there are no other replicas: then what it keeps are the rows of the model, cut to D columns.
    kept
        What it kept in the step before; None in the first step of a round.
    reached
        Which rows it reaches; None where it is given all.
    """
    clock = TaskClock()
    params, objective = run.params, find_objective(run.params.objective)
    own = [None] * len(rows) if kept is None else kept
    start = [base if mine is None else mine for base, mine in zip(rows, own, strict=True)]
    given = start if reached is None else pulled(reached, blocks, start)
    tables: dict[str, list[Any]] = {}
    numbers: dict[str, list[int]] = {}
    for number, (block, part) in enumerate(zip(blocks, given, strict=True)):
        tables.setdefault(block.table, []).append(part)
        numbers.setdefault(block.table, []).append(number)
    of_device, words = find_device(run.device).replica_trainer, list[int]()
    replica = of_device(objective, params, prepared_of(run), partial(_touched, run), tables, threads)
    pairs, loss = replica.train(loads_of(run, work, of_device.positions, words))

    def take(table: str, place: int, trained: Float32Array) -> tuple[Delta | None, Float32Array | None, bool]:
        number = numbers[table][place]
        if alone:
            part = buffers.here.table((len(trained), params.vector_size))
            part[:] = trained[:, : params.vector_size]
            return None, share(part), is_finite(part)
        if blocks[number] in keeps:
            return None, share(trained), True  # looked at when it returns the changes
        base = rows[number]
        assert base is not None  # what changes are counted from
        bits, finite = delta_of(base, trained)
        return Delta(share(bits), None if reached is None else reached.of(number)), None, finite

    taken = [part for parts in replica.take_by(take).values() for part in parts]
    changes, keeping, finite = (list(column) for column in zip(*taken, strict=True))
    return Trained(changes, keeping, TaskTotals(pairs, loss, all(finite), sum(words), this_worker(), *clock.read()))


@lru_cache(maxsize=2)
def _touched(run: Run) -> dict[str, Float64Array]:
    """Return how likely a window touches each row. Only a cache, as `prepared_of` is."""
    touched = find_objective(run.params.objective).touched
    assert touched is not None  # all objectives have it that train windows
    return touched(prepared_of(run), run.vocabulary.read_counts())
