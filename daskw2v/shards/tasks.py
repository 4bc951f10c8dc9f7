"""Many small Dask tasks, a bounded number of them in flight, with answers as they come."""

import time
import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

from distributed import Client, Future

from daskw2v.cluster import first_done, gather, total_threads
from daskw2v.errors import Daskw2vError, TrainingError
from daskw2v.storage import Store

_PER_THREAD, _LEAST = 4, 16  # futures in flight
_COUNT = 10  # seconds between looks at the number of threads
_THREADS = 16  # of listing and deleting, which mostly wait


def new_attempt() -> str:
    """Name the folder of one run of a task: a rerun writes beside it, never into it."""
    return uuid.uuid4().hex[:8]


def _answer(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    # Our own errors are answers: another try would end the same, and only others are worth Dask's retries.
    try:
        return function(*args)
    except Daskw2vError as error:
        return error


def _result(client: Client, future: Future, task: str, takes: dict[str, int] | None) -> Any:
    try:
        (result,) = gather(client, [future], task, takes)
    except TrainingError as error:  # it kills its workers
        return error
    return result


def _in_flight(client: Client) -> int:
    return max(_LEAST, _PER_THREAD * total_threads(client))


def run_tasks(
    client: Client,
    stage: str,
    function: Callable[..., Any],
    jobs: Mapping[Any, tuple[Any, ...]],
    takes: dict[str, int] | None = None,
    excuse: Callable[[Any, Daskw2vError], bool] = lambda name, error: False,
) -> Iterator[tuple[Any, Any]]:
    """Call `function(*args)` on the cluster for each job.

    Parameters
    ----------
    client
        Where to run.
    stage
        What tasks and messages are called.
    function
        Idempotent, importable on the workers: Dask may run it more than once.
    jobs
        Arguments by name.
    takes
        The Dask resources that a job takes of its worker.
    excuse
        Is told what a job raised; if it returns true the others go on.

    Yields
    ------
    tuple
        Name and result of each job, as they finish; None for one that was excused.

    Raises
    ------
    TrainingError
        If a job keeps killing its workers.
    ClusterError
        If the cluster has no workers any more, or no scheduler.
    Daskw2vError
        What a job raised; jobs not yet done are cancelled.
    """
    run = new_attempt()
    names: dict[Future, Hashable] = {}

    def submit(name: Hashable) -> Future:
        key = f"{stage}-{name}-{run}"
        future = client.submit(_answer, function, jobs[name], key=key, pure=False, retries=2, resources=takes)
        names[future] = name
        return future

    waiting = iter(jobs)
    active = {submit(name) for name in islice(waiting, _in_flight(client))}
    counted = time.monotonic()
    try:
        while active:
            for future in first_done(client, active, takes):
                name = names.pop(future)
                active.discard(future)
                answer = _result(client, future, f"{stage} {name}", takes)
                if isinstance(answer, Daskw2vError):
                    if not excuse(name, answer):
                        raise answer
                    answer = None
                active |= {submit(following) for following in islice(waiting, 1)}
                yield name, answer
            if time.monotonic() - counted >= _COUNT:  # a cluster that has grown takes more, and grows by more
                more = max(0, _in_flight(client) - len(active))
                active |= {submit(following) for following in islice(waiting, more)}
                counted = time.monotonic()
    finally:
        client.cancel(list(names))


def run_task(client: Client, stage: str, function: Callable[..., Any], *args: Any) -> Any:
    """Call `function(*args)` on the cluster and wait for its result; raises as `run_tasks` does."""
    return next(result for _, result in run_tasks(client, stage, function, {0: args}))


def remove_losers(store: Store, winners: Mapping[str, set[str]]) -> None:
    """Delete folders of attempts: of each name below the store, all that are not among its winners."""

    def remove(name: str) -> None:
        for attempt in (store / name).children():
            if attempt not in winners[name] and not attempt.endswith(".json"):
                (store / name / attempt).remove()

    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(remove, winners))
