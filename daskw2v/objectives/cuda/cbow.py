"""CBOW on an NVIDIA GPU: a window's contexts together meet their targets, and then share the update.

The hidden vector stays until all targets have met it. Contexts are then read again: a window may have a thousand, and a
warp keeps only the contexts in the ring.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from daskw2v.kernels.cuda.gpus import WarpKernel
from daskw2v.kernels.cuda.warp import SHARE, SUMS, at, device, sums_of_lanes, sync_warp
from daskw2v.objectives.cuda.access import gradient, make_context_access, make_mover, make_target_access
from daskw2v.objectives.cuda.pieces import make_piece_kernel
from daskw2v.objectives.cuda.shape import Aim, Shape

_NONE, _ONE = np.float32(0.0), np.float32(1.0)


def cbow(shape: Shape, aim: Aim, mean: bool) -> WarpKernel:
    """Return the CBOW kernel; `mean` is `cbow_mean` of Params."""
    slots = shape.slots(aim)
    return make_piece_kernel(shape, aim, _make_window_trainer(shape, aim, slots, mean), slots)


def _make_window_trainer(shape: Shape, aim: Aim, slots: int, mean: bool) -> Callable[..., Any]:
    """Return the device function that trains the contexts of a window, as `make_piece_kernel` takes it."""
    train_group, write, size, floats = _make_group_trainer(shape, aim), aim.write, aim.size, shape.floats
    read, add, _, _ = make_context_access(shape, slots)
    moved = make_mover(shape)

    @device
    def train_window(
        tables: Any, text: Any, aim: Any, scratch: Any, first: Any, last: Any, center: Any, start: Any, stop: Any,
        slot: Any, alpha: Any, lane: Any,
    ) -> Any:  # fmt: skip
        row, hidden, share = scratch.row, scratch.hidden, _ONE / np.float32(max(stop - start - 1, 1))
        if stop - start == 1:
            return 0, _NONE
        sync_warp()  # until all lanes have read the list
        n = write(aim, text, center, first, last, 0, lane, scratch.listed, scratch.signs)
        sync_warp()
        for k in range(floats):
            hidden[0, k], hidden[1, k] = _NONE, _NONE
        ring_slot = slot
        for i in range(start, stop):
            if i != center:
                read(tables, scratch, ring_slot, at(text.tokens, i), lane)
                for k in range(floats):
                    hidden[0, k] += row[0, k]
            ring_slot = moved(ring_slot, 1)
        if mean:
            for k in range(floats):
                hidden[0, k] *= share
        loss = _NONE
        for target in range(0, n, size):
            loss += train_group(tables, scratch, target, n, alpha, lane)
        if not mean:
            for k in range(floats):
                hidden[1, k] *= share
        ring_slot = slot
        for i in range(start, stop):
            if i != center:
                word = at(text.tokens, i)
                read(tables, scratch, ring_slot, word, lane)
                for k in range(floats):
                    row[1, k] = hidden[1, k]
                add(tables, scratch, ring_slot, word, lane)
            ring_slot = moved(ring_slot, 1)
        return 1, loss

    return train_window


def _make_group_trainer(shape: Shape, aim: Aim) -> Callable[..., Any]:
    """Return the device function that trains a hidden vector against a group of targets."""
    read_target, add_target, _, _ = make_target_access(shape, aim)
    floats, size = shape.floats, aim.size

    @device
    def train_group(tables: Any, scratch: Any, target: Any, n: Any, alpha: Any, lane: Any) -> Any:
        """Train the hidden vector against a group of n listed targets, from index `target` on; add to its update.

        Return the loss of the lane.
        """
        near, hidden, dots = scratch.near, scratch.hidden, scratch.dots
        lane_target = lane // SHARE
        sign = at(scratch.signs, target + lane_target) if lane_target < size else _NONE
        for t in range(size):
            for k in range(floats):
                near[t, k] = _NONE
            if target + t < n:
                read_target(tables, scratch, at(scratch.listed, target + t), lane, near, t)
        for t in range(SUMS):
            dots[t] = _NONE
        for t in range(size):
            for k in range(floats):
                dots[t] += hidden[0, k] * near[t, k]
        gain, loss = gradient(sums_of_lanes(lane, dots), sign, alpha)
        sync_warp()  # until all lanes have read the gains
        if lane % SHARE == 0:
            scratch.gains[np.uint64(lane_target)] = gain
        sync_warp()
        for t in range(size):
            gain = at(scratch.gains, t)
            for k in range(floats):
                hidden[1, k] += gain * near[t, k]
                near[t, k] = gain * hidden[0, k]
            if target + t < n:
                add_target(tables, scratch, at(scratch.listed, target + t), lane, near, t)
        return loss

    return train_group
