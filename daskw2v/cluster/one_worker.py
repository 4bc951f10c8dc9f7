"""A local cluster of one worker that is a thread pool of this process: nothing is started, and nothing is sent.

Dask compares the memory of the whole process with a worker's limit, and would pause this worker for what its caller
holds, for ever. So it does neither that nor spill. What a run takes is checked before it starts (`training.memory`).
"""

import ctypes
from concurrent.futures import CancelledError
from typing import Any

import dask
from distributed import LocalCluster

from daskw2v.cluster.heap import bound_heap

_CONFIG = {
    "distributed.worker.memory.spill": False,
    "distributed.worker.memory.pause": False,
    # It cannot be lost alone. Dask would give it up after a machine slept, or its clock was set
    "distributed.scheduler.worker-ttl": None,
    # What a dashboard would show takes the interpreter's time from threads that train
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.tick.interval": "1s",
}


class OneWorker(LocalCluster):  # type: ignore[misc]  # Dask has no types
    """A cluster of one worker in this process, without a dashboard.

    Parameters
    ----------
    threads
        Threads of the worker; as many as there are cores when not given.
    options
        Further options of Dask's LocalCluster.
    """

    dashboard_link = None

    def __init__(self, threads: int | None, **options: Any) -> None:
        bound_heap()
        with dask.config.set(_CONFIG):
            super().__init__(
                n_workers=1,
                threads_per_worker=threads,
                memory_limit="auto",
                processes=False,
                dashboard_address=None,
                scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # where Dask always answers whether it lives
                **options,
            )

    def close(self, timeout: float | None = None) -> None:
        """Close the cluster; tasks that still run are ended, as they are with a process.

        Their threads get an exception at their next line of Python, between two kernels.
        """
        for worker in self.workers.values():
            for thread in list(worker.active_threads):
                ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(CancelledError))
        super().close(timeout)
