"""Rotation: the same bits on any cluster, whatever dies; and only what a run needs lies and travels."""

import os
import signal

import numpy as np
import pytest
from distributed import Client, LocalCluster

from daskw2v import Resources, Vectors, train
from daskw2v.errors import ParameterError, TrainingError
from daskw2v.models.stored.tables import open_table
from daskw2v.models.versions.versions import latest_version
from daskw2v.stages import Store
from daskw2v.training.devices import base
from daskw2v.training.devices.cpu import CpuPartitionTrainer
from daskw2v.training.rotation import bucket_task, pass_tasks
from daskw2v.training.rotation import work as rotation_work
from tests.support.rotation import PARAMS, RESOURCES, VARIANTS, Stop, same, write_topics

FITS_MODEL = rotation_work.fits_model


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return write_topics(tmp_path_factory.mktemp("text") / "text.txt")


@pytest.fixture(scope="module")
def undisturbed(client, text, tmp_path_factory):
    """The model of each rule for negatives, and of each other objective, trained when it is first asked for."""
    work = tmp_path_factory.mktemp("work")

    class Models(dict):
        def __missing__(self, name):
            params = PARAMS.replace(**VARIANTS[name])
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(rotation_work, "fits_model", FITS_MODEL)  # whoever asks may have left no room
                self[name] = train(text, work=work, params=params, resources=RESOURCES, client=client)
            return self[name]

    return Models()


@pytest.mark.slow
@pytest.mark.parametrize(("workers", "threads"), [(1, 1), (2, 1), (3, 1), (4, 1), (1, 7)])
def test_rotation__gives_the_same_bits_on_any_number_of_workers(text, undisturbed, tmp_path, workers, threads):
    """The two groups of four share a thread, have one each, one and two, two each, or three and four of one worker."""
    with (
        LocalCluster(n_workers=workers, threads_per_worker=threads, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        names = VARIANTS if workers in (1, 2, 4) and threads == 1 else ["tns", "sg_hs"]
        for name in names:
            params, expected = PARAMS.replace(**VARIANTS[name]), undisturbed[name]
            same(train(text, work=tmp_path, params=params, resources=RESOURCES, client=client), expected)


def test_rotation__gives_kernels_arrays_of_one_kind_in_all_passes(client, text, tmp_path, monkeypatch):
    """Each other kind, be it read-only in place of writeable, is compiled anew: that took five seconds."""
    seen, trained = set(), CpuPartitionTrainer.train

    def train_bucket(trainer, input, output, bucket, alpha, words, key):
        seen.add(tuple((a.dtype, a.flags.writeable, a.flags.c_contiguous) for a in (*bucket, words)))
        return trained(trainer, input, output, bucket, alpha, words, key)

    monkeypatch.setattr(CpuPartitionTrainer, "train", train_bucket)
    train(text, work=tmp_path, params=PARAMS, resources=RESOURCES, client=client)
    assert len(seen) == 1


BFLOAT16 = PARAMS.replace(sent_dtype="bfloat16")


@pytest.fixture(scope="module")
def rounded(client, text, tmp_path_factory):
    """The model whose output partitions are rounded, trained out of core."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rotation_work, "fits_model", lambda *_: False)
        return train(text, work=tmp_path_factory.mktemp("work"), params=BFLOAT16, resources=RESOURCES, client=client)


@pytest.mark.slow
def test_rotation__rounds_output_partitions_to_bfloat16_in_memory_as_in_files(
    client, text, rounded, tmp_path, monkeypatch
):
    kept = []
    for module in (bucket_task, base):
        monkeypatch.setattr(module, "share", lambda rows: kept.append(rows.dtype) or rows)
    found = train(text, work=tmp_path, params=BFLOAT16, resources=RESOURCES, client=client)
    same(found, rounded)
    assert {*kept} == {np.dtype(np.float32), np.dtype(np.uint16), np.dtype(np.uint64)}, "input, output, negatives"
    assert kept.count(np.uint16) == kept.count(np.float32)
    output = open_table(Store(found.url), "output")[:]
    assert output.any()
    assert not (output.view(np.uint32) & 0xFFFF).any(), "all of the model's, as the last step ended with rounding"


@pytest.mark.slow
@pytest.mark.parametrize("workers", [2, 4])
def test_rotation__of_bfloat16_gives_the_same_bits_on_any_number_of_workers(text, rounded, tmp_path, workers):
    """Two groups of four: on four workers each bucket is a task, and the last of four rounds."""
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        resources = RESOURCES.replace(checkpoint_seconds=0)
        same(train(text, work=tmp_path, params=BFLOAT16, resources=resources, client=client), rounded)


@pytest.mark.slow
@pytest.mark.parametrize("checkpoint_seconds", [0, 1000])
def test_rotation__gives_the_same_bits_when_workers_are_killed_in_mid_pass(
    text, undisturbed, tmp_path, checkpoint_seconds
):
    """And when another one joins: two die in different passes, a third comes in between."""
    killed = []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):

        def kill(progress):
            if progress.stage != "train" or progress.loss is None:
                return
            moment = {0.3: 0, 0.7: 1}.get(next((m for m in (0.7, 0.3) if progress.done > m * progress.total), 0))
            if moment is not None and moment == len(killed):
                killed.append(client.run(os.getpid).popitem()[1])
                os.kill(killed[-1], signal.SIGKILL)
                if moment == 0:
                    cluster.scale(3)

        resources = RESOURCES.replace(checkpoint_seconds=checkpoint_seconds)
        vectors = train(text, work=tmp_path, params=PARAMS, resources=resources, client=client, listener=kill)
    assert len(killed) == 2
    same(vectors, undisturbed["tns"])


@pytest.mark.slow
def test_rotation__gives_the_same_bits_when_all_workers_are_killed_at_once(text, undisturbed, tmp_path):
    """Then there is a moment without any worker, and what became ready in it must find the next one."""
    killed = []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):

        def kill(progress):
            if progress.loss is not None and progress.done > 0.6 * progress.total and not killed:
                killed.extend(client.run(os.getpid).values())
                for pid in killed:
                    os.kill(pid, signal.SIGKILL)

        resources = RESOURCES.replace(checkpoint_seconds=1000)
        vectors = train(text, work=tmp_path, params=PARAMS, resources=resources, client=client, listener=kill)
    assert len(killed) == 2
    same(vectors, undisturbed["tns"])


@pytest.fixture
def no_room(monkeypatch):
    """A cluster whose memory holds no model."""
    monkeypatch.setattr(rotation_work, "fits_model", lambda *_: False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["tns", "sg_hs", "copies", *(pytest.param(rule, marks=pytest.mark.slow) for rule in ("sns", "bns"))]
)
def test_rotation__of_a_model_beyond_the_clusters_memory_gives_the_same_bits(
    client, text, undisturbed, tmp_path, no_room, name
):
    messages, files = [], []

    def listen(progress):
        messages.append(progress.message)
        if progress.loss is not None:
            files.append([path.name.rsplit("-", 1)[0] for path in tmp_path.glob("runs/*/parts/*")])

    params = PARAMS.replace(**VARIANTS[name])
    vectors = train(text, work=tmp_path, params=params, resources=RESOURCES, client=client, listener=listen)
    same(vectors, undisturbed[name])
    assert "the cluster's memory does not hold the model: its partitions go through the work directory" in messages
    every = sorted(f"{table}-{k}" for table in ("input", "output") for k in range(8))
    assert len(files) == 2 * 2 * 2
    assert all(sorted(names) == every for names in files), "after each turn, one file of each partition"
    assert not [*tmp_path.glob("runs/*")]


@pytest.mark.slow
def test_rotation__of_a_model_beyond_the_clusters_memory_survives_a_killed_worker(text, undisturbed, tmp_path, no_room):
    killed = []
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):

        def kill(progress):
            if progress.loss is not None and len(killed) < 2:
                killed.append(client.run(os.getpid).popitem()[1])
                os.kill(killed[-1], signal.SIGKILL)

        vectors = train(text, work=tmp_path, params=PARAMS, resources=RESOURCES, client=client, listener=kill)
    assert len(killed) == 2
    same(vectors, undisturbed["tns"])


@pytest.mark.slow
def test_rotation__of_a_model_beyond_the_clusters_memory_goes_on_from_its_checkpoint(
    client, text, undisturbed, tmp_path, no_room
):
    resources = RESOURCES.replace(checkpoint_seconds=0)
    options = {"work": tmp_path, "params": PARAMS, "resources": resources, "client": client}

    def stop(progress):
        if progress.loss is not None and progress.done > 0.6 * progress.total:
            raise Stop

    with pytest.raises(Stop):
        train(text, **options, listener=stop)
    (parts,) = tmp_path.glob("runs/*/parts")
    (parts / "left-over").write_text("a task that was cut short")
    done, left = [], []

    def watch(progress):
        if progress.loss is not None:
            done.append(progress.done)
            left.extend(path for path in parts.glob("left-over"))

    vectors = train(text, **options, listener=watch)
    assert len(done) == 2 * 2, "two passes of two steps"
    assert not left
    same(vectors, undisturbed["tns"])


@pytest.fixture
def no_room_for_pairs(monkeypatch):
    """A cluster whose memory holds the model, and no pairs."""
    monkeypatch.setattr(rotation_work, "fits_pairs", lambda *_: False)


@pytest.mark.parametrize("name", ["tns", *(pytest.param(name, marks=pytest.mark.slow) for name in ("bns", "sg_hs"))])
def test_rotation__of_pairs_that_lie_in_files_gives_the_same_bits(
    client, text, undisturbed, tmp_path, no_room_for_pairs, name
):
    files = []

    def listen(progress):
        if progress.loss is not None:
            files.extend(tmp_path.glob("runs/*/pairs/*/*/*/pairs"))

    params = PARAMS.replace(**VARIANTS[name])
    vectors = train(text, work=tmp_path, params=params, resources=RESOURCES, client=client, listener=listen)
    same(vectors, undisturbed[name])
    assert files


def test_rotation__of_pairs_that_workers_hold_writes_none(client, text, undisturbed, tmp_path):
    written = []

    def listen(progress):
        written.extend(tmp_path.glob("runs/*/pairs"))

    vectors = train(text, work=tmp_path, params=PARAMS, resources=RESOURCES, client=client, listener=listen)
    same(vectors, undisturbed["tns"])
    assert not written
    words = [entry["words"] for entry in vectors.metadata["metrics"]["history"]]
    assert sum(words) == PARAMS.epochs * vectors.metadata["corpus"]["tokens"]
    assert all(entry["deal_seconds"] > 0 for entry in vectors.metadata["metrics"]["history"])


def test_rotation__goes_on_from_its_last_checkpoint(client, text, undisturbed, tmp_path, no_room_for_pairs):
    """Passes done are not done again, dealt pairs are not dealt again, and of the old checkpoints one is kept."""
    resources = RESOURCES.replace(checkpoint_seconds=0)

    def stop(progress):
        if progress.loss is not None and progress.done > 0.6 * progress.total:  # in the third pass of four
            raise Stop

    options = {"work": tmp_path, "params": PARAMS, "resources": resources, "client": client}
    with pytest.raises(Stop):
        train(text, **options, listener=stop)
    (run,) = (tmp_path / "runs").iterdir()
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == ["000001", "000002"]
    dealt = [path for path in (run / "pairs").iterdir() if path.name.startswith("1-0-")]
    assert dealt == list((run / "pairs").iterdir()), "pairs of passes before the checkpoint are gone"
    manifest, seen = (dealt[0] / "manifest.json").stat().st_mtime_ns, []

    def watch(progress):
        if progress.loss is not None:
            seen.append((progress.done, (dealt[0] / "manifest.json").stat().st_mtime_ns))

    same(train(text, **options, listener=lambda p: len(seen) < 1 and watch(p)), undisturbed["tns"])
    assert seen == [(pytest.approx(seen[0][0]), manifest)]
    assert seen[0][0] * 2 > undisturbed["tns"].metadata["corpus"]["tokens"] * PARAMS.epochs
    assert not run.exists()


def watch_fetches(client, keys):
    """Note the keys of all results that a client asks workers for."""
    fetch = client._gather_remote

    async def watch(direct, local_worker):
        keys.extend(client._gather_keys)
        return await fetch(direct, local_worker)

    return watch


def test_rotation__never_brings_rows_to_the_client(client, text, tmp_path, monkeypatch):
    seen = []
    gather = pass_tasks.gather

    def watch(*args):
        seen.extend(results := gather(*args))
        return results

    monkeypatch.setattr(pass_tasks, "gather", watch)
    monkeypatch.setattr(client, "_gather_remote", watch_fetches(client, fetched := []))
    train(text, work=tmp_path, params=PARAMS, resources=RESOURCES, client=client)
    assert {type(value).__name__ for of_task in seen for value in of_task} == {"TaskTotals"}
    assert {key.split("-")[0] for key in fetched} >= {"totals", "weights"}
    assert not any(key.startswith(("buckets", "input", "output", "deal", "pairs")) for key in fetched), "nor otherwise"


MANY = [pytest.param(*case, marks=pytest.mark.slow) for case in ((7, None, 90), (20, None, 20))]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("n", "n_groups", "n_words"), [(1, None, 90), (6, 1, 90), *MANY])
def test_rotation__of_any_number_of_partitions_stores_a_model_in_order(client, text, tmp_path, n, n_groups, n_words):
    """One partition, a number that divides nothing, all in one group, and as many as words."""
    params = PARAMS.replace(
        n_partitions=n, n_groups=n_groups, max_final_vocab=n_words, epochs=16, passes_per_epoch=1, alpha=0.05
    )
    vectors = train(text, work=tmp_path, params=params, resources=RESOURCES, client=client)
    shapes = {"input": [n_words, 12], "output": [n_words, 12]}
    assert {name: [*open_table(Store(vectors.url), name).shape] for name in shapes} == shapes
    assert vectors.metadata["tables"] == shapes
    for word in ("topic0_1", "topic3_1", "topic5_2"):
        (other, _), *_ = vectors.most_similar(word)
        assert other.split("_")[0] == word.split("_")[0]


def test_rotation__stops_when_it_diverges(client, text, tmp_path):
    with pytest.raises(TrainingError, match=r"A partition in pass \d holds NaN.*lower alpha"):
        train(text, work=tmp_path, params=PARAMS.replace(alpha=10.0), resources=RESOURCES, client=client)
    assert latest_version(Store(str(tmp_path)) / "models") is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"objective": "cbow_ns"}, r"objective='cbow_ns' has no kernel for buckets for device='cpu'.*sgns on cpu"),
        (
            {"objective": "sg_hs", "negative_rule": "sns"},
            r"negative_rule='sns' changes nothing for objective='sg_hs'; it is for sgns",
        ),
        ({"n_replicas": 2}, r"n_replicas=2 changes nothing for strategy='rotation'; it is for averaging"),
        (
            {"strategy": "averaging", "passes_per_epoch": 2},
            r"passes_per_epoch=2 changes nothing for strategy='averaging'; it is for rotation",
        ),
        ({"negative_sharing": "pair"}, r"negative_sharing='pair' has no kernel for strategy='rotation'"),
        ({"n_groups": 3}, "n_groups=3 does not divide n_partitions=8"),
        ({"negative_rule": "dns"}, r"negative_rule='dns' is not one of tns, sns, bns"),
    ],
)
def test_rotation__refuses_what_it_does_not_read(client, tmp_path, change, message):
    with pytest.raises(ParameterError, match=message):
        train(tmp_path / "none.txt", work=tmp_path, params=PARAMS.replace(**change), client=client)


def test_rotation__refuses_hot_rows_which_no_thread_of_it_has(client, tmp_path):
    with pytest.raises(ParameterError, match=r"hot_rows=7 changes nothing for strategy='rotation'"):
        train(tmp_path / "none.txt", work=tmp_path, params=PARAMS, resources=Resources(hot_rows=7), client=client)


def test_rotation__refuses_more_partitions_than_words(client, text, tmp_path):
    with pytest.raises(ParameterError, match="91 partitions of 90 words"):
        train(text, work=tmp_path, params=PARAMS.replace(n_partitions=91), resources=RESOURCES, client=client)


def test_rotation__says_where_threads_have_no_work(client, text, tmp_path):
    messages = []
    params = PARAMS.replace(n_partitions=1, epochs=1)
    train(
        text,
        work=tmp_path,
        params=params,
        resources=RESOURCES,
        client=client,
        listener=lambda p: messages.append(p.message),
    )
    assert "1 of 2 threads have work: n_partitions=1 are trained at a time" in messages


def test_rotation__its_models_open_from_the_store_too(undisturbed):
    stored = Vectors.open(undisturbed["tns"].url, in_memory=False)
    same(stored, undisturbed["tns"])
    assert stored.most_similar("topic0_1") == undisturbed["tns"].most_similar("topic0_1")
