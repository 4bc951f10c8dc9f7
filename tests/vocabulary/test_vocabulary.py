import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.errors import StoreError, UnknownWordError, VocabularyError
from daskw2v.storage import Store, write_array
from daskw2v.vocabulary.vocabulary import Vocabulary


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), unique=True))
def test_from_words__keeps_words_and_order(words):
    vocabulary = Vocabulary.from_words(words, range(len(words)))
    assert vocabulary.words == words
    assert [vocabulary.id(word) for word in words] == list(range(len(vocabulary)))


def test_from_words__refuses_twins_and_lost_counts():
    with pytest.raises(VocabularyError, match="1 distinct"):
        Vocabulary.from_words(["a", "a"], [1, 2])
    with pytest.raises(VocabularyError, match="1 counts"):
        Vocabulary.from_words(["a", "b"], [1])


def test_id__names_the_unknown_word():
    vocabulary = Vocabulary.from_words(["a"], [1])
    assert "a" in vocabulary
    assert "b" not in vocabulary
    with pytest.raises(UnknownWordError, match="'b' is not among the 1 words"):
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
