"""The small tree of tasks that merges a block of the model."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from distributed import Client, Future

from daskw2v.cluster.shared_memory import share
from daskw2v.sampling.run import Run
from daskw2v.training.averaging.curvature import NO_CURVATURE, Curvature, kept_share, touches_per_window
from daskw2v.training.averaging.merge import (
    FAN_IN,
    Changes,
    Delta,
    MergeRule,
    SummedChanges,
    Training,
    add_changes,
    find_merge_rule,
    merge_block,
    project_delta,
)
from daskw2v.training.averaging.replica import ReplicaResult
from daskw2v.training.averaging.settings import Averaging
from daskw2v.training.start.blocks import TableBlock
from daskw2v.types import Float32Array

Curvatures: TypeAlias = Mapping[str, Curvature]  # of each table; empty for rules that do not need it


class BlockTraining(NamedTuple):
    """The training of a block since it was merged last, as each replica did it.

    Parameters
    ----------
    run, block
        The run, and the block.
    rate
        Sum of the learning rates over the positions that a replica trained.
    """

    run: Run
    block: TableBlock
    rate: float

    @property
    def rule(self) -> MergeRule:
        """The merge rule of the run's Params, by which the replicas' rows of this block become one."""
        return find_merge_rule(Averaging.of(self.run.params).merge)

    def row_training(self, curvatures: Curvatures) -> Training:
        """Return the training of each row of the block, from the curvature of each table."""
        if not curvatures:
            return Training()
        touched = touches_per_window(self.run)[self.block.table][self.block.start : self.block.stop]
        rates = (self.rate * kept_share(self.run) * touched).astype(np.float32)
        return Training(curvatures[self.block.table], rates)


def submit_merge(
    client: Client,
    training: BlockTraining,
    curvatures: Future | Curvatures,
    before: Future,
    number: int,
    trained: Sequence[Future],
    key: str,
) -> Future:
    """Submit the merging of a block; return the future of the merged rows.

    The shape of the tree of tasks depends on the number of replicas alone.

    Parameters
    ----------
    client
        The cluster.
    training
        The training of the block by each replica.
    curvatures
        `Curvatures`, or the future of it.
    before
        Future of the block's rows before the training.
    number
        Number of the block.
    trained
        Futures of `ReplicaResult`, of each replica.
    key
        Part of the tasks' keys.
    """
    parts = [
        client.submit(_project_changes, training, curvatures, replica, number, key=f"change-{replica.key}-{number}")
        for replica in trained
    ]
    level = 0
    while len(parts) > FAN_IN:
        groups = range(0, len(parts), FAN_IN)
        parts = [
            client.submit(_sum_changes, training, curvatures, *parts[i : i + FAN_IN], key=f"changes-{key}-{level}-{i}")
            for i in groups
        ]
        level += 1
    return client.submit(_merge_changes, training, curvatures, before, *parts, key=f"merge-{key}")


def _project_changes(training: BlockTraining, curvatures: Curvatures, trained: ReplicaResult, number: int) -> Delta:
    """Task: return a replica's changes of the block of this number, in the coordinates of the merge rule."""
    delta = project_delta(training.rule, trained.changes[number], curvatures.get(training.block.table, NO_CURVATURE))
    return delta._replace(bits=share(delta.bits))


def _sum_changes(training: BlockTraining, curvatures: Curvatures, *changes: Changes) -> SummedChanges:
    """Task: return the sum of the changes of consecutive replicas, or of groups of replicas, in a block."""
    shape = training.block.stop - training.block.start, training.run.params.vector_size
    added = add_changes(training.rule, shape, changes, training.row_training(curvatures))
    return added._replace(total=share(added.total))


def _merge_changes(
    training: BlockTraining, curvatures: Curvatures, before: Float32Array, *changes: Changes
) -> Float32Array:
    """Task: return the rows of a block merged with the changes of all replicas, shape (rows, D)."""
    return share(merge_block(training.rule, np.asarray(before), changes, training.row_training(curvatures)))
