"""The Dask cluster of a run: connecting to it, its workers, and waiting for workers and results."""

from daskw2v.cluster.clocks import clocks_watched
from daskw2v.cluster.connecting import (
    check_cluster,
    check_here,
    choose_client,
    connect,
    connected,
    lazily_connected,
    opened_once,
    starts_cluster,
)
from daskw2v.cluster.local import OneWorker
from daskw2v.cluster.waiting import all_done, await_worker, first_done, gather, waits_for_workers
from daskw2v.cluster.workers import (
    Trainers,
    Usage,
    ask_workers,
    find_trainers,
    may_grow,
    peak_memory,
    scheduler_watched,
    this_worker,
    total_threads,
    usable_memory,
    usage,
    workers_known,
)

__all__ = [
    "OneWorker",
    "Trainers",
    "Usage",
    "all_done",
    "ask_workers",
    "await_worker",
    "check_cluster",
    "check_here",
    "choose_client",
    "clocks_watched",
    "connect",
    "connected",
    "find_trainers",
    "first_done",
    "gather",
    "lazily_connected",
    "may_grow",
    "opened_once",
    "peak_memory",
    "scheduler_watched",
    "starts_cluster",
    "this_worker",
    "total_threads",
    "usable_memory",
    "usage",
    "waits_for_workers",
    "workers_known",
]
