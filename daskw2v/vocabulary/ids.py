"""Stable ids of words, which are the same in all versions, while row numbers change with counts.

A new word gets the next id. A word that leaves the vocabulary keeps its id for when it returns. So each id below
`next_id` belongs to one word forever, which is in the vocabulary or was in an earlier one.
"""

from dataclasses import dataclass
from typing import Self

import numpy as np
import zarr

from daskw2v.errors import VocabularyError, counted
from daskw2v.shards.words import are_words, take_words
from daskw2v.store.arrays import read_array, write_array
from daskw2v.types import Int64Array, UInt8Array
from daskw2v.vocabulary.vocabulary import Vocabulary, WordIndex

_ARRAYS = ("ids", "former_words", "former_offsets", "former_ids")


@dataclass(frozen=True, eq=False)
class StableIds:
    """The ids of a vocabulary's words, and of words that have left it.

    Parameters
    ----------
    ids
        Id of each row of the vocabulary, shape (V,) int64.
    former_words, former_offsets
        Words of earlier vocabularies that the current one lacks, in order of their ids: bytes and F + 1 offsets, as in
        `Vocabulary`.
    former_ids
        Their ids, shape (F,) int64.
    """

    ids: Int64Array
    former_words: UInt8Array
    former_offsets: Int64Array
    former_ids: Int64Array

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def next_id(self) -> int:
        """The next id to assign."""
        return len(self.ids) + len(self.former_ids)

    @classmethod
    def first(cls, vocabulary: Vocabulary) -> Self:
        """Return the ids of a first version: the numbers of its rows."""
        nothing = np.empty(0, np.int64)
        return cls(np.arange(len(vocabulary)), np.empty(0, np.uint8), np.zeros(1, np.int64), nothing)

    def grow(self, known: Vocabulary, new: Vocabulary) -> "StableIds":
        """Return the ids of the next version: known and returning words keep theirs, new words get the next ones.

        Parameters
        ----------
        known
            The vocabulary of these ids.
        new
            The vocabulary of the next version. Its new words get ids in order of rows.

        Raises
        ------
        VocabularyError
            If `known` is another vocabulary.
        """
        if len(self) != len(known):
            raise VocabularyError(
                f"{counted(len(self), 'id')} for {counted(len(known), 'word')}.", "Give the vocabulary of these ids."
            )
        known_ids = np.concatenate([self.ids, self.former_ids])
        data = np.concatenate([known.data, self.former_words])
        offsets = np.concatenate([known.offsets, len(known.data) + self.former_offsets[1:]])
        rows = WordIndex(data, offsets).find_all(new.data, new.offsets)
        old = rows >= 0
        ids = self.next_id - 1 + np.cumsum(~old)
        ids[old] = known_ids[rows[old]]
        gone = np.ones(len(known_ids), bool)
        gone[rows[old]] = False
        former = np.flatnonzero(gone)
        former = former[np.argsort(known_ids[former])]
        return StableIds(ids, *take_words(data, offsets, former), known_ids[former])

    def save(self, group: zarr.Group) -> None:
        """Write the four arrays into a Zarr group."""
        for name in _ARRAYS:
            write_array(group, name, getattr(self, name))

    @classmethod
    def load(cls, group: zarr.Group) -> Self:
        """Read what `save` wrote.

        Raises
        ------
        StoreError
            If an array is missing or damaged.
        VocabularyError
            If the arrays contradict each other, or an id belongs to two words or to none.
        """
        ids, words, offsets, former = arrays = [read_array(group, name) for name in _ARRAYS]
        if (
            not ids.dtype == former.dtype == np.int64
            or not ids.ndim == former.ndim == 1
            or not are_words(words, offsets)
            or len(offsets) != len(former) + 1
            or not _are_all_numbers(np.concatenate([ids, former]))
        ):
            shapes = ", ".join(f"{n} {a.dtype} {a.shape}" for n, a in zip(_ARRAYS, arrays, strict=True))
            raise VocabularyError(
                f"The ids at {group.store_path} are damaged: {shapes}; each id must belong to one word.",
                "Restore the version from a copy: new ids would belong to other words.",
            )
        return cls(ids, words, offsets, former)


def _are_all_numbers(ids: Int64Array) -> bool:
    """Return whether ids are a permutation of 0, 1, ..."""
    n = len(ids)
    return bool(((ids >= 0) & (ids < n)).all() and (np.bincount(ids, minlength=n) == 1).all())
