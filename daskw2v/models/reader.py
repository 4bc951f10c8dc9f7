"""The methods by which the parts of `Vectors` read its rows."""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from daskw2v.types import Float32Array, Int64Array
from daskw2v.vocabulary.vocabulary import Vocabulary


class RowReader(ABC):
    """A base of the classes that `Vectors` is composed of: each sees words and their rows by these methods alone."""

    vocabulary: Vocabulary

    @property
    @abstractmethod
    def vector_size(self) -> int:
        """Dimensions of a vector."""

    @abstractmethod
    def slices(self, limit: int | None = None) -> Iterator[slice]:
        """Divide the ids below `limit`, all by default, into ranges to read at once."""

    @abstractmethod
    def rows(self, ids: slice | Int64Array) -> Float32Array:
        """Return the vectors of `ids`, shape (n, D) float32.

        Raises
        ------
        StoreError
            If one is not finite.
        """
