"""Huffman's tree: a proper binary tree, the shortest ways there are, and one answer for equal counts."""

import heapq
import itertools
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.errors import ParameterError
from daskw2v.vocabulary.huffman import ALONE, huffman_forest, huffman_tree, nodes_of, turns_of
from daskw2v.vocabulary.partition import Partitions

# Few different counts make ties; doubling ones make deep trees.
counts_of = st.one_of(
    st.lists(st.integers(0, 4), min_size=2, max_size=60),
    st.lists(st.integers(0, 2**50), min_size=2, max_size=60),
    st.lists(st.integers(0, 50).map(lambda k: 2**k), min_size=2, max_size=60),
)


def ways(counts):
    """Each word's way: a list of (node, turn)."""
    tree = huffman_tree(np.array(counts, np.int64))
    nodes, turns, starts = nodes_of(tree.steps), turns_of(tree.steps), tree.starts
    assert (nodes.dtype, turns.dtype, starts.dtype) == (np.int32, np.uint8, np.int64)
    assert len(starts) == len(counts) + 1
    assert (starts[0], starts[-1]) == (0, len(nodes))
    assert len(nodes) == len(turns)
    steps = list(zip(nodes.tolist(), turns.tolist(), strict=True))
    return [steps[a:b] for a, b in itertools.pairwise(starts.tolist())]


def codes(counts):
    return ["".join(str(turn) for _, turn in way) for way in ways(counts)]


def fewest_turns(counts):
    """What all occurrences together take in an optimal tree: each join adds a turn to all below it."""
    heap, turns = list(counts), 0
    heapq.heapify(heap)
    while len(heap) > 1:
        joined = heapq.heappop(heap) + heapq.heappop(heap)
        turns += joined
        heapq.heappush(heap, joined)
    return turns


def fibonacci(n):
    numbers = [1, 1]
    while len(numbers) < n:
        numbers.append(numbers[-1] + numbers[-2])
    return numbers


@given(counts_of)
def test_huffman_tree__takes_the_fewest_turns(counts):
    lengths = map(len, ways(counts))
    assert sum(count * length for count, length in zip(counts, lengths, strict=True)) == fewest_turns(counts)


@given(counts_of)
def test_huffman_tree__codes_are_complete_and_none_begins_another(counts):
    result = codes(counts)
    longest = max(map(len, result))
    assert sum(2 ** (longest - len(code)) for code in result) == 2**longest  # Kraft's sum is one
    assert not any(b.startswith(a) for a, b in itertools.pairwise(sorted(result)))


@given(counts_of)
def test_huffman_tree__inner_nodes_have_two_children_and_one_parent(counts):
    children, parents = defaultdict(set), defaultdict(set)
    for word, way in enumerate(ways(counts)):
        assert way[0][0] == 0
        below = [*(("node", node) for node, _ in way[1:]), ("word", word)]
        for (node, turn), child in zip(way, below, strict=True):
            children[node].add((turn, child))
            parents[child].add((node, turn))
    assert sorted(children) == list(range(len(counts) - 1))
    assert all(sorted(turn for turn, _ in pair) == [0, 1] for pair in children.values())
    assert all(len(of_child) == 1 for of_child in parents.values())


@given(counts_of)
def test_huffman_tree__numbers_nodes_by_falling_count_and_turns_to_the_larger_by_1(counts):
    used, below = [0] * (len(counts) - 1), defaultdict(int)
    for count, way in zip(counts, ways(counts), strict=True):
        numbers = [node for node, _ in way]
        assert numbers == sorted(set(numbers))
        for step in way:
            used[step[0]] += count
            below[step] += count
    assert used == sorted(used, reverse=True)
    assert all(below[node, 0] <= below[node, 1] for node in range(len(used)))


@given(counts_of, st.randoms(use_true_random=False))
def test_huffman_tree__moves_ways_with_their_words(counts, random):
    counts = sorted(set(counts))  # without ties
    shuffled = random.sample(counts, len(counts))
    assert dict(zip(shuffled, ways(shuffled), strict=True)) == dict(zip(counts, ways(counts), strict=True))


@given(counts_of)
def test_huffman_tree__gives_the_earlier_of_equal_words_the_longer_way(counts):
    lengths = defaultdict(list)
    for count, way in zip(counts, ways(counts), strict=True):
        lengths[count].append(len(way))
    assert all(of_count == sorted(of_count, reverse=True) for of_count in lengths.values())


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ([5, 3], ["1", "0"]),
        ([3, 3], ["0", "1"]),  # the earlier word first
        ([1, 1, 2], ["10", "11", "0"]),  # a word before an inner node: 2 before 1 + 1
        ([1, 1, 2, 2], ["00", "01", "10", "11"]),  # (1 1) = 2 goes after both words of 2, so they are joined
        ([1, 1, 1, 1], ["00", "01", "10", "11"]),  # inner nodes in order of their making
        ([7, 0, 0, 2], ["1", "000", "001", "01"]),
    ],
)
def test_huffman_tree__decides_ties_by_its_rule(counts, expected):
    assert codes(counts) == expected


@pytest.mark.parametrize("count", [0, 1, 9])
@pytest.mark.parametrize("n_words", [2, 3, 8, 13, 1024, 1500])
def test_huffman_tree__is_balanced_where_all_words_are_alike(count, n_words):
    lengths = {len(way) for way in ways([count] * n_words)}
    assert lengths == {n_words.bit_length() - 1, (n_words - 1).bit_length()}


def test_huffman_tree__can_be_as_deep_as_sums_allow():
    counts = [0, *fibonacci(90)]  # the longest whose sum is below 2**63
    assert sorted(map(len, ways(counts))) == [*range(1, 91), 90]
    counts = fibonacci(90)[::-1]
    assert [len(way) for way in ways(counts)] == [*range(1, 90), 89]


def test_huffman_tree__is_the_textbooks():
    result = ways([45, 13, 12, 16, 9, 5])  # Cormen et al., Introduction to Algorithms
    assert codes([45, 13, 12, 16, 9, 5]) == ["0", "101", "100", "111", "1101", "1100"]
    assert [[node for node, _ in way] for way in result] == [
        [0],
        [0, 1, 3],
        [0, 1, 3],
        [0, 1, 2],
        [0, 1, 2, 4],
        [0, 1, 2, 4],
    ]


@pytest.mark.parametrize("n_words", [0, 1])
def test_huffman_tree__has_no_nodes_below_two_words(n_words):
    assert ways([4] * n_words) == [[]] * n_words


def test_huffman_tree__takes_counts_it_may_not_write_and_leaves_them():
    counts = np.repeat(np.array([3, 1, 2], np.int64), 2)[::2]
    counts.flags.writeable = False
    assert huffman_tree(counts).steps.tolist() == huffman_tree(counts.copy()).steps.tolist()
    assert counts.tolist() == [3, 1, 2]


def test_huffman_tree__refuses_counts_below_zero():
    with pytest.raises(ParameterError, match=r"Word 1 has count -3, below zero\. Give counts >= 0"):
        huffman_tree(np.array([2, -3, -1], np.int64))


def test_huffman_tree__refuses_only_sums_that_do_not_fit():
    assert len(huffman_tree(np.array([2**62, 2**62 - 1], np.int64)).steps) == 2
    for counts in ([2**62, 2**62], [2**62] * 4, [2**63 - 1] * 3):  # the sums of the last two wrap to 0 and above
        with pytest.raises(ParameterError, match=r"sum, .*e\+\d+, is not below 2\*\*63\. Divide"):
            huffman_tree(np.array(counts, np.int64))


def test_huffman_tree__refuses_more_words_than_ids():
    with pytest.raises(ParameterError, match="2147483648 words are too many"):
        huffman_tree(np.broadcast_to(np.int64(1), 2**31))


@given(st.one_of(counts_of, st.lists(st.integers(0, 4), max_size=2)), st.sampled_from([1, 2, 3, 100]))
def test_huffman_forest__leads_from_each_word_up_its_way_in_a_tree_of_its_own(counts, n_trees):
    counts, n = np.array(counts, np.int64), len(counts)
    links = huffman_forest(counts, n_trees)
    assert (links.dtype, links.shape) == (np.uint64, (2 * n,))
    longest, n_before, trees = 0, 0, Partitions(n, min(n_trees, n)) if n else None
    for words in map(trees.words, range(trees.n)) if n else ():
        for word, way in zip(words.tolist(), ways(counts[words]), strict=True):
            thing, steps, is_root = word, [], links[word] == ALONE
            while not is_root:
                rest, turn = divmod(int(links[thing]), 2)
                node, is_root = divmod(rest, 2)
                steps.append((node - n_before, turn))
                thing = n + node
            assert steps[::-1] == way
            longest = max(longest, len(way))
        n_before += len(words) - 1
    assert not n or links[-1] == longest


def test_huffman_forest__refuses_what_the_tree_does():
    with pytest.raises(ParameterError, match="Word 1 has count -1, below zero"):
        huffman_forest(np.array([3, -1]), 2)
