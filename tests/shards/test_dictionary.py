from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.errors import ParameterError
from daskw2v.shards.dictionary import Dictionary, padded

WORD = 2**64 - 1


def encode(words, weights=None, into=None):
    into = Dictionary() if into is None else into
    bounds = np.cumsum([0, *map(len, words)]).astype(np.int64)
    weights = None if weights is None else np.array(weights, np.int64)
    return into, into.encode(padded(b"".join(words)), bounds[:-1], bounds[1:], weights)


def listed(words, offsets):
    data = words.tobytes()
    return [data[a:b] for a, b in pairwise(offsets)]


def reference_hash(word):
    """The hash, by Python's integers; stored dictionaries rely on it."""

    def mixed(h, w):
        h = (h ^ w) * 0x6A09E667F3BCC909 & WORD
        return h ^ h >> 32

    head = int.from_bytes(word[:8], "little") << 8 * max(0, 8 - len(word))
    tail = int.from_bytes(word[-8:], "little") if len(word) > 8 else 0
    h = mixed(mixed(len(word) * 0x9E3779B97F4A7C15 & WORD, head), tail)
    if len(word) > 16:
        for i in range(8, len(word) - 8, 8):
            h = mixed(h, int.from_bytes(word[i : i + 8], "little"))
    h = h * 0xBB67AE8584CAA73B & WORD
    return h ^ h >> 29


def collide(head, other_head, tail):
    """Two different words of 16 bytes with the same hash."""

    def after_head(head):
        h = ((16 * 0x9E3779B97F4A7C15 & WORD) ^ int.from_bytes(head, "little")) * 0x6A09E667F3BCC909 & WORD
        return h ^ h >> 32

    other = int.from_bytes(tail, "little") ^ after_head(head) ^ after_head(other_head)
    return head + tail, other_head + other.to_bytes(8, "little")


words_lists = st.lists(st.binary(max_size=40) | st.sampled_from([b"the", b"a", b"a\0", b"of"]), max_size=300)


@given(words_lists)
def test_encode__equals_counter(words):
    d, codes = encode(words)
    types = listed(d.words, d.offsets)
    assert [types[c] for c in codes] == words
    assert types == list(dict.fromkeys(words))  # codes by first appearance
    assert dict(zip(types, d.counts().tolist(), strict=True)) == Counter(words)
    assert d.hashes.tolist() == [reference_hash(word) for word in types]


@given(
    st.dictionaries(st.binary(max_size=20), st.integers(0, 2**40)),
    st.dictionaries(st.binary(max_size=20), st.integers(0, 2**40)),
)
def test_encode__adds_weights(a, b):
    d, _ = encode(list(a), list(a.values()))
    encode(list(b), list(b.values()), into=d)
    total = {word: a.get(word, 0) + b.get(word, 0) for word in [*a, *b]}
    assert dict(zip(listed(d.words, d.offsets), d.counts().tolist(), strict=True)) == total


def test_encode__tells_words_of_equal_hash_apart():
    a, b = collide(b"abcdefgh", b"ABCDEFGH", b"12345678")
    assert a != b
    assert reference_hash(a) == reference_hash(b)
    d, codes = encode([a, b, a, b, b])
    assert codes.tolist() == [0, 1, 0, 1, 1]
    assert d.counts().tolist() == [2, 3]


def test_encode__compares_the_middle_of_long_words():
    a, b = b"x" * 8 + b"1" * 30 + b"y" * 8, b"x" * 8 + b"2" * 30 + b"y" * 8
    assert encode([a, b, a])[1].tolist() == [0, 1, 0]


@pytest.mark.slow
def test_encode__grows():
    """Beyond the 65,536 words and 512 KiB that a new one has room for."""
    words = [str(i % 70_000).encode() * (1 + i % 7) for i in range(100_000)]
    d, codes = encode(words)
    types = listed(d.words, d.offsets)
    assert [types[c] for c in codes] == words
    assert dict(zip(types, d.counts().tolist(), strict=True)) == Counter(words)


def test_encode__takes_a_word_of_a_megabyte():
    word = b"x" * (1 << 20)
    d, codes = encode([b"a", word, word + b"y", word])
    assert codes.tolist() == [0, 1, 2, 1]
    assert listed(d.words, d.offsets)[1] == word


def test_encode__refuses_what_is_not_padded():
    with pytest.raises(ParameterError, match="padded"):
        Dictionary().encode(np.zeros(12, np.uint8), np.array([0]), np.array([5]))


def test_hashes__spread_over_buckets():
    d, _ = encode([str(i).encode() for i in range(1 << 16)])
    assert len(set(d.hashes.tolist())) == 1 << 16
    for shift in (58, 0):  # top bits choose buckets, low bits slots
        filled = np.bincount(((d.hashes >> np.uint64(shift)) & np.uint64(63)).astype(int), minlength=64)
        assert abs(filled - 1024).max() < 6 * 32
