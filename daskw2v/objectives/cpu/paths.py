"""Targets of hierarchical softmax on the CPU: the inner nodes on a word's path, in groups of one size.

A path is spread evenly over its groups, so that few targets only fill up the last one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from daskw2v.kernels.jit import inline
from daskw2v.objectives.base import Tables
from daskw2v.objectives.cpu.centers import RUN, Targets, WindowTargets, output_row
from daskw2v.objectives.cpu.scratch import Scratch, make_scratch
from daskw2v.objectives.cpu.steps import MAX_TARGETS, load_int64
from daskw2v.objectives.tree import PreparedTree
from daskw2v.vocabulary.huffman import ALONE, followed

SMALLEST = 5  # targets of a group; a shorter path fills up with nodes that do not count


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
        start, stop = tree.starts[words[w]], tree.starts[words[w] + 1]
        n = stop - start
        for i in range(n):
            node = stop - 1 - i
            rows[w, i] = output_row(tables, tree.nodes[node])
            signs[w, i] = np.float32(1 - 2 * np.int32(tree.turns[node]))
        _fill_up(rows, signs, w, n)
        sizes[w] = n


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
