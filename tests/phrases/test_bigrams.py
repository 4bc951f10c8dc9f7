"""Bigrams as numbers: keys that come back, counts of sorted ones, buckets that are even."""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.phrases import bigrams
from daskw2v.phrases.bigrams import (
    BIGRAM,
    NOTHING,
    bigram_keys,
    choose_n_buckets,
    count_keys,
    cut_keys,
    merge_bigrams,
    pairs_of,
)

IDS = st.integers(0, 5) | st.integers(0, 2**31 - 1)
TEXT = st.lists(st.lists(st.integers(0, 6), max_size=9), max_size=9)


def keys_of(words, starts=(), ids=None, before=NOTHING):
    ids = np.arange(max([*words, 0]) + 1) if ids is None else np.array(ids)
    return bigram_keys(np.array(words, np.int32), np.array(starts, np.int64), ids.astype(np.int32), before)


@given(st.lists(IDS, min_size=2, max_size=20))
def test_pairs_of__gives_back_what_keys_were_made_of(ids):
    keys = keys_of(range(len(ids)), ids=ids)
    assert list(map(tuple, pairs_of(keys).tolist())) == list(pairwise(ids))
    assert keys.all()
    assert len(set(keys.tolist())) == len(set(pairwise(ids)))


@given(TEXT, IDS)
def test_bigram_keys__are_of_neighbours_in_a_sentence(sentences, before):
    """Whatever the first sentence is the rest of: the word before it belongs to it."""
    sentences = [sentence for sentence in sentences if sentence] or [[1]]
    words = [word for sentence in sentences for word in sentence]
    starts = np.cumsum([0, *map(len, sentences)])[:-1]
    ids = np.arange(7) * 10**8
    expected = [(ids[a], ids[b]) for sentence in sentences for a, b in pairwise(sentence)]
    assert list(map(tuple, pairs_of(keys_of(words, starts, ids)).tolist())) == expected
    goes_on = pairs_of(keys_of(words, starts[1:], ids, before))
    assert list(map(tuple, goes_on.tolist())) == [(before, ids[words[0]]), *expected]


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=2, max_size=30), min_size=1, max_size=5), st.sampled_from([1, 2, 8])
)
def test_merge_bigrams__adds_up_what_was_counted_bucket_by_bucket(texts, n_buckets):
    counted = [count_keys(keys_of(words)) for words in texts]
    merged = {}
    for bucket in range(n_buckets):
        cuts = (cut_keys(part["key"], n_buckets)[bucket : bucket + 2] for part in counted)
        keys, counts = merge_bigrams([part[a:b] for part, (a, b) in zip(counted, cuts, strict=True)])
        assert (keys[1:] > keys[:-1]).all()
        assert ((keys >> np.uint64(61)) * n_buckets // 8 == bucket).all()
        merged |= zip(map(tuple, pairs_of(keys).tolist()), counts.tolist(), strict=True)
    assert merged == Counter(pair for words in texts for pair in pairwise(words))


def test_merge_bigrams__counts_beyond_32_bits():
    part = np.array([(7, 2**32 - 1)], BIGRAM)
    assert merge_bigrams([part] * 3)[1].tolist() == [3 * (2**32 - 1)]


def test_keys__fill_buckets_evenly():
    """Bigrams of frequent words, whose ids are small, as of any others."""
    rng = np.random.default_rng(0)
    words = (rng.zipf(1.2, 200_000) % 50_000).astype(np.int32)
    distinct = count_keys(keys_of(words))
    sizes = np.diff(cut_keys(distinct["key"], 16))
    assert sizes.sum() == len(distinct) > 50_000
    assert sizes.max() < 1.1 * sizes.mean()


@pytest.mark.parametrize(("words", "expected"), [(0, 1), (100, 1), (101, 2), (200, 2), (201, 4), (900, 16)])
def test_choose_n_buckets__is_a_power_of_two_that_bounds_what_is_merged(monkeypatch, words, expected):
    monkeypatch.setattr(bigrams, "BUCKET_WORDS", 100)
    assert choose_n_buckets(words) == expected
