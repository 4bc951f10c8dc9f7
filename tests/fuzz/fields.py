"""Structure of metadata: every field of every JSON file of a folder, with other values, and checksums that fit."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from daskw2v.store.checksums import CHECKSUM

VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 7, 3_000_000, 1 << 31, 1 << 53, 1 << 62, 1 << 63, 10**30, -(1 << 63), 0.5, 1e300,
    "", "0", "x", "../x", "/", "v0001-x", "\0", "\ud800", "\x1b]0;x", "a" * 70_000,
    [], [0], [[]], ["x"], [None] * 1000, {}, {"x": 1}, {"": {"x": []}},
)  # fmt: skip


def _without(holder: Any, key: Any) -> None:
    del holder[key]


def _unknown(holder: Any, key: Any) -> None:
    holder[key] = {**holder[key], "unknown": 1} if isinstance(holder[key], dict) else [holder[key]]


def _many(holder: Any, key: Any) -> None:
    holder[key] = holder[key] * 50_000 if isinstance(holder[key], list) else {str(n): 1 for n in range(50_000)}


def _nested(holder: Any, key: Any) -> None:
    for _ in range(500):
        holder[key] = [holder[key]]


def _as(value: Any) -> Callable[[Any, Any], None]:
    def put(holder: Any, key: Any) -> None:
        holder[key] = value

    return put


CHANGES = (*map(_as, VALUES), _without, _unknown, _many, _nested)


def places(values: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the holder and the key of each entry of JSON values."""
    for key in [key for key in values if key != CHECKSUM] if isinstance(values, dict) else range(len(values)):
        yield values, key
        if isinstance(values[key], dict | list):
            yield from places(values[key])


@dataclass(frozen=True)
class Fields:
    """The JSON files of a folder, and what reads the folder.

    Parameters
    ----------
    path
        The folder.
    read
        Reads all of it.
    whole
        Returns a file's content with the checksum that belongs to it.
    pattern
        Of the files' names.
    """

    path: Path
    read: Callable[[Path], object]
    whole: Callable[[Path, bytes], bytes]
    pattern: str

    @property
    def files(self) -> list[Path]:
        """The JSON files, sorted."""
        return sorted(self.path.rglob(self.pattern))

    def every(self) -> list[bytes]:
        """Return the input for each change of each entry of each file."""
        return [
            bytes([number, place >> 8, place & 255, change])
            for number, file in enumerate(self.files)
            for place, _ in enumerate(places(json.loads(file.read_text())))
            for change in range(len(CHANGES))
        ]

    def run(self, data: bytes) -> None:
        """Read the folder with entries changed: four bytes for each, which name file, entry (two) and change."""
        before: dict[Path, bytes] = {}
        try:
            with suppress(RecursionError):  # of the json module here: values that are nested again
                self._change(data, before)
            self.read(self.path)
        finally:
            for file, content in before.items():
                file.write_bytes(content)

    def _change(self, data: bytes, before: dict[Path, bytes]) -> None:
        """Change entries, and keep what the files were."""
        for start in range(0, min(len(data), 16) - 3, 4):
            number, high, low, change = data[start : start + 4]
            file = self.files[number % len(self.files)]
            before.setdefault(file, file.read_bytes())
            values = json.loads(file.read_text())
            found = list(places(values)) if isinstance(values, dict | list) else []
            if found:
                CHANGES[change % len(CHANGES)](*found[(high << 8 | low) % len(found)])
            file.write_bytes(self.whole(file, json.dumps(values).encode()))
