"""The workers of a cluster, as numbers that memory and time depend on."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Workers:
    """The workers of a cluster, all taken to be like one of them.

    Parameters
    ----------
    n
        Number of worker processes.
    threads
        Threads of a worker.
    memory
        Bytes that all workers hold together (`cluster.usable_memory`); infinity where none has a limit.
    devices
        Devices of a worker; each has its share of the threads.
    limit, device_limit
        Bytes that a worker may take, infinity for no limit; and bytes that are free on a device, None for a device
        without memory of its own.
    network, storage
        Bytes/s of a worker: each way to the other workers, and to the shared store.
    cores
        Cores of all workers together, where workers share them.
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
        """Threads of all workers."""
        return self.n * self.threads

    def busy(self, threads: float) -> float:
        """Return how many of so many threads work at a time."""
        return min(threads, self.slots, self.cores)
