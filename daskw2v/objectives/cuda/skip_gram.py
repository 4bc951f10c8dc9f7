"""Skip-gram on an NVIDIA GPU: each context of a window meets all targets, which stay in registers meanwhile.

Contexts of a window come one after another. Targets of a group do not change until all contexts have met them;
their updates are kept beside them. Groups are trained one after another.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import int32

from daskw2v.kernels.cuda.gpus import WarpKernel
from daskw2v.kernels.cuda.warp import SHARE, SUMS, at, device, sums_of_lanes, sync_warp
from daskw2v.objectives.cuda.access import gradient, make_context_access, make_mover, make_target_access
from daskw2v.objectives.cuda.pieces import make_piece_kernel
from daskw2v.objectives.cuda.shape import Aim, Shape

_NONE = np.float32(0.0)


def skip_gram(shape: Shape, aim: Aim) -> WarpKernel:
    """Return the skip-gram kernel."""
    slots = shape.slots(aim)
    return make_piece_kernel(shape, aim, _make_window_trainer(shape, aim, slots), slots)


def _make_window_trainer(shape: Shape, aim: Aim, slots: int) -> Callable[..., Any]:
    """Return the device function that trains the contexts of a window, as `make_piece_kernel` takes it."""
    train_group, write, per_context = _make_group_trainer(shape, aim, slots), aim.write, aim.per_context
    size, moved = aim.size, make_mover(shape)

    @device
    def train_all(
        tables: Any, text: Any, scratch: Any, n: Any, center: Any, start: Any, stop: Any, slot: Any, alpha: Any,
        lane: Any,
    ) -> Any:  # fmt: skip
        """Train the contexts start..stop-1 of a center against all n listed targets; return the loss of the lane."""
        loss = _NONE
        for target in range(0, n, size):
            loss += train_group(tables, text, scratch, target, n, center, start, stop, slot, alpha, lane)
        return loss

    @device
    def train_window(
        tables: Any, text: Any, aim: Any, scratch: Any, first: Any, last: Any, center: Any, start: Any, stop: Any,
        slot: Any, alpha: Any, lane: Any,
    ) -> Any:  # fmt: skip
        if not per_context:
            sync_warp()  # until all lanes have read the list
            n = write(aim, text, center, first, last, 0, lane, scratch.listed, scratch.signs)
            sync_warp()
            loss = train_all(tables, text, scratch, n, center, start, stop, slot, alpha, lane)
            return stop - start - 1, loss
        loss, number = _NONE, 0
        for i in range(start, stop):
            if i != center:
                sync_warp()
                n = write(aim, text, center, first, last, number, lane, scratch.listed, scratch.signs)
                sync_warp()
                loss += train_all(tables, text, scratch, n, center, i, int32(i + 1), slot, alpha, lane)
                number += 1
            slot = moved(slot, 1)
        return number, loss

    return train_window


def _make_group_trainer(shape: Shape, aim: Aim, slots: int) -> Callable[..., Any]:
    """Return the device function that trains contexts against a group of targets."""
    read, add, _, _ = make_context_access(shape, slots)
    read_target, add_target, _, _ = make_target_access(shape, aim)
    floats, size, moved = shape.floats, aim.size, make_mover(shape)

    @device
    def train_group(
        tables: Any, text: Any, scratch: Any, target: Any, n: Any, center: Any, start: Any, stop: Any, slot: Any,
        alpha: Any, lane: Any,
    ) -> Any:  # fmt: skip
        """Train contexts against a group of n listed targets, from index `target` on; return the loss of the lane."""
        near, updates, row, dots = scratch.near, scratch.updates, scratch.row, scratch.dots
        lane_target, turn, loss = lane // SHARE, int32(0), _NONE
        sign = at(scratch.signs, target + lane_target) if lane_target < size else _NONE
        sync_warp()  # until all lanes have read the gains
        for t in range(size):
            for k in range(floats):
                near[t, k], updates[t, k] = _NONE, _NONE
            if target + t < n:
                read_target(tables, scratch, at(scratch.listed, target + t), lane, near, t)
        for t in range(size, SUMS):
            dots[t] = _NONE
        for i in range(start, stop):
            if i != center:
                word = at(text.tokens, i)
                read(tables, scratch, slot, word, lane)
                for t in range(size):
                    total = _NONE
                    for k in range(floats):
                        total += row[0, k] * near[t, k]
                    dots[t] = total
                gain, lost = gradient(sums_of_lanes(lane, dots), sign, alpha)
                loss += lost
                if lane % SHARE == 0:
                    scratch.gains[np.uint64(turn + lane_target)] = gain
                sync_warp()  # one suffices: gains of alternate contexts are in separate memory
                for k in range(floats):
                    row[1, k] = _NONE
                for t in range(size):
                    gain = at(scratch.gains, turn + t)
                    for k in range(floats):
                        row[1, k] += gain * near[t, k]
                        updates[t, k] += gain * row[0, k]
                add(tables, scratch, slot, word, lane)
                turn = int32(SUMS - turn)
            slot = moved(slot, 1)
        for t in range(size):
            if target + t < n:
                add_target(tables, scratch, at(scratch.listed, target + t), lane, updates, t)
        return loss

    return train_group
