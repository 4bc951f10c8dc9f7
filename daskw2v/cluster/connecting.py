"""Connecting to a cluster: the caller's, the one at an address, or a local one; and whether it can do the work."""

import signal
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numba
from distributed import Client, LocalCluster, Nanny

from daskw2v.cluster.waiting import await_worker
from daskw2v.cluster.workers import ask_workers
from daskw2v.errors import ClusterError, StoreError
from daskw2v.gpus import RESOURCE, VARIABLE, visible_gpus
from daskw2v.logs import QuietTasks, silenced, start_quiet_tracker
from daskw2v.params import Resources
from daskw2v.storage import Store

_PATIENCE = 60  # seconds that a scheduler has to answer
_SAME = ("python", "daskw2v", "numba", "zarr", "numpy", "dask", "distributed")


@contextmanager
def connect(resources: Resources) -> Iterator[Client]:
    """Give a client for `resources.scheduler`, or for a local cluster that ends with the block.

    Raises
    ------
    ClusterError
        If the scheduler cannot be reached, or this machine has fewer GPUs than workers that are to train on one each.
    """
    if resources.scheduler is not None:
        try:
            client = Client(resources.scheduler, timeout=f"{_PATIENCE}s")
        except (OSError, ValueError, TypeError, RuntimeError) as error:  # Dask's words for what it lacks to use TLS
            raise ClusterError(
                f"No scheduler answers at scheduler={resources.scheduler!r} ({error}).",
                "Check the address and that the scheduler runs. One that uses TLS has an address tls://host:port, and "
                "Dask's configuration has to name certificates: DASK_DISTRIBUTED__COMM__TLS__CA_FILE, "
                "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT and __KEY, or the same in ~/.config/dask/.",
            ) from error
        with client:
            yield client
        return
    with _uninterrupted():
        start_quiet_tracker()
        cluster = LocalCluster(  # bound to loopback unless told: nobody else can reach it
            n_workers=resources.workers,
            threads_per_worker=resources.threads,
            memory_limit=resources.memory_limit,
            host=resources.host or "127.0.0.1",
            dashboard_address="127.0.0.1:0",
            **(_with_gpus(resources.workers) if resources.device == "cuda" else {}),
        )
    with ExitStack() as ending:
        client = ending.enter_context(Client(ending.enter_context(cluster)))
        client.register_plugin(QuietTasks())
        try:
            yield client
        finally:
            with silenced():  # workers that end amid a task are killed
                ending.close()


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Let processes that are started meanwhile ignore Ctrl-C: it reaches this one, which ends them in order."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are not ours to set
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        if before is not None:  # else it was not set from Python
            signal.signal(signal.SIGINT, before)


class _GpuNanny(Nanny):  # type: ignore[misc]  # Dask is untyped
    """Starts a worker, again where it dies, that sees one GPU: that of its number."""

    def __init__(self, *args: Any, name: int, gpus: list[str], **options: Any) -> None:
        super().__init__(*args, name=name, env={VARIABLE: gpus[name]}, **options)


def _with_gpus(n_workers: int) -> dict[str, Any]:
    """Return the options of a local cluster whose workers have a GPU each."""
    options: dict[str, Any] = {"resources": {RESOURCE: 1}}
    gpus = visible_gpus()
    if numba.config.ENABLE_CUDASIM or (n_workers == 1 and not gpus):  # what is lacking, the worker knows better
        return options
    if len(gpus) < n_workers:
        raise ClusterError(
            f"workers={n_workers} with device='cuda' takes a GPU for each worker, and {len(gpus)} can be seen here "
            f"({VARIABLE}={','.join(gpus)}).",
            f"Give workers={len(gpus) or 1}, let {VARIABLE} name more GPUs, or start workers on other machines.",
        )
    return {**options, "worker_class": _GpuNanny, "gpus": gpus}


def check_cluster(client: Client, work: Store) -> None:
    """Wait for a worker; check that all there are have the client's versions, and see the work URL.

    Raises
    ------
    ClusterError
        If one of these does not hold.
    StoreError
        If nothing can be written there.
    """
    await_worker(client)
    _check_versions(client)
    name, token = f".probe-{uuid.uuid4().hex}", uuid.uuid4().hex
    try:
        work.write_bytes(name, token.encode())
    except OSError as error:
        raise StoreError(
            f"The work URL {work.url} cannot be written ({error}).",
            "Give a folder that you may write to, on a disk with room.",
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
    """Refuse workers whose machine code, pickles or stores could differ from the client's (Dask would only warn)."""
    versions = client.get_versions(packages=["daskw2v", "numba", "zarr"])
    ours = versions["client"]["packages"]
    for address, worker in versions["workers"].items():
        theirs = worker["packages"]
        differing = [
            f"{name} {theirs.get(name)} against {ours[name]}" for name in _SAME if theirs.get(name) != ours[name]
        ]
        if differing:
            raise ClusterError(
                f"Worker {address} runs other versions than the client: {', '.join(differing)}.",
                "Install the same versions everywhere.",
            )


def _sees(work: Store, name: str, token: str) -> bool:
    return work.read_bytes(name) == token.encode()
