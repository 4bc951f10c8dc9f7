"""Copies of the most frequent words: each partition has one, which its buckets train, and their mean follows a pass.

A word's pairs are trained one after the other. If one partition had all pairs of the most frequent word, hundreds of
workers would wait for that partition. So each occurrence of such a word is in a partition that is drawn
(`sampling.pairs`). After a pass, each copy becomes the mean of all. The word's own row, which is read where a model is
written or measured, is that mean, too.

The sums are added group by group of partitions, in their order, so that the mean has the same bits on any cluster.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from daskw2v.cluster.shared_memory import share
from daskw2v.store.stage import new_attempt
from daskw2v.store.storage import Store
from daskw2v.training.rotation.bucket_task import (
    OutputPartition,
    PartitionMap,
    PartitionRows,
    RotationContext,
    write_rows,
)
from daskw2v.types import Float32Array, Float64Array


def sum_copies(context: RotationContext, table: str, held: PartitionMap) -> dict[int, Float64Array]:
    """Task: return the sum of the copies in each group of partitions that a map holds, shape (copies, D) float64."""
    sums = dict[int, Float64Array]()
    for k in sorted(held):
        group, rows = k // context.group_size, context.copies(table, k, held[k])
        sums[group] = sums[group] + rows if group in sums else rows.astype(np.float64)
    return sums


def average_copies(context: RotationContext, sums: Sequence[Mapping[int, Float64Array]]) -> Float32Array:
    """Task: return the mean of all copies, shape (copies, D), from the results of `sum_copies`, each group in one."""
    by_group = {group: rows for part in sums for group, rows in part.items()}
    total = np.sum([by_group[k] for k in sorted(by_group)], axis=0)
    return np.asarray(total / context.partitions.n, np.float32)


def set_copies(
    context: RotationContext, table: str, held: PartitionMap, mean: Float32Array, folder: Store | None = None
) -> dict[int, PartitionRows]:
    """Task: return the partitions of a map in which each copy, and each copied word's own row, is the mean.

    With `folder`, the rows are written as files, as by `bucket_task.train_buckets`.
    """
    changed, attempt = dict[int, PartitionRows](), new_attempt()
    for k, before in held.items():
        rows = np.array(context.rows_as_held(table, k, before), order="C")
        own = context.partitions.words(k, 0, context.partitions.size(k, len(mean)))
        rows[: len(mean), : mean.shape[1]] = mean
        rows[len(mean) : len(mean) + len(own), : mean.shape[1]] = mean[own]
        if folder is not None:
            changed[k] = write_rows(folder, table, k, rows[:, : mean.shape[1]], attempt)
        elif isinstance(before, OutputPartition):
            changed[k] = OutputPartition(share(rows), before.words)
        else:
            changed[k] = share(rows)
    return changed
