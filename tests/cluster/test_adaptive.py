"""Clusters that grow and shrink under a run: it asks for workers by giving them work, waits, and has the same bits."""

import threading
from dataclasses import replace
from itertools import count, cycle
from types import SimpleNamespace

import numpy as np
import pytest
from distributed import Client, LocalCluster, Worker

from daskw2v import Params, Resources, train
from daskw2v.cluster import tasks
from daskw2v.cluster.tasks import run_tasks
from daskw2v.cluster.waiting import waits_for_workers
from daskw2v.cluster.workers import Trainers, find_trainers
from daskw2v.errors import ClusterError, MissingExtraError
from daskw2v.training.devices import DEVICES, find_device_trainers
from daskw2v.training.estimates.check import find_worker_kinds
from daskw2v.training.sizes import Workers

COMMON = Params(vector_size=12, min_count=1, epochs=1, sample=1e-2)
PARAMS = {
    "averaging": COMMON.replace(n_replicas=3, rounds_per_epoch=2, frequent_rows=20),
    "rotation": COMMON.replace(strategy="rotation", n_partitions=4, passes_per_epoch=1),
    "columns": COMMON.replace(objective="context_matrix", strategy="columns", context_size=20),
}
RESOURCES = Resources(threads=1, block_size="32 KiB", worker_timeout=60)


def local(n_workers, **options):
    return LocalCluster(n_workers=n_workers, threads_per_worker=1, processes=False, dashboard_address=":0", **options)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    drawn = np.random.default_rng(1).geometric(0.01, (500, 12))
    file = tmp_path_factory.mktemp("text") / "text.txt"
    file.write_text("".join(" ".join(map(str, line)) + "\n" for line in drawn))
    return file


@pytest.fixture(scope="module")
def expected(text, tmp_path_factory):
    """What two workers make that are there from the beginning, by strategy."""
    with local(2) as cluster, Client(cluster) as client:
        return {
            name: train(
                text, work=tmp_path_factory.mktemp(name), params=params, resources=RESOURCES, client=client
            ).vectors[:]
            for name, params in PARAMS.items()
        }


@pytest.mark.slow
@pytest.mark.parametrize("strategy", PARAMS)
def test_train__starts_with_no_worker_of_an_adaptive_cluster(text, expected, tmp_path, strategy):
    """It grows for work alone, and shrinks between stages, to nothing if it gets so far."""
    heard = []
    with local(0) as cluster, Client(cluster) as client:
        cluster.adapt(minimum=0, maximum=2, interval="20ms", target_duration="1ms", wait_count=1)
        trained = train(
            text,
            work=tmp_path,
            params=PARAMS[strategy],
            resources=RESOURCES,
            client=client,
            listener=lambda progress: heard.append(progress.message),
        )
    first = next(k for k, message in enumerate(heard) if message.startswith("waiting for a worker since"))
    assert heard[first + 1] == "there is a worker"
    np.testing.assert_array_equal(trained.vectors[:], expected[strategy])


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("strategy", PARAMS)
def test_train__goes_on_as_workers_come_late_and_are_retired(text, expected, tmp_path, strategy):
    """What retired ones held moves to others."""
    sizes, params = cycle([2, 1]), PARAMS[strategy]
    with local(0) as cluster, Client(cluster) as client:

        def listen(progress):
            if progress.message.startswith("waiting for a worker"):
                threading.Thread(target=cluster.scale, args=[1]).start()
            if progress.stage in ("encode", "vocabulary", "train"):
                cluster.scale(next(sizes))

        trained = train(text, work=tmp_path, params=params, resources=RESOURCES, client=client, listener=listen)
    np.testing.assert_array_equal(trained.vectors[:], expected[strategy])


def test_train__waits_no_longer_than_it_may(text, tmp_path):
    with (
        local(0) as cluster,
        Client(cluster) as client,
        pytest.raises(ClusterError, match=r"no worker for 1 s, since .* \(worker_timeout=1\)\. Start workers, raise"),
    ):
        train(text, work=tmp_path, resources=Resources(worker_timeout=1), client=client)


@pytest.mark.parametrize(("maximum", "coming"), [(None, 0), (2, 0), (5, 3)])
def test_find_trainers__counts_those_that_an_adaptive_cluster_may_start(maximum, coming):
    with local(2) as cluster, Client(cluster) as client:
        cluster.adapt(minimum=2, maximum=maximum)
        trainers = find_trainers(client, None)
        assert trainers == Trainers(client.nthreads(), None, coming)
        assert trainers.list_workers() == sorted(client.nthreads().items()) + [("", 1)] * coming
        (kind,) = find_worker_kinds(client, "cpu")
        assert isinstance(kind, Workers)
        assert kind.n == 2 + coming, "a model that all of them hold is not refused for those that are there"


def add(a, b):
    return a + b


def test_run_tasks__gives_a_cluster_that_has_grown_more_to_do(monkeypatch):
    """Else an adaptive one would never see more work than it was given at the start, and not grow."""
    max_futures, threads, seconds = 0, iter([1, 1]), count(step=10.0)  # a task ends every ten seconds
    monkeypatch.setattr(tasks, "total_threads", lambda client: next(threads, 9))
    monkeypatch.setattr(tasks, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    with local(1) as cluster, Client(cluster) as client:
        submit = client.submit

        def counted(*args, **options):
            nonlocal max_futures
            max_futures = max(max_futures, len(client.futures))
            return submit(*args, **options)

        monkeypatch.setattr(client, "submit", counted)
        done = dict(run_tasks(client, "add", add, {k: (k, 1) for k in range(99)}))
    assert done == {k: k + 1 for k in range(99)}
    assert max_futures > 20, "more than the 16 of a small cluster"


def has_no_gpu():
    raise ClusterError("There is no GPU.", "Start others.")


def lacks_package():
    raise MissingExtraError("numba_cuda is not installed.", "Install it.")


@pytest.fixture
def gpu_late():
    """A client of a worker without a GPU, on a cluster that may grow; and what adds one with a GPU."""
    with local(1) as cluster, Client(cluster.scheduler_address) as client:

        def add_gpu():
            cluster.new_spec = {"cls": Worker, "options": {**cluster.new_spec["options"], "resources": {"GPU": 1}}}
            cluster.scale(2)

        yield client, add_gpu


def test_trainers_of__waits_for_a_gpu_where_workers_may_come(gpu_late, monkeypatch):
    client, add_gpu = gpu_late
    monkeypatch.setitem(DEVICES, "cuda", replace(DEVICES["cuda"], check=has_no_gpu))
    heard = []

    def listen(progress):
        heard.append(progress.message)
        threading.Thread(target=add_gpu).start()

    with waits_for_workers(Resources(worker_timeout=60), listen):
        trainers = find_device_trainers(client, "cuda")
    assert trainers.task_resources == {"GPU": 1}
    assert len(trainers.threads) == 1
    assert heard[0].startswith("waiting for a worker with --resources GPU=1 since")
    assert heard[0].endswith("There is no GPU.")


def test_trainers_of__does_not_wait_for_what_will_not_come(gpu_late, monkeypatch):
    client, _ = gpu_late
    monkeypatch.setitem(DEVICES, "cuda", replace(DEVICES["cuda"], check=has_no_gpu))
    with (
        waits_for_workers(Resources(worker_timeout=0.2), print),
        pytest.raises(ClusterError, match=r"no worker with --resources GPU=1 for 0.2 s.* There is no GPU\. Start"),
    ):
        find_device_trainers(client, "cuda")
    monkeypatch.setitem(DEVICES, "cuda", replace(DEVICES["cuda"], check=lacks_package))
    with pytest.raises(MissingExtraError):
        find_device_trainers(client, "cuda")
