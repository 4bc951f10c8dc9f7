"""Columns of the word-context matrix on an NVIDIA GPU: a warp for each row that is trained, a block for each batch.

A warp loads its row, and its moments, into registers, trains all columns of the call, and writes once: no atomics and
no race, so that the result is as reproducible as on the CPU. The warps of a batch share its negatives, so that three of
four loads of a target find it in the block's L1 cache, and each draw is made once.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numba import cuda, float32, int32

from daskw2v.kernels.alias import choose
from daskw2v.kernels.cuda import warp
from daskw2v.kernels.cuda.warp import LANES, SHARE, SUMS, device, floats_of, kernel, sums_of_lanes, sync_warp
from daskw2v.kernels.rng import below, draw
from daskw2v.objectives.base import MatrixColumns, PartTables
from daskw2v.objectives.context_matrix.updates import BETA1, BETA2, EPSILON, step_size
from daskw2v.objectives.cuda.access import gradient
from daskw2v.objectives.noise import BATCH, PreparedNoise
from daskw2v.sampling.settings import SampledContexts
from daskw2v.types import Float32Array

_DRAWN = LANES * BATCH  # smallest number of negatives that a block draws at a time
_KEPT = 48  # largest number of floats of targets that a lane keeps from the dot products to the updates
_HALF = np.uint64(32)
_NONE, _ONE = np.float32(0.0), np.float32(1.0)
_A1, _A2 = np.float32(1.0 - BETA1), np.float32(1.0 - BETA2)
_SMALL = np.float32(EPSILON**2)


def train(
    columns: MatrixColumns, first: int, last: int, tables: PartTables, prepared: PreparedNoise, losses: Float32Array
) -> None:
    """Train the rows of the batches first..last-1 in place; wait until they are trained.

    Arguments are as in `context_matrix.cpu.train`, with all arrays on the GPU.
    """
    n_columns, negative = columns.contexts.shape[1], SampledContexts.of(prepared.params).negative
    use_adam = len(tables.trained) > tables.trained_floats
    rates = np.full(n_columns, columns.alpha, np.float32)
    if use_adam:
        rates[:] = step_size.py_func(columns.alpha, columns.first + np.arange(n_columns))
    inputs = tables.fixed, columns.contexts, prepared.noise, cuda.to_device(rates)
    numbers = columns.key, columns.first, columns.row // BATCH, first, tables.trained_floats
    launch = compile_kernel(tables.width, negative, use_adam)
    launch[last - first, (LANES, BATCH)](tables.trained, *inputs, *numbers, losses)
    cuda.synchronize()  # before the arrays that the kernel reads are released


def _group_targets(width: int, negative: int) -> tuple[int, int, bool]:
    """Return the number of groups of a row's targets, the targets of a group, and whether a lane keeps all of them."""
    groups = -(-(1 + negative) // SUMS)
    size = -(-(1 + negative) // groups)  # the last group may be padded
    return groups, size, groups == 1 and size * floats_of(width) <= _KEPT


def _make_updaters(width: int, negative: int) -> tuple[Any, Any]:
    """Return the device functions `weigh` and `pull`, which compute the update of a row by the targets of a column."""
    (groups, size, keeps_targets), floats = _group_targets(width, negative), floats_of(width)
    read_target = warp.reading(width, warp.load4_constant)

    @device
    def target(drawn: Any, start: Any, index: Any, context: Any) -> Any:
        """Return the target at an index: the context at 0 and in the padding, else a negative."""
        return drawn[start + index - 1] if 0 < index <= negative else context

    @device
    def weigh(
        fixed: Any, drawn: Any, start: Any, context: Any, weights: Any, row: Any, near: Any, dots: Any, lane: Any
    ) -> Any:
        """Write the weight of each target in the update of the row; return the loss of the lane.

        `drawn` has the negatives of several columns; the negatives of this column begin at index `start`.
        """
        loss, own = _NONE, lane // SHARE
        for group in range(groups):
            for t in range(SUMS):
                dots[t] = _NONE
            for t in range(size):
                word, slot = target(drawn, start, group * size + t, context), t if keeps_targets else 0
                read_target(fixed, np.int64(word) * width, lane, near, slot)
                for k in range(floats):
                    dots[t] += near[slot, k] * row[0, k]
            index, sign = group * size + own, -_ONE
            if index == 0:
                sign = _ONE
            elif own >= size or target(drawn, start, index, context) == context:
                sign = _NONE
            weight, lost = gradient(sums_of_lanes(lane, dots), sign, _ONE)
            loss += lost
            if own < size and lane % SHARE == 0:
                weights[index] = weight
        return loss

    @device
    def pull(fixed: Any, drawn: Any, start: Any, context: Any, weights: Any, update: Any, near: Any, lane: Any) -> None:
        """Add the sum of the targets, weighted by the results of `weigh`, to the update."""
        for index in range(groups * size):
            slot = index if keeps_targets else 0
            if not keeps_targets:
                read_target(fixed, np.int64(target(drawn, start, index, context)) * width, lane, near, slot)
            for k in range(floats):
                update[k] += weights[index] * near[slot, k]

    return weigh, pull


@lru_cache(maxsize=64)
def compile_kernel(width: int, negative: int, use_adam: bool) -> Any:
    """Return the kernel for rows of `width` floats: loops of known length, so that rows are registers.

    Rows of more than about a thousand floats are in the lane's local memory instead, which is slower, with the same
    results.
    """
    groups, size, keeps_targets = _group_targets(width, negative)
    floats, tables, n_targets = floats_of(width), 3 if use_adam else 1, groups * size
    across = max(1, _DRAWN // negative)  # columns whose negatives are drawn at once
    n_drawn = across * negative
    read, write = warp.reading(width, warp.load4), warp.writing(width, warp.store4)
    weigh, pull = _make_updaters(width, negative)

    @kernel
    def run(
        trained: Any, fixed: Any, contexts: Any, noise: Any, rates: Any, key: Any, number: Any, row_batch: Any,
        first: Any, apart: Any, losses: Any,
    ) -> None:  # fmt: skip
        lane, member = cuda.threadIdx.x, cuda.threadIdx.y
        batch = first + cuda.blockIdx.x
        word = batch * BATCH + member
        n_words, n_columns = contexts.shape
        drawn = cuda.shared.array(n_drawn, int32)
        own = cuda.shared.array((BATCH, across), int32)
        weights = cuda.shared.array((BATCH, n_targets), float32)
        row = cuda.local.array((tables, floats), float32)  # and its moments
        update = cuda.local.array(floats, float32)
        near = cuda.local.array((size if keeps_targets else 1, floats), float32)
        dots = cuda.local.array(SUMS, float32)
        row_start = word * width
        for table in range(tables):
            read(trained, row_start + table * apart, lane, row, table)
        loss = _NONE
        for left in range(0, n_columns, across):
            right = min(left + across, n_columns)
            cuda.syncthreads()  # until all warps have read what is now overwritten
            for i in range(member * LANES + lane, (right - left) * negative, LANES * BATCH):
                counter = (np.uint64(number + left + i // negative) << _HALF) + np.uint64(row_batch + batch)
                # Casts: under the simulator these functions return Python's numbers
                bits = np.uint64(draw(np.uint64(draw(key, counter)), i % negative + 1))
                slot = np.uint64(below(bits, noise.size))
                drawn[i] = choose(slot, noise[slot], bits)
            for j in range(left + lane, right, LANES):
                own[member, j - left] = contexts[word, j] if word < n_words else -1
            cuda.syncthreads()
            for j in range(left, right):
                context, start = own[member, j - left], (j - left) * negative
                for k in range(floats):
                    update[k] = _NONE
                if context >= 0:  # for all lanes or none
                    loss += weigh(fixed, drawn, start, context, weights[member], row, near, dots, lane)
                    sync_warp()
                    pull(fixed, drawn, start, context, weights[member], update, near, lane)
                    sync_warp()  # until all lanes have read the weights
                rate = rates[j]
                for k in range(floats):
                    if use_adam:
                        g = update[k]
                        row[1, k] = BETA1 * row[1, k] + _A1 * g
                        row[2, k] = BETA2 * row[2, k] + _A2 * g * g
                        row[0, k] += rate * row[1, k] * warp.inverse_root(row[2, k] + _SMALL)
                    else:
                        row[0, k] += rate * update[k]
        loss = warp.sum_of_sums(loss)
        if word < n_words:
            for table in range(tables):
                write(trained, row_start + table * apart, lane, row, table)
            if lane == 0:
                losses[word] += loss

    return run
