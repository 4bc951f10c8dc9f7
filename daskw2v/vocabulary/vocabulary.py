"""The words a model knows: flat UTF-8 bytes, counts, and an id for each; no object for a word not asked for."""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt
import zarr

from daskw2v.errors import UnknownWordError, VocabularyError
from daskw2v.shards.dictionary import are_words
from daskw2v.storage import read_array, write_array
from daskw2v.vocabulary.index import WordIndex
from daskw2v.wording import counted

_AT_ONCE = 4096  # words that iteration makes
_SHOWN = 3


@dataclass(frozen=True, eq=False, repr=False)
class Vocabulary:
    """Words in order of their ids: most frequent first, equal counts by bytes.

    Parameters
    ----------
    data
        All words' UTF-8 bytes one after another, shape (n_bytes,) uint8.
    offsets
        Where each word starts in `data`, and where the last one ends, shape (V + 1,) int64.
    counts
        Occurrences of each word in the corpus, shape (V,) int64.
    """

    data: npt.NDArray[np.uint8]
    offsets: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.counts)

    def __iter__(self) -> Iterator[str]:
        """Go through the words in order of their ids, some thousand at a time."""
        for start in range(0, len(self), _AT_ONCE):
            yield from self.between(start, min(start + _AT_ONCE, len(self)))

    def __repr__(self) -> str:
        first = ", ".join(map(repr, self.between(0, min(_SHOWN, len(self)))))
        return f"<Vocabulary of {len(self):,} words: {first}{', ...' if len(self) > _SHOWN else ''}>"

    def __contains__(self, word: object) -> bool:
        return self.find(word) is not None

    @classmethod
    def from_words(cls, words: Sequence[str], counts: Iterable[int]) -> Self:
        """Make a vocabulary of words whose order is their id.

        Raises
        ------
        VocabularyError
            If a word stands twice, or words and counts differ in number.
        """
        encoded = [word.encode() for word in words]
        numbers = np.array(list(counts), np.int64)
        if len(numbers) != len(encoded) or len(set(encoded)) != len(encoded):
            raise VocabularyError(
                f"{counted(len(encoded), 'word')} ({len(set(encoded))} distinct) with "
                f"{counted(len(numbers), 'count')}.",
                "Give each word once, and one count a word.",
            )
        offsets = np.concatenate([[0], np.cumsum([len(word) for word in encoded])]).astype(np.int64)
        return cls(np.frombuffer(b"".join(encoded), np.uint8), offsets, numbers)

    @cached_property
    def words(self) -> list[str]:
        """The words in order of their ids: an object for each, where `word` and `between` make those asked for."""
        return self.between(0, len(self))

    def between(self, start: int, stop: int) -> list[str]:
        """Return the words of the ids from `start` to `stop` - 1."""
        bounds = self.offsets[start : max(start, stop) + 1]
        data, bounds = self.data[bounds[0] : bounds[-1]].tobytes(), bounds - bounds[0]
        return [_decoded(data[a:b]) for a, b in itertools.pairwise(bounds.tolist())]

    def word(self, id_: int) -> str:
        """Return the word of an id from 0 on.

        Raises
        ------
        IndexError
            If there is no such id.
        """
        if not 0 <= id_ < len(self):
            raise IndexError(f"There is no word {id_} of {len(self)}.")
        return _decoded(self.data[self.offsets[id_] : self.offsets[id_ + 1]].tobytes())

    @cached_property
    def _index(self) -> WordIndex:
        return WordIndex(self.data, self.offsets)

    def find(self, word: object) -> int | None:
        """Return the word's id, or None where the vocabulary does not hold it."""
        # Lone surrogates make bytes that are no word's.
        return self._index.find(word.encode("utf-8", "surrogatepass")) if isinstance(word, str) else None

    def find_all(self, other: "Vocabulary") -> npt.NDArray[np.int32]:
        """Return the id of each word of another vocabulary, -1 where this one does not hold it, shape (len(other),)."""
        return self._index.find_all(other.data, other.offsets)

    def id(self, word: str) -> int:
        """Return the word's id.

        Raises
        ------
        UnknownWordError
            If the vocabulary does not hold the word.
        """
        found = self.find(word)
        if found is None:
            raise UnknownWordError(
                f"{word!r} is not among the {counted(len(self), 'word')} of the vocabulary.",
                "Look for another form (case, spelling), or train with a lower min_count.",
            )
        return found

    def save(self, group: zarr.Group) -> None:
        """Write the vocabulary's three arrays into a Zarr group."""
        write_array(group, "words", self.data)
        write_array(group, "offsets", self.offsets)
        write_array(group, "counts", self.counts)

    @classmethod
    def load(cls, group: zarr.Group) -> Self:
        """Read what `save` wrote.

        Raises
        ------
        StoreError
            If an array is missing.
        VocabularyError
            If the arrays contradict each other.
        """
        data, offsets, counts = (read_array(group, name) for name in ("words", "offsets", "counts"))
        types = [array.dtype for array in (data, offsets, counts)]
        if not are_words(data, offsets) or types[2] != np.int64 or counts.ndim != 1 or len(offsets) != len(counts) + 1:
            raise VocabularyError(
                f"The vocabulary at {group.store_path} is damaged: {len(counts)} counts ({types[2]}), {len(offsets)} "
                f"offsets ({types[1]}) over {len(data)} bytes ({types[0]}).",
                "Delete it and run train again.",
            )
        return cls(data, offsets, counts)


def _decoded(word: bytes) -> str:
    try:
        return word.decode()
    except UnicodeDecodeError as error:
        raise VocabularyError(
            f"The vocabulary is damaged: its word {word[:60]!r} is no UTF-8 ({error.reason}).",
            "Take the model from a copy, or delete it and run train again.",
        ) from None
