"""The cost of replicas: seconds and memory of training."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from daskw2v.config.params import Params
from daskw2v.sampling.settings import NegativeSampling
from daskw2v.training.averaging.merge import FAN_IN
from daskw2v.training.averaging.pulling import FEW, MOST
from daskw2v.training.averaging.round_schedule import given_rows, round_sizes
from daskw2v.training.averaging.settings import Averaging
from daskw2v.training.sizes.forecast import RAW_WORD, Constants, Forecast, Hardware, Load, shares_of
from daskw2v.training.sizes.memory import Workers
from daskw2v.training.start.blocks import rows_per_block
from daskw2v.types import Float64Array

_COPIED = 4  # bytes through memory for a byte of rows: copied in, and out after training
_MERGED = 3  # bytes through memory for a byte of a replica's rows, merged
_NEAR = 12e6  # bytes of a table's rows that caches have, of the most frequent words (measured: 133,000 and 1,000,000)
_TRIED = 64  # replicas that "auto" tries, at most: scores of more were not measured
_HOPS = 4  # tasks one after the other between two steps: a change, its merge, its rows, the next step


def averaging_cost(load: Load, params: Params, hardware: Hardware, c: Constants) -> Forecast:
    """Return the forecast of training with a replica on each node.

    Terms, and where they are in the code:

    text, train: `replica.train_replica`. Where rows are pulled, `pulling.reach` reads the text once more. Rows of
    rare words are in no cache (`far_share`).
    copies: `replica.Replica` copies both tables, or the rows that were pulled, at the start of a round; then its
    changes, and the merged rows: as fast as the threads of a replica copy, or as memory does.
    handling: `merge_tasks`, each block by one thread of a worker, frequent rows in each step; tasks in workers.
    travel: the changes of each block go from all replicas but one to the worker that merges it, in half the bytes; its
    rows go back; some worker has ceil(blocks / replicas) of them.
    Dask trains several replicas where the blocks are, and sends less, if it takes sending for dearer than waiting:
    where tables are large against a round's text. Of rows that are pulled, these alone go to a replica and back.
    waiting: between two steps, for the tasks that merge.
    tasks: those of `AveragingRun.play`, in one scheduler.
    memory: both tables, as the replica trains them and as they were before; half of them for its changes, and the rows
    that are merged; and the merged rows of a round.
    """
    n = hardware.nodes
    params = params.replace(n_replicas=n)
    sizes = round_sizes(params, int(load.words / params.epochs), load.types)
    rounds, steps, several = params.epochs * sizes.rounds, sizes.steps, n > 1
    merged, ending, within = _merges(load, params, steps if several else 1)
    everyone = hardware.busy(hardware.slots)
    share = pulled_share(load, load.words / (rounds * n), rows_per_block(load.d)) if several else 1.0
    few = share < 1
    far = far_share(load)
    pair = (1 - far) * c.window.at(load.d) + far * c.far.at(load.d)
    # A round merges all rows `merged` times in its steps, by bytes, and once at its end
    at_end = 1.5 * (n - 1) * share + (0 if few else 1 - 1 / n)
    sent = rounds * load.tables * (merged + 1) * at_end
    handled = rounds * load.tables * n * (merged + 1) if several else 0.0
    sums = math.ceil(n / (FAN_IN - 1)) if n > FAN_IN else 0
    copied = share * (merged + 1 + several / 2) * rounds * n / hardware.busy(n)
    threads, bus = hardware.busy(hardware.slots) / hardware.busy(n), n * hardware.bus
    merges = ending + within
    tasks = steps * 3 * n + (n if few else 0) + merges * ((2 if few else 1) * n + sums + 3)
    text, train = (2 if few else 1) * load.words * c.read / everyone, load.pairs * pair / everyone
    train *= c.crowded if everyone > 1 else 1.0
    largest = 2 * math.ceil(load.types / rows_per_block(load.d))  # blocks
    seconds = {
        "text": text,
        "store": load.words * RAW_WORD / (n * hardware.storage),
        "train": train,
        "copies": copied * load.tables * max(c.copy / threads, _COPIED / hardware.bus),
        "handling": max(
            handled * c.merge.at(load.d) / hardware.busy(min(largest, hardware.slots)), _MERGED * handled / bus
        )
        + rounds * tasks * c.result / hardware.busy(n),
        "travel": sent * math.ceil(largest / n) / largest * hardware.a_byte(c.send),
        "waiting": rounds * (steps + 1) * _HOPS * c.hop if several else 0.0,
        "tasks": rounds * tasks * c.task,
    }
    held = 3.5 + merged if several else 2.0
    return Forecast(seconds, sent, held * load.tables, load.tables)


def _merges(load: Load, params: Params, steps: int) -> tuple[float, int, int]:
    """Return how often all rows are merged before a round's end, by bytes; and blocks merged then, and before."""
    found, step = given_rows(params, load.types, steps), rows_per_block(load.d)
    blocks = [2 * math.ceil(rows / step) for rows, _ in found]
    merged = sum(rows * times for rows, times in found) / load.types
    return merged, sum(blocks), sum(n * times for n, (_, times) in zip(blocks, found, strict=True))


def pulled_share(load: Load, words: float, step: int) -> float:
    """Return the share of rows that a replica takes in a round of so many words, of blocks of `step` rows.

    With the default window and negatives, each drawn for a window.
    """
    if words >= FEW * load.types:
        return 1.0
    windows = words * load.pairs / load.words / (Params.window + 1)  # words that subsampling leaves
    rest, shares, noise = shares_of(load)
    targets = shares + NegativeSampling.negative * noise
    taken = 0.0
    for expected in (windows * shares, windows * targets):
        reached = -np.expm1(-expected)
        for start in range(0, len(load.top), step):
            taken += _taken(reached[start : min(start + step, len(load.top))])
        taken += rest * _taken(reached[-1:])
    return float(taken / (2 * load.types))


def far_share(load: Load) -> float:
    """Return the share of the rows that training reads which are in no cache."""
    rest, shares, noise = shares_of(load)
    rows = int(_NEAR / (4 * load.d))
    near = [float(of[:-1][:rows].sum() + max(0, min(rest, rows - len(of) + 1)) * of[-1]) for of in (shares, noise)]
    return max(0.0, 1 - sum(near) / 2)


def _taken(reached: Float64Array) -> float:
    """Return the number of rows of a block that a replica takes, by how likely it reaches each."""
    return len(reached) if reached.mean() > MOST else float(reached.sum())


def run_cost(params: Params, load: Load, hardware: Hardware, constants: Constants) -> Forecast:
    """Return the forecast of training; replicas share the threads, and a replica stays on one worker."""
    n = Averaging.of(params).n_replicas
    threads = max(1, min(hardware.threads, hardware.slots // n))
    replicas = replace(
        hardware, nodes=n, threads=threads, processes=1, cores=min(hardware.cores, n * threads, hardware.slots)
    )
    return averaging_cost(load, params, replicas, constants)


def tried(params: Params, words: int, workers: Workers) -> Iterator[Mapping[str, Any]]:
    """Yield one replica, and powers of two and one for each worker, up to a number whose quality is known."""
    most = min(workers.n, _TRIED)
    yield {}
    yield from ({"n_replicas": n} for n in sorted({most, *(2**i for i in range(1, most.bit_length()))} - {1}))
