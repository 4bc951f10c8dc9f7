"""Plain text: each line is a sentence."""

from collections.abc import Iterable, Iterator
from typing import Any

from daskw2v.corpus import streams
from daskw2v.corpus.files import TextBlock
from daskw2v.corpus.formats.base import Format, cut_bytes
from daskw2v.corpus.invalid import InvalidInput, refuse_no_text
from daskw2v.corpus.pieces import Piece, ReadReport, Tokens
from daskw2v.corpus.tokenizers import Tokenizer
from daskw2v.errors import InputError

_BOM = b"\xef\xbb\xbf"
LONGEST_PART = 1 << 26  # maximum bytes of a line of JSON, or of a word; decoding may take twenty times as much memory


def _read(file: Any, block: TextBlock, column: str, policy: InvalidInput, tokenizer: Tokenizer) -> Iterator[Piece]:
    """Read the lines of a block as `Format.read` does; text has no columns."""
    for offset, data in read_text_pieces(file, block, policy.report, whole_lines=False):
        policy.report.count_lines(data)
        piece = tokenizer(policy.valid_utf8(data, block.source.url, offset))
        if isinstance(piece, Tokens):
            policy.report.cut += not data.endswith(b"\n")
            if not len(piece.starts):
                continue
        yield piece


def read_text_pieces(
    file: Any, block: TextBlock, report: ReadReport, *, whole_lines: bool
) -> Iterator[tuple[int, bytes]]:
    """Yield the text of a block in pieces, each with its offset in the decompressed file.

    Pieces end after a line or between words.

    Parameters
    ----------
    file, block
        The open file, and the block, of which the lines are read that start in it.
    report
        Counts the bytes that are read.
    whole_lines
        Whether to cut the text after newlines only, however long a line is.

    Raises
    ------
    InputError
        If the file is damaged, is no text by its first bytes, or has a line (with `whole_lines`) or a word of more than
        `LONGEST_PART` bytes.
    """
    first, source = 0, block.source
    if source.compression:
        chunks = streams.chunks_with_newlines(streams.decompressed(file, source.compression, source.url))
    else:
        first = streams.find_line_start(file, block.start, block.stop)
        if first >= block.stop:
            return
        chunks = streams.read_line_chunks(file, first, block.stop)
    chunks = _check_lengths(chunks, source.url, report, whole_lines=whole_lines)
    for offset, data in streams.cut_pieces(chunks, first, whole_lines=whole_lines):
        if offset == 0:
            refuse_no_text(data, source.url)
        if offset == 0 and data.startswith(_BOM):
            yield len(_BOM), data[len(_BOM) :]
        else:
            yield offset, data


def _check_lengths(chunks: Iterable[bytes], url: str, report: ReadReport, *, whole_lines: bool) -> Iterator[bytes]:
    """Yield chunks of a text, and count their bytes; refuse a line (with `whole_lines`) or word above `LONGEST_PART`.

    A few compressed megabytes may expand to a line that exceeds memory.
    """
    length = 0  # of the line or word that a chunk ends in
    for chunk in chunks:
        cut = chunk.rfind(b"\n") + 1 if whole_lines else len(chunk.rstrip(streams.NO_SEPARATORS))
        length = len(chunk) - cut + (0 if cut else length)
        if length > LONGEST_PART:
            problem = f"{url} has a {'line of JSON' if whole_lines else 'word'} of more than {LONGEST_PART:,} bytes."
            raise InputError(problem, "Cut it, or leave the file out: it may not be text.")
        report.bytes_read += len(chunk)
        yield chunk


TEXT = Format(name="text", title="text", cut=cut_bytes, read=_read)  # the format of files with any further name
