"""Runs many small Dask tasks, a bounded number in flight, and yields their results as they finish."""

import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from itertools import islice
from typing import Any

from distributed import Client, Future

from daskw2v.cluster.waiting import first_done, gather
from daskw2v.cluster.workers import total_threads
from daskw2v.errors import Daskw2vError, TrainingError
from daskw2v.store.durability import durable
from daskw2v.store.stage import new_attempt

_PER_THREAD, _LEAST = 4, 16  # futures in flight
_COUNT = 10  # seconds after which the threads are counted again


def answered(function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """Task: return what a function returns, or the error of daskw2v that it raises, which Dask would retry."""
    try:
        with durable():
            return function(*args)
    except Daskw2vError as error:
        return error


def result_of(client: Client, future: Future, task: str, takes: dict[str, int] | None) -> Any:
    """Return the result of a finished task, or the error of one that kills its workers."""
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
    priority: int = 0,
) -> Iterator[tuple[Any, Any]]:
    """Call `function(*args)` on the cluster for each job.

    Parameters
    ----------
    client
        The cluster.
    stage
        Name of the tasks, in keys and messages.
    function
        Function to call. It must be idempotent, as Dask may run it more than once, and importable on the workers.
    jobs
        Arguments of each job, by its name.
    takes
        Dask resources that a job needs.
    excuse
        Called with the name and the error of a job that failed. If it returns True, the other jobs continue.
    priority
        Dask priority of the tasks: those of a higher one go first.

    Yields
    ------
    tuple
        Name and result of each job, in the order in which they finish; the result of an excused job is None.

    Raises
    ------
    TrainingError
        If a job keeps killing its workers.
    ClusterError
        If the cluster has lost its workers or its scheduler.
    Daskw2vError
        If a job raises it; the jobs that are not done are cancelled.
    """
    run = new_attempt()
    names: dict[Future, Hashable] = {}

    def submit(name: Hashable) -> Future:
        key = f"{stage}-{name}-{run}"
        future = client.submit(
            answered, function, jobs[name], key=key, pure=False, retries=2, resources=takes, priority=priority
        )
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
                answer = result_of(client, future, f"{stage} {name}", takes)
                if isinstance(answer, Daskw2vError):
                    if not excuse(name, answer):
                        raise answer
                    answer = None
                active |= {submit(following) for following in islice(waiting, 1)}
                yield name, answer
            if time.monotonic() - counted >= _COUNT:  # a cluster that has grown gets more tasks
                more = max(0, _in_flight(client) - len(active))
                active |= {submit(following) for following in islice(waiting, more)}
                counted = time.monotonic()
    finally:
        client.cancel(list(names))


def run_task(client: Client, stage: str, function: Callable[..., Any], *args: Any) -> Any:
    """Call `function(*args)` on the cluster and return its result; raises as `run_tasks` does."""
    return next(result for _, result in run_tasks(client, stage, function, {0: args}))
