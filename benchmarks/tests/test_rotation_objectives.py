"""Parts of windows hold what windows do; and trees that are split have the nodes that their paths have."""

import numpy as np
import pytest

from benchmarks.rotation_objectives.parts import deal_parts
from benchmarks.rotation_objectives.trees import BY_RANK, OWN, SUBTREES, splits
from daskw2v.sampling.dealing import WindowSize, deal_pairs
from daskw2v.sampling.pairs import unpack
from daskw2v.sampling.segments import Segment
from daskw2v.vocabulary.huffman import huffman_tree
from daskw2v.vocabulary.partition import Partitions

WORDS = 50


@pytest.fixture
def segment():
    rng = np.random.default_rng(0)
    bounds = np.array([0, 1, 30, 400, 600])
    return Segment(rng.integers(0, WORDS, 600).astype(np.int32), np.arange(600), bounds)


@pytest.mark.parametrize("inputs", [1, 4])
def test_parts__have_each_pair_once_in_the_bucket_of_its_rows(segment, inputs):
    windows, p = WindowSize(5, True, np.uint64(3)), 4
    outputs = Partitions(WORDS, p)
    parts = deal_parts(segment, 0, 600, windows, Partitions(WORDS, inputs), outputs)
    pairs = deal_pairs(segment, 0, 600, windows, outputs)
    assert parts.sizes.sum() == len(parts.contexts) == len(pairs.entries)
    found, expected = [], []
    for bucket in range(p * inputs):
        j, i = divmod(bucket, inputs)
        for item in range(parts.edges[bucket], parts.edges[bucket + 1]):
            center = outputs.words(j)[parts.centers[item]]
            rows = parts.contexts[parts.starts[item] : parts.starts[item + 1]]
            assert 0 < len(rows) <= parts.sizes[parts.windows[item]]
            found += [(center, context) for context in Partitions(WORDS, inputs).words(i)[rows]]
    for bucket in range(p * p):
        j, i = divmod(bucket, p)
        contexts, centers = unpack(pairs.entries[pairs.edges[bucket] : pairs.edges[bucket + 1]])
        expected += zip(outputs.words(j)[centers], outputs.words(i)[contexts], strict=True)
    assert sorted(found) == sorted(expected)


def test_splits__meet_the_nodes_of_their_paths():
    counts = np.arange(2000, 0, -1) ** 2
    kept = counts / counts.sum()
    rank, subtrees, own = splits(counts, kept, 8)
    lengths = np.diff(huffman_tree(counts).starts)
    assert [split.way for split in (rank, subtrees, own)] == [BY_RANK, SUBTREES, OWN]
    assert rank.nodes == pytest.approx(float(kept @ lengths))
    assert subtrees.nodes == pytest.approx(rank.nodes)
    assert 1 == own.entries < subtrees.entries <= 2 < rank.entries < 8
    assert own.nodes == pytest.approx(rank.nodes - 6, abs=0.2), "64 trees have six levels less"
    assert 1 / 8 <= own.largest < rank.largest < subtrees.largest
