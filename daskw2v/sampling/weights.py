"""What a partition's owner must know of its words, kept apart for each: their counts.

    <i>/<attempt>   a group of consecutive partitions: `counts_<k>` (rows of partition k,) int64

The whole vocabulary is never in memory: a task goes through all counts, and keeps those of its partitions.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from distributed import Client

from daskw2v.sampling.hierarchy import word_weights
from daskw2v.shards.layout import groups_exist
from daskw2v.shards.tasks import new_attempt, run_tasks
from daskw2v.storage import Store, read_array, write_array
from daskw2v.vocabulary.count import StoredVocabulary
from daskw2v.vocabulary.partition import Partitions

_WORDS = 1 << 22  # of partitions that one task keeps, about, and of all words that it reads at once: 32 MB each

Counts = npt.NDArray[np.int64]


@dataclass(frozen=True)
class PartitionCounts:
    """The counts of partitions on disk.

    Parameters
    ----------
    home
        Where they lie.
    group
        Partitions in a group.
    attempts
        The attempt that counts of each group.
    weights
        Sum of the `word_weights` of each partition.
    """

    home: Store
    group: int
    attempts: tuple[str, ...]
    weights: tuple[float, ...]

    def read(self, partition: int) -> Counts:
        """Read the counts of a partition's words, in order of its rows.

        Raises
        ------
        StoreError
            If they are gone.
        """
        number = partition // self.group
        return read_array((self.home / f"{number}/{self.attempts[number]}").open_group(), f"counts_{partition}")


def partition_counts(
    client: Client, vocabulary: StoredVocabulary, partitions: Partitions, exponent: float, home: Store
) -> PartitionCounts:
    """Deal the counts of a vocabulary to its partitions on the cluster; those at home already are returned.

    Parameters
    ----------
    client
        Where to run.
    vocabulary, partitions
        The words, and how they are spread.
    exponent
        Of the `word_weights`.
    home
        Where to write; belongs to this vocabulary, number of partitions and exponent.
    """
    known = _read_manifest(home)
    if known is not None:
        return known
    group = min(partitions.n, max(1, _WORDS // partitions.size(0)))
    starts = range(0, partitions.n, group)
    jobs = {
        number: (vocabulary, partitions, exponent, home / str(number), start, min(start + group, partitions.n))
        for number, start in enumerate(starts)
    }
    found = dict(run_tasks(client, "weights", _deal_counts, jobs))
    results = [found[number] for number in range(len(starts))]
    weights = [weight for _, part in results for weight in part]
    names = [name for name, _ in results]
    home.write_manifest({"group": group, "attempts": names, "weights": weights})
    return PartitionCounts(home, group, tuple(names), tuple(weights))


def _read_manifest(home: Store) -> PartitionCounts | None:
    manifest: dict[str, Any] | None = home.read_manifest()
    if manifest is None:
        return None
    attempts = tuple(manifest["attempts"])
    if not groups_exist(home, [f"{number}/{name}" for number, name in enumerate(attempts)]):
        return None
    return PartitionCounts(home, manifest["group"], attempts, tuple(manifest["weights"]))


def _deal_counts(
    vocabulary: StoredVocabulary, partitions: Partitions, exponent: float, home: Store, first: int, last: int
) -> tuple[str, list[float]]:
    """Task: write the counts of the partitions first..last-1; return the attempt, and the weight of each."""
    n, rows = partitions.n, max(1, _WORDS // partitions.n)
    parts: list[list[Counts]] = [[] for _ in range(first, last)]
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
