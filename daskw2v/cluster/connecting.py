"""The client of a call: the caller's client, Dask's current client, or a client of a scheduler or a local cluster."""

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

from daskw2v.cluster.clocks import watching_clocks
from daskw2v.cluster.console import listening
from daskw2v.cluster.local import OneWorker, QuietTasks, silencing_dask, silencing_interrupts, start_cluster
from daskw2v.cluster.waiting import await_worker, waits_for_workers
from daskw2v.cluster.workers import ask_workers, converting_scheduler_errors, this_worker, workers_known
from daskw2v.config.resources import Resources
from daskw2v.errors import ClusterError, ParameterError, StoreError, counted
from daskw2v.kernels.compilation import reporting_compilation
from daskw2v.progress import Listener, Progress, Watching
from daskw2v.store.storage import Store

# A nanny starts a lost worker again. Dask gives up worker and nanny for good if that takes longer than 15 s, as it may
# on a busy machine: the run would wait for workers that never come
_RESTARTING = {"distributed.deploy.lost-worker-timeout": "1 hour"}
_SAME_VERSIONS = ("python", "daskw2v", "numba", "zarr", "numpy", "dask", "distributed")  # on client and workers


GetClient = Callable[[], Client]  # returns the client of the cluster, which may be started by the call


class NamedClient(NamedTuple):
    """A connected client, and the title of its cluster in messages."""

    client: Client
    title: str


def choose_client(client: Client | None, resources: Resources) -> NamedClient | None:
    """Return the existing client that a call uses; None if the call has to connect to a cluster, as `resources` say.

    The client that was passed to the call comes first. Otherwise, if `resources` neither name a scheduler nor describe
    a local cluster, Dask's current client is used: in a task, the task's client; else the client that was made last
    (`distributed.get_client`).

    Parameters
    ----------
    client
        The argument `client` of the call; None if none was passed.
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
        remedy = "Train in the Windows Subsystem for Linux. Models are opened, queried and exported here."
        raise ClusterError("Vectors are trained on Linux and macOS, not on Windows.", remedy)
    local = resources.local_cluster
    if client is not None:
        refuse_local(local, "client")
        return NamedClient(_check_usable(client, "client"), "the given client")
    if resources.scheduler is not None:
        refuse_local(local, f"scheduler={resources.scheduler!r}")
        return None
    try:
        current = None if local else get_client()
    except ValueError:
        current = None
    title = "the cluster of this task" if this_worker() else "Dask's current client"
    return None if current is None else NamedClient(_check_usable(current, "Dask's current client"), title)


def refuse_local(local: Mapping[str, Any], beside: str, ways: str = "") -> None:
    """Refuse settings of a local cluster beside a setting that names another cluster.

    Parameters
    ----------
    local
        The settings of a local cluster that differ from their defaults: values by names.
    beside
        The setting that names the other cluster, with its value, such as "scheduler='tcp://host:8786'".
    ways
        Text for the remedy: the ways in which the settings may have been set.

    Raises
    ------
    ParameterError
        If `local` is not empty.
    """
    if local:
        described = " and ".join(f"{name}={value!r}" for name, value in local.items())
        remedy = f"Leave out {' and '.join(local)}{ways}, or leave out {beside.partition('=')[0]}."
        raise ParameterError(f"{described} would be ignored: the cluster of {beside} has its workers already.", remedy)


def starts_cluster(client: Client | None, resources: Resources) -> bool:
    """Return whether a call with these arguments starts a local cluster; raises as `choose_client` does."""
    return choose_client(client, resources) is None and resources.scheduler is None


def refuse_remote_workers(client: Client | None, resources: Resources, problem: str, remedy: str) -> None:
    """Refuse a cluster of a call whose workers may be on other machines.

    Parameters
    ----------
    client, resources
        As in `choose_client`.
    problem, remedy
        What workers on other machines could not do, and what the user can do about it, for the message.

    Raises
    ------
    ClusterError
        If other machines can reach the address of the scheduler; or as `choose_client` does.
    """
    chosen = choose_client(client, resources)
    address = resources.scheduler or resources.host if chosen is None else chosen.client.scheduler.address
    if address is not None and not _is_loopback(address):
        raise ClusterError(f"{problem}; the cluster at {address} may have workers on other machines.", remedy)


def _is_loopback(address: str) -> bool:
    """Return whether only this machine can reach an address such as tcp://127.0.0.1:8786; no name is resolved."""
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    if parts.scheme == "inproc" or parts.hostname == "localhost":
        return True
    try:
        return ip_address(parts.hostname or "").is_loopback
    except ValueError:  # a name
        return False


def _check_usable(client: Client, title: str) -> Client:
    """Return a client; refuse it by a ParameterError if it is closed or asynchronous. `title` names it in messages."""
    if client.status in ("closing", "closed"):
        raise ParameterError(f"{title} is closed.", "Give one that is connected, such as distributed.Client(address).")
    if client.asynchronous:
        raise ParameterError(
            f"{title} is asynchronous, and cannot be waited for here.",
            "Give distributed.Client(address), without asynchronous=True; from a coroutine, call daskw2v in a thread: "
            "await asyncio.to_thread(...).",
        )
    return client


class _ClosingClient(Client):  # type: ignore[misc]  # Dask has no types
    """A client that is closed if it cannot connect; a program would wait for an open client at its end."""

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
    """Yield the client of a call: an existing client (`choose_client`), or a client that is connected for the block.

    The listener is called with the title of the cluster, and with a message for each wait. A call in a task of the same
    cluster leaves the task's thread to other tasks for the block. An existing client is afterwards as it was before.

    Parameters
    ----------
    client
        The argument `client` of the call; None if none was passed.
    work
        The work directory; None if nothing is written.
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
    with (
        waits_for_workers(resources, listener),
        opened as connection,
        converting_scheduler_errors(),
        leaving_thread(connection),
    ):
        title = f"{chosen.title} at {connection.scheduler.address}" if chosen else _cluster_title(connection, resources)
        dashboard = f", dashboard at {connection.dashboard_link}" if connection.dashboard_link else ""
        listener(Progress("cluster", 0, 0, "workers", message=title + dashboard))
        check_cluster(connection, work)
        with reporting_compilation(connection, listener), watching_clocks(connection):
            yield connection


def _cluster_title(client: Client, resources: Resources) -> str:
    """Return the title, for messages, of the cluster that `connect` has connected a client to."""
    if resources.scheduler is not None:
        return f"the scheduler at {client.scheduler.address}"
    if isinstance(client.cluster, OneWorker):
        return "one worker in this process"
    return counted(resources.workers, "local worker")


@contextmanager
def opening_once(open_client: Callable[[], AbstractContextManager[Client]]) -> Iterator[GetClient]:
    """Yield a function that returns a client, which is opened by the first call and closed at the end of the block.

    A block that does not call the function, since all its results exist already, contacts and starts no cluster.

    Parameters
    ----------
    open_client
        Returns a context manager that yields the client.
    """
    with ExitStack() as opened:
        yield cache(lambda: opened.enter_context(open_client()))


@contextmanager
def lazily_connected(
    client: Client | None, work: Store, resources: Resources, listener: Watching
) -> Iterator[tuple[GetClient, Listener]]:
    """Yield a function that returns the client of a call, which it connects when first called; and the listener.

    Parameters
    ----------
    client, work, resources
        As in `connected`.
    listener
        The argument `listener` of the call, as in `listening`.

    Raises
    ------
    ParameterError, ClusterError, StoreError
        At once as `choose_client` and `listening` do, and in the block as `connected` does.
    """
    choose_client(client, resources)
    with listening(listener) as listen, opening_once(partial(connected, client, work, resources, listen)) as get_client:
        yield get_client, listen


@contextmanager
def connect(
    resources: Resources, options: Callable[[int], Mapping[str, Any]] = lambda n_workers: {}, timeout: float = 60
) -> Iterator[Client]:
    """Yield a new client, of `resources.scheduler` or of a new local cluster, which are closed at the end of the block.

    Parameters
    ----------
    resources
        As in `train`.
    options
        Function of the number of workers that returns further options of Dask's LocalCluster, as
        `Device.local_cluster` does.
    timeout
        Seconds to wait for the answer of a scheduler.

    Raises
    ------
    ClusterError
        If the scheduler cannot be reached, or worker processes do not start; or as `options` does.
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
        with client, silencing_interrupts():
            yield client
        return
    cluster = start_cluster(resources, options(resources.workers))
    with silencing_interrupts(), dask.config.set(_RESTARTING), ExitStack() as ending:
        client = ending.enter_context(Client(ending.enter_context(cluster), set_as_default=False))
        client.register_plugin(QuietTasks())
        try:
            yield client
        finally:
            with silencing_dask():  # Dask logs workers that end in the middle of a task
                ending.close()


def check_cluster(client: Client, work: Store | None) -> None:
    """Wait for a worker; check that all workers of the cluster have the client's versions and see the work directory.

    Parameters
    ----------
    client
        The cluster.
    work
        The work directory; None if nothing is written.

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
        problem = f"The work URL {work.url} cannot be written ({error})."
        raise StoreError(problem, "Give a folder that you may write to, on a disk with free space.") from error
    try:
        answers = ask_workers(client, _can_read, work, name, token)
    finally:
        (work / name).remove()
    if blind := sorted(address for address, can_read in answers.items() if not can_read):
        raise ClusterError(
            f"{len(blind)} of {len(answers)} workers do not see the work URL {work.url} ({', '.join(blind[:3])}).",
            "Give a work URL that client and workers share: a shared filesystem or an object store.",
        )


def _check_versions(client: Client) -> None:
    """Raise a ClusterError if a worker has other versions than the client, which could change results."""
    versions = client.get_versions(packages=["daskw2v", "numba", "zarr"])
    client_versions = versions["client"]["packages"]
    for address, worker in versions["workers"].items():
        worker_versions = worker["packages"]
        names = [name for name in _SAME_VERSIONS if worker_versions.get(name) != client_versions[name]]
        if names:
            differing = ", ".join(f"{n} {worker_versions.get(n)} against {client_versions[n]}" for n in names)
            problem = f"Worker {address} has other versions than the client: {differing}."
            raise ClusterError(problem, "Install the same versions everywhere.")


def _can_read(work: Store, name: str, token: str) -> bool:
    """Return whether a file of a work directory has a token as its content, for this process.

    The file is read twice, as a store may answer with the first half or an old version.
    """
    return any(work.read_bytes(name) == token.encode() for _ in range(2))


@contextmanager
def leaving_thread(client: Client) -> Iterator[None]:
    """Leave the thread of this task to other tasks in the block, if this is a task of the client's cluster.

    The caller waits for tasks in the block, which otherwise might wait for the caller's thread.
    """
    worker = this_worker()
    with worker_client() if worker and worker in workers_known(client) else nullcontext():
        yield


def check_futures(client: Client, collections: Sequence[Any]) -> None:
    """Refuse futures, and persisted Dask objects, of another cluster.

    Parameters
    ----------
    client
        The client that is to compute the collections.
    collections
        Futures, and Dask objects, which contain futures if they were persisted.

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
        if holder is not client and holder.status == "running" and _scheduler_id(holder) != _scheduler_id(client):
            raise ClusterError(
                f"{future.key!r} is held by the cluster at {holder.scheduler.address}, but the run is on that at "
                f"{client.scheduler.address}.",
                "Give client, the one that has it, or give what is not persisted.",
            )
        if future.cancelled():
            problem = f"{future.key!r} was cancelled, or its client is closed."
            raise ClusterError(problem, "Give futures, and the client that has them.")


def _scheduler_id(client: Client) -> str:
    """Return the id of a client's scheduler, which may have several addresses."""
    return str(client.scheduler_info(n_workers=0)["id"])
