"""Buckets on an NVIDIA GPU: a batch of contexts stays in registers until it has met all of its targets.

The targets that all contexts of a batch meet are listed in shared memory. They come in groups; the contexts' updates
are kept beside them, and added at the end.

`items` and `batch` identify the pairs of a batch, in a form that each objective defines; `item` is 0..BATCH-1.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from daskw2v.kernels.cuda.warp import SHARE, SUMS, at, device, floats_of, load4_fresh, reading, sums_of_lanes, sync_warp
from daskw2v.objectives.cuda.access import gradient, make_adder
from daskw2v.objectives.noise import BATCH

_REGISTERS = 32  # floats of targets that a lane keeps at a time
_NONE = np.float32(0.0)


def group_size(width: int) -> int:
    """Return the number of targets of a group for rows of `width` floats."""
    return min(SUMS, max(1, _REGISTERS // (floats_of(width))))


@device
def row_bits(pairs: Any) -> Any:
    """Return half the bits of a pair, as `sampling.pairs.row_bits`, which does not take arrays of the simulator."""
    return np.uint64(4 * pairs.itemsize)


def make_context_reader(width: int, context_of: Callable[..., Any]) -> Callable[..., Any]:
    """Return the device function that reads the contexts of a batch, and sets their updates to zeros.

    `context_of` (items, batch, item) returns the row of a context, -1 if there is none.
    """
    read_fresh, floats = reading(width, load4_fresh), floats_of(width)

    @device
    def read(tables: Any, items: Any, batch: Any, scratch: Any, lane: Any) -> None:
        """Read the contexts of a batch to scratch.rows; set scratch.updates to zeros."""
        for item in range(BATCH):
            for k in range(floats):
                scratch.rows[item, k], scratch.updates[item, k] = _NONE, _NONE
            word = context_of(items, batch, item)
            if word >= 0:
                read_fresh(tables.source, np.int64(word) * width, lane, scratch.rows, item)

    return read


def make_context_adder(width: int, adds_four: bool, context_of: Callable[..., Any]) -> Callable[..., Any]:
    """Return the device function that adds the updates of a batch's contexts to the table.

    `context_of` is as in `make_context_reader`, `adds_four` is the result of `gpu_adds_four`.
    """
    add_row = make_adder(width, adds_four)

    @device
    def add(tables: Any, items: Any, batch: Any, scratch: Any, lane: Any) -> None:
        """Add the updates of a batch's contexts to the input table."""
        for item in range(BATCH):
            word = context_of(items, batch, item)
            if word >= 0:
                add_row(tables.source, tables.source_touched, tables.in_flight, word, lane, scratch.updates, item)

    return add


def make_listed_trainer(width: int, adds_four: bool, sign_of: Callable[..., Any]) -> Callable[..., Any]:
    """Return the device function that trains a batch against a group of `group_size` listed targets.

    `sign_of` (items, batch, item, number, scratch) returns the sign of a listed target for an item: 1, -1, or 0.
    """
    read_fresh, add = reading(width, load4_fresh), make_adder(width, adds_four)
    floats, size = floats_of(width), group_size(width)

    @device
    def train(tables: Any, items: Any, batch: Any, n: Any, first: Any, alpha: Any, scratch: Any, lane: Any) -> Any:
        """Train a batch against a group of the n targets in scratch.listed, from index `first` on.

        The contexts' updates are added to scratch.updates. Return the loss of the lane.
        """
        lane_target, loss = lane // SHARE, _NONE
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
            sign = (
                sign_of(items, batch, item, first + lane_target, scratch)
                if lane_target < size and first + lane_target < n
                else _NONE
            )
            gain, lost = gradient(sums_of_lanes(lane, scratch.dots), sign, alpha)
            loss += lost
            if lane % SHARE == 0:
                scratch.gains[np.uint64(item * SUMS + lane_target)] = gain
        sync_warp()
        for t in range(size):
            for k in range(floats):
                value, update = scratch.near[t, k], _NONE
                for item in range(BATCH):
                    gain = at(scratch.gains, item * SUMS + t)
                    scratch.updates[item, k] += gain * value
                    update += gain * scratch.rows[item, k]
                scratch.near[t, k] = update
        for t in range(size):
            if first + t < n:
                word = at(scratch.listed, first + t)
                add(tables.output, tables.output_touched, tables.in_flight, word, lane, scratch.near, t)
        return loss

    return train
