"""Compilation as it happens: how long this process has compiled kernels, and reports of a cluster's workers."""

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
_heard: WeakSet[Client] = WeakSet()  # clients whose workers have a listener


class Compilation(Listener):
    """Counts the seconds in which Numba compiles in this process; kernels from its cache do not count."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth, self._began = 0, 0.0  # Numba compiles in one thread at a time, and kernels inside of others

    def on_start(self, event: Event | None = None) -> None:
        """Start the clock, and report to the scheduler."""
        self._depth += 1
        if self._depth == 1:
            self._began = time.perf_counter()
            _report(0.0)

    def on_end(self, event: Event | None = None) -> None:
        """Stop the clock, and report to the scheduler."""
        self._depth -= 1
        if self._depth == 0:
            took = time.perf_counter() - self._began
            self.seconds += took
            _report(took)


here = Compilation()


def _report(seconds: float) -> None:
    # Not get_worker: the threads of a training task do not know their worker
    for worker in list(Worker._instances):
        worker.log_event(_TOPIC, {"worker": worker.address, "seconds": seconds})


@contextmanager
def compiling_said(client: Client, listener: progress.Listener) -> Iterator[None]:
    """Call a listener when workers begin to compile kernels, and at the end with the seconds that it took.

    Dask's thread calls the listener. A client has at most one listener: later ones are not called.
    """
    if client in _heard:
        yield
        return
    say, seconds = progress.message_sender(listener, _STAGE, "kernels"), dict[str, float]()

    def hear(event: tuple[float, dict[str, Any]]) -> None:
        if not seconds:
            with suppress(Exception):  # the next report of a stage raises in the listener's own thread
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
