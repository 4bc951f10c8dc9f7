"""Files of the corpus, their blocks, and batches of blocks: what one task reads. A file is opened only if unchanged."""

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

# Names by which filesystems give the identity of a content, or else its last modification.
_IDENTITIES = "ETag", "etag", "md5Hash", "content_md5", "checksum", "version_id"
_VERSIONS = *_IDENTITIES, "mtime", "LastModified", "last_modified", "updated", "modified", "created"
_BUFFER = 1 << 20  # bytes asked for at once
_SMALL = 64  # a file is small if so many of its size are at most a block
_FILES = 512  # small files in a batch, on average
_PARTS = 8  # number of batches that a batch is split into


@dataclass(frozen=True)
class Source:
    """One file of the corpus.

    Parameters
    ----------
    url
        Full fsspec URL or absolute local path, without secrets.
    size
        Bytes, as stored.
    version
        Identity of the content: ETag, checksum or modification time; "" if the filesystem has none, or the file has
        a `name`.
    format
        Name of the `Format`.
    compression
        None, "gzip", "bz2", "xz" or "zstd".
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
    def place(self) -> str:
        """The name of the file in identities: `name`, or else its URL."""
        return self.name or self.url

    @property
    def content(self) -> tuple[int, str]:
        """Size and version, which distinguish the content from an earlier one of the same name, for identities."""
        return (0, "") if self.name else (self.size, self.version)


@dataclass(frozen=True)
class TextBlock:
    """The part of a file that one task reads.

    Parameters
    ----------
    source
        The file.
    start, stop
        Range of bytes (plain text, JSONL), or of row groups, record batches or stripes (tables). A compressed file is
        one block of all its bytes.
    """

    source: Source
    start: int
    stop: int

    @property
    def key(self) -> str:
        """Digest of 20 hexadecimal digits, equal for blocks that read the same content."""
        s = self.source
        identity = (s.place, *s.content, s.format, self.start, self.stop)
        return hashlib.blake2b(repr(identity).encode(), digest_size=10).hexdigest()


def version_of(info: Mapping[str, Any]) -> str:
    """Return the ETag, checksum or time of the last change of a file, from fsspec's info; "" if there is none."""
    return next((str(info[name]) for name in _VERSIONS if info.get(name)), "")


@contextmanager
def open_source(source: Source, storage_options: Mapping[str, Any], timeout: float = TIMEOUT) -> Iterator[IO[bytes]]:
    """Open a file as stored, and check that it has not changed since it was found, before and after reading.

    Raises
    ------
    InputError
        If the file is gone, has changed, or may not be read.
    StoreError
        If the store fails repeatedly, or does not answer within `timeout` seconds.
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
        raise InputError(
            f"{source.url} may not be read ({error.__cause__}).", "Give read permission to the user of the workers."
        ) from error


def _check_unchanged(info: Mapping[str, Any], source: Source) -> None:
    if info.get("size") != source.size or source.version not in ("", version_of(info)):
        raise InputError(f"{source.url} changed since it was found.", "Run again once the file is complete.")


@dataclass(frozen=True)
class Batch:
    """A block, or several small files that follow each other in the text.

    Parameters
    ----------
    blocks
        The blocks, in the order of the text.
    """

    blocks: tuple[TextBlock, ...]

    @cached_property
    def key(self) -> str:
        """Digest of 20 hexadecimal digits: the key of a single block, or the digest of all keys."""
        keys = [block.key for block in self.blocks]
        return keys[0] if len(keys) == 1 else hashlib.blake2b("".join(keys).encode(), digest_size=10).hexdigest()

    def split(self) -> list["Batch"]:
        """Return smaller batches of the same blocks, to find out which of them is bad."""
        step = -(-len(self.blocks) // _PARTS)
        return [Batch(self.blocks[start : start + step]) for start in range(0, len(self.blocks), step)]


def batch_blocks(blocks: Sequence[TextBlock], block_bytes: int) -> list[Batch]:
    """Put blocks of small files that follow each other into batches; each other block is a batch of its own.

    A batch ends when it has `block_bytes`, and after files whose names have a certain digest, one in 512. So a file
    that is added or removed changes the batch around it, not all that follow.

    Parameters
    ----------
    blocks
        Result of `plan_blocks`.
    block_bytes
        Size of a block in bytes. A file is small if it has at most a 64th of that, as stored.
    """
    return [Batch(tuple(run)) for run in _runs(blocks, block_bytes)]


def _runs(blocks: Sequence[TextBlock], block_bytes: int) -> Iterator[list[TextBlock]]:
    run, held = list[TextBlock](), 0
    for block in blocks:
        is_small = block.source.size * _SMALL <= block_bytes
        if run and not is_small:
            yield run
            run, held = [], 0
        run.append(block)
        held += block.source.size
        if not is_small or held >= block_bytes or _ends_batch(block.source.url):
            yield run
            run, held = [], 0
    if run:
        yield run


def _ends_batch(url: str) -> bool:
    return int.from_bytes(hashlib.blake2b(url.encode("utf-8", "surrogateescape"), digest_size=4).digest()) % _FILES == 0
