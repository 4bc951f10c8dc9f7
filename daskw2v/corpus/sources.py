"""Finds input files by name, and divides them into blocks, each of which one task reads."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from daskw2v.config.filters import Filters
from daskw2v.corpus.files import Source, TextBlock, open_source, version_of
from daskw2v.corpus.formats import TEXT, Format, find_format
from daskw2v.corpus.formats.base import cut_short
from daskw2v.corpus.hive import filtered
from daskw2v.corpus.inputs import Inputs, names_of
from daskw2v.corpus.names import check_readable, compression_of, format_of, of_one_format
from daskw2v.corpus.search import find_files
from daskw2v.corpus.streams import CHUNK, decompressed
from daskw2v.errors import InputError
from daskw2v.extras import needed
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

    Returns
    -------
    list of Source
        Files in the given order. A file that is named twice is in the list twice.

    Raises
    ------
    InputError
        If nothing is found or passes the filters, a pipe is named, a folder has files of several formats, a file has an
        unknown compression or is not text by its name, or the filesystem does not answer.
    MissingExtraError
        If reading needs a package that is not installed.
    ParameterError
        If `format` is unknown, or an input is not a URL or path, or holds a secret.
    """
    given = None if format is None else find_format(format)
    found: list[Source] = []
    for name in names_of(inputs):
        files, in_folders = find_files(name, storage_options or {}, timeout, folders=folders, work=work)
        if in_folders:
            read = set(of_one_format(name, [url for url, _ in files], given))
            files = [(url, info) for url, info in files if url in read]
        found += [_source(url, info, given) for url, info in files]
    return filtered(found, filters)


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
