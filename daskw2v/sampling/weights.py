"""Counts of words by partition, so that a worker reads only those of its partition.

    <i>/<attempt>   a group of consecutive partitions: `counts_<k>` (rows of partition k,) int64

A task reads all counts in pieces and keeps those of its partitions, so the whole vocabulary is never in memory.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from distributed import Client

from daskw2v.cluster.tasks import run_tasks
from daskw2v.sampling.hierarchy import word_weights
from daskw2v.store.arrays import read_array, write_array
from daskw2v.store.limits import typed
from daskw2v.store.stage import OpenStage, groups_exist, new_attempt
from daskw2v.store.storage import MANIFEST, Store
from daskw2v.types import Int64Array
from daskw2v.vocabulary.count import StoredVocabulary
from daskw2v.vocabulary.partition import Partitions

TASK_WORDS = 1 << 22  # words in the partitions of one task, about, and words read at once: 32 MB each


@dataclass(frozen=True)
class PartitionCounts:
    """The stored counts of partitions.

    Parameters
    ----------
    home
        Their folder.
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
    """Divide the counts of a vocabulary by partition on the cluster, or return them if that was done before.

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
