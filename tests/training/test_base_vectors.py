"""Training begins with vectors of other tools, of memory, and of other work directories."""

import gzip

import numpy as np
import pytest

from daskw2v import Params, Resources, Vectors, export, import_vectors, retrain, to_gensim, train
from daskw2v.errors import Daskw2vError, InputError, ParameterError
from daskw2v.features.ngrams import hash_word
from daskw2v.models.stored.tables import read_table
from daskw2v.progress import silent
from daskw2v.store.storage import Store
from daskw2v.training.start.base_vectors import with_base_vectors
from daskw2v.vocabulary.vocabulary import Vocabulary

ONE = Resources(threads=1)
STILL = Params(vector_size=8, min_count=1, epochs=1, alpha=1e-12, min_alpha=0.0, strategy="averaging")
WORDS = [f"w{i}" for i in range(30)] + ["naïve", "日本"]
KINDS = ["vectors.txt", "vectors.vec.gz", "vectors.bin", "vectors.safetensors", "keyed", "memory", "folder"]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Text with words that the base knows, and others."""
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("text") / "text.txt"
    words = np.array([*WORDS[10:], "new", "newer"])
    path.write_text("\n".join(" ".join(rng.choice(words, 10)) for _ in range(200)))
    return path


@pytest.fixture(scope="module")
def base():
    """The vectors to begin with."""
    matrix = np.random.default_rng(1).standard_normal((len(WORDS), 8), np.float32)
    return Vectors(Vocabulary.from_words(WORDS, range(len(WORDS), 0, -1)), matrix)


def check_begins_with(base, vectors):
    known = [word for word in vectors.vocabulary.words if word in base.vocabulary]
    assert len(known) == len(WORDS) - 10
    np.testing.assert_allclose([vectors[word] for word in known], [base[word] for word in known], atol=1e-6)
    assert np.abs(vectors["new"]).max() < 1


def given(base, kind, folder):
    """Return the base as a value of `base_vectors`."""
    if kind == "keyed":
        pytest.importorskip("gensim")
        return to_gensim(base)
    if kind == "memory":
        return base
    if kind == "folder":
        base.save(folder / "saved")
        return folder / "saved"
    export(base, folder / kind)
    return str(folder / kind)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", KINDS)
def test_words_that_are_known__begin_with_their_vectors(base, kind, text, client, tmp_path):
    params = STILL.replace(base_vectors=given(base, kind, tmp_path))
    vectors = train(text, work=tmp_path / "work", params=params, resources=ONE, client=client, listener=None)
    check_begins_with(base, vectors)
    again = train(text, work=tmp_path / "work", params=params, resources=ONE, client=client, listener=None)
    assert again.url == vectors.url
    other = params.replace(base_vectors=None)
    fresh = train(text, work=tmp_path / "work", params=other, resources=ONE, client=client, listener=None)
    assert fresh.url != vectors.url


OBJECTIVES = [("sgns", "sgns", True), ("cbow_ns", "sgns", False), ("sg_hs", "sg_hs", False)]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("theirs", "ours", "output"), OBJECTIVES)
@pytest.mark.parametrize("strategy", ["averaging", "rotation"])
def test_model_of_another_work_directory__gives_all_tables_that_mean_the_same(
    theirs, ours, output, strategy, text, client, tmp_path
):
    first = Params(vector_size=8, min_count=1, epochs=1, objective=theirs)
    base = train(text, work=tmp_path / "a", params=first, resources=ONE, client=client, listener=None)
    params = STILL.replace(objective=ours, strategy=strategy, base_vectors=tmp_path / "a")
    vectors = train(text, work=tmp_path / "b", params=params, resources=ONE, client=client, listener=None)
    np.testing.assert_allclose(vectors.vectors, base.vectors, atol=1e-6)
    tables = [read_table(Store(model.url), "output") for model in (vectors, base)]
    assert (tables[0].shape == tables[1].shape and np.allclose(*tables, atol=1e-6)) == output


def test_fasttext_model__has_the_vectors_that_fasttext_gives(text, client, tmp_path):
    """gensim writes its format: fastText's own program diverges on so little text, now and then."""
    fasttext, written = pytest.importorskip("fasttext"), pytest.importorskip("gensim.models.fasttext")
    sentences = [line.split() for line in text.read_text().splitlines()]
    for n, (minn, maxn) in enumerate([(3, 6), (1, 2), (1, 0)]):
        settings = {"vector_size": 8, "min_count": 1, "bucket": 1000, "min_n": minn, "max_n": maxn, "workers": 1}
        written.save_facebook_model(written.FastText(sentences, **settings), str(tmp_path / f"{n}.bin"))
        theirs, found = fasttext.load_model(str(tmp_path / f"{n}.bin")), import_vectors(tmp_path / f"{n}.bin")
        words, counts = theirs.get_words(include_freq=True)
        assert (found.vocabulary.words, found.vocabulary.counts.tolist()) == (words, counts.tolist())
        np.testing.assert_allclose(found.vectors, [theirs.get_word_vector(word) for word in theirs.words], rtol=1e-5)
    params = STILL.replace(base_vectors=tmp_path / "0.bin")
    vectors = train(text, work=tmp_path / "work", params=params, resources=ONE, client=client, listener=None)
    np.testing.assert_allclose(vectors["naïve"], import_vectors(tmp_path / "0.bin")["naïve"], atol=1e-6)


def test_hashes_of_n_grams__are_those_of_gensim():
    written = pytest.importorskip("gensim.models.fasttext")
    for word in ("a", "word", "naïve", "日本"):
        assert [hash % 997 for hash in hash_word(word, 2, 5)] == written.ft_ngram_hashes(word, 2, 5, 997)


def test_bad_base_vectors__are_refused_before_text_is_read(base, text, client, tmp_path):
    export(base, tmp_path / "vectors.txt")
    (tmp_path / "cut.safetensors").write_bytes(b"\x10" + bytes(20))
    with gzip.open(tmp_path / "cut.bin.gz", "wb") as file:
        file.write(b"3 8\na " + bytes(32))
    wrong = {
        "vectors.txt": (ParameterError, "has 8 dimensions, not vector_size=9.*Give vector_size=8", 9),
        "nothing.txt": (InputError, "does not exist", 8),
        "cut.safetensors": (InputError, "no header of safetensors", 8),
        "cut.bin.gz": (InputError, "Vector 2 of", 8),
        "": (Daskw2vError, "There is no model at", 8),
    }
    for name, (kind, message, size) in wrong.items():
        params = STILL.replace(vector_size=size, base_vectors=tmp_path / name if name else tmp_path)
        with pytest.raises(kind, match=message):
            train(tmp_path / "no text", work=tmp_path / "work", params=params, client=client, listener=None)
    for values in ({"base_model": "v0001"}, {"objective": "subwords", "strategy": "columns"}):
        with pytest.raises(ParameterError, match="base_vectors"):
            train(text, work=tmp_path / "work", params=STILL, base_vectors=base, **values, client=client, listener=None)
    bad = STILL.replace(base_vectors=type("Model", (), {"index_to_key": ["a"]})())
    with pytest.raises(ParameterError, match="is not a KeyedVectors"):
        train(text, work=tmp_path / "work", params=bad, client=client, listener=None)


def test_file_that_changed__is_another_base(base, text, client, tmp_path):
    file, params = tmp_path / "vectors.txt", STILL.replace(base_vectors=tmp_path / "vectors.txt")
    export(base, file)
    first = train(text, work=tmp_path / "work", params=params, resources=ONE, client=client, listener=None)
    export(Vectors(base.vocabulary, base.vectors * 2), file)
    second = train(text, work=tmp_path / "work", params=params, resources=ONE, client=client, listener=None)
    np.testing.assert_allclose(second["w20"], 2 * first["w20"], atol=1e-5)


@pytest.mark.slow
def test_nights__begin_with_the_base_once(base, text, client, tmp_path):
    params = STILL.replace(base_vectors=base)
    asked = {"work": tmp_path / "work", "params": params, "resources": ONE, "client": client, "listener": None}
    (tmp_path / "a.txt").write_text(text.read_text())
    first = retrain(tmp_path / "*.txt", **asked)
    check_begins_with(base, Vectors.open(tmp_path / "work"))
    (tmp_path / "b.txt").write_text("newest " * 20 + text.read_text()[:3000])
    second = retrain(tmp_path / "*.txt", **asked)
    assert second.outcome.label == "published", second.message
    params = Vectors.open(tmp_path / "work").metadata["params"]
    assert (first.version, second.version) != (None, second.served and None)
    assert (params["base_model"], params["base_vectors"]) == (first.version, None)
    assert retrain(tmp_path / "*.txt", **asked).outcome.label == "nothing_new"


def test_damaged_copy__is_stored_again(base, text, client, tmp_path):
    export(base, tmp_path / "vectors.txt")
    params = STILL.replace(base_vectors=tmp_path / "vectors.txt")
    work = tmp_path / "work"
    train(text, work=work, params=params, resources=ONE, client=client, listener=None)
    chunk = next(path for path in work.glob("base/*/input/c/**/*") if path.is_file())
    chunk.write_bytes(chunk.read_bytes()[:-8] + bytes(8))
    other = params.replace(seed=2)
    check_begins_with(base, train(text, work=work, params=other, resources=ONE, client=client, listener=None))


@pytest.mark.slow
def test_frozen_words__do_not_move_and_others_do(base, text, client, tmp_path):
    (tmp_path / "frozen.txt").write_text("w20\nnaïve\nw1\nnew\n")
    for frozen, many, threads in (("known", 2, 1), (str(tmp_path / "frozen.txt"), 1, 2)):
        params = STILL.replace(alpha=None, min_alpha=1e-4, sample=0, base_vectors=base, frozen_words=frozen)
        params, resources = params.replace(n_replicas=many, epochs=3), Resources(threads=threads)
        asked = {"work": tmp_path / "work", "resources": resources, "client": client, "listener": None}
        vectors = train(text, params=params, **asked)
        known = [word for word in vectors.vocabulary.words if word in base.vocabulary]
        still = [word for word in known if np.array_equal(vectors[word], base[word])]
        assert set(still) == (set(known) if frozen == "known" else {"w20", "naïve"})
        assert train(text, params=params, **asked).url == vectors.url
    (tmp_path / "frozen.txt").write_text("w21\n")
    assert train(text, params=params, **asked).url != vectors.url


def test_frozen_words__are_refused_where_they_would_move(base, text, client, tmp_path):
    wrong = {
        "strategy='rotation'": {"base_vectors": base, "strategy": "rotation"},
        "without base_model or base_vectors": {},
        "list of words .* is empty": {"base_vectors": base, "frozen_words": str(tmp_path / "empty.txt")},
    }
    (tmp_path / "empty.txt").write_text("")
    for message, values in wrong.items():
        with pytest.raises(Daskw2vError, match=message):
            train(text, work=tmp_path / "work", params=STILL, **{"frozen_words": "known", **values}, client=client)


def test_settled_params__are_checked_and_restored(base, text, client, tmp_path):
    export(base, tmp_path / "vectors.txt")
    work, given = Store(str(tmp_path / "work")), STILL.replace(base_vectors=tmp_path / "vectors.txt")
    settled = with_base_vectors(given, work, ONE, silent)
    assert with_base_vectors(settled, work, ONE, silent) == settled
    elsewhere = Store(str(tmp_path / "elsewhere"))
    assert with_base_vectors(settled, elsewhere, ONE, silent) == settled
    assert (tmp_path / "elsewhere" / "base").exists()
    with pytest.raises(ParameterError, match="8 dimensions, not vector_size=9"):
        with_base_vectors(settled.replace(vector_size=9), work, ONE, silent)
    export(Vectors(base.vocabulary, base.vectors * 2), tmp_path / "vectors.txt")
    with pytest.raises(InputError, match="has changed since"):
        with_base_vectors(settled, Store(str(tmp_path / "third")), ONE, silent)
    with pytest.raises(ParameterError, match="holds a secret"):
        Params(base_vectors=f"https://user:secret@host/x#{'0' * 20}")


def test_words_that_stand_twice__are_refused_by_file(base, tmp_path):
    twice = Vectors(Vocabulary(np.frombuffer(b"aa", np.uint8), np.arange(3), np.ones(2, np.int64)), base.vectors[:2])
    export(twice, tmp_path / "twice.safetensors")
    with pytest.raises(InputError, match=r"twice\.safetensors holds 'a' twice"):
        import_vectors(tmp_path / "twice.safetensors")


def test_nights__refuse_frozen_words(base, text, client, tmp_path):
    params = STILL.replace(base_vectors=base, frozen_words="known")
    with pytest.raises(ParameterError, match="frozen_words='known' cannot be used in retraining"):
        retrain(text, work=tmp_path, params=params, client=client, listener=None)
