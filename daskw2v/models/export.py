"""Vectors in the formats that other tools read."""

import json
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from daskw2v.errors import MissingExtraError, ParameterError
from daskw2v.locations import Location, as_url
from daskw2v.models.files import writing
from daskw2v.models.rows import StoredRows
from daskw2v.models.vectors import Vectors
from daskw2v.models.word2vec import refuse_words, write_binary, write_text

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    pa = pq = None

_DTYPES = {"float32": "F32", "int64": "I64", "uint8": "U8"}  # NumPy's names and those of safetensors


def export(
    vectors: Vectors, url: Location, format: str | None = None, storage_options: Mapping[str, Any] | None = None
) -> None:
    """Write vectors in another tool's format; no part of a file remains if the write fails.

    Parameters
    ----------
    vectors
        What to write.
    url
        File to write (folder, for projector), at any fsspec URL or local path.
    format
        text, binary (word2vec's; packed where the name ends in .gz), parquet, safetensors or projector
        (TensorBoard's). By default what the name ends in tells: .txt or .vec, .bin, .parquet, .safetensors.
    storage_options
        Options for fsspec.

    Raises
    ------
    ParameterError
        If the format is unknown, cannot be told from the name, or is not packed with gzip.
    InputError
        If the format cannot hold one of the words.
    MissingExtraError
        If Parquet is asked for and pyarrow is not installed.
    OSError
        If the store refuses the write (no space, no permission).
    """
    url = as_url(url, "url")
    format = _by_name(url) if format is None else format
    if format not in ("projector", *_WRITERS):
        raise ParameterError(
            f"format={format!r} of {url} is unknown.",
            f"Give one of {', '.join(_WRITERS)}, projector; or a name that ends in {', '.join(_SUFFIXES)}.",
        )
    if url.endswith(".gz") and format not in ("text", "binary"):
        raise ParameterError(f"{format} is not packed with gzip, as {url} would tell.", "Leave .gz away.")
    if format == "projector":
        _write_projector(vectors, url, storage_options)
        return
    with writing(url, storage_options) as f:
        _WRITERS[format](vectors, f)


def _by_name(url: str) -> str | None:
    name = url.removesuffix(".gz")
    return next((format for suffix, format in _SUFFIXES.items() if name.endswith(suffix)), None)


def _write_parquet(vectors: Vectors, f: BinaryIO) -> None:
    """Write columns word, count and vector, a row group at a time."""
    if pa is None:
        raise MissingExtraError("Parquet needs pyarrow.", "Run: pip install 'daskw2v[arrow]'.")
    vocabulary, vector_type = vectors.vocabulary, pa.list_(pa.float32(), vectors.vector_size)
    schema = pa.schema([("word", pa.string()), ("count", pa.int64()), ("vector", vector_type)])
    with pq.ParquetWriter(f, schema) as writer:
        for rows in vectors.slices():
            numbers = pa.array(vectors.rows(rows).ravel())
            columns = [
                pa.array(vocabulary.between(rows.start, rows.stop), pa.string()),
                pa.array(vocabulary.counts[rows]),
                pa.FixedSizeListArray.from_arrays(numbers, type=vector_type),
            ]
            writer.write_batch(pa.record_batch(columns, schema=schema))


def _write_safetensors(vectors: Vectors, f: BinaryIO) -> None:
    """Write tensors vectors (V, D) and counts (V,), and the words: UTF-8 bytes and V + 1 offsets into them.

    The format is a length, a JSON header and the bytes. It is written here because the safetensors package
    would copy the matrix first.
    """
    vocabulary = vectors.vocabulary
    tensors: dict[str, npt.NDArray[Any] | StoredRows] = {  # widest type first, so that each is aligned
        "offsets": vocabulary.offsets,
        "counts": vocabulary.counts,
        "vectors": vectors.vectors,
        "words": vocabulary.data,
    }
    header: dict[str, Any] = {}
    end = 0
    for name, tensor in tensors.items():
        start, end = end, end + tensor.nbytes
        header[name] = {
            "dtype": _DTYPES[tensor.dtype.name],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    f.write(len(text).to_bytes(8, "little") + text)
    for name, tensor in tensors.items():
        for rows in vectors.slices() if name == "vectors" else [slice(None)]:
            part = vectors.rows(rows) if name == "vectors" else tensor[rows]
            f.write(np.ascontiguousarray(part, part.dtype.newbyteorder("<")).reshape(-1).view(np.uint8).data)


def _write_projector(vectors: Vectors, url: str, storage_options: Mapping[str, Any] | None) -> None:
    """Write the two files that TensorBoard's projector loads: vectors.tsv and metadata.tsv."""
    refuse_words(vectors, r"[\t\n\r]", "The projector")
    line = "\t".join(["%.9g"] * vectors.vector_size) + "\n"
    with writing(f"{url.rstrip('/')}/vectors.tsv", storage_options) as f:
        f.writelines((line % tuple(row.tolist())).encode() for _, row in vectors.items())
    with writing(f"{url.rstrip('/')}/metadata.tsv", storage_options) as f:
        f.write(b"word\tcount\n")
        for ids in vectors.slices():
            words, counts = vectors.vocabulary.between(ids.start, ids.stop), vectors.vocabulary.counts[ids].tolist()
            f.writelines(f"{word}\t{count}\n".encode() for word, count in zip(words, counts, strict=True))


_WRITERS: dict[str, Callable[[Vectors, BinaryIO], None]] = {
    "text": write_text,
    "binary": write_binary,
    "parquet": _write_parquet,
    "safetensors": _write_safetensors,
}
_SUFFIXES = {
    ".txt": "text",
    ".vec": "text",
    ".bin": "binary",
    ".parquet": "parquet",
    ".safetensors": "safetensors",
}
