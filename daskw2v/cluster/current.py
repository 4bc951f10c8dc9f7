"""Which client a call runs on, where one is there: the one that is given, or Dask's current one."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from dask.base import is_dask_collection
from distributed import Client, Future, get_client, worker_client
from distributed.client import futures_of

from daskw2v.cluster.workers import this_worker, workers_known
from daskw2v.config.resources import Resources
from daskw2v.errors import ClusterError, ParameterError


class NamedClient(NamedTuple):
    """A client that is there, and what to call it."""

    client: Client
    title: str


def choose_client(given: Client | None, resources: Resources) -> NamedClient | None:
    """Return the client that a call runs on; None where it is to connect itself, as `resources` say.

    It is the client that is given. Otherwise, if `resources` neither name a scheduler nor describe a local cluster, it
    is Dask's current client: that of the task that calls, or the last one made (`distributed.get_client`).

    Parameters
    ----------
    given
        The argument `client` of the call.
    resources
        As in `train`.

    Raises
    ------
    ParameterError
        If the client is closed or asynchronous, or `resources` describe a local cluster beside a client or a scheduler.
    ClusterError
        On Windows.
    """
    if sys.platform == "win32":
        raise ClusterError(
            "Vectors are trained on Linux and macOS, not on Windows.",
            "Train in the Windows Subsystem for Linux. Models are opened, queried and exported here.",
        )
    local = resources.local_cluster
    if given is not None or resources.scheduler is not None:
        refuse_local(local, "client" if given is not None else f"scheduler={resources.scheduler!r}")
    if given is not None:
        return NamedClient(_usable(given, "client"), "the given client")
    if resources.scheduler is not None or local:
        return None
    try:
        current = get_client()
    except ValueError:
        return None
    title = "the cluster of this task" if this_worker() else "Dask's current client"
    return NamedClient(_usable(current, "Dask's current client"), title)


def refuse_local(local: Mapping[str, Any], beside: str, ways: str = "") -> None:
    """Refuse values that describe a local cluster, beside what names another one.

    Parameters
    ----------
    local
        The values by the names of their fields.
    beside
        The setting that names the other cluster, with its value.
    ways
        In which ways they may have been given.

    Raises
    ------
    ParameterError
        If there are any.
    """
    if local:
        described = " and ".join(f"{name}={value!r}" for name, value in local.items())
        raise ParameterError(
            f"{described} would be ignored: the cluster of {beside} has its workers already.",
            f"Leave out {' and '.join(local)}{ways}, or leave out {beside.partition('=')[0]}.",
        )


def starts_cluster(given: Client | None, resources: Resources) -> bool:
    """Tell whether a call starts a local cluster; raises as `choose_client` does."""
    return choose_client(given, resources) is None and resources.scheduler is None


def check_here(given: Client | None, resources: Resources, problem: str, remedy: str) -> None:
    """Refuse a cluster whose workers may be on other machines.

    Parameters
    ----------
    given, resources
        As in `choose_client`.
    problem, remedy
        What those workers could not do, and what to do about it.

    Raises
    ------
    ClusterError
        If the scheduler has an address that other machines reach; or as `choose_client` does.
    """
    there = choose_client(given, resources)
    address = resources.scheduler or resources.host if there is None else there.client.scheduler.address
    if address is not None and not _is_loopback(address):
        raise ClusterError(f"{problem}; the cluster at {address} may have workers on other machines.", remedy)


def _is_loopback(address: str) -> bool:
    """Tell whether an address of Dask's is one that this machine alone reaches."""
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    if parts.scheme == "inproc" or parts.hostname == "localhost":
        return True
    try:
        return ip_address(parts.hostname or "").is_loopback
    except ValueError:  # a name
        return False


def _usable(client: Client, what: str) -> Client:
    """Return a client that can be waited for in this thread."""
    if client.status in ("closing", "closed"):
        raise ParameterError(f"{what} is closed.", "Give one that is connected, such as distributed.Client(address).")
    if client.asynchronous:
        raise ParameterError(
            f"{what} is asynchronous, and cannot be waited for here.",
            "Give distributed.Client(address), without asynchronous=True; from a coroutine, call daskw2v in a thread: "
            "await asyncio.to_thread(...).",
        )
    return client


@contextmanager
def leaving_thread(client: Client) -> Iterator[None]:
    """Leave the thread of a task to other tasks in the block, if it is one of the client's cluster.

    The caller waits for tasks, which otherwise might wait for its thread.
    """
    if (worker := this_worker()) and worker in workers_known(client):
        with worker_client():
            yield
    else:
        yield


def check_futures(client: Client, collections: Sequence[Any]) -> None:
    """Refuse what another cluster holds.

    Parameters
    ----------
    client
        The client that is to compute the collections.
    collections
        Futures, or Dask's objects, which may be made of futures: they were persisted.

    Raises
    ------
    ClusterError
        If a future was cancelled, or is of another cluster.
    """
    graphs = [each.__dask_graph__() for each in collections if is_dask_collection(each)]
    tasks = [task for graph in {id(graph): graph for graph in graphs}.values() for task in graph.values()]
    taken = [(getattr(task, "args", ()), getattr(task, "kwargs", {})) for task in tasks]
    bare = [each for each in collections if isinstance(each, Future)]
    for future in futures_of([bare, tasks, taken]):
        holder = future.client
        if holder is not client and holder.status == "running" and _identity(holder) != _identity(client):
            raise ClusterError(
                f"{future.key!r} is held by the cluster at {holder.scheduler.address}, but the run is on that at "
                f"{client.scheduler.address}.",
                "Give client, the one that has it, or give what is not persisted.",
            )
        if future.cancelled():
            raise ClusterError(
                f"{future.key!r} was cancelled, or its client is closed.", "Give futures, and the client that has them."
            )


def _identity(client: Client) -> str:
    """Return the name that a scheduler has given itself; it may have several addresses."""
    return str(client.scheduler_info(n_workers=0)["id"])
