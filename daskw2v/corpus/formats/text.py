"""Plain text: each line is a sentence."""

from collections.abc import Iterable, Iterator
from typing import Any

from daskw2v.corpus.files import TextBlock
from daskw2v.corpus.formats.base import Format, cut_bytes
from daskw2v.corpus.invalid import InvalidInput, refuse_no_text
from daskw2v.corpus.pieces import RawText, ReadReport, Tokens
from daskw2v.corpus.streams import NO_SEPARATORS, chunks_with_newlines, decompressed, line_chunks, line_start, pieces
from daskw2v.corpus.tokenizers import Tokenizer
from daskw2v.errors import InputError

_BOM = b"\xef\xbb\xbf"
LONGEST_PART = 1 << 26  # most bytes of a line of JSON, or of a word; decoding may take twenty times as much memory


def _read(
    file: Any, block: TextBlock, column: str, policy: InvalidInput, tokenizer: Tokenizer
) -> Iterator[RawText | Tokens]:
    for offset, data in text_pieces(file, block, policy.report, whole_lines=False):
        policy.report.count_lines(data)
        piece = tokenizer(policy.valid_utf8(data, block.source.url, offset))
        if isinstance(piece, Tokens):
            policy.report.cut += not data.endswith(b"\n")
            if not len(piece.starts):
                continue
        yield piece


def text_pieces(file: Any, block: TextBlock, report: ReadReport, *, whole_lines: bool) -> Iterator[tuple[int, bytes]]:
    """Yield the offset of each piece of a block's text, and the piece, which ends after a line or between two words.

    Parameters
    ----------
    file, block
        The open file, and the block: the lines that start in it are read.
    report
        Counts the bytes read.
    whole_lines
        Cut after newlines only, however long a line is.

    Raises
    ------
    InputError
        If the file is damaged or not UTF-8, or a line (with `whole_lines`) or a word is too long for memory.
    """
    first, source = 0, block.source
    if source.compression:
        chunks = chunks_with_newlines(decompressed(file, source.compression, source.url))
    else:
        first = line_start(file, block.start, block.stop)
        if first >= block.stop:
            return
        chunks = line_chunks(file, first, block.stop)
    chunks = _counted(chunks, source.url, report, whole_lines=whole_lines)
    for offset, data in pieces(chunks, first, whole_lines=whole_lines):
        if offset == 0:
            refuse_no_text(data, source.url)
        if offset == 0 and data.startswith(_BOM):
            yield len(_BOM), data[len(_BOM) :]
        else:
            yield offset, data


def _counted(chunks: Iterable[bytes], url: str, report: ReadReport, *, whole_lines: bool) -> Iterator[bytes]:
    """Count bytes. Refuse a line of JSON, or a word, that may exceed memory: compressed MB can expand to many GB."""
    held = 0
    for chunk in chunks:
        cut = chunk.rfind(b"\n") + 1 if whole_lines else len(chunk.rstrip(NO_SEPARATORS))
        held = len(chunk) - cut + (0 if cut else held)
        if held > LONGEST_PART:
            raise InputError(
                f"{url} has a {'line of JSON' if whole_lines else 'word'} of more than {LONGEST_PART:,} bytes.",
                "Cut it, or leave the file out: it may not be text.",
            )
        report.bytes_read += len(chunk)
        yield chunk


TEXT = Format(name="text", title="text", cut=cut_bytes, read=_read)  # the format of all names that have no other
