import bz2
import gzip
import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.errors import InputError
from daskw2v.shards.encode import build_corpus
from daskw2v.shards.layout import open_codes
from daskw2v.store.stage import groups_exist
from daskw2v.store.storage import Store
from daskw2v.vocabulary import buckets, count, order
from daskw2v.vocabulary.count import build_vocabulary

TEXT = "the cat sat on the mat\nthe dog\n" * 5 + "a cat a dog\n" * 3 + "rare\n"


@pytest.fixture
def build(tmp_path, client):
    def build(text, params=None):
        path = tmp_path / "text.txt"
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
        store, resources = Store(str(tmp_path / "work")), Resources()
        params = params or Params(min_count=1)
        corpus = build_corpus(str(path), store, params, resources, client)
        return corpus, build_vocabulary(corpus, store, params, resources, client)

    return build


def ranked(counts):
    return sorted(counts, key=lambda word: (-counts[word], word.encode()))


def decoded(store, corpus, vocabulary):
    """The corpus as words, by way of its codes, the maps and the vocabulary; left out words are None."""
    words = [*vocabulary.load().words, None]
    ids = (vocabulary.read_map(shard.path)[open_codes(store, shard)[:]] for shard in corpus.shards)
    return [words[i] for shard in ids for i in shard.tolist()]


words = st.lists(
    st.sampled_from(["the", "a", "Ü", "b\u00a0b", "longer-than-8", "x" * 40]) | st.text("abc", min_size=1),
    min_size=1,
    max_size=200,
)
packers = st.sampled_from([("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress)])


@settings(max_examples=8)
@given(
    words,
    st.integers(50, 500),
    st.integers(1, 200),
    st.integers(2, 50),
    st.integers(1, 50),
    packers,
    st.integers(1, 3),
)
def test_build_vocabulary__does_not_depend_on_how_text_is_cut(
    tmp_path_factory, client, words, block_bytes, line, bucket_types, piece_types, packer, min_count
):
    folder = tmp_path_factory.mktemp("text")
    lines = [" ".join(words[i : i + line]) + "\n" for i in range(0, len(words), line)]
    suffix, pack = packer
    for i, content in enumerate(["".join(lines[::2]), "".join(lines[1::2])]):
        (folder / f"{i}.txt{suffix}").write_bytes(pack(content.encode()))
    counts = Counter(words)
    if max(counts.values()) < min_count:
        return
    store, params = Store(str(folder / "work")), Params(min_count=min_count)
    resources = Resources(block_size=block_bytes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buckets, "BUCKET_TYPES", bucket_types)
        patch.setattr(order, "PIECE_TYPES", piece_types)
        corpus = build_corpus(str(folder / "*.txt*"), store, params, resources, client)
        vocabulary = build_vocabulary(corpus, store, params, resources, client)
    kept = {word: n for word, n in counts.items() if n >= min_count}
    loaded = vocabulary.load()
    assert loaded.words == ranked(kept)
    assert loaded.counts.tolist() == sorted(kept.values(), reverse=True)
    assert (vocabulary.size, vocabulary.total) == (len(kept), sum(kept.values()))
    assert (vocabulary.raw_words, vocabulary.raw_types) == (len(words), len(counts))
    text = [word for part in (lines[::2], lines[1::2]) for line in part for word in line[:-1].split(" ")]
    assert decoded(store, corpus, vocabulary) == [word if word in kept else None for word in text]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("limit", "bucket_types"), [(1, 2), (5, 2), (7, 1000), (100, 1000)])
def test_build_vocabulary__keeps_the_most_frequent(build, monkeypatch, limit, bucket_types):
    monkeypatch.setattr(buckets, "BUCKET_TYPES", bucket_types)
    _, vocabulary = build(TEXT, Params(min_count=2, max_final_vocab=limit))
    counts = {word: n for word, n in Counter(TEXT.split()).items() if n >= 2}
    assert vocabulary.load().words == ranked(counts)[:limit]


def test_build_vocabulary__keeps_few_of_many_ties(build, monkeypatch):
    monkeypatch.setattr(buckets, "BUCKET_TYPES", 60)
    _, vocabulary = build(" ".join(f"w{i:03}" for i in range(200)), Params(min_count=1, max_final_vocab=7))
    assert vocabulary.load().words == [f"w{i:03}" for i in range(7)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("bucket_types", [2, 1000])
def test_build_vocabulary__keeps_listed_words(build, monkeypatch, tmp_path, bucket_types):
    monkeypatch.setattr(buckets, "BUCKET_TYPES", bucket_types)
    (tmp_path / "words").write_text("\ufeffrare\r\nthe\n\nunicorn\nthe\n")
    _corpus, vocabulary = build(TEXT, Params(vocabulary=str(tmp_path / "words"), min_count=5))
    assert vocabulary.load().words == ["the", "rare"]
    assert vocabulary.load().counts.tolist() == [15, 1]
    assert (vocabulary.missing, vocabulary.missing_words) == (1, ("unicorn",))


def test_build_vocabulary__is_built_once(build, monkeypatch):
    _, first = build(TEXT)
    monkeypatch.setattr(count, "run_tasks", None)
    assert build(TEXT)[1] == first


def test_build_vocabulary__new_rules_need_no_new_reading(build, monkeypatch):
    corpus, first = build(TEXT)
    monkeypatch.setattr("daskw2v.shards.encode.read_block", None)
    again, second = build(TEXT, Params(min_count=5))
    assert again == corpus
    assert second.key != first.key
    assert second.load().words == first.load().words[: second.size]


def test_build_vocabulary__starts_anew_what_was_cut_short(build, monkeypatch):
    resolve = buckets.resolve_bucket
    monkeypatch.setattr(buckets, "resolve_bucket", lambda *_: (_ for _ in ()).throw(InputError("Stop", "here.")))
    with pytest.raises(InputError, match="Stop"):
        build(TEXT)
    monkeypatch.setattr(buckets, "resolve_bucket", resolve)
    corpus, vocabulary = build(TEXT)
    assert decoded(vocabulary.store, corpus, vocabulary) == TEXT.split()
    assert vocabulary.folder.children() == ["chosen", "maps", "plan", "shards.json"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("gone", ["chosen", "plan", "maps"])
def test_build_vocabulary__makes_again_what_is_gone(build, gone):
    _, first = build(TEXT)
    (first.folder / gone).remove()
    assert not groups_exist(first.folder, first.groups)
    corpus, second = build(TEXT)
    assert groups_exist(second.folder, second.groups)
    assert (second.key, second.identity) == (first.key, first.identity)
    assert decoded(second.store, corpus, second) == TEXT.split()


def test_identity__depends_on_text_and_rules_but_not_on_shards(build, tmp_path):
    corpus, first = build(TEXT)
    (first.store / corpus.shards[0].path).remove()
    again, second = build(TEXT)
    assert again.shards != corpus.shards
    assert (second.identity, second.key != first.key) == (first.identity, True)
    words = tmp_path / "words"
    identities = {first.identity, build(TEXT, Params(min_count=2))[1].identity}
    identities.add(build(TEXT, Params(min_count=1, max_final_vocab=3))[1].identity)
    for content in ("the", "the\ncat"):
        words.write_text(content)
        identities.add(build(TEXT, Params(vocabulary=str(words)))[1].identity)
    identities.add(build(TEXT + "more", Params(vocabulary=str(words)))[1].identity)
    assert len(identities) == 6


def test_build_vocabulary__tasks_run_twice_do_no_harm(build, monkeypatch):
    def twice(function):
        def run(*args):
            function(*args)
            return function(*args)

        return run

    for module, names in [
        (buckets, ("plan_buckets", "merge_bucket", "resolve_bucket")),
        (order, ("cut_bucket", "order_piece", "join_pieces")),
    ]:
        for name in names:
            monkeypatch.setattr(module, name, twice(getattr(module, name)))
    corpus, vocabulary = build(TEXT)
    assert decoded(vocabulary.store, corpus, vocabulary) == TEXT.split()
    assert [len((vocabulary.folder / name).children()) for name in ("plan", "chosen", "maps/0")] == [1, 1, 1]


def test_stored_vocabulary__reads_slices_of_counts(build):
    _, vocabulary = build(TEXT)
    counts = vocabulary.load().counts
    for start, stop in [(0, None), (2, None), (1, 3), (0, vocabulary.size), (3, 3)]:
        counts_read = vocabulary.read_counts(start, stop)
        assert counts_read.dtype == np.int64
        assert counts_read.tolist() == counts[start:stop].tolist()


@pytest.mark.parametrize("rows", [2, 4, 1 << 22])
def test_stored_vocabulary__copies_what_it_would_save(build, monkeypatch, tmp_path, rows):
    _, vocabulary = build(TEXT)
    saved, copied = (Store(str(tmp_path / name)).create_group() for name in ("saved", "copied"))
    vocabulary.load().save(saved)
    create_array = count.create_array
    if rows < 1 << 22:  # many slices
        monkeypatch.setattr(count, "COPIED_ROWS", rows)
        monkeypatch.setattr(
            count, "create_array", lambda *args, **options: create_array(*args, chunk_rows=2, **options)
        )
    vocabulary.save(copied)
    for name in ("words", "offsets", "counts"):
        ours, theirs = copied[name], saved[name]
        assert (ours.dtype, ours[:].tolist()) == (theirs.dtype, theirs[:].tolist())
        declared = [{**array.metadata.to_dict(), "attributes": None} for array in (ours, theirs)]  # they name places
        assert rows < 1 << 22 or declared[0] == declared[1]


def test_build_vocabulary__tells_of_its_steps(build, monkeypatch, client):
    monkeypatch.setattr(buckets, "BUCKET_TYPES", 2)
    corpus, first = build(TEXT)
    (first.folder / "chosen").remove()
    messages = []
    build_vocabulary(corpus, first.store, Params(min_count=1), Resources(), client, messages.append)
    cluster, *steps = messages
    done = [progress.done for progress in steps]
    assert (cluster.stage, done) == ("cluster", sorted(done))
    assert (done[0], done[-1], {progress.total for progress in steps}) == (0, 6, {6})


def test_choose_n_buckets__is_a_bounded_power_of_two(monkeypatch):
    monkeypatch.setattr(buckets, "BUCKET_TYPES", 100)
    assert [buckets.choose_n_buckets(n, 64, 1000) for n in (0, 100, 101, 500, 10**9)] == [1, 1, 2, 8, 4096]


@pytest.mark.parametrize(
    ("threads", "memory", "expected"),
    [(2, 3e9, 32), (2, math.inf, 2), (64, 3e9, 64), (64, 4e8, 128), (1000, math.inf, 128), (1, math.inf, 1)],
)
def test_choose_n_buckets__are_few_where_threads_have_memory(threads, memory, expected):
    """Shards times buckets are ranges to read: 25 GB on two threads took five minutes with buckets of one size."""
    assert buckets.choose_n_buckets(170_000_000, threads, memory) == expected
