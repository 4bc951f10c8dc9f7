"""Files for results that are soon deleted: arrays in parts, each with its checksum.

For tasks that each gather the same part of many files, or read the result of one other task. A file of n parts begins
with n + 1 records, edge int64 and checksum of the part that begins there int64; the items follow, part after part. A
checksum is the crc32c of the end of the file's path, the part's number and edges, and its items: no other part has the
same. Bit 32 is set, too; in files of older versions it is not, and the checksum is the crc32c of the items alone.
Zeros, which a power loss may leave instead of a file, would be such a file without items, and are refused.
"""

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import google_crc32c
import numpy as np
import numpy.typing as npt

from daskw2v.errors import DamageError
from daskw2v.store.checksums import twice
from daskw2v.store.storage import Store
from daskw2v.types import Int64Array

_RECORD = 16  # bytes
_BOUND = 1 << 32  # in a checksum of the path, too
_FEW = 1 << 10  # parts of a file whose records are read together, and files for which they are cached


class Bounds(NamedTuple):
    """Items start..stop-1 of a file, the number of their part, and its checksum."""

    start: int
    stop: int
    part: int
    checksum: int


def write_parts(
    folder: Store, name: str, edges: Sequence[int] | Int64Array, items: npt.NDArray[Any], *, named: bool = False
) -> None:
    """Write items, shape (n, ...), whose part k is items edges[k]:edges[k + 1]; `named` as of `Store.write_raw`."""
    records = np.zeros((len(edges), 2), np.int64)
    records[:, 0] = edges
    items = np.ascontiguousarray(items)
    for k, (start, stop) in enumerate(pairwise(edges)):
        records[k, 1] = _checksum(folder, name, Bounds(int(start), int(stop), k, _BOUND), items[start:stop])
    folder.write_raw(name, records, items, named=named)


def read_parts(
    folder: Store, name: str, n_parts: int, first: int, last: int, dtype: npt.DTypeLike, columns: int
) -> list[npt.NDArray[Any]]:
    """Read the parts first..last-1 of a file of `n_parts`, each of shape (items, columns), to read only.

    Raises
    ------
    DamageError
        If the file is gone, shorter, or was changed after it was written.
    """
    head, size = _RECORD * (n_parts + 1), np.dtype(dtype).itemsize * columns

    def read() -> list[npt.NDArray[Any]]:
        bounds = _bounds(folder, name, n_parts, first, last)
        start, stop = bounds[0].start, bounds[-1].stop
        content = folder.read_range(name, head + size * start, head + size * stop)
        items = np.frombuffer(content, dtype).reshape(-1, columns)
        parts = [items[part.start - start : part.stop - start] for part in bounds]
        if any(_checksum(folder, name, part, read) != part.checksum for part, read in zip(bounds, parts, strict=True)):
            _few_records.cache_clear()
            raise DamageError.of(f"{folder.url}/{name}", "is not what was written")
        return parts

    return twice(read)


def read_part(
    folder: Store, name: str, n_parts: int, part: int, dtype: npt.DTypeLike, columns: int
) -> npt.NDArray[Any]:
    """Read a part of a file, as `read_parts` does."""
    return read_parts(folder, name, n_parts, part, part + 1, dtype, columns)[0]


def _bounds(folder: Store, name: str, n_parts: int, first: int, last: int) -> list[Bounds]:
    """Return where the parts first..last-1 of a file lie."""
    if n_parts <= _FEW:
        records = _few_records(folder, name, n_parts)[first : last + 1]
    else:
        records = _records(folder, name, first, last)
    pairs = enumerate(pairwise(records.tolist()), first)
    return [Bounds(start, stop, part, checksum) for part, ((start, checksum), (stop, _)) in pairs]


def _records(folder: Store, name: str, first: int, last: int) -> Int64Array:
    records = np.frombuffer(folder.read_range(name, _RECORD * first, _RECORD * (last + 1)), np.int64).reshape(-1, 2)
    if not records.any() or records[0, 0] < 0 or (np.diff(records[:, 0]) < 0).any():
        raise DamageError.of(f"{folder.url}/{name}", "is not what was written")
    return records


@lru_cache(maxsize=_FEW)
def _few_records(folder: Store, name: str, n_parts: int) -> Int64Array:
    return _records(folder, name, 0, n_parts)


def _checksum(folder: Store, name: str, bounds: Bounds, items: npt.NDArray[Any]) -> int:
    """Return the checksum of a part, and of its file's path if the checksum in its record is of the path, too."""
    bound = bounds.checksum & _BOUND
    where = f"{'/'.join(folder.url.split('/')[-2:])}/{name} {bounds[:3]}" if bound else ""
    return bound | int(google_crc32c.extend(google_crc32c.value(where.encode()), items.reshape(-1).view(np.uint8)))
