"""From what the user names to files, and from files to blocks: what one task reads."""

import hashlib
import io
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

import fsspec

from daskw2v.credentials import refuse_secret
from daskw2v.errors import Daskw2vError, InputError, MissingExtraError, ParameterError, StoreError
from daskw2v.locations import Location, as_url, filesystem
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

_FORMATS = ("text", "jsonl", "parquet")
COMPRESSIONS = {
    ".gz": "gzip", ".gzip": "gzip", ".bz2": "bz2", ".xz": "xz", ".zst": "zstd", ".zstd": "zstd",
}  # fmt: skip
_PACKED = (".zip", ".tar", ".tgz", ".7z", ".rar", ".lz4", ".lzma", ".lzo", ".br", ".snappy", ".sz", ".z")
_SUFFIXES = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".parquet": "parquet", ".pq": "parquet",
}  # fmt: skip
# What filesystems call a content's identity; where they have none, its last change.
_VERSIONS = (
    "ETag", "etag", "md5Hash", "content_md5", "checksum", "version_id",
    "mtime", "LastModified", "last_modified", "updated", "modified", "created",
)  # fmt: skip
_BUFFER = 1 << 20  # bytes asked for at once
_THREADS = 16  # of metadata requests at once


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


Inputs = Location | Sequence[Location]


def find_sources(
    inputs: Inputs,
    format: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    patience: float = PATIENCE,
) -> list[Source]:
    """Find the files that are named.

    Parameters
    ----------
    inputs
        fsspec URL, local path or glob pattern, or several. A pattern stands for the files it matches, sorted;
        directories that it matches are passed over.
    format
        "text", "jsonl" or "parquet"; by each file's name when not given: `.jsonl`, `.ndjson` and `.json` are
        JSONL, `.parquet` and `.pq` Parquet, all others text. Compression always goes by the name.
    storage_options
        Options for fsspec.
    patience
        Seconds to wait for each answer of where they lie.

    Returns
    -------
    list of Source
        In the order given. A file named twice is there twice.

    Raises
    ------
    InputError
        If nothing is found, a directory or a pipe is named, a URL holds a secret, a file is packed in a way that
        cannot be read, or the filesystem does not answer.
    MissingExtraError
        If reading needs a package that is not installed.
    ParameterError
        If `format` is unknown, or an input is no URL or path.
    """
    if format is not None and format not in _FORMATS:
        raise ParameterError(f"format={format!r} is unknown.", f"Give one of {', '.join(_FORMATS)}, or none.")
    names = list(inputs) if isinstance(inputs, Iterable) and not isinstance(inputs, str | bytes) else [inputs]
    if not names:
        raise InputError("No input is named.", "Give at least one file, URL or pattern.")
    urls = [as_url(name, "input") for name in names]
    found = (found for name in urls for found in _matches(name, storage_options or {}, patience))
    return [_source(url, info, format) for url, info in found]


def _matches(name: str, storage_options: Mapping[str, Any], patience: float) -> list[tuple[str, dict[str, Any]]]:
    """Return URL and fsspec's info of each file that a name stands for."""
    refuse_secret(name)
    if "::" in name:
        raise InputError(
            f"{name} is a chain of filesystems, which cannot be read in blocks.", "Name the files themselves."
        )
    fs, path = filesystem(name, storage_options)
    prefix = _prefix(name, fs, path)
    ask = partial(steadily, place=name, patience=patience)
    with _explained(name):
        fs.invalidate_cache()
        if ask(fs.isfile, path):  # first: a file's name may look like a pattern
            return [(prefix + path, ask(fs.info, path))]
        if ask(fs.isdir, path):
            raise InputError(f"{name} is a directory.", f"Give {name.rstrip('/')}/* for all files in it.")
        if ask(fs.exists, path):
            raise InputError(
                f"{name} is a pipe, a socket or a device, which cannot be read in blocks.", "Copy it to a file first."
            )
        paths = sorted(ask(fs.glob, path)) if fsspec.core.has_magic(path) else []
        with ThreadPoolExecutor(_THREADS) as pool:
            # info, not the listing: open_source compares with it, and some filesystems tell the two differently
            found = list(zip(paths, pool.map(partial(ask, fs.info), paths), strict=True))
    files = [(prefix + p, info) for p, info in found if info["type"] == "file"]
    if not files:
        raise InputError(
            f"{name} matches no file.",
            "Check the path, broken links, and the rights to its folders; workers must see the same files.",
        )
    return files


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn what a filesystem raises into our error."""
    try:
        yield
    except Exception as error:  # each protocol's package has errors of its own
        said = error.__cause__ if isinstance(error, StoreError) else error
        if isinstance(said, Daskw2vError):
            raise
        raise InputError(
            f"{name} cannot be looked for ({type(said).__name__}: {said}).",
            "Check the path, broken links, the rights and the network.",
        ) from error


def _prefix(name: str, fs: Any, path: str) -> str:
    """Return what makes a URL of a path: protocol, and for some filesystems the host; "" for local files."""
    if "file" in fs.protocol:
        return ""
    return name[: -len(path)] if name.endswith(path) else fs.unstrip_protocol(path)[: -len(path)]


def _source(url: str, info: Mapping[str, Any], format: str | None) -> Source:
    root, suffix = os.path.splitext(url.lower())
    compression = COMPRESSIONS.get(suffix)
    inner = os.path.splitext(root)[1] if compression else suffix
    if inner in _PACKED:
        raise InputError(f"{url} is packed as {inner}, which cannot be read.", "Unpack it, or use gz, bz2, xz or zst.")
    format = format or _SUFFIXES.get(inner, "text")
    if format == "parquet" and compression:
        raise InputError(f"{url} is Parquet inside {compression}.", "Unpack it: Parquet compresses by itself.")
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
