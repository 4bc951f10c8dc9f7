"""Clusters that cannot do the work say so, and nothing waits for ever."""

import gc
import itertools
import os
import platform
import re
import resource
import subprocess
import sys
import time
import weakref
from types import SimpleNamespace

import dask
import numpy as np
import pytest
from distributed import Client, KilledWorker, LocalCluster, Scheduler, SpecCluster, Worker, wait
from distributed.comm import CommClosedError

from daskw2v import train
from daskw2v.cluster import waiting
from daskw2v.cluster.connecting import check_cluster, connect
from daskw2v.cluster.waiting import await_worker, gather, wait_for_first, waits_for_workers
from daskw2v.cluster.workers import Trainers, ask_workers, find_trainers, usable_memory
from daskw2v.config.resources import Resources
from daskw2v.errors import ClusterError, InputError, TrainingError
from daskw2v.progress import silent
from daskw2v.store.storage import Store

SHORT = Resources(worker_timeout=0.3)


def echo(x):
    return x


def refuse():
    raise InputError("bad", "text")


def sleep():
    time.sleep(0.5)


class Round:
    """What a caller holds while it waits."""


def fail(error):
    raise error


def test_gather__returns_results_in_order(client):
    futures = [client.submit(echo, i, key=f"echo-{i}") for i in range(20)]
    assert gather(client, futures, "echo") == list(range(20))
    assert gather(client, [], "nothing") == []


def test_gather__raises_what_a_task_raised(client):
    with pytest.raises(InputError, match="bad text"):
        gather(client, [client.submit(refuse, pure=False)], "refuse")


@pytest.mark.parametrize(
    ("workers", "bytes_held"),
    [
        ([(1, 8), (1, 8)], 16),
        ([(1, 2), (1, 8)], 4),  # the second has no more than the first, though it could
        ([(1, 2), (3, 8)], 8),
        ([(2, None), (1, 5)], 15),
        ([(2, None)], float("inf")),
        ([], float("inf")),
    ],
)
def test_usable_memory__is_bound_by_the_worker_that_is_full_first(workers, bytes_held):
    infos = {str(i): {"nthreads": threads, "memory_limit": limit} for i, (threads, limit) in enumerate(workers)}
    fake = SimpleNamespace(
        scheduler_info=lambda n_workers: {"workers": infos},
    )
    assert usable_memory(fake) == bytes_held


def test_gather__names_what_kills_workers(client):
    task = client.submit(fail, KilledWorker("train-x", SimpleNamespace(address="tcp://gone"), 4))
    with pytest.raises(TrainingError, match=r"round 3 died with its worker.*memory_limit"):
        gather(client, [task], "round 3")


def test_gather__says_that_the_scheduler_is_gone(client):
    with pytest.raises(ClusterError, match=r"scheduler is gone.*same command"):
        gather(client, [client.submit(fail, CommClosedError("closed"))], "round 3")


def test_gather__does_not_wait_for_results_that_nobody_can_make_again():
    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as dying,
        Client(dying) as client,
        waits_for_workers(SHORT, silent),
    ):
        done = client.submit(echo, 1)
        assert gather(client, [done], "echo") == [1]
        dying.sync(dying.workers[0].close)
        with pytest.raises(ClusterError, match="no worker for"):
            waiting._fetch(client, [done], None)


def test_wait_for_first__gives_up_on_a_cluster_without_workers():
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty,
        Client(empty) as client,
        waits_for_workers(SHORT, silent),
        pytest.raises(ClusterError, match=r"no worker for 0.3 s.*Start workers"),
    ):
        wait_for_first(client, [client.submit(echo, 1)])


def test_gather__keeps_nothing_of_a_caller_that_waited_long(client):
    def play():
        held = Round()
        with waits_for_workers(Resources(worker_timeout=0.1), silent):  # it looks for workers as often
            gather(client, [client.submit(sleep, pure=False)], "sleep")
        return weakref.ref(held)

    gc.disable()  # nothing else would free what is held by a cycle
    try:
        assert play()() is None
    finally:
        gc.enable()


@pytest.fixture
def mixed():
    """A client of a worker that declares two resources, and one that declares none, both inside this process."""
    options = [{"nthreads": 2, "resources": {"GPU": 1, "FAST": 3}}, {"nthreads": 1}]
    workers = {n: {"cls": Worker, "options": {"protocol": "inproc", **chosen}} for n, chosen in enumerate(options)}
    scheduler = {"cls": Scheduler, "options": {"protocol": "inproc", "dashboard_address": ":0"}}
    with SpecCluster(workers, scheduler) as cluster, Client(cluster) as client:
        yield client


def test_find_trainers__are_those_that_declare_a_resource_or_all(mixed):
    (having,) = (address for address, threads in mixed.nthreads().items() if threads == 2)
    assert find_trainers(mixed, "GPU") == Trainers({having: 2}, {"GPU": 1})
    assert find_trainers(mixed, "TPU") == find_trainers(mixed, None) == Trainers(mixed.nthreads())


def test_find_trainers__counts_the_devices_of_a_worker(mixed):
    (having,) = (address for address, threads in mixed.nthreads().items() if threads == 2)
    trainers = find_trainers(mixed, "FAST")
    assert trainers == Trainers({having: 2}, {"FAST": 1}, devices={having: 3})
    assert trainers.list_workers() == [(having, 1)] * 3, "each has a thread at least"


def test_homes__share_the_threads_of_a_worker_of_several_devices():
    trainers = Trainers({"b": 9, "a": 4}, {"GPU": 1}, devices={"b": 2})
    assert trainers.list_workers() == [("a", 4), ("b", 4), ("b", 4)]
    assert trainers.slots() == ["a"] * 4 + ["b"] * 8


def test_wait_for_first__gives_up_on_tasks_whose_resource_no_worker_has(mixed):
    task = mixed.submit(echo, 1, resources={"TPU": 2})
    with (
        waits_for_workers(SHORT, silent),
        pytest.raises(ClusterError, match=r"no worker with --resources TPU=2 for 0.3 s.*Start workers with --res"),
    ):
        gather(mixed, [task], "echo", {"TPU": 2})
    assert wait_for_first(mixed, [mixed.submit(echo, 2, resources={"GPU": 1})], {"GPU": 1})


def test_check_cluster__needs_a_worker(tmp_path):
    heard = []
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty,
        Client(empty) as client,
        waits_for_workers(Resources(worker_timeout=0.2), heard.append),
        pytest.raises(ClusterError, match=r"has had no worker for 0.2 s, since 2.* \(worker_timeout=0.2\).*Start work"),
    ):
        check_cluster(client, Store(str(tmp_path)))
    (report,) = heard
    assert (report.stage, report.total) == ("cluster", 0)
    assert re.match(r"waiting for a worker since 2\d{3}-.*, for 0.2 s at most", report.message)


def test_check_cluster__refuses_workers_of_other_versions(client, tmp_path, monkeypatch):
    get_versions = client.get_versions

    def older(**kwargs):
        versions = get_versions(**kwargs)
        for worker in versions["workers"].values():
            worker["packages"] = {**worker["packages"], "zarr": "2.0"}
        return versions

    monkeypatch.setattr(client, "get_versions", older)
    with pytest.raises(ClusterError, match=r"other versions.*zarr 2.0 against"):
        check_cluster(client, Store(str(tmp_path)))


def test_check_cluster__leaves_nothing_behind(client, tmp_path):
    check_cluster(client, Store(str(tmp_path)))
    assert list(tmp_path.iterdir()) == []


def test_connect__says_that_no_scheduler_answers():
    with (
        pytest.raises(ClusterError, match=r"No scheduler answers at scheduler='tcp://127\.0\.0\.1:9'"),
        connect(Resources(scheduler="tcp://127.0.0.1:9"), timeout=0.2),
    ):
        pass


def _new_pages():
    """Return the pages that the system gives for an array like one that was freed just before."""
    faults = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        np.ones(3 << 20, np.uint8)
        faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
    return faults[-1]


@pytest.mark.slow
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the allocator of glibc is configured")
def test_connect__lets_workers_of_a_local_cluster_keep_freed_memory(monkeypatch):
    for name in ("MALLOC_TRIM_THRESHOLD_", "MALLOC_MMAP_THRESHOLD_"):  # earlier clusters of this process set them
        monkeypatch.delenv(name, raising=False)
    with connect(Resources(threads=1, processes=True)) as client:
        assert client.submit(_new_pages).result() < 100  # of 768


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are counted in other ways elsewhere")
def test_peak_memory__is_of_this_process_alone():
    """Not of the one that began it, whose memory a fork has for a moment."""
    held = np.ones(40 << 20)
    line = [sys.executable, "-c", "from daskw2v.cluster.workers import peak_memory; print(peak_memory())"]
    peak = int(subprocess.run(line, check=True, capture_output=True, text=True).stdout)
    assert 1 << 20 < peak < held.nbytes


def test_connect__keeps_a_worker_that_takes_long_to_start_again():
    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "1ms"}),
        connect(Resources(threads=1, processes=True)) as client,
    ):
        (dying,) = client.scheduler_info()["workers"]
        assert ask_workers(client, die, dying) == {}
        await_worker(client)
        assert ask_workers(client, die, dying) == dict.fromkeys(client.scheduler_info()["workers"], True)


def die(dying, dask_worker):
    if dask_worker.address == dying:
        os._exit(1)
    return dask_worker.nanny is not None


def test_ask_workers__leaves_out_those_that_leave():
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        dying, living = client.scheduler_info()["workers"]
        assert ask_workers(client, die, dying) == {living: True}
        with pytest.raises(ZeroDivisionError):
            ask_workers(client, divmod, 1, 0)


def test_ask_workers__says_that_the_scheduler_is_gone():
    cluster = LocalCluster(n_workers=1, processes=False, dashboard_address=":0")
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}), Client(cluster.scheduler_address) as client:
        cluster.close()
        with pytest.raises(ClusterError, match="The scheduler is gone"):
            ask_workers(client, echo, 1)
        with pytest.raises(ClusterError, match="The scheduler is gone"):
            usable_memory(client)


def test_train__says_that_the_scheduler_is_gone_when_its_client_has_given_up(tmp_path):
    (tmp_path / "text.txt").write_text("a b c d\n" * 9)
    with LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster:
        client = Client(cluster)

        def give_up(progress):
            if progress.stage == "encode":
                client.close()

        with pytest.raises(ClusterError, match="The scheduler is gone"):
            train(tmp_path / "text.txt", work=tmp_path / "work", client=client, listener=give_up)


def test_ask_workers__names_a_worker_that_is_registered_and_cannot_be_reached(mixed):
    deaf = next(iter(mixed.nthreads()))

    async def refuse(address, connect=mixed.cluster.scheduler.rpc.connect, **options):
        if address == deaf:
            raise OSError(f"Timed out trying to connect to {address} after 30 s")
        return await connect(address, **options)

    mixed.cluster.scheduler.rpc.connect = refuse
    with pytest.raises(ClusterError, match=rf"cannot reach the worker {deaf}, which is registered.*firewall"):
        ask_workers(mixed, echo, 1)

    def fail_there():
        raise FileNotFoundError(2, "no such file", "text.txt")

    with pytest.raises(FileNotFoundError, match=r"text\.txt"):
        ask_workers(mixed, fail_there, workers=[address for address in mixed.nthreads() if address != deaf])


def unreachable(address):
    raise OSError(f"Timed out trying to connect to {address} after 30 s")


def test_gather__names_a_worker_whose_results_cannot_be_fetched(mixed):
    deaf, rpc = next(iter(mixed.nthreads())), mixed.cluster.scheduler.rpc
    held = mixed.submit(echo, 1, workers=[deaf], pure=False)
    wait(held)

    async def refuse(address, connect=rpc.connect, **options):
        return unreachable(address) if address == deaf else await connect(address, **options)

    rpc.remove(deaf)
    rpc.connect = refuse
    with (
        waits_for_workers(Resources(worker_timeout=0.2), lambda progress: None),
        pytest.raises(ClusterError, match=rf"cannot reach the worker {deaf}, which is registered.*firewall"),
    ):
        gather(mixed, [held], "A task")


def test_gather__explains_a_task_that_could_not_connect(mixed):
    failed = mixed.submit(unreachable, "tcp://10.0.0.9:1234", pure=False)
    with pytest.raises(ClusterError, match=r"^A task found a part .* out of reach \(Timed out .*10\.0\.0\.9"):
        gather(mixed, [failed], "A task")


def test_await_worker__waits_for_one_that_declares_a_resource(mixed, monkeypatch):
    heard = []
    with (
        waits_for_workers(Resources(worker_timeout=0.2), heard.append),
        pytest.raises(ClusterError, match=r"no worker with --resources TPU=1 for 0.2 s.*\. No TPU there\. Start"),
    ):
        await_worker(mixed, {"TPU": 1}, "No TPU there.")
    await_worker(mixed, {"GPU": 1})
    assert len(heard) == 1


def test_wait_for_first__tells_every_five_minutes_since_when_it_waits(monkeypatch):
    heard, seconds = [], itertools.count(step=100.0)
    monkeypatch.setattr(waiting, "time", SimpleNamespace(monotonic=lambda: next(seconds)))
    with (
        LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as empty,
        Client(empty) as client,
        waits_for_workers(Resources(worker_timeout=1000), heard.append),
    ):
        sync = client.sync

        def briefly(*args, **options):
            return sync(*args, **options | {name: 0.01 for name in ("timeout",) if name in options})

        monkeypatch.setattr(client, "sync", briefly)
        with pytest.raises(ClusterError, match="no worker for 1000 s"):
            wait_for_first(client, [client.submit(echo, 1)])
    assert len(heard) == 4, "after 0, 300, 600 and 900 seconds"
    assert len({report.message for report in heard}) == 1, "it is the same wait"


def test_waits_for_workers__holds_for_the_block():
    with waits_for_workers(Resources(worker_timeout=7), print):
        assert waiting._terms.get() == (7.0, print)
    assert waiting._terms.get().timeout is None


@pytest.mark.parametrize(("adaptive", "timeout"), [(False, waiting._FIXED), (True, waiting._GROWING)])
def test_worker_timeout__is_an_hour_where_workers_may_come(adaptive, timeout):
    with LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster:
        if adaptive:
            cluster.adapt(minimum=0, maximum=1)
        with Client(cluster) as client:
            assert waiting._Wait(client, None)._timeout == timeout
            if adaptive:
                cluster._adaptive.stop()
                assert waiting._Wait(client, None)._timeout == waiting._FIXED
        with Client(cluster.scheduler_address) as client:
            assert waiting._Wait(client, None)._timeout == waiting._GROWING
    assert (waiting._FIXED, waiting._GROWING) == (300, 3600)


@pytest.mark.slow
def test_script__that_starts_processes_where_they_run_it_again_is_refused_in_a_sentence(tmp_path):
    (tmp_path / "a.txt").write_text("one two\n")
    script = tmp_path / "script.py"
    script.write_text(
        f"import daskw2v\ndaskw2v.train({str(tmp_path / 'a.txt')!r}, work={str(tmp_path / 'work')!r}, "
        "resources=daskw2v.Resources(processes=True), listener=None)\n"
    )
    ended = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=100)
    assert ended.returncode == 1
    assert ended.stderr.count("Traceback") == 1
    assert ended.stderr.rstrip().endswith('put what the script does below `if __name__ == "__main__":`.')
