"""Skip-gram with hierarchical softmax on an NVIDIA GPU over a bucket: a warp for each run of its steps.

Steps, and their order, are those of `sg_hs.buckets.cpu`. A step is trained BATCH contexts at a time, which stay in
registers until they have met all nodes of the center's path, group by group. Updates are added atomically, and rows
that many warps have at a time take shorter steps, as `objectives.cuda.access` says.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numba import cuda, float32, int32

from daskw2v.kernels.cuda.gpus import WarpKernel, launch
from daskw2v.kernels.cuda.warp import SUMS, at, device, floats_of, kernel, sum_of_sums, sync_warp
from daskw2v.objectives.base import DeviceTables
from daskw2v.objectives.cuda import batches
from daskw2v.objectives.cuda.access import gpu_adds_four, make_warp_tables
from daskw2v.objectives.cuda.batches import group_size, row_bits
from daskw2v.objectives.cuda.shape import kernel_tables
from daskw2v.objectives.noise import BATCH
from daskw2v.objectives.sg_hs.buckets.cpu import cut_steps, find_stride
from daskw2v.sampling.pairs import Pairs, unpack_center, unpack_context
from daskw2v.types import UInt64Array
from daskw2v.vocabulary.huffman import ALONE, read_link

_RUN = 128  # smallest number of steps that a warp trains
_DEPTH = 16  # nodes: kernels are compiled for a multiple of this number
_NONE, _ONE = np.float32(0.0), np.float32(1.0)


class _PathScratch(NamedTuple):
    """The memory of a warp: nodes of a path, their signs, gains; of each lane: contexts, their updates, nodes, sums."""

    listed: Any
    signs: Any
    gains: Any
    rows: Any
    updates: Any
    near: Any
    dots: Any


class _Step(NamedTuple):
    """The packed pairs of a bucket, and the index behind a step's last pair."""

    pairs: Any
    stop: int


def train_bucket(pairs: Pairs, tables: DeviceTables, alpha: float, links: UInt64Array) -> None:
    """Train the pairs of a bucket as `sg_hs.buckets.cpu.train_bucket` does; wait until they are trained.

    The tables are on the GPU, and the loss is added to tables.totals[1].
    """
    bounds = cut_steps(pairs)
    n = len(bounds) - 1
    if n:
        device_pairs, device_bounds, tree = map(cuda.to_device, (pairs, bounds, links))
        kernel = compile_kernel(tables.width, -(-max(1, int(links[-1])) // _DEPTH) * _DEPTH, gpu_adds_four())
        warps = max(1, min(tables.max_in_flight, n // _RUN))
        arguments = device_pairs, device_bounds, find_stride(n), np.float32(alpha), tree, tables.totals
        launch(kernel, warps, tables.stream, kernel_tables(tables), *arguments)
        tables.stream.synchronize()  # before the arrays that the kernel reads are released


@lru_cache(maxsize=64)
def compile_kernel(width: int, depth: int, adds_four: bool) -> WarpKernel:
    """Return the kernel for rows of `width` floats and paths of at most `depth` nodes."""
    floats, gains_size, near_size = floats_of(width), BATCH * SUMS, group_size(width)
    train_batch = _make_batch_trainer(width, adds_four)

    @kernel
    def run(trained: Any, pairs: Any, bounds: Any, stride: Any, alpha: Any, links: Any, totals: Any) -> None:
        lane = cuda.threadIdx.x
        scratch = _PathScratch(  # one a line: the simulator knows shared arrays by theirs
            cuda.shared.array(depth, int32),
            cuda.shared.array(depth, float32),
            cuda.shared.array(gains_size, float32),
            cuda.local.array((BATCH, floats), float32),
            cuda.local.array((BATCH, floats), float32),
            cuda.local.array((near_size, floats), float32),
            cuda.local.array(SUMS, float32),
        )
        tables, n, loss = make_warp_tables(trained, cuda.gridDim.x), bounds.size - 1, _NONE
        warp, warps = cuda.blockIdx.x, cuda.gridDim.x
        for i in range(n * warp // warps, n * (warp + 1) // warps):
            number = i * stride % n
            start, step = at(bounds, number), _Step(pairs, at(bounds, number + 1))
            center = unpack_center(at(pairs, start), row_bits(pairs))
            sync_warp()  # until all lanes have read the path
            n_nodes = _list_path(center, links, scratch, lane)
            sync_warp()
            for batch in range(start, step.stop, BATCH):
                loss += train_batch(tables, step, batch, n_nodes, alpha, scratch, lane)
        loss = sum_of_sums(loss)
        if lane == 0:
            cuda.atomic.add(totals, 1, float(loss))

    return WarpKernel(run)


@device
def _list_path(word: Any, links: Any, scratch: Any, lane: Any) -> Any:
    """List the nodes of a word's path and their signs in shared memory; return the number of nodes."""
    n, n_words, link = int32(0), links.size // 2, np.uint64(at(links, word))
    is_inside = link != ALONE
    while is_inside:
        node, turn, is_root = read_link(link)
        if lane == 0:
            scratch.listed[np.uint64(n)] = int32(node)
            scratch.signs[np.uint64(n)] = -_ONE if turn else _ONE
        n = int32(n + 1)
        is_inside = not is_root
        link = np.uint64(at(links, n_words + node))
    return n


@device
def _context_of(step: Any, batch: Any, item: Any) -> Any:
    """Return the row of the context of pair batch + item; -1 if the step has no such pair."""
    index = batch + item
    return np.int32(unpack_context(at(step.pairs, index), row_bits(step.pairs))) if index < step.stop else np.int32(-1)


@device
def _sign_of(step: Any, batch: Any, item: Any, number: Any, scratch: Any) -> Any:
    """Return the sign of listed node `number`; 0 if the step has no pair batch + item."""
    return at(scratch.signs, number) if batch + item < step.stop else _NONE


def _make_batch_trainer(width: int, adds_four: bool) -> Callable[..., Any]:
    """Return the device function that trains a batch of contexts of a step."""
    read = batches.make_context_reader(width, _context_of)
    add = batches.make_context_adder(width, adds_four, _context_of)
    train_listed, size = batches.make_listed_trainer(width, adds_four, _sign_of), group_size(width)

    @device
    def train_batch(tables: Any, step: Any, batch: Any, n_nodes: Any, alpha: Any, scratch: Any, lane: Any) -> Any:
        """Train the contexts of a step's pairs from `batch` on, at most BATCH, against the nodes of its path."""
        read(tables, step, batch, scratch, lane)
        loss = _NONE
        for first in range(0, n_nodes, size):
            loss += train_listed(tables, step, batch, n_nodes, first, alpha, scratch, lane)
        add(tables, step, batch, scratch, lane)
        return loss

    return train_batch
