"""What is known of a cluster's workers: who trains, threads, memory, and what they answer when they are asked.

All of it is so at one moment: workers come and go, and an adaptive cluster may have none.
"""

import math
import resource
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from distributed import Client, LocalCluster, Worker, get_worker
from distributed.comm import CommClosedError

from daskw2v.cluster.scheduler import scheduler_gone
from daskw2v.errors import ClusterError
from daskw2v.shared import given_bytes


def ask_workers(
    client: Client, function: Callable[..., Any], *args: Any, workers: Collection[str] | None = None
) -> dict[str, Any]:
    """Return what a function returns on each worker, by its address; those that leave meanwhile are left out.

    Raises
    ------
    ClusterError
        If the scheduler is gone, or cannot reach a worker that is registered there.
    Exception
        What the function raised on one of them.
    """
    asked = None if workers is None else list(workers)
    try:
        answers: dict[str, Any] = client.run(function, *args, workers=asked, on_error="return")
    except OSError as error:  # no worker's: those are answers
        raise scheduler_gone() from error
    for address in [address for address, answer in answers.items() if isinstance(answer, Exception)]:
        raised = answers.pop(address)
        left = isinstance(raised, OSError) and address not in workers_known(client)
        if left or isinstance(raised, CommClosedError):
            continue
        if type(raised) is OSError and raised.errno is None:  # Dask's own, when it gives up connecting
            raise ClusterError(
                f"The scheduler cannot reach the worker {address}, which is registered there ({raised}).",
                "Look after that worker, its network and its firewall, or end it.",
            ) from raised
        raise raised
    return answers


class Trainers(NamedTuple):
    """The workers that train.

    Parameters
    ----------
    threads
        Their threads, by address.
    takes
        The Dask resources that a training task takes of its worker; None where all workers train.
    coming
        How many more an adaptive cluster may start. Work is shared among these too: it starts them for work alone.
    """

    threads: Mapping[str, int]
    takes: dict[str, int] | None = None
    coming: int = 0

    def preferring(self, worker: str) -> dict[str, Any]:
        """Return what `submit` is told so that this worker does a task, or any other where it is gone ("": any)."""
        # Not where tasks take resources: with that worker gone, Dask would not look at these either
        return {"workers": [worker], "allow_other_workers": True} if worker and not self.takes else {}

    def homes(self) -> list[tuple[str, int]]:
        """Return address and threads of each, in order; of those to come, nothing and the least threads there are."""
        return sorted(self.threads.items()) + [("", min(self.threads.values(), default=1))] * self.coming


def find_trainers(client: Client, resource: str | None) -> Trainers:
    """Return the workers that declare a Dask resource (`dask worker --resources GPU=1`), or all where none does."""
    workers, takes = workers_known(client), None
    if resource is not None and (having := {name: w for name, w in workers.items() if w["resources"].get(resource)}):
        workers, takes = having, {resource: 1}
    threads = {name: worker["nthreads"] for name, worker in workers.items()}
    return Trainers(threads, takes, max(0, _most_workers(client) - len(threads)))


def may_grow(client: Client) -> bool:
    """Tell whether workers may come that never were there: not to a local cluster that is not adaptive."""
    return not isinstance(client.cluster, LocalCluster) or _adaptive(client) is not None


def _adaptive(client: Client) -> Any:
    """Return what starts and ends the workers of the client's cluster, or nothing; Dask has no public name for it."""
    adaptive = getattr(client.cluster, "_adaptive", None)
    return adaptive if adaptive is not None and adaptive.periodic_callback is not None else None


def _most_workers(client: Client) -> int:
    """Return the most workers that an adaptive cluster may have; 0 where there is no such number."""
    adaptive = _adaptive(client)
    return 0 if adaptive is None or math.isinf(adaptive.maximum) else int(adaptive.maximum)


def workers_known(client: Client) -> dict[str, Any]:
    """Return what the scheduler knows of each worker, by its address.

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


def shared_memory(client: Client) -> float:
    """Return the bytes that all workers hold together when each has its share by threads and the first is full.

    Infinity where none has a limit.
    """
    workers = workers_known(client).values()
    a_thread = min(((worker["memory_limit"] or math.inf) / worker["nthreads"] for worker in workers), default=math.inf)
    return float(a_thread * max(1, sum(worker["nthreads"] for worker in workers)))


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
