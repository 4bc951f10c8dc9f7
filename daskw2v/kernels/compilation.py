"""Measures how long this process compiles kernels, and reports to the client that workers compile kernels."""

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
_subscribed: WeakSet[Client] = WeakSet()  # clients that have a listener


class Compilation(Listener):
    """Adds up the seconds in which Numba compiles in this process; kernels read from the cache do not count."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._depth, self._began = 0, 0.0  # Numba compiles in one thread at a time, and kernels within kernels

    def on_start(self, event: Event | None = None) -> None:
        """Start the clock, unless it runs, and report that to the scheduler."""
        self._depth += 1
        if self._depth == 1:
            self._began = time.perf_counter()
            _report(0.0)

    def on_end(self, event: Event | None = None) -> None:
        """Stop the clock, once no kernel is being compiled, and report the seconds to the scheduler."""
        self._depth -= 1
        if self._depth == 0:
            seconds = time.perf_counter() - self._began
            self.seconds += seconds
            _report(seconds)


clock = Compilation()


def _report(seconds: float) -> None:
    """Report seconds of compilation as a Dask event of the workers of this process; 0 when compilation begins."""
    # Not get_worker: the threads of a training task do not know their worker
    for worker in list(Worker._instances):
        worker.log_event(_TOPIC, {"worker": worker.address, "seconds": seconds})


@contextmanager
def reporting_compilation(client: Client, listener: progress.Listener) -> Iterator[None]:
    """Call a listener when workers begin to compile kernels during a `with` block, and at its end.

    The last message has the seconds of the worker that compiled longest. The first call is made by Dask's thread. A
    client has at most one listener; further listeners are not called.
    """
    if client in _subscribed:
        yield
        return
    report, seconds = progress.message_sender(listener, _STAGE, "kernels"), dict[str, float]()

    def receive(event: tuple[float, dict[str, Any]]) -> None:
        if not seconds:
            with suppress(Exception):  # the next report of a stage raises in the listener's own thread
                report("compiling kernels, once (about 7 s)")
        seconds[event[1]["worker"]] = seconds.get(event[1]["worker"], 0.0) + event[1]["seconds"]

    _subscribed.add(client)
    client.subscribe_topic(_TOPIC, receive)
    try:
        yield
        if seconds:
            report(f"kernels were compiled in {max(seconds.values()):.0f} s")
    finally:
        _subscribed.discard(client)
        with suppress(ValueError):
            client.unsubscribe_topic(_TOPIC)
        client._event_handlers.pop(_TOPIC, None)  # Dask would keep it, and the listener with it
