"""Checksums: content that was changed, cut short, lost or swapped after it was written is never read as data.

Metadata of arrays and manifests are JSON objects that hold a checksum of their other entries. Files as they are have a
crc32c for each part (`daskw2v.store.partfile`). Chunks of arrays end with their crc32c, which every Zarr reader checks,
but which does not depend on the chunk's location. So the metadata of a finished array hold the checksums of its chunks,
and the metadata of arrays and groups name their path and their version: their location, an attribute `place`, which
other readers ignore:

    path       path of the node: below the version, or the end of its path in the work directory, where the name of an
               attempt is random
    attempt    random name of the node's version or checkpoint; all other nodes have none
    chunks     base64 of uint32 little-endian, shape (files, checksums of a file), files in C order. A file that is one
               chunk has one checksum; a Zarr shard has one for its index, and one for each of its chunks.

A checksum is the last four bytes of the chunk, mixed with the offset at which the chunk ends in its file. So nothing is
computed twice, and a part of a shard that is read alone can be checked. Arrays that an older version wrote have no such
attribute.
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
from daskw2v.store.limits import parse_json

METADATA = "zarr.json"
CHECKSUM = "seal"  # key of the checksum in JSON
LOCATION = "place"  # attribute with the location of a node
FOREIGN = "is of another place, version or attempt"
CHUNKS = "/c/"  # between the path of an array and the number of a chunk
CRC, _ENTRY = 4, 16  # bytes of a checksum, and of an entry of a shard's index: offset and length
_ABSENT = np.iinfo(np.uint64).max  # offset and length of a chunk that a shard lacks
_MIX = np.uint64(0x9E3779B97F4A7C15)  # odd: it spreads small numbers over all bits
_Crcs = npt.NDArray[np.uint32]
ChunkChecksums = dict[str, dict[str, _Crcs]]  # of chunks that a task wrote: by the array's path, and the chunk's number
T = TypeVar("T")


def retry_damaged(read: Callable[[], T]) -> T:
    """Return the result of `read`, which is called once more if it raises a DamageError.

    A store may answer once with half of a file, or with an old one.
    """
    try:
        return read()
    except DamageError:
        return read()


def compute_checksum(values: Mapping[str, Any]) -> str:
    """Return the checksum of JSON values by name, as text."""
    content = json.dumps(values, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(content.encode(), digest_size=8).hexdigest()


def add_checksum(content: bytes) -> bytes:
    """Return the metadata of a Zarr node, JSON, with their checksum as an attribute, which other readers ignore."""
    values = json.loads(content)
    attributes = values.setdefault("attributes", {})
    attributes.pop(CHECKSUM, None)
    attributes[CHECKSUM] = compute_checksum(values)
    return json.dumps(values, indent=1).encode()


def verify_metadata(content: bytes, location: str) -> dict[str, Any]:
    """Check the metadata of a Zarr node, JSON; return their values without the checksum.

    `location` is the URL of the metadata, for the message.

    Raises
    ------
    DamageError
        If the metadata were changed after they were written.
    """
    with suppress(ValueError, LookupError, TypeError, AttributeError):
        values: dict[str, Any] = parse_json(content)
        if values["attributes"].pop(CHECKSUM) == compute_checksum(values):
            return values
    raise DamageError.of(location, "is not what was written")


class Grid(NamedTuple):
    """Number of files of an array along each axis, and number of chunks in a file: 0 where a file is one chunk."""

    files: tuple[int, ...]
    inner: int

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> "Grid":
        """Return the grid of an array by its metadata, which were checked."""
        file, codec, inner = values["chunk_grid"]["configuration"]["chunk_shape"], values["codecs"][0], 0
        if codec["name"] == "sharding_indexed":
            inner = math.prod(n // k for n, k in zip(file, codec["configuration"]["chunk_shape"], strict=True))
        return cls(tuple(-(-n // k) for n, k in zip(values["shape"], file, strict=True)), inner)

    def number(self, chunk: str) -> int | None:
        """Return the index, in C order, of a file with a name such as "0/1"; None if the array has no such file."""
        try:
            return int(np.ravel_multi_index(tuple(map(int, chunk.split("/"))), self.files))
        except ValueError:
            return None


class NodeLocations:
    """Binds the nodes and chunks of a Zarr store to their locations, and checks them as they are read.

    Parameters
    ----------
    url
        URL of the store.
    attempt
        Random name of the version or checkpoint that is written; empty where paths have one. To read, the name in the
        metadata of the store's root counts.
    """

    def __init__(self, url: str, attempt: str = "") -> None:
        self._url, self._attempt, self._is_attempt_known = url, attempt, bool(attempt)
        self._grids = dict[str, Grid]()
        self._written: ChunkChecksums = {}
        self._finished = dict[str, _Crcs]()

    def declare(self, key: str, content: bytes) -> bytes:
        """Return the metadata of a node, to be written to `key`, with its location; without checksums of chunks."""
        values = json.loads(content)
        node = key.rpartition("/")[0]
        if values["node_type"] == "array":
            self._grids[node] = Grid.of(values)
            self._written.pop(node, None)
            self._finished.pop(node, None)
        return _add_location(values, self._make_location(node))

    def finish(self, key: str, content: bytes) -> bytes:
        """Return the metadata of an array, to be written to `key`, with its location and the checksums of its chunks.

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
        return _add_location(values, {**self._make_location(node), "chunks": chunks})

    def _make_location(self, node: str) -> dict[str, str]:
        """Return the location of a node, as its attribute has it."""
        if self._attempt:
            return {"path": node, "attempt": self._attempt}
        return {"path": "/".join([*self._url.rstrip("/").split("/")[-2:], *filter(None, [node])])}

    def note_file(self, key: str, content: npt.NDArray[np.uint8]) -> None:
        """Note the checksums of a file of chunks that was written, or read."""
        node, _, chunk = key.rpartition(CHUNKS)
        if node in self._grids:
            self._written.setdefault(node, {})[chunk] = _compute_checksums(content, self._grids[node].inner)

    def get_noted(self, node: str) -> ChunkChecksums:
        """Return the checksums of an array's chunks that were noted, for `add` and `finish`."""
        return {node: self._written.get(node, {})}

    def add(self, written: ChunkChecksums) -> None:
        """Note checksums of chunks that other tasks wrote."""
        for node, chunks in written.items():
            self._written.setdefault(node, {}).update(chunks)

    def is_finished(self, node: str) -> bool:
        """Return whether the metadata of an array have the checksums of its chunks."""
        return node in self._finished

    def check_node(self, key: str, values: Mapping[str, Any]) -> None:
        """Check the location in metadata that were read from `key` and verified; note an array's checksums of chunks.

        Raises
        ------
        DamageError
            If the metadata are of another location or version.
        """
        node = key.rpartition("/")[0]
        location = values["attributes"].get(LOCATION)
        if not node:
            self._attempt = str(location.get("attempt", "")) if isinstance(location, dict) else ""
            self._is_attempt_known = True
        if not self._is_location_of(node, location):
            raise DamageError.of(f"{self._url}/{key}", FOREIGN)
        if values["node_type"] == "array":
            grid = self._grids[node] = Grid.of(values)
            if location is not None and "chunks" in location:
                try:
                    table = np.frombuffer(base64.b64decode(location["chunks"], validate=True), "<u4")
                    self._finished[node] = table.reshape(math.prod(grid.files), 1 + grid.inner)
                except (ValueError, TypeError):
                    raise DamageError.of(f"{self._url}/{node}", "has checksums of another array") from None

    def _is_location_of(self, node: str, location: Any) -> bool:
        """Return whether an attribute is the location of a node, as far as the version is known."""
        match location:
            case None:
                return not self._attempt
            case {"path": str(path)}:
                is_here = not path or f"/{self._url}/{node}".rstrip("/").endswith(f"/{path}")
                return is_here and (not self._is_attempt_known or location.get("attempt", "") == self._attempt)
        return False

    def check_file(self, key: str, content: npt.NDArray[np.uint8], part: ByteRequest | None) -> None:
        """Check that the bytes of a file belong to it: all of them, or the part that Zarr asked for.

        Raises
        ------
        DamageError
            If the bytes are undamaged chunks of another file. Zarr itself refuses damaged bytes.
        """
        node, _, chunk = key.rpartition(CHUNKS)
        table = self._finished.get(node)
        if table is None and part is None:
            self.note_file(key, content)  # for `finish`
        if table is None or (number := self._grids[node].number(chunk)) is None:
            return
        expected, inner = table[number], self._grids[node].inner
        if part is None:
            if np.array_equal(_compute_checksums(content, inner), expected):
                return
            pieces = list(_split_chunks(content, inner))
        elif inner and isinstance(part, RangeByteRequest | SuffixByteRequest):
            pieces = [(part.end if isinstance(part, RangeByteRequest) else 0, content)]
        else:
            return
        for end, piece in pieces:
            undamaged = len(piece) > CRC and google_crc32c.value(piece[:-CRC].tobytes()) == _read_crc(piece)
            if undamaged and _mix_offsets([_read_crc(piece)], [end]) not in expected:
                raise DamageError.of(f"{self._url}/{key}", FOREIGN)


def _add_location(values: dict[str, Any], location: dict[str, str]) -> bytes:
    """Return metadata as JSON with a location as an attribute."""
    values["attributes"] = {**values.get("attributes", {}), LOCATION: location}
    return json.dumps(values).encode()


def _compute_checksums(content: npt.NDArray[np.uint8], inner: int) -> _Crcs:
    """Return the checksums of a file of `inner` chunks, shape (1 + inner,); zeros if it is too short for an index."""
    if not inner:
        return _mix_offsets([_read_crc(content)], [len(content)])
    checksums = np.zeros(1 + inner, np.uint32)
    spans = _read_index(content, inner)
    if spans is not None:
        ends = spans.sum(axis=1)[:, None]
        last = content[np.minimum(ends - np.arange(CRC, 0, -1, dtype=np.uint64), len(content) - 1).astype(np.int64)]
        checksums[0] = _read_crc(content)
        checksums[1:] = np.where(spans[:, 0] == _ABSENT, 0, _mix_offsets(last.view("<u4")[:, 0], ends[:, 0]))
    return checksums


def _split_chunks(content: npt.NDArray[np.uint8], inner: int) -> Iterator[tuple[int, npt.NDArray[np.uint8]]]:
    """Yield the chunks of a file, and a shard's index: the offset at which each ends, 0 for the index; its bytes."""
    if not inner:
        yield len(content), content
        return
    yield 0, content[-(_ENTRY * inner + CRC) :]
    spans = _read_index(content, inner)
    for start, size in [] if spans is None else spans.tolist():
        if start != _ABSENT:
            yield start + size, content[start : start + size]


def _read_index(content: npt.NDArray[np.uint8], inner: int) -> npt.NDArray[np.uint64] | None:
    """Return the offsets and lengths of a shard's chunks, shape (inner, 2); None if the shard is too short."""
    size = _ENTRY * inner + CRC
    if len(content) < size:
        return None
    return np.frombuffer(content[-size:-CRC].tobytes(), "<u8").reshape(inner, 2)


def _read_crc(content: npt.NDArray[np.uint8]) -> int:
    """Return the checksum in the last bytes of a chunk."""
    return int.from_bytes(content[-CRC:].tobytes(), "little")


def _mix_offsets(crcs: npt.ArrayLike, ends: npt.ArrayLike) -> _Crcs:
    """Return checksums of chunks mixed with the offsets at which the chunks end in their files."""
    spread = (np.asarray(ends, np.uint64) * _MIX) >> np.uint64(32)
    return np.asarray(crcs, np.uint32) ^ spread.astype(np.uint32)
