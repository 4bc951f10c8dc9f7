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
    check_reachable,
    is_unreachable,
    may_grow,
    scheduler_watched,
    this_worker,
    workers_known,
)
from daskw2v.config.resources import Resources
from daskw2v.errors import ClusterError, TrainingError
from daskw2v.progress import Listener, message_sender, silent

_GROWING, _FIXED = 3600.0, 300.0  # default timeout in seconds, if new workers may come and if not
_CHECK = 10.0  # seconds between checks of the cluster
_AGAIN = 300.0  # seconds between messages about the same wait


class _Terms(NamedTuple):
    """Timeout in seconds, None for the default of the kind of cluster; and the listener, called with messages."""

    timeout: float | None = None
    listener: Listener = silent


_terms: ContextVar[_Terms] = ContextVar("worker_timeout", default=_Terms())  # noqa: B039  # a tuple


@contextmanager
def waits_for_workers(resources: Resources, listener: Listener) -> Iterator[None]:
    """Set `worker_timeout` and the listener for all waiting of this thread in the block."""
    token = _terms.set(_Terms(resources.worker_timeout, listener))
    try:
        yield
    finally:
        _terms.reset(token)


class _Wait:
    """Checks, while something waits, that there is a suitable worker, or was less than `worker_timeout` ago.

    Parameters
    ----------
    client, takes
        The cluster, and the resources that a suitable worker declares.
    why
        Sentence to add to messages.

    Attributes
    ----------
    step, patience
        Seconds between two checks, and for which a registered worker may be out of reach.
    """

    def __init__(self, client: Client, takes: Mapping[str, int] | None, why: str = "") -> None:
        self._client, self._takes, self._why = client, takes, f" {why}" if why else ""
        timeout, listener = _terms.get()
        self._tell = message_sender(listener, "cluster", "workers")
        self._timeout = timeout or (_GROWING if may_grow(client) else _FIXED)
        self._which = f" with {_written(takes)}" if takes else ""
        self._since = self._said = 0.0
        self._alone: str | None = None  # time since which there is no suitable worker
        self.step = min(_CHECK, self._timeout)
        self.patience = min(_FIXED, self._timeout)

    def check(self) -> None:
        """Raise a ClusterError if there was no suitable worker for too long."""
        if _has_worker(self._client, self._takes):
            if self._alone is not None:
                self._tell(f"there is a worker{self._which}")
            self._alone = None
            return
        now = time.monotonic()
        if self._alone is None:
            self._alone = datetime.now().astimezone().isoformat(" ", "seconds")
            self._since, self._said = now, float("-inf")
        if now - self._since >= self._timeout:
            remedy = f"Start workers{self._which}, raise the limits of the cluster, or give a longer worker_timeout."
            raise ClusterError(
                f"The cluster at {self._client.scheduler.address} has had no worker{self._which} for "
                f"{self._timeout:g} s, since {self._alone} (worker_timeout={self._timeout:g}).{self._why}",
                f"{remedy} {AGAIN}",
            )
        if now - self._said >= _AGAIN:
            self._said = now
            self._tell(
                f"waiting for a worker{self._which} since {self._alone}, "
                f"for {self._timeout:g} s at most (worker_timeout).{self._why}"
            )


def _has_worker(client: Client, takes: Mapping[str, int] | None) -> bool:
    """Return whether a cluster has a worker that declares these resources."""
    declared = [worker["resources"] for worker in workers_known(client).values()]
    return any(all(resources.get(name, 0) >= n for name, n in (takes or {}).items()) for resources in declared)


def _written(takes: Mapping[str, int]) -> str:
    """Return resources as options of `dask worker`."""
    return f"--resources {','.join(f'{name}={n}' for name, n in takes.items())}"


def await_worker(client: Client, takes: Mapping[str, int] | None = None, why: str = "") -> None:
    """Wait until there is a worker with these resources.

    It submits a task, because an adaptive cluster starts workers only for tasks.

    Parameters
    ----------
    client, takes
        The cluster, and the resources that the worker declares.
    why
        Sentence to add to messages.

    Raises
    ------
    ClusterError
        If no worker comes in time (`waits_for_workers`), or the scheduler is gone.
    """
    while not _has_worker(client, takes):
        waited = _Wait(client, takes, why)
        waited.check()  # reports the wait at once
        with _explained("A task without work"):
            task = client.submit(this_worker, key=f"await-worker-{uuid.uuid4().hex}", resources=takes)
            _first_done(client, [task], waited)
            _fetch(client, [task], takes)  # raises if the task killed its workers
        waited.check()  # reports the new worker


def first_done(client: Client, futures: Collection[Future], takes: Mapping[str, int] | None = None) -> set[Future]:
    """Wait until at least one task has ended, also by an error; return all that have.

    Parameters
    ----------
    client, futures
        The cluster and the tasks.
    takes
        Dask worker resources that the tasks need, by name.

    Raises
    ------
    ClusterError
        If the cluster had no worker with these resources for `worker_timeout` (`waits_for_workers`), or its scheduler
        is gone: the tasks would wait forever.
    """
    return _first_done(client, futures, _Wait(client, takes))


def all_done(client: Client, futures: Collection[Future]) -> None:
    """Wait until all of the tasks are done; raises as `first_done` does."""
    waiting = set(futures)
    while waiting:
        waiting -= first_done(client, waiting)


def _first_done(client: Client, futures: Collection[Future], waited: _Wait) -> set[Future]:
    while True:
        try:
            with scheduler_watched():
                # `distributed.wait` would wait in the loop of Dask's current client, which may be another
                done: set[Future] = client.sync(_wait, futures, timeout=waited.step, return_when="FIRST_COMPLETED").done
                return done
        except TimeoutError as error:
            # The error and its traceback form a cycle, which keeps the callers' frames, and with them all results of a
            # round, until the garbage is collected
            error.__traceback__ = None
            waited.check()


def gather(client: Client, futures: Sequence[Future], task: str, takes: Mapping[str, int] | None = None) -> list[Any]:
    """Wait for all of the tasks and return their results, in order.

    Raises
    ------
    TrainingError
        If a task killed its worker several times.
    ClusterError
        If the scheduler is gone, or there are no workers, as in `first_done`.
    Exception
        Whatever a task raised.
    """
    waiting = set(futures)
    with _explained(task):
        while waiting:
            done = first_done(client, waiting, takes)
            for future in done:
                if future.status != "finished":
                    _fetch(client, [future], takes)
            waiting -= done
        return _fetch(client, list(futures), takes)  # together: one by one they take a millisecond each


def _fetch(client: Client, futures: list[Future], takes: Mapping[str, int] | None) -> list[Any]:
    """Return the results of finished tasks; Dask computes results again that were lost with their worker."""
    waited = _Wait(client, takes)
    asked = time.monotonic()
    answer = asyncio.run_coroutine_threadsafe(client.gather(futures, asynchronous=True), client.loop.asyncio_loop)
    try:
        while wait_for_thread([answer], timeout=waited.step).not_done:
            waited.check()
            if time.monotonic() - asked >= waited.patience:
                check_reachable(client, futures)
                asked = time.monotonic()
        return list(answer.result())
    finally:
        answer.cancel()


@contextmanager
def _explained(task: str) -> Iterator[None]:
    """Turn the errors that Dask raises for workers or a scheduler out of reach into errors of daskw2v."""
    try:
        with scheduler_watched():
            yield
    except OSError as error:
        if not is_unreachable(error):
            raise
        raise ClusterError(
            f"{task} found a part of the cluster out of reach ({error}).",
            f"Check that address, its network and its firewall, or stop what runs there. {AGAIN}",
        ) from error
    except KilledWorker as error:
        raise TrainingError(
            f"{task} died with its worker, several times ({error}).",
            "The usual cause is memory: raise memory_limit, use fewer threads for each worker or a smaller block_size, "
            f"or train a smaller model (max_final_vocab, vector_size). {AGAIN}",
        ) from error
