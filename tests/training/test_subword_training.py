"""Input rows that follow from a network: the same bits on any cluster, and vectors for words nobody has seen."""

import os
import signal
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from distributed import Client, LocalCluster, WorkerPlugin

from daskw2v import Params, Resources, Vectors, train
from daskw2v.errors import MissingExtraError
from daskw2v.models.stored.store import read_subwords
from daskw2v.models.stored.tables import open_table
from daskw2v.objectives.registry import settle_params
from daskw2v.sampling.run import Run
from daskw2v.stages import Store, build_corpus, build_vocabulary, train_model
from daskw2v.training.columns import parts, subwords
from daskw2v.training.columns.losses import read_losses
from daskw2v.training.columns.parts import ColumnsContext, TableOrigin, WordRange
from daskw2v.training.columns.step_schedule import ColumnRounds
from daskw2v.training.columns.subwords import make_rows, minibatches, open_network
from daskw2v.training.devices import DEVICES

PARAMS = Params(
    objective="subwords",
    strategy="columns",
    vector_size=12,
    min_count=1,
    epochs=2,
    sample=0,
    window=3,
    alpha=0.003,
    context_size=40,
    gather_every=8,
)
RESOURCES = Resources(threads=1, block_size="32 KiB")
TOPICS = ["stone", "water", "green", "music"]
ENDINGS = ["", "s", "y", "ish", "like", "ful", "less"]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    """Sentences of one topic, whose words have a stem in common."""
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("text") / "text.txt"
    stems, endings = rng.integers(0, len(TOPICS), 700), rng.integers(0, len(ENDINGS) - 1, (700, 8))
    lines = [" ".join(TOPICS[s] + ENDINGS[e] for e in row) for s, row in zip(stems, endings, strict=True)]
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module", autouse=True)
def small():
    """Chunks and blocks of four words, so that a vocabulary of two dozen has parts for several workers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "UNIT_WORDS", 4)
        patch.setattr(subwords, "BLOCK_WORDS", 4)
        patch.setattr(subwords, "BATCH_BLOCKS", 3)
        yield


@pytest.fixture(scope="module")
def undisturbed(torch, client, text, tmp_path_factory):
    return train(text, work=tmp_path_factory.mktemp("work"), params=PARAMS, resources=RESOURCES, client=client)


def same(a, b):
    np.testing.assert_array_equal(a.vectors[:], b.vectors[:])
    np.testing.assert_array_equal(*(open_table(Store(vectors.url), "output")[:] for vectors in (a, b)))
    networks = [read_subwords(Store(vectors.url)) for vectors in (a, b)]
    for name, values in networks[0].weights.items():
        np.testing.assert_array_equal(values, networks[1].weights[name])


@pytest.mark.slow
def test_following__gives_unseen_words_the_vectors_of_their_topic(undisturbed):
    assert "stoneless" not in undisturbed
    for stem in TOPICS:
        neighbours = [word for word, _ in undisturbed.most_similar(stem + ENDINGS[-1], topn=3)]
        assert all(word.startswith(stem) for word in neighbours), neighbours


def test_following__its_rows_are_what_the_network_makes_of_the_words(undisturbed):
    opened = Vectors.open(undisturbed.url)
    made = opened.subwords.vectors(opened.vocabulary.words)
    np.testing.assert_allclose(made, opened.vectors, rtol=1e-4, atol=1e-5)


def test_following__learns(undisturbed):
    losses = [entry["loss"] / entry["pairs"] for entry in undisturbed.metadata["metrics"]["history"]]
    assert losses[-1] < 0.9 * losses[0]


class SmallBlocks(WorkerPlugin):
    """The blocks of the fixture `small`, which workers do not know of, also of workers that are started again."""

    def setup(self, worker):
        subwords.BLOCK_WORDS = 4


def on_a_cluster_of(n_workers, text, work, resources=RESOURCES, during=None):
    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        client.register_plugin(SmallBlocks())
        listener = (lambda progress: during(client, progress)) if during else (lambda progress: None)
        return train(text, work=work, params=PARAMS, resources=resources, client=client, listener=listener)


@pytest.mark.slow
def test_following__gives_the_same_bits_on_any_number_of_workers(text, undisturbed, tmp_path):
    vectors = on_a_cluster_of(3, text, tmp_path)
    same(vectors, undisturbed)
    rates = [worker["words_per_second"] for worker in vectors.metadata["metrics"]["workers"]]
    assert len(rates) == 3
    assert min(rates) > 0


@pytest.mark.slow
def test_following__gives_the_same_bits_when_all_workers_are_killed(text, undisturbed, tmp_path):
    killed = []

    def kill(client, progress):
        if progress.loss is not None and progress.done > 0.6 * progress.total and not killed:
            killed.extend(client.run(os.getpid).values())
            for pid in killed:
                os.kill(pid, signal.SIGKILL)

    resources = RESOURCES.replace(checkpoint_seconds=1000)
    same(on_a_cluster_of(2, text, tmp_path, resources, kill), undisturbed)
    assert len(killed) == 2


class Stop(Exception):
    pass


@pytest.mark.slow
def test_following__goes_on_from_its_last_checkpoint(client, text, undisturbed, tmp_path):
    """With the moments of network and output rows; and the losses kept are those of an unbroken run."""
    resources = RESOURCES.replace(checkpoint_seconds=0, word_losses=True)
    options = {"params": PARAMS, "resources": resources, "client": client}

    def stop(progress):
        if progress.loss is not None and progress.done > 0.6 * progress.total:
            raise Stop

    with pytest.raises(Stop):
        train(text, work=tmp_path, **options, listener=stop)
    seen = []
    vectors = train(
        text, work=tmp_path, **options, listener=lambda p: seen.append(p.done) if p.loss is not None else None
    )
    same(vectors, undisturbed)
    assert 0 < len(seen) < 0.5 * len(ColumnRounds(PARAMS)), "rounds before the checkpoint are not done again"
    whole = train(text, work=tmp_path / "whole", **options)
    ends, losses = read_losses(Store(vectors.url))
    assert ends == [*range(8, 81, 8)]
    assert losses.shape == (len(ends), len(vectors))
    assert losses[0].max() == pytest.approx(6 * np.log(2), rel=1e-5), "output rows begin as zeros"
    assert losses[-1].mean() < losses[0].mean()
    np.testing.assert_array_equal(losses, read_losses(Store(whole.url))[1])


def test_following__needs_pytorch(client, text, tmp_path, monkeypatch):
    """What workers lack is told with its remedy, before text is read."""
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"torch is not installed.*daskw2v\[torch\]"):
        train(text, work=tmp_path, params=PARAMS, resources=RESOURCES, client=client)
    assert not (tmp_path / "shards").exists()


def test_train_model__needs_pytorch(client, text, tmp_path, monkeypatch):
    """Of text that is read already, before anything is sampled."""
    work = Store(str(tmp_path))
    corpus = build_corpus(text, work, PARAMS, RESOURCES, client)
    vocabulary = build_vocabulary(corpus, work, PARAMS, RESOURCES, client)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"torch is not installed.*daskw2v\[torch\]"):
        train_model(corpus, vocabulary, work, PARAMS, RESOURCES, client)
    assert not (tmp_path / "matrices").exists()


def test_following__needs_a_pytorch_that_finds_the_gpu(torch, client, text, tmp_path, monkeypatch):
    monkeypatch.setitem(DEVICES, "cuda", replace(DEVICES["cuda"], check=None))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(MissingExtraError, match=r"PyTorch .* finds no cuda device on .*or train with device='cpu'"):
        train(text, work=tmp_path, params=PARAMS, resources=RESOURCES.replace(device="cuda"), client=client)
    assert not (tmp_path / "shards").exists()


@pytest.mark.parametrize("cuts", [[0, 256, 3073], [0, 1536, 3073], [0, 1024, 2048, 3073]])
def test_compose__gives_the_same_bits_however_words_are_shared_out(torch, client, tmp_path, monkeypatch, cuts):
    """Of parts whose last product would have one row, or many."""
    monkeypatch.setattr(subwords, "BLOCK_WORDS", 256)
    words = [f"w{i:x}{'y' * (i % 9)}" for i in range(3073)]
    (tmp_path / "text.txt").write_text(" ".join(words))
    params, work = settle_params(PARAMS.replace(vector_size=50)), Store(str(tmp_path / "work"))
    corpus = build_corpus(tmp_path / "text.txt", work, params, RESOURCES, client)
    vocabulary = build_vocabulary(corpus, work, params, RESOURCES, client)
    run = Run(work, corpus.name, vocabulary, params, "cpu")
    parts = [
        ColumnsContext(run, work, tuple(WordRange(a, b) for a, b in pairwise(bounds))) for bounds in ([0, 3073], cuts)
    ]
    weights = open_network(run, TableOrigin()).weights
    whole, cut = (np.concatenate([make_rows(p, k, weights) for k in range(len(p.words))]) for p in parts)
    np.testing.assert_array_equal(whole, cut)


@pytest.mark.parametrize(("n_words", "sizes"), [(4, [1]), (12, [3]), (13, [2, 2]), (100, [3, 3, 3, 3, 3, 3, 3, 2, 2])])
def test_minibatches__have_every_word_once(n_words, sizes):
    batches = minibatches(n_words)
    assert [len(blocks) for blocks in batches] == sizes
    words = sorted(word for blocks in batches for block in blocks for word in range(*block))
    assert words == [*range(n_words)]
