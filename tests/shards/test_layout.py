import numpy as np
import pytest

from daskw2v.corpus.pieces import ReadReport
from daskw2v.errors import StoreError
from daskw2v.shards.dictionary import Dictionary, padded
from daskw2v.shards.layout import N_EDGES, Corpus, Shard, open_codes, read_edges, read_words, write_shard
from daskw2v.store.storage import Store


@pytest.fixture
def shard(tmp_path):
    words = [str(i % 997).encode() for i in range(3000)]
    bounds = np.cumsum([0, *map(len, words)])
    dictionary = Dictionary()
    codes = dictionary.encode(padded(b"".join(words)), bounds[:-1], bounds[1:])
    store = Store(str(tmp_path))
    numbers = write_shard(store / "0", [codes[:10], codes[10:]], np.array([0, 7]), dictionary)
    return store, Shard("0", **numbers), words, dictionary


def test_write_shard__keeps_codes(shard):
    store, shard, words, _dictionary = shard
    assert (shard.n_tokens, shard.n_sentences, shard.n_types) == (3000, 2, 997)
    assert open_codes(store, shard)[995:999].tolist() == [995, 996, 0, 1]
    assert len(open_codes(store, shard)[:]) == len(words)


def test_edges__cut_the_dictionary_by_hash(shard):
    store, shard, _, dictionary = shard
    hashes = np.sort(dictionary.hashes >> np.uint64(52))
    edges = read_edges(store, shard.path)
    for i in (0, 1, 100, N_EDGES - 1):
        inside = hashes[edges[i] : edges[i + 1]]
        assert (inside == i).all()
    assert (edges[0], edges[-1]) == (0, 997)


def test_read_words__reads_a_slice(shard):
    store, shard, _, dictionary = shard
    data, offsets, counts = read_words(store, shard.path, 10, 20)
    code = int(np.argsort(dictionary.hashes >> np.uint64(52), kind="stable")[10])
    assert data[: offsets[1]].tobytes() == str(code).encode()  # the words are their codes
    assert counts[0] == dictionary.counts()[code]
    assert len(offsets) == 11


def a_corpus(store, identity, *paths):
    for path in paths:
        (store / path).create_group()
    corpus = Corpus(identity, tuple(Shard(path, 5, 1, 2) for path in paths), (), ReadReport())
    corpus.save(store)
    return corpus


def test_load__opens_the_very_corpus_that_was_named(tmp_path):
    store = Store(str(tmp_path))
    corpora = [a_corpus(store, "aa", "s/1"), a_corpus(store, "aa", "s/2"), a_corpus(store, "bb", "s/1")]
    assert len({corpus.name for corpus in corpora}) == 3
    assert [Corpus.load(store, corpus.name) for corpus in corpora] == corpora


def test_load__refuses_a_name_that_is_not_there(tmp_path):
    with pytest.raises(StoreError, match="holds no corpus aa-bb"):
        Corpus.load(Store(str(tmp_path)), "aa-bb")


def test_find__wants_the_identity_and_all_shards(tmp_path):
    store = Store(str(tmp_path))
    assert Corpus.find(store, "aa") is None
    one, other = a_corpus(store, "aa", "s/1", "s/2"), a_corpus(store, "bb", "s/1", "s/3")
    assert (Corpus.find(store, "aa"), Corpus.find(store, "bb")) == (one, other)
    (store / "s/2").remove()
    assert (Corpus.find(store, "aa"), Corpus.find(store, "bb")) == (None, other)
    again = a_corpus(store, "aa", "s/1", "s/4")
    assert Corpus.find(store, "aa") == again


def test_bounds__are_positions_in_the_corpus():
    corpus = Corpus("", (Shard("a", 5, 1, 2), Shard("b", 7, 1, 2)), (), ReadReport())
    assert corpus.bounds.tolist() == [0, 5, 12]
