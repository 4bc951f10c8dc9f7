"""The Dask cluster a run works on: the caller's, the one at an address, or a local one for the time being."""

import asyncio
import math
import resource
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from concurrent.futures import wait as wait_for_thread
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from distributed import Client, Future, KilledWorker, LocalCluster, Worker, get_worker, wait
from distributed.client import ClosedClientError
from distributed.comm import CommClosedError

from daskw2v.errors import ClusterError, StoreError, TrainingError
from daskw2v.logs import QuietTasks, silenced, start_quiet_tracker
from daskw2v.params import Resources
from daskw2v.shared import given_bytes
from daskw2v.storage import Store

_PATIENCE = 60  # seconds to wait for a first worker
_ALONE = 300  # seconds to wait while all workers are gone
_CHECK = 10  # seconds between looks at the cluster
_AGAIN = "The same command goes on where this one stopped."
_SAME = ("python", "daskw2v", "numba", "zarr", "numpy", "dask", "distributed")


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


def check_cluster(client: Client, work: Store) -> None:
    """Check that there are workers, of the client's versions, and that all of them see the work URL.

    Raises
    ------
    ClusterError
        If one of these does not hold.
    StoreError
        If nothing can be written there.
    """
    try:
        client.wait_for_workers(1, timeout=_PATIENCE)
    except TimeoutError:
        raise ClusterError(
            f"The cluster at {client.scheduler.address} has no worker after {_PATIENCE} s.",
            "Start workers, or raise the limits of what starts them.",
        ) from None
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


def ask_workers(
    client: Client, function: Callable[..., Any], *args: Any, workers: Collection[str] | None = None
) -> dict[str, Any]:
    """Return what a function returns on each worker, by its address; those that leave meanwhile are left out.

    Raises
    ------
    ClusterError
        If the scheduler is gone.
    Exception
        What the function raised on one of them.
    """
    asked = None if workers is None else list(workers)
    try:
        answers: dict[str, Any] = client.run(function, *args, workers=asked, on_error="return")
    except OSError as error:  # no worker's: those are answers
        raise _scheduler_gone() from error
    for address in [address for address, answer in answers.items() if isinstance(answer, Exception)]:
        raised = answers.pop(address)
        left = isinstance(raised, OSError) and address not in workers_known(client)
        if not left and not isinstance(raised, CommClosedError):
            raise raised
    return answers


def _sees(work: Store, name: str, token: str) -> bool:
    return work.read_bytes(name) == token.encode()


class Trainers(NamedTuple):
    """The workers that train.

    Parameters
    ----------
    threads
        Their threads, by address.
    takes
        The Dask resources that a training task takes of its worker; None where all workers train.
    """

    threads: Mapping[str, int]
    takes: dict[str, int] | None = None

    def preferring(self, worker: str) -> dict[str, Any]:
        """Return what `submit` is told so that this worker does a task, or any other where it is gone ("": any)."""
        # Not where tasks take resources: with that worker gone, Dask would not look at these either
        return {"workers": [worker], "allow_other_workers": True} if worker and not self.takes else {}


def find_trainers(client: Client, resource: str | None) -> Trainers:
    """Return the workers that declare a Dask resource (`dask worker --resources GPU=1`), or all where none does."""
    workers = workers_known(client)
    if resource is not None and (having := {name: w for name, w in workers.items() if w["resources"].get(resource)}):
        return Trainers({name: worker["nthreads"] for name, worker in having.items()}, {resource: 1})
    return Trainers({name: worker["nthreads"] for name, worker in workers.items()})


def workers_known(client: Client) -> dict[str, Any]:
    """Return what the scheduler knows of each worker, by its address.

    Raises
    ------
    ClusterError
        If the scheduler is gone.
    """
    known = client.scheduler_info(n_workers=-1)
    if "workers" not in known:
        raise _scheduler_gone()
    return dict(known["workers"])


def total_threads(client: Client) -> int:
    """Return the number of threads of all workers, at least 1."""
    return max(1, sum(int(worker["nthreads"]) for worker in workers_known(client).values()))


def shared_memory(client: Client) -> float:
    """Return the bytes that all workers hold together when each has its share by threads and the first is full.

    Infinity where none has a limit.
    """
    workers = workers_known(client).values()
    a_thread = min(((worker["memory_limit"] or math.inf) / worker["nthreads"] for worker in workers), default=math.inf)
    return float(a_thread * total_threads(client))


class Usage(NamedTuple):
    """What a worker process has used since it began: most resident memory, and bytes sent to other workers.

    What lies in shared memory is not sent.
    """

    threads: int
    peak_memory: int
    sent: int


def usage(client: Client) -> dict[str, Usage]:
    """Return the usage of each worker that answers, by its address."""
    return ask_workers(client, _usage)


def _usage(dask_worker: Worker) -> Usage:
    return Usage(dask_worker.state.nthreads, peak_memory(), dask_worker.transfer_outgoing_bytes_total - given_bytes())


def peak_memory() -> int:
    """Return the most bytes that this process had resident.

    On Linux `getrusage` would also count the process that began this one: a fork's memory stays in its peak.
    """
    if sys.platform != "linux":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    status = Path("/proc/self/status").read_text(encoding="utf-8", errors="replace")
    return int(status.split("VmHWM:", 1)[1].split(maxsplit=1)[0]) << 10


def this_worker() -> str:
    """Return the address of the worker that runs this task; nothing outside of tasks."""
    try:
        return str(get_worker().address)
    except ValueError:
        return ""


def first_done(client: Client, futures: Collection[Future], takes: Mapping[str, int] | None = None) -> set[Future]:
    """Wait until some of the tasks are done, and return these.

    Parameters
    ----------
    client, futures
        The tasks, and who knows of them.
    takes
        The resources that some of them take.

    Raises
    ------
    ClusterError
        If the cluster has had no worker for a while, or none with these resources, or its scheduler is gone: the tasks
        would wait for ever.
    """
    patience = _Patience(client, takes)
    while True:
        try:
            with scheduler_watched():
                done: set[Future] = wait(futures, timeout=_CHECK, return_when="FIRST_COMPLETED").done
        except TimeoutError as error:
            # It stands in a frame of its own traceback; that cycle keeps our callers' frames, and by these all results
            # of a round, until the garbage is collected
            error.__traceback__ = None
            patience.check()
        else:
            return done


class _Patience:
    """Waits as long as there are workers that could do what is waited for, and some time longer."""

    def __init__(self, client: Client, takes: Mapping[str, int] | None) -> None:
        self._client, self._takes = client, takes
        self._alone_since: float | None = None

    def check(self) -> None:
        """Raise a ClusterError where there has been no such worker for a while."""
        if any(_has(worker, self._takes) for worker in workers_known(self._client).values()):
            self._alone_since = None
            return
        self._alone_since = self._alone_since or time.monotonic()
        if time.monotonic() - self._alone_since > _ALONE:
            which = f" with {_written(self._takes)}" if self._takes else ""
            raise ClusterError(
                f"The cluster has had no worker{which} for {_ALONE} s.", f"Start workers{which}. {_AGAIN}"
            )


def _has(worker: Mapping[str, Any], takes: Mapping[str, int] | None) -> bool:
    return all(worker["resources"].get(name, 0) >= n for name, n in (takes or {}).items())


def _written(takes: Mapping[str, int]) -> str:
    """Return resources as `dask worker` takes them."""
    return f"--resources {','.join(f'{name}={n}' for name, n in takes.items())}"


def gather(client: Client, futures: Sequence[Future], task: str, takes: Mapping[str, int] | None = None) -> list[Any]:
    """Wait for all of the tasks and return their results, in order.

    Raises
    ------
    TrainingError
        If one killed its workers, again and again.
    ClusterError
        If the scheduler is gone, or there are no workers, as `first_done` says.
    Exception
        What a task raised.
    """
    waiting = set(futures)
    with _explained(task):
        while waiting:
            done = first_done(client, waiting, takes)
            for future in done:
                if future.status != "finished":
                    _fetch(client, [future], takes)
            waiting -= done
        return _fetch(client, list(futures), takes)  # at once: one by one they take a millisecond each


def _fetch(client: Client, futures: list[Future], takes: Mapping[str, int] | None) -> list[Any]:
    """Return results of tasks that are done; those lost with their worker are made again, where there is another."""
    patience = _Patience(client, takes)
    answer = asyncio.run_coroutine_threadsafe(client.gather(futures, asynchronous=True), client.loop.asyncio_loop)
    try:
        while wait_for_thread([answer], timeout=_CHECK).not_done:
            patience.check()
        return list(answer.result())
    finally:
        answer.cancel()


@contextmanager
def _explained(task: str) -> Iterator[None]:
    """Turn what Dask raises where workers or the scheduler died into our errors."""
    try:
        with scheduler_watched():
            yield
    except KilledWorker as error:
        raise TrainingError(
            f"{task} died with its worker, several times ({error}).",
            "The usual cause is memory: raise memory_limit, use fewer threads a worker or a smaller block_size, "
            f"or train a smaller model (max_final_vocab, vector_size). {_AGAIN}",
        ) from error


@contextmanager
def scheduler_watched() -> Iterator[None]:
    """Turn what Dask raises where its scheduler died into a ClusterError."""
    try:
        yield
    except (CancelledError, CommClosedError, ClosedClientError) as error:
        raise _scheduler_gone() from error


def _scheduler_gone() -> ClusterError:
    return ClusterError("The scheduler is gone, and the tasks with it.", f"Start the cluster. {_AGAIN}")
