"""Skip-gram with hierarchical softmax on the CPU over a bucket, whose centers are leaves of trees of their own.

Each output partition has trees of its words alone: a path separates a center from the words of its tree, as target
negative sampling separates it from words of its partition. So a path needs no row of another partition, and with 64
trees it is about six nodes shorter than in one tree of all words.

A step is a run of neighbouring pairs with the same center, at most MAX_CONTEXTS, which are trained together, as the
contexts of a window are. Steps are trained in an order that separates neighbours: pairs are ordered by center, centers
by count, and hundreds of paths in a row would turn the same way at a root.
"""

from functools import lru_cache
from threading import get_ident
from typing import Any

import numpy as np

from daskw2v.kernels.jit import kernel
from daskw2v.objectives.base import HotRows, Tables
from daskw2v.objectives.cpu.centers import RUN, source_row, table_addresses
from daskw2v.objectives.cpu.scratch import Scratch, make_scratch, read_loss, scratch_addresses
from daskw2v.objectives.cpu.skip_gram import train_contexts
from daskw2v.objectives.cpu.steps import MAX_TARGETS, prefetch_row, store_int64
from daskw2v.objectives.cpu.targets import PATHS, write_linked_path
from daskw2v.sampling.pairs import Pairs, row_bits, unpack_center, unpack_context
from daskw2v.types import UInt64Array

MAX_CONTEXTS = 8  # contexts that are trained together

_train_listed = PATHS.trainer(train_contexts)


def train_bucket(pairs: Pairs, tables: Tables, alpha: float, links: UInt64Array) -> tuple[int, float]:
    """Train the pairs of a bucket in place; return their number, and their summed loss.

    Parameters
    ----------
    pairs
        Rows in the two partitions, packed (`sampling.pairs`), shape (n,).
    tables
        The input rows of the contexts' partition, and the nodes of the centers' trees; without copies of rows.
    alpha
        Learning rate.
    links
        `objectives.tree.make_linked_trees` of the centers' partition, shape (2 * words,).
    """
    scratch = _make_scratch(get_ident(), tables.width, max(1, -(-int(links[-1]) // MAX_TARGETS)))
    return len(pairs), float(_train(pairs, tables, np.float32(alpha), links, scratch))


@lru_cache(maxsize=256)
def _make_scratch(thread: int, width: int, groups: int) -> Scratch:
    """Return the working memory of a thread for paths of at most `groups` groups of MAX_TARGETS nodes, cached."""
    n, empty = groups * MAX_TARGETS, np.empty(0, np.float32)
    return make_scratch(Tables(empty, empty, width, HotRows(0, 0, 0, 1)), MAX_CONTEXTS // 2, RUN, groups, n, n)


@kernel
def _train(pairs: Any, tables: Any, alpha: Any, links: Any, scratch: Any) -> Any:
    """Train the pairs of a bucket step by step, in the order of `find_stride`; return the summed loss.

    Arguments are as in `train_bucket`; `scratch` is the result of `_make_scratch`.
    """
    scratch.mantissa[:], scratch.exponent[:] = 1.0, 0
    addresses, work, half = table_addresses(tables), scratch_addresses(scratch), row_bits(pairs)
    rows, signs = scratch.rows.reshape(RUN, -1), scratch.signs[: len(scratch.rows)].reshape(RUN, -1)
    bounds = cut_steps(pairs)
    n = len(bounds) - 1
    stride = find_stride(n)
    for start in range(0, n, RUN - 1):
        last = min(start + RUN - 1, n)
        for i in range(start, min(last + 1, n)):  # the last step is listed for its prefetch only
            center = unpack_center(pairs[bounds[i * stride % n]], half)
            scratch.sizes[i - start] = write_linked_path(center, links, addresses, rows, signs, i - start)
        for i in range(start, last):
            step, next_step = i * stride % n, (i + 1) * stride % n
            first, end = bounds[step], bounds[step + 1]
            for k in range(first, end):
                store_int64(work.contexts, k - first, source_row(addresses, unpack_context(pairs[k], half)))
            for k in range(bounds[next_step], bounds[next_step + 1]):
                prefetch_row(source_row(addresses, unpack_context(pairs[k], half)), addresses.width)
            _train_listed(work, end - first, i - start, addresses.width, alpha, ())
    return read_loss(scratch)


@kernel
def cut_steps(pairs: Any) -> Any:
    """Return the bounds of a bucket's n steps in its pairs, shape (n + 1,) int64."""
    half, bounds = row_bits(pairs), np.empty(len(pairs) + 1, np.int64)
    n, bounds[0] = 0, 0
    for i in range(1, len(pairs) + 1):
        if (
            i == len(pairs)
            or i - bounds[n] == MAX_CONTEXTS
            or unpack_center(pairs[i], half) != unpack_center(pairs[i - 1], half)
        ):
            n += 1
            bounds[n] = i
    return bounds[: n + 1].copy()


@kernel
def find_stride(n: Any) -> Any:
    """Return the distance between consecutively trained steps of n, modulo n, with which each is trained once.

    Step i * stride % n is the i-th to be trained.
    """
    stride = np.int64(n * 0.6180339887498949)
    while True:
        a, b = n, stride
        while b:
            a, b = b, a % b
        if a <= 1:
            return stride
        stride += 1
