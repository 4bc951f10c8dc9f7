"""The sizes of a cluster's workers, which memory and time of a run depend on."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Workers:
    """The workers of a cluster, which are all assumed to be equal.

    Parameters
    ----------
    n
        Number of worker processes.
    threads
        Threads of a worker.
    memory
        Bytes that all workers hold together (`cluster.usable_memory`); infinity where none has a limit.
    devices
        Number of devices of a worker; each has its share of the threads.
    limit, device_limit
        Bytes that a worker may allocate, infinity for no limit; and bytes that are free on a device, None for a device
        without memory of its own.
    network, storage
        Bytes by second of a worker: to the other workers, and as much from them; to the shared store, or from it.
    cores
        Number of cores of all workers together, where workers share them.
    """

    n: int = 1
    threads: int = 1
    memory: float = math.inf
    devices: int = 1
    limit: float = math.inf
    device_limit: float | None = None
    network: float = math.inf
    storage: float = math.inf
    cores: float = math.inf

    @property
    def slots(self) -> int:
        """Number of threads of all workers."""
        return self.n * self.threads

    def busy(self, threads: float) -> float:
        """Return how many of `threads` threads work at a time."""
        return min(threads, self.slots, self.cores)
