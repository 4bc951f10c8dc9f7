"""Finds input files by name, and divides them into blocks, each of which one task reads."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

from daskw2v.config.filters import Filters
from daskw2v.corpus.files import Source, TextBlock, open_source, version_of
from daskw2v.corpus.formats import TEXT, Format, find_format
from daskw2v.corpus.formats.base import cut_short
from daskw2v.corpus.hive import filtered
from daskw2v.corpus.inputs import Inputs, names_of
from daskw2v.corpus.names import check_readable, compression_of, format_of, of_one_format
from daskw2v.corpus.search import find_files, leads_nowhere
from daskw2v.corpus.streams import CHUNK, decompressed
from daskw2v.errors import InputError, counted
from daskw2v.extras import needed
from daskw2v.progress import Listener, saying, silent
from daskw2v.store.retries import TIMEOUT
from daskw2v.store.threads import in_threads
from daskw2v.store.urls import Location


def find_sources(
    inputs: Inputs,
    format: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float = TIMEOUT,
    *,
    folders: bool = True,
    work: str | None = None,
    filters: Filters = (),
    errors: str = "strict",
    listener: Listener = silent,
) -> list[Source]:
    """Find the input files.

    Parameters
    ----------
    inputs
        fsspec URL, local path or glob pattern, or a list of these. A folder means all files below it, sorted, except
        those whose names, or whose folders' names, begin with `.` or `_`. A pattern means the files that it matches,
        sorted, and those in folders that it matches.
    format
        Name of a `Format`, such as "text", "jsonl" or "parquet". If None, each file's name decides: `.jsonl`,
        `.ndjson` and `.json` are JSONL, `.parquet` and `.pq` are Parquet, and so on; all others are text. In folders,
        only files whose names have this format are read; if None, all files of a folder must have one format.
        Compression is always decided by the name.
    storage_options
        Options for fsspec.
    timeout
        Seconds to wait for each answer of the store.
    folders
        Whether to search folders. If not, a named folder is refused and a matched one is skipped.
    work
        URL of the work directory, which is skipped.
    filters
        Which files are read, by columns that their folders name.
    errors
        "strict" refuses links in folders that lead nowhere; "replace" and "skip" pass over them.
    listener
        Is told of files that are named more than once, and of links that are passed over.

    Returns
    -------
    list of Source
        Files in the given order, each once: a file that is named again, also by another path or a link, is left out.

    Raises
    ------
    InputError
        If nothing is found or passes the filters, a pipe is named, a folder has files of several formats or a broken
        link, a file has an unknown compression or is not text by its name, or the filesystem does not answer.
    MissingExtraError
        If reading needs a package that is not installed.
    ParameterError
        If `format` is unknown, or an input is not a URL or path, or holds a secret.
    """
    given = None if format is None else find_format(format)
    found: list[Source] = []
    say = saying(listener, "find", "files")
    for name in names_of(inputs):
        files, in_folders, broken = find_files(name, storage_options or {}, timeout, folders=folders, work=work)
        if broken:
            _pass_over(broken, errors, say)
        if in_folders:
            read = set(of_one_format(name, [url for url, _ in files], given))
            files = [(url, info) for url, info in files if url in read]
        found += [_source(url, info, given) for url, info in files]
    return filtered(_each_once(found, say), filters)


def _pass_over(broken: Sequence[str], errors: str, say: Callable[[str], None]) -> None:
    """Refuse links that lead nowhere, or say that they are passed over."""
    error = leads_nowhere(broken[0], "Remove the link, or give errors='replace' or 'skip' to pass over such links.")
    if errors == "strict":
        raise error
    others = f", with {counted(len(broken) - 1, 'other link')}" if len(broken) > 1 else ""
    say(f"{error.problem} It is passed over{others}.")


def _each_once(sources: Sequence[Source], say: Callable[[str], None]) -> list[Source]:
    """Return the files without those that are there already, by another name or the same, and say so."""
    kept, again = dict[str, Source](), list[Source]()
    real = cache(os.path.realpath)
    for source in sources:
        place = source.url
        if os.path.isabs(place):  # of a local file; its name is looked at in its folder, which many share
            folder, name = os.path.split(place)
            place = os.path.join(real(folder), name)
            place = real(place) if os.path.islink(place) else place
        if kept.setdefault(place, source) is not source:
            again.append(source)
    if again:
        more = f", and {counted(len(again) - 1, 'other file')}" if len(again) > 1 else ""
        say(f"{again[0].url}{more}: named more than once, and read once.")
    return list(kept.values())


def _source(url: str, info: Mapping[str, Any], given: Format | None) -> Source:
    compression = compression_of(url)
    format = check_readable(url, given.name if given is not None else format_of(url))
    if compression == "zstd":
        needed("zstandard", "zstd", f"{url} cannot be read without it.")
    if format.requires is not None:
        needed(*format.requires, f"{url} cannot be read without it.")
    return Source(url, _size(url, info), version_of(info), format.name, compression)


def _size(url: str, info: Mapping[str, Any]) -> int:
    if info.get("size") is None:
        raise InputError(f"{url} has no known size, so it cannot be read in blocks.", "Copy it to a file first.")
    return int(info["size"])


def plan_blocks(
    sources: Sequence[Source],
    block_bytes: int,
    storage_options: Mapping[str, Any] | None = None,
    timeout: float = TIMEOUT,
) -> list[TextBlock]:
    """Divide files into blocks. Only the metadata of tables is read.

    Parameters
    ----------
    sources
        Files from `find_sources`. An empty text file has no block; a compressed file is a single block.
    block_bytes
        Size of a block in bytes; for Parquet, the minimum uncompressed size of its row groups together;
        for Arrow IPC and ORC, the size as stored.
    storage_options
        Options for fsspec.
    timeout
        Seconds to wait for each answer of the store.

    Raises
    ------
    InputError
        If a table cannot be read, or a table or compressed file is empty.
    StoreError
        If the store fails repeatedly, or does not answer.
    """
    blocks_of = partial(_blocks, block_bytes=block_bytes, storage_options=storage_options or {}, timeout=timeout)
    return [block for blocks in in_threads(blocks_of, sources) for block in blocks]


def _blocks(source: Source, *, block_bytes: int, storage_options: Mapping[str, Any], timeout: float) -> list[TextBlock]:
    if not source.compression:
        return find_format(source.format).cut(source, block_bytes, storage_options, timeout)
    if not source.size:
        raise cut_short(source, source.compression)
    return [TextBlock(source, 0, source.size)]


def read_chunks(
    url: Location, storage_options: Mapping[str, Any], most: int, timeout: float = TIMEOUT
) -> Iterator[bytes]:
    """Yield the decompressed content of a file, or of all files that a pattern matches, in chunks of bounded size.

    Raises
    ------
    InputError
        If a file cannot be found or read, or the content has more than `most` bytes.
    """
    read = 0
    for source in find_sources(url, TEXT.name, storage_options, timeout, folders=False):
        with open_source(source, storage_options, timeout) as file:
            parts = iter(partial(file.read, CHUNK), b"")
            for chunk in decompressed(file, source.compression, source.url) if source.compression else parts:
                read += len(chunk)
                if read > most:
                    raise InputError(f"{url} is longer than {most:,} bytes.", "Give a shorter one.")
                yield chunk
