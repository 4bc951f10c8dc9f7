"""SGNS on an NVIDIA GPU over a bucket of two partitions: a warp for each slice of its batches.

Draws, and the turns of pairs and noise, are those of `sgns.buckets.cpu`, but BATCH items are trained at a time: as many
contexts stay in registers, with their updates, until they have met all targets, group by group. Updates are added
atomically; a row that is listed twice in a batch is two rows, whose updates add up. Warps take long runs of slices, and
rows that many warps have at a time take shorter steps, as `objectives.cuda.access` says.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import cuda, float32, int32

from daskw2v.kernels.alias import choose
from daskw2v.kernels.cuda import warp
from daskw2v.kernels.cuda.gpus import WarpKernel, launch
from daskw2v.kernels.cuda.warp import LANES, SHARE, SUMS, at, device, floats_of, kernel, sums_of_lanes, sync_warp
from daskw2v.kernels.rng import below, draw
from daskw2v.objectives.base import DeviceTables
from daskw2v.objectives.cuda import batches
from daskw2v.objectives.cuda.access import gpu_adds_four, gradient, make_adder, make_warp_tables
from daskw2v.objectives.cuda.batches import group_size, row_bits
from daskw2v.objectives.cuda.shape import kernel_tables
from daskw2v.objectives.noise import BATCH
from daskw2v.objectives.sgns.buckets.cpu import ITEMS, NOISE, SLICE, Items, count_batches
from daskw2v.sampling.hierarchy import draw_negative_bits
from daskw2v.sampling.pairs import missing_row, unpack_center, unpack_context
from daskw2v.sampling.skipgrams import Bucket
from daskw2v.types import UInt64Array

_RUN = 4  # smallest number of slices that a warp trains: a thousand pairs
_SHARING = ITEMS // BATCH  # batches that have the same negatives
_NONE, _ONE = np.float32(0.0), np.float32(1.0)


class _BatchScratch(NamedTuple):
    """A warp's targets, shared ones and one for each item, and gains; a lane's contexts, updates, targets and sums."""

    listed: Any
    own: Any
    gains: Any
    rows: Any
    updates: Any
    near: Any
    dots: Any


def train_bucket(
    bucket: Bucket,
    tables: DeviceTables,
    alpha: float,
    negative: int,
    noise_negative: int,
    words: UInt64Array,
    key: np.uint64,
) -> None:
    """Train the pairs and the noise of a bucket as `sgns.buckets.cpu.train_bucket` does; wait until they are trained.

    The tables are on the GPU, and the loss is added to tables.totals[1].
    """
    pairs, noise, drawn = map(cuda.to_device, (*bucket, words))
    kinds = Items(pairs, negative, key), Items(noise, max(noise_negative - 1, 0), key ^ NOISE)
    slices = -(-max(count_batches.py_func(len(kind.pairs)) for kind in kinds) // SLICE)
    if slices:
        kernel = compile_kernel(tables.width, max(kind.shared for kind in kinds), gpu_adds_four())
        warps = max(1, min(tables.max_in_flight, slices // _RUN))
        arguments = *kinds, slices, np.float32(alpha), drawn, tables.totals
        launch(kernel, warps, tables.stream, kernel_tables(tables), *arguments)
        tables.stream.synchronize()  # before the arrays that the kernel reads are released


_count_batches = device(count_batches.py_func)  # number of draws of shared negatives of n items


@device
def _item_index(items: Any, batch: Any, item: Any) -> Any:
    """Return the index of an item of a batch among all items; ITEMS items, one of each range, share negatives.

    The index may exceed the last item's. `item` is 0..BATCH-1; _SHARING batches in a row make a batch of the CPU.
    """
    return (batch % _SHARING * BATCH + item) * _count_batches(items.pairs.size) + batch // _SHARING


@lru_cache(maxsize=64)
def compile_kernel(width: int, shared: int, adds_four: bool) -> WarpKernel:
    """Return the kernel for rows of `width` floats and batches that share at most `shared` negatives."""
    floats, listed_size = floats_of(width), max(1, shared)
    near_size, gains_size = max(group_size(width), BATCH), BATCH * SUMS
    train_batch = _make_batch_trainer(width, adds_four)

    @kernel
    def run(trained: Any, pairs: Any, noise: Any, slices: Any, alpha: Any, words: Any, totals: Any) -> None:
        lane = cuda.threadIdx.x
        scratch = _BatchScratch(  # one a line: the simulator knows shared arrays by theirs
            cuda.shared.array(listed_size, int32),
            cuda.shared.array(BATCH, int32),
            cuda.shared.array(gains_size, float32),
            cuda.local.array((BATCH, floats), float32),
            cuda.local.array((BATCH, floats), float32),
            cuda.local.array((near_size, floats), float32),
            cuda.local.array(SUMS, float32),
        )
        tables = make_warp_tables(trained, cuda.gridDim.x)
        n_pairs, n_noise = _count_batches(pairs.pairs.size), _count_batches(noise.pairs.size)
        loss = _NONE
        own, warps = cuda.blockIdx.x, cuda.gridDim.x
        for i in range(slices * own // warps, slices * (own + 1) // warps):
            for batch in range(i * n_pairs // slices * _SHARING, (i + 1) * n_pairs // slices * _SHARING):
                loss += train_batch(tables, pairs, True, batch, alpha, words, scratch, lane)
            for batch in range(i * n_noise // slices * _SHARING, (i + 1) * n_noise // slices * _SHARING):
                loss += train_batch(tables, noise, False, batch, alpha, words, scratch, lane)
        loss = warp.sum_of_sums(loss)
        if lane == 0:
            cuda.atomic.add(totals, 1, float(loss))

    return WarpKernel(run)


@device
def _list_targets(items: Any, positive: Any, batch: Any, words: Any, scratch: Any, lane: Any) -> None:
    """List the targets of a batch: shared negatives, and the target of each item alone, its center or a negative."""
    state = np.uint64(draw(items.key, batch // _SHARING))
    for k in range(lane, items.shared + BATCH, LANES):
        item = k - items.shared
        # Casts: under the simulator these functions return Python's numbers
        bits = np.uint64(draw_negative_bits(state, k if item < 0 else k + batch % _SHARING * BATCH))
        slot = np.uint64(below(bits, words.size))
        drawn = np.int32(choose(slot, words[slot], bits))
        if item < 0:
            scratch.listed[np.uint64(k)] = drawn
        elif positive and _item_index(items, batch, item) < items.pairs.size:
            scratch.own[np.uint64(item)] = _center_of(items, batch, item)
        else:
            scratch.own[np.uint64(item)] = drawn


@device
def _center_of(items: Any, batch: Any, item: Any) -> Any:
    """Return the row of an item's center: -1 if it is in another partition, -2 if there is no such item."""
    index = _item_index(items, batch, item)
    if index >= items.pairs.size:
        return np.int32(-2)
    half = row_bits(items.pairs)
    # Unsigned as well: else Numba compares both as float64
    center = np.uint64(unpack_center(at(items.pairs, index), half))
    return np.int32(-1) if center == np.uint64(missing_row(half)) else np.int32(center)


@device
def _context_of(items: Any, batch: Any, item: Any) -> Any:
    """Return the row of an item's context; -1 if there is no such item."""
    index = _item_index(items, batch, item)
    exists = index < items.pairs.size
    return np.int32(unpack_context(at(items.pairs, index), row_bits(items.pairs))) if exists else np.int32(-1)


@device
def _sign_of(items: Any, batch: Any, item: Any, number: Any, scratch: Any) -> Any:
    """Return the sign of listed negative `number` for an item: 0 if it is the item's center, or there is no item."""
    center = _center_of(items, batch, item)
    return -_ONE if center > -2 and at(scratch.listed, number) != center else _NONE


def _make_own_trainer(width: int, adds_four: bool) -> Callable[..., Any]:
    """Return the device function that trains each item of a batch against the target that it meets alone."""
    read_fresh, add = warp.reading(width, warp.load4_fresh), make_adder(width, adds_four)
    floats = floats_of(width)

    @device
    def train_own(tables: Any, items: Any, positive: Any, batch: Any, alpha: Any, scratch: Any, lane: Any) -> Any:
        """Train each item against the target that it meets alone."""
        lane_item = lane // SHARE
        sync_warp()  # until all lanes have read the gains
        for t in range(SUMS):
            scratch.dots[t] = _NONE
        for item in range(BATCH):
            read_fresh(tables.output, np.int64(at(scratch.own, item)) * width, lane, scratch.near, item)
            for k in range(floats):
                scratch.dots[item] += scratch.rows[item, k] * scratch.near[item, k]
        sign, center = _NONE, _center_of(items, batch, lane_item)
        if lane_item < BATCH and center > -2:
            sign = _ONE if positive else _NONE if at(scratch.own, lane_item) == center else -_ONE
        gain, loss = gradient(sums_of_lanes(lane, scratch.dots), sign, alpha)
        if lane % SHARE == 0:
            scratch.gains[np.uint64(lane_item)] = gain
        sync_warp()
        for item in range(BATCH):
            gain = at(scratch.gains, item)
            for k in range(floats):
                scratch.updates[item, k] += gain * scratch.near[item, k]
                scratch.near[item, k] = gain * scratch.rows[item, k]
            if _item_index(items, batch, item) < items.pairs.size:
                word = at(scratch.own, item)
                add(tables.output, tables.output_touched, tables.in_flight, word, lane, scratch.near, item)
        return loss

    return train_own


def _make_batch_trainer(width: int, adds_four: bool) -> Callable[..., Any]:
    """Return the device function that trains a batch of BATCH items; it returns the loss of the lane."""
    read = batches.make_context_reader(width, _context_of)
    add = batches.make_context_adder(width, adds_four, _context_of)
    train_shared = batches.make_listed_trainer(width, adds_four, _sign_of)
    train_own, size = _make_own_trainer(width, adds_four), group_size(width)

    @device
    def train_batch(
        tables: Any, items: Any, positive: Any, batch: Any, alpha: Any, words: Any, scratch: Any, lane: Any
    ) -> Any:
        """Train the items of a batch against negatives that they share, and one target each."""
        sync_warp()  # until all lanes have read the lists
        _list_targets(items, positive, batch, words, scratch, lane)
        read(tables, items, batch, scratch, lane)
        sync_warp()
        loss = _NONE
        for first in range(0, items.shared, size):
            loss += train_shared(tables, items, batch, items.shared, first, alpha, scratch, lane)
        loss += train_own(tables, items, positive, batch, alpha, scratch, lane)
        add(tables, items, batch, scratch, lane)
        return loss

    return train_batch
