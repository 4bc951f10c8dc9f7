"""Clocks that are set back: streams of Dask send what they have all the same."""

import asyncio
import gc
import time
from contextlib import nullcontext
from weakref import ref

import distributed.batched
import pytest
from distributed import Client, LocalCluster

from daskw2v import Resources
from daskw2v.cluster.clocks import watching_clocks
from daskw2v.cluster.connecting import connect

HOUR = 3600.0


class Clock:
    """`time.time`, which may be set."""

    def __init__(self):
        self.offset, self._true = 0.0, time.time

    def __call__(self):
        return self._true() + self.offset


@pytest.fixture
def clock(monkeypatch):
    """The clock of Dask's streams and Tornado's event loop; that of the scheduler is theirs, too."""
    clock = Clock()
    monkeypatch.setattr(time, "time", clock)
    monkeypatch.setattr(distributed.batched, "time", clock)
    return clock


@pytest.fixture
def client():
    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address=":0") as cluster,
        Client(cluster, set_as_default=False) as client,  # tests close it before its time
    ):
        yield client


def of_client(client):
    return client.scheduler_comm


def of_worker(client):
    return next(iter(client.cluster.workers.values())).batched_stream


def of_scheduler_to_worker(client):
    return next(iter(client.cluster.scheduler.stream_comms.values()))


def of_scheduler_to_client(client):
    return client.cluster.scheduler.client_comms[client.id]


@pytest.mark.parametrize("find", [of_client, of_worker, of_scheduler_to_worker, of_scheduler_to_client])
@pytest.mark.parametrize("watched", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_watching_clocks__lets_streams_go_on_when_the_clock_is_set_back(client, clock, find, watched):
    with watching_clocks(client) if watched else nullcontext(), watching_clocks(client) if watched else nullcontext():
        find(client).interval = 1.0  # seconds for which it collects messages
        assert client.submit(abs, -1).result(30) == 1
        clock.offset = -HOUR
        future = client.submit(abs, -2)
        if watched:
            assert future.result(30) == 2
        else:  # what Dask does by itself
            with pytest.raises(TimeoutError):
                future.result(3)


def plugins(client):
    """Return the names of the plugins that new workers would get, and those of the present one."""
    (worker,) = client.cluster.workers.values()
    return {*client.cluster.scheduler.worker_plugins}, {*worker.plugins}


def test_watching_clocks__leaves_nothing_on_the_cluster(client):
    before = plugins(client)
    with watching_clocks(client):
        assert all(len(found - known) == 1 for found, known in zip(plugins(client), before, strict=True))
    assert plugins(client) == before


def test_watching_clocks__does_not_wait_for_a_scheduler_that_is_gone(client):
    began = time.monotonic()
    with watching_clocks(client):
        client.close()
    assert time.monotonic() - began < 20


def await_watches(loop, n):
    """Wait until so many tasks watch clocks."""
    deadline = time.monotonic() + 10
    while (found := sum("clocks.py" in str(task) for task in asyncio.all_tasks(loop))) != n:
        assert time.monotonic() < deadline, f"{found} watch, not {n}"
        time.sleep(0.05)


def test_watch__ends_with_its_block():
    with connect(Resources(threads=1)) as client:
        known, loop = ref(client), client.loop.asyncio_loop
        with watching_clocks(client):
            await_watches(loop, 2)  # of client and scheduler, and of the worker
        await_watches(loop, 0)
    del client
    gc.collect()
    assert known() is None
