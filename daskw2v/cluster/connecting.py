"""The client of a call: the caller's, Dask's current one, or one connected to a scheduler or a local cluster."""

import sys
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cache, partial
from ipaddress import ip_address
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import dask
from dask.base import is_dask_collection
from distributed import Client, Future, get_client, worker_client
from distributed.client import futures_of

from daskw2v.cluster.clocks import clocks_watched
from daskw2v.cluster.console import listening
from daskw2v.cluster.local import OneWorker, QuietTasks, interruptible, silenced, start_cluster
from daskw2v.cluster.waiting import await_worker, waits_for_workers
from daskw2v.cluster.workers import ask_workers, scheduler_watched, this_worker, workers_known
from daskw2v.config.resources import Resources
from daskw2v.errors import ClusterError, ParameterError, StoreError, counted
from daskw2v.kernels.compilation import reporting_compilation
from daskw2v.progress import Listener, Progress, Watching
from daskw2v.store.storage import Store

# A worker that is lost is started again by its nanny. Dask gives up both for good if that takes longer than 15 s, as it
# may where the machine is busy: the run would wait for workers that never come.
_RESTARTING = {"distributed.deploy.lost-worker-timeout": "1 hour"}
_SAME = ("python", "daskw2v", "numba", "zarr", "numpy", "dask", "distributed")


class NamedClient(NamedTuple):
    """A connected client, and its title in messages."""

    client: Client
    title: str


def choose_client(client: Client | None, resources: Resources) -> NamedClient | None:
    """Return the client that a call runs on; None where it is to connect itself, as `resources` say.

    It is the client that the call was passed. Otherwise, if `resources` neither name a scheduler nor describe a local
    cluster, it is Dask's current client: that of the task that calls, or the last one made (`distributed.get_client`).

    Parameters
    ----------
    client
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
    if client is not None:
        refuse_local(local, "client")
        return NamedClient(_usable(client, "client"), "the given client")
    if resources.scheduler is not None:
        refuse_local(local, f"scheduler={resources.scheduler!r}")
        return None
    try:
        current = None if local else get_client()
    except ValueError:
        current = None
    title = "the cluster of this task" if this_worker() else "Dask's current client"
    return None if current is None else NamedClient(_usable(current, "Dask's current client"), title)


def refuse_local(local: Mapping[str, Any], beside: str, ways: str = "") -> None:
    """Refuse values that describe a local cluster, beside a setting that names another one.

    Parameters
    ----------
    local
        The values by the names of their fields.
    beside
        The setting that names the other cluster, with its value.
    ways
        The ways in which they may have been set.

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


def starts_cluster(client: Client | None, resources: Resources) -> bool:
    """Return whether a call starts a local cluster; raises as `choose_client` does."""
    return choose_client(client, resources) is None and resources.scheduler is None


def check_here(client: Client | None, resources: Resources, problem: str, remedy: str) -> None:
    """Refuse a cluster whose workers may be on other machines.

    Parameters
    ----------
    client, resources
        As in `choose_client`.
    problem, remedy
        What workers on other machines could not do, and what the user can do about it.

    Raises
    ------
    ClusterError
        If the scheduler has an address that other machines reach; or as `choose_client` does.
    """
    chosen = choose_client(client, resources)
    address = resources.scheduler or resources.host if chosen is None else chosen.client.scheduler.address
    if address is not None and not _is_loopback(address):
        raise ClusterError(f"{problem}; the cluster at {address} may have workers on other machines.", remedy)


def _is_loopback(address: str) -> bool:
    """Return whether an address of Dask's is one that this machine alone reaches."""
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


class _ClosingClient(Client):  # type: ignore[misc]  # Dask has no types
    """A client that is closed where it cannot connect; otherwise a program would wait for it at its end."""

    def __init__(self, *args: Any, **options: Any) -> None:
        try:
            super().__init__(*args, **options)
        except BaseException:
            self.close()
            raise


@contextmanager
def connected(
    client: Client | None,
    work: Store | None,
    resources: Resources,
    listener: Listener,
    options: Callable[[int], Mapping[str, Any]] = lambda n_workers: {},
) -> Iterator[Client]:
    """Yield the client of a call: one that is there (`choose_client`), or one that is connected for the block.

    The listener is called with the client's name, and with a message for each wait. A call in a task of the same
    cluster leaves the task's thread to others for the block. A client that was there is afterwards as it was before.

    Parameters
    ----------
    client
        The argument `client` of the call.
    work
        The work directory; None where nothing is written.
    resources, options
        As in `connect`.
    listener
        Called with messages.

    Raises
    ------
    ParameterError, ClusterError, StoreError
        As `choose_client`, `connect` and `check_cluster` do.
    """
    chosen = choose_client(client, resources)
    opened = connect(resources, options) if chosen is None else nullcontext(chosen.client)
    with waits_for_workers(resources, listener), opened as connection, scheduler_watched(), leaving_thread(connection):
        where = _local(connection, resources) if chosen is None else f"{chosen.title} at {connection.scheduler.address}"
        dashboard = f", dashboard at {connection.dashboard_link}" if connection.dashboard_link else ""
        listener(Progress("cluster", 0, 0, "workers", message=where + dashboard))
        check_cluster(connection, work)
        with reporting_compilation(connection, listener), clocks_watched(connection):
            yield connection


def _local(client: Client, resources: Resources) -> str:
    """Return the title of the cluster that `connect` has connected to."""
    if resources.scheduler is not None:
        return f"the scheduler at {client.scheduler.address}"
    if isinstance(client.cluster, OneWorker):
        return "one worker in this process"
    return counted(resources.workers, "local worker")


@contextmanager
def opened_once(open_client: Callable[[], AbstractContextManager[Client]]) -> Iterator[Callable[[], Client]]:
    """Give a function that opens a client when it is first called, until the end of the block.

    A call whose results are all there asks no cluster, and starts none.
    """
    with ExitStack() as opened:
        yield cache(lambda: opened.enter_context(open_client()))


@contextmanager
def lazily_connected(
    client: Client | None, work: Store, resources: Resources, listener: Watching
) -> Iterator[tuple[Callable[[], Client], Listener]]:
    """Give a function that returns the client of a call, connected when it is first called, and the listener.

    Raises as `choose_client` and `listening` do at once, and as `connected` does later.
    """
    choose_client(client, resources)
    with listening(listener) as heard, opened_once(partial(connected, client, work, resources, heard)) as connection:
        yield connection, heard


@contextmanager
def connect(
    resources: Resources, options: Callable[[int], Mapping[str, Any]] = lambda n_workers: {}, timeout: float = 60
) -> Iterator[Client]:
    """Yield a client for `resources.scheduler`, or for a local cluster that is closed at the end of the block.

    Parameters
    ----------
    resources
        As in `train`.
    options
        Returns further options of Dask's LocalCluster for a number of workers, as `Device.local_cluster` does.
    timeout
        Seconds that the scheduler has to answer.

    Raises
    ------
    ClusterError
        If the scheduler cannot be reached.
    ParameterError
        If `processes` does not go with the other options.
    """
    if resources.scheduler is not None:
        try:
            client = _ClosingClient(resources.scheduler, timeout=f"{timeout}s", set_as_default=False)
        except (OSError, ValueError, TypeError, RuntimeError) as error:  # also for missing TLS settings
            raise ClusterError(
                f"No scheduler answers at scheduler={resources.scheduler!r} ({error}).",
                "Check the address and that the scheduler runs. For a scheduler with TLS, give tls://host:port and set "
                "the certificates in Dask's configuration: DASK_DISTRIBUTED__COMM__TLS__CA_FILE, "
                "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT and __KEY, or the same in ~/.config/dask/.",
            ) from error
        with client, interruptible():
            yield client
        return
    cluster = start_cluster(resources, options(resources.workers))
    with interruptible(), dask.config.set(_RESTARTING), ExitStack() as ending:
        client = ending.enter_context(Client(ending.enter_context(cluster), set_as_default=False))
        client.register_plugin(QuietTasks())
        try:
            yield client
        finally:
            with silenced():  # Dask logs workers that end in the middle of a task
                ending.close()


def check_cluster(client: Client, work: Store | None) -> None:
    """Wait for a worker; check that all present workers have the client's versions and see the work URL, if any.

    Raises
    ------
    ClusterError
        If no worker comes, versions differ, or a worker does not see the work URL.
    StoreError
        If the work URL cannot be written.
    """
    await_worker(client)
    _check_versions(client)
    if work is None:
        return
    name, token = f".probe-{uuid.uuid4().hex}", uuid.uuid4().hex
    try:
        work.write_bytes(name, token.encode())
    except OSError as error:
        raise StoreError(
            f"The work URL {work.url} cannot be written ({error}).",
            "Give a folder that you may write to, on a disk with free space.",
        ) from error
    try:
        seen = ask_workers(client, _sees, work, name, token)
    finally:
        (work / name).remove()
    if blind := sorted(address for address, sees in seen.items() if not sees):
        raise ClusterError(
            f"{len(blind)} of {len(seen)} workers do not see the work URL {work.url} ({', '.join(blind[:3])}).",
            "Give a work URL that client and workers share: a shared filesystem or an object store.",
        )


def _check_versions(client: Client) -> None:
    """Refuse workers with versions other than the client's, which could change results (Dask would only warn)."""
    versions = client.get_versions(packages=["daskw2v", "numba", "zarr"])
    ours = versions["client"]["packages"]
    for address, worker in versions["workers"].items():
        theirs = worker["packages"]
        names = [name for name in _SAME if theirs.get(name) != ours[name]]
        if names:
            differing = ", ".join(f"{name} {theirs.get(name)} against {ours[name]}" for name in names)
            problem = f"Worker {address} has other versions than the client: {differing}."
            raise ClusterError(problem, "Install the same versions everywhere.")


def _sees(work: Store, name: str, token: str) -> bool:
    return any(work.read_bytes(name) == token.encode() for _ in range(2))  # half an answer, or an old one, may come


@contextmanager
def leaving_thread(client: Client) -> Iterator[None]:
    """Leave the thread of a task to other tasks in the block, if it is one of the client's cluster.

    The caller waits for tasks, which otherwise might wait for its thread.
    """
    worker = this_worker()
    with worker_client() if worker and worker in workers_known(client) else nullcontext():
        yield


def check_futures(client: Client, collections: Sequence[Any]) -> None:
    """Refuse futures of another cluster.

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
    arguments = [(getattr(task, "args", ()), getattr(task, "kwargs", {})) for task in tasks]
    for future in futures_of([[each for each in collections if isinstance(each, Future)], tasks, arguments]):
        holder = future.client
        if holder is not client and holder.status == "running" and _identity(holder) != _identity(client):
            raise ClusterError(
                f"{future.key!r} is held by the cluster at {holder.scheduler.address}, but the run is on that at "
                f"{client.scheduler.address}.",
                "Give client, the one that has it, or give what is not persisted.",
            )
        if future.cancelled():
            problem = f"{future.key!r} was cancelled, or its client is closed."
            raise ClusterError(problem, "Give futures, and the client that has them.")


def _identity(client: Client) -> str:
    """Return the name that a scheduler has given itself; it may have several addresses."""
    return str(client.scheduler_info(n_workers=0)["id"])
