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
    Delta,
    MergeRule,
    SummedChanges,
    Training,
    add_changes,
    find_merge_rule,
    join_changes,
    merge_block,
    merge_deltas,
    project_delta,
)
from daskw2v.training.averaging.replica import Trained
from daskw2v.training.averaging.settings import Averaging
from daskw2v.training.start.blocks import TableBlock
from daskw2v.types import Float32Array

Curvatures: TypeAlias = Mapping[str, Curvature]  # of each table; empty for rules that do not need it


class BlockTraining(NamedTuple):
    """How each replica trained a block since it was merged last.

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
    """Return the future of a merged block, by a tree whose shape depends on the number of replicas only.

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
    if len(parts) <= FAN_IN:
        return client.submit(_merge_few, how, curvatures, before, *parts, key=f"merge-{key}")
    level = 0
    while level == 0 or len(parts) > 1:
        add = _join if level else _add
        parts = [
            client.submit(add, how, curvatures, *parts[i : i + FAN_IN], key=f"changes-{key}-{level}-{i}")
            for i in range(0, len(parts), FAN_IN)
        ]
        level += 1
    return client.submit(_merge_sum, how, curvatures, before, parts[0], key=f"merge-{key}")


def _project(how: BlockTraining, curvatures: Curvatures, trained: Trained, number: int) -> Delta:
    """Task: return the changes of a replica in a block, on its worker, in the coordinates of the merge rule."""
    delta = project_delta(how.rule, trained.changes[number], curvatures.get(how.block.table, NO_CURVATURE))
    return delta._replace(bits=share(delta.bits))


def _add(how: BlockTraining, curvatures: Curvatures, *changes: Delta) -> SummedChanges:
    """Task: return the sum of the changes of consecutive replicas."""
    n_rows = how.block.stop - how.block.start
    return _shared(add_changes(how.rule, n_rows, changes, how.of_rows(curvatures)))


def _join(how: BlockTraining, curvatures: Curvatures, *parts: SummedChanges) -> SummedChanges:
    """Task: return the sum of the changes of consecutive groups of replicas."""
    return _shared(join_changes(how.rule, parts, how.of_rows(curvatures)))


def _shared(changes: SummedChanges) -> SummedChanges:
    return changes._replace(total=share(changes.total))


def _merge_few(how: BlockTraining, curvatures: Curvatures, before: Float32Array, *changes: Delta) -> Float32Array:
    """Task: return a block merged with the changes of each replica."""
    return share(merge_deltas(how.rule, np.asarray(before), changes, how.of_rows(curvatures)))


def _merge_sum(
    how: BlockTraining, curvatures: Curvatures, before: Float32Array, changes: SummedChanges
) -> Float32Array:
    """Task: return a block merged with the sum of the changes of all replicas."""
    return share(merge_block(how.rule, np.asarray(before), changes, how.of_rows(curvatures)))
