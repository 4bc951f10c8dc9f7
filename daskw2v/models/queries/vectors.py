"""Word vectors: words and their rows, and the rows nearest to others.

Rows are read in blocks, from memory or from a store, so no query needs the whole table in memory. A model with n-grams
or a subword network also computes vectors of words outside its vocabulary, and a model with a table of features
computes vectors of new items. `open_model` opens a version: all parts of it that queries need.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from daskw2v.errors import ParameterError, StoreError, counted
from daskw2v.features.settings import FEATURES
from daskw2v.models.queries.distances import Distances
from daskw2v.models.queries.frames import neighbours_table
from daskw2v.models.queries.lookups import Lookups, WordsField
from daskw2v.models.queries.outputs import Outputs
from daskw2v.models.queries.pickling import PickledModel
from daskw2v.models.queries.shortcuts import Shortcuts
from daskw2v.models.queries.unseen import FeatureVectors, UnseenWords
from daskw2v.models.queries.word_queries import WordQueries
from daskw2v.models.stored.arguments import at_least_one, word_list
from daskw2v.models.stored.blocks import Ranking, VectorBlock, compared, cut, lengths, scaled, unit
from daskw2v.models.stored.store import (
    check_attempt,
    read_features,
    read_finished,
    read_ids,
    read_subwords,
    read_vocabulary,
)
from daskw2v.models.stored.tables import PiecedRows, RowsField, StoredRows, open_table
from daskw2v.models.versions.versions import read_resolved
from daskw2v.objectives.subwords.network import Subwords
from daskw2v.store.limits import free_memory
from daskw2v.store.retries import TIMEOUT
from daskw2v.store.storage import Store
from daskw2v.store.urls import Location, refuse_secret
from daskw2v.types import Float32Array, Int64Array
from daskw2v.vocabulary.vocabulary import Vocabulary, Word, as_text, is_word

BLOCK_BYTES = 64 << 20  # of rows read at once
SCORES = 1 << 22  # scores in memory at once: 16 MB, and twice that to sort them
QUERIES = 1 << 10  # queries compared with a block of words at once


@dataclass(frozen=True, eq=False, repr=False)
class Vectors(UnseenWords, WordQueries, Distances, Lookups, Shortcuts, Outputs, PickledModel):
    """Words and their vectors.

    Parameters
    ----------
    vocabulary
        The V words, as a `Vocabulary` or a list. Integers stand for their digits, here and in queries.
    vectors
        Their vectors, shape (V, D) float32, in memory or in a store. They are neither copied nor normalised; other
        numbers, also in lists, become float32. Where `open` left them in the pieces of files, they become one array
        when this is read; queries read the pieces.
    metadata
        The model's manifest: how it was trained.
    url
        URL that they were read from.
    subwords
        Network that computes vectors of words outside the vocabulary; None if there is none.
    features
        Rows of n-grams and of a table's features, from which unseen words and items are composed; None without any.
    stable_ids
        Stable id of each word, shape (V,) int64: the same in all versions, while row numbers change with counts. None
        for models without, such as imported ones.

    Raises
    ------
    ParameterError
        If `vectors` is not a matrix of numbers that float32 can hold, with a row for each word; if a word is neither
        a text nor an integer; or `subwords` or `stable_ids` do not fit.
    VocabularyError
        If a word occurs twice.

    Examples
    --------
    >>> from daskw2v import Vectors
    >>> vectors = Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]])
    >>> vectors["king"].tolist(), "pear" in vectors
    ([3.0, 1.0], False)
    """

    vocabulary: WordsField = WordsField()
    vectors: RowsField = RowsField()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    url: str | None = None
    subwords: Subwords | None = None
    stable_ids: Int64Array | None = None
    features: FeatureVectors | None = None
    _rows: Float32Array | StoredRows = field(init=False)  # the rows; in pieces until `vectors` is read
    _store: Store | None = field(default=None, init=False)
    _version: Store | None = field(default=None, init=False)  # folder of the version, also if rows were changed since
    _outputs: Store | None = field(default=None, init=False)  # folder of the version, if its output table fits the rows

    def __post_init__(self) -> None:
        refuse_secret("url", self.url)
        shape, dtype = np.shape(self._rows), getattr(self._rows, "dtype", None)
        if dtype != np.float32 or len(shape) != 2 or shape[0] != len(self.vocabulary):
            raise ParameterError(
                f"Vectors of shape {shape} and type {dtype} for {counted(len(self.vocabulary), 'word')}.",
                "Give a matrix of float32 with one row for each word.",
            )
        for what, more in (("Subwords", self.subwords), ("Features", self.features)):
            if more is not None and more.vector_size != shape[1]:
                raise ParameterError(
                    f"{what} make vectors of {more.vector_size} dimensions, words have {shape[1]}.",
                    "Give those that were trained with these vectors.",
                )
        ids = self.stable_ids
        if ids is not None and (ids.shape != (shape[0],) or ids.dtype != np.int64):
            raise ParameterError(
                f"Stable ids {ids.dtype} {ids.shape} for {counted(shape[0], 'word')}.", "Give an int64 for each."
            )

    @classmethod
    def open(
        cls,
        url: Location,
        storage_options: Mapping[str, Any] | None = None,
        in_memory: bool | None = None,
        store_timeout: float = TIMEOUT,
        version: str | None = None,
    ) -> Self:
        """Read a trained model.

        Parameters
        ----------
        url
            A work directory or its `models` folder (the served version is read), or one version.
        storage_options
            Options for fsspec.
        in_memory
            Whether all vectors are in memory; by default, if they take less than half of what is available. Files of
            a local disk are mapped: processes share their pages, and a file may be deleted, but not changed. Others
            are read. If vectors are not in memory, each query reads what it needs, some 64 MB at a time.
        store_timeout
            Seconds to wait for each answer of the store, as in `Resources`.
        version
            Name or tag of a version of the work directory, instead of the served one.

        Raises
        ------
        StoreError
            If there is no finished model, it is damaged, or a newer daskw2v wrote it.
        VocabularyError
            If its vocabulary is damaged.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> Vectors(["king", "queen"], [[3, 1], [2, 2]]).save("memory://open")
        >>> Vectors.open("memory://open")
        Vectors(2 words x 2, url='memory://open')
        """
        read = partial(cls._read, in_memory=in_memory)
        return read_resolved(read, url, storage_options, store_timeout, version)

    @classmethod
    def _read(cls, store: Store, in_memory: bool | None) -> Self:
        return cls(*open_model(store, in_memory))._within(store)

    def _within(self, store: Store) -> Self:
        """Record the folder of a version, whose vectors these are; return the vectors."""
        vars(self).update(_store=store, _version=store, _outputs=store)
        return self

    def __repr__(self) -> str:
        return f"Vectors({len(self)} words x {self.vector_size}, url={self.url!r})"

    def __len__(self) -> int:
        return len(self.vocabulary)

    def __iter__(self) -> Iterator[str]:
        """Yield the words in order of their ids, as `index_to_key`."""
        return iter(self.vocabulary)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self.index_to_key)

    def __contains__(self, word: object) -> bool:
        return word in self.vocabulary

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> npt.NDArray[Any]:
        """Return all vectors, shape (V, D), for `numpy.asarray`: `vectors` itself where it is in memory."""
        return np.array(self.vectors, dtype, copy=copy)

    def __getitem__(self, words: Word | Sequence[Word]) -> Float32Array:
        """Return a copy of a word's vector, shape (D,), or of the vectors of n words, shape (n, D).

        Raises
        ------
        UnknownWordError
            If a word is not known.
        ParameterError
            If `words` is neither a word nor a list of them.
        """
        if is_word(words):
            return np.asarray(self._look_up([words])[1][0])
        return self._look_up(word_list(words))[1]

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
        """Lengths of the vectors compared so far; 0 for others."""
        return np.zeros(len(self), np.float32)

    @cached_property
    def norms(self) -> Float32Array:
        """Length of each vector, shape (V,) float32; 1 for a zero vector, so that its cosines are 0."""
        if not self._norms.all():
            for ids, vectors in self.pieces():
                self._lengths(ids, vectors)
        return self._norms

    def units(self, ids: npt.ArrayLike) -> Float32Array:
        """Return the vectors of `ids`, scaled to length 1, shape (n, D)."""
        return scaled(self.rows(np.asarray(ids, np.int64)))

    def rows(self, ids: slice | Int64Array) -> Float32Array:
        """Return the vectors of `ids`, shape (n, D).

        Raises
        ------
        StoreError
            If one is not finite.
        """
        rows = np.asarray(self._rows[ids])
        self._check_finite(ids, np.isfinite(rows).all(axis=1))
        return rows

    def _check_finite(self, ids: slice | Int64Array, finite: npt.ArrayLike) -> None:
        if not np.all(finite):
            bad = np.arange(len(self))[ids][~np.asarray(finite)]
            raise StoreError(
                f"The vector of {self.vocabulary.word(bad[0])!r} is not finite ({len(bad)} of those read are not).",
                "The model is damaged: restore it from a copy, or train again, with a lower alpha if it diverged.",
            )

    def slices(self, limit: int | None = None) -> Iterator[slice]:
        """Divide the ids below `limit`, all by default, into ranges to read at once."""
        chunk = self._rows.chunk_rows if isinstance(self._rows, StoredRows) else 1
        rows = BLOCK_BYTES // (4 * max(1, self.vector_size))
        return cut(len(self) if limit is None else limit, max(1, rows // chunk) * chunk)

    def pieces(self, limit: int | None = None) -> Iterator[tuple[Int64Array, Float32Array]]:
        """Yield the ids below `limit`, all by default, ascending in each piece, and their vectors, unchecked."""
        limit = len(self) if limit is None else limit
        if isinstance(self._rows, PiecedRows):
            yield from self._rows.pieces(limit)
        else:
            for rows in self.slices(limit):
                yield np.arange(rows.start, rows.stop), self._rows[rows]

    def blocks(self, limit: int | None = None, n_rows: int | None = None) -> Iterator[VectorBlock]:
        """Read the vectors of the ids below `limit`, all by default, in blocks of at most `n_rows`."""
        for ids, vectors in self.pieces(limit):
            norms = self._lengths(ids, vectors)
            for part in cut(len(vectors), n_rows or len(vectors)):
                yield VectorBlock(ids[part], vectors[part], norms[part])

    def blocks_for(self, n_queries: int, limit: int | None = None) -> Iterator[VectorBlock]:
        """Read the vectors of the ids below `limit` in blocks of which the scores of `n_queries` vectors take 16 MB."""
        return self.blocks(limit, max(1, SCORES // max(1, n_queries)))

    def _of_rows(
        self, rows: Float32Array, metadata: Mapping[str, Any], network: Subwords | None, features: FeatureVectors | None
    ) -> "Vectors":
        """Return a model in memory with the same words and other rows, and without an output table."""
        made = Vectors(self.vocabulary, rows, metadata, self.url, network, self.stable_ids, features)
        vars(made)["_version"] = self._version
        return made

    def prefix(self, columns: int) -> "Vectors":
        """Return the first columns of the vectors as a model of its own, in memory.

        Prefixes of a model that was trained with `prefix_sizes` are nearly as good as smaller models.

        Parameters
        ----------
        columns
            Number of columns, at most `vector_size`.

        Raises
        ------
        ParameterError
            If it is below 1 or above `vector_size`, or a subword network computes vectors of all columns.
        StoreError
            If a vector is not finite.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> Vectors(["king", "queen"], [[3, 1, 5], [2, 2, 6]]).prefix(2)
        Vectors(2 words x 2, url=None)
        """
        columns = at_least_one("columns", columns)
        if columns > self.vector_size:
            raise ParameterError(
                f"columns={columns} is more than the {self.vector_size} that the vectors have.", "Give fewer."
            )
        if self.subwords is not None:
            raise ParameterError(
                f"columns={columns}: the model's subword network computes vectors of {self.vector_size} columns.",
                "Take a prefix of a model without a network.",
            )
        rows = np.empty((len(self), columns), np.float32)
        for ids in self.slices():
            rows[ids] = self.rows(ids)[:, :columns]
        metadata, params = self.metadata, self.metadata.get("params", {})
        if params:
            inner = [size for size in params.get("prefix_sizes", ()) if size < columns]
            metadata = {**metadata, "params": {**params, "vector_size": columns, "prefix_sizes": inner}}
        features = None if self.features is None else self.features.prefix(columns)
        made = self._of_rows(rows, metadata, None, features)
        vars(made)["_outputs"] = self._outputs
        return made

    def _lengths(self, ids: Int64Array, vectors: Float32Array) -> Float32Array:
        """Return the lengths of the vectors of `ids`; lengths are cached."""
        norms = self._norms[ids]
        if not norms.all():
            norms = lengths(vectors)
            self._check_finite(ids, np.isfinite(norms))
            self._norms[ids] = norms
        return norms

    def items(self) -> Iterator[tuple[str, Float32Array]]:
        """Yield each word and its vector, shape (D,), in order of ids.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> vectors = Vectors(["king", "queen", "apple"], [[3, 4], [2, 2], [-1, 1]])
        >>> {word: row.tolist() for word, row in vectors.items()}
        {'king': [3.0, 4.0], 'queen': [2.0, 2.0], 'apple': [-1.0, 1.0]}
        """
        for rows in self.slices():
            yield from zip(self.vocabulary.between(rows.start, rows.stop), self.rows(rows), strict=True)

    def _nearest(
        self, queries: Float32Array, topn: int, restrict_vocab: int | None = None
    ) -> tuple[Int64Array, Float32Array]:
        """Return ids and cosines of the words nearest to n vectors, both of shape (n, topn) or narrower, best first."""
        limit = self._limit(restrict_vocab)
        groups = [unit(queries[rows]) for rows in cut(len(queries), QUERIES)]
        rankings = [Ranking(len(units), topn) for units in groups]
        blocks = self.blocks_for(min(len(queries), QUERIES), limit)
        by_threads = len(queries) == 1 and self.in_memory and 4 * limit * self.vector_size > BLOCK_BYTES
        for block, scores in compared(blocks, groups, by_threads=by_threads):
            for cosines_of, ranking in zip(scores, rankings, strict=True):
                ranking.add(cosines_of, block.ids)
        ids = np.empty((len(queries), min(topn, limit)), np.int64)
        cosines = np.empty(ids.shape, np.float32)
        for rows, ranking in zip(cut(len(queries), QUERIES), rankings, strict=True):
            ids[rows], cosines[rows] = ranking.best()
        return ids, cosines

    def to_dask_neighbours(self, words: Iterable[Word] | None = None, topn: int = 10) -> Any:
        """Return the nearest words of many words as a Dask DataFrame, such as the graph of all words.

        They are as in `nearest`. Each task searches for some thousand words: its worker opens the model, reads all
        rows once, block by block, and takes some 400 MB. `to_parquet` of the result writes it.

        Parameters
        ----------
        words
            Words, also words of the subword network; all words of the vocabulary by default.
        topn
            Number of neighbours of each.

        Returns
        -------
        dask.dataframe.DataFrame
            Columns word, rank (int64, from 1 on), neighbour and cosine (float32): in the order of `words`, best
            neighbours first.

        Raises
        ------
        UnknownWordError
            If a word is not known.
        ParameterError
            If `words` is no list, `topn` is below 1, or the vectors are in no store.
        MissingExtraError
            If Dask's dataframes, which need pandas and pyarrow, are not installed.

        Examples
        --------
        >>> import daskw2v
        >>> vectors = daskw2v.Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]])
        >>> vectors.save("memory://neighbours")
        >>> opened = daskw2v.open("memory://neighbours")
        >>> opened.to_dask_neighbours(topn=1).compute(scheduler="sync")["neighbour"].tolist()
        ['queen', 'king', 'queen']
        """
        topn = at_least_one("topn", topn)
        if self._store is None:
            raise ParameterError(
                "These vectors are in memory alone, where no worker reads them.",
                "Open the folder that `save` writes; if a pickle left out their storage options, open their URL again.",
            )
        if words is None:
            return neighbours_table(Vectors._read, self._store, range(len(self)), topn)
        asked = [as_text(word) for word in word_list(words)]
        self._ids(asked)  # before the cluster works
        return neighbours_table(Vectors._read, self._store, asked, topn)

    def _limit(self, restrict_vocab: int | None) -> int:
        if restrict_vocab is None:
            return len(self)
        return min(len(self), at_least_one("restrict_vocab", restrict_vocab))


class Opened(NamedTuple):
    """The fields of `Vectors`."""

    vocabulary: Vocabulary
    vectors: Float32Array | StoredRows
    metadata: dict[str, Any]
    url: str
    subwords: Subwords | None
    stable_ids: Int64Array | None
    features: FeatureVectors | None


def open_model(store: Store, in_memory: bool | None) -> Opened:
    """Open a version; by default, its rows are in memory if they take less than half of the available memory.

    Raises
    ------
    StoreError
        If the version is damaged, or was deleted.
    VocabularyError
        If its vocabulary or its stable ids are damaged.
    """
    stored, vocabulary = open_table(store, "input"), read_vocabulary(store)
    if len(vocabulary) != len(stored):
        raise StoreError(
            f"{store.url} has {counted(len(vocabulary), 'word')} and {counted(len(stored), 'input row')}.",
            "It is damaged: take it from a copy, or delete it and train again.",
        )
    keys = read_features(store)
    more = None if keys is None else open_table(store, FEATURES)
    if in_memory is None:
        in_memory = stored.nbytes + (0 if more is None else more.nbytes) < free_memory() / 2
    ids, manifest = read_ids(store), read_finished(store)
    if manifest is not None:
        check_attempt(store, manifest)
    features = None if keys is None or more is None else FeatureVectors(keys, _held(more, in_memory))
    rows, stable_ids = _held(stored, in_memory), None if ids is None else ids.ids
    return Opened(vocabulary, rows, manifest or {}, store.url, read_subwords(store), stable_ids, features)


def _held(stored: StoredRows, in_memory: bool) -> Float32Array | StoredRows:
    """Return rows in the store, or in memory: as mapped files if they can be mapped, else as an array."""
    if not in_memory:
        return stored
    return PiecedRows(stored.array) if PiecedRows.can_hold(stored.array) else stored[:]
