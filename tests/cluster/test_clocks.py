"""Clocks that are set back: streams of Dask send what they have all the same."""

import asyncio
import gc
import time
from weakref import ref

import distributed.batched
import pytest
from distributed import Client, LocalCluster

from daskw2v import Resources
from daskw2v.cluster import check_cluster, connect
from daskw2v.store.storage import Store

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
    with LocalCluster(n_workers=1, processes=False, dashboard_address=None) as cluster, Client(cluster) as client:
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
def test_check_cluster__lets_streams_go_on_when_the_clock_is_set_back(client, clock, tmp_path, find, watched):
    if watched:
        check_cluster(client, Store(str(tmp_path)))
        check_cluster(client, Store(str(tmp_path)))  # another run with the same client
    find(client).interval = 1.0  # seconds for which it collects messages
    assert client.submit(abs, -1).result(30) == 1
    clock.offset = -HOUR
    future = client.submit(abs, -2)
    if watched:
        assert future.result(30) == 2
    else:  # what Dask does by itself
        with pytest.raises(TimeoutError):
            future.result(3)


def test_watch__ends_with_its_client(tmp_path):
    with connect(Resources(threads=1)) as client:
        check_cluster(client, Store(str(tmp_path)))
        known, loop = ref(client), client.loop.asyncio_loop
        assert any("_watch" in str(task) for task in asyncio.all_tasks(loop))
    del client
    gc.collect()
    assert known() is None
