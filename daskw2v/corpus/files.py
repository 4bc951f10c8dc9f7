"""Files of the corpus, their blocks, and the batches of blocks that tasks read. A file is opened only if unchanged."""

import hashlib
import io
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from typing import IO, Any

from daskw2v.errors import InputError, StoreError
from daskw2v.store.retries import TIMEOUT, RetryingFile, with_retries
from daskw2v.store.urls import filesystem

# Keys of fsspec's info under which filesystems have the identity of a content, or else its last modification
_IDENTITIES = "ETag", "etag", "md5Hash", "content_md5", "checksum", "version_id"
_VERSIONS = *_IDENTITIES, "mtime", "LastModified", "last_modified", "updated", "modified", "created"
_BUFFER = 1 << 20  # bytes requested at once
_SMALL = 64  # a file is small if 64 files of its size are at most a block
_BATCH_FILES = 512  # small files in a batch, on average
_PARTS = 8  # number of batches that a batch is split into


@dataclass(frozen=True)
class Source:
    """One file of the corpus.

    Parameters
    ----------
    url
        Full fsspec URL or absolute local path, without secrets.
    size
        Size in bytes, as stored.
    version
        Identity of the content: ETag, checksum or modification time; "" if the filesystem has none of these, or the
        file has a `name`.
    format
        Name of the `Format`.
    compression
        "gzip", "bz2", "xz" or "zstd"; None for a file that is not compressed.
    name
        Path below the work directory of a file that is named by its content; "" for the user's files.
    """

    url: str
    size: int
    version: str
    format: str
    compression: str | None
    name: str = ""

    @property
    def identity_name(self) -> str:
        """Name of the file in identities: `name`, or else the URL."""
        return self.name or self.url

    @property
    def content(self) -> tuple[int, str]:
        """Size and version, which distinguish the file from earlier contents of the same name, for identities."""
        return (0, "") if self.name else (self.size, self.version)


@dataclass(frozen=True)
class TextBlock:
    """The part of a file that one task reads.

    Parameters
    ----------
    source
        The file.
    start, stop
        Half-open range of bytes (plain text, JSONL), or of row groups, record batches or stripes (tables). A compressed
        file, a CSV file or a stream of Arrow is one block of all bytes.
    """

    source: Source
    start: int
    stop: int

    @property
    def key(self) -> str:
        """Digest of 20 hexadecimal digits, equal for blocks that read the same content."""
        s = self.source
        identity = (s.identity_name, *s.content, s.format, self.start, self.stop)
        return hashlib.blake2b(repr(identity).encode(), digest_size=10).hexdigest()


def get_version(info: Mapping[str, Any]) -> str:
    """Return the ETag, checksum or time of the last change in fsspec's info of a file; "" if it has none of these."""
    return next((str(info[name]) for name in _VERSIONS if info.get(name)), "")


@contextmanager
def open_source(source: Source, storage_options: Mapping[str, Any], timeout: float = TIMEOUT) -> Iterator[IO[bytes]]:
    """Open a file for reading its bytes as stored; check before and after the block that the file has not changed.

    Parameters
    ----------
    source, storage_options
        The file as it was listed, and options for fsspec.
    timeout
        Seconds to wait for each answer of the store.

    Raises
    ------
    InputError
        If the file is gone, has changed, or may not be read.
    StoreError
        If the store fails repeatedly, or does not answer in time.
    """
    fs, path = filesystem(source.url, storage_options)
    ask = partial(with_retries, location=source.url, timeout=timeout)
    try:
        _check_unchanged(ask(fs.info, path), source)
        with io.BufferedReader(RetryingFile(ask(fs.open, path, "rb"), source.url, timeout), _BUFFER) as file:
            yield file
        _check_unchanged(ask(fs.info, path), source)  # again: the file may have grown or shrunk meanwhile
    except FileNotFoundError as error:
        raise InputError(f"{source.url} is gone.", "Workers must see the same files as the client.") from error
    except StoreError as error:
        if not isinstance(error.__cause__, PermissionError):
            raise
        problem = f"{source.url} may not be read ({error.__cause__})."
        raise InputError(problem, "Give read permission to the user of the workers.") from error


def _check_unchanged(info: Mapping[str, Any], source: Source) -> None:
    """Raise an InputError if a file has another size or version, by fsspec's info, than when it was listed."""
    if info.get("size") != source.size or source.version not in ("", get_version(info)):
        raise InputError(f"{source.url} changed since it was found.", "Run again once the file is complete.")


@dataclass(frozen=True)
class Batch:
    """The blocks that one task reads: a single block, or blocks of small files that follow each other in the text.

    Parameters
    ----------
    blocks
        The blocks, in the order of the text.
    """

    blocks: tuple[TextBlock, ...]

    @cached_property
    def key(self) -> str:
        """Digest of 20 hexadecimal digits: the key of a single block, or a digest of the keys of all blocks."""
        keys = [block.key for block in self.blocks]
        return keys[0] if len(keys) == 1 else hashlib.blake2b("".join(keys).encode(), digest_size=10).hexdigest()

    def split(self) -> list["Batch"]:
        """Return up to eight smaller batches of the same blocks, to find out which block is bad."""
        step = -(-len(self.blocks) // _PARTS)
        return [Batch(self.blocks[start : start + step]) for start in range(0, len(self.blocks), step)]


def batch_blocks(blocks: Sequence[TextBlock], block_bytes: int) -> list[Batch]:
    """Divide blocks into batches: several blocks of small files in a row, or a single block of a larger file.

    A batch ends when it has `block_bytes`, and after files whose names have a certain digest, one in 512. Hence a file
    that is added or removed changes the batch around it, not all batches that follow.

    Parameters
    ----------
    blocks
        Result of `plan_blocks`.
    block_bytes
        Size of a block in bytes. A file is small if it has at most a 64th of this size, as stored.
    """
    batches, size = list[list[TextBlock]](), block_bytes  # bytes of the last batch; of a complete one, `block_bytes`
    for block in blocks:
        is_small = block.source.size * _SMALL <= block_bytes
        if not is_small or size >= block_bytes:
            batches.append([])
            size = 0
        batches[-1].append(block)
        size = size + block.source.size if is_small and not _ends_batch(block.source.url) else block_bytes
    return [Batch(tuple(batch)) for batch in batches]


def _ends_batch(url: str) -> bool:
    """Return whether a batch ends after the file at a URL: by a digest of the URL, one in 512."""
    digest = hashlib.blake2b(url.encode("utf-8", "surrogateescape"), digest_size=4).digest()
    return int.from_bytes(digest) % _BATCH_FILES == 0
