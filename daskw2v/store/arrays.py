"""Arrays of Zarr groups: an array is written whole by one task, or by several along the bounds of its files."""

from collections.abc import Collection
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec
from zarr.core.sync import sync

from daskw2v.errors import DamageError, StoreError
from daskw2v.store.checksums import StoredArray
from daskw2v.store.places import Written
from daskw2v.store.retries import RetryingStore
from daskw2v.store.zarr_schema import bounded

_CHUNK = 1 << 20  # elements of a one-dimensional chunk: 4 MB of int32


def create_array(
    group: zarr.Group,
    name: str,
    shape: tuple[int, ...],
    dtype: npt.DTypeLike,
    chunk_rows: int = _CHUNK,
    *,
    chunk_columns: int | None = None,
    shard_rows: int | None = None,
    fill_value: float = 0,
    attributes: dict[str, Any] | None = None,
    held: bool = False,
) -> StoredArray:
    """Declare an array. Once all of it is written, `StoredArray.finish` binds its chunks to their places.

    Parameters
    ----------
    group, name
        Where.
    shape, dtype
        Of what will be written.
    chunk_rows, chunk_columns
        Elements along the first axis that are compressed together, and along the others; all of the others by default.
    shard_rows
        With it, chunks lie in Zarr shards of so many rows, a multiple of chunk_rows, and all columns: one file each.
    fill_value
        What is read where nothing was written.
    attributes
        What else is to be known of it.
    held
        Whether its metadata are written by `finish` alone: for who writes all of it.
    """
    rows, others = max(1, min(chunk_rows, shape[0])), [max(1, n) for n in shape[1:]]
    columns = [min(n, chunk_columns or n) for n in others]
    chunks = (rows, *columns)
    # Shards are whole chunks, beyond the array's end where need be.
    wanted = None if shard_rows is None else zip((shard_rows, *others), chunks, strict=True)
    shards = None if wanted is None else tuple(-(-n // c) * c for n, c in wanted)
    # lz4 after a byte shuffle: 2-3 times smaller for ids, at memory speed (zstd costs more than tokenising).
    compressor = BloscCodec(cname="lz4", clevel=5, shuffle="shuffle", typesize=np.dtype(dtype).itemsize)
    if held:
        _store(group).hold("/".join(filter(None, (group.path, name))))
    array = group.create_array(
        name,
        shape=shape,
        chunks=chunks,
        shards=shards,
        dtype=dtype,
        compressors=[compressor, Crc32cCodec()],
        fill_value=fill_value,
        attributes=attributes,
        config={"write_empty_chunks": True},  # a missing one is damage; and looking for empty ones costs more
    )
    return StoredArray(array, f"{_url(group)}/{name}")


def write_array(
    group: zarr.Group,
    name: str,
    values: npt.NDArray[Any],
    chunk_rows: int = _CHUNK,
    *,
    one_shard: bool = False,
    attributes: dict[str, Any] | None = None,
) -> None:
    """Write a whole array at once."""
    shard_rows = max(1, len(values)) if one_shard else None
    array = create_array(
        group, name, values.shape, values.dtype, chunk_rows, shard_rows=shard_rows, attributes=attributes, held=True
    )
    if values.size:
        array[...] = values
    array.finish()


def write_rows(array: StoredArray, start: int, rows: npt.NDArray[Any]) -> None:
    """Write rows from `start` on, along the bounds of files: two tasks must never meet in one chunk or shard.

    Raises
    ------
    StoreError
        If the region does not begin and end at the bound of a chunk; of a shard, where there are such.
    """
    stop, step, files = start + len(rows), (array.shards or array.chunks)[0], "shards" if array.shards else "chunks"
    if start % step or (stop % step and stop != array.shape[0]):
        raise StoreError(
            f"Rows {start}:{stop} of {array.url} do not lie along its {files} of {step} rows.",
            f"Write whole {files}: two writers in one lose data silently.",
        )
    array[start:stop] = rows


def open_array(group: zarr.Group, name: str) -> StoredArray:
    """Open an array of a group.

    Raises
    ------
    DamageError
        If the group has no such array, or its metadata are not what was written.
    """
    url = f"{_url(group)}/{name}"
    try:
        array = group.get(name)
    except (ValueError, TypeError, OverflowError) as error:
        raise DamageError.of(url, f"cannot be opened ({error})") from error
    if not isinstance(array, zarr.Array):
        raise DamageError.of(url, "is missing")
    return StoredArray(bounded(array), url)


def finish_arrays(group: zarr.Group, written: Collection[Written]) -> None:
    """Bind the chunks of arrays, which several tasks wrote, to their places.

    Parameters
    ----------
    group
        Where, to be written.
    written
        What the tasks' `StoredArray.written` returned.

    Raises
    ------
    DamageError
        If a chunk was not written.
    """
    store = _store(group)
    for each in written:
        store.places.add(each)
    for path in dict.fromkeys(chain.from_iterable(written)):
        sync(store.finish(path))


def open_subgroup(group: zarr.Group, path: str) -> zarr.Group:
    """Open a group below another one, to which it is bound.

    Raises
    ------
    DamageError
        If there is none, or it is of another version.
    """
    part = group.get(path)
    if not isinstance(part, zarr.Group):
        raise DamageError.of("/".join((_url(group), path)), "is missing, or no group")
    return part


def _store(group: zarr.Group) -> RetryingStore:
    store = group.store
    assert isinstance(store, RetryingStore)
    return store


def _url(group: zarr.Group) -> str:
    return "/".join(filter(None, (str(group.store), group.path)))


def read_array(group: zarr.Group, name: str, start: int = 0, stop: int | None = None) -> npt.NDArray[Any]:
    """Read rows start:stop of an array, all of it by default; raises as `open_array` and `StoredArray` do."""
    return open_array(group, name)[start:stop]
