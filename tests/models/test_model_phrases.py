"""Phrases of a model: the passes that its text was joined by."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from daskw2v import Params, Phrases, Resources, Vectors, train
from daskw2v.errors import DamageError, ParameterError, StoreError
from daskw2v.models.stored.store import read_finished, write_vocabulary
from daskw2v.models.stored.tables import create_model, write_table_rows
from daskw2v.models.versions import phrases
from daskw2v.models.versions.versions import publish
from daskw2v.stages import Store, build_corpus, build_phrases, build_vocabulary, train_model
from daskw2v.store.arrays import open_array, write_array
from daskw2v.vocabulary.vocabulary import Vocabulary

LINES = [
    "new york city is big",
    "big is new york city",
    "i love new york city",
    "york is new",
    "1 2 3 4",
    "4 1 2 3 4",
] * 3
PARAMS = Params(
    phrases=2,
    phrase_min_count=2,
    phrase_threshold=0.5,
    phrase_delimiter="~",
    vector_size=4,
    min_count=1,
    epochs=1,
    sample=1,
)
RESOURCES = Resources(threads=1)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("\n".join(LINES))
    return path


@pytest.fixture(scope="module")
def model(text, client, tmp_path_factory):
    return train(text, work=tmp_path_factory.mktemp("work"), params=PARAMS, resources=RESOURCES, client=client)


@pytest.mark.slow
def test_train__knows_phrases_as_words(model):
    assert {"new~york~city", "1~2~3~4"} <= set(model.vocabulary.words)
    assert model.vector_size == len(model["new~york~city"])
    entries = model.metadata["phrases"]
    assert [entry["delimiter"] for entry in entries] == ["~", "~"]
    assert [entry["n_phrases"] for entry in entries] == [len(result) for _, result in Phrases.open(model.url).passes]
    stages = [entry["stage"] for entry in model.metadata["metrics"]["stages"]]
    assert stages == ["encode", "phrases", "vocabulary", "train"]


def test_apply__joins_as_the_models_text_was(model, text):
    phrases = Phrases.open(model.url)
    joined = [word for line in LINES for word in phrases.apply(line.split())]
    assert {word: joined.count(word) for word in joined} == dict(
        zip(model.vocabulary.words, model.vocabulary.counts.tolist(), strict=True)
    )
    assert model.metadata["corpus"]["tokens"] == len(joined)
    assert phrases.apply(["to", "new", "york", "city", "york"]) == ["to", "new~york~city", "york"]
    assert phrases.apply([]) == []


def test_phrases__tell_counts_and_scores_the_best_first(model):
    phrases = Phrases.open(model.url)
    assert len(phrases) == len(list(phrases)) == sum(entry["n_phrases"] for entry in model.metadata["phrases"])
    result = dict(phrases)
    assert result["new~york"].occurrences == 9
    for _, one in phrases.passes:
        scores = [score for _, score in one.values()]
        assert scores == sorted(scores, reverse=True)
        assert min(scores) > PARAMS.phrases.threshold


def test_of__reads_the_same_from_a_work_directory(model, text, client, tmp_path):
    work = Store(str(tmp_path))
    corpus = build_phrases(build_corpus(text, work, PARAMS, RESOURCES, client), work, PARAMS, RESOURCES, client)
    assert Phrases.of(corpus, work) == Phrases.open(model.url)
    vocabulary = build_vocabulary(corpus, work, PARAMS, RESOURCES, client)
    again = train_model(corpus, vocabulary, work, PARAMS, RESOURCES, client)
    np.testing.assert_array_equal(again.vectors, model.vectors)


def test_train_model__refuses_a_corpus_joined_otherwise(text, client, tmp_path):
    work = Store(str(tmp_path))
    corpus = build_corpus(text, work, PARAMS, RESOURCES, client)
    vocabulary = build_vocabulary(corpus, work, PARAMS, RESOURCES, client)
    with pytest.raises(ParameterError, match=r"phrases=2 with PhraseRules.*joined with nothing.*build_phrases"):
        train_model(corpus, vocabulary, work, PARAMS, RESOURCES, client)
    joined = build_phrases(corpus, work, PARAMS, RESOURCES, client)
    for other in (PARAMS.replace(phrases=1), PARAMS.replace(phrase_threshold=0.6), Params()):
        with pytest.raises(ParameterError, match=r"phrases=[01 2].*were joined with \[\(2, 0\.5, 'default', '~'\)"):
            train_model(joined, vocabulary, work, other, RESOURCES, client)


def test_train__default_threshold_of_a_scoring_equals_that_threshold(text, client, tmp_path):
    """The run is the same whether the default threshold is passed or not."""
    params = PARAMS.replace(phrases=1, phrase_threshold=None)
    urls = {
        train(text, work=tmp_path, params=one, resources=RESOURCES, client=client).url
        for one in (params, params.replace(phrase_threshold=10))
    }
    assert len(urls) == 1


def test_train__refuses_options_of_phrases_before_reading(client, tmp_path):
    with pytest.raises(ParameterError, match="phrase_min_count=7 changes nothing"):
        train("nowhere.txt", work=tmp_path, params=Params(phrase_min_count=7), client=client)


def test_open__of_a_model_without_phrases_has_none(text, client, tmp_path):
    params = Params(vector_size=4, min_count=1, epochs=1, sample=0)
    vectors = train(text, work=tmp_path, params=params, resources=RESOURCES, client=client)
    assert len(Phrases.open(vectors.url)) == 0
    assert Phrases.open(tmp_path).apply(["new", "york"]) == ["new", "york"]
    assert vectors.metadata["phrases"] == []
    assert not (Path(vectors.url) / "phrases").exists()


@pytest.fixture
def copy(model, tmp_path):
    shutil.copytree(model.url, tmp_path / "copy")
    return Store(str(tmp_path / "copy"))


def test_open__names_the_damaged_file(copy):
    chunk = Path(copy.url) / "phrases" / "0" / "0" / "scores" / "c" / "0"
    content = bytearray(chunk.read_bytes())
    content[0] ^= 1
    chunk.write_bytes(content)
    with pytest.raises(DamageError, match="scores/c/0 is damaged"):
        Phrases.open(copy.url)
    shutil.rmtree(Path(copy.url) / "phrases" / "1")
    shutil.rmtree(Path(copy.url) / "phrases" / "0")
    with pytest.raises(DamageError, match="is missing, or no group"):
        Phrases.open(copy.url)
    assert len(Vectors.open(copy.url))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("words", lambda words: np.full_like(words, 0xFF)),
        ("words", lambda words: words[:-1]),
        ("offsets", lambda offsets: offsets[::-1].copy()),
        ("offsets", lambda offsets: offsets[:-2]),
        ("offsets", lambda offsets: offsets.astype(np.int32)),
        ("counts", lambda counts: counts[1:]),
        ("scores", lambda scores: scores.reshape(1, -1)),
    ],
)
def test_open__refuses_lists_that_contradict_themselves(copy, name, change):
    group = (copy / "phrases/0/0").open_group(writable=True)
    values = change(open_array(group, name)[:])
    del group[name]
    write_array(group, name, values)
    with pytest.raises(StoreError, match=r"phrases/0/0 holds no list of phrases"):
        Phrases.open(copy.url)


@pytest.mark.parametrize("entries", [{"delimiter": 5, "pieces": 1}, {"delimiter": "_", "pieces": "1"}, {}, 7])
def test_open__refuses_manifests_with_invalid_passes(copy, entries):
    manifest = copy.read_manifest()
    copy.write_manifest({**manifest, "phrases": [entries]})
    with pytest.raises(StoreError, match="holds no list of phrases"):
        Phrases.open(copy.url)


def test_open__reads_the_version_that_is_served_once_the_first_is_deleted(tmp_path, monkeypatch):
    work = Store(str(tmp_path))

    def write(name):
        create_model(work / "models" / name, {"input": (1, 2)}, row_block=1)
        write_table_rows(work / "models" / name, "input", 0, np.zeros((1, 2), np.float32))
        write_vocabulary(work / "models" / name, Vocabulary.from_words(["a"], [1]))
        publish(work / "models", name, {})

    def read_finished_late(store):
        if store.url.endswith("v0001-a") and not (work / "models" / "v0002-b").exists():
            write("v0002-b")
            store.remove()
        return read_finished(store)

    write("v0001-a")
    monkeypatch.setattr(phrases, "read_finished", read_finished_late)
    assert len(Phrases.open(work.url)) == 0
    assert (work / "models" / "v0002-b").exists()
    assert not (work / "models" / "v0001-a").exists()
