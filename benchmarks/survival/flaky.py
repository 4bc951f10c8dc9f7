"""A filesystem that fails as it is told: `flaky:///path` is the path, as ill as the file MOOD says.

Workers know it by `--preload`.
"""

import json
import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

MOOD = "SURVIVAL_MOOD"  # environment variable: the file that says what fails
STALL = 30  # seconds: longer than anybody waits
MOODS = ("fails", "stalls", "halves", "is gone")


def set_mood(file: Path, mood: str, seconds: float, share: float) -> None:
    """Let a share of all questions fail for some seconds from now on."""
    part = file.with_suffix(".part")
    part.write_text(json.dumps({"mood": mood, "until": time.time() + seconds, "share": share}))
    part.replace(file)


def _mood() -> str | None:
    try:
        values = json.loads(Path(os.environ[MOOD]).read_text())
    except (KeyError, FileNotFoundError):
        return None
    ill = time.time() < values["until"] and random.random() < values["share"]
    return str(values["mood"]) if ill else None


def _ask(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    mood = _mood()
    if mood in ("fails", "is gone"):
        raise ConnectionResetError(f"the store {mood}")
    if mood == "stalls":
        time.sleep(STALL)
    answer = function(*args, **options)
    return answer[: len(answer) // 2] if mood == "halves" and isinstance(answer, bytes) else answer


class FlakyFileSystem(LocalFileSystem):
    """The local one, when it is well."""

    protocol = "flaky"
    local_file = False

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        return super()._strip_protocol(str(path).removeprefix("flaky://"))

    def unstrip_protocol(self, name: str) -> str:
        return f"flaky://{self._strip_protocol(name)}"

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        return bytes(_ask(super().cat_file, path, start, end, **options))

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **options: Any) -> None:
        _ask(self._put, path, value, mode)

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
        else:
            part.replace(place)

    def ls(self, path: str, detail: bool = False, **options: Any) -> Any:
        return _ask(super().ls, path, detail, **options)

    def exists(self, path: str, **options: Any) -> bool:
        return bool(_ask(super().exists, path, **options))


def register() -> None:
    """Make the filesystem known to this process."""
    fsspec.register_implementation("flaky", FlakyFileSystem, clobber=True)


def dask_setup(worker: Any) -> None:
    """Do so in a worker that preloads this module."""
    register()
