"""The tasks that merge a block of the model: a small tree of them."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from distributed import Client, Future

from daskw2v.cluster.shared_memory import share
from daskw2v.sampling.run import Run
from daskw2v.training.averaging.curvature import NO_CURVATURE, Curvature, touched_rows, windows_of_position
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
from daskw2v.training.averaging.replica import Trained
from daskw2v.training.averaging.settings import Averaging
from daskw2v.training.start.blocks import TableBlock
from daskw2v.types import Float32Array

Curvatures: TypeAlias = Mapping[str, Curvature]  # of each table; empty for rules that do not need it


class BlockTraining(NamedTuple):
    """The training of a block by each replica since it was merged last.

    Parameters
    ----------
    run, block
        The run, and the block.
    rate
        Sum of the learning rates over the positions of a replica's text.
    """

    run: Run
    block: TableBlock
    rate: float

    @property
    def rule(self) -> MergeRule:
        """The rule that merges the block."""
        return find_merge_rule(Averaging.of(self.run.params).merge)

    def of_rows(self, curvatures: Curvatures) -> Training:
        """Return the training of each row of the block, from the curvature of each table."""
        if not curvatures:
            return Training()
        touched = touched_rows(self.run)[self.block.table][self.block.start : self.block.stop]
        rates = (self.rate * windows_of_position(self.run) * touched).astype(np.float32)
        return Training(curvatures[self.block.table], rates)


def submit_merge(
    client: Client,
    how: BlockTraining,
    curvatures: Future | Curvatures,
    before: Future,
    number: int,
    trained: Sequence[Future],
    key: str,
) -> Future:
    """Submit the merging of a block, by a tree of tasks whose shape depends on the number of replicas alone.

    Parameters
    ----------
    client, key
        The cluster, and a part of the tasks' keys.
    how
        How replicas trained the block.
    curvatures, before
        `Curvatures` and the block before, or futures of them.
    number, trained
        Number of the block, and futures of the results of each replica's task.
    """
    parts = [
        client.submit(_project, how, curvatures, replica, number, key=f"change-{replica.key}-{number}")
        for replica in trained
    ]
    level = 0
    while len(parts) > FAN_IN:
        groups = range(0, len(parts), FAN_IN)
        parts = [
            client.submit(_add, how, curvatures, *parts[i : i + FAN_IN], key=f"changes-{key}-{level}-{i}")
            for i in groups
        ]
        level += 1
    return client.submit(_merge, how, curvatures, before, *parts, key=f"merge-{key}")


def _project(how: BlockTraining, curvatures: Curvatures, trained: Trained, number: int) -> Delta:
    """Task: return the changes of a replica in a block, on its worker, in the coordinates of the merge rule."""
    delta = project_delta(how.rule, trained.changes[number], curvatures.get(how.block.table, NO_CURVATURE))
    return delta._replace(bits=share(delta.bits))


def _add(how: BlockTraining, curvatures: Curvatures, *changes: Changes) -> SummedChanges:
    """Task: return the sum of the changes of consecutive replicas, or groups of replicas."""
    shape = how.block.stop - how.block.start, how.run.params.vector_size
    added = add_changes(how.rule, shape, changes, how.of_rows(curvatures))
    return added._replace(total=share(added.total))


def _merge(how: BlockTraining, curvatures: Curvatures, before: Float32Array, *changes: Changes) -> Float32Array:
    """Task: return a block merged with the changes of all replicas."""
    return share(merge_block(how.rule, np.asarray(before), changes, how.of_rows(curvatures)))
