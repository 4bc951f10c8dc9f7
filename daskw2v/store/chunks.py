"""Chunks of arrays, decoded in the thread that reads them: Zarr's own way leads through other threads, and copies."""

from collections.abc import Iterator, Sequence
from typing import Any

import google_crc32c
import numpy as np
import numpy.typing as npt
import zarr
from numcodecs import blosc
from zarr.abc.codec import Codec
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec
from zarr.core.buffer import Buffer, default_buffer_prototype
from zarr.core.common import concurrent_map
from zarr.core.sync import sync

from daskw2v.store.zarr_schema import check_packed

_CRC = 4  # bytes of a checksum


def has_whole_rows(array: zarr.Array[Any]) -> bool:
    """Tell whether each file of an array is one chunk of whole rows, by codecs that `read_rows` knows."""
    first, *others = _codecs(array)
    return (
        array.shards is None
        and array.chunks[1:] == array.shape[1:]
        and isinstance(first, BytesCodec)
        and getattr(first.endian, "value", first.endian) in (None, "little")  # text since Zarr 3.2
        and all(isinstance(codec, BloscCodec | Crc32cCodec) for codec in others)
    )


def read_rows(array: zarr.Array[Any], start: int, stop: int) -> npt.NDArray[Any]:
    """Read the rows start..stop-1 of an array of which `has_whole_rows` is true, little-endian.

    Raises
    ------
    ValueError, RuntimeError
        If a chunk is damaged.
    """
    step, codecs = array.chunks[0], _codecs(array)
    rows = np.empty((max(0, stop - start), *array.shape[1:]), array.dtype.newbyteorder("<"))
    if not rows.size:
        return rows
    for number, content in _contents(array, range(start // step, -(-stop // step))):
        low = number * step
        a, b = max(start, low), min(stop, low + step)
        whole = b - a == step
        chunk = rows[a - start : b - start] if whole else np.empty(array.chunks, rows.dtype)
        if content is None:
            chunk[...] = array.fill_value
        else:
            _decode(content.as_numpy_array(), codecs, chunk.reshape(-1).view(np.uint8))
        if not whole:
            rows[a - start : b - start] = chunk[a - low : b - low]
    return rows


def _codecs(array: zarr.Array[Any]) -> Sequence[Codec]:
    metadata: Any = array.metadata  # of Zarr's third format
    codecs: Sequence[Codec] = metadata.codecs
    return codecs


def _contents(array: zarr.Array[Any], numbers: Sequence[int]) -> Iterator[tuple[int, Buffer | None]]:
    """Yield the files of an array, and their numbers along its first axis; some are read at a time."""
    place, more = array.async_array.store_path, (0,) * (array.ndim - 1)
    files = [(place / array.metadata.encode_chunk_key((number, *more)),) for number in numbers]
    at_once = zarr.config.get("async.concurrency")
    prototype = default_buffer_prototype()
    for i in range(0, len(files), at_once):
        found = sync(concurrent_map(files[i : i + at_once], lambda file: file.get(prototype)))
        yield from zip(numbers[i : i + at_once], found, strict=True)


def _decode(content: npt.NDArray[np.uint8], codecs: Sequence[Codec], chunk: npt.NDArray[np.uint8]) -> None:
    """Write the bytes of a chunk that a file's content stands for."""
    for codec in reversed(codecs[1:]):
        if isinstance(codec, Crc32cCodec):
            content, stored = content[:-_CRC], content[-_CRC:].tobytes()
            computed = google_crc32c.value(content).to_bytes(_CRC, "little")
            if computed != stored:  # in Zarr's words
                raise ValueError(
                    f"Stored and computed checksum do not match. Stored: {stored!r}. Computed: {computed!r}."
                )
        else:
            check_packed(content, chunk.nbytes)
            blosc.decompress(content, chunk)
            return
    if content.nbytes != chunk.nbytes:
        raise ValueError(f"{content.nbytes:,} bytes are there, not {chunk.nbytes:,}")
    chunk[...] = content
