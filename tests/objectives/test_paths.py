"""Paths through the tree, cut into groups of targets."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.config.params import Params
from daskw2v.kernels.jit import kernel
from daskw2v.kernels.simd import aligned_zeros
from daskw2v.objectives.base import HotRows, Tables
from daskw2v.objectives.cpu.centers import RUN, TableAddresses
from daskw2v.objectives.cpu.steps import MAX_TARGETS
from daskw2v.objectives.cpu.targets import MIN_GROUP, divide_path, path_scratch, write_paths
from daskw2v.objectives.tree import prepare_tree, tree_table_rows, word_path
from daskw2v.vocabulary.huffman import nodes_of, turns_of

WIDTH, BASE = 16, 4096
counts_of_words = st.lists(st.integers(0, 10**6), min_size=1, max_size=70).map(np.array)


@given(st.integers(0, 5000))
def test_divide_path__covers_any_length_in_groups_of_valid_size(n_nodes):
    groups, size = divide_path(n_nodes)
    assert MIN_GROUP <= size <= MAX_TARGETS
    assert groups * size >= n_nodes
    assert (groups - 1) * size < n_nodes or groups == 0, "no group is empty"


@given(counts_of_words)
def test_word_path__is_the_path_of_the_tree_from_the_leaf_up(counts):
    tree = prepare_tree(Params(), counts).tree
    for word in range(len(counts)):
        nodes, signs = word_path(tree, word)
        start, stop = tree.starts[word], tree.starts[word + 1]
        assert nodes[::-1].tolist() == nodes_of(tree.steps[start:stop]).tolist()
        assert signs[::-1].tolist() == [-1.0 if turn else 1.0 for turn in turns_of(tree.steps[start:stop])]


@given(counts_of_words)
def test_prepare_tree__has_the_longest_path_and_a_row_for_each_node(counts):
    prepared = prepare_tree(Params(), counts)
    paths = [word_path(prepared.tree, word)[0] for word in range(len(counts))]
    assert prepared.depth == max(map(len, paths))
    rows = tree_table_rows(Params(), len(counts))
    assert rows == {"input": len(counts), "output": len(counts) - 1}
    assert {int(node) for path in paths for node in path} == set(range(rows["output"]))


@kernel
def list_paths(words, tree, hot, rows, signs, sizes):
    """Call `write_paths` as the kernels do."""
    write_paths(words, tree, TableAddresses(0, BASE, WIDTH, hot), rows, signs, sizes)


@given(counts_of_words, st.integers(0, 4))
def test_write_paths__lists_the_rows_and_signs_of_each_path(counts, hot_rows):
    prepared = prepare_tree(Params(), counts)
    hot, empty = HotRows(hot_rows, 100, 200, 1), aligned_zeros(0)
    scratch = path_scratch(prepared, Tables(empty, empty, WIDTH, hot))
    rows, signs = scratch.rows.reshape(RUN, -1), scratch.signs[: len(scratch.rows)].reshape(RUN, -1)
    words = np.arange(len(counts), dtype=np.int32)
    for run in (words[:RUN], words[::-1][:RUN]):  # the second call overwrites the results of the first
        list_paths(run, prepared.tree, hot, rows, signs, scratch.sizes)
        for i, word in enumerate(run):
            nodes, expected = word_path(prepared.tree, word)
            groups, size = divide_path(len(nodes))
            assert scratch.sizes[i] == len(nodes)
            addresses = BASE + (nodes + np.where(nodes < hot_rows, hot.output, 0)) * (4 * WIDTH)
            assert rows[i, : len(nodes)].tolist() == addresses.tolist()
            assert signs[i, : len(nodes)].tolist() == expected.tolist()
            assert not signs[i, len(nodes) : groups * size].any(), "padding does not count"
