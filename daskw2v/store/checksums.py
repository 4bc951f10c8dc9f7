"""How damage is found: what was changed, cut short or lost after it was written is never taken for data.

Chunks of arrays end with their crc32c, which Zarr checks. Metadata of arrays and manifests are JSON objects that hold
a checksum of their other entries. Files as they are have a crc32c for each part (`daskw2v.store.partfile`).
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from itertools import product
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import zarr
from zarr.core.array_spec import ArraySpec
from zarr.core.buffer import default_buffer_prototype
from zarr.core.common import concurrent_map
from zarr.core.sync import sync

from daskw2v.errors import DamageError
from daskw2v.store.chunks import has_whole_rows, read_rows
from daskw2v.store.limits import check_room, parsed
from daskw2v.store.mapping import MAPPED
from daskw2v.store.places import Written

METADATA = "zarr.json"
CHECKSUM = "seal"  # its key in JSON
_UNREADABLE = (ValueError, RuntimeError)  # what Zarr and its codecs say of chunks
T = TypeVar("T")


def twice(read: Callable[[], T]) -> T:
    """Read once more what seems damaged or missing: half an answer may have come, or an old one."""
    try:
        return read()
    except DamageError:
        return read()


def checksum_of(values: Mapping[str, Any]) -> str:
    """Return the digest of JSON values."""
    content = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


def with_checksum(content: bytes) -> bytes:
    """Return the metadata of a Zarr node with its checksum, an attribute: other readers pass it by."""
    values = json.loads(content)
    attributes = {name: value for name, value in values.get("attributes", {}).items() if name != CHECKSUM}
    values["attributes"] = attributes
    values["attributes"] = {**attributes, CHECKSUM: checksum_of(values)}
    return json.dumps(values, indent=1).encode()


def verify_metadata(content: bytes, place: str) -> dict[str, Any]:
    """Check metadata of a Zarr node; return them without their checksum.

    Raises
    ------
    DamageError
        If they are not what was written.
    """
    try:
        values = parsed(content)
        found = values["attributes"].pop(CHECKSUM)
        whole = found == checksum_of(values)
    except (ValueError, LookupError, TypeError, AttributeError):
        whole = False
    if not whole:
        raise DamageError.of(place, "is not what was written")
    return dict(values)


class StoredArray:
    """An array of a store: what is damaged is named, never returned.

    Parameters
    ----------
    array
        The array.
    url
        Where it lies.
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
        return StoredArray, (self._array, self.url)  # its metadata, and what opens its store: nothing is read

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, selection: Any) -> npt.NDArray[Any]:
        """Return numbers, slices and masks of it as `numpy` does.

        Raises
        ------
        DamageError
            If a chunk of it is damaged or missing.
        """
        check_room(self.shape, selection, self.dtype.itemsize, self.url)
        rows = slice(None) if selection is ... else selection
        if isinstance(rows, slice) and rows.step in (None, 1) and self._has_whole_rows:
            start, stop, _ = rows.indices(len(self))
            return self._read(selection, lambda: _native(read_rows(self._array, start, stop)))
        return self._read(selection, lambda: _native(self._array[selection]))

    @cached_property
    def _has_whole_rows(self) -> bool:
        return has_whole_rows(self._array)

    def take(self, selection: Any) -> npt.NDArray[Any]:
        """Return the elements at the crossings of indices of each axis; raises as `[]` does."""
        return self._read(selection, lambda: _native(self._array.oindex[selection]))

    def pieces(self) -> list[npt.NDArray[Any]]:
        """Return what the files of a finished array hold, in their order; the last ones go beyond its end.

        Files of a local disk are mapped, not copied, unless they are compressed; raises as `[]` does.
        """
        check_room(self.shape, ..., self.dtype.itemsize, self.url)
        return self._read(..., lambda: sync(self._pieces()))

    @property
    def is_local(self) -> bool:
        """Whether its files are on a disk of this machine, where `pieces` can map them."""
        return bool(self._store.is_local)

    async def _pieces(self) -> list[npt.NDArray[Any]]:
        array, grid = self._array.async_array, zip(self.shape, self.shards or self.chunks, strict=True)
        numbers = list(np.ndindex(*(-(-n // k) for n, k in grid)))
        files = [(array.store_path / array.metadata.encode_chunk_key(number),) for number in numbers]
        contents = await concurrent_map(files, lambda file: file.get(MAPPED), zarr.config.get("async.concurrency"))
        prototype = default_buffer_prototype()
        spec = ArraySpec(
            self.shards or self.chunks, array.metadata.dtype, array.metadata.fill_value, array.config, prototype
        )
        found: Iterable[Any] = await array.codec_pipeline.decode((content, spec) for content in contents)
        return [_native(piece.as_numpy_array()) for piece in found]

    def __setitem__(self, selection: Any, values: npt.NDArray[Any]) -> None:
        """Write where numbers or slices say."""
        self._array[selection] = values

    @property
    def _store(self) -> Any:
        """The `RetryingStore`, whose module imports this one."""
        return self._array.store

    @property
    def is_finished(self) -> bool:
        """Whether its chunks are bound to their places. Those of arrays that older versions wrote are not."""
        return bool(self._store.places.is_finished(self._array.path))

    def written(self) -> Written:
        """Return the checksums of the chunks that were written to it, or read from it, for `finish_arrays`."""
        found: Written = self._store.places.written(self._array.path)
        return found

    def finish(self) -> None:
        """Bind its chunks, all of which were written to it, to their places.

        Raises
        ------
        DamageError
            If a chunk was not written.
        """
        sync(self._store.finish(self._array.path))

    def _read(self, selection: Any, read: Callable[[], T]) -> T:
        def checked() -> T:
            try:
                return read()
            except _UNREADABLE as error:
                raise DamageError.of(self._damaged(selection), f"is damaged ({error})") from error

        return twice(checked)

    def _damaged(self, selection: Any) -> str:
        """Return the first file of a selection that cannot be read."""
        step = self.shards or self.chunks
        chosen = selection if isinstance(selection, tuple) else () if selection is ... else (selection,)
        parts = (*chosen, *[slice(None)] * (self.ndim - len(chosen)))
        for place in product(*map(_places, parts, self.shape, step)):
            try:
                self._array[tuple(slice(i * k, (i + 1) * k) for i, k in zip(place, step, strict=True))]
            except _UNREADABLE:
                return "/".join([self.url, "c", *map(str, place)])
        return self.url


def _native(values: Any) -> npt.NDArray[Any]:
    """Return an array in this machine's order of bytes; another machine may have written it."""
    found = np.asarray(values)
    native = found.dtype.newbyteorder("=")
    return found.astype(native, copy=False).view(native)  # also where the order is the same, but has another name


def _places(part: Any, length: int, step: int) -> Iterable[int]:
    """Return the numbers of the files along an axis in which a part of it lies: a slice, numbers or a mask."""
    if isinstance(part, slice):
        chosen = range(*part.indices(length))
        first, last = sorted((chosen[0], chosen[-1])) if chosen else (0, -1)
        return range(first // step, last // step + 1)
    numbers = np.asarray(part)
    numbers = np.flatnonzero(numbers) if numbers.dtype == np.bool_ else numbers % length
    return map(int, np.unique(numbers // step))
