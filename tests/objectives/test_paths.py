"""Ways through the tree, cut into groups of targets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.objectives import HotRows, Memory
from daskw2v.objectives.paths import SMALLEST, find_way, prepare_tree, spread, tree_tables, way_of, way_scratch
from daskw2v.objectives.steps import MAX_TARGETS
from daskw2v.params import Params
from daskw2v.simd import aligned_zeros

counts_of_words = st.lists(st.integers(0, 10**6), min_size=1, max_size=70).map(np.array)


@given(st.integers(0, 5000))
def test_spread__covers_any_length_in_groups_of_a_known_size(n_nodes):
    groups, size = spread(n_nodes)
    assert SMALLEST <= size <= MAX_TARGETS
    assert groups * size >= n_nodes
    assert (groups - 1) * size < n_nodes or groups == 0, "no group holds nothing"


@given(counts_of_words)
def test_way_of__is_the_trees_from_the_leaf_up(counts):
    tree = prepare_tree(Params(), counts).tree
    for word in range(len(counts)):
        nodes, signs = way_of(tree, word)
        start, stop = tree.starts[word], tree.starts[word + 1]
        assert nodes[::-1].tolist() == tree.nodes[start:stop].tolist()
        assert signs[::-1].tolist() == [-1.0 if turn else 1.0 for turn in tree.turns[start:stop]]


@given(counts_of_words)
def test_prepare_tree__knows_the_longest_way_and_every_node_has_a_row(counts):
    prepared = prepare_tree(Params(), counts)
    ways = [way_of(prepared.tree, word)[0] for word in range(len(counts))]
    assert prepared.depth == max(map(len, ways))
    rows = tree_tables(Params(), len(counts))
    assert rows == {"input": len(counts), "output": len(counts) - 1}
    assert {int(node) for way in ways for node in way} == set(range(rows["output"]))


@given(counts_of_words, st.integers(0, 4))
def test_find_way__writes_the_rows_and_signs_of_a_way(counts, hot_rows):
    width, base = 16, 4096
    prepared = prepare_tree(Params(), counts)
    hot = HotRows(hot_rows, 100, 200, 1)
    empty = aligned_zeros(0)
    scratch = way_scratch(prepared, Memory(empty, empty, width, hot))
    rows, signs = scratch.rows.reshape(2, -1), scratch.signs[: len(scratch.rows)].reshape(2, -1)
    for word in [*range(len(counts)), 0]:  # each finds what the one before it left
        turn = word % 2
        groups, size = find_way(prepared.tree, word, base, width, hot, rows, signs, turn)
        nodes, expected = way_of(prepared.tree, word)
        assert (groups, size) == spread(len(nodes))
        places = base + (nodes + np.where(nodes < hot_rows, hot.output, 0)) * (4 * width)
        assert rows[turn, : len(nodes)].tolist() == places.tolist()
        assert signs[turn, : len(nodes)].tolist() == expected.tolist()
        assert not signs[turn, len(nodes) : groups * size].any(), "what fills up does not count"
