"""Partitions of a vocabulary, so that no worker has to hold all rows.

Words are numbered by falling count and assigned to partitions back and forth (0, 1, .., p-1, p-1, .., 1, 0, 0, ..). So
each partition has words of all frequencies, and a word's partition follows from its number without a table.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.errors import ParameterError, counted
from daskw2v.types import RowIds


@dataclass(frozen=True)
class Partitions:
    """V words in p partitions.

    Parameters
    ----------
    n_words, n
        V and p.

    Raises
    ------
    ParameterError
        If a partition would be empty.
    """

    n_words: int
    n: int

    def __post_init__(self) -> None:
        if not 1 <= self.n <= self.n_words:
            raise ParameterError(
                f"{counted(self.n, 'partition')} of {counted(self.n_words, 'word')}: each needs a word.",
                f"Give n_partitions from 1 to {self.n_words}.",
            )

    @property
    def most(self) -> int:
        """The number of rows of the largest partition."""
        return -(-self.n_words // self.n)

    def size(self, partition: int, limit: int | None = None) -> int:
        """Return the number of a partition's rows, of all words or of the words below `limit`."""
        rows, rest = divmod(self.n_words if limit is None else limit, self.n)
        return rows + int(_turned(partition, rows, self.n) < rest)

    def words(self, partition: int, start: int = 0, stop: int | None = None) -> RowIds:
        """Return the words of a partition's rows start:stop, ascending, int64; of all rows by default."""
        size = self.size(partition)
        rows = np.arange(start, size if stop is None else min(stop, size))
        return rows * self.n + _turned(partition, rows, self.n)

    def place(self, words: npt.NDArray[np.integer[Any]]) -> tuple[RowIds, RowIds]:
        """Return each word's partition and its row in it, shapes of `words`, int64."""
        rows, dealt = np.divmod(words.astype(np.int64), self.n)
        return _turned(dealt, rows, self.n), rows


def _turned(dealt: RowIds | int, rows: RowIds | int, n: int) -> RowIds:
    """Return the partition of the `dealt`-th word of a row, or conversely: the function is its own inverse."""
    return np.where(rows % 2 == 0, dealt, n - 1 - dealt)
