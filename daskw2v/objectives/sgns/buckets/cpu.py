"""SGNS on the CPU over a bucket: pairs of which one partition holds all contexts, another all centers and negatives.

Batches of ITEMS pairs are trained one after the other. The pairs of a batch share negatives, which are drawn from the
partition of the centers, and all dot products of a batch are taken before a row moves. Neighbours often have the same
center. Where a pair has its center, noise has a negative that it does not share.

With target negative sampling (Stergiou et al. 2017) a bucket has all that its pairs need. With the other rules, which
draw negatives elsewhere, a pair is several items, each in a bucket of its own: its center without negatives, and noise,
which is negatives without the center. A bucket trains slices of both in turn: centers alone pull all rows together, and
few of them may do so before noise drives the rows apart again.
"""

from functools import lru_cache
from threading import get_ident
from typing import Any, NamedTuple

import numpy as np

from daskw2v.kernels.jit import inline, kernel
from daskw2v.kernels.rng import draw
from daskw2v.objectives.base import HotRows, Tables
from daskw2v.objectives.cpu.centers import RUN, WindowTargets, table_addresses
from daskw2v.objectives.cpu.hidden import OWN, train_rows
from daskw2v.objectives.cpu.scratch import Scratch, loss_of, make_scratch, scratch_addresses
from daskw2v.objectives.cpu.steps import MAX_TARGETS, group_sizes
from daskw2v.objectives.noise import BATCH
from daskw2v.sampling.hierarchy import row_of_negative
from daskw2v.sampling.pairs import Pairs, center_of, context_of, half_of
from daskw2v.types import Float32Array, UInt64Array

ALONE = HotRows(0, 0, 0, 1)  # no copies
NOISE = np.uint64(0x8CB92BA72F3D8DD7)  # sets the draws of noise apart from those of pairs
ITEMS = 2 * BATCH  # of a batch; registers hold BATCH of them at a time
_LISTED = RUN // 2  # batches whose targets are listed at once
SLICE = _LISTED - 1  # batches, at most: the last one prefetches what stands behind its rows


class Items(NamedTuple):
    """Pairs, or noise, and how many negatives each batch shares besides its own targets."""

    pairs: Any
    shared: int
    key: np.uint64


def train_bucket(
    pairs: Pairs,
    noise: Pairs,
    source: Float32Array,
    output: Float32Array,
    width: int,
    alpha: float,
    negative: int,
    each: int,
    words: UInt64Array,
    key: np.uint64,
) -> tuple[int, float]:
    """Train the pairs and the noise of a bucket in place; return the number of pairs, and the summed loss of all.

    Parameters
    ----------
    pairs
        Rows in the two partitions, shape (n,).
    noise
        The same of what is trained with negatives only, shape (m,); some have their center in another partition.
    source, output
        The input rows of the contexts' partition and the output rows of the centers', flat float32.
    width
        Row length in floats, a multiple of 16.
    alpha
        Learning rate.
    negative, each
        Negatives of a pair, all of which are shared, and of an item of noise, which are shared but for one; 0 for none.
        A center is no negative of its own.
    words
        `sampling.hierarchy.word_table` of the centers' partition.
    key
        Stream of the bucket's draws.
    """
    shared = max(each - 1, 0)
    tables, scratch = Tables(source, output, width, ALONE), _scratch(get_ident(), width, max(negative, shared))
    loss = _train(
        Items(pairs, negative, key), Items(noise, shared, key ^ NOISE), tables, np.float32(alpha), words, scratch,
        (0,) * BATCH, _tile(negative), _tile(shared),
    )  # fmt: skip
    return len(pairs), float(loss)


def _tile(negative: int) -> tuple[int, ...]:
    return (0,) * group_sizes(negative, OWN)[1] if negative else ()


@lru_cache(maxsize=256)
def _scratch(thread: int, width: int, negative: int) -> Scratch:
    """Return a thread's own scratch: made for each bucket, it would take as long as 700 pairs."""
    groups, size = group_sizes(max(negative, 1), OWN)
    rows, signs = groups * size + 2 * ITEMS, groups * ITEMS * MAX_TARGETS
    none = np.empty(0, np.float32)
    return make_scratch(Tables(none, none, width, ALONE), 1, _LISTED, groups, rows, signs, ITEMS)


@kernel
def _train(
    pairs: Any, noise: Any, tables: Any, alpha: Any, words: Any, scratch: Any, batch: Any, tile: Any, noise_tile: Any
) -> Any:
    """Train slices of pairs and of noise in turn, in proportion.

    `scratch.sizes` has a 1 for each batch whose signs are not those of most batches of the kind.
    `pairs` and `noise` are `Items`; `batch` and the tiles are tuples as long as registers hold items, and a group of
    each kind has negatives.
    """
    scratch.mantissa[:], scratch.exponent[:], scratch.sizes[:] = 1.0, 0, 1
    n_pairs, n_noise = (len(pairs.pairs) + ITEMS - 1) // ITEMS, (len(noise.pairs) + ITEMS - 1) // ITEMS
    n = (max(n_pairs, n_noise) + SLICE - 1) // SLICE
    for i in range(n):
        first, last = i * n_pairs // n, (i + 1) * n_pairs // n
        _train_slice(pairs, first, last, True, tables, alpha, words, scratch, batch, tile)
        if n_noise == 0:
            continue
        scratch.sizes[:] = 1
        first, last = i * n_noise // n, (i + 1) * n_noise // n
        _train_slice(noise, first, last, False, tables, alpha, words, scratch, batch, noise_tile)
        scratch.sizes[:] = 1
    return loss_of(scratch)


@kernel
def _train_slice(
    items: Any, first: Any, last: Any, positive: Any, tables: Any, alpha: Any, words: Any, scratch: Any, batch: Any,
    tile: Any,
) -> None:  # fmt: skip
    """Train the batches first..last-1, at most SLICE; batch i has the items i * ITEMS and the next."""
    work, size, width = scratch_addresses(scratch), len(tile), tables.width
    groups = max(items.shared + size - 1, 1) // max(size, 1)
    n_shared, n_signs = groups * size, groups * ITEMS * MAX_TARGETS
    rows = scratch.rows[: (n_shared + 2 * ITEMS) * _LISTED].reshape(-1, _LISTED)
    signs = scratch.signs[: _LISTED * n_signs].reshape(_LISTED, groups, -1)
    _draw(items, first, last, positive, table_addresses(tables), words, scratch, rows, signs, size)
    own, vectors = work.rows + n_shared * _LISTED * 8, work.rows + (n_shared + ITEMS) * _LISTED * 8
    for i in range(last - first):
        at = 8 * i
        shared = WindowTargets(work.rows + at, _LISTED, 8, groups, work.signs + 4 * n_signs * i)
        train_rows(work, vectors + at, shared, own + at, width, alpha, ITEMS, batch, tile)


@inline
def _draw(
    items: Any, first: Any, last: Any, positive: Any, tables: Any, words: Any, scratch: Any, rows: Any, signs: Any,
    size: Any,
) -> None:  # fmt: skip
    """Write the rows and signs of the batches first..last-1: of pairs if `positive`, or of noise."""
    n, n_shared, groups, row = last - first, len(rows) - 2 * ITEMS, signs.shape[1], 4 * tables.width
    pairs, source, output, states, meets = items.pairs, tables.source, tables.output, scratch.states, scratch.sizes
    half = half_of(pairs)
    for i in range(n):
        states[i] = draw(items.key, first + i)
    for k in range(n_shared):
        drawn = rows[k]
        for i in range(n):
            drawn[i] = output + row_of_negative(states[i], k, words) * row
    _sign(items.shared, n, signs, meets, size)
    for item in range(ITEMS):
        own, vectors = rows[n_shared + item], rows[n_shared + ITEMS + item]
        start, lane = first * ITEMS + item, item * MAX_TARGETS
        inside = min(n, max((len(pairs) - start + ITEMS - 1) // ITEMS, 0))
        for i in range(inside):
            pair = pairs[start + i * ITEMS]
            own[i] = output + center_of(pair, half) * row  # of no word where that is in another partition
            vectors[i] = source + context_of(pair, half) * row
        for k in range(items.shared):
            drawn = rows[k]
            for i in range(inside):
                meets[i] |= np.int64(drawn[i] == own[i])
        for i in range(inside):
            if meets[i]:
                for k in range(items.shared):
                    signs[i, k // size, lane + k % size] = np.float32(0.0 if rows[k, i] == own[i] else -1.0)
        for i in range(0 if positive else inside):
            drawn_row = output + row_of_negative(states[i], items.shared + item, words) * row
            signs[i, groups - 1, lane + OWN] = np.float32(0.0 if drawn_row == own[i] else -1.0)
            own[i] = drawn_row
        for i in range(inside, n):  # no item is left: any rows stand here, and do not move
            own[i], vectors[i] = rows[n_shared, i], source
            signs[i, :, lane : lane + MAX_TARGETS] = 0.0


@inline
def _sign(shared: Any, n: Any, signs: Any, meets: Any, size: Any) -> None:
    """Write the signs of those of n batches that `meets` tells of, as if no center were among its negatives."""
    for i in range(n):
        if meets[i]:
            meets[i] = 0
            signs[i] = 0.0
            for item in range(ITEMS):
                for k in range(shared):
                    signs[i, k // size, item * MAX_TARGETS + k % size] = -1.0
                signs[i, -1, item * MAX_TARGETS + OWN] = 1.0
