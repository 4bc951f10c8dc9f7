"""Writes and reads the safetensors format: a length, a JSON header and the bytes.

The safetensors package is not used, because it would copy the matrix first.
"""

import json
import math
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from daskw2v.errors import InputError
from daskw2v.models.formats.word2vec import check_rows
from daskw2v.models.queries.vectors import Vectors
from daskw2v.shards.words import are_words
from daskw2v.store.limits import check_room
from daskw2v.vocabulary.vocabulary import Vocabulary

_MAX_HEADER = 1 << 20  # bytes
_MAX_NUMBER = 1 << 48  # numbers of a header: more than any file has bytes, and less than NumPy counts
_TENSORS = {"offsets": "int64", "counts": "int64", "vectors": "float32", "words": "uint8"}  # as `export` writes them
_DTYPES = {"float32": "F32", "int64": "I64", "uint8": "U8"}  # NumPy's names, and the names of safetensors


def write_header(f: BinaryIO, tensors: Mapping[str, tuple[npt.DTypeLike, tuple[int, ...]]]) -> None:
    """Write the header of a safetensors file, from the type and the shape of each tensor by name.

    The numbers must follow in the same order; for alignment, the widest types come first.
    """
    header: dict[str, Any] = {}
    end = 0
    for name, (kind, shape) in tensors.items():
        dtype = np.dtype(kind)
        start, end = end, end + dtype.itemsize * math.prod(shape)
        header[name] = {"dtype": _DTYPES[dtype.name], "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    f.write(len(text).to_bytes(8, "little") + text)


def write_numbers(f: BinaryIO, numbers: npt.NDArray[Any]) -> None:
    """Write the next numbers of a tensor in little-endian order."""
    f.write(np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data)


def read_safetensors(f: BinaryIO, url: str) -> Vectors:
    """Read vectors that `export` wrote: tensors vectors (V, D), counts, words, and V + 1 offsets into these.

    Raises
    ------
    InputError
        If the file is cut short, has other tensors than these, or has a word twice or a vector that is not finite.
    StoreError
        If the vectors take more memory than is free.
    """
    tensors, end = _read_header(f, url), 0
    arrays = dict[str, npt.NDArray[Any]]()
    for name, entry in sorted(tensors.items(), key=lambda tensor: tensor[1]["data_offsets"][0]):
        shape, (start, stop) = tuple(entry["shape"]), entry["data_offsets"]
        dtype = np.dtype(_TENSORS[name]).newbyteorder("<")
        if start != end or stop - start != dtype.itemsize * math.prod(shape):
            raise _malformed_export(url, f"has the tensor {name} of shape {shape} in the bytes {start}..{stop}")
        check_room((stop - start,), ..., 1, url)
        values, end = np.empty(shape, dtype), stop
        if f.readinto(values.reshape(-1).view(np.uint8).data) != values.nbytes:  # type: ignore[attr-defined]
            raise _malformed_export(url, f"is cut short in the tensor {name}")
        arrays[name] = values.astype(_TENSORS[name], copy=False)
    n, words, offsets = len(arrays["vectors"]), arrays["words"], arrays["offsets"]
    if not are_words(words, offsets) or len(offsets) != n + 1 or len(arrays["counts"]) != n:
        raise _malformed_export(url, f"has {n} vectors, and others or damaged words")
    vocabulary = Vocabulary(words, offsets, arrays["counts"])
    check_rows(url, vocabulary.words, arrays["vectors"])
    return Vectors(vocabulary, arrays["vectors"], url=url)


def _read_header(f: BinaryIO, url: str) -> dict[str, dict[str, Any]]:
    """Read type, shape and offsets of each tensor, by name; raise InputError if `export` did not write them."""
    size = int.from_bytes(f.read(8), "little")
    content = f.read(min(size, _MAX_HEADER))
    try:
        header = json.loads(content)
        tensors = {name: entry for name, entry in header.items() if name != "__metadata__"}
        kinds = {name: entry["dtype"] for name, entry in tensors.items()}
        dims = {name: (len(entry["shape"]), len(entry["data_offsets"])) for name, entry in tensors.items()}
        numbers = [n for entry in tensors.values() for n in (*entry["shape"], *entry["data_offsets"])]
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _malformed_export(url, f"has no header of safetensors ({type(error).__name__})") from None
    expected = {name: _DTYPES[kind] for name, kind in _TENSORS.items()}
    are_valid = all(type(n) is int and 0 <= n < _MAX_NUMBER for n in numbers)
    expected_dims = {"offsets": (1, 2), "counts": (1, 2), "vectors": (2, 2), "words": (1, 2)}
    if not are_valid or kinds != expected or dims != expected_dims:
        names = ", ".join(f"{name} ({kind})" for name, kind in kinds.items())
        raise _malformed_export(url, f"holds the tensors {names or 'of nothing'}")
    return tensors


def _malformed_export(url: str, problem: str) -> InputError:
    """Return the error for a file that `export` did not write; `problem` is a predicate, such as "is cut short"."""
    tensors = ", ".join(_TENSORS)
    return InputError(f"{url} {problem}.", f"Give a file that daskw2v exported, with the tensors {tensors}.")
