"""Filesystems and workers that fail as they are told: what the file MOOD says, in all processes of a run.

`flaky:///path` is the path, as ill as the mood; `folded:///path` takes names that differ by case for one. Workers learn
of it by `--preload`. What object stores do, and how they fail, is left to one (`trial.ObjectStore`).
"""

import asyncio
import errno
import json
import os
import random
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import fsspec
from distributed.comm import CommClosedError
from fsspec.implementations.local import LocalFileSystem

MOOD = "SURVIVAL_MOOD"  # environment variable: the file that says what fails
ERRORS = {
    "fails": ConnectionResetError("the store fails"),
    "has bad sectors": OSError(errno.EIO, os.strerror(errno.EIO)),
}
FULL = "is full"
MOODS = (*ERRORS, "halves", "is stale", "lists new files late", FULL)  # of the store
ALONE, MUTE = "answers the scheduler alone", "gives no data"  # of a worker
_FRESH = 2.0  # seconds for which stale answers and listings do not know a file
_OWN = re.compile(r"\..+\.(before|[0-9a-f]+)")  # files that this filesystem writes for itself


def set_mood(file: Path, mood: str, seconds: float, share: float = 1.0, **more: Any) -> None:
    """Let a share of all questions fail for some seconds from now on."""
    part = file.with_suffix(".part")
    part.write_text(json.dumps({"mood": mood, "until": time.time() + seconds, "share": share, **more}))
    part.replace(file)


def _values() -> dict[str, Any]:
    """Return what the file says, as long as it holds."""
    try:
        values = json.loads(Path(os.environ[MOOD]).read_text())
    except (KeyError, FileNotFoundError):
        return {}
    return dict(values) if time.time() < values["until"] else {}


def _mood() -> str | None:
    """Return what is wrong with this question."""
    values = _values()
    return str(values["mood"]) if values and random.random() < values["share"] else None


def _fail(mood: str | None) -> None:
    if mood in ERRORS:
        raise ERRORS[mood]


def _is_fresh(path: str) -> bool:
    with suppress(FileNotFoundError):
        return time.time() - os.stat(path).st_mtime < _FRESH
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
        place, mood = Path(self._strip_protocol(path)), _mood()
        _fail(mood)
        if mood == "is stale" and _is_fresh(str(place)):
            return _before(place).read_bytes()[start:end]  # FileNotFoundError for a file that was not there
        content = bytes(super().cat_file(path, start, end, **options))
        return content[: len(content) // 2] if mood == "halves" else content

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        """Write whole objects, as stores do."""
        _fail(mood := _mood())
        if mood == FULL:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
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
        mood = _mood()
        _fail(mood)

        def is_listed(entry: Any) -> bool:
            name = entry["name"] if detail else entry
            late = mood == "lists new files late" and _is_fresh(name)
            return not (late or _OWN.fullmatch(name.rpartition("/")[2]))

        return [entry for entry in super().ls(path, detail, **options) if is_listed(entry)]

    def exists(self, path: str, **options: Any) -> bool:
        _fail(_mood())
        return bool(super().exists(path, **options))


class FoldedFileSystem(FlakyFileSystem):
    """One that takes names that differ by case for one, as those of macOS and Windows do."""

    protocol = "folded"

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        path = super()._strip_protocol(path)
        return path if isinstance(path, list) else path.lower()


def register() -> None:
    """Make the filesystems known to this process."""
    for kind in (FlakyFileSystem, FoldedFileSystem):
        fsspec.register_implementation(kind.protocol, kind, clobber=True)


def dask_setup(worker: Any) -> None:
    """Do so in a worker that preloads this module; let it give no data when it is told not to."""
    register()
    get_data = worker.handlers["get_data"]

    def is_meant(mood: str) -> bool:
        values = _values()
        return values.get("mood") == mood and os.getpid() in values["workers"]

    async def get(comm: Any, *args: Any, **options: Any) -> Any:
        while is_meant(ALONE):
            await asyncio.sleep(0.2)
        if is_meant(MUTE):
            comm.abort()
            raise CommClosedError("no data")
        return await get_data(comm, *args, **options)

    worker.handlers["get_data"] = get
