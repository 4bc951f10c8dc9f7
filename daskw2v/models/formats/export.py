"""Export of vectors to formats of other tools."""

import struct
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any, BinaryIO

import numpy as np

from daskw2v.errors import ParameterError
from daskw2v.extras import Extra
from daskw2v.models.formats.fasttext import write_fasttext, write_quantized
from daskw2v.models.formats.safetensors import write_header, write_numbers
from daskw2v.models.formats.static import write_static
from daskw2v.models.formats.word2vec import check_words, write_binary, write_text
from daskw2v.models.queries.encoding import check_sif
from daskw2v.models.queries.frames import arrow_schema
from daskw2v.models.queries.outputs import NGRAMS, warn_of_omitted_parts
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.blocks import normalize_rows
from daskw2v.models.stored.files import create_folder, open_for_writing
from daskw2v.store.storage import Store
from daskw2v.store.urls import Location, as_url

pq = Extra("pyarrow.parquet", "arrow")
lance, fragment = Extra("lance", "lance"), Extra("lance.fragment", "lance")

# write_index_header and write_index in faiss/impl/index_write.cpp: kind of index, dimensions, vectors, twice a number
# that is not read, whether trained, metric, numbers that follow
_FAISS = struct.Struct("<4siqqq?iQ")
_UNUSED, _INNER_PRODUCT = 1 << 20, 0


def export(
    vectors: Vectors,
    url: Location,
    format: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    *,
    sif: float | None = None,
    part_size: int | None = None,
) -> None:
    """Write vectors in a format of another tool.

    Files are written atomically and replace existing ones; the folder of a Lance dataset must be empty.

    A warning is logged that names the parts of the model that the format lacks: n-grams, features, a subword network,
    phrases.

    Parameters
    ----------
    vectors
        The vectors to write.
    url
        File to write (folder, for projector, static and lance), any fsspec URL or local path; local only for lance.
    format
        text or binary (word2vec's formats; compressed if the name ends in .gz), fasttext (a model of fastText's, with
        the n-grams of words), ftz (a small one, with quantized rows; call `Vectors.prune` first to leave n-grams out),
        parquet, safetensors, faiss (a flat index of unit vectors, whose inner products are cosines, and its words in
        `<url>.words`), lance (a dataset with the columns of parquet), projector (for TensorBoard) or static (for
        sentence-transformers, model2vec and the Hugging Face Hub, whose model card names no license). By default, the
        suffix decides: .txt or .vec, .bin for binary, .ftz, .parquet, .safetensors, .faiss, .lance.
    storage_options
        Options for fsspec.
    sif
        For static: scale the row of a word of probability p by sif / (sif + p), so that rare words count more in the
        mean of a text's words (Arora et al. 2017, who have 0.001). By default, rows are as they are.
    part_size
        For ftz: the dimensions that a byte stands for, 1 to 64. By default 2, as in fastText; 1 writes rows of int8.

    Raises
    ------
    ParameterError
        If the format is unknown, does not follow from the name, or cannot be compressed with gzip; if `sif` is not a
        finite number above 0, `part_size` not one of 1 to 64, or one is for another format; if a Lance dataset would
        not be on this machine.
    InputError
        If the format cannot represent one of the words, the model's tokenizer or its table of features; if `sif` needs
        counts of words, and there are none.
    StoreError
        If there is something in the folder of a Lance dataset, a vector is not finite, or no space is left.
    MissingExtraError
        If the format is parquet and pyarrow is not installed, or lance and pylance is not.
    OSError
        If writing fails otherwise (no permission).

    Examples
    --------
    >>> import daskw2v
    >>> vectors = daskw2v.Vectors(["king", "queen"], [[3, 1], [2, 2]])
    >>> daskw2v.export(vectors, "memory://exported.vec")
    >>> daskw2v.export(vectors, "memory://exported.safetensors")
    >>> daskw2v.open("memory://exported.vec")["queen"].tolist()
    [2.0, 2.0]
    """
    url = as_url(url, "url")
    options = {name: value for name, value in (("sif", sif), ("part_size", part_size)) if value is not None}
    format = _choose_format(url, format, options)
    warn_of_omitted_parts(vectors, url, {NGRAMS} if format in WITH_NGRAMS else ())
    if format in _FOLDER_WRITERS:
        _FOLDER_WRITERS[format](vectors, url, storage_options, **options)
        return
    with open_for_writing(url, storage_options) as f:
        _WRITERS[format](vectors, f, **options)


def _choose_format(url: str, format: str | None, options: Mapping[str, Any]) -> str:
    """Return the format to write, by its name or by the URL's suffix; raises ParameterError as `export` does."""
    problem = f"format={format!r} of {url} is unknown."
    if format is None:
        format, problem = format_by_name(url), f"The name {url} has no suffix of a format."
    formats = (*_WRITERS, *_FOLDER_WRITERS)
    if format is None or format not in formats:
        suffixes = ", ".join(_SUFFIXES)
        raise ParameterError(problem, f"Give one of {', '.join(formats)}; or a name that ends in {suffixes}.")
    if url.endswith(".gz") and format not in ("text", "binary"):
        raise ParameterError(f"{format} is not compressed with gzip, but {url} ends in .gz.", "Leave .gz away.")
    for name, value in options.items():
        check_option(name, f"{name}={value!r}", format, _OPTION_FORMATS[name])
    if "sif" in options:
        check_sif(options["sif"])
    return format


def check_option(name: str, option: str, format: str, *formats: str) -> None:
    """Raise ParameterError if a format is none of `formats`, which read the option `name`; `option` is for messages."""
    if format not in formats:
        problem = f"{option} changes nothing in {format}; it is for {' and '.join(formats)}."
        raise ParameterError(problem, f"Leave {name} out.")


def format_by_name(url: str) -> str | None:
    """Return the export format of a file name by its suffix; None for an unknown suffix."""
    name = url.removesuffix(".gz")
    return next((format for suffix, format in _SUFFIXES.items() if name.endswith(suffix)), None)


def _write_parquet(vectors: Vectors, f: BinaryIO) -> None:
    """Write a Parquet file with the columns word, count and vector, row group by row group."""
    with pq.ParquetWriter(f, arrow_schema(vectors.vector_size)) as writer:
        for batch in vectors.record_batches():
            writer.write_batch(batch)


def _write_safetensors(vectors: Vectors, f: BinaryIO) -> None:
    """Write a safetensors file: vectors (V, D), counts (V,), and words as UTF-8 bytes and V + 1 offsets into these."""
    vocabulary = vectors.vocabulary
    shapes = {
        "offsets": (np.int64, vocabulary.offsets.shape),
        "counts": (np.int64, vocabulary.counts.shape),
        "vectors": (np.float32, (len(vectors), vectors.vector_size)),
        "words": (np.uint8, vocabulary.data.shape),
    }
    write_header(f, shapes)
    write_numbers(f, vocabulary.offsets)
    write_numbers(f, vocabulary.counts)
    for rows in vectors.slices():
        write_numbers(f, vectors.rows(rows))
    write_numbers(f, vocabulary.data)


def _write_projector(vectors: Vectors, url: str, storage_options: Mapping[str, Any] | None) -> None:
    """Write the two files that TensorBoard's projector loads: vectors.tsv and metadata.tsv."""
    check_words(vectors, r"[\t\n\r]", "The projector")
    line = "\t".join(["%.9g"] * vectors.vector_size) + "\n"
    with open_for_writing(f"{url.rstrip('/')}/vectors.tsv", storage_options) as f:
        f.writelines((line % tuple(row.tolist())).encode() for _, row in vectors.items())
    with open_for_writing(f"{url.rstrip('/')}/metadata.tsv", storage_options) as f:
        f.write(b"word\tcount\n")
        f.writelines(f"{word}\t{n}\n".encode() for word, n in zip(vectors, vectors.vocabulary.counts, strict=True))


def _write_faiss(vectors: Vectors, url: str, storage_options: Mapping[str, Any] | None) -> None:
    """Write FAISS's flat index of unit vectors, and beside it `<url>.words`, one word a line in order of ids.

    The faiss package is not used, because its index would hold all vectors in memory first.
    """
    check_words(vectors, r"[\r\n]", "A list of lines")
    with open_for_writing(f"{url}.words", storage_options) as f:
        f.writelines(f"{word}\n".encode() for word in vectors)
    with open_for_writing(url, storage_options) as f:
        words, size = len(vectors), vectors.vector_size
        f.write(_FAISS.pack(b"IxFI", size, words, _UNUSED, _UNUSED, True, _INNER_PRODUCT, words * size))
        for ids in vectors.slices():
            write_numbers(f, normalize_rows(vectors.rows(ids)))


def _write_lance(vectors: Vectors, url: str, storage_options: Mapping[str, Any] | None) -> None:
    """Write the columns of `to_arrow` as a dataset: a fragment for each block of rows, and one commit.

    `lance.write_dataset` takes an iterator of blocks too, but turns errors that the iterator raises into errors of its
    own. Lance has a client of its own for object stores, with options of its own, so the folder is on this machine.
    """
    if Store(url, dict(storage_options or {})).local_path is None:
        raise ParameterError(f"{url} is not on this machine.", "Export to a local folder .lance, and copy that.")
    with create_folder(url, storage_options) as store:
        fragments = (fragment.write_fragments(batch, store.url, mode="create") for batch in vectors.record_batches())
        operation = lance.LanceOperation.Overwrite(arrow_schema(vectors.vector_size), [*chain.from_iterable(fragments)])
        lance.LanceDataset.commit(store.url, operation)


_WRITERS: dict[str, Callable[..., None]] = {
    "text": write_text,
    "binary": write_binary,
    "parquet": _write_parquet,
    "safetensors": _write_safetensors,
    "fasttext": write_fasttext,
    "ftz": write_quantized,
}
_FOLDER_WRITERS: dict[str, Callable[..., None]] = {
    "projector": _write_projector,
    "static": write_static,
    "faiss": _write_faiss,
    "lance": _write_lance,
}
WITH_NGRAMS = ("fasttext", "ftz")  # formats that keep the n-grams of words
_OPTION_FORMATS = {"sif": "static", "part_size": "ftz"}  # the format of each option
_SUFFIXES = {".txt": "text", ".vec": "text", ".bin": "binary"}
_SUFFIXES |= {f".{format}": format for format in ("ftz", "parquet", "safetensors", "faiss", "lance")}
