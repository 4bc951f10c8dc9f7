"""Names of files: format and compression, and the columns that their folders name."""

import os
import re
from collections.abc import Iterable, Sequence
from decimal import Decimal, InvalidOperation
from operator import eq
from typing import Any
from urllib.parse import unquote

from daskw2v.config.filters import COMPARISONS, MEMBERSHIP, Filter, Filters
from daskw2v.corpus.files import Source
from daskw2v.corpus.formats import FORMATS, TEXT, Format, find_format
from daskw2v.errors import InputError, counted

_COMPRESSIONS = {".gz": "gzip", ".gzip": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd", ".zstd": "zstd"}
_PACKED = (".zip", ".tar", ".tgz", ".7z", ".rar", ".lz4", ".lzma", ".lzo", ".br", ".snappy", ".sz", ".z")
_WRITE, _ARRAYS = "Write its text to a file first", "bytes of arrays or objects"
# Files that are not text but could be read as such: what would become words, the remedy, and suffixes.
_NO_TEXT = (
    ("bytes of a table", "Make Parquet of it, and give column", (".xls", ".xlsx", ".avro", ".sqlite", ".db")),
    ("tags", _WRITE, (".html", ".htm", ".xml")),
    ("bytes of a document", _WRITE, (".pdf", ".docx", ".odt", ".epub")),
    ("bytes of a picture", "Leave it out", (".jpg", ".jpeg", ".png", ".gif")),
    (_ARRAYS, "Write their text to a file first", (".npy", ".npz", ".h5", ".hdf5", ".safetensors")),
    (_ARRAYS, "Write their text to a file first", (".pkl", ".pickle", ".pt", ".faiss")),
)
_NULL = "__HIVE_DEFAULT_PARTITION__"
_NUMBER = re.compile(r"-?\d+(\.\d+)?", re.ASCII)


def compression_of(url: str) -> str | None:
    """Return "gzip", "bz2", "xz" or "zstd"; None for a file that is not compressed."""
    return _COMPRESSIONS.get(os.path.splitext(url.lower())[1])


def format_of(url: str, wanted: Format | None = None) -> str:
    """Return the name of a file's format, or its suffix if that is not of text, such as ".csv".

    Parameters
    ----------
    url
        The file's name.
    wanted
        The format in Params. Its suffixes take precedence. Suffixes of other plug-ins are not used.
    """
    suffix = _inner_suffix(url)
    if wanted is not None and suffix in wanted.suffixes:
        return wanted.name
    if any(suffix in suffixes for _, _, suffixes in _NO_TEXT):
        return suffix
    return next((format.name for format in FORMATS.values() if suffix in format.suffixes), TEXT.name)


def check_readable(url: str, name: str) -> Format:
    """Return the format of a file; `name` is the format in Params or the result of `format_of`.

    Raises
    ------
    InputError
        If the file cannot be read, or is not text but would be read as text.
    """
    suffix = _inner_suffix(url)
    if suffix in _PACKED:
        raise InputError(f"{url} is packed as {suffix}, which cannot be read.", "Unpack it, or use gz, bz2, xz or zst.")
    for words, remedy, suffixes in _NO_TEXT:
        if name in suffixes:
            raise InputError(
                f"{url} is not text by its name: {words} would become words.",
                f"{remedy}; or give format='text' if it is plain text.",
            )
    format = find_format(name)
    if not format.compressible and (compression := compression_of(url)):
        raise InputError(
            f"{url} is {format.title} inside {compression}.", f"Unpack it: {format.title} is not read compressed."
        )
    return format


def of_one_format(name: str, urls: Iterable[str], wanted: Format | None) -> list[str]:
    """Return the files of a folder to read: those whose names have the wanted format, or all if `wanted` is None.

    Raises
    ------
    InputError
        If `wanted` is None and the names have several formats, or no name has the wanted one.
    """
    by_format: dict[str, list[str]] = {}
    for url in urls:
        by_format.setdefault(format_of(url, wanted), []).append(url)
    if wanted is not None:
        format = wanted.name
        if format not in by_format:
            raise InputError(
                f"No file in {name} is {format} by its name; {next(iter(by_format.values()))[0]} is not.",
                f"Give a pattern, such as {name.rstrip('/')}/**/part-*: files that it matches are read as {format}.",
            )
        return by_format[format]
    if len(by_format) > 1:
        (one, (first, *_)), (other, (second, *_)), *_ = by_format.items()
        raise InputError(
            f"{name} holds files of several formats, such as {one} ({first}) and {other} ({second}).",
            "Give format, to read only files of that format; or a pattern, such as "
            f"{name.rstrip('/')}/**/*{os.path.splitext(first)[1]}.",
        )
    return [url for found in by_format.values() for url in found]


def columns_of(url: str) -> dict[str, str | None]:
    """Return the columns that the folders of a file name, and their values; None for a missing value."""
    columns = dict[str, str | None]()
    for folder in url.split("/")[:-1]:
        name, equals, value = folder.partition("=")
        if equals and name:
            columns[unquote(name)] = None if value == _NULL else unquote(value)
    return columns


def filtered(sources: Sequence[Source], filters: Filters) -> list[Source]:
    """Return the files that pass filters, in order; without filters, all.

    Raises
    ------
    InputError
        If a file's folders do not name a column, its value cannot be compared, or no file passes.
    """
    if not filters:
        return list(sources)
    passed = [source for source in sources if any(all(_holds(source, f) for f in group) for group in filters)]
    if not passed:
        said = " or ".join(" and ".join(f"{f.column} {f.operator} {f.value}" for f in group) for group in filters)
        raise InputError(f"None of {counted(len(sources), 'file')} passes {said}.", "Give other filters.")
    return passed


def _inner_suffix(url: str) -> str:
    """Return the suffix of a name without that of its compression."""
    root, suffix = os.path.splitext(url.lower())
    return os.path.splitext(root)[1] if suffix in _COMPRESSIONS else suffix


def _holds(source: Source, condition: Filter) -> bool:
    columns = columns_of(source.url)
    if condition.column not in columns:
        named = ", ".join(columns) or "none"
        raise InputError(
            f"No folder of {source.url} names the column {condition.column!r}; there is {named}.",
            f"Filters choose files by folders such as {condition.column}=1, not rows.",
        )
    value = columns[condition.column]
    if value is None:
        return False
    if isinstance(condition.value, tuple):
        found = any(eq(*_alike(source, value, member)) for member in condition.value)
        return found is MEMBERSHIP[condition.operator]
    return COMPARISONS[condition.operator](*_alike(source, value, condition.value))


def _alike(source: Source, value: str, other: Any) -> tuple[Any, Any]:
    """Return a folder's value, and what it is compared with, as one type: texts that are both numbers are numbers.

    Folders are called month=9 and month=10, whose texts have another order.
    """
    if isinstance(other, str) and not (_NUMBER.fullmatch(value) and _NUMBER.fullmatch(other)):
        return value, other
    try:
        return Decimal(value), Decimal(str(other))
    except InvalidOperation:
        raise InputError(
            f"{value!r}, of a folder of {source.url}, is not a number, and is compared with {other!r}.",
            f"Give text, such as {str(other)!r}.",
        ) from None
