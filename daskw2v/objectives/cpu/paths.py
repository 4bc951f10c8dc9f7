"""Targets of hierarchical softmax on the CPU: the inner nodes on a word's path, in groups of one size.

A path is spread evenly over its groups, so that few targets only fill up the last one. It is read from the leaf up:
rows near the leaf gain most from being prefetched.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from daskw2v.kernels import simd
from daskw2v.kernels.jit import inline
from daskw2v.objectives.base import Tables
from daskw2v.objectives.cpu.centers import RUN, Targets, WindowTargets, output_row
from daskw2v.objectives.cpu.scratch import Scratch, make_scratch
from daskw2v.objectives.cpu.steps import MAX_TARGETS, address, floats, load_int64
from daskw2v.objectives.tree import PreparedTree
from daskw2v.vocabulary.huffman import ALONE, followed

SMALLEST = 5  # targets of a group; a shorter path fills up with nodes that do not count

_i32, _i64 = ir.IntType(32), ir.IntType(64)


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
def _write(segment: Any, first: Any, last: Any, tree: Any, tables: Any, scratch: Any) -> None:
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


@intrinsic
def _list_steps(
    typingctx: Any, end: Any, n: Any, table: Any, row: Any, hot_rows: Any, shift: Any, rows: Any, signs: Any
) -> Any:
    """List the rows and signs of the last n steps before the address `end`, 1 to MAX_TARGETS, the last one first.

    The table's rows take `row` bytes; the copies of the first `hot_rows` are `shift` bytes behind them. All
    MAX_TARGETS entries are written: those behind the n are the first row once more, and do not count.
    """
    i = types.int64

    def codegen(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        end, n, table, row, hot_rows, shift, rows, signs = args
        many = range(MAX_TARGETS)
        small, large = ir.VectorType(_i32, MAX_TARGETS), ir.VectorType(_i64, MAX_TARGETS)
        counts = builder.icmp_signed("<", ir.Constant(large, [*many]), simd.splat(builder, n, MAX_TARGETS))
        backwards = ir.Constant(small, [*reversed(many)])
        there = builder.shuffle_vector(counts, ir.Constant(counts.type, ir.Undefined), backwards)
        before = builder.inttoptr(builder.sub(end, _i64(4 * MAX_TARGETS)), ir.IntType(8).as_pointer())
        nothing = ir.Constant(small, [0] * MAX_TARGETS)
        read = simd.call(builder, "llvm.masked.load.v8i32.p0", small, before, _i32(4), there, nothing)
        steps = builder.shuffle_vector(read, nothing, backwards)
        steps = builder.select(counts, steps, simd.broadcast(builder, steps, 0, MAX_TARGETS))
        turns = builder.ashr(steps, ir.Constant(small, [31] * MAX_TARGETS))
        nodes = builder.zext(builder.xor(steps, turns), large)
        of_row = builder.zext(simd.splat(builder, builder.trunc(row, _i32), MAX_TARGETS), large)
        hot = builder.icmp_signed("<", nodes, simd.splat(builder, hot_rows, MAX_TARGETS))
        copies = builder.select(hot, simd.splat(builder, shift, MAX_TARGETS), ir.Constant(large, [0] * MAX_TARGETS))
        places = builder.add(builder.mul(nodes, of_row), simd.splat(builder, table, MAX_TARGETS))
        builder.store(builder.add(places, copies), builder.inttoptr(rows, large.as_pointer()), align=8)
        one = ir.Constant(small, [1] * MAX_TARGETS)
        told = builder.sitofp(builder.or_(turns, one), simd.vector_of(MAX_TARGETS))  # -1 or 1
        simd.store(builder, floats(builder, signs), builder.select(counts, told, simd.constant(0.0, MAX_TARGETS)))
        return context.get_dummy_value()

    return types.void(i, i, i, i, i, i, i, i), codegen


@inline
def write_linked_path(word: Any, links: Any, tables: Any, rows: Any, signs: Any, w: Any) -> Any:
    """List a word's path as path w of `write_paths`, by `vocabulary.huffman.huffman_forest`; return its length."""
    n, link, words = 0, links[word], len(links) // 2
    below = link != ALONE
    while below:
        node, turn, is_root = followed(link)
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


def _trainer(train_window: Callable[..., Any]) -> Callable[..., Any]:
    @inline
    def train(scratch: Any, n: Any, at: Any, width: Any, alpha: Any, tile: Any) -> Any:
        groups, size = _spread(load_int64(scratch.sizes, at))
        start, contexts = at * scratch.n_targets, scratch.contexts
        targets = WindowTargets(
            scratch.rows + 8 * start, 1, 8 * scratch.n_targets, groups, scratch.signs + 4 * start
        )  # fmt: skip
        if size == 5:
            examples = train_window(scratch, contexts, n, targets, width, alpha, (0,) * 5)
        elif size == 6:
            examples = train_window(scratch, contexts, n, targets, width, alpha, (0,) * 6)
        elif size == 7:
            examples = train_window(scratch, contexts, n, targets, width, alpha, (0,) * 7)
        else:
            examples = train_window(scratch, contexts, n, targets, width, alpha, (0,) * 8)
        return examples

    return train


PATHS = Targets(_write, _trainer)
