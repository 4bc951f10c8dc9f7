"""Negatives in two stages: first a partition, then a word of it (Stergiou et al. 2017, "Hierarchical Sampling").

Every worker has the alias table of the partitions' total weights, shape (p,). Only the worker that trains a partition
has the table of its words, shape (V/p,). Together they draw each word with the same probability as one table of all
words.

The rule decides which partition a negative is drawn from ("Distributed SGNS" there). `tns`: the partition of the
pair's target. `sns`: one random partition for all negatives of a pair. `bns`: a random partition for each negative.

`partition_counts` stores the counts of words by partition, so that a worker reads only those of its partition:

    <i>/<attempt>   a group of consecutive partitions: `counts_<k>` (rows of partition k,) int64

A task reads all counts in pieces and keeps those of its partitions, so the whole vocabulary is never in memory.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from distributed import Client

from daskw2v.cluster.tasks import run_tasks
from daskw2v.kernels.alias import alias_table, pick
from daskw2v.kernels.jit import inline
from daskw2v.kernels.rng import GOLDEN, mix
from daskw2v.store.arrays import read_array, write_array
from daskw2v.store.limits import typed
from daskw2v.store.stage import OpenStage, groups_exist, new_attempt
from daskw2v.store.storage import MANIFEST, Store
from daskw2v.types import Float64Array, Int64Array, UInt64Array
from daskw2v.vocabulary.count import StoredVocabulary
from daskw2v.vocabulary.partition import Partitions

TNS, SNS, BNS = range(3)
RULES = {"tns": TNS, "sns": SNS, "bns": BNS}
NS_EXPONENT = 0.75  # where Params leave it open, as word2vec.c
WORD = np.uint64(0xD1B54A32D192ED03)  # makes the draw of a word independent of that of its partition
TASK_WORDS = 1 << 22  # words in the partitions of one task, about, and words read at once: 32 MB each


def word_weights(counts: Int64Array | Float64Array, exponent: float | None) -> Float64Array:
    """Return the sampling weights of negatives: counts ** exponent, or NS_EXPONENT, shape of `counts`."""
    return np.asarray(counts.astype(np.float64) ** (NS_EXPONENT if exponent is None else exponent))


def word_table(counts: Int64Array | Float64Array, exponent: float | None) -> UInt64Array:
    """Return the alias table of words from their counts, shape of `counts`, uint64."""
    return alias_table(word_weights(counts, exponent))


def split_negatives(rule: int, negative: int) -> tuple[int, int]:
    """Return the number of negatives trained with a pair's center, and with each noise entry trained elsewhere."""
    return {TNS: (negative, 0), SNS: (0, negative), BNS: (0, 1)}[rule]


@inline
def partition_of(rule: Any, state: Any, k: Any, target: Any, partitions: Any) -> Any:
    """Return the partition that negative k (from 0) of a pair is drawn from.

    Parameters
    ----------
    rule
        TNS, SNS or BNS.
    state
        Initial state of the pair's draws, uint64.
    target
        Partition of the pair's target.
    partitions
        Alias table of the partitions.
    """
    number = np.uint64(k if rule == BNS else 0) + np.uint64(1)
    drawn = pick(partitions, mix(state + number * GOLDEN))
    return target if rule == TNS else drawn


@inline
def bits_of_negative(state: Any, k: Any) -> Any:
    """Return the 64 random bits of negative k (from 0) of a pair, whose draws start from `state`."""
    return mix(state + WORD + (np.uint64(k) + np.uint64(1)) * GOLDEN)


@inline
def row_of_negative(state: Any, k: Any, words: Any) -> Any:
    """Return the row of negative k (from 0) of a pair in its partition, by the `word_table` of the partition."""
    return pick(words, bits_of_negative(state, k))


@dataclass(frozen=True)
class PartitionCounts:
    """The stored counts of partitions.

    Parameters
    ----------
    home
        The folder of the counts.
    group
        Number of partitions in a group.
    attempts
        The valid attempt of each group.
    weights
        Sum of the `word_weights` of each partition.
    """

    home: Store
    group: int
    attempts: tuple[str, ...]
    weights: tuple[float, ...]

    def read(self, partition: int) -> Int64Array:
        """Read the counts of a partition's words, in order of its rows.

        Raises
        ------
        StoreError
            If they are missing.
        """
        number = partition // self.group
        return read_array((self.home / f"{number}/{self.attempts[number]}").open_group(), f"counts_{partition}")


def partition_counts(
    client: Client, vocabulary: StoredVocabulary, partitions: Partitions, exponent: float | None, home: Store
) -> PartitionCounts:
    """Divide the counts of a vocabulary by partition on the cluster, or return them if they are stored already.

    Parameters
    ----------
    client
        The cluster to run on.
    vocabulary, partitions
        The words and their partitions.
    exponent
        Exponent of the `word_weights`.
    home
        Folder to write to, for this vocabulary, number of partitions and exponent.
    """
    known = read_partition_counts(home)
    if known is not None:
        return known
    group = min(partitions.n, max(1, TASK_WORDS // partitions.size(0)))
    starts = range(0, partitions.n, group)
    jobs = [
        (vocabulary, partitions, exponent, home / str(number), start, min(start + group, partitions.n))
        for number, start in enumerate(starts)
    ]
    stage = OpenStage(home, partial(run_tasks, client))  # the run holds the lease
    results = stage.map("weights", _deal_counts, jobs)
    weights = [weight for _, part in results for weight in part]
    names = [name for name, _ in results]
    manifest = {"group": group, "attempts": names, "weights": weights}
    stage.finish(manifest, [f"{number}/{name}" for number, name in enumerate(names)])
    return PartitionCounts(home, group, tuple(names), tuple(weights))


def read_partition_counts(home: Store) -> PartitionCounts | None:
    """Return the counts in a folder, or None if they are not complete."""
    manifest: dict[str, Any] | None = home.read_manifest()
    if manifest is None:
        return None
    del manifest["format_version"]
    found = typed(PartitionCounts, manifest, f"{home.url}/{MANIFEST}", home=home)
    there = groups_exist(home, [f"{number}/{name}" for number, name in enumerate(found.attempts)])
    return found if there else None


def _deal_counts(
    vocabulary: StoredVocabulary, partitions: Partitions, exponent: float | None, home: Store, first: int, last: int
) -> tuple[str, list[float]]:
    """Task: write the counts of the partitions first..last-1; return the attempt and the weight of each partition."""
    n, rows = partitions.n, max(1, TASK_WORDS // partitions.n)
    parts: list[list[Int64Array]] = [[] for _ in range(first, last)]
    for start in range(0, partitions.size(first) + 1, rows):
        counts = vocabulary.read_counts(start * n, min((start + rows) * n, partitions.n_words))
        for part, k in zip(parts, range(first, last), strict=True):
            part.append(counts[partitions.words(k, start, start + rows) - start * n])
    attempt = new_attempt()
    group = (home / attempt).create_group()
    weights = []
    for part, k in zip(parts, range(first, last), strict=True):
        counts = np.concatenate(part)
        write_array(group, f"counts_{k}", counts)
        weights.append(float(word_weights(counts, exponent).sum()))
    return attempt, weights
