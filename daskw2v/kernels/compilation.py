"""What is known of compilation: how long this process has compiled kernels, and that a cluster's workers do."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any
from weakref import WeakSet

from distributed import Client, Worker
from numba.core.event import Event, Listener

from daskw2v import progress

_TOPIC = "daskw2v-compiling"
_STAGE = "compile"
_heard: WeakSet[Client] = WeakSet()  # whose workers are heard already


class Compilation(Listener):
    """Counts the seconds in which Numba compiles here; kernels that it finds in its cache are none of them."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth, self._began = 0, 0.0  # Numba compiles in one thread at a time, and kernels inside of others

    def on_start(self, event: Event | None = None) -> None:
        """Begin to count, and tell the scheduler."""
        self._depth += 1
        if self._depth == 1:
            self._began = time.perf_counter()
            _tell(0.0)

    def on_end(self, event: Event | None = None) -> None:
        """Count."""
        self._depth -= 1
        if self._depth == 0:
            took = time.perf_counter() - self._began
            self.seconds += took
            _tell(took)


here = Compilation()


def _tell(seconds: float) -> None:
    # Not get_worker: the threads of a training task do not know their worker
    for worker in list(Worker._instances):
        worker.log_event(_TOPIC, {"worker": worker.address, "seconds": seconds})


@contextmanager
def compiling_said(client: Client, listener: progress.Listener) -> Iterator[None]:
    """Tell a listener when workers begin to compile kernels, and at the end how long it took.

    It is called from Dask's thread then. One that hears a client's workers already is the only one.
    """
    if client in _heard:
        yield
        return
    say, seconds = progress.saying(listener, _STAGE, "kernels"), dict[str, float]()

    def hear(event: tuple[float, dict[str, Any]]) -> None:
        if not seconds:
            with suppress(Exception):  # its own thread is told by the next report of a stage
                say("compiling kernels, once (about 7 s)")
        seconds[event[1]["worker"]] = seconds.get(event[1]["worker"], 0.0) + event[1]["seconds"]

    _heard.add(client)
    client.subscribe_topic(_TOPIC, hear)
    try:
        yield
        if seconds:
            say(f"kernels were compiled in {max(seconds.values()):.0f} s")
    finally:
        _heard.discard(client)
        with suppress(ValueError):
            client.unsubscribe_topic(_TOPIC)
        client._event_handlers.pop(_TOPIC, None)  # Dask would keep it, and the listener with it
