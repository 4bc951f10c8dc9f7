"""Runs a function on each partition of a Dask collection, where the partition is."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from dask import delayed
from distributed import Client, Future

from daskw2v.cluster.tasks import answered, result_of
from daskw2v.cluster.waiting import first_done
from daskw2v.errors import ClusterError


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
        Objects of `dask.delayed`, or futures of this client.

    Yields
    ------
    tuple
        Number and result of each partition, in the order in which they finish.

    Raises
    ------
    TrainingError, ClusterError
        As `run_tasks` does; or if a future was cancelled, or is of another cluster.
    Exception
        What the function raises, and what computing a partition raises.
    """
    for partition in partitions:
        if isinstance(partition, Future):
            _check(partition, client)
    call = delayed(partial(_call, function), pure=False, traverse=False)
    # Together, since partitions may share what they are made of, as after a shuffle
    futures = client.compute([call(partition) for partition in partitions], retries=2)
    numbers = {future: number for number, future in enumerate(futures)}
    active = set(futures)
    try:
        while active:
            for future in first_done(client, active):
                active.discard(future)
                answer = result_of(client, future, f"{stage} {numbers[future]}", None)
                if isinstance(answer, Exception):
                    raise answer
                yield numbers[future], answer
    finally:
        client.cancel(futures)  # also one that failed, which would be remembered as long as its traceback


def _check(future: Future, client: Client) -> None:
    where, here = future.client.scheduler.address, client.scheduler.address
    if future.cancelled() or where != here:
        state = "was cancelled" if future.cancelled() else f"is of the cluster at {where}, not {here}"
        raise ClusterError(f"The future {future.key!r} {state}.", "Give futures, and the client that has them.")


def _call(function: Callable[[Any], Any], partition: Any) -> Any:
    return answered(function, (partition,))
