"""The Dask cluster a run works on: the caller's, the one at an address, or a local one for the time being."""

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from distributed import Client, Future, KilledWorker, LocalCluster, wait

from daskw2v.errors import ClusterError, TrainingError
from daskw2v.params import Resources
from daskw2v.storage import Store

_PATIENCE = 60  # seconds to wait for a first worker
_ALONE = 300  # seconds to wait while all workers are gone
_CHECK = 10  # seconds between looks at the cluster


@contextmanager
def connect(resources: Resources) -> Iterator[Client]:
    """Give a client for `resources.scheduler`, or for a local cluster that ends with the block.

    Raises
    ------
    ClusterError
        If the scheduler cannot be reached.
    """
    if resources.scheduler is not None:
        try:
            client = Client(resources.scheduler, timeout=f"{_PATIENCE}s")
        except (OSError, ValueError) as error:
            raise ClusterError(
                f"No scheduler answers at scheduler={resources.scheduler!r} ({error}).",
                "Check the address and that the scheduler runs.",
            ) from error
        with client:
            yield client
        return
    with (
        LocalCluster(  # bound to loopback: nobody else can reach it
            n_workers=resources.workers,
            threads_per_worker=resources.threads,
            memory_limit=resources.memory_limit,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def check_cluster(client: Client, work: Store) -> None:
    """Check that there are workers, of the client's versions, and that all of them see the work URL.

    Raises
    ------
    ClusterError
        If one of these does not hold.
    """
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError:
        raise ClusterError(
            f"The cluster at {client.scheduler.address} has no worker after {_PATIENCE} s.",
            "Start workers, or raise the limits of what starts them.",
        ) from None
    try:
        client.get_versions(check=True, packages=["daskw2v", "numba", "zarr"])
    except ValueError as error:
        raise ClusterError(
            f"Client and workers run different versions: {error}", "Install the same versions everywhere."
        ) from error
    name, token = f".probe-{uuid.uuid4().hex}", uuid.uuid4().hex
    work.write_bytes(name, token.encode())
    try:
        seen = client.run(_sees, work, name, token)
    finally:
        (work / name).remove()
    blind = sorted(address for address, sees in seen.items() if not sees)
    if blind:
        raise ClusterError(
            f"{len(blind)} of {len(seen)} workers do not see the work URL {work.url} ({', '.join(blind[:3])}).",
            "Give a work URL that client and workers share: a shared filesystem or an object store.",
        )


def _sees(work: Store, name: str, token: str) -> bool:
    return work.read_bytes(name) == token.encode()


def total_threads(client: Client) -> int:
    """Return the number of threads of all workers, at least 1."""
    return max(1, int(sum(client.nthreads().values())))


def gather(client: Client, futures: Sequence[Future]) -> list[Any]:
    """Wait for tasks and return their results, in order.

    Raises
    ------
    ClusterError
        If the cluster has had no worker for a while: the tasks would wait for ever.
    TrainingError
        If a task keeps killing its workers.
    Exception
        What a task raised.
    """
    alone_since: float | None = None
    while True:
        try:
            wait(futures, timeout=_CHECK)
            break
        except TimeoutError:
            if client.nthreads():
                alone_since = None
                continue
            alone_since = alone_since or time.monotonic()
            if time.monotonic() - alone_since > _ALONE:
                raise ClusterError(
                    f"The cluster has had no worker for {_ALONE} s.",
                    "Start workers and give the same command again: it goes on from the last checkpoint.",
                ) from None
    try:
        return list(client.gather(list(futures)))
    except KilledWorker as error:
        raise TrainingError(
            f"A task died with its worker, several times: {error}",
            "The usual cause is memory: raise memory_limit, use fewer threads a worker, or train a smaller model "
            "(max_final_vocab, vector_size). The same command then goes on from the last checkpoint.",
        ) from error
