"""Clocks that are set back while Dask runs.

Dask's streams (`distributed.batched.BatchedSend`) collect messages until a time of day. If the clock is set back
meanwhile, a stream sends nothing for as long as the clock was set back, and the run stands still. So clients and
workers compare the clock with the monotonic one, and make their streams send when it was set back.
"""

import asyncio
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from threading import Event

from distributed import Client, LocalCluster, Worker, WorkerPlugin
from distributed.batched import BatchedSend

Streams = Callable[[], Iterable[BatchedSend | None]]

_PERIOD = 1.0  # seconds between two readings of the clock
_MIN_STEP = 0.1  # seconds by which a clock must be set back; a clock that is adjusted slowly loses less in a period


class ClockWatch(WorkerPlugin):  # type: ignore[misc]  # Dask has no types
    """A plugin that watches the clock of each worker, and makes the worker's stream send when it was set back."""

    def __init__(self) -> None:
        self.name = f"daskw2v-clock-watch-{uuid.uuid4().hex}"  # several runs may use a cluster

    def setup(self, worker: Worker) -> None:
        """Start to watch the clock of a worker."""
        self._has_ended = Event()
        # Kept: an event loop may lose a task that nothing else refers to
        self._task = asyncio.create_task(_watch(lambda: [worker.batched_stream], self._has_ended))

    def teardown(self, worker: Worker) -> None:
        """Stop to watch the clock of a worker that closes."""
        self._has_ended.set()


@contextmanager
def watching_clocks(client: Client) -> Iterator[None]:
    """Watch the clocks of a client and its workers in the block, and of its scheduler if the cluster is local.

    A scheduler of another process need not have daskw2v installed, and is not watched. No plugin stays on the cluster
    afterwards: a worker without daskw2v could not start with the plugin.
    """
    watch, has_ended = ClockWatch(), Event()
    client.register_plugin(watch)

    def streams() -> Iterable[BatchedSend | None]:
        """Return the streams of the client and of a local scheduler."""
        scheduler = client.cluster.scheduler if isinstance(client.cluster, LocalCluster) else None
        comms = () if scheduler is None else chain(scheduler.stream_comms.values(), scheduler.client_comms.values())
        return [client.scheduler_comm, *comms]

    client.loop.add_callback(_watch, streams, has_ended)
    try:
        yield
    finally:
        has_ended.set()
        if client.status == "running":  # otherwise the scheduler is gone, and the plugin with it
            client.unregister_worker_plugin(watch.name)


async def _watch(streams: Streams, has_ended: Event) -> None:
    """Compare the clock with the monotonic clock each second; when it was set back, make streams send.

    Parameters
    ----------
    streams
        Returns the streams that collect messages; None stands for a stream that is not open.
    has_ended
        The watch ends once this event is set.
    """
    ahead = time.time() - time.monotonic()
    while not has_ended.is_set():
        before, ahead = ahead, time.time() - time.monotonic()
        if ahead < before - _MIN_STEP:
            for stream in streams():
                if stream is not None:
                    stream.next_deadline = None
                    stream.waker.set()
        await asyncio.sleep(_PERIOD)
