"""Writes the safetensors format: a length, a JSON header and the bytes.

The safetensors package is not used, because it would copy the matrix first.
"""

import json
from collections.abc import Mapping
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

_DTYPES = {"float32": "F32", "int64": "I64", "uint8": "U8"}  # NumPy's names and those of safetensors


def write_header(f: BinaryIO, tensors: Mapping[str, tuple[npt.DTypeLike, tuple[int, ...]]]) -> None:
    """Write types and shapes. The numbers must follow in the same order; for alignment, give the widest types first."""
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
    """Write the next numbers of a tensor, or all of them."""
    f.write(np.ascontiguousarray(numbers, numbers.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data)
