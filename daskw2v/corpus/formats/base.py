"""`Format`: how files of a format are divided into blocks, and how a block is read."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from daskw2v.corpus.files import Source, TextBlock, open_source
from daskw2v.corpus.invalid import FIRST, refuse_no_text
from daskw2v.corpus.pieces import RawText, Tokens
from daskw2v.errors import InputError

CutFile = Callable[[Source, int, Mapping[str, Any], float], list[TextBlock]]
ReadBlock = Callable[..., Iterator[RawText | Tokens]]


@dataclass(frozen=True, kw_only=True)
class Format:
    """One format of input files.

    Parameters
    ----------
    name
        Value of `format` in Params.
    title
        Name in messages.
    suffixes
        Suffixes of such files in lower case, without those of compression.
    cut
        Divides a file that is not compressed into blocks of about `block_bytes`, in order:
        `cut(source, block_bytes, storage_options, timeout)`.
    read
        Yields the sentences of a block in order, as `read_block` does: `read(file, block, column, policy, tokenizer)`.
        `file` is open for reading bytes, `column` is that of Params, `policy` handles invalid input and counts what is
        read, `tokenizer` turns UTF-8 into tokens.
    expansion
        Bytes of text for each byte of an uncompressed file, for estimates of memory.
    compressible
        Whether such files may be compressed as a whole. A compressed file is a single block; `read` gets it compressed.
    honours
        Fields of Params that it reads and not all formats do (`honoured_by`): `read` takes them as arguments of these
        names, besides the arguments that all formats take.
    requires
        Module that reading needs, and extra that installs it.
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
    """Divide a file of lines into ranges of bytes; an empty file has no blocks."""
    if source.size > block_bytes:  # the tasks that read its other blocks do not see its first bytes
        with open_source(source, storage_options, timeout) as file:
            refuse_no_text(file.read(FIRST), source.url)
    return [TextBlock(source, at, min(at + block_bytes, source.size)) for at in range(0, source.size, block_bytes)]


def cut_short(source: Source, kind: str) -> InputError:
    """Return the error for an empty file of a kind that cannot be empty."""
    return InputError(
        f"{source.url} is cut short: it is empty, which no {kind} file is.", "Write the file again, or leave it out."
    )
