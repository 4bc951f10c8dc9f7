"""Targets of a window on the CPU: a word and its negatives, or the inner nodes on the word's path.

The draws of a run of windows are one loop without branches, so that the compiler makes vector code of it.

A path is spread evenly over its groups, so that few targets only fill up the last one. It is read from the leaf up:
rows near the leaf gain most from being prefetched.

Lists of rows have the addresses of the rows, int64. A run is at most RUN windows, or batches of windows.
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
from daskw2v.objectives.cpu.steps import MAX_TARGETS, address, float_pointer, group_sizes, load_int64
from daskw2v.objectives.noise import BATCH, Negatives, PreparedNoise, make_negatives, pick_in_market
from daskw2v.objectives.settings import SharedNegatives
from daskw2v.objectives.tree import PreparedTree
from daskw2v.vocabulary.huffman import ALONE, Tree, read_link

MIN_GROUP = 5  # targets of a group; a shorter path is padded with nodes that do not count

_i32, _i64 = ir.IntType(32), ir.IntType(64)


def _window_groups(params: Params) -> tuple[int, int]:
    """Return the number of groups of a window's targets, and the targets of each."""
    settings = SharedNegatives.of(params)
    return group_sizes(1 + settings.negative + settings.market_negative)


def _batch_groups(params: Params) -> tuple[int, int]:
    """Return the number of groups of a batch's negatives, shared and of markets, and the size of a group."""
    settings = SharedNegatives.of(params)
    return group_sizes(settings.negative + BATCH * settings.market_negative, OWN)


def make_tile(params: Params) -> tuple[int, ...]:
    """Return a tuple as long as a group has targets; being part of a type, its length lets loops unroll."""
    return (0,) * _window_groups(params)[1]


def target_scratch(params: Params, tables: Tables, n_windows: int) -> Scratch:
    """Return the working memory of a kernel that draws the targets of n_windows at once."""
    groups, size = _window_groups(params)
    return make_scratch(tables, params.window, n_windows, groups, groups * size, groups * size)


def make_shared_tile(params: Params) -> tuple[int, ...]:
    """Return a tuple with one element per negative of a batch's group; like `make_tile`, it lets loops unroll."""
    return (0,) * _batch_groups(params)[1]


def batch_scratch(params: Params, tables: Tables) -> Scratch:
    """Return the working memory of a kernel that draws the targets of RUN batches at once."""
    groups, size = _batch_groups(params)
    rows, signs = groups * size + BATCH, groups * BATCH * MAX_TARGETS
    return make_scratch(tables, params.window, RUN, groups, rows, signs, BATCH)


@inline
def draw_targets(words: Any, states: Any, negatives: Any, tables: Any, rows: Any, signs: Any) -> None:
    """List the targets of n windows, a word and its negatives, and their signs.

    Parameters
    ----------
    words, states
        Each window's word, and the state that its draws start from, uint64, shapes (n,).
    negatives, tables
        `objectives.noise.Negatives` and `objectives.cpu.centers.TableAddresses`.
    rows
        Receives the row of target t of window i at [t, i], shape (targets, at least n). The word pads the last group.
    signs
        Receives the signs of window i at [i], shape (at least n, targets). Signs of padding must be 0 before.
    """
    n = len(words)
    word_rows = rows[0, :n]
    for i in range(n):
        word_rows[i] = output_row(tables, words[i])
        signs[i, 0] = 1.0
    last = 1 + negatives.negative + negatives.market_negative
    for k in range(1, 1 + negatives.negative):
        drawn, salt, table = rows[k, :n], np.uint64(k) * GOLDEN, negatives.table
        for i in range(n):
            drawn[i] = output_row(tables, pick(table, mix(states[i] + salt)))
        for i in range(n):
            signs[i, k] = np.float32(0.0 if drawn[i] == word_rows[i] else -1.0)
    if negatives.market_negative > 0:
        _draw_from_markets(words, states, negatives, tables, rows, signs)
    for k in range(last, len(rows)):
        rows[k, :n] = word_rows


@kernel
def _draw_from_markets(words: Any, states: Any, negatives: Any, tables: Any, rows: Any, signs: Any) -> None:
    """List the negatives of markets, as `draw_targets` does: separate loops keep the other loops short."""
    n, first = len(words), 1 + negatives.negative
    for k in range(first, first + negatives.market_negative):
        drawn, salt, markets = rows[k, :n], np.uint64(k) * GOLDEN, negatives.markets
        for i in range(n):
            drawn[i] = output_row(tables, pick_in_market(markets, words[i], mix(states[i] + salt)))
        for i in range(n):
            signs[i, k] = np.float32(0.0 if drawn[i] == rows[0, i] else -1.0)


@inline
def _list_negatives(segment: Any, first: Any, last: Any, negatives: Any, tables: Any, scratch: Any) -> None:
    """List the word and the negatives of the windows first..last-1, as `Targets.write` does."""
    rows, signs = scratch.rows.reshape(-1, RUN), scratch.signs[: len(scratch.rows)].reshape(RUN, -1)
    for i in range(first, last):
        scratch.states[i - first] = draw(negatives.key, segment.positions[i])
    draw_targets(segment.tokens[first:last], scratch.states, negatives, tables, rows, signs)


def _make_negatives_trainer(train_window: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that trains a window listed by `_list_negatives`, as `Targets.trainer` does."""

    @inline
    def train(scratch: Any, n: Any, index: Any, width: Any, alpha: Any, tile: Any) -> Any:
        groups, signs = scratch.n_targets // len(tile), scratch.signs + index * scratch.n_targets * 4
        targets = WindowTargets(scratch.rows + index * 8, RUN, 8, groups, signs)
        return train_window(scratch, scratch.contexts, n, targets, width, alpha, tile)

    return train


def _prepare_negatives(
    prepared: PreparedNoise, tables: Tables, epoch: int
) -> tuple[Scratch, Negatives, tuple[int, ...]]:
    """Return the arguments scratch, aim and tile of a kernel."""
    params = prepared.params
    return target_scratch(params, tables, RUN), make_negatives(prepared, epoch), make_tile(params)


NEGATIVES = Targets(_list_negatives, _make_negatives_trainer, _prepare_negatives)


@inline
def draw_batches(
    segment: Any, first: Any, n: Any, apart: Any, last: Any, negatives: Any, tables: Any, states: Any, rows: Any,
    signs: Any, size: Any,
) -> None:  # fmt: skip
    """List the targets of n batches, at most RUN: negatives for all windows of a batch, and each window's own.

    A window's own targets are its word, and the negatives of its market; for other windows they do not count.

    Parameters
    ----------
    segment, first, apart, last
        Batch i has the windows of BATCH centers, the first at first + i, each `apart` from the previous one; centers
        from `last` on do not exist.
    negatives, tables, states
        As in `draw_targets`.
    rows
        Receives the row of negative k of batch i at [k, i], then the negatives of markets window by window, and at
        last the word of each window, shape (padded negatives + BATCH, RUN).
    signs
        Receives the signs of batch i at [i], MAX_TARGETS for each window, shape (RUN, groups, BATCH * MAX_TARGETS).
        The sign of the word is in the last group at OWN. Signs that are always 0 are not written.
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
        word_rows, center, lane_start = rows[n_shared + window], first + window * apart, window * MAX_TARGETS
        n_windows = min(n, max(last - center, 0))
        for i in range(n_windows):
            word_rows[i] = output_row(tables, segment.tokens[center + i])
            signs[i, groups - 1, lane_start + OWN] = 1.0
        for k in range(negatives.negative):
            group, lane, drawn = k // size, lane_start + k % size, rows[k]
            for i in range(n_windows):
                signs[i, group, lane] = np.float32(0.0 if drawn[i] == word_rows[i] else -1.0)
        for i in range(n_windows, n):  # there is no window: its targets are any row, and do not count
            word_rows[i] = rows[0, i]
            signs[i, :, lane_start : lane_start + MAX_TARGETS] = 0.0
    if negatives.market_negative > 0:
        _draw_batches_from_markets(segment, first, n, apart, last, negatives, tables, rows, signs, size)


@kernel
def _draw_batches_from_markets(
    segment: Any, first: Any, n: Any, apart: Any, last: Any, negatives: Any, tables: Any, rows: Any, signs: Any,
    size: Any,
) -> None:  # fmt: skip
    """Write the negatives from the market of each window's word (such as its city), as `draw_batches` does."""
    n_shared, markets = len(rows) - BATCH, negatives.markets
    for window in range(BATCH):
        word_rows, center = rows[n_shared + window], first + window * apart
        for m in range(negatives.market_negative):
            k = negatives.negative + window * negatives.market_negative + m
            group, lane, drawn = k // size, window * MAX_TARGETS + k % size, rows[k]
            salt = np.uint64(negatives.negative + 1 + m) * GOLDEN
            for i in range(min(n, max(last - center, 0))):
                word, state = segment.tokens[center + i], draw(negatives.key, segment.positions[center + i])
                drawn[i] = output_row(tables, pick_in_market(markets, word, mix(state + salt)))
                signs[i, group, lane] = np.float32(0.0 if drawn[i] == word_rows[i] else -1.0)


def divide_path(n_nodes: int) -> tuple[int, int]:
    """Return the number of groups for a path of n_nodes, and the size of each, MIN_GROUP or more, with padding."""
    groups = (n_nodes + MAX_TARGETS - 1) // MAX_TARGETS
    return groups, max(MIN_GROUP, -(-n_nodes // max(groups, 1)))


_divide_path = inline(divide_path)


def path_scratch(prepared: PreparedTree, tables: Tables) -> Scratch:
    """Return the working memory of a kernel that lists the paths of RUN windows at once."""
    groups = -(-max(prepared.depth, 1) // MAX_TARGETS)
    return make_scratch(tables, prepared.params.window, RUN, groups, groups * MAX_TARGETS, groups * MAX_TARGETS)


@inline
def _list_paths(segment: Any, first: Any, last: Any, tree: Any, tables: Any, scratch: Any) -> None:
    """List the paths of the windows first..last-1, as `Targets.write` does."""
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
        Receive the rows and signs of path i at [i], shape (at least n, MAX_TARGETS * groups of the longest path). The
        padding of the last group does not count.
    sizes
        Receives the number of nodes of each path, shape (at least n,) int64.
    """
    for w in range(len(words)):
        start = w * rows.shape[1]
        sizes[w] = write_path(words[w], tree, tables, address(rows) + 8 * start, address(signs) + 4 * start)


@inline
def write_path(word: Any, tree: Any, tables: Any, rows: Any, signs: Any) -> Any:
    """List the nodes of a word's path and their signs; return the number of nodes.

    Parameters
    ----------
    word, tree, tables
        As in `write_paths`.
    rows, signs
        Addresses that receive the rows and signs of all groups, MAX_TARGETS for each.
    """
    start, stop = tree.starts[word], tree.starts[word + 1]
    groups, size = _divide_path(stop - start)
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
    """List the rows and signs of the last n steps before the address `end`, 1 to MAX_TARGETS, in reverse order.

    The table's rows take `row` bytes; the copies of the first `hot_rows` are `shift` bytes behind them. All MAX_TARGETS
    entries are written: the entries after the n are the first row again, and do not count.
    """
    indices = range(MAX_TARGETS)
    small, large = ir.VectorType(_i32, MAX_TARGETS), ir.VectorType(_i64, MAX_TARGETS)
    counts = builder.icmp_signed("<", ir.Constant(large, [*indices]), simd.splat(builder, n, MAX_TARGETS))
    backwards = ir.Constant(small, [*reversed(indices)])
    counted = builder.shuffle_vector(counts, ir.Constant(counts.type, ir.Undefined), backwards)
    before = builder.inttoptr(builder.sub(end, _i64(4 * MAX_TARGETS)), ir.IntType(8).as_pointer())
    zeros = simd.integers(0, MAX_TARGETS)
    loaded = simd.call(builder, "llvm.masked.load.v8i32.p0", small, before, _i32(4), counted, zeros)
    steps = builder.shuffle_vector(loaded, zeros, backwards)
    steps = builder.select(counts, steps, simd.broadcast(builder, steps, 0, MAX_TARGETS))
    turns = builder.ashr(steps, simd.integers(31, MAX_TARGETS))
    nodes = builder.zext(builder.xor(steps, turns), large)
    row_bytes = builder.zext(simd.splat(builder, builder.trunc(row, _i32), MAX_TARGETS), large)
    hot = builder.icmp_signed("<", nodes, simd.splat(builder, hot_rows, MAX_TARGETS))
    copies = builder.select(hot, simd.splat(builder, shift, MAX_TARGETS), ir.Constant(large, [0] * MAX_TARGETS))
    addresses = builder.add(builder.mul(nodes, row_bytes), simd.splat(builder, table, MAX_TARGETS))
    builder.store(builder.add(addresses, copies), builder.inttoptr(rows, large.as_pointer()), align=8)
    ones = builder.or_(turns, simd.integers(1, MAX_TARGETS))  # -1 or 1
    turn_signs = builder.sitofp(ones, simd.vector_of(MAX_TARGETS))
    counted_signs = builder.select(counts, turn_signs, simd.constant(0.0, MAX_TARGETS))
    simd.store(builder, float_pointer(builder, signs), counted_signs)


@inline
def write_linked_path(word: Any, links: Any, tables: Any, rows: Any, signs: Any, w: Any) -> Any:
    """List a word's path, by links of `huffman_forest`, as path w of `write_paths`; return its number of nodes."""
    n, link, n_words = 0, links[word], len(links) // 2
    is_inside = link != ALONE
    while is_inside:
        node, turn, is_root = read_link(link)
        rows[w, n] = output_row(tables, node)
        signs[w, n] = np.float32(1 - 2 * turn)
        n += 1
        is_inside = not is_root
        link = links[n_words + node]
    _pad_group(rows, signs, w, n)
    return n


@inline
def _pad_group(rows: Any, signs: Any, w: Any, n: Any) -> None:
    """Pad the last group of the n nodes of path w, if any, with nodes that do not count."""
    groups, size = _divide_path(n)
    for i in range(n, groups * size):
        rows[w, i] = rows[w, 0]
        signs[w, i] = 0.0


def _make_paths_trainer(train_window: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that trains a window listed by `_list_paths`, as `Targets.trainer` does."""

    @inline
    def train(scratch: Any, n: Any, index: Any, width: Any, alpha: Any, tile: Any) -> Any:
        groups, size = _divide_path(load_int64(scratch.sizes, index))
        start, row_bytes, contexts = index * scratch.n_targets, 8 * scratch.n_targets, scratch.contexts
        targets = WindowTargets(scratch.rows + 8 * start, 1, row_bytes, groups, scratch.signs + 4 * start)
        if size == 5:
            return train_window(scratch, contexts, n, targets, width, alpha, (0,) * 5)
        if size == 6:
            return train_window(scratch, contexts, n, targets, width, alpha, (0,) * 6)
        if size == 7:
            return train_window(scratch, contexts, n, targets, width, alpha, (0,) * 7)
        return train_window(scratch, contexts, n, targets, width, alpha, (0,) * 8)

    return train


def _prepare_paths(prepared: PreparedTree, tables: Tables, _: int) -> tuple[Scratch, Tree, tuple[int, ...]]:
    """Return the arguments scratch, aim and tile of a kernel."""
    return path_scratch(prepared, tables), prepared.tree, ()


PATHS = Targets(_list_paths, _make_paths_trainer, _prepare_paths)
