"""N-grams of words: which there are, and how they are numbered."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.features.ngram_kernel import hash_stored_words
from daskw2v.features.ngrams import END_OF_SENTENCE, hash_word, hash_words
from daskw2v.vocabulary.vocabulary import Vocabulary

WORDS = ["the", "naïve", "日本語", END_OF_SENTENCE, "a", "ab", "<x>", "aaaa", "\U0001f600\U0001f600", "x" * 300]


@pytest.mark.parametrize(("minn", "maxn"), [(3, 6), (1, 4), (2, 2), (5, 5), (1, 255)])
@pytest.mark.parametrize("bucket", [1, 2000, 2**31 - 1])
def test_the_kernel__equals_its_reference(minn, maxn, bucket):
    words = Vocabulary.from_words(WORDS, [1] * len(WORDS))
    offsets, buckets = hash_stored_words(words.data, words.offsets, minn, maxn, bucket)
    expected = hash_words(WORDS, minn, maxn, bucket)
    np.testing.assert_array_equal(offsets, expected[0])
    np.testing.assert_array_equal(buckets, expected[1])


@given(words=st.lists(st.text(st.characters(exclude_categories=["Cs"]), min_size=1), min_size=1, unique=True))
def test_the_kernel__equals_its_reference_for_any_words(words):
    vocabulary = Vocabulary.from_words(words, [1] * len(words))
    actual, expected = hash_stored_words(vocabulary.data, vocabulary.offsets, 2, 5, 997), hash_words(words, 2, 5, 997)
    np.testing.assert_array_equal(actual[0], expected[0])
    np.testing.assert_array_equal(actual[1], expected[1])


def test_numbers__are_those_of_fasttext():
    """FNV-1a of "<ab", "<ab>", "ab>": computed by hand with 64-bit integers."""

    def fnv(text):
        value = 2166136261
        for byte in text.encode():
            signed = byte - 256 if byte > 127 else byte
            value = ((value ^ (signed & 0xFFFFFFFF)) * 16777619) % 2**32
        return value

    assert list(hash_word("ab", 3, 6)) == [fnv("<ab"), fnv("<ab>"), fnv("ab>")]
    assert list(hash_word("é", 1, 2)) == [fnv("<é"), fnv("é"), fnv("é>")], "a mark alone is none"


def test_no_words__have_no_ngrams():
    offsets, buckets = hash_words([], 3, 6, 10)
    assert offsets.tolist() == [0]
    assert not len(buckets)
