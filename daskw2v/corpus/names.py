"""Format and compression of a file by its name; refusal of names that are not text."""

import os
from collections.abc import Iterable

from daskw2v.corpus.formats import FORMATS, TEXT, Format, find_format
from daskw2v.errors import InputError

_COMPRESSIONS = {
    ".gz": "gzip", ".gzip": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd", ".zstd": "zstd",
}  # fmt: skip
_PACKED = (".zip", ".tar", ".tgz", ".7z", ".rar", ".lz4", ".lzma", ".lzo", ".br", ".snappy", ".sz", ".z")
# Files that are not text but could be read as such: what would become words, the remedy, and suffixes.
_NO_TEXT = (
    ("bytes of a table", "Make Parquet of it, and give column",
     (".xls", ".xlsx", ".avro", ".sqlite", ".db")),
    ("tags", "Write its text to a file first", (".html", ".htm", ".xml")),
    ("bytes of a document", "Write its text to a file first", (".pdf", ".docx", ".odt", ".epub")),
    ("bytes of a picture", "Leave it out", (".jpg", ".jpeg", ".png", ".gif")),
    ("bytes of arrays or objects", "Write their text to a file first",
     (".npy", ".npz", ".pkl", ".pickle", ".h5", ".hdf5", ".pt", ".safetensors", ".faiss")),
)  # fmt: skip


def compression_of(url: str) -> str | None:
    """Return "gzip", "bz2", "xz" or "zstd"; None for a file that is not compressed."""
    return _COMPRESSIONS.get(os.path.splitext(url.lower())[1])


def format_of(url: str, given: Format | None = None) -> str:
    """Return the name of a file's format, or its suffix if that is not of text, such as ".csv".

    Parameters
    ----------
    url
        The file's name.
    given
        The format in Params. Its suffixes take precedence. Suffixes of other plug-ins are not used.
    """
    suffix = _inner_suffix(url)
    if given is not None and suffix in given.suffixes:
        return given.name
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


def of_one_format(name: str, urls: Iterable[str], given: Format | None) -> list[str]:
    """Return the files of a folder to read: those of the given format, by name, or all if none is given.

    Raises
    ------
    InputError
        If no format is given and the names have several, or no name has the given format.
    """
    by_format: dict[str, list[str]] = {}
    for url in urls:
        by_format.setdefault(format_of(url, given), []).append(url)
    if given is not None:
        format = given.name
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


def _inner_suffix(url: str) -> str:
    """Return the suffix of a name without that of its compression."""
    root, suffix = os.path.splitext(url.lower())
    return os.path.splitext(root)[1] if suffix in _COMPRESSIONS else suffix
