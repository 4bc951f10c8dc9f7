"""What reading yields, piece by piece, and what it reports."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Text:
    r"""UTF-8 text whose tokens are what lies between bytes <= 0x20; a newline ends a sentence.

    A piece may end inside a sentence, never inside a token: the next piece goes on with the sentence.

    Parameters
    ----------
    data
        The bytes. Carriage returns are still in it: they only separate tokens.
    """

    data: bytes


@dataclass(frozen=True)
class Tokens:
    """Whole sentences of tokens; a token may hold any character, spaces too. No token, no sentence is empty.

    Parameters
    ----------
    data
        Shape (n,) uint8: all tokens' UTF-8, one after the other.
    offsets
        Shape (t+1,) int64: token i is data[offsets[i]:offsets[i+1]].
    starts
        Shape (s,) int64: index of the first token of each sentence; starts[0] is 0.
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    starts: NDArray[np.int64]


def tokens_of(sentences: Iterable[Sequence[str]]) -> Tokens:
    """Lay out sentences given as strings; empty tokens and empty sentences are left out.

    Raises
    ------
    UnicodeEncodeError
        If a token holds a lone surrogate, which UTF-8 cannot write.
    """
    kept = [[token for token in sentence if token] for sentence in sentences]
    flat = [token for sentence in kept for token in sentence]
    text = "".join(flat)
    data = text.encode()
    lengths = map(len, flat) if len(data) == len(text) else (len(token.encode()) for token in flat)
    offsets = np.zeros(len(flat) + 1, np.int64)
    np.cumsum(np.fromiter(lengths, np.int64, len(flat)), out=offsets[1:])
    counts = np.fromiter(map(len, kept), np.int64, len(kept))
    return Tokens(np.frombuffer(data, np.uint8), offsets, (np.cumsum(counts) - counts)[counts > 0])


@dataclass
class ReadReport:
    """What was read, and what had to be repaired or left out.

    Parameters
    ----------
    bytes_read
        Bytes of text; of a compressed file, after decompression.
    lines
        Lines, or rows of a Parquet column of lists.
    replaced
        Lines in which invalid UTF-8 became U+FFFD (a line longer than 4 MiB counts once a piece).
    skipped
        Lines left out; of a line longer than 4 MiB, its offending pieces.
    cut
        How often a line longer than 4 MiB was cut, at whitespace, into several sentences: only tokenizers
        that work line by line need that.
    first_offence
        Where and what the first line repaired or left out was.
    """

    bytes_read: int = 0
    lines: int = 0
    replaced: int = 0
    skipped: int = 0
    cut: int = 0
    first_offence: str | None = None

    def count_lines(self, data: bytes) -> None:
        """Add the newlines in `data` (bytes.count takes three times as long)."""
        self.lines += int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n")))

    def merge(self, other: "ReadReport") -> None:
        """Add what another report says; the first offence known stays."""
        self.bytes_read += other.bytes_read
        self.lines += other.lines
        self.replaced += other.replaced
        self.skipped += other.skipped
        self.cut += other.cut
        self.first_offence = self.first_offence or other.first_offence

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON types."""
        return asdict(self)
