import math
import sys
from dataclasses import fields, replace
from types import SimpleNamespace

import numpy as np
import pytest
from distributed import Client, LocalCluster
from hypothesis import example, given
from hypothesis import strategies as st

from daskw2v import train
from daskw2v.cluster.workers import usage
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.files import Source
from daskw2v.corpus.sources import find_sources
from daskw2v.errors import ClusterError
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.objectives.subwords.training import training_bytes
from daskw2v.shards.encode import build_corpus
from daskw2v.store.storage import Store
from daskw2v.training.averaging.round_schedule import max_steps
from daskw2v.training.estimates import check
from daskw2v.training.estimates.check import check_encoding, check_training, find_worker_kinds, local_workers
from daskw2v.training.estimates.memory import estimate
from daskw2v.training.sizes import Text, Workers, guess_text, known_text
from daskw2v.vocabulary.count import build_vocabulary
from tests.support.refusals import refusal

GB = 1 << 30
RUNS = {
    "averaging": Params(strategy="averaging"),
    "replicas": Params(strategy="averaging", n_replicas=4),
    "tree": Params(strategy="averaging", objective="cbow_hs"),
    "rotation": Params(strategy="rotation"),
    "columns": Params(objective="context_matrix", strategy="columns"),
    "adam": Params(objective="context_matrix", strategy="columns", optimizer="adam"),
    "subwords": Params(objective="subwords", strategy="columns"),
}
TEXT = Text(
    words=10**9,
    types=4 * 10**6,
    subsampled=5 * 10**8,
    vocabulary=10**6,
    blocks=90,
    shards=90,
    shard_words=11 * 10**6,
    shard_types=200_000,
    entries=18 * 10**6,
)
ONE = Workers()
ONE_BUCKET = st.builds(  # with more, each task has less
    Text,
    words=st.integers(10**6, 10**10),
    types=st.integers(1, 10**6),
    subsampled=st.integers(1, 10**10),
    vocabulary=st.integers(1, 10**6),
    blocks=st.integers(1, 1000),
    shards=st.integers(1, 1000),
    shard_words=st.integers(1, 10**8),
    shard_types=st.integers(1, 10**6),
    entries=st.integers(1, 10**6),
)


class Cluster:
    """What a check asks a client: workers of so many threads, with so much memory each."""

    def __init__(self, limit, threads=1, n=1):
        one = {"nthreads": threads, "memory_limit": limit, "resources": {}}
        self._workers = {f"tcp://worker:{i}": one for i in range(n)}
        self.cluster = None

    def scheduler_info(self, n_workers):
        return {"workers": self._workers}

    def nthreads(self):
        return {address: worker["nthreads"] for address, worker in self._workers.items()}


def of(params, text=TEXT, workers=ONE, **resources):
    return estimate(params, Resources(**resources), text, workers)


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("the quick brown fox jumps over the lazy dog\n" * 1000)
    return str(path)


@pytest.mark.parametrize("objective", OBJECTIVES.values(), ids=OBJECTIVES)
def test_prepared_bytes__are_those_of_what_is_prepared(objective):
    """Of counts by Zipf's law."""
    counts = 10**6 // np.arange(1, 20_001)
    prepared = objective.prepare(Params(objective=objective.name), counts)
    arrays = [value for part in prepared for value in (part if isinstance(part, tuple) else [part])]
    size = sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))
    assert size <= sum(objective.prepared_bytes(Params(), len(counts)).values()) < 2 * size


@pytest.mark.parametrize(
    "objective", [one for one in OBJECTIVES.values() if one.with_markets], ids=lambda one: one.name
)
def test_prepared_bytes__are_those_of_markets(objective):
    """Where all words have one."""
    counts, params = 10**6 // np.arange(1, 20_001), Params(objective=objective.name, market_negative=3)
    prepared = objective.with_markets(objective.prepare(params, counts), counts, np.arange(20_000, dtype=np.int32) % 7)
    size = prepared.noise.nbytes + sum(array.nbytes for array in prepared.markets)
    assert size == sum(objective.prepared_bytes(params, len(counts)).values())


def test_estimate__of_negatives_of_markets_has_their_tables():
    plain, near = (of(RUNS["replicas"].replace(market_negative=n))["train"] for n in (0, 3))
    assert near.worker["tables of markets"] == 32 * TEXT.vocabulary
    assert near.bytes >= plain.bytes + 32 * TEXT.vocabulary


@pytest.mark.parametrize("params", RUNS.values(), ids=RUNS)
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_estimate__is_the_sum_of_its_parts(params, device):
    memory = of(params, workers=Workers(2, 3), device=device)
    assert [stage.name for stage in memory.stages] == ["encode", "vocabulary", "train", "publish"]
    for stage in memory.stages:
        assert stage.bytes == sum(stage.worker.values())
        assert stage.gpu_bytes == sum(stage.gpu.values())
        assert all(size > 0 for size in (*stage.worker.values(), *stage.gpu.values()))
    assert memory.bytes == max(stage.bytes for stage in memory.stages)
    assert bool(memory["train"].gpu) == (device == "cuda")
    assert memory["train"].bytes > TEXT.vocabulary * params.vector_size * 4


def test_estimate__counts_a_network_on_a_gpu():
    parts = {name: of(RUNS[name], device="cuda")["train"].gpu for name in ("columns", "subwords")}
    assert parts["subwords"]["network"] > training_bytes(RUNS["subwords"].vector_size, 256)
    assert "network" not in parts["columns"]


@pytest.mark.parametrize("size", [100, 500])
def test_estimate__counts_a_network_on_processors(size):
    """Its gradients and states on one worker, and the passes of each task."""
    params = RUNS["subwords"].replace(vector_size=size)
    stages = {threads: of(params, workers=Workers(2, threads))["train"].worker for threads in (1, 4)}
    assert stages[1]["network"] > 16 * 4 * 24 * 400 * size + training_bytes(size, 256)
    assert stages[4]["network"] - stages[1]["network"] == 3 * training_bytes(size, 256)


@given(ONE_BUCKET, st.sampled_from(fields(Text)), st.floats(1, 100), st.sampled_from([*RUNS.values()]))
def test_estimate__never_falls_as_text_grows(text, field, factor, params):
    bound = {"words": 10**10, "subsampled": 10**10, "shard_words": 10**8, "blocks": 1000, "shards": 1000}.get(
        field.name, 10**6
    )
    larger = replace(text, **{field.name: min(int(getattr(text, field.name) * factor), bound)})
    small, large = of(params, text, Workers(2, 2)), of(params, larger, Workers(2, 2))
    assert [stage.bytes for stage in small.stages] <= [stage.bytes for stage in large.stages]
    assert all(a.bytes <= b.bytes for a, b in zip(small.stages, large.stages, strict=True))


@given(st.sampled_from([*RUNS.values()]), st.integers(1, 40), st.integers(0, 40))
def test_estimate__never_falls_with_longer_vectors(params, width, more):
    """Of whole cache lines: such rows are returned without a copy, and take less than some shorter ones."""
    small, large = (of(params.replace(vector_size=16 * n)) for n in (width, width + more))
    assert small.bytes <= large.bytes


@example(RUNS["rotation"], 47, 1)  # where pieces of text get shorter
@given(st.sampled_from([*RUNS.values()]), st.integers(1, 32), st.integers(0, 32))
def test_estimate__never_falls_with_more_threads(params, threads, more):
    small, large = (of(params, workers=Workers(2, n)) for n in (threads, threads + more))
    assert all(a.bytes <= b.bytes for a, b in zip(small.stages, large.stages, strict=True))


@given(st.data())
def test_estimate__never_falls_with_more_replicas(data):
    n = data.draw(st.integers(1, 128))
    more = data.draw(st.integers(n, 128))
    small, large = (of(Params(strategy="averaging", n_replicas=k), workers=Workers(4, 1)) for k in (n, more))
    assert small["train"].bytes <= large["train"].bytes


def test_estimate__of_one_replica_is_the_model_its_tables_and_one_copied_out():
    parts = of(Params(strategy="averaging", vector_size=100))["train"].worker
    table = 4 * 100 * TEXT.vocabulary
    assert parts["model"] == 2 * table
    assert parts["tables of replicas"] == 2 * table * 112 // 100  # whole cache lines
    assert parts["rows taken out of them"] == table


def test_estimate__counts_replicas_that_stay_on_a_worker_between_steps():
    params = Params(strategy="averaging", vector_size=96, n_replicas=4)  # whole cache lines
    tables = 2 * 4 * 96 * TEXT.vocabulary

    def parts(params):
        workers = (of(params, workers=Workers(n, 1))["train"].worker for n in (1, 2, 4))
        names = "tables of replicas", "changes of replicas", "rows given in a round"
        return [tuple(part.get(name) for name in names) for part in workers]

    steps = max_steps(params, TEXT.words, TEXT.vocabulary)
    assert steps == 16
    given = 2 * 4 * 96 * 16384 * (15 + 3 * 3)  # of the next 49,152 words' rows, 3 times; of more, never
    assert parts(params) == [(n * tables, n * tables // 2, given) for n in (4, 2, 1)]


def test_estimate__follows_rotation_through_the_work_directory():
    params = Params(strategy="rotation", n_partitions=64)
    inside, outside = (of(params, workers=Workers(2, 1, memory)) for memory in (16 * GB, GB))
    assert "model" in inside["train"].worker
    assert "model" not in outside["train"].worker
    assert outside["train"].bytes < inside["train"].bytes
    assert not inside.notes
    assert "work directory" in outside.notes[0]


@pytest.mark.parametrize(
    ("objective", "n", "told"), [("sgns", 64, 0), ("sgns", 65, 1), ("cbow_hs", 1, 0), ("cbow_hs", 2, 1)]
)
def test_estimate__tells_of_more_replicas_than_were_measured_to_keep_quality(objective, n, told):
    notes = of(Params(objective=objective, n_replicas=n)).notes
    assert len(notes) == told
    assert all(f"n_replicas={n}" in note and objective in note for note in notes)


def test_guess_text__has_the_types_of_wikipedia():
    text = guess_text([Source("wiki", 100_000_000, "", "text", None)], Params(), Resources())
    assert text.words == pytest.approx(17_006_678, rel=0.01)
    assert text.types == pytest.approx(242_022, rel=0.02)
    assert text.vocabulary == pytest.approx(242_022 * 0.294, rel=0.05)
    assert text.subsampled == pytest.approx(0.55 * text.words, rel=0.02)
    assert (text.blocks, text.shards) == (2, 2)


def test_guess_text__takes_what_is_known():
    sources = [Source("a", 10**9, "", "text", None), Source("b.gz", 10**9, "", "text", "gzip")]
    text = guess_text(sources, Params(), Resources(), types=5 * 10**6, vocabulary=10**6)
    assert (text.types, text.vocabulary, text.blocks) == (5 * 10**6, 10**6, 16)
    assert text.words == pytest.approx(4e9 / 5.9, rel=0.01)
    assert guess_text(sources, Params(max_final_vocab=1000), Resources()).vocabulary == 1000
    assert guess_text(sources, Params(), Resources(), vocabulary=9 * 10**6).types >= 9 * 10**6
    assert guess_text([], Params(), Resources()).words == 1


def test_known_text__has_the_sizes_of_the_manifests(client, file, tmp_path):
    store, params = Store(str(tmp_path / "work")), Params(min_count=1001, sample=1e-3)
    corpus = build_corpus(file, store, params, Resources(), client)
    text = known_text(corpus, build_vocabulary(corpus, store, params, Resources(), client), params)
    assert text == Text(
        words=9000,
        types=8,
        subsampled=text.subsampled,
        vocabulary=1,
        blocks=1,
        shards=1,
        shard_words=9000,
        shard_types=8,
        entries=8,
    )
    assert text.subsampled == pytest.approx(2000 * (math.sqrt(1e-3) + 1e-3), abs=1)  # "the", by word2vec's rule


def test_check_training__refuses_what_cannot_fit_and_names_what_helps():
    params = Params(strategy="averaging", vector_size=300)
    need = of(params)["train"].bytes
    with pytest.raises(ClusterError) as caught:
        check_training(Cluster(4 * GB, threads=2), params, Resources(), TEXT)
    problem, remedy = caught.value.problem, caught.value.remedy
    assert problem.startswith("Training takes about ")
    assert "tables of replicas 2.26 GiB" in problem
    assert problem.endswith("memory_limit is 4.00 GiB.")
    assert "Give workers a memory_limit of " in remedy
    for change in ("strategy='rotation', which takes", "1 thread a worker", "vector_size=150", "max_final_vocab="):
        assert change in remedy
    kept = int(remedy.split("max_final_vocab=")[1].split(",")[0])
    check_training(Cluster(4 * GB, threads=2), params, Resources(), replace(TEXT, vocabulary=kept))
    check_training(Cluster(need), params, Resources(), TEXT)  # just enough
    with pytest.raises(ClusterError):
        check_training(Cluster(need - 1), params, Resources(), TEXT)


def test_check_training__names_more_partitions_where_it_rotates_already():
    params = Params(strategy="rotation", n_partitions=4, vector_size=300)
    with pytest.raises(ClusterError, match=r"n_partitions=8, which takes [\d.]+ [GM]iB"):
        check_training(Cluster(GB, threads=1), params, Resources(), TEXT)
    check_training(Cluster(GB, threads=1), params.replace(n_partitions=64), Resources(), TEXT)


def test_check_training__offers_no_rotation_where_there_is_none():
    with pytest.raises(ClusterError) as caught:
        check_training(Cluster(GB), Params(strategy="averaging", objective="cbow_hs"), Resources(), TEXT)
    assert "rotation" not in str(caught.value)


@pytest.mark.parametrize("limit", [None, 0, 100 * GB])
def test_checks__refuse_nothing_that_fits(limit, tmp_path):
    for params in RUNS.values():
        assert refusal(check_training, Cluster(limit, threads=4, n=3), params, Resources(), TEXT) is None
    # Files that do not exist: they need not be looked at
    sources, store = [Source("nowhere.txt", 4 * GB, "", "text", None)], Store(str(tmp_path))
    assert refusal(check_encoding, Cluster(limit, threads=4), sources, store, Params(), Resources()) is None


def test_check_encoding__refuses_blocks_that_cannot_fit(tmp_path):
    path, store, resources = tmp_path / "large.txt", Store(str(tmp_path / "work")), Resources(block_size="1 GiB")
    with path.open("wb") as file:
        file.truncate(8 * GB)  # a hole: nothing is read
    with pytest.raises(ClusterError, match=r"Reading the text takes about .*codes .*block_size='256.00 MiB', which"):
        check_encoding(Cluster(1.5 * GB, threads=2), find_sources(path), store, Params(), resources)
    check_encoding(Cluster(1.5 * GB, threads=2), find_sources(path), store, Params(), Resources(block_size="64 MiB"))


def test_check_encoding__lets_small_files_pass_whatever_the_block(file, tmp_path):
    store, resources = Store(str(tmp_path / "work")), Resources(block_size="1 GiB")
    assert refusal(check_encoding, Cluster(GB, threads=2), find_sources(file), store, Params(), resources) is None


def test_check_encoding__asks_nothing_of_text_that_is_read_already(client, file, tmp_path):
    store, tiny = Store(str(tmp_path / "work")), Cluster(1000)
    with pytest.raises(ClusterError, match="Reading the text"):
        check_encoding(tiny, find_sources(file), store, Params(), Resources())
    build_corpus(file, store, Params(), Resources(), client)
    check_encoding(tiny, find_sources(file), store, Params(), Resources())


def test_train__refuses_before_it_reads(file, tmp_path):
    with (
        LocalCluster(n_workers=1, processes=False, memory_limit="200 MB", dashboard_address=":0") as cluster,
        Client(cluster) as client,
        pytest.raises(ClusterError, match=r"Reading the text takes .* memory_limit is 190.73 MiB"),
    ):
        train(file, work=tmp_path / "work", client=client)
    assert not (tmp_path / "work" / "shards").exists()


def test_find_worker_kinds__distinguishes_kinds():
    small, large = {"nthreads": 1, "memory_limit": 2 * GB}, {"nthreads": 4, "memory_limit": None}
    infos = {str(n): {**info, "resources": {}} for n, info in enumerate([small, large, small])}
    fake = SimpleNamespace(
        scheduler_info=lambda n_workers: {"workers": infos},
        cluster=None,
    )
    memory = 6 * 2 * GB
    assert find_worker_kinds(fake, "cpu") == [Workers(3, 1, memory, limit=2 * GB), Workers(3, 4, memory)]


def test_find_worker_kinds__counts_again_if_all_workers_left_meanwhile():
    def info(address):
        return {"workers": {address: {"nthreads": 2, "memory_limit": GB, "resources": {}}}}

    first = iter([info("old"), info("old")])  # waited for, and counted: then another has its place
    fake = SimpleNamespace(scheduler_info=lambda n_workers: next(first, info("new")), cluster=None)
    assert find_worker_kinds(fake, "cpu") == [Workers(1, 2, GB, limit=GB)]


def test_workers_of__counts_the_gpus_of_each(monkeypatch):
    """Of each kind, the least limit and the least memory that is free on a GPU."""
    monkeypatch.setattr(check, "ask_workers", lambda *_, **__: {"0": 7.0, "1": 5.0, "3": 6.0})
    infos = {
        str(n): {"nthreads": 8, "memory_limit": GB, "resources": {"GPU": float(gpus)} if gpus else {}}
        for n, gpus in enumerate((4, 1, 0, 4))
    }
    fake = SimpleNamespace(scheduler_info=lambda n_workers: {"workers": infos}, cluster=None)
    assert find_worker_kinds(fake, "cuda") == [
        Workers(3, 8, 4 * GB, 4, limit=GB, device_limit=6.0),
        Workers(3, 8, 4 * GB, limit=GB, device_limit=5.0),
    ]
    assert find_worker_kinds(fake, "cpu") == [Workers(4, 8, 4 * GB, limit=GB)]


def test_local_workers__are_those_that_dask_would_start():
    resources = Resources(workers=2, threads=3, memory_limit="1 GiB")
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=3, memory_limit="1 GiB", processes=False, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        assert [local_workers(resources)] == find_worker_kinds(client, "cpu")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are counted in other ways elsewhere")
def test_estimate__is_near_the_peak_of_a_worker(tmp_path):
    """Of 570 MB: within 40 %, since kernels, 90 MB, may be compiled or in the cache; tables are 230 MB of it."""
    n_words = 50_000
    params = Params(strategy="averaging", min_count=1, vector_size=200, epochs=1, rounds_per_epoch=2)
    text = tmp_path / "text.txt"
    text.write_text("\n".join(" ".join(f"w{i}" for i in range(a, a + 50)) for a in range(0, n_words, 50)) + "\n")
    with (
        LocalCluster(n_workers=1, threads_per_worker=1, memory_limit=0, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        train(str(text), work=tmp_path / "work", params=params, client=client)
        (peak,) = (of_worker.peak_memory for of_worker in usage(client).values())
    guessed = guess_text(find_sources(str(text)), params, Resources(), types=n_words, vocabulary=n_words)
    assert 0.8 < of(params, guessed).bytes / peak < 1.4


def test_local_workers__have_the_memory_of_other_machines_where_they_are_on_such():
    resources = Resources(workers=3, threads=2, memory_limit="900 TB")
    assert local_workers(resources, machines=True) == Workers(3, 2, 2700e12, limit=900e12)
    assert local_workers(resources).limit < 900e12
