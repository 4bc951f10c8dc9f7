"""Limits of files that anybody may have written: names, links and sizes, checked before memory is taken.

A model or a shard may be a stranger's. `daskw2v.store.zarr_schema` has the limits of arrays.
"""

import json
import math
import os
import re
import stat
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np
import psutil

from daskw2v.errors import FormatError, StoreError

if sys.platform != "win32":
    import resource

T = TypeVar("T")

MOST_METADATA = 1 << 24  # bytes of a Zarr node's metadata
MOST_MANIFEST = 1 << 28  # bytes of a manifest: a million files, and more
_DEEPEST = 32  # levels of JSON; ours have five
_HOLDERS = dict, list
_SURROGATE = re.compile("[\ud800-\udfff]")  # UTF-8 has none
_SMALL = 1 << 28  # bytes that are read without asking how much memory is free
# Limits of containers, of both versions of cgroups, which Dask gives to its workers, too
_CGROUPS_1 = "memory/memory.limit_in_bytes", "memory/memory.soft_limit_in_bytes"
_CGROUPS_2 = "memory.max", "memory.high", "memory.low"


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
    foreign = ("://", "::", "\0", "\\", ":") if sys.platform == "win32" else ("://", "::", "\0")
    if name.startswith("/") or ".." in name.split("/") or any(part in name for part in foreign):
        raise StoreError(
            f"{name!r} leads out of its folder.", "Whoever wrote that name meant no good: do not use what holds it."
        )
    if _SURROGATE.search(name):
        raise StoreError(f"{name!r} is no name of a file.", "Do not use what holds it.")


def check_file(folder: str, name: str, most: int | None = None) -> None:
    """Refuse a name in a local folder that is not a file of the folder.

    Parameters
    ----------
    folder
        Where links may lead to the folder itself, as its owner likes.
    name
        A name below the folder. A missing file is no error.
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
        status = os.stat(path)
    except OSError:
        return
    if not stat.S_ISREG(status.st_mode) and (most is not None or not stat.S_ISDIR(status.st_mode)):
        raise refused(f"{folder}/{name}", "is no file")
    if most is not None and status.st_size > most:
        raise refused(f"{folder}/{name}", f"has {status.st_size:,} bytes, where {most:,} are the most")


def check_way(path: str, depth: int) -> None:
    """Refuse links to folders on the way to what is written or deleted on this machine.

    Parameters
    ----------
    path
        The file or folder that is changed. If it is itself a link, the link is replaced or deleted.
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


def check_room(shape: Sequence[int], selection: Any, itemsize: int, place: str) -> None:
    """Refuse to read an array, or a part of one, that memory has no room for.

    Parameters
    ----------
    shape, itemsize
        Of the array, as it declares them.
    selection
        The part that is read: numbers, slices or arrays of numbers, for the first axes.
    place
        URL or path of the array, for the message.

    Raises
    ------
    StoreError
        If it would take more than the memory that is free.
    """
    chosen = parts_of(selection)
    lengths = [_length(n, part) for n, part in zip(shape, chosen, strict=False)]
    size = math.prod([*lengths, *shape[len(chosen) :]]) * itemsize
    if size > _SMALL and size > (free := free_memory()):
        raise StoreError(
            f"{place} declares {size:,} bytes of what is to be read; {free:,} of memory are free.",
            "Take a machine with more memory, or open a model with in_memory=False. If it should be smaller, it is "
            "damaged, or made to do harm.",
        )


def parts_of(selection: Any) -> tuple[Any, ...]:
    """Return the parts of a selection of an array, one for each axis from the first on."""
    if selection is ...:
        return ()
    return selection if isinstance(selection, tuple) else (selection,)


def free_memory() -> int:
    """Return the bytes that are available; no more than the system or a container allows to this process."""
    return min(int(psutil.virtual_memory().available), memory_limit())


def memory_limit(cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the bytes that the system, or the container with these `cgroups`, allows to this process."""
    limits = [int(psutil.virtual_memory().total)]
    if sys.platform != "win32":
        limits.append(resource.getrlimit(resource.RLIMIT_RSS)[1])
    for name in _CGROUPS_1 + _CGROUPS_2:
        with suppress(OSError, ValueError):  # not there, or "max"
            limits.append(int((cgroups / name).read_text()))
    return min(limit for limit in limits if limit > 0)


def _length(n: int, part: Any) -> int:
    return len(range(*part.indices(n))) if isinstance(part, slice) else np.size(part)


def typed(cls: type[T], values: Any, place: str, **others: Any) -> T:
    """Make a dataclass or named tuple of JSON values, each of the type that its field declares.

    Parameters
    ----------
    cls, values
        The type, and the values of its fields by name. A list stands for a tuple of any length.
    place
        URL or path of the file, for messages.
    others
        Fields that were not read.

    Raises
    ------
    StoreError
        If one is missing, unknown or of another type, or a number is not finite or, if whole, not in 0..2^63 - 1.
    """
    hints = {name: hint for name, hint in get_type_hints(cls).items() if name not in others}
    if not isinstance(values, dict) or not values.keys() <= hints.keys():
        raise refused(place, f"holds no {cls.__name__}: {shown(values)}")
    made = {}
    for name, value in values.items():
        is_tuple = get_origin(hints[name]) is tuple
        kind, items = (get_args(hints[name])[0], value) if is_tuple else (hints[name], [value])
        if not isinstance(items, list) or not all(_is(item, kind) for item in items):
            raise refused(place, f"holds a {cls.__name__} with {name}={shown(value)}")
        made[name] = tuple(value) if is_tuple else value
    try:
        return cls(**others, **made)
    except TypeError as error:
        raise refused(place, f"holds no {cls.__name__} ({error})") from None


def _is(value: Any, kind: Any) -> bool:
    """Return whether a JSON value is of a type; whole numbers are in 0..2^63 - 1, others finite."""
    in_range = math.isfinite(value) if isinstance(value, float) else not isinstance(value, int) or 0 <= value < 1 << 63
    return in_range and isinstance(value, kind)


def refused(place: str, problem: str) -> FormatError:
    """Return the error for a file that must not be read."""
    return FormatError(f"{place} {problem}.", "It is damaged, or not written by daskw2v: take another copy.")


def shown(values: Any) -> str:
    """Return the beginning of values that were read, for a message."""
    return repr(values)[:120]
