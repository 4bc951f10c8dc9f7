"""Partitions of a vocabulary, so that no worker has to hold all rows.

Words are numbered by falling count and assigned to partitions back and forth (0, 1, .., p-1, p-1, .., 1, 0, 0, ..). So
each partition has words of all frequencies, and a word's partition follows from its number without a table.

The most frequent words may have a copy in each partition besides. Copies are the first rows of a partition, and its own
words follow.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.errors import ParameterError, counted
from daskw2v.types import RowIds


@dataclass(frozen=True)
class Partitions:
    """The assignment of V words to p partitions.

    Parameters
    ----------
    n_words, n
        Number of words V, and number of partitions p.
    n_copied
        Number of the most frequent words that each partition has a copy of.

    Raises
    ------
    ParameterError
        If a partition would be empty, or more words are copied than there are.
    """

    n_words: int
    n: int
    n_copied: int = 0

    def __post_init__(self) -> None:
        if not 1 <= self.n <= self.n_words:
            problem = f"{counted(self.n, 'partition')} of {counted(self.n_words, 'word')}: each needs a word."
            raise ParameterError(problem, f"Give n_partitions from 1 to {self.n_words}.")
        if not 0 <= self.n_copied <= self.n_words:
            problem = f"copied_words={self.n_copied} of {counted(self.n_words, 'word')}: there are no more to copy."
            raise ParameterError(problem, f"Give copied_words from 0 to {self.n_words}.")

    @property
    def max_size(self) -> int:
        """Number of words of the largest partition."""
        return -(-self.n_words // self.n)

    @property
    def max_rows(self) -> int:
        """Number of rows of the largest partition: of copies, and of its words."""
        return self.n_copied + self.max_size

    def size(self, partition: int, limit: int | None = None) -> int:
        """Return the number of words in a partition: of all words, or of the words with ids below `limit`."""
        rows, rest = divmod(self.n_words if limit is None else limit, self.n)
        return rows + int(_reflect(partition, rows, self.n) < rest)

    def words(self, partition: int, start: int = 0, stop: int | None = None) -> RowIds:
        """Return the ids of a partition's words start..stop-1, all words by default, ascending, int64."""
        size = self.size(partition)
        rows = np.arange(start, size if stop is None else min(stop, size))
        return rows * self.n + _reflect(partition, rows, self.n)

    def locate(self, words: npt.NDArray[np.integer[Any]]) -> tuple[RowIds, RowIds]:
        """Return the partition of each word id, and the word's index in it, without copies, shapes of `words`."""
        rows, ranks = np.divmod(words.astype(np.int64), self.n)
        return _reflect(ranks, rows, self.n), rows


def _reflect(ranks: RowIds | int, rows: RowIds | int, n: int) -> RowIds:
    """Return ranks in even rows as they are, and in odd rows counted from the other end, n - 1 - rank.

    This takes the rank of a word within its row of `n` words to the word's partition, and a partition to the rank.
    """
    return np.where(rows % 2 == 0, ranks, n - 1 - ranks)
