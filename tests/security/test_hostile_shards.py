"""Shards that somebody made to do harm, with checksums that are right: kernels never read outside of what there is."""

import shutil

import numpy as np
import pytest

from daskw2v import Params, Resources
from daskw2v.errors import DamageError
from daskw2v.sampling.reader import SegmentReader
from daskw2v.shards.encode import build_corpus
from daskw2v.shards.layout import read_words
from daskw2v.store.arrays import write_array
from daskw2v.store.storage import Store
from daskw2v.vocabulary.buckets import Maps
from daskw2v.vocabulary.count import build_vocabulary

TEXT = "king queen king man\n" * 50


@pytest.fixture(scope="module")
def made(tmp_path_factory, client):
    """A work directory with a corpus of one shard and its vocabulary."""
    folder = tmp_path_factory.mktemp("made")
    (folder / "text.txt").write_text(TEXT)
    store, params, resources = Store(str(folder / "work")), Params(min_count=1), Resources()
    corpus = build_corpus(str(folder / "text.txt"), store, params, resources, client)
    return folder, corpus, build_vocabulary(corpus, store, params, resources, client)


@pytest.fixture
def opened(made, tmp_path):
    """A copy of it: corpus, shard's group, and what reads all of it."""
    folder, corpus, vocabulary = made
    shutil.copytree(folder / "work", tmp_path / "work")
    store = Store(str(tmp_path / "work"))
    words = vocabulary.__class__(**{**vars(vocabulary), "store": store})

    def read():
        reader = SegmentReader(store, corpus, words)
        return reader.read(0, corpus.n_tokens, 2, np.full(words.size, 2**32, np.uint64), np.uint64(0))

    return store, corpus, words, read


def replace(store, path, name, values):
    group = (store / path).open_group(writable=True)
    del group[name]
    write_array(group, name, values)


def test_text__is_read(opened):
    segment, words = opened[3]()
    assert (len(segment.tokens), words) == (200, 200)


@pytest.mark.parametrize("code", [-1, 3, 2**31 - 1, -(2**31)])
def test_codes__that_name_no_word_are_refused(opened, code):
    store, corpus, _, read = opened
    replace(store, corpus.shards[0].path, "codes", np.array([0, 1, code] * 66 + [0, 1], np.int32))
    with pytest.raises(DamageError, match=r"/codes has numbers that are not in 0\.\.2"):
        read()


@pytest.mark.parametrize("offsets", [[0, 100, 4, 12], [0, 2**63 - 1, -(2**63), 12], [0, 4, 9, 13], [4, 0, 9, 12]])
def test_offsets__that_part_no_words_are_refused(opened, offsets):
    store, corpus, _, _ = opened
    path = corpus.shards[0].path
    assert len(read_words(store, path, 0, 3)[0]) == len("kingqueenman")
    replace(store, path, "offsets", np.array(offsets, np.int64))
    with pytest.raises(DamageError, match="words"):
        read_words(store, path, 0, 3)


@pytest.mark.parametrize("id_", [3, -2, 2**31 - 1])
def test_maps__to_no_word_are_refused(opened, monkeypatch, id_):
    *_, read = opened
    monkeypatch.setattr(Maps, "read", lambda *_: np.array([0, 1, id_], np.int32))
    with pytest.raises(DamageError, match=r"/maps has numbers that are not in -1\.\.2"):
        read()
