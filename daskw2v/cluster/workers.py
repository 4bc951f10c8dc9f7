"""The workers of a cluster: which workers train, their threads and memory; and errors of a lost scheduler.

All results are snapshots: workers come and go, and an adaptive cluster may have no workers.
"""

import math
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import psutil
from distributed import Client, Future, LocalCluster, Worker, get_worker
from distributed.client import ClosedClientError
from distributed.comm import CommClosedError

from daskw2v.cluster.shared_memory import shared_bytes
from daskw2v.errors import ClusterError

if sys.platform != "win32":
    import resource

AGAIN = "The same command goes on where this one stopped."
TaskResources = Mapping[str, int] | None  # Dask resources that tasks need, by name; None if they need none


def ask_workers(
    client: Client, function: Callable[..., Any], *args: Any, workers: Collection[str] | None = None
) -> dict[str, Any]:
    """Call a function on each worker of a cluster; return the results by address of the worker.

    Workers that leave the cluster meanwhile have no result.

    Parameters
    ----------
    client
        The cluster.
    function, args
        The function and its arguments. As in Dask's `Client.run`, an argument `dask_worker` gets the worker.
    workers
        Addresses of the workers; None for all.

    Raises
    ------
    ClusterError
        If the scheduler is gone, or cannot reach a registered worker.
    Exception
        The error that the function raised on a worker.
    """
    addresses = None if workers is None else list(workers)
    try:
        answers: dict[str, Any] = client.run(function, *args, workers=addresses, on_error="return")
    except OSError as error:  # of the scheduler; errors of workers are returned
        raise scheduler_gone_error() from error
    failures = {address: answer for address, answer in answers.items() if isinstance(answer, Exception)}
    for address, failure in failures.items():
        has_left = isinstance(failure, OSError) and address not in workers_known(client)
        if has_left or isinstance(failure, CommClosedError):
            continue
        if is_unreachable(failure):
            problem = f"The scheduler cannot reach the worker {address}, which is registered there ({failure})."
            raise ClusterError(problem, "Check that worker, its network and its firewall, or stop it.") from failure
        raise failure
    return {address: answer for address, answer in answers.items() if address not in failures}


class Trainers(NamedTuple):
    """The workers that train.

    Parameters
    ----------
    threads
        Number of threads of each worker, by address.
    task_resources
        Dask resources that a training task needs; None if all workers train.
    n_coming
        Number of workers that an adaptive cluster may still start. Work is divided for them, too, because the cluster
        starts workers only for submitted work.
    devices
        Number of devices that a worker declares as the resource, by address, for workers with more than one.
    """

    threads: Mapping[str, int]
    task_resources: dict[str, int] | None = None
    n_coming: int = 0
    devices: Mapping[str, int] = MappingProxyType({})

    def preferring(self, worker: str) -> dict[str, Any]:
        """Return options of `Client.submit` that prefer the worker at an address; empty for "" or tasks with resources.

        Other workers run the task if the preferred worker is gone.
        """
        # Not for tasks with resources: if that worker is gone, Dask would ignore the resources, too
        return {"workers": [worker], "allow_other_workers": True} if worker and not self.task_resources else {}

    def slots(self) -> list[str]:
        """Return the address of each thread's worker, in the order of `list_workers`; [""] if there is no worker."""
        return [address for address, threads in self.list_workers() for _ in range(threads)] or [""]

    def list_threads(self) -> list[int]:
        """Return the number of threads of each worker, in order of addresses, then of each coming worker.

        A coming worker is assumed to have as many threads as the worker with the fewest.
        """
        threads = [n for _, n in sorted(self.threads.items())]
        return threads + [min(threads, default=1)] * self.n_coming

    def list_workers(self) -> list[tuple[str, int]]:
        """Return address and number of threads of each worker, in order of addresses, then of each coming worker.

        A worker of several devices is listed once for each device, with its share of the threads. A coming worker has
        the address "", and as many threads as the worker with the fewest.
        """
        workers = [(address, self.devices.get(address, 1), n) for address, n in sorted(self.threads.items())]
        listed = [(address, max(1, n // devices)) for address, devices, n in workers for _ in range(devices)]
        return listed + [("", min(self.threads.values(), default=1))] * self.n_coming


def find_trainers(client: Client, resource: str | None) -> Trainers:
    """Return the workers that declare a Dask resource, by its name (`dask worker --resources NAME=1`).

    If no worker declares the resource, or `resource` is None, all workers are returned.
    """
    workers, task_resources, devices = workers_known(client), None, dict[str, int]()
    if resource is not None and (having := {name: w for name, w in workers.items() if w["resources"].get(resource)}):
        workers, task_resources = having, {resource: 1}
        devices = {name: n for name, w in having.items() if (n := int(w["resources"][resource])) > 1}
    threads = {name: worker["nthreads"] for name, worker in workers.items()}
    return Trainers(threads, task_resources, max(0, _max_workers(client) - len(threads)), devices)


def may_grow(client: Client) -> bool:
    """Return whether new workers may join: always, except on a local cluster that is not adaptive."""
    return not isinstance(client.cluster, LocalCluster) or _get_adaptive(client) is not None


def _get_adaptive(client: Client) -> Any:
    """Return the active `Adaptive` of the client's cluster; None if there is none. Dask has no public name for it."""
    adaptive = getattr(client.cluster, "_adaptive", None)
    return adaptive if adaptive is not None and adaptive.periodic_callback is not None else None


def _max_workers(client: Client) -> int:
    """Return the maximum number of workers of an adaptive cluster; 0 if it has no maximum, or is not adaptive."""
    adaptive = _get_adaptive(client)
    return 0 if adaptive is None or math.isinf(adaptive.maximum) else int(adaptive.maximum)


def workers_known(client: Client) -> dict[str, Any]:
    """Return the scheduler's information about each worker, by address.

    Raises
    ------
    ClusterError
        If the scheduler is gone.
    """
    known = client.scheduler_info(n_workers=-1)
    if "workers" not in known:
        raise scheduler_gone_error()
    return dict(known["workers"])


def total_threads(client: Client) -> int:
    """Return the number of threads of all workers, at least 1."""
    return max(1, sum(int(worker["nthreads"]) for worker in workers_known(client).values()))


def usable_memory(client: Client) -> float:
    """Return how many bytes of data fit on all workers together, if each thread gets an equal part of the data.

    The worker with the least memory for a thread decides. The result is infinite if no worker has a limit.
    """
    workers = workers_known(client).values()
    per_thread = min(((w["memory_limit"] or math.inf) / w["nthreads"] for w in workers), default=math.inf)
    return float(per_thread * max(1, sum(worker["nthreads"] for worker in workers)))


class Usage(NamedTuple):
    """Threads, memory, traffic and time that a worker process has used since its start.

    Parameters
    ----------
    threads
        Number of the worker's threads for tasks.
    peak_memory
        Peak of the process's resident memory, in bytes.
    sent
        Bytes of results sent, also to the scheduler and clients, without arrays passed through shared memory.
    processor_seconds
        Processor time of all threads of the process.
    """

    threads: int
    peak_memory: int
    sent: int
    processor_seconds: float


def usage(client: Client) -> dict[str, Usage]:
    """Return the usage of each worker, by address; raises as `ask_workers` does."""
    return ask_workers(client, _measure_usage)


def check_reachable(client: Client, futures: list[Future]) -> None:
    """Check that the scheduler reaches all workers that hold the results of futures; Dask would try forever.

    Raises
    ------
    ClusterError
        If the scheduler cannot reach a worker.
    """
    if holders := set(chain.from_iterable(client.who_has(futures).values())):
        ask_workers(client, this_worker, workers=holders)


def _measure_usage(dask_worker: Worker) -> Usage:
    """Return the usage of the worker that calls this function."""
    sent = dask_worker.transfer_outgoing_bytes_total - shared_bytes()
    return Usage(dask_worker.state.nthreads, peak_memory(), sent, time.process_time())


def peak_memory() -> int:
    """Return the peak of this process's resident memory in bytes.

    `getrusage` is not used on Linux, where a forked process starts with the peak of its parent.
    """
    if sys.platform == "win32":
        return int(psutil.Process().memory_info().peak_wset)
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    status = Path("/proc/self/status").read_text(encoding="utf-8", errors="replace")
    return int(status.split("VmHWM:", 1)[1].split(maxsplit=1)[0]) << 10


def this_worker() -> str:
    """Return the address of the worker that runs this task; "" outside of tasks."""
    try:
        return str(get_worker().address)
    except ValueError:
        return ""


@contextmanager
def converting_scheduler_errors() -> Iterator[None]:
    """Turn the errors that Dask raises in the block when it loses its scheduler into a ClusterError."""
    try:
        yield
    except (CancelledError, CommClosedError, ClosedClientError) as error:
        raise scheduler_gone_error() from error


def is_unreachable(error: BaseException) -> bool:
    """Return whether an error is the one that Dask raises when it gives up connecting to an address."""
    return type(error) is OSError and error.errno is None and str(error).startswith("Timed out trying to connect")


def scheduler_gone_error() -> ClusterError:
    """Return the error for a scheduler that does not answer."""
    return ClusterError("The scheduler is gone, and the tasks with it.", f"Start the cluster. {AGAIN}")
