"""Clocks that are set back while Dask runs.

Dask's streams (`distributed.batched.BatchedSend`) collect messages until a time of day. If the clock is set back
meanwhile, a stream sends nothing for as long as the clock was set back, and the run stands still. So clients and
workers compare the clock with the monotonic one, and make their streams send when it was set back.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from itertools import chain
from weakref import WeakSet, ref

from distributed import Client, LocalCluster, Worker, WorkerPlugin
from distributed.batched import BatchedSend

Streams = Callable[[], Iterable[BatchedSend | None] | None]  # None: they are closed

_EVERY = 1.0  # seconds between two looks at the clock
_LEAST = 0.1  # seconds by which it must have been set back: more than a clock that is adjusted slowly loses
_watched: WeakSet[Client] = WeakSet()


class ClockWatch(WorkerPlugin):  # type: ignore[misc]  # Dask has no types
    """Watches the clock of a worker."""

    name = "daskw2v-clock-watch"

    def setup(self, worker: Worker) -> None:
        """Set up a worker."""
        self._watching = asyncio.create_task(_watch(lambda: [worker.batched_stream]))

    def teardown(self, worker: Worker) -> None:
        """Undo it."""
        self._watching.cancel()


def watch_clocks(client: Client) -> None:
    """Watch the clocks of a client, its workers, and its scheduler if that is a local cluster's.

    A scheduler elsewhere need not have daskw2v installed, and is not watched.
    """
    if client in _watched:
        return
    _watched.add(client)
    client.register_plugin(ClockWatch())
    known = ref(client)

    def streams() -> Iterable[BatchedSend | None] | None:
        client = known()
        if client is None or client.status == "closed":
            return None
        local = client.cluster.scheduler if isinstance(client.cluster, LocalCluster) else None
        of_scheduler = () if local is None else chain(local.stream_comms.values(), local.client_comms.values())
        return [client.scheduler_comm, *of_scheduler]

    client.loop.add_callback(_watch, streams)


async def _watch(streams: Streams) -> None:
    """Look at the clock until the streams are closed or the event loop ends."""
    ahead = time.time() - time.monotonic()
    while (open_streams := streams()) is not None:
        before, ahead = ahead, time.time() - time.monotonic()
        if ahead < before - _LEAST:
            for stream in open_streams:
                if stream is not None:
                    stream.next_deadline = None
                    stream.waker.set()
        del open_streams
        await asyncio.sleep(_EVERY)
