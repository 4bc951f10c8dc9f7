"""Conversion of published files to the layouts that this package reads."""

import ast
import csv
import io
import zipfile
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

FileLayout = Literal["ready", "word classes", "analogy table", "labels", "labels cp1252", "topics", "zip"]

_UNPACKED = 1 << 28  # most bytes to unpack from an archive
Files = dict[str, bytes]  # content by name below the set's folder; "" for a set that is a single file


def unpack(layout: FileLayout, content: bytes) -> Files:
    """Convert a published file.

    Parameters
    ----------
    layout
        Layout of the published file:

        - `ready`: needs no conversion;
        - `word classes`: CSV with the columns category and word;
        - `analogy table`: CSV with the columns type, word1, word2, word3 and target;
        - `labels`, `labels cp1252`: lines of a label, a space and a text, in UTF-8 or in cp1252;
        - `topics`: CSV with the columns category, words and outliers, the last two written as Python lists;
        - `zip`: archive of text files.
    content
        Bytes of the file.

    Returns
    -------
    files
        Content of the converted files by name below the set's folder, or by "" if the set is a single file.

    Raises
    ------
    ValueError, LookupError, SyntaxError, zipfile.BadZipFile
        If the content is not in the layout.
    """
    return _UNPACKERS[layout](content)


def _word_classes(content: bytes) -> Files:
    return _lines(f"{row['word']}\t{row['category']}" for row in _table(content) if row["word"].strip())


def _analogy_table(content: bytes) -> Files:
    categories: dict[str, list[str]] = {}
    for row in _table(content):
        question = " ".join(row[column] for column in ("word1", "word2", "word3", "target"))
        categories.setdefault(row["type"], []).append(question)
    return _lines(line for name, questions in categories.items() for line in (f": {name}", *questions))


def _labels(content: bytes, encoding: str = "utf-8") -> Files:
    parted = (line.split(maxsplit=1) for line in content.decode(encoding).split("\n"))
    return _lines("\t".join(parts).rstrip() for parts in parted if len(parts) == 2)  # some texts are empty


def _topics(content: bytes) -> Files:
    files = {}
    for row in _table(content):
        groups = [[word for word in ast.literal_eval(row[column]) if word] for column in ("words", "outliers")]
        files[f"{row['category']}.txt"] = "\n\n".join("\n".join(group) for group in groups).encode() + b"\n"
    return files


def _zip(content: bytes) -> Files:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        names = [name for name in archive.namelist() if name.endswith(".txt") and not name.startswith("__MACOSX/")]
        if any(".." in name.split("/") for name in names):
            raise ValueError("a name contains '..'")
        if sum(archive.getinfo(name).file_size for name in names) > _UNPACKED:  # zipfile unpacks no more than this
            raise ValueError(f"its files have more than {_UNPACKED:,} bytes")
        return {name.partition("/")[2] or name: archive.read(name) for name in names}  # without the outer folder


def _table(content: bytes) -> Iterator[dict[str, str]]:
    return csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""))


def _lines(lines: Iterable[str]) -> Files:
    return {"": "".join(f"{line}\n" for line in lines).encode()}


_UNPACKERS: dict[str, Callable[[bytes], Files]] = {
    "ready": lambda content: {"": content},
    "word classes": _word_classes,
    "analogy table": _analogy_table,
    "labels": _labels,
    "labels cp1252": lambda content: _labels(content, "cp1252"),
    "topics": _topics,
    "zip": _zip,
}
