"""Streams: decompression, the lines of a block, and pieces of bounded size."""

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
    """zstandard's decompressor with zlib's limit on output, which it lacks: it is fed in small steps."""

    def __init__(self) -> None:
        self._inner = zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
        self._text = memoryview(b"")
        self.unconsumed_tail = b""

    @property
    def eof(self) -> bool:
        return self._inner.eof and not self._text

    @property
    def unused_data(self) -> bytes:
        return bytes(self._inner.unused_data) + self.unconsumed_tail

    def decompress(self, data: bytes, limit: int) -> bytes:
        parts: list[bytes | memoryview] = [self._text] if self._text else []  # joining a single part copies nothing
        held, fed = len(self._text), 0
        while held < limit and fed < len(data) and not self._inner.eof:
            parts.append(self._inner.decompress(data[fed : fed + _ZSTD_STEP]))
            held += len(parts[-1])
            fed += _ZSTD_STEP
        self.unconsumed_tail = data[fed:]
        text = memoryview(b"".join(parts)) if fed else self._text
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


def chunks_of(file: IO[bytes], compression: str | None, url: str) -> Iterator[bytes]:
    """Return the content of a file, decompressed if it is compressed, in chunks of at most `CHUNK` bytes."""
    return decompressed(file, compression, url) if compression else iter(partial(file.read, CHUNK), b"")


def decompressed(file: IO[bytes], compression: str, url: str) -> Iterator[bytes]:
    """Yield the content of a compressed file, member by member, in chunks of at most `CHUNK` bytes.

    Raises
    ------
    InputError
        If the data is truncated or damaged. The message says how much was read.
    """
    decompressor, begun, done = None, False, 0
    while data := file.read(PROBE):
        more = False  # whether text is left in the decompressor
        while data or more:
            if decompressor is None:
                data = data.lstrip(b"\0") if begun else data  # padding between members
                if not data:
                    break
                decompressor, begun = _DECOMPRESSORS[compression](), True
            try:
                chunk = decompressor.decompress(data, CHUNK)
            except _CORRUPT as error:
                named = "" if done else f" If it is not compressed, give it a name without that of {compression}."
                raise InputError(
                    f"{url} has no valid {compression} data after {done} bytes of text ({error}).",
                    f"Write the file again, or leave it out.{named}",
                ) from error
            done += len(chunk)
            yield chunk
            if decompressor.eof:
                data, decompressor, more = decompressor.unused_data, None, False
            else:  # zlib returns unused input, bz2 and lzma keep it
                data, more = getattr(decompressor, "unconsumed_tail", b""), len(chunk) == CHUNK
    if decompressor is not None:
        raise InputError(
            f"{url} is cut short: its {compression} data stop after {done} bytes of text.",
            "Write the file again, or leave it out.",
        )


def with_newlines(data: bytes) -> bytes:
    """Return text with a newline for each carriage return that none follows; its length stays."""
    if b"\r" not in data:
        return data
    codes = np.frombuffer(data, np.uint8)
    returns, newlines = codes == ord("\r"), codes == ord("\n")
    if not returns[-1] and not (returns[:-1] & ~newlines[1:]).any():  # split would take several times as long
        return data
    return b"\r\n".join([part.replace(b"\r", b"\n") for part in data.split(b"\r\n")])


def chunks_with_newlines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield chunks as `with_newlines` would change them together."""
    held = b""  # ends with a carriage return: the next chunk shows whether a newline follows
    for chunk in chunks:
        if held and chunk:
            yield held if chunk.startswith(b"\n") else held[:-1] + b"\n"
            held = b""
        if chunk.endswith(b"\r"):
            held = with_newlines(chunk[:-1]) + b"\r"
        elif chunk:
            yield with_newlines(chunk)
    if held:
        yield held[:-1] + b"\n"


def _chunks_from(file: IO[bytes], position: int, size: int) -> Iterator[bytes]:
    file.seek(position)
    return chunks_with_newlines(iter(partial(file.read, size), b""))


def line_start(file: IO[bytes], position: int, stop: int) -> int:
    """Return the start of the first line at or after `position`; `stop` or more if none starts before `stop`."""
    if position == 0:
        return 0
    position -= 1  # a line starts at `position` if a newline is just before it
    for chunk in _chunks_from(file, position, PROBE):
        found = chunk.find(b"\n") + 1
        if found or position >= stop:
            return position + found
        position += len(chunk)
    return stop


def line_chunks(file: IO[bytes], position: int, stop: int) -> Iterator[bytes]:
    """Yield the bytes from a line's start to the end of the last line that starts before `stop`, `with_newlines`."""
    for chunk in _chunks_from(file, position, CHUNK):
        end = position + len(chunk)
        if end >= stop:
            cut = chunk.find(b"\n", max(0, stop - 1 - position)) + 1
            if cut:
                yield chunk[:cut]
                return
        yield chunk
        position = end


def batched(items: Iterable[T], size: Callable[[T], int], most: int) -> Iterator[list[T]]:
    """Yield lists of consecutive items. A list ends where the sizes of its items add up to `most`, or all items end."""
    held, total = list[T](), 0
    for item in items:
        held.append(item)
        total += size(item)
        if total >= most:
            yield held
            held, total = [], 0
    if held:
        yield held


def pieces(chunks: Iterable[bytes], offset: int, *, whole_lines: bool) -> Iterator[tuple[int, bytes]]:
    """Cut text into pieces after newlines, or after any separator in lines longer than `LONGEST`.

    Parameters
    ----------
    chunks
        Consecutive bytes.
    offset
        Offset of the first byte.
    whole_lines
        Cut after newlines only, however long a line is.

    Yields
    ------
    tuple of int and bytes
        Offset of a piece, and the piece. The last piece ends with a newline, which is added if it is missing.
    """
    pending: list[bytes] = []
    held, ended = 0, True
    for chunk in chunks:
        cut = chunk.rfind(b"\n") + 1
        ends = cut > 0
        if not cut and not whole_lines and held + len(chunk) >= LONGEST:
            cut = len(chunk.rstrip(NO_SEPARATORS))
        if not cut:
            pending.append(chunk)
            held += len(chunk)
            continue
        piece = b"".join((*pending, memoryview(chunk)[:cut]))
        yield offset, piece
        pending = [chunk[cut:]]
        offset, held, ended = offset + len(piece), len(pending[0]), ends
    last = b"".join(pending)
    if last or not ended:
        yield offset, last + b"\n"
