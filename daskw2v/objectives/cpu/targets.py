"""Targets of a window on the CPU: a word and its negatives, or the inner nodes on the word's path.

The draws of a run of windows are one loop without branches, so that the compiler makes vector code of it.

A path is spread evenly over its groups, so that few targets only fill up the last one. It is read from the leaf up:
rows near the leaf gain most from being prefetched.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types

from daskw2v.config.params import Params
from daskw2v.kernels import simd
from daskw2v.kernels.alias import pick
from daskw2v.kernels.jit import emitting, inline, kernel
from daskw2v.kernels.rng import GOLDEN, draw, mix
from daskw2v.objectives.base import Tables
from daskw2v.objectives.cpu.centers import RUN, Targets, WindowTargets, output_row
from daskw2v.objectives.cpu.hidden import OWN
from daskw2v.objectives.cpu.scratch import Scratch, make_scratch
from daskw2v.objectives.cpu.steps import MAX_TARGETS, address, floats, group_sizes, load_int64
from daskw2v.objectives.noise import BATCH, Negatives, PreparedNoise, negatives_of, pick_in_market
from daskw2v.objectives.settings import SharedNegatives
from daskw2v.objectives.tree import PreparedTree
from daskw2v.vocabulary.huffman import ALONE, Tree, read_link

SMALLEST = 5  # targets of a group; a shorter path fills up with nodes that do not count

_i32, _i64 = ir.IntType(32), ir.IntType(64)


def _groups_of(params: Params) -> tuple[int, int]:
    """Return the groups that the targets of a window are spread over, and the targets of each."""
    of = SharedNegatives.of(params)
    return group_sizes(1 + of.negative + of.market_negative)


def _shared_groups_of(params: Params) -> tuple[int, int]:
    """Return the groups of a batch and the size of each: shared negatives and the negatives of each window's market."""
    of = SharedNegatives.of(params)
    return group_sizes(of.negative + BATCH * of.market_negative, OWN)


def tile_of(params: Params) -> tuple[int, ...]:
    """Return a tuple as long as a group has targets; being part of a type, its length lets loops unroll."""
    return (0,) * _groups_of(params)[1]


def target_scratch(params: Params, tables: Tables, n_windows: int) -> Scratch:
    """Return the scratch of a kernel that draws the targets of n_windows at once."""
    groups, size = _groups_of(params)
    return make_scratch(tables, params.window, n_windows, groups, groups * size, groups * size)


def shared_tile_of(params: Params) -> tuple[int, ...]:
    """Return a tuple as long as a group of a batch has negatives."""
    return (0,) * _shared_groups_of(params)[1]


def batch_scratch(params: Params, tables: Tables) -> Scratch:
    """Return the scratch of a kernel that draws the targets of RUN batches at once."""
    groups, size = _shared_groups_of(params)
    rows, signs = groups * size + BATCH, groups * BATCH * MAX_TARGETS
    return make_scratch(tables, params.window, RUN, groups, rows, signs, BATCH)


@inline
def draw_targets(words: Any, states: Any, negatives: Any, tables: Any, rows: Any, signs: Any) -> None:
    """Draw the targets of n windows.

    Parameters
    ----------
    words, states
        Each window's word, and the state that its draws start from, shapes (n,).
    negatives, tables
        `objectives.noise.Negatives` and `objectives.cpu.centers.TableAddresses`.
    rows
        Receives the row of target t of window i at [t, i], shape (targets, at least n). The rest of
        the last group is filled with the word, whose sign there is 0.
    signs
        Receives the signs of window i at [i], shape (at least n, targets).
    """
    n = len(words)
    own = rows[0, :n]
    for i in range(n):
        own[i] = output_row(tables, words[i])
        signs[i, 0] = 1.0
    last = 1 + negatives.negative + negatives.market_negative
    for k in range(1, 1 + negatives.negative):
        drawn, salt, table = rows[k, :n], np.uint64(k) * GOLDEN, negatives.table
        for i in range(n):
            drawn[i] = output_row(tables, pick(table, mix(states[i] + salt)))
        for i in range(n):
            signs[i, k] = np.float32(0.0 if drawn[i] == own[i] else -1.0)
    if negatives.market_negative > 0:
        _draw_near(words, states, negatives, tables, rows, signs)
    for k in range(last, len(rows)):
        rows[k, :n] = own


@kernel
def _draw_near(words: Any, states: Any, negatives: Any, tables: Any, rows: Any, signs: Any) -> None:
    """Draw the negatives of markets in loops of their own: the loops of other negatives stay short."""
    n, first = len(words), 1 + negatives.negative
    for k in range(first, first + negatives.market_negative):
        drawn, salt, markets = rows[k, :n], np.uint64(k) * GOLDEN, negatives.markets
        for i in range(n):
            drawn[i] = output_row(tables, pick_in_market(markets, words[i], mix(states[i] + salt)))
        for i in range(n):
            signs[i, k] = np.float32(0.0 if drawn[i] == rows[0, i] else -1.0)


@inline
def _list_negatives(segment: Any, first: Any, last: Any, negatives: Any, tables: Any, scratch: Any) -> None:
    rows, signs = scratch.rows.reshape(-1, RUN), scratch.signs[: len(scratch.rows)].reshape(RUN, -1)
    for i in range(first, last):
        scratch.states[i - first] = draw(negatives.key, segment.positions[i])
    draw_targets(segment.tokens[first:last], scratch.states, negatives, tables, rows, signs)


def _trainer_of_negatives(train_window: Callable[..., Any]) -> Callable[..., Any]:
    @inline
    def train(scratch: Any, n: Any, at: Any, width: Any, alpha: Any, tile: Any) -> Any:
        groups, signs = scratch.n_targets // len(tile), scratch.signs + at * scratch.n_targets * 4
        targets = WindowTargets(scratch.rows + at * 8, RUN, 8, groups, signs)
        return train_window(scratch, scratch.contexts, n, targets, width, alpha, tile)

    return train


def _prepare_negatives(
    prepared: PreparedNoise, tables: Tables, epoch: int
) -> tuple[Scratch, Negatives, tuple[int, ...]]:
    params = prepared.params
    return target_scratch(params, tables, RUN), negatives_of(prepared, epoch), tile_of(params)


NEGATIVES = Targets(_list_negatives, _trainer_of_negatives, _prepare_negatives)


@inline
def draw_batches(
    segment: Any, first: Any, n: Any, apart: Any, last: Any, negatives: Any, tables: Any, states: Any, rows: Any,
    signs: Any, size: Any,
) -> None:  # fmt: skip
    """Draw the targets of n batches, at most RUN of them: negatives for all of a batch, and each window's own.

    A window's own targets are its word, and the negatives of its market, which other windows do not meet.

    Parameters
    ----------
    segment, first, apart, last
        Batch i has the windows around the centers first + i, and BATCH - 1 more, each `apart` from the one before, as
        far as they are before `last`.
    negatives, tables, states
        As in `draw_targets`.
    rows
        Receives the row of negative k of batch i at [k, i], those of markets window by window behind, and then those
        of its own words, shape (negatives and what fills the last group, and BATCH, RUN).
    signs
        Receives the signs of batch i at [i], MAX_TARGETS for each window, shape (RUN, groups, BATCH * MAX_TARGETS).
    size
        Negatives in a group.
    """
    n_shared, groups = len(rows) - BATCH, signs.shape[1]
    for i in range(n):
        states[i] = draw(negatives.key, segment.positions[first + i])
    for k in range(n_shared):
        salt = np.uint64(k + 1) * GOLDEN
        for i in range(n):
            rows[k, i] = output_row(tables, pick(negatives.table, mix(states[i] + salt)))
    for window in range(BATCH):
        own, center, at = rows[n_shared + window], first + window * apart, window * MAX_TARGETS
        inside = min(n, max(last - center, 0))
        for i in range(inside):
            own[i] = output_row(tables, segment.tokens[center + i])
            signs[i, groups - 1, at + OWN] = 1.0
        for k in range(negatives.negative):
            group, lane, drawn = k // size, at + k % size, rows[k]
            for i in range(inside):
                signs[i, group, lane] = np.float32(0.0 if drawn[i] == own[i] else -1.0)
        for i in range(inside, n):  # no window is left: its targets are any row, and do not count
            own[i] = rows[0, i]
            signs[i, :, at : at + MAX_TARGETS] = 0.0
    if negatives.market_negative > 0:
        _draw_batches_near(segment, first, n, apart, last, negatives, tables, rows, signs, size)


@kernel
def _draw_batches_near(
    segment: Any, first: Any, n: Any, apart: Any, last: Any, negatives: Any, tables: Any, rows: Any, signs: Any,
    size: Any,
) -> None:  # fmt: skip
    """Draw the negatives of each window's market in loops of their own, as in `_draw_near`."""
    n_shared, markets = len(rows) - BATCH, negatives.markets
    for window in range(BATCH):
        own, center = rows[n_shared + window], first + window * apart
        for m in range(negatives.market_negative):
            k = negatives.negative + window * negatives.market_negative + m
            group, lane, drawn = k // size, window * MAX_TARGETS + k % size, rows[k]
            salt = np.uint64(negatives.negative + 1 + m) * GOLDEN
            for i in range(min(n, max(last - center, 0))):
                word, state = segment.tokens[center + i], draw(negatives.key, segment.positions[center + i])
                drawn[i] = output_row(tables, pick_in_market(markets, word, mix(state + salt)))
                signs[i, group, lane] = np.float32(0.0 if drawn[i] == own[i] else -1.0)


def spread(n_nodes: int) -> tuple[int, int]:
    """Return how many groups n_nodes are spread over, and the targets of each (the last may hold fewer)."""
    groups = (n_nodes + MAX_TARGETS - 1) // MAX_TARGETS
    return groups, max(SMALLEST, -(-n_nodes // max(groups, 1)))


_spread = inline(spread)


def path_scratch(prepared: PreparedTree, tables: Tables) -> Scratch:
    """Return the scratch of a kernel that lists the paths of RUN windows at once."""
    groups = -(-max(prepared.depth, 1) // MAX_TARGETS)
    return make_scratch(tables, prepared.params.window, RUN, groups, groups * MAX_TARGETS, groups * MAX_TARGETS)


@inline
def _list_paths(segment: Any, first: Any, last: Any, tree: Any, tables: Any, scratch: Any) -> None:
    rows, signs = scratch.rows.reshape(RUN, -1), scratch.signs[: len(scratch.rows)].reshape(RUN, -1)
    write_paths(segment.tokens[first:last], tree, tables, rows, signs, scratch.sizes)


@inline
def write_paths(words: Any, tree: Any, tables: Any, rows: Any, signs: Any, sizes: Any) -> None:
    """List the paths of n words.

    Parameters
    ----------
    words, tree
        Numbers of the words, shape (n,), and `vocabulary.huffman.Tree`.
    tables
        `objectives.cpu.centers.TableAddresses`; the output table has the nodes.
    rows, signs
        Receive the rows and signs of path i at [i], shape (at least n, MAX_TARGETS * groups of the longest path). What
        fills the last group does not count.
    sizes
        Receives the numbers of nodes, shape (at least n,).
    """
    for w in range(len(words)):
        place = w * rows.shape[1]
        sizes[w] = write_path(words[w], tree, tables, address(rows) + 8 * place, address(signs) + 4 * place)


@inline
def write_path(word: Any, tree: Any, tables: Any, rows: Any, signs: Any) -> Any:
    """List a word's path; return its length.

    Parameters
    ----------
    word, tree, tables
        As in `write_paths`.
    rows, signs
        Addresses that receive the rows and signs of all groups, MAX_TARGETS for each.
    """
    start, stop = tree.starts[word], tree.starts[word + 1]
    groups, size = _spread(stop - start)
    table, row = tables.output, 4 * tables.width
    for g in range(groups):
        last = stop - g * size
        _list_steps(
            address(tree.steps) + 4 * last, min(last - start, size), table, row, tables.hot.rows,
            tables.hot.output * row, rows + 8 * g * size, signs + 4 * g * size,
        )  # fmt: skip
    return stop - start


@emitting(types.void, *[types.int64] * 8)
def _list_steps(
    builder: Any, end: Any, n: Any, table: Any, row: Any, hot_rows: Any, shift: Any, rows: Any, signs: Any
) -> None:
    """List the rows and signs of the last n steps before the address `end`, 1 to MAX_TARGETS, the last one first.

    The table's rows take `row` bytes; the copies of the first `hot_rows` are `shift` bytes behind them. All MAX_TARGETS
    entries are written: entries after the n are the first row once more, and do not count.
    """
    many = range(MAX_TARGETS)
    small, large = ir.VectorType(_i32, MAX_TARGETS), ir.VectorType(_i64, MAX_TARGETS)
    counts = builder.icmp_signed("<", ir.Constant(large, [*many]), simd.splat(builder, n, MAX_TARGETS))
    backwards = ir.Constant(small, [*reversed(many)])
    counted = builder.shuffle_vector(counts, ir.Constant(counts.type, ir.Undefined), backwards)
    before = builder.inttoptr(builder.sub(end, _i64(4 * MAX_TARGETS)), ir.IntType(8).as_pointer())
    nothing = simd.integers(0, MAX_TARGETS)
    read = simd.call(builder, "llvm.masked.load.v8i32.p0", small, before, _i32(4), counted, nothing)
    steps = builder.shuffle_vector(read, nothing, backwards)
    steps = builder.select(counts, steps, simd.broadcast(builder, steps, 0, MAX_TARGETS))
    turns = builder.ashr(steps, simd.integers(31, MAX_TARGETS))
    nodes = builder.zext(builder.xor(steps, turns), large)
    of_row = builder.zext(simd.splat(builder, builder.trunc(row, _i32), MAX_TARGETS), large)
    hot = builder.icmp_signed("<", nodes, simd.splat(builder, hot_rows, MAX_TARGETS))
    copies = builder.select(hot, simd.splat(builder, shift, MAX_TARGETS), ir.Constant(large, [0] * MAX_TARGETS))
    places = builder.add(builder.mul(nodes, of_row), simd.splat(builder, table, MAX_TARGETS))
    builder.store(builder.add(places, copies), builder.inttoptr(rows, large.as_pointer()), align=8)
    turned = builder.sitofp(builder.or_(turns, simd.integers(1, MAX_TARGETS)), simd.vector_of(MAX_TARGETS))  # -1 or 1
    simd.store(builder, floats(builder, signs), builder.select(counts, turned, simd.constant(0.0, MAX_TARGETS)))


@inline
def write_linked_path(word: Any, links: Any, tables: Any, rows: Any, signs: Any, w: Any) -> Any:
    """List a word's path as path w of `write_paths`, by `vocabulary.huffman.huffman_forest`; return its length."""
    n, link, words = 0, links[word], len(links) // 2
    below = link != ALONE
    while below:
        node, turn, is_root = read_link(link)
        rows[w, n] = output_row(tables, node)
        signs[w, n] = np.float32(1 - 2 * turn)
        n += 1
        below = not is_root
        link = links[words + node]
    _fill_up(rows, signs, w, n)
    return n


@inline
def _fill_up(rows: Any, signs: Any, w: Any, n: Any) -> None:
    """Fill the last group of the n targets of path w with targets that do not count."""
    groups, size = _spread(n)
    for i in range(n, groups * size):
        rows[w, i] = rows[w, 0]
        signs[w, i] = 0.0


def _trainer_of_paths(train_window: Callable[..., Any]) -> Callable[..., Any]:
    @inline
    def train(scratch: Any, n: Any, at: Any, width: Any, alpha: Any, tile: Any) -> Any:
        groups, size = _spread(load_int64(scratch.sizes, at))
        start, bytes, contexts = at * scratch.n_targets, 8 * scratch.n_targets, scratch.contexts
        targets = WindowTargets(scratch.rows + 8 * start, 1, bytes, groups, scratch.signs + 4 * start)
        if size == 5:
            return train_window(scratch, contexts, n, targets, width, alpha, (0,) * 5)
        if size == 6:
            return train_window(scratch, contexts, n, targets, width, alpha, (0,) * 6)
        if size == 7:
            return train_window(scratch, contexts, n, targets, width, alpha, (0,) * 7)
        return train_window(scratch, contexts, n, targets, width, alpha, (0,) * 8)

    return train


def _prepare_paths(prepared: PreparedTree, tables: Tables, _: int) -> tuple[Scratch, Tree, tuple[int, ...]]:
    return path_scratch(prepared, tables), prepared.tree, ()


PATHS = Targets(_list_paths, _trainer_of_paths, _prepare_paths)
