import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.errors import StoreError, UnknownWordError, VocabularyError
from daskw2v.store.arrays import write_array
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary

TEXT = st.text(st.characters(exclude_categories=["Cs"]))


@given(st.lists(TEXT, unique=True), st.lists(TEXT), st.data())
def test_from_words__keeps_words_and_order(words, others, data):
    vocabulary = Vocabulary.from_words(words, range(len(words)))
    assert vocabulary.words == words
    assert list(vocabulary) == words
    assert [vocabulary.id(word) for word in words] == list(range(len(vocabulary)))
    assert [vocabulary.word(i) for i in range(len(words))] == words
    start, stop = (data.draw(st.integers(0, len(words))) for _ in range(2))
    assert vocabulary.between(start, stop) == words[start:stop]
    ids = {word: i for i, word in enumerate(words)}
    assert [vocabulary.find(word) for word in others] == [ids.get(word) for word in others]


def test_iteration__makes_some_words_at_a_time_and_repr_shows_the_first():
    words = [f"word{i}" for i in range(10_000)]
    vocabulary = Vocabulary.from_words(words, [1] * len(words))
    assert list(vocabulary) == words
    assert repr(vocabulary) == "<Vocabulary of 10,000 words: 'word0', 'word1', 'word2', ...>"
    assert repr(Vocabulary.from_words(["a"], [1])) == "<Vocabulary of 1 words: 'a'>"
    assert "words" not in vars(vocabulary)


def test_find__makes_no_object_for_each_word():
    words = [f"word{i}" for i in range(100_000)]  # many share their first slots
    vocabulary = Vocabulary.from_words(words, [1] * len(words))
    assert [vocabulary.find(word) for word in words] == list(range(len(words)))
    assert not any(word[:-1] + "x" in vocabulary for word in words)
    assert vocabulary.word(77_777) == "word77777"
    assert "words" not in vars(vocabulary)


@pytest.mark.parametrize("other", ["b", "", "a\ud800", "\udc61", 0, None, b"a", ("a",), ["a"]])
def test_find__knows_nothing_else(other):
    vocabulary = Vocabulary.from_words(["a", "aa"], [1, 1])
    assert vocabulary.find(other) is None
    assert other not in vocabulary


@pytest.mark.parametrize("i", [2, -1])
def test_word__refuses_an_id_that_is_none(i):
    with pytest.raises(IndexError, match=f"no word {i} of 2"):
        Vocabulary.from_words(["a", "aa"], [1, 1]).word(i)


def test_from_words__refuses_twins_and_lost_counts():
    with pytest.raises(VocabularyError, match="1 distinct"):
        Vocabulary.from_words(["a", "a"], [1, 2])
    with pytest.raises(VocabularyError, match=r"2 words \(2 distinct\) with 1 count\."):
        Vocabulary.from_words(["a", "b"], [1])


def test_id__names_the_unknown_word():
    vocabulary = Vocabulary.from_words(["a"], [1])
    assert "a" in vocabulary
    assert "b" not in vocabulary
    with pytest.raises(UnknownWordError, match="'b' is not among the 1 word of"):
        vocabulary.id("b")


def test_load__reads_what_was_saved(tmp_path):
    vocabulary = Vocabulary.from_words(["the", "", "Ü"], [3, 2, 1])
    vocabulary.save(Store(str(tmp_path)).create_group())
    loaded = Vocabulary.load(Store(str(tmp_path)).open_group())
    assert loaded.words == vocabulary.words
    assert loaded.counts.tolist() == [3, 2, 1]


def test_load__refuses_what_is_damaged(tmp_path):
    group = Store(str(tmp_path)).create_group()
    with pytest.raises(StoreError, match="missing"):
        Vocabulary.load(group)
    write_array(group, "words", np.zeros(3, np.uint8))
    write_array(group, "offsets", np.array([0, 2], np.int64))
    write_array(group, "counts", np.array([1], np.int64))
    with pytest.raises(VocabularyError, match="damaged"):
        Vocabulary.load(group)


def test_load__refuses_offsets_whose_differences_wrap_around(tmp_path):
    """A kernel would look for words far outside of memory."""
    group, largest = Store(str(tmp_path)).create_group(), np.iinfo(np.int64).max
    offsets = np.array([0, largest, -largest - 1, -1, 3], np.int64)
    assert (np.diff(offsets) >= 0).all()
    for name, values in (("words", np.zeros(3, np.uint8)), ("offsets", offsets), ("counts", np.ones(4, np.int64))):
        write_array(group, name, values)
    with pytest.raises(VocabularyError, match="damaged"):
        Vocabulary.load(group)
