"""Many small Dask tasks, a bounded number of them in flight, with answers as they come."""

import uuid
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import Any

from distributed import Client, Future, KilledWorker, as_completed

from daskw2v.errors import Daskw2vError, TrainingError
from daskw2v.storage import Store

_PER_THREAD, _LEAST = 4, 16  # futures in flight
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


def run_tasks(
    client: Client, stage: str, function: Callable[..., Any], jobs: Mapping[Any, tuple[Any, ...]]
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

    Yields
    ------
    tuple
        Name and result of each job, as they finish.

    Raises
    ------
    TrainingError
        If a job keeps killing its workers.
    Daskw2vError
        What a job raised; jobs not yet done are cancelled.
    """
    run = new_attempt()
    limit = max(_LEAST, _PER_THREAD * sum(client.nthreads().values()))
    names: dict[Future, Hashable] = {}

    def submit(name: Hashable) -> Future:
        future = client.submit(_answer, function, jobs[name], key=f"{stage}-{name}-{run}", pure=False, retries=2)
        names[future] = name
        return future

    waiting = iter(jobs)
    active = as_completed([submit(name) for name in islice(waiting, limit)])
    try:
        for future in active:
            name = names.pop(future)
            yield name, _result(future, stage, name)
            future.release()
            for following in islice(waiting, 1):
                active.add(submit(following))
    finally:
        client.cancel(list(names))


def run_task(client: Client, stage: str, function: Callable[..., Any], *args: Any) -> Any:
    """Call `function(*args)` on the cluster and wait for its result; raises as `run_tasks` does."""
    return next(result for _, result in run_tasks(client, stage, function, {0: args}))


def _result(future: Future, stage: str, name: Hashable) -> Any:
    try:
        answer = future.result()
    except KilledWorker as error:
        raise TrainingError(
            f"{stage} {name} killed its worker again and again, most likely for memory.",
            "Give workers more memory (memory_limit), fewer threads, or a smaller block_size.",
        ) from error
    if isinstance(answer, Daskw2vError):
        raise answer
    return answer


def remove_losers(store: Store, winners: Mapping[str, set[str]]) -> None:
    """Delete folders of attempts: of each name below the store, all that are not among its winners."""

    def remove(name: str) -> None:
        for attempt in (store / name).children():
            if attempt not in winners[name] and not attempt.endswith(".json"):
                (store / name / attempt).remove()

    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(remove, winners))
