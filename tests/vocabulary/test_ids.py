"""Stable ids: a word has one for ever, and no other word ever has it."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskw2v.errors import StoreError, VocabularyError
from daskw2v.store.arrays import read_array, write_array
from daskw2v.store.storage import Store
from daskw2v.vocabulary.ids import StableIds
from daskw2v.vocabulary.vocabulary import Vocabulary

WORDS = st.lists(st.sampled_from(["", "a", "aa", "b", "ä", "東京", "word-of-many-bytes", *"cdefghij"]), unique=True)


def vocabulary_of(words):
    return Vocabulary.from_words(words, range(len(words), 0, -1))


def grown(history):
    """Return the ids of each version of a history of vocabularies."""
    versions = [StableIds.first(vocabulary_of(history[0]))]
    for known, new in pairwise(history):
        versions.append(versions[-1].grow(vocabulary_of(known), vocabulary_of(new)))
    return versions


def former_words(ids):
    return Vocabulary(ids.former_words, ids.former_offsets, ids.former_ids).words


@given(st.lists(WORDS, min_size=1, max_size=8))
def test_grow__gives_each_word_one_id_for_ever(history):
    given = {}
    for words, ids in zip(history, grown(history), strict=True):
        for word in words:
            given.setdefault(word, len(given))
        assert ids.ids.tolist() == [given[word] for word in words]
        assert dict(zip(former_words(ids), ids.former_ids.tolist(), strict=True)) == {
            word: id_ for word, id_ in given.items() if word not in words
        }
        assert sorted([*ids.ids, *ids.former_ids]) == list(range(ids.next_id))
        assert (ids.former_ids[:-1] < ids.former_ids[1:]).all()


@settings(max_examples=20)
@given(st.lists(WORDS, min_size=1, max_size=4))
def test_load__reads_what_was_saved(history):
    group = Store("memory://stable-ids").create_group()
    ids = grown(history)[-1]
    ids.save(group)
    loaded = StableIds.load(group)
    for name in ("ids", "former_words", "former_offsets", "former_ids"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(ids, name))


def test_grow__takes_many_words_at_once():
    n, step = 300_000, 100_000

    def numbered(first):
        words = np.char.mod("%07d", np.arange(first, first + n)).astype("S7")
        return Vocabulary(words.view(np.uint8), np.arange(n + 1) * 7, np.ones(n, np.int64))

    first, second = numbered(0), numbered(step)
    ids = StableIds.first(first).grow(first, second)
    np.testing.assert_array_equal(ids.ids, np.arange(step, step + n))
    np.testing.assert_array_equal(ids.former_ids, np.arange(step))
    again = ids.grow(second, first)
    np.testing.assert_array_equal(again.ids, np.arange(n))
    assert again.next_id == n + step


def test_grow__refuses_another_vocabulary():
    with pytest.raises(VocabularyError, match="2 ids for 1 word\\."):
        StableIds.first(vocabulary_of(["a", "b"])).grow(vocabulary_of(["a"]), vocabulary_of(["a"]))


def test_grow__refuses_a_word_that_is_both_there_and_gone():
    ids = grown([["a", "b"], ["a"]])[-1]
    with pytest.raises(VocabularyError, match="holds 'b' twice"):
        ids.grow(vocabulary_of(["b"]), vocabulary_of(["a"]))


MAX_WORDS = np.iinfo(np.int64).max
DAMAGE = [
    ("ids", [0, 0]),  # of two words
    ("ids", [0, 2]),  # as a former word's
    ("ids", [0, 4]),  # that was never given
    ("ids", [0, -1]),
    ("ids", [0, MAX_WORDS]),
    ("ids", [0, 1, 3]),  # one more than there are
    ("ids", [[0, 1]]),
    ("ids", np.array([0, 1], np.int32)),
    ("ids", np.array([0, 1], np.float64)),
    ("former_ids", [1]),
    ("former_ids", []),
    ("former_ids", [2, 3]),
    ("former_ids", [[2]]),
    ("former_ids", np.array([2], np.uint64)),
    ("former_offsets", [0]),
    ("former_offsets", []),
    ("former_offsets", [0, 4]),
    ("former_offsets", [1, 3]),
    ("former_offsets", [0, 3, 3]),
    ("former_offsets", [0, MAX_WORDS, -MAX_WORDS - 1, -1, 3]),
    ("former_words", np.zeros(2, np.uint8)),
    ("former_words", np.zeros((3, 1), np.uint8)),
    ("former_words", np.zeros(3, np.int8)),
]


@pytest.mark.parametrize(("name", "values"), DAMAGE, ids=str)
def test_load__refuses_what_contradicts_itself(tmp_path, name, values):
    group = Store(str(tmp_path)).create_group()
    grown([["old", "a"], ["a", "b"]])[-1].save(group)
    values = np.asarray(values, np.int64 if isinstance(values, list) else values.dtype)
    del group[name]
    write_array(group, name, values)
    np.testing.assert_array_equal(read_array(group, name), values)
    with pytest.raises(VocabularyError, match=r"The ids at .* are damaged"):
        StableIds.load(group)


@pytest.mark.parametrize("name", ["ids", "former_words", "former_offsets", "former_ids"])
def test_load__misses_an_array_that_is_lost(tmp_path, name):
    group = Store(str(tmp_path)).create_group()
    grown([["old", "a"], ["a", "b"]])[-1].save(group)
    del group[name]
    with pytest.raises(StoreError, match=f"{name} is missing"):
        StableIds.load(group)
