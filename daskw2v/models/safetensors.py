"""The format safetensors: a length, a JSON header and the bytes.

It is written here because the safetensors package would copy the matrix first.
"""

import json
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

_DTYPES = {"float32": "F32", "int64": "I64", "uint8": "U8"}  # NumPy's names and those of safetensors


def write_header(f: BinaryIO, tensors: Mapping[str, tuple[npt.DTypeLike, tuple[int, ...]]]) -> None:
    """Write types and shapes; the numbers follow in the same order, widest type first, so that each is aligned."""
    header: dict[str, Any] = {}
    end = 0
    for name, (kind, shape) in tensors.items():
        dtype = np.dtype(kind)
        start, end = end, end + dtype.itemsize * int(np.prod(shape, dtype=np.int64))
        header[name] = {"dtype": _DTYPES[dtype.name], "shape": list(shape), "data_offsets": [start, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    f.write(len(text).to_bytes(8, "little") + text)


def write_numbers(f: BinaryIO, numbers: npt.NDArray[Any]) -> None:
    """Write numbers of a tensor, all or the next of them."""
    f.write(np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data)
