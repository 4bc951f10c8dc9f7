"""What a file's name tells of its content: format and compression; or that it is no text."""

import os
from collections.abc import Iterable

from daskw2v.errors import InputError

FORMATS = ("text", "jsonl", "parquet")
_COMPRESSIONS = {
    ".gz": "gzip", ".gzip": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd", ".zstd": "zstd",
}  # fmt: skip
_PACKED = (".zip", ".tar", ".tgz", ".7z", ".rar", ".lz4", ".lzma", ".lzo", ".br", ".snappy", ".sz", ".z")
_SUFFIXES = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
_SEPARATED = (".csv", ".tsv")  # tables that those who ask for tables read
# No text, though it could be read as such: what would become words, what makes text of it, and the names.
_NO_TEXT = (
    ("commas, quotes and headers", "Make Parquet of it, as pandas.read_csv(...).to_parquet(...) does, and give column",
     _SEPARATED),
    ("bytes of a table", "Make Parquet of it, and give column",
     (".xls", ".xlsx", ".arrow", ".feather", ".orc", ".avro", ".sqlite", ".db")),
    ("tags", "Write its text to a file first", (".html", ".htm", ".xml")),
    ("bytes of a document", "Write its text to a file first", (".pdf", ".docx", ".odt", ".epub")),
    ("bytes of a picture", "Leave it out", (".jpg", ".jpeg", ".png", ".gif")),
    ("bytes of arrays or objects", "Write their text to a file first",
     (".npy", ".npz", ".pkl", ".pickle", ".h5", ".hdf5", ".pt", ".safetensors")),
)  # fmt: skip


def compression_of(url: str) -> str | None:
    """Return "gzip", "bz2", "xz" or "zstd"; None of a file that is not compressed."""
    return _COMPRESSIONS.get(os.path.splitext(url.lower())[1])


def format_of(url: str, *, tables: bool = False) -> str:
    """Return "text", "jsonl" or "parquet", or the suffix of a name that tells of no text, such as ".csv".

    Parameters
    ----------
    url
        The file's name.
    tables
        Take .csv and .tsv for text.
    """
    suffix = _inner_suffix(url)
    if tables and suffix in _SEPARATED:
        return "text"
    return suffix if any(suffix in suffixes for _, _, suffixes in _NO_TEXT) else _SUFFIXES.get(suffix, "text")


def check_readable(url: str, format: str) -> None:
    """Refuse what cannot be read, or would be read as text and is none; `format` is the one given, or `format_of`."""
    suffix = _inner_suffix(url)
    if suffix in _PACKED:
        raise InputError(f"{url} is packed as {suffix}, which cannot be read.", "Unpack it, or use gz, bz2, xz or zst.")
    if format == "parquet" and (compression := compression_of(url)):
        raise InputError(f"{url} is Parquet inside {compression}.", "Unpack it: Parquet compresses by itself.")
    for words, remedy, suffixes in _NO_TEXT:
        if format in suffixes:
            raise InputError(
                f"{url} is no text by its name: {words} would become words.",
                f"{remedy}; or give format='text' if it is plain text.",
            )


def of_one_format(name: str, urls: Iterable[str], format: str | None, *, tables: bool = False) -> list[str]:
    """Return the files of a folder that are read: those of the format, by their names; all where none is given.

    Raises
    ------
    InputError
        If their names tell of several formats and none is given, or none of them of the one that is given.
    """
    by_format: dict[str, list[str]] = {}
    for url in urls:
        by_format.setdefault(format_of(url, tables=tables), []).append(url)
    if format is not None:
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
            "Give format, of which files are read then; or a pattern, such as "
            f"{name.rstrip('/')}/**/*{os.path.splitext(first)[1]}.",
        )
    return [url for found in by_format.values() for url in found]


def _inner_suffix(url: str) -> str:
    """Return how a name ends, below its compression."""
    root, suffix = os.path.splitext(url.lower())
    return os.path.splitext(root)[1] if suffix in _COMPRESSIONS else suffix
