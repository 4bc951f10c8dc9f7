"""Stable ids of words, which are the same in all versions, while row numbers change with counts.

A new word gets the next id. A word that leaves the vocabulary keeps its id for when it returns. Hence each id below
`next_id` belongs to one word forever, which is in the current vocabulary or was in an earlier vocabulary.
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
    """The stable ids of a vocabulary's V words, and of F words that have left the vocabulary.

    Parameters
    ----------
    ids
        Stable id of each row of the vocabulary, shape (V,) int64.
    former_words, former_offsets
        Words of earlier vocabularies that the current vocabulary lacks, in order of their stable ids: bytes and F + 1
        offsets, as in `Vocabulary`.
    former_ids
        Stable ids of the former words, shape (F,) int64.
    """

    ids: Int64Array
    former_words: UInt8Array
    former_offsets: Int64Array
    former_ids: Int64Array

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def next_id(self) -> int:
        """The id that the next new word gets."""
        return len(self.ids) + len(self.former_ids)

    @classmethod
    def first(cls, vocabulary: Vocabulary) -> Self:
        """Return the stable ids of a first version: the row numbers of its vocabulary."""
        return cls(np.arange(len(vocabulary)), np.empty(0, np.uint8), np.zeros(1, np.int64), np.empty(0, np.int64))

    def grow(self, known: Vocabulary, new: Vocabulary) -> "StableIds":
        """Return the stable ids of the next version's vocabulary.

        Known words and returning words keep their ids; new words get the next ids, in order of rows.

        Parameters
        ----------
        known, new
            The vocabulary that these ids belong to, and the vocabulary of the next version.

        Raises
        ------
        VocabularyError
            If `known` has another number of words than there are ids.
        """
        if len(self) != len(known):
            problem = f"{counted(len(self), 'id')} for {counted(len(known), 'word')}."
            raise VocabularyError(problem, "Give the vocabulary of these ids.")
        known_ids = np.concatenate([self.ids, self.former_ids])
        data = np.concatenate([known.data, self.former_words])
        offsets = np.concatenate([known.offsets, len(known.data) + self.former_offsets[1:]])
        rows = WordIndex(data, offsets).find_all(new.data, new.offsets)
        is_known = rows >= 0
        ids = self.next_id - 1 + np.cumsum(~is_known)
        ids[is_known] = known_ids[rows[is_known]]
        is_former = np.ones(len(known_ids), bool)
        is_former[rows[is_known]] = False
        former = np.flatnonzero(is_former)
        former = former[np.argsort(known_ids[former])]
        return StableIds(ids, *take_words(data, offsets, former), known_ids[former])

    def save(self, group: zarr.Group) -> None:
        """Write the ids into a Zarr group, as four arrays named like the fields."""
        for name in _ARRAYS:
            write_array(group, name, getattr(self, name))

    @classmethod
    def load(cls, group: zarr.Group) -> Self:
        """Read the ids that `save` wrote into a Zarr group.

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
            or not _is_permutation(np.concatenate([ids, former]))
        ):
            shapes = ", ".join(f"{n} {a.dtype} {a.shape}" for n, a in zip(_ARRAYS, arrays, strict=True))
            problem = f"The ids at {group.store_path} are damaged: {shapes}; each id must belong to one word."
            raise VocabularyError(problem, "Restore the version from a copy: new ids would belong to other words.")
        return cls(ids, words, offsets, former)


def _is_permutation(ids: Int64Array) -> bool:
    """Return whether n ids are the numbers 0..n-1 in any order."""
    n = len(ids)
    return bool(((ids >= 0) & (ids < n)).all() and (np.bincount(ids, minlength=n) == 1).all())
