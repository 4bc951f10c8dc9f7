"""Facts in the URLs of files: their formats, their compression, and the columns that their folders name."""

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
_WRITE, _WRITE_THEIRS = "Write its text to a file first", "Write their text to a file first"
_ARRAYS = "bytes of arrays or objects"
# Files that are not text but could be read as text: what would become words, the remedy, and suffixes
_NO_TEXT = (
    ("bytes of a table", "Make Parquet of it, and give column", (".xls", ".xlsx", ".avro", ".sqlite", ".db")),
    ("tags", _WRITE, (".html", ".htm", ".xml")),
    ("bytes of a document", _WRITE, (".pdf", ".docx", ".odt", ".epub")),
    ("bytes of a picture", "Leave it out", (".jpg", ".jpeg", ".png", ".gif")),
    (_ARRAYS, _WRITE_THEIRS, (".npy", ".npz", ".h5", ".hdf5", ".safetensors", ".pkl", ".pickle", ".pt", ".faiss")),
)
_NULL = "__HIVE_DEFAULT_PARTITION__"
_NUMBER = re.compile(r"-?\d+(\.\d+)?", re.ASCII)


def detect_compression(url: str) -> str | None:
    """Return the compression that a file's suffix names: "gzip", "bz2", "xz" or "zstd"; None for no compression."""
    return _COMPRESSIONS.get(os.path.splitext(url.lower())[1])


def detect_format(url: str, wanted: Format | None = None) -> str:
    """Return a file's format by its suffix, "text" by default; if such files are no text, the suffix, such as ".pdf".

    Parameters
    ----------
    url
        URL of the file.
    wanted
        The format in Params, if there is one. Its suffixes take precedence.
    """
    suffix = _inner_suffix(url)
    if wanted is not None and suffix in wanted.suffixes:
        return wanted.name
    if any(suffix in suffixes for _, _, suffixes in _NO_TEXT):
        return suffix
    return next((format.name for format in FORMATS.values() if suffix in format.suffixes), TEXT.name)


def check_readable(url: str, name: str) -> Format:
    """Return the format in which to read a file.

    Parameters
    ----------
    url
        URL of the file.
    name
        Name of the format in Params, or the result of `detect_format`.

    Raises
    ------
    InputError
        If the file cannot be read, or is not text but would be read as text.
    ParameterError
        If there is no format of this name.
    """
    suffix = _inner_suffix(url)
    if suffix in _PACKED:
        raise InputError(f"{url} is packed as {suffix}, which cannot be read.", "Unpack it, or use gz, bz2, xz or zst.")
    for words, remedy, suffixes in _NO_TEXT:
        if name in suffixes:
            problem = f"{url} is not text by its name: {words} would become words."
            raise InputError(problem, f"{remedy}; or give format='text' if it is plain text.")
    format = find_format(name)
    if not format.compressible and (compression := detect_compression(url)):
        problem = f"{url} is {format.title} inside {compression}."
        raise InputError(problem, f"Unpack it: {format.title} is not read compressed.")
    return format


def select_format(name: str, urls: Iterable[str], wanted: Format | None) -> list[str]:
    """Return the URLs of a folder's files that have the wanted format by their names; all URLs if `wanted` is None.

    Parameters
    ----------
    name
        The user's name for the folder, or the user's pattern.
    urls
        URLs of the files.
    wanted
        The format in Params; None if they have none.

    Raises
    ------
    InputError
        If `wanted` is None and the files have several formats, or if no file has the wanted format.
    """
    by_format: dict[str, list[str]] = {}
    for url in urls:
        by_format.setdefault(detect_format(url, wanted), []).append(url)
    if wanted is not None:
        format = wanted.name
        if format not in by_format:
            raise InputError(
                f"No file in {name} is {format} by its name; {next(iter(by_format.values()))[0]} is not.",
                f"Give a pattern, such as {name.rstrip('/')}/**/part-*: files that it matches are read as {format}.",
            )
        return by_format[format]
    if len(by_format) > 1:
        (format_a, (url_a, *_)), (format_b, (url_b, *_)), *_ = by_format.items()
        raise InputError(
            f"{name} holds files of several formats, such as {format_a} ({url_a}) and {format_b} ({url_b}).",
            "Give format, to read only files of that format; or a pattern, such as "
            f"{name.rstrip('/')}/**/*{os.path.splitext(url_a)[1]}.",
        )
    return [url for same_format in by_format.values() for url in same_format]


def parse_folder_columns(url: str) -> dict[str, str | None]:
    """Return the values of the columns that a file's folders name, as year=2026, by column; None for a null value."""
    columns = dict[str, str | None]()
    for folder in url.split("/")[:-1]:
        name, equals, value = folder.partition("=")
        if equals and name:
            columns[unquote(name)] = None if value == _NULL else unquote(value)
    return columns


def filter_sources(sources: Sequence[Source], filters: Filters) -> list[Source]:
    """Return the files that pass the filters, in order; all files if there are no filters.

    Parameters
    ----------
    sources
        The files.
    filters
        Groups of conditions on the columns that folders name. A file passes if all conditions of one group hold.

    Raises
    ------
    InputError
        If a file's folders do not name a column, a value cannot be compared, or no file passes.
    """
    if not filters:
        return list(sources)
    passed = [source for source in sources if any(all(_holds(source, f) for f in group) for group in filters)]
    if not passed:
        shown = " or ".join(" and ".join(f"{f.column} {f.operator} {f.value}" for f in group) for group in filters)
        raise InputError(f"None of {counted(len(sources), 'file')} passes {shown}.", "Give other filters.")
    return passed


def _inner_suffix(url: str) -> str:
    """Return the suffix of a file's name in lower case, without the suffix of a compression: ".csv" of "a.csv.gz"."""
    root, suffix = os.path.splitext(url.lower())
    return os.path.splitext(root)[1] if suffix in _COMPRESSIONS else suffix


def _holds(source: Source, condition: Filter) -> bool:
    """Return whether a condition holds for the columns that a file's folders name; raises as `filter_sources`."""
    columns = parse_folder_columns(source.url)
    if condition.column not in columns:
        present = ", ".join(columns) or "none"
        problem = f"No folder of {source.url} names the column {condition.column!r}; there is {present}."
        raise InputError(problem, f"Filters choose files by folders such as {condition.column}=1, not rows.")
    value = columns[condition.column]
    if value is None:
        return False
    if isinstance(condition.value, tuple):
        is_member = any(eq(*_convert_both(source, value, member)) for member in condition.value)
        return is_member is MEMBERSHIP[condition.operator]
    return COMPARISONS[condition.operator](*_convert_both(source, value, condition.value))


def _convert_both(source: Source, value: str, operand: Any) -> tuple[Any, Any]:
    """Return a folder's value, and the value that a filter compares it with, as texts or as numbers.

    Texts that are both numbers become numbers: the texts of month=9 and month=10 have another order than the numbers.

    Raises
    ------
    InputError
        If the filter's value is a number, and the folder's value is none.
    """
    if isinstance(operand, str) and not (_NUMBER.fullmatch(value) and _NUMBER.fullmatch(operand)):
        return value, operand
    try:
        return Decimal(value), Decimal(str(operand))
    except InvalidOperation:
        problem = f"{value!r}, of a folder of {source.url}, is not a number, and is compared with {operand!r}."
        raise InputError(problem, f"Give text, such as {str(operand)!r}.") from None
