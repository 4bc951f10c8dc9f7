"""What is believed of files that anybody may have written: names, links and sizes, checked before memory is taken.

A model or a shard may be a stranger's. Which arrays are read is said in `daskw2v.store.zarr_schema`.
"""

import asyncio
import json
import math
import os
import re
import shutil
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
from zarr.abc.store import ByteRequest, OffsetByteRequest, RangeByteRequest, SuffixByteRequest
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype
from zarr.storage import LocalStore

from daskw2v.errors import FormatError, StoreError
from daskw2v.store.durability import is_local, wrote
from daskw2v.store.mapping import MappedBuffer, mapped
from daskw2v.store.memory import free_memory

T = TypeVar("T")

MOST_METADATA = 1 << 24  # bytes of a Zarr node's metadata
MOST_MANIFEST = 1 << 28  # bytes of a manifest: a million files, and more
_DEEPEST = 32  # levels of JSON; ours have five
_HOLDERS = dict, list
_SURROGATE = re.compile("[\ud800-\udfff]")  # UTF-8 has none
_SMALL = 1 << 28  # bytes that are read without asking how much memory is free


def parsed(content: bytes) -> Any:
    """Return JSON values.

    Raises
    ------
    ValueError
        If it is not JSON, or nested so deeply that a function that calls itself would fail.
    """
    try:
        values = json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    level = [values] if isinstance(values, _HOLDERS) else []
    for _ in range(_DEEPEST):
        within = (value.values() if isinstance(value, dict) else value for value in level)
        level = [value for held in within for value in held if isinstance(value, _HOLDERS)]
    if level:
        raise ValueError(f"it is nested more than {_DEEPEST} deep")
    return values


def check_name(name: str) -> None:
    r"""Refuse names that lead out of the folder they are in.

    Raises
    ------
    StoreError
        If the name is absolute, a URL, holds `..`, a NUL or half of a surrogate pair; on Windows also a \ or a colon.
    """
    outside = name.startswith("/") or ".." in name.split("/") or "://" in name or "::" in name or "\0" in name
    if outside or (sys.platform == "win32" and ("\\" in name or ":" in name)):
        raise StoreError(
            f"{name!r} leads out of its folder.", "Whoever wrote that name meant no good: do not use what holds it."
        )
    if _SURROGATE.search(name):
        raise StoreError(f"{name!r} is no name of a file.", "Do not use what holds it.")


def check_file(folder: str, name: str, most: int | None = None) -> None:
    """Refuse what lies in a local folder, and is no file of it.

    Parameters
    ----------
    folder
        Where links may lead to the folder itself, as its owner likes.
    name
        Below it. What is not there is no error.
    most
        Bytes that it may have.

    Raises
    ------
    StoreError
        If a link leads out of the folder, it is a pipe or a device, or larger.
    """
    path, top = os.path.realpath(f"{folder}/{name}"), os.path.realpath(folder)
    if not Path(path).is_relative_to(top):
        raise refused(f"{folder}/{name}", "is a link that leads out of its folder")
    try:
        found = os.stat(path)
    except OSError:
        return
    if not stat.S_ISREG(found.st_mode) and (most is not None or not stat.S_ISDIR(found.st_mode)):
        raise refused(f"{folder}/{name}", "is no file")
    if most is not None and found.st_size > most:
        raise refused(f"{folder}/{name}", f"has {found.st_size:,} bytes, where {most:,} are the most")


def check_way(path: str, depth: int) -> None:
    """Refuse links to folders on the way to what is written or deleted on this machine.

    Parameters
    ----------
    path
        What is changed. If it is itself a link, that is replaced or deleted.
    depth
        Number of names, at its end, below the folder that the user named; the way there is the user's.

    Raises
    ------
    StoreError
        If there is one.
    """
    for _ in range(depth - 1):
        path = os.path.dirname(path)
        if os.path.islink(path):
            raise StoreError(
                f"{path} is a link, through which nothing is written or deleted.",
                "Keep the whole work directory on the other disk, or mount the folder that it leads to here.",
            )


class Folder(LocalStore):
    """A Zarr store in a folder of this machine, from which no link leads out, and whose metadata are small.

    The disk is asked in threads only: one that hangs would stop the loop that all stores share.

    Parameters
    ----------
    root, read_only
        As of `LocalStore`.
    depth
        As of `Store`.
    """

    def __init__(self, root: Path | str, *, read_only: bool = False, depth: int = 0) -> None:
        super().__init__(root, read_only=read_only)
        self._depth = depth

    def with_read_only(self, read_only: bool = False) -> "Folder":
        """Return the same store, to read only or not."""
        return Folder(self.root, read_only=read_only, depth=self._depth)

    async def _open(self, *, mode: object = None) -> None:
        self._is_open = True  # where something is written, folders are made

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """Return a file's content, or None where there is none; raises as `check_file` does.

        A whole file is mapped for a `MappedBuffer`, if it is on a local disk.
        """
        buffer = (prototype or default_buffer_prototype()).buffer
        maps = byte_range is None and issubclass(buffer, MappedBuffer)
        # Checked and read at once: a thread for each would cost more than the check
        content = await asyncio.to_thread(_read, str(self.root), key, byte_range, maps)
        return None if content is None else buffer.from_bytes(content)

    async def set(self, key: str, value: Buffer) -> None:
        """Write a file, which is forced to the disk before a manifest names it; raises as `check_way` does."""
        await asyncio.to_thread(self._check_way, key)
        await super().set(key, value)
        wrote(str(self.root / key))

    async def delete_dir(self, prefix: str) -> None:
        """Delete a folder, if it is there; raises as `check_way` does."""
        await asyncio.to_thread(self._check_way, prefix)
        await asyncio.to_thread(_delete, self.root / prefix)

    async def delete(self, key: str) -> None:
        """Delete a file, if it is there; raises as `check_way` does."""
        await asyncio.to_thread(self._check_way, key)
        await super().delete(key)

    def _check_way(self, key: str) -> None:
        check_way(f"{self.root}/{key}", self._depth + key.count("/") + 1)


def _delete(folder: Path) -> None:
    if folder.is_dir():
        shutil.rmtree(folder)


def _read(folder: str, name: str, part: ByteRequest | None, maps: bool) -> bytes | memoryview | None:
    """Return what is asked for of a file that may be read, or None where there is none."""
    check_file(folder, name, MOST_METADATA if name.endswith("zarr.json") else None)
    try:
        if maps and is_local(folder):
            return mapped(f"{folder}/{name}")
        with open(f"{folder}/{name}", "rb") as file:
            match part:
                case RangeByteRequest(start, end):
                    file.seek(start)
                    return file.read(end - start)
                case OffsetByteRequest(offset):
                    file.seek(offset)
                case SuffixByteRequest(suffix):
                    file.seek(max(0, file.seek(0, os.SEEK_END) - suffix))
            return file.read()
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        return None


def check_room(shape: Sequence[int], selection: Any, itemsize: int, place: str) -> None:
    """Refuse to read what memory has no room for.

    Parameters
    ----------
    shape, itemsize
        Of the array, as it declares them.
    selection
        What is asked for: numbers, slices or arrays of numbers, for the first axes.
    place
        What is read, for the message.

    Raises
    ------
    StoreError
        If it would take more than the memory that is free.
    """
    chosen = selection if isinstance(selection, tuple) else () if selection is ... else (selection,)
    lengths = [_length(n, part) for n, part in zip(shape, chosen, strict=False)]
    size = math.prod([*lengths, *shape[len(chosen) :]]) * itemsize
    if size > _SMALL and size > (free := free_memory()):
        raise StoreError(
            f"{place} declares {size:,} bytes of what is to be read; {free:,} of memory are free.",
            "Take a machine with more memory, or open a model with in_memory=False. If it should be smaller, it is "
            "damaged, or made to do harm.",
        )


def _length(n: int, part: Any) -> int:
    return len(range(*part.indices(n))) if isinstance(part, slice) else np.size(part)


def typed(cls: type[T], values: Any, place: str, **given: Any) -> T:
    """Make a dataclass or named tuple of JSON values, each of the type that its field declares.

    Parameters
    ----------
    cls, values
        What is made, and its fields by name. A list stands for a tuple of any length.
    place
        What was read, for messages.
    given
        Fields that were not read.

    Raises
    ------
    StoreError
        If one is missing, unknown or of another type, or a number is not finite or, if whole, not in 0..2^63 - 1.
    """
    hints = {name: hint for name, hint in get_type_hints(cls).items() if name not in given}
    if not isinstance(values, dict) or not values.keys() <= hints.keys():
        raise refused(place, f"holds no {cls.__name__}: {shown(values)}")
    made = {}
    for name, value in values.items():
        item = get_args(hints[name])[0] if get_origin(hints[name]) is tuple else None
        if not (_is(value, hints[name]) if item is None else _is(value, list) and all(_is(v, item) for v in value)):
            raise refused(place, f"holds a {cls.__name__} with {name}={shown(value)}")
        made[name] = value if item is None else tuple(value)
    try:
        return cls(**given, **made)
    except TypeError as error:
        raise refused(place, f"holds no {cls.__name__} ({error})") from None


def _is(value: Any, kind: Any) -> bool:
    """Tell whether a JSON value is of a type; whole numbers are in 0..2^63 - 1, others finite."""
    in_range = math.isfinite(value) if isinstance(value, float) else not isinstance(value, int) or 0 <= value < 1 << 63
    return in_range and isinstance(value, kind)


def refused(place: str, problem: str) -> FormatError:
    """Return the error for a file that nobody should read."""
    return FormatError(f"{place} {problem}.", "It is damaged, or not written by daskw2v: take another copy.")


def shown(values: Any) -> str:
    """Return the beginning of what was found, for a message."""
    return repr(values)[:120]
