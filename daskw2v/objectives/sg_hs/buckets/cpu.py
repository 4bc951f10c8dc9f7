"""Skip-gram with hierarchical softmax on the CPU over a bucket, whose centers are leaves of a tree of their own.

Each output partition has a tree of its words alone: a bucket says which word of its partition a center is, as target
negative sampling tells a center from words of its partition only. So a path needs no row of another partition, and is
log2(p) nodes shorter than in one tree of all words.

Neighbours with the same center are trained together, MOST at a time, as the contexts of a window are.
"""

from functools import lru_cache
from threading import get_ident
from typing import Any

import numpy as np

from daskw2v.kernels.jit import inline, kernel
from daskw2v.objectives.base import HotRows, Tables
from daskw2v.objectives.cpu.centers import RUN, source_row, table_addresses
from daskw2v.objectives.cpu.paths import PATHS, write_linked_path
from daskw2v.objectives.cpu.scratch import Scratch, loss_of, make_scratch, scratch_addresses
from daskw2v.objectives.cpu.skip_gram import train_contexts
from daskw2v.objectives.cpu.steps import MAX_TARGETS, prefetch_row, store_int64
from daskw2v.sampling.pairs import Pairs, center_of, context_of, half_of
from daskw2v.types import UInt64Array

MOST = 8  # contexts that are trained together

_train_listed = PATHS.trainer(train_contexts)


def train_bucket(pairs: Pairs, tables: Tables, alpha: float, links: UInt64Array) -> tuple[int, float]:
    """Train the pairs of a bucket in place; return their number, and their summed loss.

    Parameters
    ----------
    pairs
        Rows in the two partitions, shape (n,).
    tables
        The input rows of the contexts' partition, and the nodes of the tree of the centers'; no row has a copy.
    alpha
        Learning rate.
    links
        `vocabulary.huffman.huffman_links` of the centers' partition.
    """
    scratch = _scratch(get_ident(), tables.width, max(1, -(-int(links[-1]) // MAX_TARGETS)))
    return len(pairs), float(_train(pairs, tables, np.float32(alpha), links, scratch))


@lru_cache(maxsize=256)
def _scratch(thread: int, width: int, groups: int) -> Scratch:
    """Return a thread's own scratch."""
    n, none = groups * MAX_TARGETS, np.empty(0, np.float32)
    return make_scratch(Tables(none, none, width, HotRows(0, 0, 0, 1)), MOST // 2, RUN, groups, n, n)


@kernel
def _train(pairs: Any, tables: Any, alpha: Any, links: Any, scratch: Any) -> Any:
    scratch.mantissa[:], scratch.exponent[:] = 1.0, 0
    there, work, half = table_addresses(tables), scratch_addresses(scratch), half_of(pairs)
    bounds = np.empty(RUN + 1, np.int64)  # of the steps that are listed
    start, known = 0, 0
    while start < len(pairs):
        steps = _write(pairs, start, links, there, scratch, bounds)
        known = bounds[steps]
        last = steps if known == len(pairs) else steps - 1  # the last is listed for its prefetch only
        for step in range(last):
            first, end = bounds[step], bounds[step + 1]
            for i in range(first, end):
                store_int64(work.contexts, i - first, source_row(there, context_of(pairs[i], half)))
            for i in range(end, bounds[min(step + 2, steps)]):
                prefetch_row(source_row(there, context_of(pairs[i], half)), there.width)
            _train_listed(work, end - first, step, there.width, alpha, ())
        start = bounds[last]
    return loss_of(scratch)


@inline
def _write(pairs: Any, start: Any, links: Any, tables: Any, scratch: Any, bounds: Any) -> Any:
    """List the steps from a pair on, at most RUN: their bounds and their paths; return their number."""
    rows, signs = scratch.rows.reshape(RUN, -1), scratch.signs[: len(scratch.rows)].reshape(RUN, -1)
    half = half_of(pairs)
    steps, i = 0, start
    bounds[0] = start
    while steps < RUN and i < len(pairs):
        center = center_of(pairs[i], half)
        i += 1
        while i < min(len(pairs), bounds[steps] + MOST) and center_of(pairs[i], half) == center:
            i += 1
        scratch.sizes[steps] = write_linked_path(center, links, tables, rows, signs, steps)
        steps += 1
        bounds[steps] = i
    return steps
