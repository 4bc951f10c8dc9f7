"""Arrays of Zarr groups: an array is written by one task, or by several along the bounds of its files.

Chunks of whole rows are decoded in the thread that reads them: Zarr itself would use other threads, and copy.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, product
from typing import Any, TypeVar

import google_crc32c
import numpy as np
import numpy.typing as npt
import zarr
from numcodecs import blosc
from zarr.abc.codec import Codec
from zarr.codecs import BloscCodec, BytesCodec, Crc32cCodec
from zarr.core.array_spec import ArraySpec
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype
from zarr.core.common import concurrent_map
from zarr.core.sync import sync
from zarr.storage import StorePath

from daskw2v.errors import DamageError, StoreError
from daskw2v.store.checksums import CRC, ChunkChecksums, retry_damaged
from daskw2v.store.folder import MAPPED
from daskw2v.store.limits import check_room, split_selection
from daskw2v.store.retries import RetryingStore
from daskw2v.store.zarr_schema import bound_codecs, check_packed

_CHUNK = 1 << 20  # elements of a one-dimensional chunk: 4 MB of int32
_JOINED = 4  # chunks that `write_pieces` joins and writes at a time: a distant store answers slowly

_UNREADABLE = (ValueError, RuntimeError)  # raised by Zarr and its codecs for damaged chunks
T = TypeVar("T")


class StoredArray:
    """An array of a store; reading a damaged chunk raises an error that names the chunk's file.

    Parameters
    ----------
    array
        The Zarr array.
    url
        URL of the array.

    Attributes
    ----------
    shape, ndim, chunks, shards, dtype, attrs
        As in the Zarr array; `dtype` has this machine's byte order.
    """

    def __init__(self, array: zarr.Array[Any], url: str) -> None:
        self._array, self.url = array, url
        self.shape: tuple[int, ...] = array.shape
        self.ndim = len(self.shape)
        self.chunks: tuple[int, ...] = array.chunks
        self.shards: tuple[int, ...] | None = array.shards
        self.dtype: np.dtype[Any] = array.dtype.newbyteorder("=")
        self.attrs: Mapping[str, Any] = array.attrs

    def __reduce__(self) -> Any:
        return StoredArray, (self._array, self.url)  # metadata and store: nothing is read

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, selection: Any) -> npt.NDArray[Any]:
        """Return the elements that integers, slices, integer arrays, or a mask of the whole array select, as in NumPy.

        Raises
        ------
        DamageError
            If a chunk of the array is damaged or missing.
        StoreError
            If memory has no room for the elements.
        """
        check_room(self.shape, selection, self.dtype.itemsize, self.url)
        rows = slice(None) if selection is ... else selection
        if isinstance(rows, slice) and rows.step in (None, 1) and self._has_whole_rows:
            start, stop, _ = rows.indices(len(self))
            return self._read(selection, lambda: _to_native_order(read_rows(self._array, start, stop)))
        return self._read(selection, lambda: _to_native_order(self._array[selection]))

    @cached_property
    def _has_whole_rows(self) -> bool:
        """The result of `has_whole_rows`, cached."""
        return has_whole_rows(self._array)

    def take(self, selection: Any) -> npt.NDArray[Any]:
        """Return the elements that the indices of each axis select, as `numpy.ix_`; raises as `[]` does."""
        return self._read(selection, lambda: _to_native_order(self._array.oindex[selection]))

    def pieces(self) -> list[npt.NDArray[Any]]:
        """Return the contents of the files of a finished array, in C order.

        Each has the shape `shards or chunks`, so the last ones may go beyond the array's end. Files of a local disk are
        mapped, not copied, unless they are compressed; raises as `[]` does.
        """
        check_room(self.shape, ..., self.dtype.itemsize, self.url)
        return self._read(..., lambda: sync(self._pieces()))

    @property
    def is_local(self) -> bool:
        """Whether the array's files are on a disk of this machine, where `pieces` can map them."""
        return _get_store(self._array).is_local

    async def _pieces(self) -> list[npt.NDArray[Any]]:
        """Return the contents of all files, decoded."""
        array, step = self._array.async_array, self.shards or self.chunks
        numbers = np.ndindex(*(-(-n // k) for n, k in zip(self.shape, step, strict=True)))
        contents = await _fetch(_list_files(self._array, numbers), MAPPED)
        metadata = array.metadata
        spec = ArraySpec(step, metadata.dtype, metadata.fill_value, array.config, default_buffer_prototype())
        decoded: Iterable[Any] = await array.codec_pipeline.decode((content, spec) for content in contents)
        return [_to_native_order(piece.as_numpy_array()) for piece in decoded]

    def __setitem__(self, selection: Any, values: npt.NDArray[Any]) -> None:
        """Write the elements that integers or slices select."""
        self._array[selection] = values

    @property
    def is_finished(self) -> bool:
        """Whether the array's metadata have the checksums of its chunks, which arrays of older versions lack."""
        return _get_store(self._array).locations.is_finished(self._array.path)

    def chunk_checksums(self) -> ChunkChecksums:
        """Return the checksums of the chunks that were written to the array, or read from it, for `finish_arrays`."""
        return _get_store(self._array).locations.get_noted(self._array.path)

    def finish(self) -> None:
        """Write the checksums of all chunks, which were written by this object, into the array's metadata.

        Raises
        ------
        DamageError
            If a chunk was not written.
        """
        sync(_get_store(self._array).finish(self._array.path))

    def _read(self, selection: Any, read: Callable[[], T]) -> T:
        """Return the result of `read`; errors of Zarr become a DamageError that names a file of the selection."""

        def checked() -> T:
            try:
                return read()
            except _UNREADABLE as error:
                raise DamageError.of(self._find_damaged_file(selection), f"is damaged ({error})") from error

        return retry_damaged(checked)

    def _find_damaged_file(self, selection: Any) -> str:
        """Return the URL of the first file of a selection that cannot be read; the array's URL if all can be."""
        step, given_parts = self.shards or self.chunks, split_selection(selection)
        parts = (*given_parts, *[slice(None)] * (self.ndim - len(given_parts)))
        for file in product(*map(_find_file_indices, parts, self.shape, step)):
            try:
                self._array[tuple(slice(i * k, (i + 1) * k) for i, k in zip(file, step, strict=True))]
            except _UNREADABLE:
                return "/".join([self.url, "c", *map(str, file)])
        return self.url


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
    """Create an array of a group. Once all its chunks are written, call `StoredArray.finish` or `finish_arrays`.

    Parameters
    ----------
    group, name
        The group, and the array's name in it.
    shape, dtype
        Shape and type of the array.
    chunk_rows, chunk_columns
        Size of a chunk along the first axis, and along each further one, None for all of it.
    shard_rows
        Rows of a Zarr shard, rounded up to whole chunks, which has all columns and is one file; None without shards.
    fill_value
        The value of elements that were not written.
    attributes
        Further attributes.
    held
        Whether the array's metadata are written only by `finish`: for a task that writes the array alone.
    """
    rows, other_lengths = max(1, min(chunk_rows, shape[0])), [max(1, n) for n in shape[1:]]
    chunks = (rows, *(min(n, chunk_columns or n) for n in other_lengths))
    shards = None
    if shard_rows is not None:  # multiples of chunks, which may go beyond the array's end
        shards = tuple(-(-n // c) * c for n, c in zip((shard_rows, *other_lengths), chunks, strict=True))
    # lz4 after a byte shuffle: 2-3 times smaller for ids, at memory speed (zstd costs more than tokenising).
    compressor = BloscCodec(cname="lz4", clevel=5, shuffle="shuffle", typesize=np.dtype(dtype).itemsize)
    if held:
        _get_store(group).hold("/".join(filter(None, (group.path, name))))
    array = group.create_array(
        name,
        shape=shape,
        chunks=chunks,
        shards=shards,
        dtype=dtype,
        compressors=[compressor, Crc32cCodec()],
        fill_value=fill_value,
        attributes=attributes,
        config={"write_empty_chunks": True},  # a missing chunk is damage; and to find empty ones takes longer
    )
    return StoredArray(array, f"{_get_url(group)}/{name}")


def write_array(group: zarr.Group, name: str, values: npt.NDArray[Any], chunk_rows: int = _CHUNK) -> None:
    """Create an array of a group with these values, and finish it."""
    array = create_array(group, name, values.shape, values.dtype, chunk_rows, held=True)
    if values.size:
        array[...] = values
    array.finish()


def write_pieces(group: zarr.Group, name: str, pieces: Sequence[npt.NDArray[Any]], chunk_rows: int = _CHUNK) -> None:
    """Create an array of a group with the rows of one or more arrays, and finish it; few chunks are joined at once."""
    bounds, step = np.cumsum([0, *map(len, pieces)]).tolist(), _JOINED * chunk_rows
    array = create_array(group, name, (bounds[-1], *pieces[0].shape[1:]), pieces[0].dtype, chunk_rows, held=True)
    for start in range(0, bounds[-1], step):
        stop = min(start + step, bounds[-1])
        first, last = bisect_right(bounds, start) - 1, bisect_left(bounds, stop)
        overlapping = zip(pieces[first:last], bounds[first:last], strict=True)
        rows = [piece[max(0, start - low) : stop - low] for piece, low in overlapping]
        write_rows(array, start, np.concatenate(rows))
    array.finish()


def write_rows(array: StoredArray, start: int, rows: npt.NDArray[Any]) -> None:
    """Write rows of an array from the index `start` on, along the bounds of files.

    Two tasks must never write to the same chunk or shard.

    Raises
    ------
    StoreError
        If the rows do not begin and end at the bounds of chunks, or of shards if the array has shards.
    """
    stop, step, files = start + len(rows), (array.shards or array.chunks)[0], "shards" if array.shards else "chunks"
    if start % step or (stop % step and stop != array.shape[0]):
        problem = f"Rows {start}:{stop} of {array.url} do not lie along its {files} of {step} rows."
        raise StoreError(problem, f"Write whole {files}: two writers in one lose data silently.")
    array[start:stop] = rows


def open_array(group: zarr.Group, name: str) -> StoredArray:
    """Return an array of a group, opened.

    Raises
    ------
    DamageError
        If the group has no such array, or its metadata were changed after they were written.
    StoreError
        If daskw2v would not write such an array.
    """
    url = f"{_get_url(group)}/{name}"
    try:
        array = group.get(name)
    except (ValueError, TypeError, OverflowError) as error:
        raise DamageError.of(url, f"cannot be opened ({error})") from error
    if not isinstance(array, zarr.Array):
        raise DamageError.of(url, "is missing")
    return StoredArray(bound_codecs(array), url)


def finish_arrays(group: zarr.Group, written: Collection[ChunkChecksums]) -> None:
    """Write the checksums of chunks into the metadata of arrays, which several tasks have written.

    Parameters
    ----------
    group
        The arrays' group, opened for writing.
    written
        Results of the tasks' `StoredArray.chunk_checksums`.

    Raises
    ------
    DamageError
        If a chunk was not written.
    """
    store = _get_store(group)
    for checksums in written:
        store.locations.add(checksums)
    for path in dict.fromkeys(chain.from_iterable(written)):
        sync(store.finish(path))


def read_array(group: zarr.Group, name: str, start: int = 0, stop: int | None = None) -> npt.NDArray[Any]:
    """Return the rows start:stop of an array, all by default; raises as `open_array` and `StoredArray` do."""
    return open_array(group, name)[start:stop]


def open_subgroup(group: zarr.Group, path: str) -> zarr.Group:
    """Return a group below another group.

    Raises
    ------
    DamageError
        If there is no such group, or it is of another version.
    """
    part = group.get(path)
    if not isinstance(part, zarr.Group):
        raise DamageError.of("/".join((_get_url(group), path)), "is missing, or no group")
    return part


def has_whole_rows(array: zarr.Array[Any]) -> bool:
    """Return whether each file of an array is one chunk of whole rows, little-endian, with codecs of `read_rows`."""
    first, *others = _get_codecs(array)
    if not isinstance(first, BytesCodec) or not all(isinstance(codec, BloscCodec | Crc32cCodec) for codec in others):
        return False
    is_little = getattr(first.endian, "value", first.endian) in (None, "little")  # text since Zarr 3.2
    return is_little and array.shards is None and array.chunks[1:] == array.shape[1:]


def read_rows(array: zarr.Array[Any], start: int, stop: int) -> npt.NDArray[Any]:
    """Return the rows start..stop-1, little-endian, of an array for which `has_whole_rows` is true.

    Raises
    ------
    ValueError, RuntimeError
        If a chunk is damaged.
    """
    step, codecs = array.chunks[0], _get_codecs(array)
    rows = np.empty((max(0, stop - start), *array.shape[1:]), array.dtype.newbyteorder("<"))
    if not rows.size:
        return rows
    for number, content in _read_files(array, range(start // step, -(-stop // step))):
        low = number * step
        a, b = max(start, low), min(stop, low + step)
        is_whole = b - a == step
        chunk = rows[a - start : b - start] if is_whole else np.empty(array.chunks, rows.dtype)
        if content is None:
            chunk[...] = array.fill_value
        else:
            _decode(content.as_numpy_array(), codecs, chunk.reshape(-1).view(np.uint8))
        if not is_whole:
            rows[a - start : b - start] = chunk[a - low : b - low]
    return rows


def _get_codecs(array: zarr.Array[Any]) -> Sequence[Codec]:
    """Return the codecs of an array of Zarr's third format."""
    metadata: Any = array.metadata
    codecs: Sequence[Codec] = metadata.codecs
    return codecs


def _read_files(array: zarr.Array[Any], numbers: Sequence[int]) -> Iterator[tuple[int, Buffer | None]]:
    """Yield the files' indices along the first axis, and the files' contents; several are read at a time."""
    files = _list_files(array, ((number, *(0,) * (array.ndim - 1)) for number in numbers))
    at_once = zarr.config.get("async.concurrency")
    for i in range(0, len(files), at_once):
        contents = sync(_fetch(files[i : i + at_once], default_buffer_prototype()))
        yield from zip(numbers[i : i + at_once], contents, strict=True)


def _list_files(array: zarr.Array[Any], numbers: Iterable[tuple[int, ...]]) -> list[StorePath]:
    """Return the files of an array with these indices along its axes."""
    return [array.async_array.store_path / array.metadata.encode_chunk_key(number) for number in numbers]


async def _fetch(files: Sequence[StorePath], prototype: BufferPrototype) -> list[Buffer | None]:
    """Return the contents of files, None for a missing one; Zarr's configuration limits how many are read at once."""
    at_once = zarr.config.get("async.concurrency")
    return await concurrent_map([(file, prototype) for file in files], StorePath.get, at_once)


def _decode(content: npt.NDArray[np.uint8], codecs: Sequence[Codec], chunk: npt.NDArray[np.uint8]) -> None:
    """Decode a file's content into the bytes of a chunk; raise a ValueError or RuntimeError if it is damaged."""
    for codec in reversed(codecs[1:]):
        if isinstance(codec, Crc32cCodec):
            content, stored = content[:-CRC], content[-CRC:].tobytes()
            computed = google_crc32c.value(content).to_bytes(CRC, "little")
            if computed != stored:  # Zarr's own message
                values = f"Stored: {stored!r}. Computed: {computed!r}."
                raise ValueError(f"Stored and computed checksum do not match. {values}")
        else:
            check_packed(content, chunk.nbytes)
            blosc.decompress(content, chunk)
            return
    if content.nbytes != chunk.nbytes:
        raise ValueError(f"{content.nbytes:,} bytes are there, not {chunk.nbytes:,}")
    chunk[...] = content


def _to_native_order(values: Any) -> npt.NDArray[Any]:
    """Return an array in this machine's byte order; another machine may have written it."""
    array = np.asarray(values)
    native = array.dtype.newbyteorder("=")
    return array.astype(native, copy=False).view(native)  # a view also where only the name of the order differs


def _find_file_indices(selection: Any, length: int, step: int) -> Iterable[int]:
    """Return the indices, along an axis, of the files that a selection touches: a slice, integers or a mask.

    `length` is the length of the axis, `step` that of a file.
    """
    if isinstance(selection, slice):
        chosen = range(*selection.indices(length))
        first, last = sorted((chosen[0], chosen[-1])) if chosen else (0, -1)
        return range(first // step, last // step + 1)
    numbers = np.asarray(selection)
    numbers = np.flatnonzero(numbers) if numbers.dtype == np.bool_ else numbers % length
    return map(int, np.unique(numbers // step))


def _get_store(node: zarr.Group | zarr.Array[Any]) -> RetryingStore:
    """Return the store of a Zarr node, which `Store` has opened."""
    store = node.store
    assert isinstance(store, RetryingStore)
    return store


def _get_url(group: zarr.Group) -> str:
    """Return the URL of a Zarr group."""
    return "/".join(filter(None, (str(group.store), group.path)))
