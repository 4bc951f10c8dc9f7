"""Weights of words as negatives, and the counts of words by partition.

`partition_counts` stores the counts of words by partition, so that a worker reads only the counts of its partition:

    <i>/<attempt>   a group of consecutive partitions: `counts_<k>` (rows of partition k,) int64

A task reads all counts in pieces and keeps the counts of its partitions, so the complete vocabulary is never in memory.
"""

from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
from distributed import Client

from daskw2v.cluster.tasks import run_tasks
from daskw2v.sampling.segments import cut_range
from daskw2v.store.arrays import read_array, write_array
from daskw2v.store.limits import typed
from daskw2v.store.stage import OpenStage, groups_exist, new_attempt
from daskw2v.store.storage import MANIFEST, Store
from daskw2v.types import Float64Array, Int64Array
from daskw2v.vocabulary.count import StoredVocabulary
from daskw2v.vocabulary.partition import Partitions

NS_EXPONENT = 0.75  # where Params leave it open, as word2vec.c
TASK_WORDS = 1 << 22  # words in the partitions of one task, about, and words read at once: 32 MB each


def word_weights(counts: Int64Array | Float64Array, exponent: float | None) -> Float64Array:
    """Return the sampling weights of words as negatives: counts ** exponent, shape of `counts`.

    The exponent None is NS_EXPONENT.
    """
    return np.asarray(counts.astype(np.float64) ** (NS_EXPONENT if exponent is None else exponent))


@dataclass(frozen=True)
class PartitionCounts:
    """The stored counts of partitions.

    Parameters
    ----------
    folder
        The folder of the counts.
    group
        Number of consecutive partitions in a group, at most.
    attempts
        Name of the valid attempt of each group.
    weights
        Sum of the `word_weights` of each partition.
    """

    folder: Store
    group: int
    attempts: tuple[str, ...]
    weights: tuple[float, ...]

    @property
    def groups(self) -> list[str]:
        """Paths of the Zarr groups of the counts, below `folder`."""
        return [f"{number}/{attempt}" for number, attempt in enumerate(self.attempts)]

    def read(self, partition: int) -> Int64Array:
        """Read the counts of a partition's words, in order of its rows, shape (rows,) int64.

        Raises
        ------
        StoreError
            If the counts are missing.
        """
        group = self.folder / self.groups[partition // self.group]
        return read_array(group.open_group(), f"counts_{partition}")


def partition_counts(
    client: Client, vocabulary: StoredVocabulary, partitions: Partitions, exponent: float | None, folder: Store
) -> PartitionCounts:
    """Write the counts of a vocabulary by partition on the cluster, or return them if they are stored already.

    Parameters
    ----------
    client
        The cluster to run on.
    vocabulary, partitions
        The words and their partitions.
    exponent
        Exponent of the `word_weights`.
    folder
        Folder to write to, of this vocabulary, number of partitions and exponent alone.
    """
    stored = read_partition_counts(folder)
    if stored is not None:
        return stored
    group = min(partitions.n, max(1, TASK_WORDS // partitions.size(0)))
    ranges = cut_range(0, partitions.n, group)
    jobs = [(vocabulary, partitions, exponent, folder / str(i), *part) for i, part in enumerate(ranges)]
    stage = OpenStage(folder, partial(run_tasks, client))  # the run holds the lease
    attempts, weights = zip(*stage.map("weights", _write_counts, jobs), strict=True)
    counts = PartitionCounts(folder, group, attempts, tuple(chain.from_iterable(weights)))
    manifest = {name: value for name, value in vars(counts).items() if name != "folder"}
    stage.finish(manifest, counts.groups)
    return counts


def read_partition_counts(folder: Store) -> PartitionCounts | None:
    """Return the stored counts of partitions in a folder; None if they are not complete."""
    manifest: dict[str, Any] | None = folder.read_manifest()
    if manifest is None:
        return None
    del manifest["format_version"]
    counts = typed(PartitionCounts, manifest, f"{folder.url}/{MANIFEST}", folder=folder)
    return counts if groups_exist(folder, counts.groups) else None


def _write_counts(
    vocabulary: StoredVocabulary, partitions: Partitions, exponent: float | None, folder: Store, first: int, last: int
) -> tuple[str, list[float]]:
    """Task: write the counts of the partitions first..last-1, a group, to an attempt in `folder`.

    Returns
    -------
    tuple
        Name of the attempt, and the weight of each partition.
    """
    n, rows = partitions.n, max(1, TASK_WORDS // partitions.n)
    parts: dict[int, list[Int64Array]] = {k: [] for k in range(first, last)}
    for start in range(0, partitions.size(first) + 1, rows):
        counts = vocabulary.read_counts(start * n, min((start + rows) * n, partitions.n_words))
        for k, part in parts.items():
            part.append(counts[partitions.words(k, start, start + rows) - start * n])
    attempt, weights = new_attempt(), []
    group = (folder / attempt).create_group()
    for k, part in parts.items():
        counts = np.concatenate(part)
        write_array(group, f"counts_{k}", counts)
        weights.append(float(word_weights(counts, exponent).sum()))
    return attempt, weights
