"""Columns: the same bits on any cluster, whatever dies; and only what a run needs lies and travels."""

import itertools
import os
import signal

import numpy as np
import pytest
from distributed import Client, LocalCluster

from daskw2v import Params, Resources, Vectors, train
from daskw2v.errors import ParameterError, StoreError, TrainingError
from daskw2v.models.stored.tables import open_table
from daskw2v.models.versions.versions import latest_version
from daskw2v.stages import Store, build_corpus, build_matrix, build_vocabulary, train_model
from daskw2v.training.columns import columns, parts
from daskw2v.training.columns.losses import read_losses
from daskw2v.training.columns.step_schedule import ColumnRounds

PARAMS = Params(
    objective="context_matrix",
    strategy="columns",
    vector_size=12,
    min_count=1,
    epochs=2,
    sample=1e-2,
    alpha=0.02,
    context_size=100,
    gather_every=13,
    optimizer="adam",
)
RESOURCES = Resources(threads=1, block_size="32 KiB")
ALL = {"adam": PARAMS, "sgd": PARAMS.replace(optimizer="sgd", alpha=0.1)}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("text") / "text.txt"
    topics = rng.integers(0, 6, 800)
    words = [[f"topic{t}_{w}" for w in np.minimum(rng.zipf(1.3, 12), 15)] for t in topics]
    path.write_text("".join(" ".join(sentence) + "\n" for sentence in words))
    return path


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """Chunks of four words, so that a vocabulary of ninety has parts for several workers."""
    monkeypatch.setattr(parts, "UNIT_WORDS", 4)


@pytest.fixture(scope="module")
def undisturbed(client, text, tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "UNIT_WORDS", 4)
        return {
            name: train(text, work=tmp_path_factory.mktemp(name), params=params, resources=RESOURCES, client=client)
            for name, params in ALL.items()
        }


class Stop(Exception):
    pass


def same(a, b):
    np.testing.assert_array_equal(a.vectors[:], b.vectors[:])
    output = [open_table(Store(vectors.url), "output")[:] for vectors in (a, b)]
    np.testing.assert_array_equal(*output)


@pytest.mark.slow
def test_columns__learn_the_topics(undisturbed):
    for vectors in undisturbed.values():
        for word in ("topic0_1", "topic3_2", "topic5_3"):
            neighbours = [other for other, _ in vectors.most_similar(word, topn=4)]
            assert all(other.split("_")[0] == word.split("_")[0] for other in neighbours), neighbours
        losses = [entry["loss"] / entry["pairs"] for entry in vectors.metadata["metrics"]["history"]]
        assert losses[-1] < losses[0]


@pytest.mark.slow
def test_columns__give_the_same_bits_on_three_workers(text, undisturbed, tmp_path):
    with LocalCluster(n_workers=3, threads_per_worker=2, dashboard_address=":0") as cluster, Client(cluster) as client:
        for name, params in ALL.items():
            resources = RESOURCES.replace(threads=2)
            vectors = train(text, work=tmp_path, params=params, resources=resources, client=client)
            same(vectors, undisturbed[name])
            rates = [worker["words_per_second"] for worker in vectors.metadata["metrics"]["workers"]]
            assert len(rates) == 3
            assert min(rates) > 0


@pytest.mark.slow
@pytest.mark.parametrize(("n_workers", "checkpoint_seconds"), [(1, 1000), (2, 0)])
def test_columns__give_the_same_bits_when_workers_are_killed(
    text, undisturbed, tmp_path, n_workers, checkpoint_seconds
):
    """All of them die at once, and others come: of Adam's moments too nothing is lost."""
    killed = []
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):

        def kill(progress):
            if progress.loss is not None and progress.done > 0.6 * progress.total and not killed:
                killed.extend(client.run(os.getpid).values())
                for pid in killed:
                    os.kill(pid, signal.SIGKILL)

        resources = RESOURCES.replace(checkpoint_seconds=checkpoint_seconds)
        vectors = train(text, work=tmp_path, params=PARAMS, resources=resources, client=client, listener=kill)
    assert len(killed) == n_workers
    same(vectors, undisturbed["adam"])


@pytest.mark.slow
def test_columns__of_long_rows_are_written_along_chunks(text, undisturbed, tmp_path):
    """A unit of words is then several chunks, whose bounds are those of parts."""
    params = PARAMS.replace(vector_size=65536, context_size=2)
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        client.run(setattr, parts, "UNIT_WORDS", 36)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(parts, "UNIT_WORDS", 36)
            patch.setattr(parts, "rows_per_block", lambda width: 16)
            vectors = train(text, work=tmp_path, params=params, resources=RESOURCES, client=client)
    assert open_table(Store(vectors.url), "input").chunk_rows == 12
    assert np.isfinite(vectors.vectors[:]).all()


@pytest.mark.slow
def test_columns__losses_of_a_run_that_began_without_are_made_anew(client, text, undisturbed, tmp_path):
    resources, messages = RESOURCES.replace(checkpoint_seconds=0), []

    def stop(progress):
        if progress.loss is not None and progress.done > 0.6 * progress.total:
            raise Stop

    with pytest.raises(Stop):
        train(text, work=tmp_path, params=PARAMS, resources=resources, client=client, listener=stop)
    vectors = train(
        text,
        work=tmp_path,
        params=PARAMS,
        resources=resources.replace(word_losses=True),
        client=client,
        listener=lambda p: messages.append(p.message),
    )
    assert "the checkpoint has no losses of the rounds before it: training starts again" in messages
    assert np.isfinite(read_losses(Store(vectors.url))[1]).all()
    same(vectors, undisturbed["adam"])


@pytest.mark.slow
def test_columns__go_on_from_the_last_checkpoint(client, text, undisturbed, tmp_path, two_processes):
    """On another number of workers; rounds done are not done again, and losses are those of an unbroken run."""
    resources = RESOURCES.replace(checkpoint_seconds=0, word_losses=True)
    options = {"work": tmp_path, "params": PARAMS, "resources": resources}

    def stop(progress):
        if progress.loss is not None and progress.done > 0.6 * progress.total:
            raise Stop

    with pytest.raises(Stop):
        train(text, **options, client=client, listener=stop)
    rounds, seen = ColumnRounds(PARAMS), []
    vectors = train(
        text, **options, client=two_processes, listener=lambda p: seen.append(p.done) if p.loss is not None else None
    )
    assert 0 < len(seen) < 0.5 * len(rounds)
    same(vectors, undisturbed["adam"])
    assert len(vectors.metadata["metrics"]["history"]) == len(rounds)
    whole = train(text, work=tmp_path / "whole", params=PARAMS, resources=resources, client=client)
    np.testing.assert_array_equal(*(read_losses(Store(v.url))[1] for v in (vectors, whole)))
    assert not [*tmp_path.glob("runs/*")]


@pytest.mark.slow
def test_columns__take_the_mean_off_the_finished_rows(client, text, undisturbed, tmp_path):
    rows = undisturbed["adam"].vectors[:]
    np.testing.assert_allclose(rows.mean(axis=0), 0, atol=1e-6)
    left = train(text, work=tmp_path, params=PARAMS.replace(centered=False), resources=RESOURCES, client=client)
    mean = left.vectors[:].mean(axis=0, dtype=np.float64)
    assert np.linalg.norm(mean) > 0.1
    np.testing.assert_allclose(rows, left.vectors[:] - mean, atol=1e-6)
    outputs = [open_table(Store(vectors.url), "output")[:] for vectors in (left, undisturbed["adam"])]
    np.testing.assert_array_equal(*outputs)


def test_columns__keep_the_loss_of_every_word_in_every_step(client, text, undisturbed, tmp_path):
    resources = RESOURCES.replace(word_losses=True)
    vectors = train(text, work=tmp_path, params=PARAMS, resources=resources, client=client)
    same(vectors, undisturbed["adam"])
    ends, losses = read_losses(Store(vectors.url))
    assert ends == [*range(13, 100, 13), 100, *range(113, 200, 13), 200]
    assert losses.shape == (len(ends), 90)
    assert (losses > 0).all()
    # The first step begins with output rows of zeros: a pair and five negatives, where they are not the same
    assert losses[0].max() == pytest.approx(6 * np.log(2), rel=1e-5)
    assert losses[-5:].mean() < 0.9 * losses[0].mean()
    assert latest_version(Store(str(tmp_path)) / "models") is not None


def test_columns__losses_of_a_model_that_was_trained_without_are_refused(client, text, undisturbed):
    work = undisturbed["adam"].url.rsplit("/models/", 1)[0]
    resources = RESOURCES.replace(word_losses=True)
    with pytest.raises(ParameterError, match=r"word_losses=True, but .* was trained without"):
        train(text, work=work, params=PARAMS, resources=resources, client=client)


def test_columns__train_the_matrix_that_was_built_before(client, text, tmp_path):
    work = Store(str(tmp_path))
    corpus = build_corpus(text, work, PARAMS, RESOURCES, client)
    vocabulary = build_vocabulary(corpus, work, PARAMS, RESOURCES, client)
    args = corpus, vocabulary, work, PARAMS, RESOURCES, client
    matrix, stages = build_matrix(*args), []
    assert (matrix.words, matrix.context_size) == (90, 100)
    vectors = train_model(*args, listener=lambda p: stages.append(p.stage))
    assert vectors.metadata["matrix"]["name"] == matrix.name
    assert "matrix" not in stages


@pytest.mark.slow
def test_columns__new_text_extends_the_matrix_of_old_text(client, text, tmp_path):
    """Only new text is read, words get new ids, and both runs' models stay."""
    old = train(text, work=tmp_path, params=PARAMS, resources=RESOURCES, client=client)
    more = tmp_path / "more.txt"
    more.write_text("\n".join(f"topic7_{i % 3} topic7_{i % 5} topic7_0 topic0_1" for i in range(500)))
    base = old.metadata["matrix"]
    params, stages = PARAMS.replace(base_matrix=base["name"]), []
    new = train(
        [text, more],
        work=tmp_path,
        params=params,
        resources=RESOURCES,
        client=client,
        listener=lambda p: stages.append(p.message) if p.stage == "matrix" else None,
    )
    assert stages[0] == "1 piece of text"
    assert f"word-context matrix {new.metadata['matrix']['name']}" in stages
    assert new.metadata["matrix"]["text_words"] == base["text_words"] + 2000
    assert new.metadata["matrix"]["pairs"] > base["pairs"]
    assert "topic7_4" in new
    assert "topic7_4" not in old
    assert {word for word, _ in new.most_similar("topic7_1", topn=4)} == {f"topic7_{i}" for i in (0, 2, 3, 4)}
    for word in ("topic3_2", "topic5_3"):
        assert all(w.split("_")[0] == word.split("_")[0] for w, _ in new.most_similar(word, topn=4))


def test_columns__losses_that_were_not_kept_cannot_be_read(undisturbed):
    with pytest.raises(StoreError, match="losses/loss is missing"):
        read_losses(Store(undisturbed["adam"].url))


def test_columns__never_bring_rows_to_the_client(client, text, tmp_path, monkeypatch):
    seen, gather = [], columns.gather

    def watch(*args):
        seen.extend(results := gather(*args))
        return results

    monkeypatch.setattr(columns, "gather", watch)
    train(text, work=tmp_path, params=PARAMS, resources=RESOURCES, client=client)
    assert {type(value).__name__ for value in seen} == {"TaskTotals", "dict"}
    written = [value for value in seen if isinstance(value, dict)]  # checksums of chunks
    assert sum(chunk.nbytes for value in written for chunks in value.values() for chunk in chunks.values()) < 1000


def test_columns__stop_when_they_diverge(client, text, tmp_path):
    params = PARAMS.replace(optimizer="sgd", alpha=10.0, vector_size=100, epochs=8)
    with pytest.raises(TrainingError, match=r"A part in round \d+ holds NaN.*lower alpha"):
        train(text, work=tmp_path, params=params, resources=RESOURCES, client=client)
    assert latest_version(Store(str(tmp_path)) / "models") is None


OTHERS = r"objective='sgns' has no kernel for columns.*strategy='averaging' or strategy='rotation'"
ONLY = r"objective='context_matrix' has no kernel for device='cpu', as strategy='averaging' needs.*strategy='columns'"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"objective": "sgns", "optimizer": None}, OTHERS),
        ({"strategy": "averaging"}, ONLY),
        ({"n_replicas": 2}, r"n_replicas=2 changes nothing for strategy='columns'; it is for averaging"),
        (
            {"strategy": "averaging", "gather_every": 13},
            r"gather_every=13 changes nothing for strategy='averaging'; it is for columns",
        ),
        (
            {"objective": "sgns", "context_size": 100},
            r"context_size=100 changes nothing for objective='sgns'; it is for context_matrix",
        ),
        ({"optimizer": "lamb"}, r"optimizer of context_matrix='lamb' does not exist.*sgd, adam"),
    ],
)
def test_columns__refuse_what_they_do_not_read(client, tmp_path, change, message):
    with pytest.raises(ParameterError, match=message):
        train(tmp_path / "none.txt", work=tmp_path, params=PARAMS.replace(**change), client=client)


def test_other_strategies__refuse_word_losses(client, tmp_path):
    with pytest.raises(ParameterError, match=r"word_losses=True changes nothing for strategy='averaging'"):
        train(tmp_path / "none.txt", work=tmp_path, resources=Resources(word_losses=True), client=client)


def test_columns__their_models_open_from_the_store_too(undisturbed):
    stored = Vectors.open(undisturbed["sgd"].url, in_memory=False)
    assert stored.most_similar("topic0_1") == undisturbed["sgd"].most_similar("topic0_1")


@pytest.mark.parametrize(
    ("epochs", "size", "every"), [(1, 1, 1), (1, 1024, 16), (3, 100, 7), (5, 10, 1000), (2, 64, 1)]
)
def test_rounds__train_every_column_of_every_epoch_once(epochs, size, every):
    params = PARAMS.replace(epochs=epochs, context_size=size, gather_every=every, alpha=0.5, min_alpha=0.1)
    rounds = ColumnRounds(params)
    steps = [step for number in range(len(rounds)) for step in rounds[number].steps]
    trained = [(step.epoch, column) for step in steps for column in range(step.first, step.last)]
    assert trained == [(epoch, column) for epoch in range(epochs) for column in range(size)]
    assert [step.number for step in steps] == [*range(len(steps))]
    assert all(step.last - step.first <= every for step in steps)
    alphas = [step.alpha for step in steps]
    assert alphas[0] == 0.5
    assert all(a > b > 0.1 for a, b in itertools.pairwise(alphas))
    assert 1 <= len(rounds) <= 64
    assert [rounds[number].end for number in range(len(rounds))][-1] == rounds.total == epochs * size
    assert sum(len(rounds[number]) for number in range(len(rounds))) == epochs * size
    assert rounds.ends[-1] == rounds.total
