"""Waiting for tasks, and for workers that can run them.

`waits_for_workers` sets timeout and listener for a block of code, so that functions that wait need no arguments.
"""

import asyncio
import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import wait as wait_for_thread
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime
from typing import Any, NamedTuple

from distributed import Client, Future, KilledWorker
from distributed.client import _wait

from daskw2v.cluster.workers import (
    AGAIN,
    TaskResources,
    check_reachable,
    converting_scheduler_errors,
    is_unreachable,
    may_grow,
    this_worker,
    workers_known,
)
from daskw2v.config.resources import Resources
from daskw2v.errors import ClusterError, TrainingError
from daskw2v.progress import Listener, message_sender, silent

_GROWING, _FIXED = 3600.0, 300.0  # default timeout in seconds, if new workers may come and if not
_CHECK = 10.0  # seconds between checks of the cluster
_REPEAT = 300.0  # seconds between messages about the same wait


class _Terms(NamedTuple):
    """The terms of all waiting in a block.

    Parameters
    ----------
    timeout
        Seconds to wait for a worker; None for the default of the kind of cluster.
    listener
        Called with messages.
    """

    timeout: float | None = None
    listener: Listener = silent


_terms: ContextVar[_Terms] = ContextVar("worker_timeout", default=_Terms())  # noqa: B039  # a tuple


@contextmanager
def waits_for_workers(resources: Resources, listener: Listener) -> Iterator[None]:
    """Set the timeout `resources.worker_timeout` and the listener for all waiting of this thread in the block."""
    token = _terms.set(_Terms(resources.worker_timeout, listener))
    try:
        yield
    finally:
        _terms.reset(token)


class _Wait:
    """A wait that fails if the cluster has had no suitable worker for too long.

    Parameters
    ----------
    client, task_resources
        The cluster, and the Dask resources that a suitable worker declares; None for any worker.
    why
        Sentence to add to messages.

    Attributes
    ----------
    step, patience
        Seconds between two checks, and seconds for which a registered worker may be out of reach.
    """

    def __init__(self, client: Client, task_resources: TaskResources, why: str = "") -> None:
        self._client, self._takes, self._why = client, task_resources, f" {why}" if why else ""
        timeout, listener = _terms.get()
        self._report = message_sender(listener, "cluster", "workers")
        self._timeout = timeout or (_GROWING if may_grow(client) else _FIXED)
        self._which = f" with {_as_options(task_resources)}" if task_resources else ""
        self._since = self._reported = 0.0  # monotonic times of the begin of the wait, and of the last message
        self._since_text: str | None = None  # time of day since which there is no suitable worker, if there is none
        self.step = min(_CHECK, self._timeout)
        self.patience = min(_FIXED, self._timeout)

    def check(self) -> None:
        """Raise a ClusterError if there was no suitable worker for the timeout; report the wait and its end."""
        if _has_worker(self._client, self._takes):
            if self._since_text is not None:
                self._report(f"there is a worker{self._which}")
            self._since_text = None
            return
        now = time.monotonic()
        if self._since_text is None:
            self._since_text = datetime.now().astimezone().isoformat(" ", "seconds")
            self._since, self._reported = now, float("-inf")
        if now - self._since >= self._timeout:
            remedy = f"Start workers{self._which}, raise the limits of the cluster, or give a longer worker_timeout."
            raise ClusterError(
                f"The cluster at {self._client.scheduler.address} has had no worker{self._which} for "
                f"{self._timeout:g} s, since {self._since_text} (worker_timeout={self._timeout:g}).{self._why}",
                f"{remedy} {AGAIN}",
            )
        if now - self._reported >= _REPEAT:
            self._reported = now
            self._report(
                f"waiting for a worker{self._which} since {self._since_text}, "
                f"for {self._timeout:g} s at most (worker_timeout).{self._why}"
            )


def _has_worker(client: Client, task_resources: TaskResources) -> bool:
    """Return whether a cluster has a worker that declares the resources of a task, which may be None."""
    declared = [worker["resources"] for worker in workers_known(client).values()]
    return any(all(resources.get(name, 0) >= n for name, n in (task_resources or {}).items()) for resources in declared)


def _as_options(task_resources: Mapping[str, int]) -> str:
    """Return Dask resources as an option of `dask worker`, `--resources NAME=N,...`."""
    return f"--resources {','.join(f'{name}={n}' for name, n in task_resources.items())}"


def await_worker(client: Client, task_resources: TaskResources = None, why: str = "") -> None:
    """Wait until the cluster has a worker that declares the resources of a task.

    A task is submitted meanwhile, because an adaptive cluster starts workers only for tasks.

    Parameters
    ----------
    client, task_resources
        The cluster, and the Dask resources that the worker declares; None for any worker.
    why
        Sentence to add to messages.

    Raises
    ------
    ClusterError
        If no worker comes in time (`waits_for_workers`), or the scheduler is gone.
    TrainingError
        If workers keep dying with the task.
    """
    while not _has_worker(client, task_resources):
        waited = _Wait(client, task_resources, why)
        waited.check()  # reports the wait at once
        with _converting_errors("A task without work"):
            task = client.submit(this_worker, key=f"await-worker-{uuid.uuid4().hex}", resources=task_resources)
            _wait_for_first(client, [task], waited)
            _fetch(client, [task], task_resources)  # raises if the task killed its workers
        waited.check()  # reports the new worker


def wait_for_first(client: Client, futures: Collection[Future], task_resources: TaskResources = None) -> set[Future]:
    """Wait until at least one task has ended, also by an error; return the futures of all tasks that have ended.

    Parameters
    ----------
    client, futures
        The cluster and the tasks.
    task_resources
        Dask resources that the tasks need, by name; None if they need none.

    Raises
    ------
    ClusterError
        If the cluster had no worker with the resources for `worker_timeout` (`waits_for_workers`), or its scheduler is
        gone.
    """
    return _wait_for_first(client, futures, _Wait(client, task_resources))


def wait_for_all(client: Client, futures: Collection[Future]) -> None:
    """Wait until all tasks have ended; raises as `wait_for_first` does."""
    waiting = set(futures)
    while waiting:
        waiting -= wait_for_first(client, waiting)


def _wait_for_first(client: Client, futures: Collection[Future], waited: _Wait) -> set[Future]:
    """Wait until at least one task has ended, with the checks of `waited`; return the futures of all ended tasks."""
    while True:
        try:
            with converting_scheduler_errors():
                # `distributed.wait` would wait in the loop of Dask's current client, which may be another
                done: set[Future] = client.sync(_wait, futures, timeout=waited.step, return_when="FIRST_COMPLETED").done
                return done
        except TimeoutError as error:
            # The error and its traceback form a cycle, which keeps the callers' frames, and with them all results of a
            # round, until the garbage is collected
            error.__traceback__ = None
            waited.check()


def gather(client: Client, futures: Sequence[Future], task: str, task_resources: TaskResources = None) -> list[Any]:
    """Wait for tasks, and return their results in the order of the futures.

    Parameters
    ----------
    client, futures
        The cluster and the tasks.
    task
        Name of the tasks, at the beginning of messages.
    task_resources
        Dask resources that the tasks need, by name; None if they need none.

    Raises
    ------
    TrainingError
        If a task killed its worker several times.
    ClusterError
        If the scheduler is gone, or there are no workers, as in `wait_for_first`.
    Exception
        The error that a task raised.
    """
    waiting = set(futures)
    with _converting_errors(task):
        while waiting:
            done = wait_for_first(client, waiting, task_resources)
            for future in done:
                if future.status != "finished":
                    _fetch(client, [future], task_resources)
            waiting -= done
        return _fetch(client, list(futures), task_resources)  # together: one by one, each takes a millisecond


def _fetch(client: Client, futures: list[Future], task_resources: TaskResources) -> list[Any]:
    """Return the results of finished tasks, in order, or raise a task's error; Dask computes lost results again."""
    waited = _Wait(client, task_resources)
    checked = time.monotonic()
    answer = asyncio.run_coroutine_threadsafe(client.gather(futures, asynchronous=True), client.loop.asyncio_loop)
    try:
        while wait_for_thread([answer], timeout=waited.step).not_done:
            waited.check()
            if time.monotonic() - checked >= waited.patience:
                check_reachable(client, futures)
                checked = time.monotonic()
        return list(answer.result())
    finally:
        answer.cancel()


@contextmanager
def _converting_errors(task: str) -> Iterator[None]:
    """Turn errors that Dask raises in the block, for workers that died or are out of reach, into errors of daskw2v.

    `task` is the name of the tasks, at the beginning of messages.
    """
    try:
        with converting_scheduler_errors():
            yield
    except OSError as error:
        if not is_unreachable(error):
            raise
        remedy = f"Check that address, its network and its firewall, or stop what runs there. {AGAIN}"
        raise ClusterError(f"{task} found a part of the cluster out of reach ({error}).", remedy) from error
    except KilledWorker as error:
        raise TrainingError(
            f"{task} died with its worker, several times ({error}).",
            "The usual cause is memory: raise memory_limit, use fewer threads for each worker or a smaller block_size, "
            f"or train a smaller model (max_final_vocab, vector_size). {AGAIN}",
        ) from error
