"""The pieces of text or tokens that reading yields, and the report of what was read."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class RawText:
    """A piece of UTF-8 text whose tokens are separated by bytes <= 0x20; a newline ends a sentence.

    The piece may end inside a sentence, which the next piece continues, but never inside a token.

    Parameters
    ----------
    data
        The bytes. A carriage return stands before a newline only.
    """

    data: bytes


@dataclass(frozen=True)
class Tokens:
    """Complete sentences of tokens. A token may contain any character, including spaces, but is not empty.

    Parameters
    ----------
    data
        Shape (n,) uint8: UTF-8 of all tokens, concatenated.
    offsets
        Shape (t+1,) int64: token i is data[offsets[i]:offsets[i+1]].
    starts
        Shape (s,) int64: index of the first token of each sentence; starts[0] is 0.
    """

    data: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    starts: NDArray[np.int64]


Piece = RawText | Tokens


def make_tokens(sentences: Iterable[Sequence[str]]) -> Tokens:
    """Return sentences of strings as `Tokens`; empty tokens and empty sentences are left out.

    Raises
    ------
    UnicodeEncodeError
        If a token has a lone surrogate, which UTF-8 cannot encode.
    """
    tokens = [[token for token in sentence if token] for sentence in sentences]
    flat = [token for sentence in tokens for token in sentence]
    text = "".join(flat)
    data = text.encode()
    lengths = map(len, flat) if len(data) == len(text) else (len(token.encode()) for token in flat)
    counts = np.fromiter(map(len, tokens), np.int64, len(tokens))
    return tokens_from_lengths(data, np.fromiter(lengths, np.int64, len(flat)), counts)


def tokens_from_lengths(data: bytes, lengths: NDArray[np.int64], counts: NDArray[np.int64]) -> Tokens:
    """Return the `Tokens` of t tokens in s sentences; sentences without tokens are left out.

    Parameters
    ----------
    data
        UTF-8 of all tokens, concatenated.
    lengths
        Bytes of each token, shape (t,).
    counts
        Tokens of each sentence, shape (s,).
    """
    return Tokens(np.frombuffer(data, np.uint8), offsets_from(lengths), (np.cumsum(counts) - counts)[counts > 0])


def offsets_from(lengths: NDArray[Any]) -> NDArray[np.int64]:
    """Return the offset of each of n concatenated items from their lengths, and of the end, shape (n + 1,) int64."""
    offsets = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=offsets[1:])
    return offsets


@dataclass
class ReadReport:
    """Counts of what was read, repaired and skipped.

    Parameters
    ----------
    bytes_read
        Bytes of text, after decompression.
    lines
        Lines, or rows of a column of lists.
    replaced
        Lines in which invalid UTF-8 was replaced by U+FFFD. A line longer than 4 MiB counts once for each piece.
    skipped
        Lines that were skipped; invalid pieces of lines longer than 4 MiB.
    cut
        Number of times that a line longer than 4 MiB was cut at whitespace, into several sentences. This happens only
        with tokenizers that work line by line.
    first_offence
        Location and problem of the first line that was repaired or skipped; None if there was none.
    """

    bytes_read: int = 0
    lines: int = 0
    replaced: int = 0
    skipped: int = 0
    cut: int = 0
    first_offence: str | None = None

    def count_lines(self, data: bytes) -> None:
        """Add the number of newlines in `data` (bytes.count takes three times as long)."""
        self.lines += int(np.count_nonzero(np.frombuffer(data, np.uint8) == ord("\n")))

    def merge(self, other: "ReadReport") -> None:
        """Add the counts of another report to this one; `first_offence` of this report stays if it has one."""
        self.bytes_read += other.bytes_read
        self.lines += other.lines
        self.replaced += other.replaced
        self.skipped += other.skipped
        self.cut += other.cut
        self.first_offence = self.first_offence or other.first_offence

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON types."""
        return asdict(self)
