"""The number of cores that this process may use."""

import os


def usable_cores() -> int:
    """Return the number of cores on which this process may run, by its affinity where the system supports that."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
