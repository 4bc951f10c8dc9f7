"""Files for results that are soon deleted: arrays in parts, each with its checksum.

They are for tasks that each gather one part of many files, or read the result of one other task. A file of n parts
begins with n + 1 records of two int64: the index of the part's first item, and the part's checksum; the items follow,
part after part. A checksum is the crc32c of the end of the file's path, the part's number and bounds, and its items, so
no two parts have the same. Its bit 32 is set; in files of older versions it is not, and the checksum is the crc32c of
the items alone. Zeros, which a power loss may leave instead of a file, would be such a file without items, and are
refused.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import google_crc32c
import numpy as np
import numpy.typing as npt

from daskw2v.errors import DamageError
from daskw2v.store.checksums import retry_damaged
from daskw2v.store.storage import Store
from daskw2v.types import Int64Array

_RECORD = 16  # bytes
_WITH_PATH = 1 << 32  # set in a checksum that includes the path
_FEW = 1 << 10  # parts of a file whose records are read together, and number of files whose records are cached


class Bounds(NamedTuple):
    """The bounds of a part: items start..stop-1 of a file; its number, and the checksum in its record."""

    start: int
    stop: int
    part: int
    checksum: int


def write_parts(
    folder: Store, name: str, edges: Sequence[int] | Int64Array, items: npt.NDArray[Any], *, named: bool = False
) -> None:
    """Write a file of items, shape (n, ...), whose part k is items[edges[k] : edges[k + 1]].

    `named` is as in `Store.write_raw`.
    """
    records = np.zeros((len(edges), 2), np.int64)
    records[:, 0] = edges
    items = np.ascontiguousarray(items)
    for k, (start, stop) in enumerate(pairwise(edges)):
        records[k, 1] = _compute_checksum(folder, name, Bounds(int(start), int(stop), k, _WITH_PATH), items[start:stop])
    folder.write_raw(name, records, items, named=named)


def read_parts(
    folder: Store, name: str, n_parts: int, first: int, last: int, dtype: npt.DTypeLike, columns: int
) -> list[npt.NDArray[Any]]:
    """Return the parts first..last-1 of a file of `n_parts` parts, read-only arrays of shape (items, columns).

    Raises
    ------
    DamageError
        If the file is missing or too short, or was changed after it was written.
    """
    head_size, item_size = _RECORD * (n_parts + 1), np.dtype(dtype).itemsize * columns

    def read() -> list[npt.NDArray[Any]]:
        bounds = _read_bounds(folder, name, n_parts, first, last)
        start, stop = bounds[0].start, bounds[-1].stop
        content = folder.read_range(name, head_size + item_size * start, head_size + item_size * stop)
        items = np.frombuffer(content, dtype).reshape(-1, columns)
        parts = [items[part.start - start : part.stop - start] for part in bounds]
        if any(
            _compute_checksum(folder, name, part, read) != part.checksum
            for part, read in zip(bounds, parts, strict=True)
        ):
            _read_few_records.cache_clear()
            raise DamageError.of(f"{folder.url}/{name}", "is not what was written")
        return parts

    return retry_damaged(read)


def read_part(
    folder: Store, name: str, n_parts: int, part: int, dtype: npt.DTypeLike, columns: int
) -> npt.NDArray[Any]:
    """Return part `part` of a file of `n_parts` parts, as `read_parts` does."""
    return read_parts(folder, name, n_parts, part, part + 1, dtype, columns)[0]


def _read_bounds(folder: Store, name: str, n_parts: int, first: int, last: int) -> list[Bounds]:
    """Return the bounds of the parts first..last-1 of a file."""
    if n_parts <= _FEW:
        records = _read_few_records(folder, name, n_parts)[first : last + 1]
    else:
        records = _read_records(folder, name, first, last)
    pairs = enumerate(pairwise(records.tolist()), first)
    return [Bounds(start, stop, part, checksum) for part, ((start, checksum), (stop, _)) in pairs]


def _read_records(folder: Store, name: str, first: int, last: int) -> Int64Array:
    """Read the records first..last of a file, shape (last - first + 1, 2); raises DamageError if they make no sense."""
    records = np.frombuffer(folder.read_range(name, _RECORD * first, _RECORD * (last + 1)), np.int64).reshape(-1, 2)
    if not records.any() or records[0, 0] < 0 or (np.diff(records[:, 0]) < 0).any():
        raise DamageError.of(f"{folder.url}/{name}", "is not what was written")
    return records


@lru_cache(maxsize=_FEW)
def _read_few_records(folder: Store, name: str, n_parts: int) -> Int64Array:
    """Return all records of a file of few parts, cached, shape (n_parts + 1, 2)."""
    return _read_records(folder, name, 0, n_parts)


def _compute_checksum(folder: Store, name: str, bounds: Bounds, items: npt.NDArray[Any]) -> int:
    """Return the checksum of a part's items, with the file's path if the checksum in its record includes the path."""
    with_path = bounds.checksum & _WITH_PATH
    path = f"{'/'.join(folder.url.split('/')[-2:])}/{name} {bounds[:3]}" if with_path else ""
    return with_path | int(google_crc32c.extend(google_crc32c.value(path.encode()), items.reshape(-1).view(np.uint8)))
