"""The common model as a replica knows it: the rows that all replicas had last, and how its own differ from them."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from daskw2v.cluster.shared_memory import share
from daskw2v.config.params import Params
from daskw2v.training.averaging.deltas import Delta, delta_of
from daskw2v.training.averaging.device_delta import Change
from daskw2v.training.averaging.merge import MergedBlock, MergeRule, find_merge_rule, merge_deltas, merged_block
from daskw2v.training.averaging.pulling import Reached
from daskw2v.training.devices import ReplicaTrainer
from daskw2v.types import Float32Array

BlockKey = tuple[str, int]  # of a block: its table, and its number there
Given = Mapping[int, Any]  # blocks as a replica was given them, by number: rows, or `MergedBlock`


class CommonModel(ABC):
    """The common model of the replicas of a round, and the tables of one of them."""

    @abstractmethod
    def give(self, rows: Mapping[int, Float32Array]) -> None:
        """Replace the rows of some blocks, by number, shapes (rows, D)."""

    @abstractmethod
    def changes(self, numbers: Iterable[int]) -> tuple[Mapping[int, Change], bool]:
        """Return what the replica changed in some blocks since they were common, and whether its rows are finite."""

    @abstractmethod
    def merge(self, changes: Sequence[Mapping[int, Change]]) -> None:
        """Merge some blocks, given what each replica changed in them; the replica's own rows become the merged ones."""

    @abstractmethod
    def merged(self, numbers: Iterable[int]) -> dict[int, MergedBlock]:
        """Return some blocks as they were merged last."""


class HostModel(CommonModel):
    """The common model in the memory of the worker, whatever device trains.

    Parameters
    ----------
    rule, trainer, places, given
        How replicas are merged; the replica's trainer; where it has each block; and each block as it was given.
    reached
        Which rows the replica has; None for all.
    """

    def __init__(
        self,
        rule: MergeRule,
        trainer: ReplicaTrainer,
        places: Sequence[BlockKey],
        given: Given,
        reached: Reached | None,
    ) -> None:
        self._rule, self._trainer, self._reached = rule, trainer, reached
        self._places, self._known = places, {number: merged_block(block) for number, block in given.items()}
        self._numbers = {place: number for number, place in enumerate(places)}
        self._own = set[int]()  # blocks whose merged rows are its own memory

    def give(self, rows: Mapping[int, Float32Array]) -> None:
        """Replace the rows of some blocks, as `CommonModel.give` does."""
        self._known |= {number: MergedBlock(part, None) for number, part in rows.items()}
        self._copy(rows)

    def changes(self, numbers: Iterable[int]) -> tuple[Mapping[int, Change], bool]:
        """Return what the replica changed, as `CommonModel.changes` does."""

        def change(table: str, place: int, own: Float32Array) -> tuple[int, Delta, bool]:
            number = self._numbers[table, place]
            bits, finite = delta_of(self._known[number].rows, own)
            return number, Delta(share(bits), None if self._reached is None else self._reached.of(number)), finite

        found = self._trainer.visit([self._places[number] for number in numbers], change)
        return {number: delta for number, delta, _ in found}, all(finite for _, _, finite in found)

    def merge(self, changes: Sequence[Mapping[int, Change]]) -> None:
        """Merge some blocks, as `CommonModel.merge` does."""
        for number in changes[0]:
            before, deltas = self._known[number], [of_replica[number].on_host() for of_replica in changes]
            into = before if number in self._own else None
            self._known[number] = merge_deltas(self._rule, before, deltas, into)
            self._own.add(number)
        self._copy(changes[0])

    def merged(self, numbers: Iterable[int]) -> dict[int, MergedBlock]:
        """Return some blocks as they were merged last."""
        return {number: self._known[number].shared() for number in numbers}

    def _copy(self, numbers: Iterable[int]) -> None:
        """Copy the merged rows of some blocks to the replica's tables."""

        def replace(table: str, place: int, own: Float32Array) -> None:
            rows = self._known[self._numbers[table, place]].rows
            own[:, : rows.shape[1]] = rows

        self._trainer.visit([self._places[number] for number in numbers], replace, write=True)


def common_model(
    params: Params, trainer: ReplicaTrainer, places: Sequence[BlockKey], given: Given, reached: Reached | None
) -> CommonModel:
    """Return the common model where the rule merges it: on the trainer's device, or else in the worker's memory.

    A replica that pulls rows has it there in any case, and so has one without others, which merges nothing.
    """
    rule = find_merge_rule(params.merge)
    on_device = rule.on_devices.get(trainer.device)
    if on_device is None or reached is not None or params.n_replicas == 1:
        return HostModel(rule, trainer, places, given if params.n_replicas > 1 else {}, reached)
    model: CommonModel = on_device(trainer, places, given)
    return model
