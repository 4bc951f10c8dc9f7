"""A device as another distribution may add one: plain NumPy in float64, by the objectives' references."""

from dataclasses import dataclass
from importlib import import_module

import numpy as np

from daskw2v.config.choice import Choice
from daskw2v.config.settings import integer, setting
from daskw2v.objectives.settings import SGNS
from daskw2v.sampling.hierarchy import RULES, split_negatives
from daskw2v.sampling.settings import Partitioned
from daskw2v.training.devices import Device, PartitionTrainer, ReplicaTrainer, RowTrainer, TextTotals
from daskw2v.training.devices.base import DeviceTrainer

TRAINED = []  # names of the objectives that this process trained


class Float64Trainer(DeviceTrainer):
    """Tables are float64."""

    device = "float64"

    def to_device(self, values):
        """Return a copy of rows in float64; other arrays as they are."""
        return values.astype(np.float64) if values.dtype == np.float32 else values

    def from_device(self, values):
        """Return a copy of rows in float32."""
        return values.astype(np.float32)


class Replicas(Float64Trainer, ReplicaTrainer):
    """Trains text."""

    @classmethod
    def find_kernel(cls, objective):
        """Return the reference of an objective, or raise as other devices do."""
        if objective.trainers:
            return import_module(f"daskw2v.objectives.{objective.name}.reference").train
        return super().find_kernel(objective)

    def train(self, loads):
        """Train pieces one after the other."""
        TRAINED.append(self._objective.name)
        source, output = (self._tables[name].reshape(-1, self._width)[:, : self._columns] for name in self._tables)
        totals = []
        for load in loads:
            piece = load()
            where = piece.segment, piece.first, piece.last
            examples, loss = self._train(*where, source, output, piece.rate, piece.epoch, self._prepared)
            totals.append(TextTotals(examples, loss, piece.words))
        return TextTotals(*map(sum, zip(*totals, strict=True))) if totals else TextTotals(0, 0.0, 0)

    def from_device(self, values):
        """Return a copy of rows in float32, rounded as the settings of the device say."""
        digits = self._threads.device.digits
        return super().from_device(values if digits is None else np.round(values, digits))

    def _overwrite(self, there, values):
        there[:] = values.reshape(-1)

    def _copies(self, blocks):
        tables = {name: np.zeros((n, self._width), np.float32) for name, n in self._lengths.items()}
        for name, parts in blocks.items():
            for start, part in zip(self._bounds[name], parts, strict=False):
                self._copy_into(tables[name][start : start + len(part)], part)
        return {name: self.to_device(rows.reshape(-1)) for name, rows in tables.items()}


class Partitions(Float64Trainer, PartitionTrainer):
    """Trains buckets."""

    @classmethod
    def find_kernel(cls, objective):
        """Return the reference for buckets, or raise as other devices do."""
        if objective.bucket_trainers:
            return import_module(f"daskw2v.objectives.{objective.name}.buckets.reference").train_bucket
        return super().find_kernel(objective)

    def train(self, input, output, bucket, alpha, words, key):
        """Train a bucket."""
        TRAINED.append(self._objective.name)
        rule, columns = RULES[Partitioned.of(self._params).negative_rule], self._params.vector_size
        tables = [t.reshape(-1, self._width)[:, :columns] for t in (self._inputs[input], self._outputs[output])]
        negatives = split_negatives(rule, SGNS.of(self._params).negative)
        return self._train(bucket.pairs, bucket.noise, *tables, alpha, *negatives, words, key)


class Rows(Float64Trainer, RowTrainer):
    """There is no kernel for columns."""


@dataclass(frozen=True, kw_only=True)
class Float64(Choice):
    """Its settings."""

    axis, name = "device", "float64"

    digits: int | None = setting(None, "decimal digits that rows of a replica are rounded to", integer(0))


FLOAT64 = Device(
    name="float64",
    settings=Float64,
    title="NumPy in float64",
    replica_trainer=Replicas,
    partition_trainer=Partitions,
    row_trainer=Rows,
    honours=("prefix_sizes",),
)
