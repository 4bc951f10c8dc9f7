"""`Format`: how files of a format are divided into blocks, and how a block is read."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from daskw2v.corpus.files import Source, TextBlock, open_source
from daskw2v.corpus.invalid import FIRST, InvalidInput, refuse_no_text
from daskw2v.corpus.pieces import RawText, Tokens
from daskw2v.corpus.tokenizers import Tokenizer
from daskw2v.errors import InputError


class CutFile(Protocol):
    """Divides a file that is not compressed into blocks."""

    def __call__(
        self, source: Source, block_bytes: int, storage_options: Mapping[str, Any], timeout: float, /
    ) -> list[TextBlock]:
        """Return the blocks of a file in order, of about `block_bytes` each."""


class ReadBlock(Protocol):
    """Reads a block."""

    def __call__(
        self, file: Any, block: TextBlock, column: str, policy: InvalidInput, tokenizer: Tokenizer, /
    ) -> Iterator[RawText | Tokens]:
        """Yield the sentences in order, as `read_block` does.

        `file` is open for reading bytes, `column` is that of Params, `policy` handles invalid input and counts what is
        read, `tokenizer` turns UTF-8 into tokens. Further fields that the format honours are passed by name.
        """


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
    cut, read
        Functions that divide a file into blocks, and read a block.
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
