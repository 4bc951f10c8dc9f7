"""Partitions of a vocabulary: rows that live apart, so that no worker need hold them all.

Words are numbered by falling count. They are dealt out back and forth (0, 1, .., p-1, p-1, .., 1, 0, 0, ..), so that
each partition has as many frequent ones as rare ones, and where a word lives follows from its number alone: there is no
table to keep or to send.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.errors import ParameterError
from daskw2v.jit import inline
from daskw2v.wording import counted

Words = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Partitions:
    """How V words are spread over p partitions.

    Parameters
    ----------
    n_words, n
        V and p.

    Raises
    ------
    ParameterError
        If a partition would have no word.
    """

    n_words: int
    n: int

    def __post_init__(self) -> None:
        if not 1 <= self.n <= self.n_words:
            raise ParameterError(
                f"{counted(self.n, 'partition')} of {counted(self.n_words, 'word')}: each needs a word.",
                f"Give n_partitions from 1 to {self.n_words}.",
            )

    def size(self, partition: int) -> int:
        """Return the number of a partition's rows."""
        rows, rest = divmod(self.n_words, self.n)
        return rows + int(_turned(partition, rows, self.n) < rest)

    def words(self, partition: int, start: int = 0, stop: int | None = None) -> Words:
        """Return the words of a partition's rows start:stop, ascending, int64; of all rows by default."""
        size = self.size(partition)
        rows = np.arange(start, size if stop is None else min(stop, size))
        return rows * self.n + _turned(partition, rows, self.n)

    def place(self, words: npt.NDArray[np.integer[Any]]) -> tuple[Words, Words]:
        """Return each word's partition, and its row there, shapes of `words`, int64."""
        rows, dealt = np.divmod(words.astype(np.int64), self.n)
        return _turned(dealt, rows, self.n), rows


def _turned(dealt: Words | int, rows: Words | int, n: int) -> Words:
    """Return the partition of the word dealt so far into its row, or the other way round: it is its own inverse."""
    return np.where(rows % 2 == 0, dealt, n - 1 - dealt)


@inline
def place_of(word: Any, n: Any) -> Any:
    """Return a word's partition and its row there, as `Partitions.place` does."""
    row = word // n
    dealt = word - row * n
    return (dealt if row % 2 == 0 else n - 1 - dealt), row
