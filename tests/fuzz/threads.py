"""Files are read in the thread that asks for them: of what the fuzzed folders cost, half was threads that wait."""

import asyncio
import sys
import threading
from typing import Any

from zarr.core import sync

from daskw2v.store import retries

_own = threading.local()


def _run(coroutine: Any, loop: Any = None, timeout: float | None = None) -> Any:
    """As Zarr's `sync`, which waits for one thread that has a loop."""
    if not hasattr(_own, "loop"):
        _own.loop = asyncio.new_event_loop()
    return _own.loop.run_until_complete(coroutine)


async def _call(function: Any, /, *args: Any, **options: Any) -> Any:
    """As `asyncio.to_thread`."""
    return function(*args, **options)


def read_here(patch: Any) -> None:
    """Patch, with pytest's MonkeyPatch, all that hands a call to another thread. No file here is one that hangs."""
    patch.setattr(retries, "call_in_time", lambda function, args, timeout: function(*args))
    patch.setattr(asyncio, "to_thread", _call)
    waiting = sync.sync
    for name, module in list(sys.modules.items()):
        if name.startswith("zarr.") and getattr(module, "sync", None) is waiting:
            patch.setattr(module, "sync", _run)
