"""Joining in a stretch of text, against plain Python."""

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.phrases.bigrams import NOTHING, WordList, encode_symbols, join_codes
from daskw2v.phrases.reference import join_phrases

WORDS = ["a", "b", "a_b", "", "Ü" * 9, "b_"]  # joined, a and b are a word that the text has too
PAIRS = st.lists(st.tuples(*[st.integers(0, len(WORDS) - 1)] * 2), max_size=20, unique=True)
TEXT = st.lists(st.lists(st.integers(0, len(WORDS) - 1), min_size=1, max_size=20), min_size=1, max_size=5)


def words_of_codes():
    encoded = [word.encode() for word in WORDS[::-1]]
    offsets = np.cumsum([0, *map(len, encoded)])
    return WordList(np.frombuffer(b"".join(encoded), np.uint8), offsets, np.arange(len(WORDS))[::-1])


def joined(codes, starts, pairs, **around):
    pairs = np.array(pairs, np.int32).reshape(-1, 2)
    joined_text = join_codes(np.array(codes, np.int32), np.array(starts, np.int64), pairs, len(WORDS), **around)
    numbers, dictionary = encode_symbols(joined_text.symbols, words_of_codes(), pairs, "_")
    types = [dictionary.words[a:b].tobytes().decode() for a, b in pairwise(dictionary.offsets)]
    words = [types[number] for number in numbers]
    assert dictionary.counts().tolist() == [words.count(word) for word in types]
    assert types == list(dict.fromkeys(words))
    return words, joined_text.starts.tolist()


@given(TEXT, PAIRS)
def test_join_codes__joins_as_the_reference(sentences, pairs):
    starts = np.cumsum([0, *map(len, sentences)])[:-1]
    phrases = {(WORDS[a], WORDS[b]) for a, b in pairs}
    expected = [join_phrases([WORDS[code] for code in sentence], phrases, "_") for sentence in sentences]
    words, new_starts = joined([code for sentence in sentences for code in sentence], starts, pairs)
    assert words == [word for sentence in expected for word in sentence]
    assert new_starts == np.cumsum([0, *map(len, expected)])[:-1].tolist()


@given(st.lists(st.integers(0, len(WORDS) - 1), min_size=1, max_size=30), PAIRS, st.integers(0, 30))
def test_join_codes__of_two_parts_are_those_of_the_whole(codes, pairs, cut):
    """The first part ends with what begins in it, the second one leaves out what a phrase has taken."""
    codes, pairs, cut = np.array(codes, np.int32), np.array(pairs, np.int32).reshape(-1, 2), 1 + cut % len(codes)
    none, ahead = np.empty(0, np.int64), codes[cut] if cut < len(codes) else NOTHING
    expected = join_codes(codes, none, pairs, len(WORDS)).symbols
    ends = np.cumsum(1 + (expected >= len(WORDS)))
    first = join_codes(codes[:cut], none, pairs, len(WORDS), ahead=ahead).symbols
    second = join_codes(codes[cut:], none, pairs, len(WORDS), skip_first=cut not in ends and ahead != NOTHING).symbols
    assert [*first, *second] == expected.tolist()


def test_join_codes__takes_each_word_once_from_the_left():
    assert joined([0, 0, 0, 0, 0], [0], [(0, 0)])[0] == ["a_a", "a_a", "a"]
    assert joined([0, 0, 0, 0, 0], [0, 3], [(0, 0)]) == (["a_a", "a", "a_a"], [0, 2])
    assert joined([0, 0, 0], [], [(0, 0)], skip_first=True)[0] == ["a_a"]
    assert joined([0, 0, 0], [0], [(0, 0)], ahead=0)[0] == ["a_a", "a_a"]
    assert joined([0], [], [(0, 0)], skip_first=True)[0] == []


def test_encode_symbols__gives_one_code_to_a_phrase_and_the_same_word():
    words, _ = joined([2, 0, 1, 2], [0], [(0, 1)])
    assert words == ["a_b", "a_b", "a_b"]
