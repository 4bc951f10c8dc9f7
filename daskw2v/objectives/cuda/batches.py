"""Buckets on an NVIDIA GPU: a batch of contexts stays in registers until it has met all of its targets.

The targets that all contexts of a batch meet are listed in shared memory. They come in groups; the contexts' updates
are kept beside them, and added at the end.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from daskw2v.kernels.cuda.warp import SHARE, SUMS, at, device, floats_of, load4_fresh, reading, sums_of_lanes, sync_warp
from daskw2v.objectives.cuda.access import adder, gradient
from daskw2v.objectives.noise import BATCH

_REGISTERS = 32  # floats of targets that a lane keeps at once
_NONE = np.float32(0.0)


def group_of(width: int) -> int:
    """Return the targets of a group."""
    return min(SUMS, max(1, _REGISTERS // (floats_of(width))))


@device
def row_bits(pairs: Any) -> Any:
    """Return the result of `sampling.pairs.row_bits`, which does not take arrays of the simulator."""
    return np.uint64(4 * pairs.itemsize)


def context_reader(width: int, context_of: Callable[..., Any]) -> Callable[..., Any]:
    """Return the device function that reads the contexts of a batch, whose updates are then zeros.

    `context_of` (items, batch, item) returns the row of a context, or -1 where there is none.
    """
    read_fresh, floats = reading(width, load4_fresh), floats_of(width)

    @device
    def read(tables: Any, items: Any, batch: Any, scratch: Any, lane: Any) -> None:
        for item in range(BATCH):
            for k in range(floats):
                scratch.rows[item, k], scratch.updates[item, k] = _NONE, _NONE
            word = context_of(items, batch, item)
            if word >= 0:
                read_fresh(tables.source, np.int64(word) * width, lane, scratch.rows, item)

    return read


def context_adder(width: int, at_once: bool, context_of: Callable[..., Any]) -> Callable[..., Any]:
    """Return the device function that adds the updates of the contexts of a batch."""
    add_row = adder(width, at_once)

    @device
    def add(tables: Any, items: Any, batch: Any, scratch: Any, lane: Any) -> None:
        for item in range(BATCH):
            word = context_of(items, batch, item)
            if word >= 0:
                add_row(tables.source, tables.source_touched, tables.in_flight, word, lane, scratch.updates, item)

    return add


def listed_trainer(width: int, at_once: bool, sign_of: Callable[..., Any]) -> Callable[..., Any]:
    """Return the device function that trains a batch against the group of listed targets from number `first` on.

    There are n targets. `sign_of` (items, batch, item, number, scratch) returns what a listed target is to an item: 1,
    -1, or 0 for nothing.
    """
    read_fresh, add = reading(width, load4_fresh), adder(width, at_once)
    floats, size = floats_of(width), group_of(width)

    @device
    def train(tables: Any, items: Any, batch: Any, n: Any, first: Any, alpha: Any, scratch: Any, lane: Any) -> Any:
        own, loss = lane // SHARE, _NONE
        sync_warp()  # until all lanes have read the gains
        for t in range(size):
            for k in range(floats):
                scratch.near[t, k] = _NONE
            if first + t < n:
                read_fresh(tables.output, np.int64(at(scratch.listed, first + t)) * width, lane, scratch.near, t)
        for item in range(BATCH):
            for t in range(SUMS):
                scratch.dots[t] = _NONE
            for t in range(size):
                for k in range(floats):
                    scratch.dots[t] += scratch.rows[item, k] * scratch.near[t, k]
            sign = sign_of(items, batch, item, first + own, scratch) if own < size and first + own < n else _NONE
            gain, lost = gradient(sums_of_lanes(lane, scratch.dots), sign, alpha)
            loss += lost
            if lane % SHARE == 0:
                scratch.gains[np.uint64(item * SUMS + own)] = gain
        sync_warp()
        for t in range(size):
            for k in range(floats):
                before, update = scratch.near[t, k], _NONE
                for item in range(BATCH):
                    gain = at(scratch.gains, item * SUMS + t)
                    scratch.updates[item, k] += gain * before
                    update += gain * scratch.rows[item, k]
                scratch.near[t, k] = update
        for t in range(size):
            if first + t < n:
                word = at(scratch.listed, first + t)
                add(tables.output, tables.output_touched, tables.in_flight, word, lane, scratch.near, t)
        return loss

    return train
