"""fastText's models: read with their n-grams, and written so that fastText and gensim find the same vectors."""

import io
import struct
import tracemalloc

import numpy as np
import pytest

from daskw2v import Params, Resources, Vectors, export, import_vectors, train
from daskw2v.errors import InputError, StoreError, UnknownWordError
from daskw2v.features.keys import FeatureColumn, FeatureKeys, HashedNGrams
from daskw2v.models.formats import fasttext as module
from daskw2v.models.queries.features import FeatureVectors
from daskw2v.models.stored.tables import read_table
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary

theirs = pytest.importorskip("gensim.models.fasttext")
FastText, save_facebook_model = theirs.FastText, theirs.save_facebook_model
load_facebook_model, load_facebook_vectors = theirs.load_facebook_model, theirs.load_facebook_vectors

fasttext = pytest.importorskip("fasttext")

WORDS = ["the", "</s>", "naïve", "日本", "no\u00a0break", "word", "words", "a"]
UNSEEN = ["wordy", "native", "日本語", "theword", "away"]
NEAR = {"rtol": 0, "atol": 1e-5}
NGRAMS = HashedNGrams(minn=2, maxn=4, bucket=500)


def theirs(model, words):
    return np.array([model.get_word_vector(word) for word in words])


def make_vectors(counts=None, ngrams=NGRAMS, metadata=None):
    """Return vectors with n-grams, of which a few have no rows, as after training."""
    rng = np.random.default_rng(0)
    buckets = rng.permutation(ngrams.bucket)[: ngrams.bucket // 2].astype(np.int32)
    features = FeatureVectors(FeatureKeys(ngrams=ngrams, buckets=buckets), rng.random((len(buckets), 5), np.float32))
    matrix = rng.standard_normal((len(WORDS), 5), np.float32)
    words = Vocabulary.from_words(WORDS, range(len(WORDS), 0, -1) if counts is None else counts)
    return Vectors(words, matrix, metadata or {}, features=features)


@pytest.fixture(scope="module")
def facebook(tmp_path_factory):
    """Write a small model by gensim, as fastText's program sometimes diverges on so little text."""
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("fasttext") / "model.bin"
    text = [list(rng.choice(WORDS[2:], 10)) for _ in range(100)]
    save_facebook_model(
        FastText(text, vector_size=8, min_count=1, bucket=300, min_n=2, max_n=5, workers=1, seed=1), str(path)
    )
    return path


def test_import__gives_unseen_words_fasttexts_vectors(facebook, tmp_path):
    model, vectors = fasttext.load_model(str(facebook)), import_vectors(facebook)
    assert vectors.features.keys.ngrams == HashedNGrams(2, 5, 300)
    saved = tmp_path / "saved"
    vectors.save(saved)
    for result in (vectors, Vectors.open(saved), Vectors.open(saved, in_memory=False)):
        np.testing.assert_allclose(result[result.vocabulary.words], theirs(model, result.vocabulary.words), **NEAR)
        np.testing.assert_allclose(result[UNSEEN], theirs(model, UNSEEN), **NEAR)
        assert result.most_similar("wordy", topn=1)[0][0] == model.get_nearest_neighbors("wordy", k=1)[0][1]


def test_import__reads_many_words_in_parts(facebook, monkeypatch):
    whole = import_vectors(facebook)
    monkeypatch.setattr(module, "NGRAMS_AT_ONCE", 30)
    monkeypatch.setattr(module, "ROW_BYTES_AT_ONCE", 4 * 8 * 3)
    np.testing.assert_array_equal(import_vectors(facebook).vectors, whole.vectors)


@pytest.mark.parametrize(("minn", "maxn", "bucket"), [(3, 6, 0), (1, 0, 10), (4, 3, 10)])
def test_import__without_n_grams_has_words_alone(tmp_path, minn, maxn, bucket):
    """fastText writes rows of buckets even if no word has n-grams."""
    rows = np.arange(2 * (2 + bucket), dtype="<f4").reshape(-1, 2)
    (tmp_path / "m.bin").write_bytes(content(rows, bucket=bucket, minn=minn, maxn=maxn))
    vectors = import_vectors(tmp_path / "m.bin")
    assert vectors.features is None
    assert np.array_equal(vectors.vectors, rows[:2])


def test_training__begins_with_words_and_n_grams_of_fasttexts(facebook, client, tmp_path):
    (tmp_path / "text.txt").write_text("\n".join(["word words naïve a wording"] * 50))
    ngrams = {"minn": 2, "maxn": 5, "bucket": 300}
    still = {"epochs": 1, "alpha": 1e-12, "min_alpha": 0.0, "sample": 0}
    params = Params(vector_size=8, min_count=1, base_vectors=facebook, **still, **ngrams)
    work, one = tmp_path / "work", Resources(threads=1)
    result = train(tmp_path / "text.txt", work=work, params=params, resources=one, client=client, listener=None)
    base = import_vectors(facebook)
    np.testing.assert_allclose(result["naïve"], base["naïve"], **NEAR)
    theirs = base.features.rows[result.features.keys.buckets]
    np.testing.assert_allclose(result.features.rows[:], theirs, **NEAR)


@pytest.mark.parametrize("stored", [True, False])
def test_export__is_read_by_fasttext_and_gensim(tmp_path, monkeypatch, stored):
    vectors = make_vectors()
    if stored:
        vectors.save(tmp_path / "model")
        vectors = Vectors.open(tmp_path / "model", in_memory=False)
        monkeypatch.setattr(module, "free_memory", lambda: 0)  # rows of n-grams stay in the store
    monkeypatch.setattr(module, "NGRAMS_AT_ONCE", 30)
    monkeypatch.setattr(module, "ROW_BYTES_AT_ONCE", 4 * 5 * 3)
    export(vectors, tmp_path / "m.bin", format="fasttext")
    model = fasttext.load_model(str(tmp_path / "m.bin"))
    words, counts = model.get_words(include_freq=True)
    assert (words, counts.tolist()) == (WORDS, vectors.vocabulary.counts.tolist())
    np.testing.assert_allclose(theirs(model, WORDS), vectors[WORDS], **NEAR)
    np.testing.assert_allclose(theirs(model, UNSEEN), vectors[UNSEEN], **NEAR)
    for word in ("word", "wordy"):
        result, wanted = model.get_nearest_neighbors(word, k=3), vectors.most_similar(word, topn=3)
        assert [near for _, near in result] == [near for near, _ in wanted]
        np.testing.assert_allclose([cosine for cosine, _ in result], [cosine for _, cosine in wanted], **NEAR)
    keyed = load_facebook_vectors(str(tmp_path / "m.bin"))
    assert keyed.index_to_key == WORDS
    plain = [word for word in WORDS if word != "</s>"]  # which has n-grams in gensim
    np.testing.assert_allclose(keyed[plain], vectors[plain], **NEAR)
    np.testing.assert_allclose(keyed[UNSEEN], vectors[UNSEEN], **NEAR)


def test_export__is_imported_unchanged(tmp_path):
    vectors = make_vectors()
    export(vectors, tmp_path / "m.bin", format="fasttext")
    result = import_vectors(tmp_path / "m.bin")
    np.testing.assert_allclose(result.vectors, vectors.vectors, **NEAR)
    np.testing.assert_allclose(result[UNSEEN], vectors[UNSEEN], **NEAR)
    assert result.features.keys.buckets.tolist() == sorted(vectors.features.keys.buckets)
    for each in (result, vectors):
        with pytest.raises(UnknownWordError, match="no n-gram"):  # where fastText gives zeros
            each["b"]
    export(result, tmp_path / "again.bin", format="fasttext")
    np.testing.assert_allclose(import_vectors(tmp_path / "again.bin")[UNSEEN], vectors[UNSEEN], **NEAR)


def test_export__without_n_grams_is_a_model_without(tmp_path):
    """Counts of an imported word2vec file are 0, and gensim would leave these words out."""
    vectors = Vectors(Vocabulary.from_words(WORDS, [0] * len(WORDS)), np.eye(len(WORDS), 3, dtype=np.float32))
    export(vectors, tmp_path / "m.bin", format="fasttext")
    model = fasttext.load_model(str(tmp_path / "m.bin"))
    assert (model.f.getArgs().maxn, model.f.getArgs().bucket) == (0, 0)
    assert np.array_equal(theirs(model, WORDS), vectors.vectors)
    assert np.array_equal(load_facebook_model(str(tmp_path / "m.bin")).wv[WORDS], vectors.vectors)
    assert np.array_equal(import_vectors(tmp_path / "m.bin").vectors, vectors.vectors)


def test_export__of_no_words(tmp_path):
    nothing = Vectors(Vocabulary.from_words([], []), np.empty((0, 3), np.float32))
    export(nothing, tmp_path / "m.bin", format="fasttext")
    assert import_vectors(tmp_path / "m.bin").vectors.shape == (0, 3)


KINDS = [("sgns", 2, 2, True), ("cbow_ns", 1, 2, True), ("sg_hs", 2, 1, False), ("cbow_hs", 1, 1, False)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("objective", "kind", "loss", "has_output"), KINDS)
def test_export__tells_how_it_was_trained(objective, kind, loss, has_output, client, tmp_path):
    (tmp_path / "text.txt").write_text("\n".join(["word words naïve a wording"] * 50))
    params = Params(objective=objective, vector_size=8, min_count=2, epochs=3, window=4, sample=0.5, maxn=4, bucket=99)
    result = train(
        tmp_path / "text.txt",
        work=tmp_path / "work",
        params=params,
        resources=Resources(threads=1),
        client=client,
        listener=None,
    )
    export(result, tmp_path / "m.bin", format="fasttext")
    model = fasttext.load_model(str(tmp_path / "m.bin"))
    args = model.f.getArgs()
    assert (args.dim, args.ws, args.epoch, args.minCount, args.t) == (8, 4, 3, 2, 0.5)
    assert (args.minn, args.maxn, args.bucket, args.wordNgrams, args.neg) == (3, 4, 99, 1, 5 if loss == 2 else 0)
    assert (int(args.model), int(args.loss)) == (kind, loss)
    output = model.get_output_matrix()
    wanted = read_table(Store(result.url), "output") if has_output else np.zeros((5, 8))
    assert np.array_equal(output, wanted)
    export(result.prune(4), tmp_path / "pruned.bin", format="fasttext")
    assert np.array_equal(fasttext.load_model(str(tmp_path / "pruned.bin")).get_output_matrix(), wanted)
    gensim = load_facebook_model(str(tmp_path / "m.bin"))
    assert (gensim.sg, gensim.hs, gensim.negative) == (int(kind == 2), int(loss == 1), args.neg)
    assert np.array_equal(gensim.syn1neg if loss == 2 else gensim.syn1, wanted)


@pytest.mark.parametrize("word", ["New York", "", "a\tb", "nul\0"])
def test_export__refuses_words_that_end_early(tmp_path, word):
    vectors = Vectors(Vocabulary.from_words(["a", word], [2, 1]), np.ones((2, 2), np.float32))
    with pytest.raises(InputError, match="fastText's format cannot represent 1 of the words"):
        export(vectors, tmp_path / "m.bin", format="fasttext")
    assert list(tmp_path.iterdir()) == []


def test_export__refuses_a_table_of_features(tmp_path):
    keys = FeatureKeys((FeatureColumn("brand", 1.0, ("x", "y")),))
    features = FeatureVectors(keys, np.ones((2, 2), np.float32))
    vectors = Vectors(Vocabulary.from_words(["a"], [1]), np.ones((1, 2), np.float32), features=features)
    with pytest.raises(InputError, match="but no table of features"):
        export(vectors, tmp_path / "m.bin", format="fasttext")
    assert list(tmp_path.iterdir()) == []


def content(
    rows,
    words=(b"a", b"bc"),
    magic=793712314,
    version=12,
    model=2,
    labels=0,
    pruned=-1,
    quantized=False,
    entries=None,
    count=4,
    **args,
):
    """Return the bytes of a model of words of two dimensions."""
    args = {"dim": 2, "bucket": 3, "minn": 1, "maxn": 2, **args}
    numbers = (args["dim"], 5, 5, 1, 5, 1, 2, model, args["bucket"], args["minn"], args["maxn"], 100)
    entries = len(words) if entries is None else entries
    return b"".join(
        [
            struct.pack("<14id", magic, version, *numbers, 1e-4),
            struct.pack("<3i2q", entries + labels, entries, labels, 9, pruned),
            *(word + b"\0" + struct.pack("<qb", count, 0) for word in words),
            struct.pack("<?2q", quantized, *rows.shape),
            rows.tobytes(),
        ]
    )


ROWS = np.arange(10, dtype="<f4").reshape(5, 2)
WRONG = [
    ({"magic": 5}, "begins with 5 and version 12"),
    ({"version": 11}, "version 11"),
    ({"model": 3}, "is a classifier"),
    ({"labels": 1}, "is a classifier"),
    ({"pruned": 4}, "3 buckets, of which 4 are left"),
    ({"pruned": 0}, "has a pruned dictionary, and is not quantized"),
    ({"quantized": True}, "is cut short|codes of"),
    ({"dim": 3}, "holds a table of 5 rows and 2 columns"),
    ({"bucket": 4}, "holds a table of 5 rows and 2 columns"),
    ({"bucket": 2}, "holds a table of 5 rows and 2 columns"),
    ({"bucket": -1}, "declares 2 words, 2 dimensions, -1 buckets"),
    ({"maxn": 300}, "n-grams of 300 characters"),
    ({"entries": -1}, "declares -1 words"),
    ({"count": -3}, "counts -3 of 'a'"),
    ({"words": (b"a", b"a")}, "holds 'a' twice"),
    ({"words": (b"a", b"\xff")}, "a word that is not UTF-8"),
    ({"words": (b"a", b"b" * 70_000)}, "has no end of word 2"),
    ({"rows": np.where(ROWS == 4, np.nan, ROWS).astype("<f4")}, "A row of n-grams in .* is not finite"),
    ({"rows": np.where(ROWS == 1, np.inf, ROWS).astype("<f4")}, "The vector of 'a' in .* is not finite"),
    ({"rows": np.full((5, 2), 3e38, "<f4")}, "The vector of 'a' in .* is not finite"),
]


@pytest.mark.parametrize(("wrong", "message"), WRONG)
def test_import__names_the_problem(tmp_path, wrong, message):
    (tmp_path / "m.bin").write_bytes(content(**{"rows": ROWS, **wrong}))
    with pytest.raises(InputError, match=message):
        import_vectors(tmp_path / "m.bin", format="fasttext")


def test_import__names_any_cut(tmp_path):
    whole = content(ROWS)
    (tmp_path / "m.bin").write_bytes(whole)
    assert import_vectors(tmp_path / "m.bin")["b"].shape == (2,)
    for length in range(len(whole)):
        (tmp_path / "m.bin").write_bytes(whole[:length])
        with pytest.raises(InputError):
            import_vectors(tmp_path / "m.bin", format="fasttext")


def test_import__refuses_more_than_memory(tmp_path):
    (tmp_path / "m.bin").write_bytes(
        content(ROWS, bucket=2**31 - 1, entries=0, words=(), dim=1 << 16)[:-57]
        + struct.pack("<?2q", False, 2**31 - 1, 1 << 16)
    )
    with pytest.raises(StoreError, match="of memory are free"):
        import_vectors(tmp_path / "m.bin")


def test_import__holds_rows_of_n_grams_once(tmp_path, monkeypatch):
    """Rows of buckets without an n-gram of the words are zeros."""
    monkeypatch.setattr(module, "ROW_BYTES_AT_ONCE", 1 << 20)
    rows = np.ones((2 + 40_000, 64), "<f4")
    rows[5::1000] = 0.0
    (tmp_path / "m.bin").write_bytes(content(rows, dim=64, bucket=40_000, minn=3, maxn=6))
    tracemalloc.start()
    try:
        vectors = import_vectors(tmp_path / "m.bin")
        assert tracemalloc.get_traced_memory()[1] < 1.5 * rows.nbytes
    finally:
        tracemalloc.stop()
    assert len(vectors.features.keys) == 40_000 - 40
    np.testing.assert_array_equal(vectors.features.keys.buckets, np.flatnonzero(rows[2:].any(axis=1)))
    assert (vectors.features.rows == 1.0).all()


@pytest.mark.parametrize("remaining", range(16))
def test_words__are_read_in_blocks(remaining):
    """A block of 64 KiB may end anywhere in a word or its count; the next read starts behind the words."""
    lengths = [(1 << 16) - 2 - remaining, 0, 3, 65_000, 1, 2]
    words = [b"a" * n + b"\xc3\xa9" for n in lengths]
    written = b"".join(word + b"\0" + struct.pack("<qb", n, 0) for n, word in enumerate(words)) + b"rest"
    f = io.BytesIO(written)
    assert module.read_words(f, "url", len(words)) == ([word.decode() for word in words], list(range(len(words))))
    assert f.read() == b"rest"
