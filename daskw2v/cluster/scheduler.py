"""Errors of a lost scheduler, and of addresses that cannot be reached."""

from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager

from distributed.client import ClosedClientError
from distributed.comm import CommClosedError

from daskw2v.errors import ClusterError

AGAIN = "The same command goes on where this one stopped."


@contextmanager
def scheduler_watched() -> Iterator[None]:
    """Turn the errors that Dask raises when it loses its scheduler into a ClusterError."""
    try:
        yield
    except (CancelledError, CommClosedError, ClosedClientError) as error:
        raise scheduler_gone() from error


def is_unreachable(error: BaseException) -> bool:
    """Tell whether it is what Dask raises when it gives up connecting to an address."""
    return type(error) is OSError and error.errno is None and str(error).startswith("Timed out trying to connect")


def scheduler_gone() -> ClusterError:
    """Return the error for a scheduler that does not answer."""
    return ClusterError("The scheduler is gone, and the tasks with it.", f"Start the cluster. {AGAIN}")
