"""Words are found by their bytes, one at a time or all at once."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from daskw2v.errors import VocabularyError
from daskw2v.vocabulary import vocabulary as module
from daskw2v.vocabulary.vocabulary import Vocabulary, WordIndex

WORDS = st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=4), unique=True, max_size=40)


def flat(words):
    vocabulary = Vocabulary.from_words(words, [1] * len(words))
    return vocabulary.data, vocabulary.offsets


@pytest.fixture(params=["spread", "all alike"])
def hashes(request, monkeypatch):
    """Hashes as they are, and the worst that they can be."""
    if request.param == "all alike":
        monkeypatch.setattr(module, "_LAST", 0)


@pytest.mark.usefixtures("hashes")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(known=WORDS, asked=WORDS)
def test_find_all__is_find_for_each(known, asked):
    index = WordIndex(*flat(known))
    expected = [known.index(word) if word in known else -1 for word in asked]
    assert index.find_all(*flat(asked)).tolist() == expected
    assert [index.find(word.encode()) for word in asked] == [None if id_ < 0 else id_ for id_ in expected]


@pytest.mark.usefixtures("hashes")
@pytest.mark.parametrize("words", [["a", "b", "a"], ["", "b", ""], ["a" * 70_000, *map(str, range(99)), "a" * 70_000]])
def test_index__refuses_a_word_that_stands_twice(words):
    joined = "".join(words).encode()
    offsets = np.concatenate([[0], np.cumsum([len(word) for word in words])])
    with pytest.raises(VocabularyError, match=r"holds '(a*|)' twice"):
        WordIndex(np.frombuffer(joined, np.uint8), offsets)


@pytest.mark.parametrize("length", [0, 1, 7, 8, 9, 100_000])
def test_index__finds_words_of_any_length(length):
    words = ["x" * length, "y" * length + "z", *map(str, range(50_000)), "x" * length + "a"]
    vocabulary = Vocabulary.from_words(words, [1] * len(words))
    ids = range(0, len(words), 997)
    assert [vocabulary.find(words[i]) for i in ids] == list(ids)
    assert [vocabulary.find("x" * n) for n in (length, length + 1)] == [0, None]
    assert vocabulary.find_all(vocabulary).tolist() == list(range(len(words)))


def test_index__of_no_word_finds_none():
    nothing = Vocabulary.from_words([], [])
    assert nothing.find("a") is None
    assert nothing.find_all(Vocabulary.from_words(["a"], [1])).tolist() == [-1]
