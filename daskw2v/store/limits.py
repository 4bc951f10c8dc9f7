"""Limits of files that a stranger may have written: names, links and sizes, checked before memory is allocated.

`daskw2v.store.zarr_schema` has the limits of arrays.
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

MAX_METADATA = 1 << 24  # bytes of a Zarr node's metadata
MAX_MANIFEST = 1 << 28  # bytes of a manifest: a million files, and more
_MAX_DEPTH = 32  # levels of JSON; ours have five
_CONTAINERS = dict, list
_SURROGATE = re.compile("[\ud800-\udfff]")  # UTF-8 has none
_SMALL = 1 << 28  # bytes that are read without a check of free memory
# Limits of containers, of both versions of cgroups, which Dask applies to its workers, too
_CGROUPS_1 = "memory/memory.limit_in_bytes", "memory/memory.soft_limit_in_bytes"
_CGROUPS_2 = "memory.max", "memory.high", "memory.low"


def parse_json(content: bytes) -> Any:
    """Return the value of JSON text.

    Raises
    ------
    ValueError
        If the content is not JSON, or is nested so deeply that recursive functions would fail.
    """
    try:
        values = json.loads(content)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    level = [values] if isinstance(values, _CONTAINERS) else []
    for _ in range(_MAX_DEPTH):
        children = (value.values() if isinstance(value, dict) else value for value in level)
        level = [value for container in children for value in container if isinstance(value, _CONTAINERS)]
    if level:
        raise ValueError(f"it is nested more than {_MAX_DEPTH} deep")
    return values


def check_name(name: str) -> None:
    r"""Refuse the name of a file that would lead out of its folder.

    Raises
    ------
    StoreError
        If the name is absolute, a URL, holds `..`, a NUL or half of a surrogate pair; on Windows also a \ or a colon.
    """
    forbidden = ("://", "::", "\0", "\\", ":") if sys.platform == "win32" else ("://", "::", "\0")
    if name.startswith("/") or ".." in name.split("/") or any(part in name for part in forbidden):
        problem = f"{name!r} leads out of its folder."
        raise StoreError(problem, "Whoever wrote that name meant no good: do not use what holds it.")
    if _SURROGATE.search(name):
        raise StoreError(f"{name!r} is no name of a file.", "Do not use what holds it.")


def check_file(folder: str, name: str, max_bytes: int | None = None) -> None:
    """Refuse a path below a local folder that is not a file of the folder.

    Parameters
    ----------
    folder
        Path of the folder, which may itself be reached by links.
    name
        Path of the file below the folder. A missing file is no error.
    max_bytes
        Greatest number of bytes of the file; None for a file of any size, or a folder.

    Raises
    ------
    StoreError
        If a link leads out of the folder, or the path is a pipe or a device, or the file is larger.
    """
    path, folder_path = os.path.realpath(f"{folder}/{name}"), os.path.realpath(folder)
    if not Path(path).is_relative_to(folder_path):
        raise refused(f"{folder}/{name}", "is a link that leads out of its folder")
    try:
        status = os.stat(path)
    except OSError:
        return
    if not stat.S_ISREG(status.st_mode) and (max_bytes is not None or not stat.S_ISDIR(status.st_mode)):
        raise refused(f"{folder}/{name}", "is no file")
    if max_bytes is not None and status.st_size > max_bytes:
        raise refused(f"{folder}/{name}", f"has {status.st_size:,} bytes, where {max_bytes:,} are the most")


def check_links(path: str, depth: int) -> None:
    """Refuse a local path, to be written or deleted, whose parent folders are links.

    Parameters
    ----------
    path
        The file or folder that is changed. If it is itself a link, the link is replaced or deleted.
    depth
        Number of names at the end of the path that are below the folder that the user named; links to that folder are
        allowed.

    Raises
    ------
    StoreError
        If one of the last `depth` - 1 parent folders is a link.
    """
    for _ in range(depth - 1):
        path = os.path.dirname(path)
        if os.path.islink(path):
            raise StoreError(
                f"{path} is a link, through which nothing is written or deleted.",
                "Keep the whole work directory on the other disk, or mount the folder that it leads to here.",
            )


def check_room(shape: Sequence[int], selection: Any, itemsize: int, location: str) -> None:
    """Check that memory has room for an array, or a part of it, that is to be read.

    Parameters
    ----------
    shape, itemsize
        Shape of the array, and bytes of an element, as the array declares them.
    selection
        The part that is read: integers, slices or arrays of integers, for the first axes.
    location
        URL or path of the array, for the message.

    Raises
    ------
    StoreError
        If the part would take more memory than is free.
    """
    parts = split_selection(selection)
    lengths = [_count_selected(n, part) for n, part in zip(shape, parts, strict=False)]
    size = math.prod([*lengths, *shape[len(parts) :]]) * itemsize
    if size > _SMALL and size > (free := free_memory()):
        raise StoreError(
            f"{location} declares {size:,} bytes of what is to be read; {free:,} of memory are free.",
            "Take a machine with more memory, or open a model with in_memory=False. If it should be smaller, it is "
            "damaged, or made to do harm.",
        )


def split_selection(selection: Any) -> tuple[Any, ...]:
    """Return a selection of an array as a tuple, with an element for each axis from the first on."""
    if selection is ...:
        return ()
    return selection if isinstance(selection, tuple) else (selection,)


def free_memory() -> int:
    """Return the bytes of memory that are free, at most as many as the system or a container allows this process."""
    return min(int(psutil.virtual_memory().available), memory_limit())


def memory_limit(cgroups: Path = Path("/sys/fs/cgroup")) -> int:
    """Return the bytes of memory that the system, or the container with these `cgroups`, allows this process."""
    limits = [int(psutil.virtual_memory().total)]
    if sys.platform != "win32":
        limits.append(resource.getrlimit(resource.RLIMIT_RSS)[1])
    for name in _CGROUPS_1 + _CGROUPS_2:
        with suppress(OSError, ValueError):  # not there, or "max"
            limits.append(int((cgroups / name).read_text()))
    return min(limit for limit in limits if limit > 0)


def _count_selected(n: int, part: Any) -> int:
    """Return the number of elements that a selection has of an axis of length `n`."""
    return len(range(*part.indices(n))) if isinstance(part, slice) else np.size(part)


def typed(cls: type[T], values: Any, location: str, **others: Any) -> T:
    """Return a dataclass or named tuple of JSON values, after a check of their types.

    Parameters
    ----------
    cls, values
        The class, and the values of its fields by name. A list becomes a tuple of any length.
    location
        URL or path of the file, for messages.
    others
        Values of further fields, which are not checked.

    Raises
    ------
    StoreError
        If a field is missing, unknown or of another type; if a number is not finite, or an integer not in 0..2^63 - 1.
    """
    hints = {name: hint for name, hint in get_type_hints(cls).items() if name not in others}
    if not isinstance(values, dict) or not values.keys() <= hints.keys():
        raise refused(location, f"holds no {cls.__name__}: {shown(values)}")
    fields = {}
    for name, value in values.items():
        is_tuple = get_origin(hints[name]) is tuple
        item_type, items = (get_args(hints[name])[0], value) if is_tuple else (hints[name], [value])
        if not isinstance(items, list) or not all(_has_type(item, item_type) for item in items):
            raise refused(location, f"holds a {cls.__name__} with {name}={shown(value)}")
        fields[name] = tuple(value) if is_tuple else value
    try:
        return cls(**others, **fields)
    except TypeError as error:
        raise refused(location, f"holds no {cls.__name__} ({error})") from None


def _has_type(value: Any, expected: Any) -> bool:
    """Return whether a JSON value is of a type, integers in 0..2^63 - 1 and other numbers finite."""
    in_range = math.isfinite(value) if isinstance(value, float) else not isinstance(value, int) or 0 <= value < 1 << 63
    return in_range and isinstance(value, expected)


def refused(location: str, problem: str) -> FormatError:
    """Return the error for a file that must not be read; `problem` is the message's verb phrase, such as "is cut"."""
    return FormatError(f"{location} {problem}.", "It is damaged, or not written by daskw2v: take another copy.")


def shown(values: Any) -> str:
    """Return the beginning of the repr of values that were read, at most 120 characters, for a message."""
    return repr(values)[:120]
