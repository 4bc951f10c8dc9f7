"""The work of replicas: their memory, and the phases in which they train, exchange changes and merge."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.features.settings import features_bytes
from daskw2v.sampling.settings import NegativeSampling
from daskw2v.training.averaging.merge import FAN_IN
from daskw2v.training.averaging.pulling import FEW, MOST
from daskw2v.training.averaging.round_schedule import given_rows, most_steps, round_sizes
from daskw2v.training.averaging.settings import Averaging
from daskw2v.training.loop.work import INT, LONG, Moment, Phase, Work
from daskw2v.training.sizes.text import Load, Text
from daskw2v.training.sizes.workers import Workers
from daskw2v.training.start.blocks import rows_per_block
from daskw2v.types import Float64Array

_NEAR = 12e6  # bytes of the most frequent words' rows of a table that caches have (at 133,000 and 1,000,000 words)
_TRIED = 64  # replicas that "auto" tries, at most: scores of more were not measured
_HOPS = 4  # tasks one after the other between two steps: a change, its merge, its rows, the next step


class AveragingWork(Work):
    """The work of a run. Replicas share the threads of the workers, and a replica stays on one worker."""

    def __init__(self, params: Params, resources: Resources, text: Text, workers: Workers) -> None:
        super().__init__(params, resources, text, workers)
        self.n = Averaging.of(params).n_replicas
        self.threads = task_threads([workers.threads] * workers.n, params, resources)

    def train(self) -> Iterator[Moment]:
        """Yield the training of one replica, and a round of several.

        Replicas that pull rows have less.
        """
        workers, n_words, trainer, several = self.workers, self.text.vocabulary, self.device.replica_trainer, self.n > 1
        replicas = -(-self.n // workers.n)  # of a worker
        read = trainer.text_bytes(self.threads, self.text.words)
        kept = {
            "model": self.tables,
            **self.prepared,
            **features_bytes(self.params, n_words),
            "counts and thresholds": 2 * LONG * n_words,
            "open shards": self.open_shards(),
        }
        device = {
            "tables": (-(-replicas // workers.devices) if several else 1) * self.copies,
            "rows of the round before": self.copies,  # left there, for the next round of one replica to begin with
            **self.prepared,
            "text": trainer.device_text_bytes(self.threads, self.text.words),
        }
        # One table is taken out after the other; rows that fill whole cache lines are returned as they lie
        taken = 0.0 if self.copies == self.tables else max(self.table_bytes.values())
        yield Moment({**kept, "tables of replicas": self.copies, "rows taken out of them": taken, "text": read}, device)
        if several:
            # Replicas stay on their workers until a round ends, and so do all merged rows that they took. Merged rows
            # replace the changes that they came from, except for a few blocks; changes have half the bytes
            steps = most_steps(self.params, self.text.words, n_words)
            merged = sum(rows * times for rows, times in given_rows(self.params, n_words, steps)) / n_words
            round_of_several = {
                "tables of replicas": replicas * self.copies,
                "changes of replicas": replicas * self.tables / 2,
                "rows given in a round": merged * self.tables,
                "blocks that are merged": self.tables / workers.n / 2,
                "text": min(self.tasks, replicas) * read,
            }
            yield Moment({**kept, **round_of_several}, device)

    def phases(self) -> Iterator[Phase]:
        """Yield the phases of training.

        text, train: `replica.train_replica`. Where rows are pulled, `pulling.reach` reads the text once more. Rows of
        rare words are in no cache (`far_share`).
        copies: `replica.Replica` copies both tables, or the rows that were pulled, at the start of a round; then its
        changes, and the merged rows.
        handling: `merge_tasks`, each block by one thread of a worker, frequent rows in each step; tasks in workers.
        travel: the changes of each block go from all replicas but one to the worker that merges it, in half the bytes;
        its rows go back. Dask trains several replicas where the blocks are, and sends less, if it takes sending for
        dearer than waiting: where tables are large against a round's text. Of rows that are pulled, these alone go to a
        replica and back.
        waiting: between two steps, for the tasks that merge.
        tasks: those of `AveragingRun.play`, in one scheduler.
        """
        n, several, load, d = self.n, self.n > 1, self.load, self.params.vector_size
        sizes, block = round_sizes(self.params, self.text.words, load.types), rows_per_block(d)
        rounds, steps = self.params.epochs * sizes.rounds, sizes.steps
        merging = given_rows(self.params, load.types, steps if several else 1)
        merged = sum(rows * times for rows, times in merging) / load.types  # times that all rows are, before the end
        merges = sum(2 * math.ceil(rows / block) * (1 + times) for rows, times in merging)  # of blocks, in a round
        share = pulled_share(load, load.words / (rounds * n), block) if several else 1.0
        reads, far, all_threads = (2 if share < 1 else 1), far_share(load, d), n * self.threads
        yield Phase("text", {"read": reads * load.words}, all_threads)
        yield Phase("store", stored=INT * load.words, workers=n)
        yield Phase("train", {"window": (1 - far) * load.pairs, "far": far * load.pairs}, all_threads)
        copied = share * (merged + 1 + several / 2) * rounds * n * self.tables
        yield Phase("copies", {"copy": copied}, all_threads)
        blocks = 2 * math.ceil(load.types / block)
        handled = rounds * self.tables * n * (merged + 1) if several else 0.0
        yield Phase("handling", {"merge": handled}, min(blocks, all_threads))
        sums = math.ceil(n / (FAN_IN - 1)) if n > FAN_IN else 0
        tasks = rounds * (steps * 3 * n + (reads - 1) * n + merges * (reads * n + sums + 3))
        yield Phase("handling", {"result": tasks}, n)
        # A round merges all rows `merged` times in its steps, by bytes, and once at its end
        sent = rounds * self.tables * (merged + 1) * (1.5 * (n - 1) * share + (0 if share < 1 else 1 - 1 / n))
        yield Phase("travel", sent=sent, workers=n, slowest=math.ceil(blocks / n) * n / blocks)
        yield Phase("waiting", {"hop": rounds * (steps + 1) * _HOPS if several else 0})
        yield Phase("tasks", {"task": tasks})


def task_threads(threads: Sequence[int], params: Params, resources: Resources) -> int:
    """Return the threads of a training task: replicas share the workers', and a task stays on one worker."""
    largest = max(threads, default=1)
    most = min(resources.threads or largest, largest)
    return max(1, min(most, sum(threads) // Averaging.of(params).n_replicas))


def pulled_share(load: Load, words: float, step: int) -> float:
    """Return the share of rows that a replica takes in a round of so many words, of blocks of `step` rows.

    With the default window and negatives, each drawn for a window.
    """
    if words >= FEW * load.types:
        return 1.0
    windows = words * load.pairs / load.words / (Params.window + 1)  # words that subsampling leaves
    targets = load.shares + NegativeSampling.negative * load.noise
    taken = 0.0
    for expected in (windows * load.shares, windows * targets):
        reached = -np.expm1(-expected)
        for start in range(0, len(load.top), step):
            taken += _taken(reached[start : min(start + step, len(load.top))])
        taken += load.rare * _taken(reached[-1:])
    return float(taken / (2 * load.types))


def _taken(reached: Float64Array) -> float:
    """Return the number of rows of a block that a replica takes, by how likely it reaches each."""
    return len(reached) if reached.mean() > MOST else float(reached.sum())


def far_share(load: Load, d: int) -> float:
    """Return the share of the rows that training reads which are in no cache."""
    rows, top = int(_NEAR / (4 * d)), len(load.top)
    rare = max(0, min(load.rare, rows - top))
    near = sum(float(shares[:-1][:rows].sum() + rare * shares[-1]) for shares in (load.shares, load.noise))
    return max(0.0, 1 - near / 2)


def tried(params: Params, words: int, workers: Workers) -> Iterator[Mapping[str, Any]]:
    """Yield one replica, and powers of two and one for each worker, up to a number whose quality is known."""
    most = min(workers.n, _TRIED)
    yield {}
    yield from ({"n_replicas": n} for n in sorted({most, *(2**i for i in range(1, most.bit_length()))} - {1}))
