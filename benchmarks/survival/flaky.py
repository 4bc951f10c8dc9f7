"""Filesystems that fail as they are told, and clocks that jump: what the file MOOD says, in all processes of a run.

`flaky:///path` is the path, as ill as the mood; `folded:///path` takes names that differ by case for one. Workers learn
of it by `--preload`.
"""

import asyncio
import errno
import json
import os
import random
import re
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import update_wrapper
from pathlib import Path
from typing import Any

import fsspec
from distributed.comm import CommClosedError
from fsspec.implementations.local import LocalFileSystem

MOOD = "SURVIVAL_MOOD"  # environment variable: the file that says what fails
STALL, SLOW = 30.0, 1.0  # seconds: longer than anybody waits, and what anybody waits
MOODS = (
    "fails", "stalls", "halves", "is gone", "has bad sectors", "asks to slow down", "is slow", "is stale",
    "lists new files late", "puts twice",
)  # fmt: skip
ERRORS = {
    "fails": ConnectionResetError("the store fails"),
    "is gone": ConnectionResetError("the store is gone"),
    "has bad sectors": OSError(errno.EIO, os.strerror(errno.EIO)),
    "asks to slow down": OSError(errno.EBUSY, "Slow Down"),
}
CLOCK, LIMITS, ALONE, MUTE = "the clock", "the limits of the cluster", "answers the scheduler alone", "gives no data"
_FRESH = 2.0  # seconds for which stale answers and listings do not know a file
_OWN = re.compile(r"\..+\.(before|[0-9a-f]+)")  # files that this filesystem writes for itself
_true_time = time.time


def set_mood(file: Path, mood: str, seconds: float, share: float = 1.0, **more: Any) -> None:
    """Let a share of all questions fail for some seconds from now on."""
    part = file.with_suffix(".part")
    part.write_text(json.dumps({"mood": mood, "until": _true_time() + seconds, "share": share, **more}))
    part.replace(file)


def _values() -> dict[str, Any]:
    """Return what the file says, as long as it holds."""
    try:
        values = json.loads(Path(os.environ[MOOD]).read_text())
    except (KeyError, FileNotFoundError):
        return {}
    return dict(values) if _true_time() < values["until"] else {}


def mood_of_all() -> str:
    """Return what is told to all processes now; "" for nothing."""
    return str(_values().get("mood", ""))


def _mood() -> str | None:
    values = _values()
    return str(values["mood"]) if values and random.random() < values["share"] else None


def _ask(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    mood = _mood()
    if mood in ERRORS:
        raise ERRORS[mood]
    if mood in ("stalls", "is slow"):
        time.sleep(STALL if mood == "stalls" else SLOW)
    answer = function(*args, **options)
    return answer[: len(answer) // 2] if mood == "halves" and isinstance(answer, bytes) else answer


def _is_fresh(path: str) -> bool:
    with suppress(FileNotFoundError):
        return _true_time() - os.stat(path).st_mtime < _FRESH
    return False


def _before(place: Path) -> Path:
    """Return where the content of a file lies that it had before."""
    return place.with_name(f".{place.name}.before")


class FlakyFileSystem(LocalFileSystem):
    """The local one, when it is well."""

    protocol = "flaky"
    local_file = False

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        return super()._strip_protocol(str(path).removeprefix(f"{cls.protocol}://"))

    def unstrip_protocol(self, name: str) -> str:
        return f"{self.protocol}://{self._strip_protocol(name)}"

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        place = Path(self._strip_protocol(path))
        if _mood() == "is stale" and _is_fresh(str(place)):
            return _before(place).read_bytes()[start:end]  # FileNotFoundError for a file that was not there
        return bytes(_ask(super().cat_file, path, start, end, **options))

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        _ask(self._put, path, value, mode)
        if _mood() == "puts twice":
            threading.Timer(random.uniform(0.0, 1.0), self._put_again, (path, value, mode)).start()

    def _put_again(self, path: str, value: bytes, mode: str) -> None:
        with suppress(OSError):  # nobody hears of it
            if Path(self._strip_protocol(path)).parent.is_dir():
                self._put(path, value, mode)

    def _put(self, path: str, value: bytes, mode: str) -> None:
        """Write whole objects, as stores do."""
        place = Path(self._strip_protocol(path))
        place.parent.mkdir(parents=True, exist_ok=True)
        part = place.with_name(f".{place.name}.{random.getrandbits(64):x}")
        part.write_bytes(value)
        if mode == "create":
            try:
                os.link(part, place)
            finally:
                part.unlink()
            return
        if _values().get("mood") == "is stale":
            with suppress(OSError):
                _before(place).unlink(missing_ok=True)
                os.link(place, _before(place))
        part.replace(place)

    def ls(self, path: str, detail: bool = False, **options: Any) -> Any:
        found = _ask(super().ls, path, detail, **options)
        late = _mood() == "lists new files late"

        def is_listed(entry: Any) -> bool:
            name = entry["name"] if detail else entry
            return not _OWN.fullmatch(name.rpartition("/")[2]) and not (late and _is_fresh(name))

        return [entry for entry in found if is_listed(entry)]

    def exists(self, path: str, **options: Any) -> bool:
        return bool(_ask(super().exists, path, **options))


class FoldedFileSystem(FlakyFileSystem):
    """One that takes names that differ by case for one, as those of macOS and Windows do."""

    protocol = "folded"

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        path = super()._strip_protocol(path)
        return path if isinstance(path, list) else path.lower()


class _Clock:
    """`time.time`, which jumps as it is told."""

    def __init__(self) -> None:
        update_wrapper(self, _true_time)  # who wraps functions asks for their names
        self._asked, self._offset = float("-inf"), 0.0

    def __call__(self) -> float:
        now = time.monotonic()
        if now - self._asked > 0.1:
            values = _values()
            self._asked, self._offset = now, values["offset"] if values.get("mood") == CLOCK else 0.0
        return _true_time() + self._offset


def _is_meant(mood: str) -> bool:
    values = _values()
    return values.get("mood") == mood and os.getpid() in values["workers"]


def register() -> None:
    """Make the filesystems known to this process, and its clock one that may jump."""
    fsspec.register_implementation("flaky", FlakyFileSystem, clobber=True)
    fsspec.register_implementation("folded", FoldedFileSystem, clobber=True)
    clock = _Clock()
    for module in list(sys.modules.values()):  # Dask has imported the function by its name
        if vars(module).get("time") is _true_time:
            module.time = clock  # type: ignore[attr-defined]


def dask_setup(worker: Any) -> None:
    """Do so in a worker that preloads this module; let it give no data when it is told not to."""
    register()
    get_data = worker.handlers["get_data"]

    async def get(comm: Any, *args: Any, **options: Any) -> Any:
        while _is_meant(ALONE):
            await asyncio.sleep(0.2)
        if _is_meant(MUTE):
            comm.abort()
            raise CommClosedError("no data")
        return await get_data(comm, *args, **options)

    worker.handlers["get_data"] = get
