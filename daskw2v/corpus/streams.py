"""Streams of bytes: decompression, the lines of a block, and pieces of bounded size."""

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import IO, Any, TypeVar

import numpy as np

from daskw2v.errors import InputError

try:
    import zstandard
except ImportError:
    zstandard = None  # type: ignore[assignment]

T = TypeVar("T")

CHUNK = 1 << 17  # bytes read at once; larger chunks exceed the cache and halve the speed
LONGEST = 1 << 22  # bytes of the longest line that is never cut
PROBE = 1 << 16  # bytes read at once to find the end of a line, and of compressed data
NO_SEPARATORS = bytes(range(0x21, 0x100))

_ZSTD_STEP = 256  # compressed bytes, of at most 8 MiB of text: a zstd block of 4 bytes can hold 128 KiB


class _Zstd:
    """zstandard's decompressor with a limit on its output, as zlib's has: it gets its input in small steps."""

    def __init__(self) -> None:
        self._inner = zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
        self._text = memoryview(b"")
        self.unconsumed_tail = b""

    @property
    def eof(self) -> bool:
        """Whether the end of the compressed data is reached, and all text is returned."""
        return self._inner.eof and not self._text

    @property
    def unused_data(self) -> bytes:
        """Bytes of input behind the end of the compressed data."""
        return bytes(self._inner.unused_data) + self.unconsumed_tail

    def decompress(self, data: bytes, limit: int) -> bytes:
        """Return the next bytes of text, at most `limit`; input that is not read is left in `unconsumed_tail`."""
        parts: list[bytes | memoryview] = [self._text] if self._text else []  # joining a single part copies nothing
        size, consumed = len(self._text), 0
        while size < limit and consumed < len(data) and not self._inner.eof:
            parts.append(self._inner.decompress(data[consumed : consumed + _ZSTD_STEP]))
            size += len(parts[-1])
            consumed += _ZSTD_STEP
        self.unconsumed_tail = data[consumed:]
        text = memoryview(b"".join(parts)) if consumed else self._text
        self._text = text[limit:]
        return bytes(text[:limit])


# All have decompress(data, limit), eof and unused_data.
_DECOMPRESSORS: dict[str, Callable[[], Any]] = {
    "gzip": lambda: zlib.decompressobj(wbits=31),
    "bz2": bz2.BZ2Decompressor,
    "xz": lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ),  # FORMAT_AUTO would accept zeros as an empty file
    "zstd": _Zstd,
}
_CORRUPT = (OSError, zlib.error, lzma.LZMAError, *((zstandard.ZstdError,) if zstandard else ()))


def read_file_chunks(file: IO[bytes], compression: str | None, url: str) -> Iterator[bytes]:
    """Return the content of an open file in chunks of at most `CHUNK` bytes, decompressed unless `compression` is None.

    `url` names the file in errors, which are those of `decompressed`.
    """
    return decompressed(file, compression, url) if compression else iter(partial(file.read, CHUNK), b"")


def decompressed(file: IO[bytes], compression: str, url: str) -> Iterator[bytes]:
    """Yield the decompressed content of an open file, member by member, in chunks of at most `CHUNK` bytes.

    Parameters
    ----------
    file, compression
        The file, and "gzip", "bz2", "xz" or "zstd".
    url
        URL of the file, for messages.

    Raises
    ------
    InputError
        If the data is truncated or damaged. The message says how many bytes of text were read.
    """
    decompressor, has_begun, n_bytes = None, False, 0
    while data := file.read(PROBE):
        has_more = False  # whether the decompressor holds text that it has not returned
        while data or has_more:
            if decompressor is None:
                data = data.lstrip(b"\0") if has_begun else data  # padding between members
                if not data:
                    break
                decompressor, has_begun = _DECOMPRESSORS[compression](), True
            try:
                chunk = decompressor.decompress(data, CHUNK)
            except _CORRUPT as error:
                hint = "" if n_bytes else f" If it is not compressed, give it a name without that of {compression}."
                problem = f"{url} has no valid {compression} data after {n_bytes} bytes of text ({error})."
                raise InputError(problem, f"Write the file again, or leave it out.{hint}") from error
            n_bytes += len(chunk)
            yield chunk
            if decompressor.eof:
                data, decompressor, has_more = decompressor.unused_data, None, False
            else:  # zlib returns unused input, bz2 and lzma keep it
                data, has_more = getattr(decompressor, "unconsumed_tail", b""), len(chunk) == CHUNK
    if decompressor is not None:
        problem = f"{url} is cut short: its {compression} data stop after {n_bytes} bytes of text."
        raise InputError(problem, "Write the file again, or leave it out.")


def with_newlines(data: bytes) -> bytes:
    """Return text with a newline in place of each carriage return that no newline follows; its length stays."""
    if b"\r" not in data:
        return data
    codes = np.frombuffer(data, np.uint8)
    returns, newlines = codes == ord("\r"), codes == ord("\n")
    if not returns[-1] and not (returns[:-1] & ~newlines[1:]).any():  # split would take several times as long
        return data
    return b"\r\n".join([part.replace(b"\r", b"\n") for part in data.split(b"\r\n")])


def chunks_with_newlines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield consecutive chunks of a text, changed as `with_newlines` changes the text."""
    pending = b""  # ends with a carriage return: the next chunk shows whether a newline follows
    for chunk in chunks:
        if pending and chunk:
            yield pending if chunk.startswith(b"\n") else pending[:-1] + b"\n"
            pending = b""
        if chunk.endswith(b"\r"):
            pending = with_newlines(chunk[:-1]) + b"\r"
        elif chunk:
            yield with_newlines(chunk)
    if pending:
        yield pending[:-1] + b"\n"


def _chunks_from(file: IO[bytes], offset: int, size: int) -> Iterator[bytes]:
    """Return the bytes of a file from an offset on, changed as by `with_newlines`, in chunks of about `size` bytes."""
    file.seek(offset)
    return chunks_with_newlines(iter(partial(file.read, size), b""))


def find_line_start(file: IO[bytes], offset: int, stop: int) -> int:
    """Return the offset of the first line that starts at or after `offset`; `stop` or more if none starts before it."""
    if offset == 0:
        return 0
    offset -= 1  # a line starts at `offset` if a newline is just before it
    for chunk in _chunks_from(file, offset, PROBE):
        length = chunk.find(b"\n") + 1
        if length or offset >= stop:
            return offset + length
        offset += len(chunk)
    return stop


def read_line_chunks(file: IO[bytes], offset: int, stop: int) -> Iterator[bytes]:
    """Yield the lines of a file that start in offset..stop-1, in chunks, changed as by `with_newlines`.

    Parameters
    ----------
    file
        The open file, which is not compressed.
    offset, stop
        Offset of the start of a line, and offset before which the last line starts.
    """
    for chunk in _chunks_from(file, offset, CHUNK):
        end = offset + len(chunk)
        if end >= stop:
            cut = chunk.find(b"\n", max(0, stop - 1 - offset)) + 1
            if cut:
                yield chunk[:cut]
                return
        yield chunk
        offset = end


def batched(items: Iterable[T], size: Callable[[T], int], max_size: int) -> Iterator[list[T]]:
    """Yield lists of consecutive items. A list ends at the item with which its size reaches `max_size`, or at the end.

    `size` returns the size of an item; the size of a list is their sum.
    """
    pending, total = list[T](), 0
    for item in items:
        pending.append(item)
        total += size(item)
        if total >= max_size:
            yield pending
            pending, total = [], 0
    if pending:
        yield pending


def cut_pieces(chunks: Iterable[bytes], offset: int, *, whole_lines: bool) -> Iterator[tuple[int, bytes]]:
    """Cut text into pieces after newlines, or after any separator in lines longer than `LONGEST`.

    Parameters
    ----------
    chunks
        Consecutive bytes of the text.
    offset
        Offset of the text's first byte in its file.
    whole_lines
        Cut after newlines only, however long a line is.

    Yields
    ------
    tuple of int and bytes
        Offset of a piece in the file, and the piece. The last piece ends with a newline, which is added if it is
        missing.
    """
    pending: list[bytes] = []
    n_pending, is_ended = 0, True
    for chunk in chunks:
        cut = chunk.rfind(b"\n") + 1
        ends_line = cut > 0
        if not cut and not whole_lines and n_pending + len(chunk) >= LONGEST:
            cut = len(chunk.rstrip(NO_SEPARATORS))
        if not cut:
            pending.append(chunk)
            n_pending += len(chunk)
            continue
        piece = b"".join((*pending, memoryview(chunk)[:cut]))
        yield offset, piece
        pending = [chunk[cut:]]
        offset, n_pending, is_ended = offset + len(piece), len(pending[0]), ends_line
    last = b"".join(pending)
    if last or not is_ended:
        yield offset, last + b"\n"
