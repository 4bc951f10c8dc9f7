"""Held-out text: what is never trained on, the loss there, and runs that end when it no longer falls."""

import importlib
import importlib.util

import numpy as np
import pytest

from daskw2v import Gates, Params, Policy, Resources, Vectors, retrain, train
from daskw2v.errors import ParameterError, TrainingError
from daskw2v.models.stored.tables import open_table
from daskw2v.objectives.base import Rate, initial_rows
from daskw2v.sampling.reader import read_text
from daskw2v.sampling.run import Run
from daskw2v.shards.layout import CORPORA, Corpus
from daskw2v.stages import Store, build_corpus, build_vocabulary
from daskw2v.training.rotation import work as rotation_work
from daskw2v.training.rotation.work import OUT_OF_CORE
from daskw2v.training.start.initial_rows import get_prepared
from daskw2v.training.watch import held_out, measurements
from daskw2v.training.watch.held_out import split_text

PARAMS = Params(vector_size=8, min_count=1, epochs=2, sample=0, held_out=0.1)
ONE = PARAMS.replace(strategy="averaging", rounds_per_epoch=2)
ROTATION = PARAMS.replace(strategy="rotation", n_partitions=4, passes_per_epoch=2)
COLUMNS = PARAMS.replace(objective="context_matrix", strategy="columns", context_size=64, gather_every=32)
RUNS = {
    "sgns": ONE,
    "cbow_ns": ONE.replace(objective="cbow_ns"),
    "sg_hs": ONE.replace(objective="sg_hs"),
    "cbow_hs": ONE.replace(objective="cbow_hs"),
    "replicas": ONE.replace(n_replicas=2),
    "rotation": ROTATION,
    "rotation of sg_hs": ROTATION.replace(objective="sg_hs"),
    "context_matrix": COLUMNS,
    "subwords": COLUMNS.replace(objective="subwords"),
}
TOKENS = 6000


@pytest.fixture(autouse=True)
def short_stretches(monkeypatch):
    """Several pieces in little text."""
    monkeypatch.setattr(held_out, "_MIN_STRETCH", 1000)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    rng, folder = np.random.default_rng(0), tmp_path_factory.mktemp("text")
    words = np.minimum(rng.zipf(1.3, (2, TOKENS // 24, 12)), 60)
    for name, half in zip("ab", words, strict=True):
        (folder / f"{name}.txt").write_text("".join(" ".join(f"w{w}" for w in line) + "\n" for line in half))
    return folder


def trained(text, work, client, params=ONE, messages=None, **resources):
    said = [] if messages is None else messages
    return train(
        str(text),
        work=work,
        params=params,
        resources=Resources(threads=1, **resources),
        client=client,
        listener=lambda p: said.append(p.message),
    )


def corpus_of(text, work, client, params=PARAMS, **resources):
    return build_corpus(str(text), Store(str(work)), params, Resources(**resources), client, None)


def codes(corpus, store):
    """Return (path, index) of each token of a corpus."""
    return [(shard.path, shard.first + i) for shard in corpus.shards for i in range(shard.n_tokens)]


def test_split__takes_a_share_of_each_stretch_and_leaves_the_rest(text, tmp_path, client):
    store = Store(str(tmp_path))
    corpus = corpus_of(text, tmp_path, client)
    trained_on, sample = split_text(corpus, PARAMS)
    all_of_it, rest, held = (codes(part, store) for part in (corpus, trained_on, sample))
    assert (len(rest), len(held)) == (5400, 600)
    assert sorted(rest + held) == sorted(all_of_it)
    positions = np.array([all_of_it.index(code) for code in held])
    assert np.bincount(positions // 1000).tolist() == [100] * 6
    assert np.count_nonzero(np.diff(positions) != 1) <= 5, "whole pieces"
    other = split_text(corpus, PARAMS.replace(seed=2))
    assert codes(other.held_out, store) != held
    assert split_text(corpus, PARAMS.replace(held_out=0)) == (corpus, None)


def test_split__does_not_depend_on_how_the_text_is_cut(text, tmp_path, client):
    """Or a run would not hold out the same on another cluster."""
    few, many = (
        corpus_of(text, tmp_path / name, client, block_size=size) for name, size in (("few", "64 MiB"), ("many", 2000))
    )
    assert len(few.shards) < len(many.shards)
    for one, other in zip(split_text(few, PARAMS), split_text(many, PARAMS), strict=True):
        assert one.identity == other.identity
        assert one.n_tokens == other.n_tokens


def test_sample__is_bounded_and_of_all_pieces(text, tmp_path, client, monkeypatch):
    monkeypatch.setattr(held_out, "_MAX_SAMPLE", 60)
    store, corpus = Store(str(tmp_path)), corpus_of(text, tmp_path, client)
    trained_on, sample = split_text(corpus, PARAMS)
    assert (trained_on.n_tokens, sample.n_tokens) == (5400, 60)
    places = codes(corpus, store)
    assert {places.index(code) // 1000 for code in codes(sample, store)} == set(range(6))


def test_held_out_text__is_never_trained_on(tmp_path, client):
    """Words that stand there alone keep their first vectors, and all others do not."""
    path = tmp_path / "text.txt"
    path.write_text("".join(" ".join(f"w{10 * n + k}" for k in range(10)) + "\n" for n in range(500)))
    vectors = trained(path, tmp_path / "work", client)
    corpus = corpus_of(path, tmp_path / "work", client)
    store = Store(str(tmp_path / "work"))
    positions = {code: position for position, code in enumerate(codes(corpus, store))}
    held = {f"w{positions[code]}" for code in codes(split_text(corpus, ONE).held_out, store)}
    assert vectors.metadata["held_out"]["tokens"] == len(held) == 500
    assert vectors.metadata["metrics"]["words"] == 2 * 4500
    first = initial_rows(ONE, "input", np.arange(len(vectors)))
    untrained = {vectors.vocabulary.word(i) for i in np.flatnonzero((vectors.vectors[:] == first).all(axis=1))}
    assert held <= untrained
    assert len(untrained - held) <= 10, "besides, those that stand alone between two pieces or beside one"
    assert len(vectors) == corpus.n_tokens, "its words count"


def reference_loss(text, work, client, vectors, params):
    """Return the loss on held-out text by float64 NumPy."""
    store, params = Store(str(work)), vectors_params(params)
    corpus = corpus_of(text, work, client, params)
    vocabulary = build_vocabulary(corpus, store, params, Resources(), client, None)
    _, sample = split_text(corpus, params)
    run = Run(store, sample.name, vocabulary, params, "cpu")
    tables = (np.array(open_table(Store(vectors.url), table)[:], np.float64) for table in ("input", "output"))
    segment, *_ = read_text(run, 0, 0, sample.n_tokens)
    module = importlib.import_module(f"daskw2v.objectives.{params.objective.name}.reference")
    n, loss = module.train(
        segment, *segment.centers(0, sample.n_tokens), *tables, Rate(0.0, 0.0, 0), 0, get_prepared(run)
    )
    return loss / n


def vectors_params(params):
    return params.replace(objective="sgns") if params.strategy.name == "columns" else params


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", RUNS)
def test_loss__is_that_of_the_reference_on_any_cluster(text, tmp_path, client, two_processes, name):
    params = RUNS[name].replace(centered=False) if RUNS[name].strategy.name == "columns" else RUNS[name]
    if name == "subwords" and importlib.util.find_spec("torch") is None:
        pytest.skip("no PyTorch")
    vectors = trained(text, tmp_path / "one", client, params)
    history = vectors.metadata["metrics"]["history"]
    measured = [entry["held_out_loss"] for entry in history if "held_out_loss" in entry]
    assert len(measured) == 2, "after each epoch"
    assert "held_out_loss" in history[-1]
    assert vectors.metadata["held_out"] == {"tokens": 600, "measured": 600, "loss": measured[-1]}
    assert measured[-1] == pytest.approx(reference_loss(text, tmp_path / "one", client, vectors, params), rel=1e-4)
    if name != "subwords":  # PyTorch may add in another order
        other = trained(text, tmp_path / "two", two_processes, params)
        assert [e.get("held_out_loss") for e in other.metadata["metrics"]["history"]] == [
            e.get("held_out_loss") for e in history
        ]


def test_loss__is_that_after_each_epoch_where_an_epoch_is_one_pass(text, tmp_path, client):
    vectors = trained(text, tmp_path, client, ROTATION.replace(epochs=3, passes_per_epoch=1))
    assert ["held_out_loss" in entry for entry in vectors.metadata["metrics"]["history"]] == [True] * 3


@pytest.mark.slow
def test_loss__of_a_model_in_files_is_that_of_the_same_model_in_memory(text, tmp_path, client, monkeypatch):
    held = trained(text, tmp_path / "memory", client, ROTATION)
    monkeypatch.setattr(rotation_work, "fits_model", lambda *_: False)
    messages = []
    files = trained(text, tmp_path / "files", client, ROTATION, messages)
    assert OUT_OF_CORE in messages
    for one, other in zip(*(vectors.metadata["metrics"]["history"] for vectors in (held, files)), strict=True):
        assert one.get("held_out_loss") == other.get("held_out_loss")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["sgns", "rotation", "context_matrix"])
def test_measuring__changes_no_vector(text, tmp_path, client, monkeypatch, name):
    measured = trained(text, tmp_path / "measured", client, RUNS[name])
    monkeypatch.setattr(held_out.HeldOutText, "measure", lambda *_: None)
    plain = trained(text, tmp_path / "plain", client, RUNS[name])
    np.testing.assert_array_equal(measured.vectors[:], plain.vectors[:])


def test_run_without_held_out_text__keeps_its_corpus(text, tmp_path, client):
    vectors = trained(text, tmp_path, client, ONE.replace(held_out=0))
    (name,) = [name for name in (Store(str(tmp_path)) / CORPORA.folder).children() if name.endswith(".json")]
    assert Corpus.load(Store(str(tmp_path)), name.removesuffix(".json")).n_tokens == TOKENS
    assert "held_out" not in vectors.metadata
    assert not any("held_out_loss" in entry for entry in vectors.metadata["metrics"]["history"])


@pytest.fixture(scope="module")
def noise(tmp_path_factory):
    """Text in which there is nothing to learn but counts, which many epochs learn by heart."""
    rng, path = np.random.default_rng(1), tmp_path_factory.mktemp("noise") / "text.txt"
    path.write_text("".join(" ".join(f"w{w}" for w in rng.integers(0, 300, 12)) + "\n" for _ in range(500)))
    return path


OVERFITTING = ONE.replace(
    vector_size=32, epochs=12, alpha=0.1, window=2, rounds_per_epoch=1, monitor="held_out_loss", patience=1
)


def test_early_stopping__ends_a_run_whose_held_out_loss_rises(noise, tmp_path, client):
    full = trained(noise, tmp_path, client, OVERFITTING.replace(monitor=None, patience=2))
    history = full.metadata["metrics"]["history"]
    held, own = ([entry[name] for entry in history] for name in ("held_out_loss", "loss"))
    best = int(np.argmin(held))
    assert 0 < best < 8, "it falls, and then it rises"
    assert held[-1] > held[best] + 0.05
    assert own[-1] < own[best], "while the loss on trained text falls"

    messages = []
    stopped = trained(noise, tmp_path, client, OVERFITTING, messages)
    stop = stopped.metadata["stopped"]
    first_rise = next(n for n in range(1, 12) if held[n] >= min(held[:n]))
    assert (stop["round"], stop["epochs"]) == (first_rise, first_rise + 1)
    assert stop["reason"] == (
        f"held_out_loss was {held[first_rise]:.4f}, and for 1 epoch not better than {min(held[:first_rise]):.4f}"
    )
    assert [entry["held_out_loss"] for entry in stopped.metadata["metrics"]["history"]] == held[: first_rise + 1]
    assert trained(noise, tmp_path, client, OVERFITTING).url == stopped.url
    assert len({full.url, stopped.url}) == 2


def test_early_stopping__counts_gains_above_min_delta_alone(noise, tmp_path, client):
    params = OVERFITTING.replace(min_delta=100, patience=3)
    assert trained(noise, tmp_path, client, params).metadata["stopped"]["epochs"] == 4


def test_early_stopping__may_watch_a_set_of_words(noise, tmp_path, client):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("w1\tw2\t1\nw1\tw3\t2\nw2\tw5\t3\nw4\tw3\t1.5\nw1\tw6\t2.5\n")
    params = OVERFITTING.replace(held_out=0, monitor="similarity/pairs")
    vectors = trained(noise, tmp_path / "work", client, params, eval_similarity=[pairs])
    history = vectors.metadata["metrics"]["history"]
    scores = [entry["scores"]["pairs"] for entry in history]
    assert vectors.metadata["stopped"]["round"] == len(scores) - 1 < 11
    assert scores[-1] <= max(scores[:-1])
    assert all(b > max(scores[: n + 1]) for n, b in enumerate(scores[1:-1]))
    pairs.write_text("w1\tw2\t3\nw1\tw3\t2\nw2\tw5\t1\n")
    other = trained(noise, tmp_path / "work", client, params, eval_similarity=[pairs])
    assert other.url != vectors.url, "the set is part of the run's name"


def test_early_stopping__does_not_go_on_without_what_it_watches(noise, tmp_path, client, monkeypatch):
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("w1\tw2\t1\nw1\tw3\t2\nw2\tw5\t3\n")

    def fail(vectors, **_):
        if len(vectors):  # the sets are read before, for no words
            raise MemoryError("no room")

    monkeypatch.setattr(measurements, "evaluate", fail)
    params = OVERFITTING.replace(held_out=0, monitor="similarity/pairs")
    with pytest.raises(TrainingError, match=r"monitor='similarity/pairs' was not measured after round 0"):
        trained(noise, tmp_path / "work", client, params, eval_similarity=[pairs])


@pytest.mark.slow
def test_retraining__holds_out_some_of_its_excerpt(text, tmp_path, client):
    loose = Gates(max_unknown=None, max_shift=None, min_stability=None, max_long=None, min_kept=None)
    folder = tmp_path / "text"
    folder.mkdir()
    options = {
        "work": tmp_path / "work",
        "params": ONE,
        "resources": Resources(threads=1),
        "gates": loose,
        "client": client,
        "policy": Policy(text="new", keep=2),
        "listener": None,
    }
    corpora = []
    for night, name in enumerate("ababa"):
        (folder / f"{night}.txt").write_bytes((text / f"{name}.txt").read_bytes() * (night + 1))
        summary = retrain(str(folder), **options)
        vectors = Vectors.open(str(tmp_path / "work" / "models" / summary.version))
        held_out_facts = vectors.metadata["held_out"]
        assert held_out_facts["tokens"] == 0.1 * vectors.metadata["corpus"]["tokens"]
        assert held_out_facts["loss"] == vectors.metadata["metrics"]["history"][-1]["held_out_loss"]
        corpora.append(len((Store(str(tmp_path / "work")) / CORPORA.folder).children()))
    assert corpora[3] == corpora[4], "those of the night before last are cleared away"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("chosen", ["new", "sample", "all"])
def test_retraining__finds_new_text_in_its_excerpt(text, tmp_path, client, chosen):
    store, corpus = Store(str(tmp_path)), corpus_of(text, tmp_path, client, block_size=2000)
    unread = [(700, 1500), (2500, 3100)]
    part, new = Policy(text=chosen, old_share=0.3).choose(corpus, unread, 1)
    places, kept = codes(corpus, store), codes(part, store)
    assert [kept[i] for start, stop in new for i in range(start, stop)] == places[700:1500] + places[2500:3100]
    held = split_text(part, PARAMS, new).held_out
    assert {places.index(code) for code in codes(held, store)} <= {*range(700, 1500), *range(2500, 3100)}
    assert held.n_tokens == 140


@pytest.mark.slow
def test_retraining__holds_out_of_new_text_alone(text, tmp_path, client):
    loose = Gates(max_unknown=None, max_shift=None, min_stability=None, max_long=None, min_kept=None)
    folder = tmp_path / "text"
    folder.mkdir()

    def night():
        summary = retrain(
            str(folder),
            work=tmp_path / "work",
            params=ONE,
            resources=Resources(threads=1),
            gates=loose,
            client=client,
            policy=Policy(old_share=0.5),
            listener=None,
        )
        metadata = Vectors.open(str(tmp_path / "work" / "models" / summary.version)).metadata
        return metadata["corpus"]["tokens"], metadata.get("held_out", {}).get("tokens")

    half = TOKENS // 2
    (folder / "a.txt").write_bytes((text / "a.txt").read_bytes())
    assert night() == (half, half // 10)
    (folder / "b.txt").write_bytes((text / "b.txt").read_bytes())
    assert night() == (half + half // 2, half // 10)
    (folder / "a.txt").unlink()
    assert night() == (half // 2, None), "nothing is new"


@pytest.mark.parametrize(
    ("changes", "resources", "match"),
    [
        ({"monitor": "held_out_loss", "held_out": 0}, {}, r"monitor='held_out_loss' is not measured with held_out=0"),
        ({"monitor": "similarity/ws353"}, {}, r"ws353' will not be measured.*held_out_loss.*this run: none"),
        ({"monitor": "loss"}, {}, r"monitor='loss' will not be measured"),
        ({"patience": 3}, {}, r"patience=3 changes nothing without monitor"),
        ({"min_delta": 0.1}, {}, r"min_delta=0\.1 changes nothing without monitor"),
        (
            {"objective": "context_matrix", "strategy": "auto", "base_matrix": "a"},
            {},
            r"held_out=0\.1 with base_matrix='a'",
        ),
    ],
)
def test_what_cannot_be_measured__is_refused_before_text_is_read(tmp_path, changes, resources, match):
    with pytest.raises(ParameterError, match=match):
        train("no-such-file", work=tmp_path, params=ONE.replace(**changes), resources=Resources(**resources))


def test_monitor__of_a_name_that_two_sets_have_is_refused(tmp_path):
    sets = {"eval_similarity": ["a/words.tsv"], "eval_analogy": ["b/words.txt"]}
    params = ONE.replace(monitor="similarity/words")
    with pytest.raises(ParameterError, match=r"another set is called 'words'.*Rename"):
        train("no-such-file", work=tmp_path, params=params, resources=Resources(**sets))
