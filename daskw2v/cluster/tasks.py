"""Tasks: functions that run on a cluster, for many jobs or on each partition, and whose results come as they finish."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from dask import delayed
from distributed import Client, Future

from daskw2v.cluster.connecting import check_futures
from daskw2v.cluster.waiting import first_done, gather
from daskw2v.cluster.workers import AGAIN, total_threads
from daskw2v.errors import ClusterError, Daskw2vError, TrainingError
from daskw2v.store.durability import durable
from daskw2v.store.stage import new_attempt

_PER_THREAD, _LEAST = 4, 16  # futures in flight
_COUNT = 10  # seconds after which the threads are counted again


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
    run, waiting = new_attempt(), iter(jobs)
    names: dict[Future, Any] = {}

    def submit(n_jobs: int) -> None:
        for name in islice(waiting, n_jobs):
            key = f"{stage}-{name}-{run}"
            future = client.submit(
                _answered, function, *jobs[name], key=key, pure=False, retries=2, resources=takes, priority=priority
            )
            names[future] = name

    submit(_in_flight(client))
    counted = time.monotonic()
    for name, answer in _as_done(client, stage, names, takes):
        if isinstance(answer, Daskw2vError) and not excuse(name, answer):
            raise answer
        submit(1)
        yield name, None if isinstance(answer, Daskw2vError) else answer
        if time.monotonic() - counted >= _COUNT:  # a cluster that has grown gets more tasks
            submit(max(0, _in_flight(client) - len(names)))
            counted = time.monotonic()


def _as_done(
    client: Client, stage: str, names: dict[Future, Any], takes: dict[str, int] | None = None
) -> Iterator[tuple[Any, Any]]:
    """Yield name and answer of each task as it is done, and take it out of `names`; cancel those left in the end."""
    try:
        while names:
            for future in first_done(client, list(names), takes):
                name = names.pop(future)
                yield name, _result_of(client, future, f"{stage} {name}", takes)
    finally:
        client.cancel(list(names))


def run_on_partitions(
    client: Client, stage: str, function: Callable[[Any], Any], partitions: Sequence[Any]
) -> Iterator[tuple[int, Any]]:
    """Call `function(partition)` on the cluster for each partition, which is computed before.

    Parameters
    ----------
    client
        The cluster.
    stage
        Name of the tasks in messages.
    function
        Function to call. It must be idempotent, and importable on the workers.
    partitions
        Objects of `dask.delayed`, or futures of the cluster.

    Yields
    ------
    tuple
        Number and result of each partition, in the order in which they finish.

    Raises
    ------
    TrainingError, ClusterError
        As `run_tasks` and `check_futures` do.
    Exception
        Errors of the function, and of computing a partition.
    """
    check_futures(client, partitions)
    call = delayed(partial(_answered, function), pure=False, traverse=False)
    # Together, since partitions may share tasks, as after a shuffle
    futures = client.compute([call(partition) for partition in partitions], retries=2)
    try:
        for number, answer in _as_done(client, stage, {future: number for number, future in enumerate(futures)}):
            if isinstance(answer, Exception):
                raise answer
            yield number, answer
    except ClusterError as error:
        if "lost dependencies" not in str(error.__cause__):
            raise
        raise ClusterError(
            "The cluster does not hold what partitions are made of (lost dependencies).",
            f"What was persisted is on the cluster of the client that persisted it: give client. {AGAIN}",
        ) from error.__cause__
    finally:
        client.cancel(futures)  # also one that failed, which would be remembered as long as its traceback


def _answered(function: Callable[..., Any], *args: Any) -> Any:
    """Task: return the result of a function, or the error of daskw2v that it raises, which Dask would retry."""
    try:
        with durable():
            return function(*args)
    except Daskw2vError as error:
        return error


def _result_of(client: Client, future: Future, task: str, takes: dict[str, int] | None) -> Any:
    """Return the result of a finished task, or the error of a task that kills its workers."""
    try:
        return gather(client, [future], task, takes)[0]
    except TrainingError as error:
        return error


def _in_flight(client: Client) -> int:
    return max(_LEAST, _PER_THREAD * total_threads(client))
