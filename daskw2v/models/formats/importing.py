"""Import of vectors from files of other tools."""

import io
from collections.abc import Mapping
from typing import Any

from daskw2v.errors import ParameterError
from daskw2v.models.formats.fasttext import MAGIC, read_fasttext
from daskw2v.models.formats.safetensors import read_safetensors
from daskw2v.models.formats.word2vec import import_word2vec
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.files import open_for_reading
from daskw2v.store.urls import Location, as_url


def import_vectors(
    url: Location, format: str | None = None, storage_options: Mapping[str, Any] | None = None
) -> Vectors:
    """Read vectors from a file of another tool; its name may end in .gz.

    Parameters
    ----------
    url
        Any fsspec URL or local path.
    format
        text (word2vec's, and fastText's .vec), binary (word2vec's), fasttext (its model, .bin or .ftz, with the rows
        of n-grams, which stay codes in a quantized model) or safetensors (as `export` writes it). By default the
        suffix decides, and the first bytes of a .bin file.
    storage_options
        Options for fsspec.

    Raises
    ------
    ParameterError
        If there is no such format.
    InputError
        If the file cannot be read, is cut short, contradicts its header, or has a word twice or a vector that is not
        finite.
    StoreError
        If the vectors take more memory than is free.

    Examples
    --------
    >>> import daskw2v
    >>> daskw2v.Vectors(["king", "queen"], [[3, 1], [2, 2]]).save("memory://import.bin")
    >>> vectors = daskw2v.import_vectors("memory://import.bin")
    >>> vectors["king"].tolist()
    [3.0, 1.0]
    """
    url = as_url(url, "file")
    format = _detect_format(url, storage_options) if format is None else format
    if format in _WORD2VEC:
        return import_word2vec(url, _WORD2VEC[format], storage_options)
    if format not in _READERS:
        formats = ", ".join((*_WORD2VEC, *_READERS))
        raise ParameterError(f"format={format!r} of {url} is unknown.", f"Give one of {formats}.")
    with open_for_reading(url, storage_options) as raw, io.BufferedReader(raw, 1 << 20) as f:  # type: ignore[type-var]
        return _READERS[format](f, url)


def _detect_format(url: str, storage_options: Mapping[str, Any] | None) -> str:
    """Return the format of a file by its suffix, and of a .bin file by its first bytes; text for another suffix."""
    name = url.removesuffix(".gz")
    if not name.endswith(".bin"):
        return next((format for suffix, format in _SUFFIXES.items() if name.endswith(suffix)), "text")
    with open_for_reading(url, storage_options) as f:
        return "fasttext" if f.read(len(MAGIC)) == MAGIC else "binary"


_WORD2VEC = {"text": False, "binary": True}  # formats of word2vec, and whether they are binary
_SUFFIXES = {".safetensors": "safetensors", ".ftz": "fasttext"}
_READERS = {"fasttext": read_fasttext, "safetensors": read_safetensors}
