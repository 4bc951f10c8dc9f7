"""The work of strategy `averaging`: the memory of replicas, and the phases in which they train and are merged."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.features.settings import features_bytes
from daskw2v.objectives.registry import find_objective
from daskw2v.sampling.settings import NegativeSampling
from daskw2v.training.averaging.merge import FAN_IN
from daskw2v.training.averaging.pulling import FEW_POSITIONS, MAX_PULLED_SHARE
from daskw2v.training.averaging.round_schedule import count_level_merges, max_steps, round_sizes
from daskw2v.training.averaging.settings import Averaging
from daskw2v.training.loop.work import INT, LONG, Moment, Phase, Work
from daskw2v.training.sizes import Load, Text, Workers
from daskw2v.training.start.blocks import rows_per_block
from daskw2v.types import Float64Array

_CACHED = 12e6  # bytes of the most frequent words' rows of a table that caches have (at 133,000 and 1,000,000 words)
_HOPS = 4  # tasks one after the other between two steps: changes, their merge, merged rows, the next step


class AveragingWork(Work):
    """The memory and the phases of a run. Replicas share the threads of all workers; each stays on one worker."""

    def __init__(self, params: Params, resources: Resources, text: Text, workers: Workers) -> None:
        super().__init__(params, resources, text, workers)
        self.n_replicas = Averaging.of(params).replicas
        self.threads = task_threads([workers.threads] * workers.n, params, resources)
        self.notes = (*advice(params),)

    def train(self) -> Iterator[Moment]:
        """Yield the moment in which one replica trains, and the moment before the end of a round of several.

        Replicas that pull rows need less memory.
        """
        workers, n_words, trainer = self.workers, self.text.vocabulary, self.device.replica_trainer
        several = self.n_replicas > 1
        replicas = -(-self.n_replicas // workers.n)  # of a worker
        read = trainer.text_bytes(self.threads, self.text.words)
        kept = {
            "model": self.tables,
            **self.prepared,
            **features_bytes(self.params, n_words),
            "counts and thresholds": 2 * LONG * n_words,
            "open shards": self.open_shard_bytes(),
        }
        device = {
            "tables": (-(-replicas // workers.devices) if several else 1) * self.copies,
            "rows of the round before": self.copies,  # which the next round of one replica begins with
            **self.prepared,
            "text": trainer.device_text_bytes(self.threads, self.text.words),
        }
        # Tables are copied out one after the other; rows that fill complete cache lines are returned without a copy
        copied = 0.0 if self.copies == self.tables else max(self.table_bytes.values())
        tables = {"tables of replicas": self.copies, "rows taken out of them": copied}
        yield Moment({**kept, **tables, "text": read}, device)
        if several:
            # Replicas stay on their workers until a round ends, and so do all merged rows that they got. Merged rows
            # replace the changes that were merged, except for a few blocks; changes have half the bytes
            steps = max_steps(self.params, self.text.words, n_words)
            merged = sum(rows * times for rows, times in count_level_merges(self.params, n_words, steps)) / n_words
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

        text, train: `replica.train_replica`. Where rows are pulled, `pulling.find_reached_rows` reads the text once
        more. Rows of rare words are in no cache (`far_share`).
        copies: `replica.Replica` copies both tables, or the rows that were pulled, at the start of a round; then its
        changes, and the merged rows.
        handling: `merge.submit_merge`, each block by one thread of a worker, frequent rows in each step; also tasks.
        travel: the changes of each block go from all replicas but one to the worker that merges it, in half the bytes;
        merged rows go back. Dask trains several replicas where the blocks are, and sends less, if it expects sending to
        cost more than waiting: where tables are large against a round's text. Of a replica that pulls rows, only these
        rows are sent.
        waiting: between two steps, for the tasks that merge.
        tasks: the tasks of `AveragingRun.play`, in one scheduler.
        """
        n, several, load, d = self.n_replicas, self.n_replicas > 1, self.load, self.params.vector_size
        sizes, block = round_sizes(self.params, self.text.words, load.types), rows_per_block(d)
        rounds, steps = self.params.epochs * sizes.rounds, sizes.steps
        merging = count_level_merges(self.params, load.types, steps if several else 1)
        # In the steps of a round: times that all rows are
        merged = sum(rows * times for rows, times in merging) / load.types
        merges = sum(2 * math.ceil(rows / block) * (1 + times) for rows, times in merging)  # of blocks in a round
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


def advice(params: Params) -> Iterator[str]:
    """Yield advice to the user before a run: it has more replicas than were measured to keep quality."""
    objective, n = find_objective(params.objective.name), Averaging.of(params).replicas
    if n > objective.max_replicas:
        most = objective.max_replicas
        yield f"n_replicas={n} may lose quality: {most} at most of {objective.name} were measured to keep it"


def task_threads(threads: Sequence[int], params: Params, resources: Resources) -> int:
    """Return the number of threads of a training task, which stays on one worker, from the threads of each worker."""
    largest = max(threads, default=1)
    max_threads = min(resources.threads or largest, largest)
    return max(1, min(max_threads, sum(threads) // Averaging.of(params).replicas))


def pulled_share(load: Load, words: float, block_rows: int) -> float:
    """Return the expected share of all rows that a replica pulls in a round; 1 where its text is too long to pull.

    It is computed for the default window and negatives, each drawn for a window.

    Parameters
    ----------
    load
        The words and pairs of the text.
    words
        Words that the replica reads in the round.
    block_rows
        Rows of a block.
    """
    if words >= FEW_POSITIONS * load.types:
        return 1.0
    windows = words * load.pairs / load.words / (Params.window + 1)  # words that subsampling keeps
    targets = load.shares + NegativeSampling.negative * load.noise
    pulled = 0.0
    for expected in (windows * load.shares, windows * targets):
        reached = -np.expm1(-expected)
        for start in range(0, len(load.top), block_rows):
            pulled += _count_pulled(reached[start : min(start + block_rows, len(load.top))])
        pulled += load.rare * _count_pulled(reached[-1:])
    return float(pulled / (2 * load.types))


def _count_pulled(probabilities: Float64Array) -> float:
    """Return the expected rows of a block that a replica gets, from the probability that it reaches each row."""
    return len(probabilities) if probabilities.mean() > MAX_PULLED_SHARE else float(probabilities.sum())


def far_share(load: Load, d: int) -> float:
    """Return the share of training's row accesses that no cache serves, for rows of `d` values."""
    rows, top = int(_CACHED / (4 * d)), len(load.top)
    rare = max(0, min(load.rare, rows - top))
    cached = sum(float(shares[:-1][:rows].sum() + rare * shares[-1]) for shares in (load.shares, load.noise))
    return max(0.0, 1 - cached / 2)


def candidate_settings(params: Params, text: Text, workers: Workers) -> Iterator[Mapping[str, Any]]:
    """Yield settings for "auto" to compare: one replica, powers of two, and one for each worker or `max_replicas`."""
    largest = min(workers.n, find_objective(params.objective.name).max_replicas)
    yield {"n_replicas": 1}
    yield from ({"n_replicas": n} for n in sorted({largest, *(2**i for i in range(1, largest.bit_length()))} - {1}))
