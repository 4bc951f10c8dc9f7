"""The pieces of text or tokens that reading yields, and the report of what was read."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class RawText:
    r"""UTF-8 text with tokens separated by bytes <= 0x20; a newline ends a sentence.

    A piece may end inside a sentence, which the next piece continues, but never inside a token.

    Parameters
    ----------
    data
        The bytes. A carriage return stands before a newline only.
    """

    data: bytes


@dataclass(frozen=True)
class Tokens:
    """Whole sentences of tokens. A token may contain any character, including spaces. None of them is empty.

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


def tokens_of(sentences: Iterable[Sequence[str]]) -> Tokens:
    """Make `Tokens` of sentences of strings, without empty tokens and sentences.

    Raises
    ------
    UnicodeEncodeError
        If a token has a lone surrogate, which UTF-8 cannot encode.
    """
    kept = [[token for token in sentence if token] for sentence in sentences]
    flat = [token for sentence in kept for token in sentence]
    text = "".join(flat)
    data = text.encode()
    lengths = map(len, flat) if len(data) == len(text) else (len(token.encode()) for token in flat)
    counts = np.fromiter(map(len, kept), np.int64, len(kept))
    return tokens_from(data, np.fromiter(lengths, np.int64, len(flat)), counts)


def tokens_from(data: bytes, lengths: NDArray[np.int64], counts: NDArray[np.int64]) -> Tokens:
    """Make `Tokens` of the bytes of all tokens, the length of each, shape (t,), and the tokens of each sentence."""
    return Tokens(np.frombuffer(data, np.uint8), offsets_from(lengths), (np.cumsum(counts) - counts)[counts > 0])


def offsets_from(lengths: NDArray[Any]) -> NDArray[np.int64]:
    """Return where items with these lengths begin if they follow each other, and where the last one ends."""
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
        Lines, or rows of a Parquet column of lists.
    replaced
        Lines in which invalid UTF-8 was replaced by U+FFFD. A line longer than 4 MiB counts once for each piece.
    skipped
        Lines that were skipped; invalid pieces of lines longer than 4 MiB.
    cut
        Number of times that a line longer than 4 MiB was cut at whitespace, into several sentences. This happens only
        with tokenizers that work line by line.
    first_offence
        Place and description of the first line repaired or skipped.
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
        """Add the counts of another report; the earlier `first_offence` stays."""
        self.bytes_read += other.bytes_read
        self.lines += other.lines
        self.replaced += other.replaced
        self.skipped += other.skipped
        self.cut += other.cut
        self.first_offence = self.first_offence or other.first_offence

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON types."""
        return asdict(self)
