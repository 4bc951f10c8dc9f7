"""All steps from dictionaries to ids, in one thread: against sorted(), for any number of buckets and pieces."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from daskw2v.errors import VocabularyError
from daskw2v.shards.dictionary import Dictionary, padded
from daskw2v.shards.layout import open_codes, write_shard
from daskw2v.store.arrays import read_array
from daskw2v.store.storage import Store
from daskw2v.vocabulary import buckets, order
from daskw2v.vocabulary.buckets import CountRules, run_step_locally, run_steps
from daskw2v.vocabulary.vocabulary import Vocabulary

TIES = [f"w{i:02}" for i in range(40)]


def put(store, texts):
    """Write a shard of each text, and the folder of a build; return the folder."""
    paths = []
    for i, text in enumerate(texts):
        encoded = [word.encode() for word in text]
        offsets = np.cumsum([0, *map(len, encoded)])
        dictionary = Dictionary()
        codes = dictionary.encode(padded(b"".join(encoded)), offsets[:-1], offsets[1:])
        write_shard(store / f"shard-{i}", [codes], np.zeros(1, np.int64), dictionary)
        paths.append(f"shard-{i}")
    (store / "folder").write_manifest({"paths": paths}, "shards.json")
    return store / "folder"


def choose(store, texts, *, n_buckets=1, piece_types=1000, min_count=1, limit=None, listed=None):
    """Take all steps; return their result, the vocabulary, its group, and the corpus by its ids, None without one."""
    folder = put(store, texts)
    if listed is not None:
        buckets.write_list(folder, listed)
    rules = CountRules(min_count, limit, listed=listed is not None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "PIECE_TYPES", piece_types)
        result = SimpleNamespace(**run_steps(folder, store, rules, n_buckets, run_step_locally))
    group = (folder / "chosen" / result.chosen).open_group()
    vocabulary = Vocabulary.load(group)
    words = [*vocabulary.words, None]
    corpus, maps = [], buckets.Maps(folder, result.plan, result.maps)
    for i in range(len(texts)):
        ids = maps.read(f"shard-{i}", (store / f"shard-{i}").open_group())
        corpus.append([words[i] for i in ids[open_codes(store, SimpleNamespace(path=f"shard-{i}"))[:]]])
    return result, vocabulary, group, corpus


def ranked(counts):
    return sorted(counts, key=lambda word: (-counts[word], word.encode()))


some_words = (
    st.text("ab", min_size=1, max_size=4)
    | st.sampled_from(["Ü", "\0", "a\0", "sixteen-bytes-xx", "sixteen-bytes-xx" * 2, "x" * 40])
    | st.integers(0, 60).map("w{:02}".format)
)
some_texts = st.lists(st.lists(some_words, min_size=1, max_size=80), min_size=1, max_size=3)


@settings(max_examples=5)
@given(
    some_texts,
    st.sampled_from([1, 2, 4]),
    st.sampled_from([2, 7, 20, 1000]),
    st.integers(1, 2),
    st.none() | st.integers(1, 30),
    st.none() | st.lists(some_words, min_size=1, max_size=40, unique=True),
)
@example([TIES[::-1], TIES[:20]], 4, 3, 1, 7, None)  # the limit cuts a tie that all buckets share
@example([TIES[::-1]], 2, 1, 1, 39, None)
@example([TIES], 4, 3, 1, None, ["z", "w39", "y", "w00", "x"])
def test_run_steps__equals_sorted(tmp_path_factory, texts, n_buckets, piece_types, min_count, limit, listed):
    counts = Counter(word for text in texts for word in text)
    if listed is None:
        kept = ranked({word: n for word, n in counts.items() if n >= min_count})[:limit]
        missing = []
    else:
        min_count, limit = 1, None
        kept = ranked({word: counts[word] for word in listed if word in counts})
        missing = [word for word in listed if word not in counts]
    store = Store(str(tmp_path_factory.mktemp("store")))
    choices = {"min_count": min_count, "limit": limit, "listed": listed}
    if not kept:
        with pytest.raises(VocabularyError):
            choose(store, texts, n_buckets=n_buckets, piece_types=piece_types, **choices)
        return
    result, vocabulary, _, corpus = choose(store, texts, n_buckets=n_buckets, piece_types=piece_types, **choices)
    assert vocabulary.words == kept
    assert vocabulary.counts.tolist() == [counts[word] for word in kept]
    assert corpus == [[word if word in kept else None for word in text] for text in texts]
    assert (result.size, result.total) == (len(kept), sum(counts[word] for word in kept))
    assert (result.raw_words, result.raw_types) == (counts.total(), len(counts))
    assert (result.missing, result.missing_words) == (len(missing), missing[:20])


@pytest.mark.slow
@pytest.mark.parametrize("limit", [None, 150])
def test_run_steps__writes_the_same_however_many_buckets_and_pieces(tmp_path, limit):
    texts = [[f"w{i * j % 211}" for j in range(1, 300)] for i in range(1, 4)]
    results = []
    for n_buckets, piece_types in [(1, 1000), (1, 9), (8, 1000), (8, 40)]:
        _, _, group, corpus = choose(
            Store(str(tmp_path / f"{n_buckets}-{piece_types}")),
            texts,
            n_buckets=n_buckets,
            piece_types=piece_types,
            limit=limit,
        )
        arrays = [read_array(group, name) for name in ("words", "offsets", "counts")]
        assert [array.dtype for array in arrays] == [np.uint8, np.int64, np.int64]
        results.append(([array.tolist() for array in arrays], corpus))
    assert all(other == results[0] for other in results)


def test_run_steps__counts_all_missing_words_and_shows_the_first(tmp_path):
    listed = [f"missing-{i}" for i in range(30, 0, -1)]
    result, *_ = choose(Store(str(tmp_path)), [["a", "b"]], n_buckets=8, listed=[*listed[:5], "b", *listed[5:]])
    assert (result.missing, result.missing_words) == (30, listed[:20])


@pytest.mark.parametrize("n_buckets", [1, 8])
def test_run_steps__names_what_is_wrong(tmp_path, monkeypatch, n_buckets):
    with pytest.raises(VocabularyError, match=r"min_count=3.*occurs 2 times"):
        choose(Store(str(tmp_path / "rare")), [["a", "b", "a"]], n_buckets=n_buckets, min_count=3)
    with pytest.raises(VocabularyError, match=r"None of the 2 words"):
        choose(Store(str(tmp_path / "listed")), [["a", "b"]], n_buckets=n_buckets, listed=["c", "d"])
    monkeypatch.setattr(buckets, "MAX_WORDS", 1)
    with pytest.raises(VocabularyError, match=r"2 words are kept, more than 1.*max_final_vocab=1"):
        choose(Store(str(tmp_path / "many")), [["a", "b"]], n_buckets=n_buckets)


@pytest.mark.parametrize("n_buckets", [1, 4, 64])
def test_choose_splitters__make_pieces_of_about_one_size(monkeypatch, n_buckets):
    monkeypatch.setattr(order, "PIECE_TYPES", 2000)
    rng = np.random.default_rng(1)
    counts = rng.zipf(1.7, 40_000)
    keys = sorted((-int(count), b"%d" % word) for word, count in enumerate(counts))
    bucket_of = rng.integers(0, n_buckets, len(keys))
    ordered = [[keys[i] for i in np.flatnonzero(bucket_of == b)] for b in range(n_buckets)]
    sample = [words[i] for b, words in enumerate(ordered) for i in order.sample_indices(b, n_buckets, len(words))]
    assert len(sample) < len(keys) / 3
    splitters = order.choose_splitters(sample, len(keys))
    sizes = np.diff([0, *(keys.index(splitter) for splitter in splitters), len(keys)])
    assert len(sizes) == 20
    assert 1600 < sizes.min() <= sizes.max() < 2400
