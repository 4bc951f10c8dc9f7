"""The Zarr groups and arrays that may be read: only those that this package would write.

They hold plain numbers, in chunks of bounded size, by codecs that run no code and cannot decompress to more than was
declared. Metadata are checked before Zarr reads them.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import zarr
from zarr.abc.codec import Codec
from zarr.codecs import BloscCodec, ShardingCodec
from zarr.core.array_spec import ArraySpec
from zarr.core.buffer import Buffer

from daskw2v.store.limits import refused, shown

_MAX_CHUNK = 1 << 28  # bytes of a chunk; ours have about 32 MB
_MAX_FILES = 1 << 17  # files of an array: Zarr makes a task for each
_MAX_IN_SHARD = 1 << 20  # chunks of a shard, whose index is read at once
_MAX_AXES = 3
_MAX_FILL = 1 << 24  # floats of all types hold integers up to this one
_GROUP_ENTRIES = {"attributes", "consolidated_metadata", "node_type", "zarr_format"}
_EMPTY_ENTRIES = "storage_transformers", "dimension_names", "consolidated_metadata"  # of arrays
_ENTRIES = {
    *_GROUP_ENTRIES,
    *_EMPTY_ENTRIES,
    "chunk_grid",
    "chunk_key_encoding",
    "codecs",
    "data_type",
    "fill_value",
    "shape",
}
_TYPES = {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"}
_PLAIN = (["bytes"], ["bytes", "blosc"], ["bytes", "crc32c"], ["bytes", "blosc", "crc32c"])
_INDEX = ["bytes", "crc32c"]
# The entries that a configuration may have, by the name of the codec, grid or encoding: Zarr would pass further ones to
# its functions. A value is an instance of the type, an integer in the range, or one of the texts
_CONFIGURATIONS: dict[str, dict[str, type | range | tuple[str, ...]]] = {
    "regular": {"chunk_shape": list},
    "default": {"separator": ("/",)},
    "sharding_indexed": {"chunk_shape": list, "codecs": list, "index_codecs": list, "index_location": ("start", "end")},
    "bytes": {"endian": ("little", "big")},
    "crc32c": {},
    "blosc": {
        "typesize": range(1, 256),
        "cname": ("lz4",),
        "clevel": range(10),
        "shuffle": ("noshuffle", "shuffle", "bitshuffle"),
        "blocksize": range(_MAX_CHUNK + 1),
    },
}
_HEADER = 16  # bytes of Blosc's header


def check_metadata(values: Any, location: str) -> None:
    """Refuse metadata of a Zarr group or array that this package would not write.

    `values` is the value of their JSON, `location` their URL for the message.

    Raises
    ------
    StoreError
        If the node is no group or array, or an array of another type, layout or codec, or of absurd size.
    """
    if problem := _find_problem(values):
        raise refused(location, problem)


def _find_problem(values: Any) -> str:
    """Return the first fault of metadata as a verb phrase, such as "has the codecs ..."; "" without a fault."""
    if not isinstance(values, dict) or not values.keys() <= _ENTRIES:
        return "is no group or array that daskw2v writes"
    match values:
        case {"zarr_format": int(3), "node_type": "group", "attributes": {}} if values.keys() <= _GROUP_ENTRIES:
            return "" if values.get("consolidated_metadata") is None else "holds the metadata of others"
        case {
            "zarr_format": int(3),
            "node_type": "array",
            "data_type": kind,
            "shape": [*shape],
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [*chunk]}} as grid,
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}} as encoding,
            "codecs": [*codecs],
            "attributes": {},
        } if _is_known(grid) and _is_known(encoding):
            if not isinstance(kind, str) or kind not in _TYPES:
                return f"is of type {str(kind)[:60]!r}, not of numbers"
            if any(values.get(name) not in (None, []) for name in _EMPTY_ENTRIES) or not _is_valid_fill(values, kind):
                return "has entries that daskw2v does not write"
            return _find_shape_problem(shape, chunk, np.dtype(kind).itemsize, codecs)
    return "is no group or array that daskw2v writes"


def _is_valid_fill(values: dict[str, Any], kind: str) -> bool:
    """Return whether the fill value of an array is a number of the array's type."""
    fill: Any = values.get("fill_value")
    if kind.startswith("float"):
        return fill == "NaN" or (type(fill) in (int, float) and abs(fill) < _MAX_FILL)
    limits = np.iinfo(kind)
    return type(fill) is int and limits.min <= fill <= limits.max


def _find_shape_problem(shape: list[Any], file: list[Any], itemsize: int, codecs: list[Any]) -> str:
    """Return the first fault of an array's shape, of its files' shape, or of its codecs, as `_find_problem` does."""
    match codecs:
        case [
            {
                "name": "sharding_indexed",
                "configuration": {"chunk_shape": [*chunk], "codecs": [*inner], "index_codecs": [*index]},
            }
        ]:
            if _get_names(index) != _INDEX or not all(map(_is_known, index)):
                return f"has the codecs {shown(index)} of an index"
            if not _is_known(codecs[0]):
                return f"has the codec {shown(codecs[0])}, which daskw2v does not write"
        case _:
            chunk, inner = file, codecs
    if not len(shape) == len(file) == len(chunk) or not 1 <= len(shape) <= _MAX_AXES:
        return f"is of shape {shown(shape)} in chunks of {shown(chunk)}"
    if not (all(type(n) is int and n >= 0 for n in shape) and all(type(n) is int and n > 0 for n in file + chunk)):
        return f"is of shape {shown(shape)} in chunks of {shown(chunk)}"
    if math.prod(chunk) * itemsize > _MAX_CHUNK:
        return f"has chunks of {math.prod(chunk) * itemsize:,} bytes, where {_MAX_CHUNK:,} are the most"
    if math.prod(max(1, n // k) for n, k in zip(file, chunk, strict=True)) > _MAX_IN_SHARD:
        return f"has shards of {shown(file)} in chunks of {shown(chunk)}"
    if math.prod(-(-n // k) for n, k in zip(shape, file, strict=True)) > _MAX_FILES:
        return f"is of shape {shown(shape)} in files of {shown(file)}, more than {_MAX_FILES:,}"
    return _find_codec_problem(inner)


def _find_codec_problem(codecs: list[Any]) -> str:
    """Return the first fault of the codecs of a chunk, as `_find_problem` does."""
    if _get_names(codecs) not in _PLAIN:
        return f"has the codecs {shown(codecs)}, which daskw2v does not write"
    for codec in codecs:
        if not _is_known(codec):
            return f"has the codec {shown(codec)}, which daskw2v does not write"
    return ""


def _is_known(values: Any) -> bool:
    """Return whether a codec, grid or encoding, of a known name, has only entries and values of `_CONFIGURATIONS`."""
    if not isinstance(values, dict) or not values.keys() <= {"name", "configuration"}:
        return False
    allowed, configuration = _CONFIGURATIONS[values["name"]], values.get("configuration", {})
    if not isinstance(configuration, dict) or not configuration.keys() <= allowed.keys():
        return False
    is_complete = values["name"] != "blosc" or configuration.keys() == allowed.keys()
    return is_complete and all(_is_allowed(allowed[name], value) for name, value in configuration.items())


def _is_allowed(allowed: type | range | tuple[str, ...], value: Any) -> bool:
    """Return whether a value has a type, or is an int of a range or one of several texts."""
    if isinstance(allowed, type):
        return isinstance(value, allowed)
    return value in allowed and (type(value) is int or isinstance(allowed, tuple))


def _get_names(codecs: Sequence[Any]) -> list[Any]:
    """Return the names of codecs."""
    return [codec.get("name") if isinstance(codec, dict) else codec for codec in codecs]


def bound_codecs(array: zarr.Array[Any]) -> zarr.Array[Any]:
    """Return an array whose codecs refuse chunks that would not decompress to the size of a chunk."""
    metadata: Any = array.metadata
    metadata = replace(metadata, codecs=tuple(map(_bound_codec, metadata.codecs)))
    return zarr.Array(zarr.AsyncArray(metadata, array.store_path, array.config))


def _bound_codec(codec: Codec) -> Codec:
    """Return a codec that refuses chunks which would not decompress to the size of a chunk."""
    if isinstance(codec, ShardingCodec):
        return replace(codec, codecs=tuple(map(_bound_codec, codec.codecs)))
    return _Blosc.from_dict(codec.to_dict()) if isinstance(codec, BloscCodec) else codec


class _Blosc(BloscCodec):
    """Blosc with a check of its header, by which it would allocate memory."""

    async def _decode_single(self, chunk_bytes: Buffer, chunk_spec: ArraySpec) -> Buffer:
        """Return a chunk decompressed, after a check of its header."""
        expected = math.prod(chunk_spec.shape) * chunk_spec.dtype.to_native_dtype().itemsize
        check_packed(chunk_bytes.as_numpy_array(), expected)
        return await super()._decode_single(chunk_bytes, chunk_spec)


def check_packed(content: npt.NDArray[np.uint8], expected: int) -> None:
    """Check the header of content that Blosc compressed: its own length, and `expected` bytes when decompressed.

    Raises
    ------
    ValueError
        If the header declares other numbers of bytes.
    """
    header = content[:_HEADER].tobytes()
    unpacked, packed = int.from_bytes(header[4:8], "little"), int.from_bytes(header[12:16], "little")
    if (unpacked, packed) != (expected, len(content)):
        declared = f"are {packed:,} and hold {unpacked:,}"
        raise ValueError(f"{len(content):,} bytes say that they {declared}; they should hold {expected:,}")
