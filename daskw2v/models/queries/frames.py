"""Words, counts and vectors as tables of pandas, polars, Arrow and Dask, and the nearest words as a table of Dask.

Workers of a Dask cluster read parts of Dask's tables from a store; each task searches for the nearest words of a part.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from daskw2v.errors import ParameterError
from daskw2v.extras import Extra
from daskw2v.models.queries.word_queries import WordQueries
from daskw2v.models.stored.arguments import as_positive_int, as_word_list
from daskw2v.models.stored.blocks import cut
from daskw2v.models.stored.tables import read_table
from daskw2v.store.arrays import open_subgroup, read_array
from daskw2v.store.storage import Store
from daskw2v.types import Float32Array, Int64Array
from daskw2v.vocabulary.vocabulary import Vocabulary, Word, as_text

pa, pd, pl = Extra("pyarrow", "arrow"), Extra("pandas", "events"), Extra("polars", "polars")
# Queries load no Dask, which is installed without any extra
dask, da, dd = Extra("dask", "events"), Extra("dask.array", "events"), Extra("dask.dataframe", "events")

# Words of a task, which reads all rows once: the search takes longer than reading, even from an object store
TASK_WORDS = 4096


class Frames(WordQueries):
    """Words, counts and vectors as tables of other tools, read block by block."""

    def record_batches(self) -> Iterator[Any]:
        """Yield the parts of `to_arrow`, Arrow record batches of about 64 MB; raises as `to_arrow` does.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> batches = Vectors(["king", "queen"], [[3, 1], [2, 2]]).record_batches()
        >>> [batch.num_rows for batch in batches]
        [2]
        """
        schema = arrow_schema(self.vector_size)
        for ids in self.slices():
            words = pa.array(self.vocabulary.between(ids.start, ids.stop), pa.string())
            numbers = pa.array(self.rows(ids).ravel())
            vectors = pa.FixedSizeListArray.from_arrays(numbers, type=schema.field("vector").type)
            yield pa.record_batch([words, pa.array(self.vocabulary.counts[ids]), vectors], schema=schema)

    def to_arrow(self) -> Any:
        """Return an Arrow table in order of ids: word, count (int64) and vector (fixed_size_list<float>[D]).

        Raises
        ------
        MissingExtraError
            If pyarrow is not installed.
        StoreError
            If a vector is not finite.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> Vectors(["king", "queen"], [[3, 1], [2, 2]]).to_arrow().column_names
        ['word', 'count', 'vector']
        """
        return pa.Table.from_batches(self.record_batches(), arrow_schema(self.vector_size))

    def to_pandas(self) -> Any:
        """Return a pandas DataFrame in order of ids, its index: word, count (int64), and v0 to v{D-1} (float32).

        Raises
        ------
        MissingExtraError
            If pandas is not installed.
        StoreError
            If a vector is not finite.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> table = Vectors(["king", "queen"], [[3, 1], [2, 2]]).to_pandas()
        >>> table.columns.tolist(), table["v0"].tolist()
        (['word', 'count', 'v0', 'v1'], [3.0, 2.0])
        """
        return make_frame(self.vocabulary, self.vocabulary.counts, self.rows(slice(0, len(self.vocabulary))))

    def to_polars(self) -> Any:
        """Return a polars DataFrame in order of ids: word, count (Int64) and vector (Array of D Float32).

        Raises
        ------
        MissingExtraError
            If polars is not installed.
        StoreError
            If a vector is not finite.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> Vectors(["king", "queen"], [[3, 1], [2, 2]]).to_polars()["word"].to_list()
        ['king', 'queen']
        """
        words, rows = pl.Series(self.vocabulary.words, dtype=pl.String), self.rows(slice(0, len(self.vocabulary)))
        vectors = pl.Series(rows, dtype=pl.Array(pl.Float32, self.vector_size))
        return pl.DataFrame({"word": words, "count": self.vocabulary.counts, "vector": vectors})

    def to_dask_array(self) -> Any:
        """Return the vectors as a Dask array, shape (V, D) float32, in order of ids.

        Of a model that was opened, workers read each chunk from its store when it is computed, whatever strategy has
        written it. A chunk has about 64 MB, complete chunks of the store as long as `vectors.vectors` was not read.
        Vectors in memory alone are in the graph: `save` them and open the copy if they are large.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> Vectors(["king", "queen"], [[3, 1], [2, 2]]).to_dask_array().mean(axis=0).compute(scheduler="sync").tolist()
        [2.5, 1.5]
        """
        if self._store is None or not len(self.vocabulary):
            return da.from_array(np.asarray(self.vectors), chunks=(self._words_at_once(), -1))
        read = dask.delayed(read_rows, pure=True)
        shapes = ((ids, (ids.stop - ids.start, self.vector_size)) for ids in self.slices())
        return da.concatenate([da.from_delayed(read(self._store, ids), shape, np.float32) for ids, shape in shapes])

    def to_dask_dataframe(self) -> Any:
        """Return a Dask DataFrame with the columns of `to_pandas`; ids are its index, with known divisions.

        Partitions are the chunks of `to_dask_array`, and are read as these are, with the words.

        Raises
        ------
        MissingExtraError
            If Dask's dataframes, which need pandas and pyarrow, are not installed.

        Examples
        --------
        >>> from daskw2v import Vectors
        >>> table = Vectors(["king", "queen"], [[3, 1], [2, 2]]).to_dask_dataframe()
        >>> table["word"].compute(scheduler="sync").tolist()
        ['king', 'queen']
        """
        if self._store is None or not len(self.vocabulary):
            return dd.from_pandas(self.to_pandas(), chunksize=self._words_at_once())
        slices = list(self.slices())
        meta = make_frame((), np.empty(0, np.int64), np.empty((0, self.vector_size), np.float32))
        divisions = [*(ids.start for ids in slices), len(self.vocabulary) - 1]
        return dd.from_map(read_frame, slices, store=self._store, meta=meta, divisions=divisions, label="vectors")

    def _words_at_once(self) -> int:
        """Return the number of words of the first range of `slices`; 1 without words."""
        return next((ids.stop for ids in self.slices()), 1)

    def to_dask_neighbours(self, words: Iterable[Word] | None = None, topn: int = 10) -> Any:
        """Return the nearest words of many words as a Dask DataFrame, such as the graph of all words.

        The neighbours are as in `nearest`. Each task searches for the neighbours of 4,096 words: its worker opens
        the model, reads all rows once, block by block, and takes about 400 MB. `to_parquet` of the result writes it.

        Parameters
        ----------
        words
            Words, also words of the subword network; all words of the vocabulary by default.
        topn
            Number of neighbours of each; all if the model has fewer.

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
        topn = as_positive_int("topn", topn)
        if self._store is None:
            raise ParameterError(
                "These vectors are in memory alone, where no worker reads them.",
                "Open the folder that `save` writes; if a pickle left out their storage options, open their URL again.",
            )
        if words is None:
            queries: Sequence[str] | range = range(len(self))
        else:
            queries = [as_text(word) for word in as_word_list(words)]
            self._ids(queries)  # before the cluster works
        parts = [queries[part] for part in cut(len(queries), TASK_WORDS)] or [queries]
        meta = _neighbours_frame([], np.empty(0, np.int64), [], np.empty(0, np.float32))
        return dd.from_map(_search, parts, store=self._store, topn=topn, meta=meta, label="neighbours")


def make_frame(words: Iterable[str], counts: Int64Array, rows: Float32Array, first: int = 0) -> Any:
    """Return words as a pandas DataFrame: columns word, count, and v0 to v{D-1} (float32).

    Parameters
    ----------
    words, counts, rows
        The n words, their counts, shape (n,), and vectors, shape (n, D).
    first
        Id of the first word; the ids are the index.
    """
    index = pd.RangeIndex(first, first + len(rows), name="id")
    table = pd.DataFrame(rows, index, [f"v{i}" for i in range(rows.shape[1])])
    table.insert(0, "word", pd.Series(list(words), index, "string"))
    table.insert(1, "count", pd.Series(counts, index, np.int64))
    return table


def arrow_schema(vector_size: int) -> Any:
    """Return the schema of `Vectors.to_arrow`."""
    vector = pa.list_(pa.float32(), vector_size)
    return pa.schema([("word", pa.string()), ("count", pa.int64()), ("vector", vector)])


def read_rows(store: Store, ids: slice) -> Float32Array:
    """Read the vectors of a range of ids of a version, shape (n, D)."""
    return read_table(store, "input", ids.start, ids.stop)


def read_frame(ids: slice, store: Store) -> Any:
    """Read the words of a range of ids of a version as a DataFrame, as `make_frame` returns it."""
    words = _read_words(store, ids)
    return make_frame(words, words.counts, read_rows(store, ids), ids.start)


def _read_words(store: Store, ids: slice) -> Vocabulary:
    """Read the words and counts of a range of ids of a version."""
    group = open_subgroup(store.open_group(), "vocabulary")
    offsets = read_array(group, "offsets", ids.start, ids.stop + 1)
    words = read_array(group, "words", int(offsets[0]), int(offsets[-1]))
    return Vocabulary(words, offsets - offsets[0], read_array(group, "counts", ids.start, ids.stop))


def _search(words: Sequence[str] | range, store: Store, topn: int) -> Any:
    """Return the nearest words of texts, or of a range of ids, in a version, as `Frames.to_dask_neighbours` does."""
    # Rows stay in the store: a worker's tasks take memory for blocks, whatever the size of the model
    model = WordQueries._read(store, False)
    queries = model.vocabulary.between(words.start, words.stop) if isinstance(words, range) else words
    ids, cosines = model.nearest(queries, topn)
    ranks = np.tile(np.arange(1, ids.shape[1] + 1), len(queries))
    repeated = [word for word in queries for _ in range(ids.shape[1])]
    distinct, positions = np.unique(ids.ravel(), return_inverse=True)
    texts = [model.vocabulary.word(id_) for id_ in distinct.tolist()]
    neighbours = [texts[position] for position in positions.tolist()]
    return _neighbours_frame(repeated, ranks, neighbours, cosines.ravel())


def _neighbours_frame(words: Iterable[str], ranks: Int64Array, neighbours: Iterable[str], cosines: Float32Array) -> Any:
    """Return a DataFrame of n neighbours: columns word, rank, neighbour and cosine."""
    first, second = (pd.Series(list(texts), dtype="string") for texts in (words, neighbours))
    return pd.DataFrame({"word": first, "rank": ranks, "neighbour": second, "cosine": cosines})
