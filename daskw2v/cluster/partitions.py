"""Runs a function on each partition of a Dask collection, where the partition is."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from dask import delayed
from distributed import Client

from daskw2v.cluster.current import check_futures
from daskw2v.cluster.scheduler import AGAIN
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
        What the function raises, and what computing a partition raises.
    """
    check_futures(client, partitions)
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
    except ClusterError as error:
        if "lost dependencies" not in str(error.__cause__):
            raise
        raise ClusterError(
            "The cluster does not hold what partitions are made of (lost dependencies).",
            f"What was persisted is on the cluster of the client that persisted it: give client. {AGAIN}",
        ) from error.__cause__
    finally:
        client.cancel(futures)  # also one that failed, which would be remembered as long as its traceback


def _call(function: Callable[[Any], Any], partition: Any) -> Any:
    return answered(function, (partition,))
