"""Connecting to a cluster: that of a client, of a scheduler, or a local one; and checking that it can do the work."""

import multiprocessing
import signal
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import cache, partial
from typing import Any

import dask
from distributed import Client, LocalCluster

from daskw2v.cluster.clocks import clocks_watched
from daskw2v.cluster.console import listening
from daskw2v.cluster.current import choose_client, leaving_thread
from daskw2v.cluster.logs import QuietTasks, interruptible, silenced, start_quiet_tracker
from daskw2v.cluster.one_worker import OneWorker
from daskw2v.cluster.scheduler import scheduler_watched
from daskw2v.cluster.waiting import await_worker, waits_for_workers
from daskw2v.cluster.workers import ask_workers
from daskw2v.config.resources import Resources
from daskw2v.errors import ClusterError, ParameterError, StoreError, counted
from daskw2v.kernels.compilation import compiling_said
from daskw2v.progress import Listener, Progress, Watching
from daskw2v.store.storage import Store

# Each task takes and frees arrays of some megabytes. By Dask's default malloc returns them to the system at once, and
# gets new pages for each task: up to a third of a training's processor time.
# Profiles and ticks ten times as rare are as good.
_PROCESSES = {
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 1 << 25,  # the most that glibc takes
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 1 << 28,
    "distributed.worker.profile.interval": "100ms",
    "distributed.admin.tick.interval": "200ms",  # each process of a cluster ticks: scheduler, nannies, workers
}
# A worker that is lost is started again by its nanny. Dask gives up both for good if that takes longer than 15 s, as it
# may where the machine is busy: the run would wait for workers that never come.
_RESTARTING = {"distributed.deploy.lost-worker-timeout": "1 hour"}
_SAME = ("python", "daskw2v", "numba", "zarr", "numpy", "dask", "distributed")


def _dask_default(n_workers: int) -> Mapping[str, Any]:
    return {}


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
    given: Client | None,
    work: Store | None,
    resources: Resources,
    listener: Listener,
    options: Callable[[int], Mapping[str, Any]] = _dask_default,
) -> Iterator[Client]:
    """Yield the client of a call: one that is there (`choose_client`), or one that is connected for the block.

    The listener is told which, and of all that is waited for. Called in a task of the same cluster, the task leaves its
    thread to others for the block. A client that is there is then as it was before.

    Parameters
    ----------
    given
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
    there = choose_client(given, resources)
    opened = connect(resources, options) if there is None else nullcontext(there.client)
    with waits_for_workers(resources, listener), opened as client, scheduler_watched(), leaving_thread(client):
        where = _local(client, resources) if there is None else f"{there.title} at {client.scheduler.address}"
        dashboard = f", dashboard at {client.dashboard_link}" if client.dashboard_link else ""
        listener(Progress("cluster", 0, 0, "workers", message=where + dashboard))
        check_cluster(client, work)
        with compiling_said(client, listener), clocks_watched(client):
            yield client


def _local(client: Client, resources: Resources) -> str:
    """Return what `connect` has connected to, in words."""
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
    given: Client | None, work: Store, resources: Resources, listener: Watching
) -> Iterator[tuple[Callable[[], Client], Listener]]:
    """Give a function that returns the client of a call, connected when it is first called, and the listener.

    Raises as `choose_client` and `listening` do at once, and as `connected` does later.
    """
    choose_client(given, resources)
    with listening(listener) as heard, opened_once(partial(connected, given, work, resources, heard)) as client:
        yield client, heard


@contextmanager
def connect(
    resources: Resources, options: Callable[[int], Mapping[str, Any]] = _dask_default, timeout: float = 60
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
    given = options(resources.workers)
    started = _are_processes(resources, given)
    cluster = _start_processes(resources, given) if started else OneWorker(resources.threads, **given)
    with interruptible(), dask.config.set(_RESTARTING), ExitStack() as ending:
        client = ending.enter_context(Client(ending.enter_context(cluster), set_as_default=False))
        client.register_plugin(QuietTasks())
        try:
            yield client
        finally:
            with silenced():  # Dask logs what is ended in the middle of a task
                ending.close()


def _are_processes(resources: Resources, given: Mapping[str, Any]) -> bool:
    """Tell whether local workers are processes: as asked for, or where one worker in this process would not do."""
    needs = {"workers": resources.workers > 1, "memory_limit": resources.memory_limit != "auto",
             "host": resources.host is not None, "device": "worker_class" in given}  # fmt: skip
    needing = [f"{name}={getattr(resources, name)!r}" for name, needed in needs.items() if needed]
    if resources.processes is False and needing:
        raise ParameterError(
            f"processes=False: a worker in this process cannot have {' and '.join(needing)}.",
            f"Leave out processes, or {' and '.join(needing)}.",
        )
    return bool(needing) if resources.processes is None else resources.processes


def _start_processes(resources: Resources, given: Mapping[str, Any]) -> LocalCluster:
    """Start a process for each worker, and for each a nanny, which starts it again if it dies.

    Raises
    ------
    ClusterError
        If the processes do not start.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        sys.exit(1)  # a worker's process that runs the caller's script again: the caller says why it ended
    with _uninterrupted(), dask.config.set(_PROCESSES), silenced():
        start_quiet_tracker()
        try:
            return LocalCluster(  # on loopback by default, so that nobody else can reach it
                n_workers=resources.workers,
                threads_per_worker=resources.threads,
                memory_limit=resources.memory_limit,
                host=resources.host or "127.0.0.1",
                dashboard_address="127.0.0.1:0",
                **given,
            )
        except RuntimeError as error:
            raise ClusterError(
                f"Worker processes ended before they were ready ({_cause(error)}).",
                'Each runs the script that starts it: put what the script does below `if __name__ == "__main__":`.',
            ) from None


def _cause(error: BaseException) -> BaseException:
    """Return the first of a chain of errors."""
    return error if error.__cause__ is None else _cause(error.__cause__)


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let processes that are started in the block ignore Ctrl-C; this process handles it and ends them in order."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set signal handlers
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        if before is not None:  # None: the handler was not set from Python
            signal.signal(signal.SIGINT, before)


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
    blind = sorted(address for address, sees in seen.items() if not sees)
    if blind:
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
        differing = [
            f"{name} {theirs.get(name)} against {ours[name]}" for name in _SAME if theirs.get(name) != ours[name]
        ]
        if differing:
            raise ClusterError(
                f"Worker {address} has other versions than the client: {', '.join(differing)}.",
                "Install the same versions everywhere.",
            )


def _sees(work: Store, name: str, token: str) -> bool:
    return any(work.read_bytes(name) == token.encode() for _ in range(2))  # half an answer, or an old one, may come
