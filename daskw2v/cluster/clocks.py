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

_EVERY = 1.0  # seconds between two readings of the clock
_LEAST = 0.1  # seconds by which it must have been set back: more than a clock that is adjusted slowly loses


class ClockWatch(WorkerPlugin):  # type: ignore[misc]  # Dask has no types
    """Watches the clock of a worker."""

    def __init__(self) -> None:
        self.name = f"daskw2v-clock-watch-{uuid.uuid4().hex}"  # several runs may use a cluster

    def setup(self, worker: Worker) -> None:
        """Set up a worker."""
        self._ended = Event()
        # Kept: an event loop itself may lose a task
        self._watching = asyncio.create_task(_watch(lambda: [worker.batched_stream], self._ended))

    def teardown(self, worker: Worker) -> None:
        """End the watch of a worker that closes."""
        self._ended.set()


@contextmanager
def clocks_watched(client: Client) -> Iterator[None]:
    """Watch the clocks of a client, its workers, and its scheduler if that is a local cluster's, in the block.

    A scheduler elsewhere need not have daskw2v installed, and is not watched. Nothing stays on the cluster afterwards:
    a worker without daskw2v could not start with the plugin.
    """
    watch, ended = ClockWatch(), Event()
    client.register_plugin(watch)

    def streams() -> Iterable[BatchedSend | None]:
        local = client.cluster.scheduler if isinstance(client.cluster, LocalCluster) else None
        of_scheduler = () if local is None else chain(local.stream_comms.values(), local.client_comms.values())
        return [client.scheduler_comm, *of_scheduler]

    client.loop.add_callback(_watch, streams, ended)
    try:
        yield
    finally:
        ended.set()
        if client.status == "running":  # or its scheduler is gone, and the plugin with it
            client.unregister_worker_plugin(watch.name)


async def _watch(streams: Streams, ended: Event) -> None:
    """Compare the clocks until the end, or that of the event loop."""
    ahead = time.time() - time.monotonic()
    while not ended.is_set():
        before, ahead = ahead, time.time() - time.monotonic()
        if ahead < before - _LEAST:
            for stream in streams():
                if stream is not None:
                    stream.next_deadline = None
                    stream.waker.set()
        await asyncio.sleep(_EVERY)
