"""The default local cluster is one worker in this process; processes are for what needs them."""

import asyncio
import logging
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import dask
import psutil
import pytest
from distributed import Client, utils

from daskw2v import Resources
from daskw2v.cluster.connecting import connect
from daskw2v.cluster.local import _needs_processes
from daskw2v.errors import ParameterError

ALONE = Resources(threads=2)


def pid_of_worker():
    with connect(ALONE) as client:
        return client.submit(os.getpid).result()


def test_connect__starts_no_process_for_one_worker():
    before = psutil.Process().children(recursive=True)
    with connect(ALONE) as client:
        assert client.submit(os.getpid).result() == os.getpid()
        assert [worker["nthreads"] for worker in client.scheduler_info()["workers"].values()] == [2]
        assert client.dashboard_link is None
        assert psutil.Process().children(recursive=True) == before


def test_connect__works_in_other_threads_and_beside_a_running_event_loop():
    async def in_a_notebook():
        return pid_of_worker()

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(pid_of_worker).result() == os.getpid()
    assert asyncio.run(in_a_notebook()) == os.getpid()


def test_connect__starts_a_process_for_one_worker_if_asked():
    with connect(Resources(threads=1, processes=True)) as client:
        assert client.submit(os.getpid).result() != os.getpid()


GPU = {"resources": {"GPU": 1}}
GPUS = {**GPU, "worker_class": object}  # each worker sees one of them


@pytest.mark.parametrize(
    ("resources", "options", "expected"),
    [
        (ALONE, {}, False),
        (ALONE, GPU, False),
        (ALONE, GPUS, True),
        (ALONE.replace(processes=True), {}, True),
        (ALONE.replace(processes=False), {}, False),
        (ALONE.replace(workers=2), {}, True),
        (ALONE.replace(memory_limit="1 GiB"), {}, True),
        (ALONE.replace(host="127.0.0.1"), {}, True),
    ],
)
def test_workers__needs_processes_where_one_in_this_process_would_not_do(resources, options, expected):
    assert _needs_processes(resources, options) is expected


@pytest.mark.parametrize("name", ["workers", "memory_limit", "host", "device"])
def test_processes__are_not_refused_silently(name):
    value = {"workers": 2, "memory_limit": "1 GiB", "host": "127.0.0.1", "device": "cuda"}[name]
    resources = Resources(**{name: value}, processes=False)
    with pytest.raises(ParameterError, match=f"processes=False: .* {name}={value!r}"):
        _needs_processes(resources, GPUS if name == "device" else {})


BEGAN, ENDED = threading.Event(), threading.Event()


def stay():
    BEGAN.set()
    try:
        while True:
            time.sleep(0.01)
    finally:
        ENDED.set()


def test_closing__ends_tasks_that_run():
    with connect(ALONE) as client:
        task = client.submit(stay)
        assert BEGAN.wait(60)
    assert ENDED.wait(10)
    del task


def test_closing__leaves_the_logs_of_this_process_as_they_were():
    loggers = [logging.getLogger(name) for name in ("distributed.worker", "distributed.worker.state_machine")]
    before = [[*logger.filters] for logger in loggers]
    with connect(ALONE):
        assert [[*logger.filters] for logger in loggers] != before
    assert [[*logger.filters] for logger in loggers] == before


def test_connect__keeps_its_worker_when_the_machine_has_slept():
    """Dask gives a worker up whose last word is long ago by the clock, and one without a nanny for good."""
    with dask.config.set({"distributed.scheduler.worker-ttl": "50ms"}), connect(ALONE) as client:
        (worker,) = client.cluster.scheduler.workers.values()
        for _ in range(20):
            worker.last_seen -= 3600
            time.sleep(0.02)
        assert client.submit(os.getpid).result(timeout=30) == os.getpid()


def test_connect__says_nothing_of_a_call_that_is_interrupted_before_it_begins(monkeypatch, caplog):
    """Dask's loop then cancels what is not there yet."""

    class Interrupted(threading.Event):
        def wait(self, timeout=None):
            raise KeyboardInterrupt

    def interrupt(client):
        interrupted = threading.Event()
        client.loop.add_callback(interrupted.wait, 30)  # the loop comes to nothing else before
        with monkeypatch.context() as patch:
            patch.setattr(utils, "threading", SimpleNamespace(Event=Interrupted, get_ident=threading.get_ident))
            with pytest.raises(KeyboardInterrupt):
                client.sync(client.scheduler.identity)
        interrupted.set()
        client.submit(os.getpid, pure=False).result()

    with connect(ALONE) as client:
        interrupt(client)
        assert "cancel" not in caplog.text
        with Client(client.scheduler.address) as other:
            logging.getLogger("tornado.application").filters.clear()
            interrupt(other)
    assert "sync.<locals>.cancel" in caplog.text, "or this tests nothing"
