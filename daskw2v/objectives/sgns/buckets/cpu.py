"""SGNS on the CPU over a bucket: pairs of which one partition holds all contexts, another all centers and negatives.

Batches of ITEMS pairs are trained one after the other. The pairs of a batch share negatives, which are drawn from the
partition of the centers, and all dot products of a batch are computed before a row moves. Neighbours often have the
same center, whose row would then move by the sum of independent steps, and each step would wait for the one before. So
the items are cut into ITEMS ranges of equal length, and a batch has one item of each. An item is a pair, or noise: it
has a further negative instead of its center.

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
from daskw2v.objectives.cpu.hidden import EACH, OWN, Registers, make_registers, train_rows
from daskw2v.objectives.cpu.scratch import Scratch, make_scratch, read_loss, scratch_addresses
from daskw2v.objectives.cpu.steps import group_sizes
from daskw2v.objectives.noise import BATCH
from daskw2v.sampling.hierarchy import draw_negative_row
from daskw2v.sampling.pairs import Pairs, row_bits, unpack_center, unpack_context
from daskw2v.types import Float32Array, UInt64Array

ALONE = HotRows(0, 0, 0, 1)  # no copies
NOISE = np.uint64(0x8CB92BA72F3D8DD7)  # makes the draws of noise differ from the draws of pairs
ITEMS = 2 * BATCH  # of a batch; registers hold BATCH items at a time
_DIFFERS = 2  # flag of a batch whose signs differ from those of most batches; half of it: the signs in its memory do
_LISTED = RUN // 2  # batches whose targets are listed at once
SLICE = _LISTED - 1  # largest number of batches of a slice: the last one prefetches the rows listed behind it


class Items(NamedTuple):
    """Pairs or noise as packed pairs, the number of negatives that each batch shares, and the key of their draws."""

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
    noise_negative: int,
    words: UInt64Array,
    key: np.uint64,
) -> tuple[int, float]:
    """Train the pairs and the noise of a bucket in place; return the number of pairs, and the summed loss of all.

    Parameters
    ----------
    pairs
        Rows in the two partitions, packed (`sampling.pairs`), shape (n,).
    noise
        Pairs, packed likewise, that are trained with negatives only, shape (m,); the center of each may be in another
        partition.
    source, output
        The input rows of the contexts' partition and the output rows of the centers', flat float32.
    width
        Row length in floats, a multiple of 16.
    alpha
        Learning rate.
    negative, noise_negative
        Number of negatives of a pair, which its batch shares, and of an item of noise, of which its batch shares all
        but one; 0 for none. A negative that is the center of an item does not count for it.
    words
        `sampling.hierarchy.make_word_table` of the centers' partition: the alias table of its words.
    key
        Key of the stream of the bucket's draws.
    """
    shared = max(noise_negative - 1, 0)
    tables, scratch = Tables(source, output, width, ALONE), _make_scratch(get_ident(), width, max(negative, shared))
    pair_items = Items(pairs, negative, key), _make_registers(negative)
    noise_items = (Items(noise, shared, key ^ NOISE), _make_registers(shared)) if len(noise) else (None, None)
    return len(pairs), float(_train(tables, np.float32(alpha), words, scratch, *pair_items, *noise_items))


def _make_registers(negative: int) -> Registers:
    """Return the `Registers` of batches that share `negative` negatives, which may be 0."""
    return make_registers(BATCH, group_sizes(negative, OWN)[1] if negative else 0)


@inline
def count_batches(n: Any) -> Any:
    """Return the number of batches of n items, which is also the distance of a batch's items."""
    return (n + ITEMS - 1) // ITEMS


@lru_cache(maxsize=256)
def _make_scratch(thread: int, width: int, negative: int) -> Scratch:
    """Return the working memory of a thread for batches that share at most `negative` negatives, cached."""
    groups, size = group_sizes(max(negative, 1), OWN)
    rows, signs = groups * size + 2 * ITEMS, groups * ITEMS * len(EACH)
    empty = np.empty(0, np.float32)
    return make_scratch(Tables(empty, empty, width, ALONE), 1, _LISTED, groups, rows, signs, ITEMS)


@kernel
def _train(
    tables: Any, alpha: Any, words: Any, scratch: Any, pairs: Any, registers: Any, noise: Any, noise_registers: Any
) -> Any:
    """Train slices, ranges of batches, of pairs and of noise in turn, in proportion; return the summed loss.

    `pairs` and `noise` are `Items`, `registers` and `noise_registers` are their `Registers`. Without noise, `noise` and
    `noise_registers` are None, and the code has no branches for noise. `words` is as in `train_bucket`. `scratch.sizes`
    has a 1 for each batch of a slice whose signs in memory differ from the signs of most batches of the kind.
    """
    scratch.mantissa[:], scratch.exponent[:], scratch.sizes[:] = 1.0, 0, 1
    n_pairs, n_noise = count_batches(len(pairs.pairs)), 0
    if noise is not None:
        n_noise = count_batches(len(noise.pairs))
    n = (max(n_pairs, n_noise) + SLICE - 1) // SLICE
    for i in range(n):
        first, last = i * n_pairs // n, (i + 1) * n_pairs // n
        _train_slice(pairs, first, last, True, tables, alpha, words, scratch, registers)
        if noise is not None:
            scratch.sizes[:] = 1
            first, last = i * n_noise // n, (i + 1) * n_noise // n
            _train_slice(noise, first, last, False, tables, alpha, words, scratch, noise_registers)
            scratch.sizes[:] = 1
    return read_loss(scratch)


@kernel
def _train_slice(
    items: Any, first: Any, last: Any, positive: Any, tables: Any, alpha: Any, words: Any, scratch: Any, registers: Any
) -> None:
    """Train the batches first..last-1, at most SLICE, of pairs if `positive`, or of noise.

    Batch i has item i of each range.
    """
    work, size, width = scratch_addresses(scratch), len(registers.tile), tables.width
    groups = max(items.shared + size - 1, 1) // max(size, 1)
    n_rows, n_signs = groups * size + 2 * ITEMS, groups * ITEMS * len(registers.each)
    signs = scratch.signs[: _LISTED * n_signs].reshape(_LISTED, groups, -1)
    _write_batches(items, first, last, positive, table_addresses(tables), words, scratch, n_rows, signs, registers)
    for i in range(last - first):
        own_rows = work.rows + 8 * n_rows * i
        vectors = own_rows + 8 * ITEMS
        shared = WindowTargets(vectors + 8 * ITEMS, 1, 8 * n_rows, groups, work.signs + 4 * n_signs * i)
        train_rows(work, vectors, shared, own_rows, width, alpha, ITEMS, registers)


@inline
def _write_batches(
    items: Any, first: Any, last: Any, positive: Any, tables: Any, words: Any, scratch: Any, n_rows: Any, signs: Any,
    registers: Any,
) -> None:  # fmt: skip
    """Write the rows and signs of the batches first..last-1: of pairs if `positive`, or of noise.

    The `n_rows` rows of a batch are listed one after another: centers (of noise: the items' own negatives), contexts,
    and shared negatives. Loops of constant length with unsigned indices become vector code.
    """
    pairs, source, output, row = items.pairs, tables.source, tables.output, 4 * tables.width
    rows, states, changes, half = scratch.rows, scratch.states, scratch.sizes, row_bits(items.pairs)
    n, n_shared, width, n_items = last - first, n_rows - 2 * ITEMS, np.uint64(n_rows), np.uint64(ITEMS)
    shared, tile = np.uint64(2 * ITEMS), np.uint64(len(registers.tile))
    apart = count_batches(len(pairs))
    n_complete = max(0, min(n, len(pairs) - (ITEMS - 1) * apart - first))
    for i in range(n):
        states[i] = draw(items.key, first + i)
    for k in range(n_shared):
        for i in range(n):
            rows[np.uint64(i) * width + shared + np.uint64(k)] = output + draw_negative_row(states[i], k, words) * row
    start, step = np.uint64(first), np.uint64(apart)
    for i in range(np.uint64(n_complete)):
        offset = i * width
        for item in range(n_items):
            rows[offset + item] = output + unpack_center(pairs[start + i + item * step], half) * row
        for item in range(n_items):
            rows[offset + n_items + item] = source + unpack_context(pairs[start + i + item * step], half) * row
    for i in range(n_complete, n):
        offset = i * n_rows
        for item in range(ITEMS):
            index = item * apart + first + i
            pair = pairs[index if index < len(pairs) else first + i]  # an item that does not exist moves no row
            rows[offset + item] = output + unpack_center(pair, half) * row
            rows[offset + ITEMS + item] = source + unpack_context(pair, half) * row
        changes[i] |= _DIFFERS
    for k in range(shared, width, max(tile, np.uint64(1))):
        for i in range(n_complete):
            offset, same = np.uint64(i) * width, False
            for t in range(tile):
                drawn = rows[offset + k + t]
                for item in range(n_items):
                    same |= rows[offset + item] == drawn
            if same:
                changes[i] |= _DIFFERS
    for i in range(n):
        offset, n_inside = i * n_rows, (len(pairs) - 1 - first - i) // apart + 1
        if changes[i]:
            _write_signs(rows[offset : offset + n_rows], items.shared, n_inside, signs[i], registers)
            changes[i] //= _DIFFERS
        for item in range(0 if positive else ITEMS):
            drawn = output + draw_negative_row(states[i], items.shared + item, words) * row
            if item < n_inside:
                own_sign = (item + 1) * len(registers.each) - 1
                signs[i, -1, own_sign] = np.float32(0.0 if drawn == rows[offset + item] else -1.0)
            rows[offset + item] = drawn


@inline
def _write_signs(rows: Any, n_shared: Any, n_items: Any, signs: Any, registers: Any) -> None:
    """Write the signs of a batch: 1 for an item's own center, -1 for each negative, 0 for items from `n_items` on.

    A negative that is the center of an item has sign 0 for it. `rows` has addresses: of centers, of contexts and of
    `n_shared` negatives. `signs` has the shape (groups, ITEMS * len(registers.each)).
    """
    size, n_each = len(registers.tile), len(registers.each)
    signs[:] = 0.0
    for item in range(n_items):
        for k in range(n_shared):
            same = rows[item] == rows[2 * ITEMS + k]
            signs[k // size, item * n_each + k % size] = np.float32(0.0 if same else -1.0)
        signs[-1, (item + 1) * n_each - 1] = 1.0
