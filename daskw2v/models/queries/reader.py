"""The methods by which the parts of `Vectors` read its rows."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

from daskw2v.models.stored.blocks import VectorBlock
from daskw2v.types import BoolArray, Float32Array, Int64Array
from daskw2v.vocabulary.vocabulary import Vocabulary, Word


class RowReader(ABC):
    """A base of the classes that `Vectors` is composed of: these methods alone give them words and their rows."""

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

    @abstractmethod
    def blocks_for(self, n_queries: int, limit: int | None = None) -> Iterator[VectorBlock]:
        """Read the vectors of the ids below `limit` in blocks that `n_queries` vectors are compared with at once."""

    @abstractmethod
    def _look_up(self, words: Sequence[Word]) -> tuple[Int64Array, Float32Array]:
        """Return ids, shape (n,), -1 for words outside the vocabulary, and vectors, shape (n, D)."""

    @abstractmethod
    def _look_up_known(self, words: Sequence[Word]) -> tuple[Int64Array, Float32Array, BoolArray]:
        """Return ids, vectors (zeros for words without one), and which words have a vector, shape (n,)."""
