"""Files of the corpus and their blocks; opening a file only if it is unchanged."""

import hashlib
import io
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import IO, Any

from daskw2v.errors import InputError, StoreError
from daskw2v.store.retries import TIMEOUT, RetryingFile, with_retries
from daskw2v.store.urls import filesystem

# Names by which filesystems give the identity of a content, or else its last modification.
_VERSIONS = (
    "ETag", "etag", "md5Hash", "content_md5", "checksum", "version_id",
    "mtime", "LastModified", "last_modified", "updated", "modified", "created",
)  # fmt: skip
_BUFFER = 1 << 20  # bytes asked for at once


@dataclass(frozen=True)
class Source:
    """One file.

    Parameters
    ----------
    url
        Full fsspec URL or absolute local path, without secrets.
    size
        Bytes, as stored.
    version
        Identity of the content: ETag, checksum or modification time; "" if the filesystem has none, or the name tells.
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
        """What names the file in identities: its name, or else its URL."""
        return self.name or self.url

    @property
    def content(self) -> tuple[int, str]:
        """What tells the content from another one at the same place, for identities."""
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
    """Return the identity of a file's content from fsspec's info of it; "" if there is none."""
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
    ask = partial(with_retries, place=source.url, timeout=timeout)
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
