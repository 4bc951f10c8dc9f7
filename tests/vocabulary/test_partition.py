"""Partitions: every word has one place, the places of a partition are dense, and loads are even."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.errors import ParameterError
from daskw2v.kernels.jit import kernel
from daskw2v.sampling.pairs import locate_word
from daskw2v.sampling.segments import keep_thresholds
from daskw2v.vocabulary.partition import Partitions


@kernel
def places(words, n):
    located = np.empty((2, len(words)), np.int64)
    for i in range(len(words)):
        located[0, i], located[1, i] = locate_word(words[i], n)
    return located


@given(st.integers(1, 300), st.data())
def test_partitions__give_each_word_one_place(n_words, data):
    partitions = Partitions(n_words, data.draw(st.integers(1, n_words)))
    words = np.arange(n_words)
    parts, rows = partitions.locate(words)
    np.testing.assert_array_equal(places(words, partitions.n), [parts, rows])
    for part in range(partitions.n):
        words_of_part = partitions.words(part)
        assert len(words_of_part) == partitions.size(part) > 0
        np.testing.assert_array_equal(words_of_part, words[parts == part])
        expected = np.arange(len(words_of_part))
        np.testing.assert_array_equal(rows[words_of_part], expected, "rows are dense, the most frequent first")
        start = data.draw(st.integers(0, len(words_of_part)))
        np.testing.assert_array_equal(partitions.words(part, start, start + 7), words_of_part[start : start + 7])


@pytest.mark.parametrize(("n", "max_load"), [(2, 1.01), (4, 1.02), (8, 1.04), (64, 1.25)])
@pytest.mark.parametrize("size", [71_000, 2_000_000])
def test_partitions__of_words_of_zipfs_law_have_even_loads(n, max_load, size):
    """Work follows the occurrences that subsampling leaves."""
    counts = (1e8 / np.arange(1, size + 1)).astype(np.int64) + 1
    load = counts * (keep_thresholds(counts, 1e-4) / 2**32)
    loads = np.array([load[Partitions(size, n).words(part)].sum() for part in range(n)])
    assert loads.max() / loads.mean() < max_load


@pytest.mark.parametrize(("n_words", "n"), [(5, 6), (5, 0), (0, 1)])
def test_partitions__without_a_word_are_refused(n_words, n):
    with pytest.raises(ParameterError, match=rf"^{n} partitions? of {n_words} words?: each needs a word"):
        Partitions(n_words, n)
