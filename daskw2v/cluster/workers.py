"""The workers of a cluster, which of them train, their threads and memory; and errors of a lost scheduler.

All answers are snapshots: workers come and go, and an adaptive cluster may have none.
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

from daskw2v.cluster.shared_memory import given_bytes
from daskw2v.errors import ClusterError

if sys.platform != "win32":
    import resource

AGAIN = "The same command goes on where this one stopped."


def ask_workers(
    client: Client, function: Callable[..., Any], *args: Any, workers: Collection[str] | None = None
) -> dict[str, Any]:
    """Run a function on each worker; return the results by address, without workers that leave meanwhile.

    Raises
    ------
    ClusterError
        If the scheduler is gone, or cannot reach a registered worker.
    Exception
        Whatever the function raised on a worker.
    """
    asked = None if workers is None else list(workers)
    try:
        answers: dict[str, Any] = client.run(function, *args, workers=asked, on_error="return")
    except OSError as error:  # of the scheduler; errors of workers are returned
        raise scheduler_gone() from error
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
    takes
        Dask resources that a training task needs; None if all workers train.
    coming
        Number of workers that an adaptive cluster may still start. Work is divided for them, too, because the cluster
        starts workers only for submitted work.
    devices
        Of the resource that a task takes one of, how many a worker declares, by address, where it is more than one.
    """

    threads: Mapping[str, int]
    takes: dict[str, int] | None = None
    coming: int = 0
    devices: Mapping[str, int] = MappingProxyType({})

    def preferring(self, worker: str) -> dict[str, Any]:
        """Return options for `submit` that prefer a worker; others run the task if it is gone. "" prefers none."""
        # Not for tasks with resources: if that worker is gone, Dask would ignore the resources, too
        return {"workers": [worker], "allow_other_workers": True} if worker and not self.takes else {}

    def slots(self) -> list[str]:
        """Return the address of each thread's worker, in order; of one unknown worker where there is none."""
        return [address for address, threads in self.homes() for _ in range(threads)] or [""]

    def threads_of_workers(self) -> list[int]:
        """Return the threads of each worker, in order of addresses; coming ones have fewest."""
        there = [threads for _, threads in sorted(self.threads.items())]
        return there + [min(there, default=1)] * self.coming

    def homes(self) -> list[tuple[str, int]]:
        """Return address and threads of each worker, in order; coming ones have the address "" and fewest threads.

        A worker of several devices stands there once for each, with its share of the threads.
        """
        homes = [(address, self.devices.get(address, 1), n) for address, n in sorted(self.threads.items())]
        there = [(address, max(1, n // devices)) for address, devices, n in homes for _ in range(devices)]
        return there + [("", min(self.threads.values(), default=1))] * self.coming


def find_trainers(client: Client, resource: str | None) -> Trainers:
    """Return the workers that declare a Dask resource (`dask worker --resources NAME=1`), or all if none does."""
    workers, takes, several = workers_known(client), None, dict[str, int]()
    if resource is not None and (having := {name: w for name, w in workers.items() if w["resources"].get(resource)}):
        workers, takes = having, {resource: 1}
        several = {name: n for name, w in having.items() if (n := int(w["resources"][resource])) > 1}
    threads = {name: worker["nthreads"] for name, worker in workers.items()}
    return Trainers(threads, takes, max(0, _most_workers(client) - len(threads)), several)


def may_grow(client: Client) -> bool:
    """Return whether new workers may join: always, except on a local cluster that is not adaptive."""
    return not isinstance(client.cluster, LocalCluster) or _adaptive(client) is not None


def _adaptive(client: Client) -> Any:
    """Return the active `Adaptive` of the client's cluster, or None; Dask has no public name for it."""
    adaptive = getattr(client.cluster, "_adaptive", None)
    return adaptive if adaptive is not None and adaptive.periodic_callback is not None else None


def _most_workers(client: Client) -> int:
    """Return the maximum number of workers of an adaptive cluster; 0 if there is none."""
    adaptive = _adaptive(client)
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
        raise scheduler_gone()
    return dict(known["workers"])


def total_threads(client: Client) -> int:
    """Return the number of threads of all workers, at least 1."""
    return max(1, sum(int(worker["nthreads"]) for worker in workers_known(client).values()))


def usable_memory(client: Client) -> float:
    """Return the bytes that fit on all workers if data is divided by threads, when the first worker is full.

    It is infinite if no worker has a limit.
    """
    workers = workers_known(client).values()
    a_thread = min(((worker["memory_limit"] or math.inf) / worker["nthreads"] for worker in workers), default=math.inf)
    return float(a_thread * max(1, sum(worker["nthreads"] for worker in workers)))


class Usage(NamedTuple):
    """Threads, memory, traffic and time that a worker process has used since its start.

    Parameters
    ----------
    threads
        Its threads for tasks.
    peak_memory
        Peak of its resident memory, in bytes.
    sent
        Bytes sent to other workers, without those passed through shared memory.
    processor_seconds
        Processor time of all its threads.
    """

    threads: int
    peak_memory: int
    sent: int
    processor_seconds: float


def usage(client: Client) -> dict[str, Usage]:
    """Return the usage of each worker that answers, by address."""
    return ask_workers(client, _usage)


def check_reachable(client: Client, futures: list[Future]) -> None:
    """Check that the scheduler reaches the workers that hold results: Dask asks those that it cannot reach for ever.

    Raises
    ------
    ClusterError
        If it cannot reach one.
    """
    if holders := set(chain.from_iterable(client.who_has(futures).values())):
        ask_workers(client, this_worker, workers=holders)


def _usage(dask_worker: Worker) -> Usage:
    sent = dask_worker.transfer_outgoing_bytes_total - given_bytes()
    return Usage(dask_worker.state.nthreads, peak_memory(), sent, time.process_time())


def peak_memory() -> int:
    """Return the peak of this process's resident memory in bytes.

    `getrusage` is not used on Linux, as there a forked process starts with the peak of its parent.
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
def scheduler_watched() -> Iterator[None]:
    """Turn the errors that Dask raises when it loses its scheduler into a ClusterError."""
    try:
        yield
    except (CancelledError, CommClosedError, ClosedClientError) as error:
        raise scheduler_gone() from error


def is_unreachable(error: BaseException) -> bool:
    """Return whether it is what Dask raises when it gives up connecting to an address."""
    return type(error) is OSError and error.errno is None and str(error).startswith("Timed out trying to connect")


def scheduler_gone() -> ClusterError:
    """Return the error for a scheduler that does not answer."""
    return ClusterError("The scheduler is gone, and the tasks with it.", f"Start the cluster. {AGAIN}")
