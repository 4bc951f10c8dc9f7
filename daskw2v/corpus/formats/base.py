"""`Format`: how files of a format are divided into blocks, and how a block is read."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from daskw2v.corpus.files import Source, TextBlock, open_source
from daskw2v.corpus.invalid import FIRST, refuse_no_text
from daskw2v.corpus.pieces import Piece
from daskw2v.errors import InputError

CutFile = Callable[[Source, int, Mapping[str, Any], float], list[TextBlock]]
ReadBlock = Callable[..., Iterator[Piece]]


@dataclass(frozen=True, kw_only=True)
class Format:
    """A format of input files.

    Parameters
    ----------
    name
        Value of `format` in Params.
    title
        Name in messages.
    suffixes
        Suffixes of such files in lower case, without those of compression.
    cut
        Function that divides a file that is not compressed into blocks of about `block_bytes`, in order:
        `cut(source, block_bytes, storage_options, timeout)`.
    read
        Function that yields the sentences of a block in order, as `read_block` does: `read(file, block, column, policy,
        tokenizer)`. `file` is open for reading bytes, `column` is that of Params, `policy` handles invalid input and
        counts what is read, `tokenizer` turns UTF-8 into tokens.
    expansion
        Bytes of text for each byte of an uncompressed file, for estimates of memory.
    compressible
        Whether such files may be compressed as a whole. A compressed file is a single block; `read` gets it compressed.
    honours
        Fields of Params that this format reads but not all formats read (`honoured_by`): `read` takes them as keyword
        arguments, besides the arguments that the `read` of all formats takes.
    requires
        Module that reading needs, and the extra that installs it; None if reading needs no extra.
    """

    name: str
    title: str
    suffixes: tuple[str, ...] = ()
    cut: CutFile
    read: ReadBlock
    expansion: float = 1.0
    compressible: bool = True
    honours: tuple[str, ...] = ()
    requires: tuple[str, str] | None = None


def cut_bytes(source: Source, block_bytes: int, storage_options: Mapping[str, Any], timeout: float) -> list[TextBlock]:
    """Return the blocks of a file of lines: ranges of `block_bytes` bytes; an empty file has no blocks.

    Raises an InputError if a file of several blocks is not text by its first bytes.
    """
    if source.size > block_bytes:  # only the task that reads the first block sees the first bytes
        with open_source(source, storage_options, timeout) as file:
            refuse_no_text(file.read(FIRST), source.url)
    starts = range(0, source.size, block_bytes)
    return [TextBlock(source, start, min(start + block_bytes, source.size)) for start in starts]


def empty_file_error(source: Source, kind: str) -> InputError:
    """Return the error for an empty file of a kind, such as "CSV" or "gzip", that has no empty files."""
    problem = f"{source.url} is cut short: it is empty, which no {kind} file is."
    return InputError(problem, "Write the file again, or leave it out.")
