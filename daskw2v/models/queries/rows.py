"""Words and their rows, which all methods of `Vectors` read: in blocks, from memory or from a store.

So no query needs all of the table in memory. Pickles and copies of a model have the same answers as the model.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from daskw2v.errors import ParameterError, StoreError, counted
from daskw2v.extras import Extra
from daskw2v.features.settings import FEATURES
from daskw2v.fields import held_fields
from daskw2v.models.queries.features import FeatureVectors
from daskw2v.models.stored.arguments import as_word_list
from daskw2v.models.stored.blocks import VectorBlock, cut, normalize_rows, row_lengths
from daskw2v.models.stored.store import (
    check_attempt,
    read_features,
    read_finished,
    read_ids,
    read_subwords,
    read_vocabulary,
)
from daskw2v.models.stored.tables import PickledAs, PiecedRows, StoredRows, open_table
from daskw2v.objectives.subwords.network import Subwords
from daskw2v.store.limits import free_memory
from daskw2v.store.storage import Store
from daskw2v.store.urls import is_private, refuse_secret
from daskw2v.types import BoolArray, Float32Array, Int64Array
from daskw2v.vocabulary.vocabulary import Vocabulary, Word, as_text, is_word

BLOCK_BYTES = 64 << 20  # of rows read at once
SCORES = 1 << 22  # scores in memory at once: 16 MB, and twice that to sort them
_FOLDERS = ("_store", "_version", "_outputs")  # fields that open the model again

tokens = Extra("dask.base", "events")  # queries load no Dask


class WordsField:
    """The field `vocabulary` of a class: a list of words becomes a vocabulary without counts."""

    def __set__(self, owner: Any, words: Vocabulary | Iterable[Word]) -> None:
        vars(owner)["vocabulary"] = words if isinstance(words, Vocabulary) else _make_vocabulary(words)

    def __get__(self, owner: Any, kind: type) -> Vocabulary:
        if owner is None:
            raise AttributeError  # the field has no default
        vocabulary: Vocabulary = vars(owner)["vocabulary"]
        return vocabulary


class RowsField:
    """The field `vectors` of a class, kept as `_rows`: rows in pieces become one array when the field is read."""

    def __set__(self, owner: Any, rows: npt.ArrayLike | StoredRows) -> None:
        vars(owner)["_rows"] = rows if isinstance(rows, StoredRows) else _as_float32(rows)

    def __get__(self, owner: Any, kind: type) -> Float32Array | StoredRows:
        if owner is None:
            raise AttributeError  # the field has no default
        rows: Float32Array | StoredRows = owner._rows
        if isinstance(rows, PiecedRows):
            vars(owner)["_rows"] = rows = rows[:]
        return rows


@dataclass(frozen=True, eq=False, repr=False)
class WordRows:
    """Words and their rows; the parameters are those of `Vectors`."""

    vocabulary: WordsField = WordsField()
    vectors: RowsField = RowsField()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    url: str | None = None
    subwords: Subwords | None = None
    stable_ids: Int64Array | None = None
    features: FeatureVectors | None = None
    _rows: Float32Array | StoredRows = field(init=False)  # the rows; in pieces until `vectors` is read
    _store: Store | None = field(default=None, init=False)  # folder that workers can read the vectors from
    _version: Store | None = field(default=None, init=False)  # folder of the version, also if rows were changed since
    _outputs: Store | None = field(default=None, init=False)  # folder of the version, if its output table fits the rows

    def __post_init__(self) -> None:
        refuse_secret("url", self.url)
        shape, dtype = np.shape(self._rows), getattr(self._rows, "dtype", None)
        if dtype != np.float32 or len(shape) != 2 or shape[0] != len(self.vocabulary):
            problem = f"Vectors of shape {shape} and type {dtype} for {counted(len(self.vocabulary), 'word')}."
            raise ParameterError(problem, "Give a matrix of float32 with one row for each word.")
        for part, value in (("Subwords", self.subwords), ("Features", self.features)):
            if value is not None and value.vector_size != shape[1]:
                problem = f"{part} make vectors of {value.vector_size} dimensions, words have {shape[1]}."
                raise ParameterError(problem, "Give those that were trained with these vectors.")
        ids = self.stable_ids
        if ids is not None and (ids.shape != (shape[0],) or ids.dtype != np.int64):
            raise ParameterError(
                f"Stable ids {ids.dtype} {ids.shape} for {counted(shape[0], 'word')}.", "Give an int64 for each."
            )

    @classmethod
    def _read(cls, store: Store, in_memory: bool | None) -> Self:
        """Open the version in a folder; if `in_memory` is None, load rows that take less than half of the free memory.

        Raises
        ------
        StoreError
            If the version is damaged, or was deleted.
        VocabularyError
            If its vocabulary or its stable ids are damaged.
        """
        stored, vocabulary = open_table(store, "input"), read_vocabulary(store)
        if len(vocabulary) != len(stored):
            problem = f"{store.url} has {counted(len(vocabulary), 'word')} and {counted(len(stored), 'input row')}."
            raise StoreError(problem, "It is damaged: take it from a copy, or delete it and train again.")
        keys = read_features(store)
        feature_rows = None if keys is None else open_table(store, FEATURES)
        if in_memory is None:
            in_memory = stored.nbytes + (0 if feature_rows is None else feature_rows.nbytes) < free_memory() / 2
        stable_ids, manifest = read_ids(store), read_finished(store)
        if manifest is not None:
            check_attempt(store, manifest)
        model = cls(
            vocabulary,
            _load_rows(stored, in_memory),
            manifest or {},
            store.url,
            read_subwords(store),
            None if stable_ids is None else stable_ids.ids,
            None if keys is None or feature_rows is None else FeatureVectors(keys, _load_rows(feature_rows, in_memory)),
        )
        vars(model).update(_store=store, _version=store, _outputs=store)
        return model

    def __len__(self) -> int:
        return len(self.vocabulary)

    @property
    def vector_size(self) -> int:
        """Dimensions of a vector.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> Vectors(["king", "queen"], [[3, 1, 0], [2, 2, 0]]).vector_size
        3
        """
        return int(self._rows.shape[1])

    @property
    def in_memory(self) -> bool:
        """True if queries read nothing from a store.

        Examples
        --------
        >>> import daskw2v
        >>> daskw2v.Vectors(["king", "queen"], [[3, 1], [2, 2]]).save("memory://in-memory")
        >>> daskw2v.open("memory://in-memory", in_memory=False).in_memory
        False
        """
        return isinstance(self._rows, np.ndarray | PiecedRows)

    @cached_property
    def _norms(self) -> Float32Array:
        """Length of each vector, shape (V,) float32; 0 for a vector that was not compared yet."""
        return np.zeros(len(self), np.float32)

    @cached_property
    def norms(self) -> Float32Array:
        """Length of each vector, shape (V,) float32; 1 for a zero vector, so that its cosines are 0."""
        if not self._norms.all():
            for ids, vectors in self.pieces():
                self._lengths(ids, vectors)
        return self._norms

    def units(self, ids: npt.ArrayLike) -> Float32Array:
        """Return the vectors of n ids, scaled to length 1, shape (n, D)."""
        return normalize_rows(self.rows(np.asarray(ids, np.int64)))

    def rows(self, ids: slice | Int64Array) -> Float32Array:
        """Return the vectors of a range of ids, or of n ids, shape (n, D).

        Raises
        ------
        StoreError
            If a vector is not finite.
        """
        rows = np.asarray(self._rows[ids])
        self._check_finite(ids, np.isfinite(rows).all(axis=1))
        return rows

    def _check_finite(self, ids: slice | Int64Array, is_finite: npt.ArrayLike) -> None:
        """Raise StoreError unless all vectors of `ids` are finite, as `is_finite` says of each."""
        if not np.all(is_finite):
            bad = np.arange(len(self))[ids][~np.asarray(is_finite)]
            raise StoreError(
                f"The vector of {self.vocabulary.word(bad[0])!r} is not finite ({len(bad)} of those read are not).",
                "The model is damaged: restore it from a copy, or train again, with a lower alpha if it diverged.",
            )

    def slices(self, limit: int | None = None) -> Iterator[slice]:
        """Yield ranges of the ids below `limit`, all by default, whose vectors are read at once: about 64 MB."""
        chunk = self._rows.chunk_rows if isinstance(self._rows, StoredRows) else 1
        rows = BLOCK_BYTES // (4 * max(1, self.vector_size))
        return cut(len(self) if limit is None else limit, max(1, rows // chunk) * chunk)

    def _exceeds_block(self, limit: int) -> bool:
        """Return whether the vectors of the ids below `limit` take more memory than a block."""
        return 4 * limit * self.vector_size > BLOCK_BYTES

    def pieces(self, limit: int | None = None) -> Iterator[tuple[Int64Array, Float32Array]]:
        """Yield arrays of the ids below `limit`, all by default, each ascending, and their vectors, not checked."""
        limit = len(self) if limit is None else limit
        if isinstance(self._rows, PiecedRows):
            yield from self._rows.pieces(limit)
        else:
            for rows in self.slices(limit):
                yield np.arange(rows.start, rows.stop), self._rows[rows]

    def blocks(self, limit: int | None = None, n_rows: int | None = None) -> Iterator[VectorBlock]:
        """Yield the vectors of the ids below `limit`, all by default: the `pieces`, cut to at most `n_rows` rows."""
        for ids, vectors in self.pieces(limit):
            norms = self._lengths(ids, vectors)
            for part in cut(len(vectors), n_rows or len(vectors)):
                yield VectorBlock(ids[part], vectors[part], norms[part])

    def blocks_for(self, n_queries: int, limit: int | None = None) -> Iterator[VectorBlock]:
        """Yield the vectors of the ids below `limit` in blocks whose scores for n queries take at most 16 MB."""
        return self.blocks(limit, max(1, SCORES // max(1, n_queries)))

    def _lengths(self, ids: Int64Array, vectors: Float32Array) -> Float32Array:
        """Return the lengths of the vectors of n ids, shape (n,), and cache them; refuse lengths that are not finite.

        The length of a zero vector is 1.
        """
        norms = self._norms[ids]
        if not norms.all():
            norms = row_lengths(vectors)
            self._check_finite(ids, np.isfinite(norms))
            self._norms[ids] = norms
        return norms

    def _look_up(self, words: Sequence[Word]) -> tuple[Int64Array, Float32Array]:
        """Return the ids of n words, (n,), and their vectors, (n, D); raise UnknownWordError if a word has no vector.

        The id of a word outside the vocabulary, whose vector is composed, is -1.
        """
        ids = self._ids(words)
        known, rows = ids >= 0, np.empty((len(ids), self.vector_size), np.float32)
        rows[known] = self.rows(ids[known])
        if self._composer is not None and not known.all():
            rows[~known] = self._composer.vectors([as_text(words[i]) for i in np.flatnonzero(~known).tolist()])
        return ids, rows

    def _look_up_known(self, words: Sequence[Word]) -> tuple[Int64Array, Float32Array, BoolArray]:
        """Return ids of n words (-1 if unseen), their vectors (zeros if none), and whether each has a vector, (n,)."""
        ids = np.array([-1 if (id_ := self.vocabulary.find(word)) is None else id_ for word in words], np.int64)
        known, rows = ids >= 0, np.zeros((len(ids), self.vector_size), np.float32)
        rows[known] = self.rows(ids[known])
        unknown = np.flatnonzero(~known)
        if self._composer is not None and len(unknown):
            texts = [as_text(words[i]) for i in unknown.tolist()]
            composed = unknown[self._composer.knows(texts)]
            rows[composed] = self._composer.vectors([as_text(words[i]) for i in composed.tolist()])
            known[composed] = True
        return ids, rows, known

    @property
    def _composer(self) -> Subwords | FeatureVectors | None:
        """The n-grams or the network that composes vectors of unseen words; None without either."""
        return self.features if self.features is not None and self.features.has_ngrams else self.subwords

    def _ids(self, words: Sequence[Word]) -> Int64Array:
        """Return the ids of n words, shape (n,), as `_id` returns them."""
        return np.array([self._id(word) for word in words], np.int64)

    def _id(self, word: Word) -> int:
        """Return the id of a word; -1 if it is unseen and may have a vector, else raise UnknownWordError."""
        may_be_composed = self._composer is not None and is_word(word) and word != ""
        return -1 if may_be_composed and word not in self.vocabulary else self.vocabulary.id(word)

    @property
    def pickles_as(self) -> PickledAs:
        """The content of a pickle: "rows", all vectors; or "address", the URL that they are read from.

        It is the address if queries read rows from a store (`in_memory=False`), as these may not fit into memory: the
        process that loads the pickle must reach that store, and finds the same rows there or gets an error. The pickle
        then holds the storage options, and secrets if these are among them.

        It is also the address if rows are mapped files and `multiprocessing` is starting a process, which then maps
        them too. All other pickles hold the rows and no storage options, and can be loaded anywhere. So do pickles of
        a model in fsspec's `memory://`, which other processes cannot read.
        """
        return self._rows.pickles_as if isinstance(self._rows, StoredRows) else "rows"

    def __getstate__(self) -> dict[str, Any]:
        return {**held_fields(self), **{name: self._pickled_folder(getattr(self, name)) for name in _FOLDERS}}

    def _pickled_folder(self, store: Store | None) -> Store | None:
        """Return a folder as pickles hold it: None if they would hold options, or no other process reads it."""
        if store is None or self.pickles_as == "address":
            return store
        return None if store.options or is_private(store.url) else store

    def __copy__(self) -> Self:
        return self._from_fields(held_fields(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._from_fields(deepcopy(held_fields(self), memo))

    @classmethod
    def _from_fields(cls, fields: dict[str, Any]) -> Self:
        """Return a model with these fields by name, which are not checked again."""
        model = object.__new__(cls)
        vars(model).update(fields)
        return model

    def __dask_tokenize__(self) -> Any:
        """Return the name of the model among Dask's keys: the content of its pickle, without folders that open it."""
        fields = {name: value for name, value in held_fields(self).items() if name not in _FOLDERS}
        return tokens.normalize_token((type(self).__qualname__, fields))


def _make_vocabulary(words: Iterable[Word]) -> Vocabulary:
    """Return a vocabulary of words in order, with counts of 0; raise ParameterError for a set, or what is no word."""
    if isinstance(words, Set):
        raise ParameterError("A set of words has no order.", "Give words in a list, in the order of their rows.")
    listed = as_word_list(words)
    for word in listed:
        if not is_word(word):
            raise ParameterError(f"{word!r} is not a word.", "Give texts or integers, in the order of their rows.")
    return Vocabulary.from_words(listed, [0] * len(listed))


def _as_float32(numbers: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return real numbers as an array of float32, copied only if needed; other values as an array of another type."""
    array = np.asarray(None)
    with suppress(ValueError, FloatingPointError), np.errstate(over="raise"):  # rows of several lengths; large numbers
        array = np.asarray(numbers)
        if array.dtype.kind in "fiu":
            array = array.astype(np.float32, copy=False)
    return array


def _load_rows(stored: StoredRows, in_memory: bool) -> Float32Array | StoredRows:
    """Return a table: in the store, or in memory, as mapped files if they can be mapped, else as an array."""
    if not in_memory:
        return stored
    return PiecedRows(stored.array) if PiecedRows.can_hold(stored.array) else stored[:]
