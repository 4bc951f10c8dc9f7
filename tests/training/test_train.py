"""The whole way on small text: what changes the vectors, what does not, and what survives."""

import gzip
import os
import shutil
import signal
import subprocess
import sys
import textwrap

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster

from daskw2v import Params, Resources, Vectors, train
from daskw2v.cluster import connecting
from daskw2v.errors import ParameterError, TrainingError, VocabularyError
from daskw2v.models.versions.resolving import resolve
from daskw2v.models.versions.versions import latest_version
from daskw2v.objectives.registry import OBJECTIVES, settle_params, start_alpha
from daskw2v.stages import Store, build_corpus, build_vocabulary, train_model
from daskw2v.training.strategies import STRATEGIES

READERS = [name for name, objective in OBJECTIVES.items() if objective.trainers]  # what learns from text as it is read
# By negatives and by paths, skip-gram and CBOW: one of each is enough where the kernels themselves are not asked
SOME_READERS = [name if name in ("sgns", "cbow_hs") else pytest.param(name, marks=pytest.mark.slow) for name in READERS]

SMALL = Params(vector_size=12, min_count=1, epochs=2, n_replicas=3, rounds_per_epoch=4, sample=1e-2)
ONE_THREAD = Resources(threads=1, block_size="32 KiB")


def topic_sentences(n=1500, topics=6, words=15, length=12, seed=0):
    """Sentences whose words are all of one topic: what belongs together is known."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        topic = rng.integers(topics)
        yield [f"topic{topic}_{w}" for w in np.minimum(rng.zipf(1.3, length), words)]


@pytest.fixture(scope="module")
def sentences():
    return list(topic_sentences())


@pytest.fixture(scope="module")
def text(tmp_path_factory, sentences):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text("".join(" ".join(s) + "\n" for s in sentences))
    return path


@pytest.fixture(scope="module")
def undisturbed(client, text, tmp_path_factory):
    return train(text, work=tmp_path_factory.mktemp("work"), params=SMALL, resources=ONE_THREAD, client=client)


def same(a, b):
    assert a.vocabulary.words == b.vocabulary.words
    np.testing.assert_array_equal(a.vocabulary.counts, b.vocabulary.counts)
    np.testing.assert_array_equal(a.vectors, b.vectors)


MEETING = {  # how two workers meet, by strategy
    "averaging": Params(strategy="averaging", n_replicas=2, rounds_per_epoch=2),
    "rotation": Params(strategy="rotation", n_partitions=2, passes_per_epoch=1),
    "columns": Params(objective="context_matrix", strategy="columns", context_size=50),
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_train__neighbours_fall_in_the_topic(client, text, tmp_path, strategy):
    params = MEETING[strategy].replace(vector_size=12, min_count=1, sample=1e-2, epochs=10, alpha=0.1)
    vectors = train(text, work=tmp_path, params=params, resources=ONE_THREAD, client=client)
    for word in ("topic0_1", "topic3_2", "topic5_3"):
        neighbours = [other for other, _ in vectors.most_similar(word, topn=5)]
        assert all(other.split("_")[0] == word.split("_")[0] for other in neighbours), neighbours


def test_train__publishes_what_it_did(undisturbed, sentences):
    metadata = undisturbed.metadata
    words = sum(map(len, sentences))
    assert metadata["params"] == settle_params(SMALL.replace(strategy="averaging")).as_dict()
    assert metadata["corpus"]["tokens"] == metadata["vocabulary"]["total"] == words
    assert metadata["metrics"]["words"] == 2 * words
    assert metadata["metrics"]["pairs"] == sum(e["pairs"] for e in metadata["metrics"]["history"]) > words
    assert 0 < metadata["metrics"]["loss"] < 6 * np.log(2) + 1
    assert len(undisturbed) == len({word for s in sentences for word in s})
    assert undisturbed.vector_size == 12


def test_train__again_returns_at_once(client, text, undisturbed):
    stages = []
    work = undisturbed.url.rsplit("/models/", 1)[0]
    again = train(
        text,
        work=work,
        params=SMALL,
        resources=ONE_THREAD,
        client=client,
        listener=lambda p: stages.append((p.stage, p.done)),
    )
    same(again, undisturbed)
    assert "train" not in dict(stages)


@pytest.fixture
def no_cluster(monkeypatch):
    """Let nobody be connected to a cluster."""
    monkeypatch.setattr(connecting, "connect", None)


def test_train__again_starts_no_cluster(text, undisturbed, no_cluster):
    work = undisturbed.url.rsplit("/models/", 1)[0]
    same(train(text, work=work, params=SMALL, resources=ONE_THREAD), undisturbed)
    with pytest.raises(TypeError):  # text and words are there, but no such model
        train(text, work=work, params=SMALL.replace(seed=7), resources=ONE_THREAD)


@pytest.mark.slow
def test_train__again_starts_no_cluster_with_phrases_and_what_was_chosen(client, text, tmp_path, no_cluster):
    options = {"work": tmp_path, "params": SMALL.replace(phrases=2, strategy="auto", epochs=1, n_replicas=1)}
    first = train(text, **options, client=client)
    assert train(text, **options).url == first.url


@pytest.mark.parametrize("processes", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_train__same_vectors_in_this_process_and_in_another(text, undisturbed, tmp_path, processes):
    same(train(text, work=tmp_path, params=SMALL, resources=ONE_THREAD.replace(processes=processes)), undisturbed)


SLOW_FORMS = [pytest.param(form, marks=pytest.mark.slow) for form in ("gz", "jsonl", "arrow", "orc")]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("form", ["ten files", "parquet", "csv", "one line a block", *SLOW_FORMS])
def test_train__same_vectors_whatever_holds_the_text(client, text, sentences, undisturbed, tmp_path, form):
    resources, params = ONE_THREAD, SMALL
    lines = [" ".join(s) + "\n" for s in sentences]
    inputs = tmp_path / "*.txt"
    if form == "ten files":
        for i in range(10):
            part = lines[i * len(lines) // 10 : (i + 1) * len(lines) // 10]
            (tmp_path / f"part-{i}.txt").write_text("".join(part))
    elif form == "gz":
        inputs = tmp_path / "text.gz"
        inputs.write_bytes(gzip.compress("".join(lines).encode()))
    elif form == "parquet":
        inputs = tmp_path / "text.parquet"
        pq.write_table(pa.table({"text": sentences}), inputs, row_group_size=400)
    elif form == "arrow":
        inputs = tmp_path / "text.feather"
        pa.feather.write_feather(pa.table({"text": sentences}), inputs, chunksize=400)
    elif form == "orc":
        inputs = tmp_path / "text.orc"
        pa.orc.write_table(pa.table({"text": sentences}), inputs)
    elif form == "csv":
        inputs, params = tmp_path / "text.csv", SMALL.replace(delimiter=";")
        inputs.write_text('id;"text"\n' + "".join(f'{i};"{line[:-1]}"\n' for i, line in enumerate(lines)))
    elif form == "jsonl":
        inputs = tmp_path / "text.jsonl"
        inputs.write_text("".join(f'{{"text": "{line[:-1]}"}}\n' for line in lines))
    else:
        inputs, resources = text, ONE_THREAD.replace(block_size="16 KiB")
    vectors = train(inputs, work=tmp_path / "work", params=params, resources=resources, client=client)
    same(vectors, undisturbed)


@pytest.mark.slow
def test_train__same_vectors_when_a_worker_is_killed(text, undisturbed, tmp_path):
    killed = []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):

        def kill(progress):
            if progress.stage == "train" and progress.loss is not None and len(killed) < 2:
                pids = client.run(os.getpid)
                killed.append(pids.popitem()[1])
                os.kill(killed[-1], signal.SIGKILL)

        resources = ONE_THREAD.replace(checkpoint_seconds=1000)
        vectors = train(text, work=tmp_path, params=SMALL, resources=resources, client=client, listener=kill)
    assert len(killed) == 2
    same(vectors, undisturbed)


KILLED_RUN = """
    import os, signal, sys
    from daskw2v import Params, Resources, train
    from daskw2v.store.storage import Store

    inputs, work, moment = sys.argv[1:]

    def die():
        os.kill(os.getpid(), signal.SIGKILL)

    def listener(progress):
        started = progress.stage == moment and progress.done
        if started and progress.done >= progress.total / 2:
            die()

    finish_manifest = Store.finish_manifest

    def dying(store, values, name="manifest.json", **options):
        if moment == "checkpoint" and "checkpoints" in store.url and "/000003" in store.url:
            die()  # everything is written but the manifest
        finish_manifest(store, values, name, **options)

    if __name__ == "__main__":
        Store.finish_manifest = dying
        if moment == "publish":
            sys.modules["daskw2v.training.version"].write_vocabulary = lambda *_: die()  # before the manifest
        params = Params(
            vector_size=12, min_count=1, epochs=2, n_replicas=3, rounds_per_epoch=4, sample=1e-2
        )
        resources = Resources(threads=1, block_size="32 KiB", checkpoint_seconds=0)
        train(inputs, work=work, params=params, resources=resources, listener=listener)
"""


@pytest.mark.parametrize(
    "moment",
    ["checkpoint", *(pytest.param(moment, marks=pytest.mark.slow) for moment in ("encode", "train", "publish"))],
)
def test_train__killed_and_run_again_gives_the_same_bits(client, text, undisturbed, tmp_path, moment):
    script, work = tmp_path / "run.py", tmp_path / "work"
    script.write_text(textwrap.dedent(KILLED_RUN))
    done = subprocess.run([sys.executable, script, text, work, moment], capture_output=True, text=True, timeout=200)
    assert done.returncode == -signal.SIGKILL, done.stderr
    rounds = []
    vectors = train(
        text,
        work=work,
        params=SMALL,
        resources=ONE_THREAD,
        client=client,
        listener=lambda p: rounds.append(p.done) if p.loss is not None else None,
    )
    same(vectors, undisturbed)
    first = undisturbed.metadata["metrics"]["history"][0]["progress"]
    if moment == "encode":
        assert rounds[0] <= first
    else:
        assert rounds[0] > first, "what was checkpointed is not done again"
    assert not (Store(str(work)) / "runs" / resolve(str(work)).name.split("-")[1] / "checkpoints").exists()


def test_stages__one_by_one_equal_train(client, text, undisturbed, tmp_path):
    work = Store(str(tmp_path))
    corpus = build_corpus(text, work, SMALL, ONE_THREAD, client)
    vocabulary = build_vocabulary(corpus, work, SMALL, ONE_THREAD, client)
    same(train_model(corpus, vocabulary, work, SMALL, ONE_THREAD, client), undisturbed)


def test_train__killed_before_the_pointer_moved_is_mended_by_the_next_run(client, text, undisturbed, tmp_path):
    options = {"work": tmp_path, "params": SMALL, "resources": ONE_THREAD, "client": client}
    first = train(text, **options)
    (tmp_path / "models" / "LATEST").unlink()
    shutil.rmtree(tmp_path / "models" / "state")
    left = tmp_path / "runs" / first.url.rsplit("-", 1)[1] / "checkpoints"
    left.mkdir(parents=True)
    train(text, **options)
    same(Vectors.open(tmp_path), undisturbed)
    assert not left.exists()


@pytest.mark.slow
def test_train__returns_and_points_to_an_experiment_done_before(client, text, tmp_path):
    def run(**changes):
        return train(text, work=tmp_path, params=SMALL.replace(**changes), resources=ONE_THREAD, client=client)

    first, other, again = run(), run(seed=2), run()
    assert first.url == again.url != other.url
    assert Vectors.open(tmp_path).url == first.url


@pytest.mark.slow
def test_train__two_corpora_in_one_work_directory_do_not_mix(client, text, undisturbed, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("".join(" ".join(s) + "\n" for s in topic_sentences(seed=5)))
    started = []

    def build_another(progress):
        if progress.stage == "vocabulary" and not started:
            started.append(True)
            build_corpus(other, Store(str(tmp_path / "work")), SMALL, ONE_THREAD, client)

    vectors = train(
        text,
        work=tmp_path / "work",
        params=SMALL,
        resources=ONE_THREAD,
        client=client,
        listener=build_another,
    )
    assert started
    same(vectors, undisturbed)


@pytest.mark.slow
def test_train__rare_words_keep_their_windows_wherever_work_is_cut(client, tmp_path):
    """Known words far apart in one long sentence: pairs do not depend on rounds."""
    path, words = tmp_path / "sparse.txt", tmp_path / "words.txt"
    path.write_text(" ".join("rare" if i % 700 == 0 else f"filler{i % 50}" for i in range(40_000)))
    words.write_text("rare\n")
    params = SMALL.replace(vocabulary=str(words), n_replicas=1, sample=0, epochs=1)
    pairs = set()
    for rounds in (1, 20):
        vectors = train(
            path,
            work=tmp_path / "work",
            params=params.replace(rounds_per_epoch=rounds),
            resources=ONE_THREAD,
            client=client,
        )
        pairs.add(vectors.metadata["metrics"]["pairs"])
    assert len(pairs) == 1


@pytest.mark.parametrize("objective", SOME_READERS)
def test_train__every_objective_gives_the_same_bits_again_and_loads(client, text, tmp_path, objective):
    """Two replicas, so that tables of both lengths are cut, merged, written and read."""
    params = SMALL.replace(objective=objective, n_replicas=2)
    options = {"params": params, "resources": ONE_THREAD, "client": client}
    first, again = (train(text, work=tmp_path / name, **options) for name in ("first", "again"))
    same(first, again)
    same(first, Vectors.open(tmp_path / "first"))
    assert first.vectors.shape == (90, 12)
    assert np.isfinite(first.vectors).all()
    assert first.metadata["params"]["alpha"] == start_alpha(Params(objective=objective))
    losses = [entry["loss"] / entry["pairs"] for entry in first.metadata["metrics"]["history"]]
    assert losses[-1] < losses[0]


def test_train__min_alpha_above_the_objectives_own_rate_is_refused_before_any_text_is_read(client, tmp_path):
    with pytest.raises(ParameterError, match=r"min_alpha=0\.04 is above alpha=0\.035"):
        train(tmp_path / "missing.txt", work=tmp_path / "work", params=Params(min_alpha=0.04), client=client)
    assert not (tmp_path / "work").exists()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("objective", SOME_READERS)
def test_train__an_objectives_own_rate_is_that_rate(client, text, tmp_path, objective):
    """Whether it is given or left open, the experiment is one."""
    params = SMALL.replace(objective=objective, n_replicas=1, epochs=1)
    urls = [
        train(text, work=tmp_path, params=p, resources=ONE_THREAD, client=client).url
        for p in (params, settle_params(params))
    ]
    assert urls[0] == urls[1]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("objective", SOME_READERS)
def test_train__several_threads_learn_the_topics(client, text, tmp_path, objective):
    params = SMALL.replace(objective=objective, n_replicas=1, epochs=8, alpha=0.1, rounds_per_epoch=2)
    resources = Resources(threads=2, hot_rows=20, block_size="32 KiB")
    vectors = train(text, work=tmp_path, params=params, resources=resources, client=client)
    for word in ("topic0_1", "topic3_2", "topic5_3"):
        neighbours = [other for other, _ in vectors.most_similar(word, topn=4)]
        assert all(other.split("_")[0] == word.split("_")[0] for other in neighbours), neighbours


def test_train__stops_when_it_diverges(client, text, tmp_path):
    params = SMALL.replace(alpha=10.0, n_replicas=2)
    with pytest.raises(TrainingError, match=r"holds NaN or infinity.*lower alpha"):
        train(text, work=tmp_path, params=params, resources=ONE_THREAD, client=client)
    assert latest_version(Store(str(tmp_path)) / "models") is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"objective": "glove"}, r"objective='glove' does not exist.*sgns"),
        ({"strategy": "gossip"}, r"strategy='gossip' does not exist.*averaging"),
        ({"merge": "sum"}, r"merge='sum' does not exist.*sequential"),
        ({"cbow_mean": False}, r"cbow_mean=False changes nothing for objective='sgns'.*cbow_ns, cbow_hs"),
    ],
)
def test_train__refuses_names_before_reading(client, tmp_path, change, message):
    with pytest.raises(ParameterError, match=message):
        train("nowhere.txt", work=tmp_path, params=SMALL.replace(**change), client=client)


def test_train__refuses_an_unknown_device(client, tmp_path):
    with pytest.raises(ParameterError, match=r"device='tpu' does not exist\. Choose one of: cpu"):
        train("nowhere.txt", work=tmp_path, resources=Resources(device="tpu"), client=client)


def test_train__says_when_no_word_is_left(client, text, tmp_path):
    with pytest.raises(VocabularyError, match="min_count"):
        train(text, work=tmp_path, params=SMALL.replace(min_count=10**6), client=client)


def test_train__works_in_any_fsspec_store(client, text, undisturbed):
    vectors = train(text, work="memory://w2v-train", params=SMALL, resources=ONE_THREAD, client=client)
    same(vectors, undisturbed)
    same(Vectors.open("memory://w2v-train"), undisturbed)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("objective", SOME_READERS)
def test_train__one_word_is_refused_and_nothing_is_published(client, tmp_path, objective):
    path = tmp_path / "one.txt"
    path.write_text("word word\nword\n")
    params = SMALL.replace(objective=objective)
    with pytest.raises(TrainingError, match="No pair of words was left to train, of a vocabulary of 1 word"):
        train(path, work=tmp_path / "w", params=params, resources=ONE_THREAD, client=client)
    assert not list((tmp_path / "w").glob("models/*"))
