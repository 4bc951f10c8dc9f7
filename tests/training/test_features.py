"""Words composed of n-grams and of what a table says of them: trained, looked at, continued, and refused."""

import itertools

import numpy as np
import pytest

from daskw2v import Params, Resources, Vectors, retrain, train
from daskw2v.errors import DamageError, ParameterError, UnknownWordError
from daskw2v.features.words import compose_vectors, sum_features, total_weights, weigh_own_rows
from daskw2v.models.stored.store import finish_tables, read_attempt
from daskw2v.models.stored.tables import create_model, write_table_rows
from daskw2v.retraining.gates import Gates
from daskw2v.retraining.outcome import Outcome
from daskw2v.store.storage import Store
from daskw2v.training.averaging.averaging import AveragingRun
from daskw2v.training.start.features import _all_features

pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

ONE = Resources(threads=1)
LOOSE = Gates(min_stability=None, min_kept=None)
STEMS, ENDINGS = ["gard", "comput", "swimm", "cook"], ["en", "ing", "ers", "ed", "able", "ment", "ist"]
NGRAMS = Params(vector_size=16, min_count=1, sample=0, epochs=3, maxn=5, bucket=5000, alpha=0.05, prior_count=0)


def text_of_stems(path, seed=0, lines=1500, left_out=()):
    """Lines in which all words are of one stem, or tell its name."""
    rng = np.random.default_rng(seed)
    with open(path, "w") as f:
        for _ in range(lines):
            stem = rng.integers(len(STEMS))
            words = [f"topic{stem}"] * 2 + [STEMS[stem] + ending for ending in rng.choice(ENDINGS, 5)]
            f.write(" ".join(word for word in rng.permutation(words) if word not in left_out) + "\n")
    return path


@pytest.fixture(scope="module")
def spelled(tmp_path_factory, client):
    folder = tmp_path_factory.mktemp("spelled")
    text = text_of_stems(folder / "text.txt", left_out={"cookist"})
    return train(text, work=folder / "work", params=NGRAMS, resources=ONE, client=client, listener=None)


def test_unseen_words__are_near_those_that_are_spelled_like_them(spelled):
    assert "cookist" not in spelled
    near = [word for word, _ in spelled.most_similar("cookist", topn=5)]
    assert all(word.startswith("cook") or word == "topic3" for word in near)
    np.testing.assert_array_equal(spelled["cookist"], spelled.features.vectors(["cookist"])[0])


def test_a_word_without_a_known_ngram__is_unknown(spelled):
    for word in ("QQ", "\ud800"):
        with pytest.raises(UnknownWordError, match="has no n-gram"):
            spelled[word]


def test_a_version__holds_the_means_of_words_rows(spelled, tmp_path):
    """With weights of 1, a vector differs from the mean of its n-grams by its own row's share alone."""
    features = weigh_own_rows(spelled.features.keys.find_ngrams(spelled.index_to_key), spelled.vocabulary.counts, 0)
    table = spelled.features.rows[:]
    totals = sum_features(features, lambda rows: table[rows], 16)
    own = spelled.vectors * (1 + total_weights(features))[:, None] - totals
    np.testing.assert_allclose(
        compose_vectors(features, own, lambda rows: table[rows]), spelled.vectors, rtol=1e-4, atol=1e-5
    )
    assert spelled.metadata["tables"]["features"] == list(table.shape)
    assert (features.rows >= 0).all(), "all n-grams of known words have rows"
    assert len(table) == len(np.unique(features.rows)), "and nothing else has"
    spelled.save(tmp_path / "copy")
    again = Vectors.open(tmp_path / "copy", in_memory=False)
    np.testing.assert_array_equal(again["cookist"], spelled["cookist"])


def test_a_pruned_model__has_the_most_frequent_ngrams(spelled, tmp_path):
    small = spelled.prune(50)
    small.save(tmp_path / "small")
    again = Vectors.open(tmp_path / "small")
    np.testing.assert_array_equal(again["cooking"], spelled["cooking"])
    assert again.features.rows.shape == (50, 16)
    np.testing.assert_array_equal(again.features.rows[:], spelled.features.rows[:50])
    cosine = np.vecdot(again["cookist"], spelled["cookist"])
    assert cosine / np.linalg.norm(again["cookist"]) / np.linalg.norm(spelled["cookist"]) > 0.5
    with pytest.raises(ParameterError, match="features=0"):
        spelled.prune(0)


def test_a_prefix__has_unseen_words_too(spelled):
    np.testing.assert_allclose(spelled.prefix(4)["cookist"], spelled["cookist"][:4], rtol=1e-6)


def test_a_lost_part__is_found(spelled, tmp_path):
    spelled.save(tmp_path / "copy")
    (Store(str(tmp_path / "copy")) / "feature_keys").remove()
    with pytest.raises(DamageError, match="feature_keys is missing"):
        Vectors.open(tmp_path / "copy")


@pytest.mark.slow
def test_vectors__are_the_same_on_any_cluster(tmp_path, client):
    """One replica or two, which pull rows or take all; on one worker or on several."""
    text = text_of_stems(tmp_path / "text.txt", lines=400)
    for n in (1, 2):
        params, models = NGRAMS.replace(n_replicas=n, epochs=1), []
        for number, own in enumerate([None, client]):
            resources = Resources(threads=1, workers=1)
            models.append(
                train(
                    text, work=tmp_path / f"{n}-{number}", params=params, resources=resources, client=own, listener=None
                )
            )
        np.testing.assert_array_equal(models[0].vectors, models[1].vectors)
        np.testing.assert_array_equal(models[0].features.rows[:], models[1].features.rows[:])


@pytest.mark.slow
def test_a_run_that_is_stopped__ends_with_the_same_vectors(tmp_path, client, monkeypatch):
    """Its second call finds the features anew, and goes on from a checkpoint of their rows."""

    class StoppedError(Exception):
        pass

    text, play = text_of_stems(tmp_path / "text.txt", lines=300), AveragingRun.play

    def stop(run, number, needs_rows):
        if number == 4:
            raise StoppedError
        return play(run, number, needs_rows)

    given = {
        "params": NGRAMS.replace(n_replicas=2, rounds_per_epoch=2),
        "client": client,
        "listener": None,
        "resources": ONE.replace(checkpoint_seconds=0),
    }
    with monkeypatch.context() as patch:
        patch.setattr(AveragingRun, "play", stop)
        with pytest.raises(StoppedError):
            train(text, work=tmp_path / "stopped", **given)
    (run,) = (tmp_path / "stopped" / "runs").iterdir()
    assert list((run / "checkpoints").iterdir())
    again, whole = (train(text, work=tmp_path / name, **given) for name in ("stopped", "whole"))
    np.testing.assert_array_equal(again.vectors, whole.vectors)
    np.testing.assert_array_equal(again.features.rows[:], whole.features.rows[:])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("objective", ["sgns", "cbow_ns", "sg_hs", "cbow_hs"])
def test_held_out_loss__is_that_of_composed_rows(tmp_path, client, objective):
    text = text_of_stems(tmp_path / "text.txt", lines=700)
    params = NGRAMS.replace(objective=objective, held_out=0.1)
    vectors = train(text, work=tmp_path / "work", params=params, resources=ONE, client=client, listener=None)
    losses = [entry["held_out_loss"] for entry in vectors.metadata["metrics"]["history"]]
    trained = vectors.metadata["metrics"]["history"][-1]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] == pytest.approx(trained["loss"] / trained["pairs"], rel=0.2)


def items_of(tmp_path, rng, styles=3, each=12):
    """Sessions of items of one style each; a table of their styles and prices; and items that nobody has seen."""
    names = [f"item{n}" for n in range(styles * each)]
    new = [f"new{n}" for n in range(styles)]
    with open(tmp_path / "sessions.txt", "w") as f:
        for _ in range(1200):
            style = rng.integers(styles)
            f.write(" ".join(names[style * each + i] for i in rng.integers(0, each, 8)) + "\n")
    style = [*np.repeat(np.arange(styles), each), *range(styles)]
    table = {
        "item": names + new,
        "style": [f"s{n}" for n in style],
        "price": rng.normal(np.array(style), 0.1),
        "noise": [f"n{n}" for n in rng.integers(0, 5, len(style))],
    }
    pq.write_table(pa.table(table), tmp_path / "items.parquet")
    return table


def test_new_items__are_found_by_their_features(tmp_path, client):
    table = items_of(tmp_path, np.random.default_rng(0))
    params = NGRAMS.replace(
        maxn=0,
        bucket=2_000_000,
        features=str(tmp_path / "items.parquet"),
        feature_weights={"noise": 0.5},
        prior_count=500,
    )
    vectors = train(
        tmp_path / "sessions.txt", work=tmp_path / "work", params=params, resources=ONE, client=client, listener=None
    )
    assert [column.name for column in vectors.features.keys.columns] == ["style", "price", "noise"]
    for row in range(36, 39):
        item = {name: table[name][row] for name in ("style", "price")}
        near = [int(word.removeprefix("item")) // 12 for word, _ in vectors.most_similar([vectors.of_features(item)])]
        assert near == [row - 36] * 10
    with pytest.raises(UnknownWordError):
        vectors["new0"]
    with pytest.raises(UnknownWordError, match="has no feature that"):
        vectors.of_features({"style": "unheard"})
    with pytest.raises(ParameterError, match="no mapping"):
        vectors.of_features(["style"])
    for wrong in ("style", 3, None):
        with pytest.raises(ParameterError, match="no mapping of columns"):
            vectors.of_features(wrong)
    assert vectors.of_features([{"style": "s0"}, {"style": "s1"}]).shape == (2, 16)


def test_both_sources__together(tmp_path, client):
    items_of(tmp_path, np.random.default_rng(0))
    params = NGRAMS.replace(features=str(tmp_path / "items.parquet"), epochs=1)
    vectors = train(
        tmp_path / "sessions.txt", work=tmp_path / "work", params=params, resources=ONE, client=client, listener=None
    )
    assert vectors["item"].shape == vectors.of_features({"style": "s1", "price": 1.0}).shape == (16,)
    assert len(vectors.features.keys) == vectors.metadata["tables"]["features"][0]


@pytest.mark.slow
def test_a_night__goes_on_from_the_rows_of_the_night_before(tmp_path, client):
    text_of_stems(tmp_path / "1.txt", lines=900)
    work = tmp_path / "work"
    first = train(tmp_path / "1.txt", work=work, params=NGRAMS, resources=ONE, client=client, listener=None)
    text_of_stems(tmp_path / "2.txt", seed=1, lines=60)
    with open(tmp_path / "2.txt", "a") as f:
        f.write("gardista topic0 topic0\n" * 3)
    report = retrain(
        [str(tmp_path / "1.txt"), str(tmp_path / "2.txt")],
        work=work,
        params=NGRAMS.replace(epochs=1),
        resources=ONE,
        client=client,
        gates=LOOSE,
        listener=None,
    )
    assert report.outcome is Outcome.PUBLISHED
    second = Vectors.open(work)
    assert second.url != first.url
    cosines = np.sum(
        first.units([first.key_to_index[w] for w in first.index_to_key])
        * second.units([second.key_to_index[w] for w in first.index_to_key]),
        axis=1,
    )
    assert cosines.min() > 0.8
    unseen = first["swimmista"], second["swimmista"]
    assert np.vecdot(*unseen) / np.prod([np.linalg.norm(u) for u in unseen]) > 0.9
    assert second.most_similar("gardista", topn=1)[0][0].startswith(("gard", "topic0"))


def test_base_vectors__without_features_are_what_words_begin_with(tmp_path, client):
    """At a learning rate of nearly nothing, composed vectors stay those of the base."""
    text = text_of_stems(tmp_path / "text.txt", lines=300)
    plain = NGRAMS.replace(maxn=0, bucket=2_000_000, prior_count=2000)
    base = train(text, work=tmp_path / "base", params=plain, resources=ONE, client=client, listener=None)
    params = NGRAMS.replace(base_vectors=str(tmp_path / "base"), alpha=1e-7, min_alpha=1e-8, epochs=1, prior_count=100)
    vectors = train(text, work=tmp_path / "work", params=params, resources=ONE, client=client, listener=None)
    np.testing.assert_allclose(vectors[base.index_to_key], base[base.index_to_key], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"minn": 4}, "minn=4 changes nothing without maxn"),
        ({"bucket": 7}, "bucket=7 changes nothing without maxn"),
        ({"prior_count": 7}, "prior_count=7 changes nothing without maxn or features"),
        ({"feature_weights": {"x": 2}}, "changes nothing without features"),
        ({"minn": 5, "maxn": 4}, "minn=5 is above maxn=4"),
        ({"maxn": 4, "frozen_words": "known", "base_vectors": "x"}, "frozen_words='known' cannot hold"),
        ({"maxn": 4, "strategy": "rotation"}, "maxn=4 changes nothing for strategy='rotation'"),
        ({"maxn": 4, "objective": "context_matrix"}, "maxn=4 changes nothing for objective='context_matrix'"),
        ({"features": "x.csv", "strategy": "rotation"}, "changes nothing for strategy='rotation'"),
    ],
)
def test_what_nothing_would_read__is_refused(tmp_path, options, message):
    text_of_stems(tmp_path / "text.txt", lines=3)
    with pytest.raises(ParameterError, match=message):
        train(tmp_path / "text.txt", work=tmp_path / "work", params=Params(min_count=1, **options), listener=None)


def test_gpus__are_refused(tmp_path):
    text_of_stems(tmp_path / "text.txt", lines=3)
    with pytest.raises(ParameterError, match="maxn=4 changes nothing for device='cuda'"):
        train(
            tmp_path / "text.txt",
            work=tmp_path / "work",
            params=Params(maxn=4),
            resources=Resources(device="cuda"),
            listener=None,
        )


def test_models_without_a_table__have_no_items(spelled):
    with pytest.raises(ParameterError, match="trained without a table of features"):
        spelled.of_features({"brand": "x"})


def test_a_table_of_features__is_read_anew_where_another_attempt_lies(tmp_path):
    """A worker that trains the same run again must not compose its rows of the features of the attempt before."""
    store, tables = Store(str(tmp_path / "trained")), []
    for value in (1.0, 2.0):
        create_model(store, {"input": (3, 2), "features": (4, 2)}, row_block=4)
        written = [
            write_table_rows(store, name, 0, np.full((n, 2), value, np.float32))
            for name, n in (("input", 3), ("features", 4))
        ]
        finish_tables(store, written)
        tables.append(_all_features(store, read_attempt(store)))
    assert (tables[0] == 1).all()
    assert (tables[1] == 2).all()


def test_stems__lie_together(spelled):
    for stem in STEMS:
        words = [stem + ending for ending in ENDINGS if stem + ending in spelled]
        near = itertools.chain.from_iterable(spelled.most_similar(word, topn=4) for word in words)
        assert np.mean([word.startswith(stem) or word == f"topic{STEMS.index(stem)}" for word, _ in near]) > 0.9


def test_ngrams_that_no_word_has__are_refused(tmp_path, client):
    text = text_of_stems(tmp_path / "text.txt", lines=50)
    params = NGRAMS.replace(minn=200, maxn=250)
    with pytest.raises(ParameterError, match=r"No word of the text has an n-gram of minn=200.*smaller minn"):
        train(text, work=tmp_path / "work", params=params, resources=ONE, client=client, listener=None)
