"""Checksums: content that was changed, cut short, lost or swapped after it was written is never taken for data.

Metadata of arrays and manifests are JSON objects that hold a checksum of their other entries. Files as they are have a
crc32c for each part (`daskw2v.store.partfile`). Chunks of arrays end with their crc32c, which every Zarr reader checks,
but which is the same wherever the chunk lies. So the metadata of a finished array hold the checksums of its chunks, and
the metadata of arrays and groups name their path, and the version that they are of. They are an attribute, `place`,
which other readers ignore:

    path       path of the node: below the version, or the end of that below the work directory, where the name of an
               attempt is random
    attempt    random name of the version or checkpoint that the node is of; others have none
    chunks     base64 of uint32 little-endian, shape (files, checksums of a file), files in C order. A file that is one
               chunk has one checksum; a Zarr shard has that of its index, and of each of its chunks.

A checksum is the last four bytes of the chunk, mixed with where the chunk ends in its file. So nothing is computed
twice, and a part of a shard can be checked that is read alone. Arrays that an older version wrote have no attribute.
"""

import base64
import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import google_crc32c
import numpy as np
import numpy.typing as npt
from zarr.abc.store import ByteRequest, RangeByteRequest, SuffixByteRequest

from daskw2v.errors import DamageError
from daskw2v.store.limits import parsed

METADATA = "zarr.json"
CHECKSUM = "seal"  # its key in JSON
PLACE = "place"  # the attribute
FOREIGN = "is of another place, version or attempt"
CHUNKS = "/c/"  # between an array's path and a chunk's number
CRC, _ENTRY = 4, 16  # bytes: a checksum; an entry of a shard's index, offset and length
_ABSENT = np.iinfo(np.uint64).max  # offset and length of a chunk that a shard lacks
_MIX = np.uint64(0x9E3779B97F4A7C15)  # odd: it spreads small numbers over all bits
_Checksums = npt.NDArray[np.uint32]
Written = dict[str, dict[str, _Checksums]]  # of chunks that a task wrote: by the array's path, and the chunk's number
T = TypeVar("T")


def twice(read: Callable[[], T]) -> T:
    """Return the result of a function; call it once more after damage: half an answer may have come, or an old one."""
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
    attributes = values.setdefault("attributes", {})
    attributes.pop(CHECKSUM, None)
    attributes[CHECKSUM] = checksum_of(values)
    return json.dumps(values, indent=1).encode()


def verify_metadata(content: bytes, place: str) -> dict[str, Any]:
    """Check metadata of a Zarr node; return them without their checksum.

    Raises
    ------
    DamageError
        If they were changed after they were written.
    """
    with suppress(ValueError, LookupError, TypeError, AttributeError):
        values: dict[str, Any] = parsed(content)
        if values["attributes"].pop(CHECKSUM) == checksum_of(values):
            return values
    raise DamageError.of(place, "is not what was written")


class Grid(NamedTuple):
    """The files of an array along each axis, and the chunks in each: 0 where a file is one chunk."""

    files: tuple[int, ...]
    inner: int

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Grid":
        """Return the grid of an array whose metadata were checked."""
        file, codec, inner = values["chunk_grid"]["configuration"]["chunk_shape"], values["codecs"][0], 0
        if codec["name"] == "sharding_indexed":
            inner = math.prod(n // k for n, k in zip(file, codec["configuration"]["chunk_shape"], strict=True))
        return cls(tuple(-(-n // k) for n, k in zip(values["shape"], file, strict=True)), inner)

    def number(self, chunk: str) -> int | None:
        """Return the number of a file, named such as "0/1"; None if the array has none of this name."""
        try:
            return int(np.ravel_multi_index(tuple(map(int, chunk.split("/"))), self.files))
        except ValueError:
            return None


class Places:
    """The places of the nodes and chunks that are written to a Zarr store, or read from it.

    Parameters
    ----------
    url
        Where the store lies.
    attempt
        Random name of the version or checkpoint that is written; empty where paths have one. To read, that of the
        store's root is taken.
    """

    def __init__(self, url: str, attempt: str = "") -> None:
        self._url, self._attempt, self._knows = url, attempt, bool(attempt)
        self._grids = dict[str, Grid]()
        self._written: Written = {}
        self._finished = dict[str, _Checksums]()

    def declare(self, key: str, content: bytes) -> bytes:
        """Return metadata that are to be written, with their place; without checksums of chunks."""
        values = json.loads(content)
        node = key.rpartition("/")[0]
        if values["node_type"] == "array":
            self._grids[node] = Grid.of(values)
            self._written.pop(node, None)
            self._finished.pop(node, None)
        return _with_place(values, self._here(node))

    def finish(self, key: str, content: bytes) -> bytes:
        """Return metadata of an array, all chunks of which are written, with their checksums.

        Raises
        ------
        DamageError
            If a chunk was not written.
        """
        node = key.rpartition("/")[0]
        values = json.loads(content)
        grid, written = Grid.of(values), self._written.get(node, {})
        table = np.zeros((math.prod(grid.files), 1 + grid.inner), "<u4")
        for row, number in enumerate(np.ndindex(*grid.files)):
            name = "/".join(map(str, number))
            if name not in written:
                raise DamageError.of(f"{self._url}/{node}{CHUNKS}{name}", "was not written")
            table[row] = written[name]
        self._grids[node], self._finished[node] = grid, table
        chunks = base64.b64encode(table.tobytes()).decode()
        return _with_place(values, {**self._here(node), "chunks": chunks})

    def _here(self, node: str) -> dict[str, str]:
        """Return the place of a node."""
        if self._attempt:
            return {"path": node, "attempt": self._attempt}
        return {"path": "/".join([*self._url.rstrip("/").split("/")[-2:], *filter(None, [node])])}

    def wrote(self, key: str, content: npt.NDArray[np.uint8]) -> None:
        """Keep the checksums of a chunk that was written, or read."""
        node, _, chunk = key.rpartition(CHUNKS)
        if node in self._grids:
            self._written.setdefault(node, {})[chunk] = _checksums(content, self._grids[node].inner)

    def written(self, node: str) -> Written:
        """Return the checksums of an array's chunks that were written, for `add` and `finish`."""
        return {node: self._written.get(node, {})}

    def add(self, written: Written) -> None:
        """Take over checksums of chunks that other tasks wrote."""
        for node, chunks in written.items():
            self._written.setdefault(node, {}).update(chunks)

    def is_finished(self, node: str) -> bool:
        """Return whether the checksums of an array's chunks are known."""
        return node in self._finished

    def read(self, key: str, values: Mapping[str, Any]) -> None:
        """Check the place of metadata that were read, and that agree with their checksum.

        Raises
        ------
        DamageError
            If they are of another place or version.
        """
        node = key.rpartition("/")[0]
        place = values["attributes"].get(PLACE)
        if not node:
            self._attempt, self._knows = str(place.get("attempt", "")) if isinstance(place, dict) else "", True
        if not self._belongs(node, place):
            raise DamageError.of(f"{self._url}/{key}", FOREIGN)
        if values["node_type"] == "array":
            grid = self._grids[node] = Grid.of(values)
            if place is not None and "chunks" in place:
                try:
                    table = np.frombuffer(base64.b64decode(place["chunks"], validate=True), "<u4")
                    self._finished[node] = table.reshape(math.prod(grid.files), 1 + grid.inner)
                except (ValueError, TypeError):
                    raise DamageError.of(f"{self._url}/{node}", "has checksums of another array") from None

    def _belongs(self, node: str, place: Any) -> bool:
        """Return whether an attribute is the place of a node, as far as the version is known."""
        match place:
            case None:
                return not self._attempt
            case {"path": str(path)}:
                is_here = not path or f"/{self._url}/{node}".rstrip("/").endswith(f"/{path}")
                return is_here and (not self._knows or place.get("attempt", "") == self._attempt)
        return False

    def check(self, key: str, content: npt.NDArray[np.uint8], part: ByteRequest | None) -> None:
        """Check the place of a file's bytes, all of them or a part that Zarr asked for.

        Raises
        ------
        DamageError
            If they are whole, but belong elsewhere. Zarr itself refuses damaged bytes.
        """
        node, _, chunk = key.rpartition(CHUNKS)
        table = self._finished.get(node)
        if table is None and part is None:
            self.wrote(key, content)  # for `finish`
        if table is None or (number := self._grids[node].number(chunk)) is None:
            return
        known, inner = table[number], self._grids[node].inner
        if part is None:
            if np.array_equal(_checksums(content, inner), known):
                return
            pieces = list(_pieces(content, inner))
        elif inner and isinstance(part, RangeByteRequest | SuffixByteRequest):
            pieces = [(part.end if isinstance(part, RangeByteRequest) else 0, content)]
        else:
            return
        for end, piece in pieces:
            whole = len(piece) > CRC and google_crc32c.value(piece[:-CRC].tobytes()) == _crc_of(piece)
            if whole and _mixed([_crc_of(piece)], [end]) not in known:
                raise DamageError.of(f"{self._url}/{key}", FOREIGN)


def _with_place(values: dict[str, Any], place: dict[str, str]) -> bytes:
    values["attributes"] = {**values.get("attributes", {}), PLACE: place}
    return json.dumps(values).encode()


def _checksums(content: npt.NDArray[np.uint8], inner: int) -> _Checksums:
    """Return the checksums of a file, shape (1 + inner,): zeros if it is no file of so many chunks."""
    if not inner:
        return _mixed([_crc_of(content)], [len(content)])
    checksums = np.zeros(1 + inner, np.uint32)
    spans = _spans(content, inner)
    if spans is not None:
        ends = spans.sum(axis=1)[:, None]
        last = content[np.minimum(ends - np.arange(CRC, 0, -1, dtype=np.uint64), len(content) - 1).astype(np.int64)]
        checksums[0] = _crc_of(content)
        checksums[1:] = np.where(spans[:, 0] == _ABSENT, 0, _mixed(last.view("<u4")[:, 0], ends[:, 0]))
    return checksums


def _pieces(content: npt.NDArray[np.uint8], inner: int) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
    """Yield the chunks of a file, and of a shard its index, each with where it ends: 0 for the index."""
    if not inner:
        yield len(content), content
        return
    yield 0, content[-(_ENTRY * inner + CRC) :]
    spans = _spans(content, inner)
    for start, size in [] if spans is None else spans.tolist():
        if start != _ABSENT:
            yield start + size, content[start : start + size]


def _spans(content: npt.NDArray[np.uint8], inner: int) -> npt.NDArray[np.uint64] | None:
    """Return the offsets and lengths of a shard's chunks, shape (inner, 2), or None if it is too short."""
    size = _ENTRY * inner + CRC
    if len(content) < size:
        return None
    return np.frombuffer(content[-size:-CRC].tobytes(), "<u8").reshape(inner, 2)


def _crc_of(content: npt.NDArray[np.uint8]) -> int:
    return int.from_bytes(content[-CRC:].tobytes(), "little")


def _mixed(crcs: npt.ArrayLike, ends: npt.ArrayLike) -> _Checksums:
    """Return checksums that differ for equal chunks that end at other bytes of their files."""
    spread = (np.asarray(ends, np.uint64) * _MIX) >> np.uint64(32)
    return np.asarray(crcs, np.uint32) ^ spread.astype(np.uint32)
