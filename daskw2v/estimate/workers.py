"""The workers that an estimate is for: those of a cluster, or those that a local one would have."""

import logging
import math
from collections.abc import Mapping

from dask.system import CPU_COUNT
from distributed import Client
from distributed.worker_memory import parse_memory_limit

from daskw2v.cluster import shared_memory, workers_known
from daskw2v.devices import trainers_of
from daskw2v.estimate.base import Workers
from daskw2v.params import Resources


def workers_of(client: Client, device: str) -> dict[Workers, float]:
    """Return the kinds of workers that a cluster has, each with the least limit among them; infinity for none."""
    workers, memory = workers_known(client), shared_memory(client)
    trainers = trainers_of(client, device).threads
    found: dict[Workers, float] = {}
    for worker in (workers[address] for address in trainers if address in workers):
        kind = Workers(len(trainers), worker["nthreads"], memory)
        found[kind] = min(found.get(kind, math.inf), worker["memory_limit"] or math.inf)
    return found


def local_workers(resources: Resources) -> Mapping[Workers, float]:
    """Return the workers of a local cluster, as Dask makes them of these Resources."""
    threads = resources.threads or max(1, math.ceil(CPU_COUNT / resources.workers))
    limit = parse_memory_limit(resources.memory_limit, threads, logger=logging.getLogger(__name__))
    return {Workers(resources.workers, threads, resources.workers * limit): limit}
