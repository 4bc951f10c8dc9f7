"""The workers that an estimate is for: those of a cluster, or those that a local one would have."""

import logging
import math
from collections.abc import Callable, Mapping

from dask.system import CPU_COUNT
from dask.utils import parse_bytes
from distributed import Client
from distributed.worker_memory import parse_memory_limit

from daskw2v.cluster import Trainers, ask_workers, usable_memory, workers_known
from daskw2v.config.resources import Resources
from daskw2v.training.devices import find_device, trainers_of
from daskw2v.training.sizes.memory import Workers


def workers_of(client: Client, device: str | None = None) -> dict[Workers, float]:
    """Return the kinds of workers, each with the least limit among them; infinity for none.

    Of those that train on a device, or of all where none is named. One is waited for. Those that an adaptive cluster
    may yet start are counted.
    """

    def limits(_trainers: Trainers) -> dict[str, float]:
        return {name: worker["memory_limit"] or math.inf for name, worker in workers_known(client).items()}

    return _kinds(client, device, limits)


def gpus_of(client: Client, device: str) -> dict[Workers, float]:
    """Return the kinds of workers that train, each with the least memory that is free on the device of one.

    Nothing for a device that has no memory of its own.
    """
    free = find_device(device).free_memory
    if free is None:
        return {}
    return _kinds(client, device, lambda trainers: ask_workers(client, free, workers=trainers.threads))


def _kinds(
    client: Client, device: str | None, limits_of: Callable[[Trainers], Mapping[str, float]]
) -> dict[Workers, float]:
    found: dict[Workers, float] = {}
    while not found:  # again where all workers have left since they were counted
        trainers = trainers_of(client, device)
        limits = limits_of(trainers)
        n, memory = len(trainers.threads) + trainers.coming, usable_memory(client)
        for address, threads in trainers.threads.items():
            if address in limits:
                kind = Workers(n, threads, memory, trainers.devices.get(address, 1))
                found[kind] = min(found.get(kind, math.inf), limits[address])
    return found


def local_workers(resources: Resources, *, machines: bool = False) -> Mapping[Workers, float]:
    """Return the workers of a local cluster, as Dask makes them of these Resources.

    With `machines`, each is alone on a machine that has the memory that is given, or else as much as this one.
    """
    threads = resources.threads or max(1, math.ceil(CPU_COUNT / resources.workers))
    if machines and resources.memory_limit != "auto":
        limit = parse_bytes(resources.memory_limit)
    else:
        limit = parse_memory_limit(resources.memory_limit, threads, logger=logging.getLogger(__name__))
    return {Workers(resources.workers, threads, resources.workers * limit): limit}
