"""From what the user names to files, and from files to blocks: what one task reads."""

import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

from daskw2v.corpus.inputs import Inputs, names_of
from daskw2v.corpus.names import FORMATS, check_readable, compression_of, format_of, of_one_format
from daskw2v.corpus.search import find_files
from daskw2v.errors import InputError, MissingExtraError, ParameterError, StoreError
from daskw2v.locations import filesystem
from daskw2v.steady import PATIENCE, SteadyFile, steadily

try:
    import zstandard
except ImportError:
    zstandard = None  # type: ignore[assignment]
try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    pa = pq = None

# What filesystems call a content's identity; where they have none, its last change.
_VERSIONS = (
    "ETag", "etag", "md5Hash", "content_md5", "checksum", "version_id",
    "mtime", "LastModified", "last_modified", "updated", "modified", "created",
)  # fmt: skip
_BUFFER = 1 << 20  # bytes asked for at once
_THREADS = 16  # of footers read at once


@dataclass(frozen=True)
class Source:
    """One file.

    Parameters
    ----------
    url
        Full fsspec URL, or absolute local path; holds no secrets.
    size
        Bytes, as stored.
    version
        Tells one content from another (etag, checksum, time of change); "" where the filesystem
        tells nothing.
    format
        "text", "jsonl" or "parquet".
    compression
        None, "gzip", "bz2", "xz" or "zstd".
    """

    url: str
    size: int
    version: str
    format: str
    compression: str | None


@dataclass(frozen=True)
class Block:
    """What one task reads.

    Parameters
    ----------
    source
        The file.
    start, stop
        First, and past the last, byte (plain text, JSONL) or row group (Parquet); of a compressed file all
        its bytes.
    """

    source: Source
    start: int
    stop: int

    @property
    def key(self) -> str:
        """20 hexadecimal digits that are the same exactly where the same content is read."""
        s = self.source
        identity = (s.url, s.size, s.version, s.format, self.start, self.stop)
        return hashlib.blake2b(repr(identity).encode(), digest_size=10).hexdigest()


def find_sources(
    inputs: Inputs,
    format: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    patience: float = PATIENCE,
    *,
    tables: bool = False,
    folders: bool = True,
    work: str | None = None,
) -> list[Source]:
    """Find the files that are named.

    Parameters
    ----------
    inputs
        fsspec URL, local path or glob pattern, or a list of these. A folder stands for all files below it, sorted, but
        for those whose names, or whose folders' names, begin with `.` or `_`; a pattern for the files that it matches,
        sorted, and those of the folders that it matches.
    format
        "text", "jsonl" or "parquet"; by each file's name when not given: `.jsonl`, `.ndjson` and `.json` are
        JSONL, `.parquet` and `.pq` Parquet, all others text. Compression always goes by the name. Of a folder the files
        are read that are of this format by their names; when not given, all of them must be of one.
    storage_options
        Options for fsspec.
    patience
        Seconds to wait for each answer of where they lie.
    tables
        Take files that end in .csv and .tsv, as text, for who reads their columns.
    folders
        Take folders; else one that is named is refused, and one that a pattern matches passed over.
    work
        URL of the work directory, which is passed over where a folder holds it.

    Returns
    -------
    list of Source
        In the order given. A file named twice is there twice.

    Raises
    ------
    InputError
        If nothing is found, a pipe is named, a folder holds files of several formats, a URL holds a secret, a file is
        packed in a way that cannot be read or is no text by its name, or the filesystem does not answer.
    MissingExtraError
        If reading needs a package that is not installed.
    ParameterError
        If `format` is unknown, or an input is no URL or path.
    """
    if format is not None and format not in FORMATS:
        raise ParameterError(f"format={format!r} is unknown.", f"Give one of {', '.join(FORMATS)}, or none.")
    found: list[Source] = []
    for name in names_of(inputs):
        files, in_folders = find_files(name, storage_options or {}, patience, folders=folders, work=work)
        if in_folders:
            read = set(of_one_format(name, [url for url, _ in files], format, tables=tables))
            files = [(url, info) for url, info in files if url in read]
        found += [_source(url, info, format, tables=tables) for url, info in files]
    return found


def _source(url: str, info: Mapping[str, Any], format: str | None, *, tables: bool = False) -> Source:
    format, compression = format or format_of(url, tables=tables), compression_of(url)
    check_readable(url, format)
    if compression == "zstd" and zstandard is None:
        raise MissingExtraError(f"Reading {url} needs zstandard.", "Run: pip install 'daskw2v[zstd]'.")
    if format == "parquet" and pa is None:
        raise MissingExtraError(f"Reading {url} needs pyarrow.", "Run: pip install 'daskw2v[arrow]'.")
    return Source(url, _size(url, info), _version(info), format, compression)


def _size(url: str, info: Mapping[str, Any]) -> int:
    if info.get("size") is None:
        raise InputError(f"{url} has no known size, so it cannot be read in blocks.", "Copy it to a file first.")
    return int(info["size"])


def _version(info: Mapping[str, Any]) -> str:
    return next((str(info[name]) for name in _VERSIONS if info.get(name)), "")


@contextmanager
def open_source(source: Source, storage_options: Mapping[str, Any], patience: float = PATIENCE) -> Iterator[IO[bytes]]:
    """Open a file as it is stored, making sure that it is the one that was found, and still is when it was read.

    Raises
    ------
    InputError
        If it is gone or changed, or may not be read.
    StoreError
        If where it lies fails, time and again, or does not answer within `patience` seconds.
    """
    fs, path = filesystem(source.url, storage_options)
    ask = partial(steadily, place=source.url, patience=patience)
    try:
        _check_unchanged(ask(fs.info, path), source)
        with io.BufferedReader(SteadyFile(ask(fs.open, path, "rb"), source.url, patience), _BUFFER) as file:
            yield file
        _check_unchanged(ask(fs.info, path), source)  # what grew or shrank meanwhile was read to another end
    except FileNotFoundError as error:
        raise InputError(f"{source.url} is gone.", "Workers must see the same files as the client.") from error
    except StoreError as error:
        if not isinstance(error.__cause__, PermissionError):
            raise
        raise InputError(
            f"{source.url} may not be read ({error.__cause__}).", "Give the rights to whom the workers run as."
        ) from error


def _check_unchanged(info: Mapping[str, Any], source: Source) -> None:
    if (info.get("size"), _version(info)) != (source.size, source.version):
        raise InputError(f"{source.url} changed since it was found.", "Run again once it is complete.")


def plan_blocks(
    sources: Sequence[Source],
    block_bytes: int,
    storage_options: Mapping[str, Any] | None = None,
    patience: float = PATIENCE,
) -> list[Block]:
    """Divide files into blocks; of Parquet files the metadata are read, of others nothing.

    Parameters
    ----------
    sources
        From `find_sources`. An empty file of text has no block, a compressed one a single block.
    block_bytes
        Size of a block, in bytes; of Parquet, the least uncompressed size of its row groups, with all their columns:
        where the metadata of a single one are damaged, Arrow ends the process when asked for them.
    storage_options
        Options for fsspec.
    patience
        Seconds to wait for each answer of where they lie.

    Raises
    ------
    InputError
        If a Parquet file cannot be read, or one that is Parquet or compressed is empty, which none is.
    StoreError
        If where it lies fails, time and again, or does not answer.
    """
    blocks_of = partial(_blocks, block_bytes=block_bytes, storage_options=storage_options or {}, patience=patience)
    with ThreadPoolExecutor(_THREADS) as pool:
        return [block for blocks in pool.map(blocks_of, sources) for block in blocks]


def _blocks(source: Source, *, block_bytes: int, storage_options: Mapping[str, Any], patience: float) -> list[Block]:
    size = source.size
    if not size:
        if kind := source.compression or (source.format == "parquet" and "Parquet"):
            raise InputError(
                f"{source.url} is cut short: it is empty, which no {kind} file is.",
                "Write the file again, or leave it out.",
            )
        return []
    if source.compression:
        return [Block(source, 0, size)]
    if source.format != "parquet":
        return [Block(source, at, min(at + block_bytes, size)) for at in range(0, size, block_bytes)]
    blocks, start, held = [], 0, 0
    sizes = _row_groups(source, storage_options, patience)
    for stop, group_bytes in enumerate(sizes, 1):
        held += group_bytes
        if held >= block_bytes or stop == len(sizes):
            blocks.append(Block(source, start, stop))
            start, held = stop, 0
    return blocks


def _row_groups(source: Source, storage_options: Mapping[str, Any], patience: float) -> list[int]:
    with open_source(source, storage_options, patience) as file, reading_parquet(source.url):
        metadata = pq.ParquetFile(file).metadata
        return [metadata.row_group(g).total_byte_size for g in range(metadata.num_row_groups)]


@contextmanager
def reading_parquet(url: str) -> Iterator[None]:
    """Turn what Arrow says of damaged files into an InputError: names that are no UTF-8 too."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{url} cannot be read as Parquet ({error}).", "Write the file again, or leave it out."
        ) from error
