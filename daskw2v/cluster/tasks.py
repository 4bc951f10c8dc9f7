"""Tasks: calls of a function on a cluster, for many jobs or partitions, whose results come in the order they finish."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from dask import delayed
from distributed import Client, Future

from daskw2v.cluster.connecting import GetClient, check_cluster, check_futures
from daskw2v.cluster.waiting import gather, wait_for_first
from daskw2v.cluster.workers import AGAIN, TaskResources, total_threads
from daskw2v.errors import ClusterError, Daskw2vError, TrainingError
from daskw2v.store.durability import durable
from daskw2v.store.stage import RunTasks, new_attempt
from daskw2v.store.storage import Store

_PER_THREAD, _MIN_IN_FLIGHT = 4, 16  # futures in flight
_RECOUNT = 10  # seconds after which the threads are counted again


def run_tasks(
    client: Client,
    stage: str,
    function: Callable[..., Any],
    jobs: Mapping[Any, tuple[Any, ...]],
    task_resources: TaskResources = None,
    excuse: Callable[[Any, Daskw2vError], bool] = lambda name, error: False,
    priority: int = 0,
) -> Iterator[tuple[Any, Any]]:
    """Call a function on the cluster for each job; yield names and results as jobs finish.

    Parameters
    ----------
    client
        The cluster.
    stage
        Name of the tasks, in keys and messages.
    function
        Function to call. It must be idempotent, as Dask may run it more than once, and importable on the workers.
    jobs
        Arguments of each job, by the job's name.
    task_resources
        Dask resources that a job needs, by name; None if jobs need none.
    excuse
        Function of the name and the Daskw2vError of a job that failed. If it returns True, the other jobs continue.
    priority
        Dask priority of the tasks: tasks of a higher priority go first.

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
    Exception
        The error that a job raises: a Daskw2vError at once, any other after two retries. Unfinished jobs are cancelled.
    """
    run, waiting, names = new_attempt(), iter(jobs), dict[Future, Any]()
    call = partial(client.submit, _call, function, pure=False, retries=2, resources=task_resources, priority=priority)

    def submit(n_jobs: int) -> None:
        """Submit the next jobs."""
        for name in islice(waiting, n_jobs):
            names[call(*jobs[name], key=f"{stage}-{name}-{run}")] = name

    submit(_max_in_flight(client))
    counted = time.monotonic()
    for name, result in _as_finished(client, stage, names, task_resources):
        if isinstance(result, Daskw2vError) and not excuse(name, result):
            raise result
        submit(1)
        yield name, None if isinstance(result, Daskw2vError) else result
        if time.monotonic() - counted >= _RECOUNT:  # a cluster that has grown gets more tasks
            submit(max(0, _max_in_flight(client) - len(names)))
            counted = time.monotonic()


def _as_finished(
    client: Client, stage: str, names: dict[Future, Any], task_resources: TaskResources = None
) -> Iterator[tuple[Any, Any]]:
    """Yield name and result of each task, as of `_get_result`, when the task finishes; cancel the tasks that remain.

    `names` has the name of each task. A task that finishes is removed from it; tasks may be added meanwhile.
    """
    try:
        while names:
            for future in wait_for_first(client, list(names), task_resources):
                name = names.pop(future)
                yield name, _get_result(client, future, f"{stage} {name}", task_resources)
    finally:
        client.cancel(list(names))


def connect_tasks(client: GetClient, work: Store) -> RunTasks:
    """Connect to the cluster and check it; return the function that runs tasks on it, as a stage needs it."""
    check_cluster(client(), work)
    return partial(run_tasks, client())


def run_on_partitions(
    client: Client, stage: str, function: Callable[[Any], Any], partitions: Sequence[Any]
) -> Iterator[tuple[int, Any]]:
    """Compute partitions and call a function of each on the cluster; yield numbers and results as partitions finish.

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
        Index and result of each partition, in the order in which they finish.

    Raises
    ------
    TrainingError, ClusterError
        As `run_tasks` and `check_futures` do.
    Exception
        Errors of the function, and of computing a partition.
    """
    check_futures(client, partitions)
    call = delayed(partial(_call, function), pure=False, traverse=False)
    # Together, since partitions may share tasks, as after a shuffle
    futures = client.compute([call(partition) for partition in partitions], retries=2)
    try:
        for number, result in _as_finished(client, stage, {future: number for number, future in enumerate(futures)}):
            if isinstance(result, Exception):
                raise result
            yield number, result
    except ClusterError as error:
        if "lost dependencies" not in str(error.__cause__):
            raise
        raise ClusterError(
            "The cluster does not hold what partitions are made of (lost dependencies).",
            f"What was persisted is on the cluster of the client that persisted it: give client. {AGAIN}",
        ) from error.__cause__
    finally:
        client.cancel(futures)  # also one that failed, which would be remembered as long as its traceback


def _call(function: Callable[..., Any], *args: Any) -> Any:
    """Task: return a function's result once its files are on disk, or its Daskw2vError, so that Dask does not retry."""
    try:
        with durable():
            return function(*args)
    except Daskw2vError as error:
        return error


def _get_result(client: Client, future: Future, task: str, task_resources: TaskResources) -> Any:
    """Return what `_call` returned in a finished task, or a TrainingError if the task kills its workers.

    `task` is the name of the task in messages, and `task_resources` are the Dask resources that it needs.
    """
    try:
        return gather(client, [future], task, task_resources)[0]
    except TrainingError as error:
        return error


def _max_in_flight(client: Client) -> int:
    """Return the number of tasks to have submitted at the same time."""
    return max(_MIN_IN_FLIGHT, _PER_THREAD * total_threads(client))
