"""Words as flat bytes: taken and compared as lists of words are, however they are cut."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.shards.words import are_words, cut_words, same_words, take_words

LONG = [b"long" * 9, b"a" * 30_000, b"a" * 29_999 + b"c"]  # a few of the longest fill a run
WORDS = st.lists(st.binary(max_size=6) | st.sampled_from([b"ab", b"ac", *LONG]), min_size=1, max_size=40)


def flat(listed):
    offsets = np.concatenate([[0], np.cumsum([len(word) for word in listed])]).astype(np.int64)
    return np.frombuffer(b"".join(listed), np.uint8), offsets


def listed(data, offsets):
    return [data[a:b].tobytes() for a, b in pairwise(offsets)]


@given(WORDS)
def test_cut_words__gives_each_word_once_and_few_bytes_at_a_time(known):
    data, offsets = flat(known)
    assert are_words(data, offsets)
    runs = list(cut_words(offsets))
    assert [i for first, last in runs for i in range(first, last)] == list(range(len(known)))
    assert all(offsets[last - 1] - offsets[first] <= 1 << 16 for first, last in runs)


@given(WORDS, st.data())
def test_take_words__is_a_choice_from_a_list(known, data):
    order = data.draw(st.lists(st.integers(0, len(known) - 1), max_size=60))
    assert listed(*take_words(*flat(known), np.array(order, np.int64))) == [known[i] for i in order]


@given(WORDS, WORDS, st.data())
def test_same_words__compares_word_by_word(known, other, data):
    pairs = st.tuples(st.integers(0, len(known) - 1), st.integers(0, len(other) - 1))
    a, b = np.array(data.draw(st.lists(pairs, max_size=60)), np.int64).reshape(-1, 2).T
    equal = [known[i] == other[j] for i, j in zip(a, b, strict=True)]
    assert same_words(flat(known), a, flat(other), b).tolist() == equal
