"""Words, counts and vectors as tables of pandas and Arrow, and the nearest words of many words as a table of Dask.

Workers of a Dask cluster read parts of the tables from a store; of the nearest words, each task searches for a part.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from daskw2v.extras import Extra
from daskw2v.models.queries.word_queries import WordQueries
from daskw2v.models.stored.blocks import cut
from daskw2v.models.stored.tables import read_table
from daskw2v.store.arrays import open_subgroup, read_array
from daskw2v.store.storage import Store
from daskw2v.types import Float32Array, Int64Array
from daskw2v.vocabulary.vocabulary import Vocabulary

pa, pd, dd = Extra("pyarrow", "arrow"), Extra("pandas", "events"), Extra("dask.dataframe", "events")

Read = Callable[[Store, bool], WordQueries]  # opens a version's folder, in memory or not

# Words of a task, which reads all rows once: the search takes longer than reading, even from an object store
TASK_WORDS = 4096


def frame(words: Iterable[str], counts: Int64Array, rows: Float32Array, first: int = 0) -> Any:
    """Return words as a pandas DataFrame: columns word, count, and v0 to v{D-1} of float32.

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


def record_batch(words: list[str], counts: Int64Array, rows: Float32Array) -> Any:
    """Return words as an Arrow record batch: columns word, count, and vector, a list of fixed size of float32."""
    schema = arrow_schema(rows.shape[1])
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), type=schema.field("vector").type)
    return pa.record_batch([pa.array(words, pa.string()), pa.array(counts), vectors], schema=schema)


def arrow_schema(vector_size: int) -> Any:
    """Return the schema of `record_batch`."""
    vector = pa.list_(pa.float32(), vector_size)
    return pa.schema([("word", pa.string()), ("count", pa.int64()), ("vector", vector)])


def read_rows(store: Store, ids: slice) -> Float32Array:
    """Read the vectors of a range of words of a version, shape (n, D)."""
    return read_table(store, "input", ids.start, ids.stop)


def read_frame(ids: slice, store: Store) -> Any:
    """Read a range of words of a version as a DataFrame, with the columns of `frame`."""
    words = _read_words(store, ids)
    return frame(words, words.counts, read_rows(store, ids), ids.start)


def neighbours_table(read: Read, store: Store, words: Sequence[str] | range, topn: int) -> Any:
    """Return the neighbours of words as a Dask DataFrame, some thousand words a partition.

    Parameters
    ----------
    read
        Function that opens the model on a worker.
    store
        Folder of the version.
    words
        Words that the model knows, or their ids.
    topn
        Neighbours of each.
    """
    parts = [words[part] for part in cut(len(words), TASK_WORDS)] or [words]
    meta = _neighbours_frame([], np.empty(0, np.int64), [], np.empty(0, np.float32))
    return dd.from_map(_search, parts, read=read, store=store, topn=topn, meta=meta, label="neighbours")


def _read_words(store: Store, ids: slice) -> Vocabulary:
    group = open_subgroup(store.open_group(), "vocabulary")
    offsets = read_array(group, "offsets", ids.start, ids.stop + 1)
    words = read_array(group, "words", int(offsets[0]), int(offsets[-1]))
    return Vocabulary(words, offsets - offsets[0], read_array(group, "counts", ids.start, ids.stop))


def _search(words: Sequence[str] | range, read: Read, store: Store, topn: int) -> Any:
    # Rows stay in the store: a worker's tasks take memory for blocks, whatever the size of the model
    model = read(store, False)
    asked = model.vocabulary.between(words.start, words.stop) if isinstance(words, range) else words
    ids, cosines = model.nearest(asked, topn)
    ranks = np.tile(np.arange(1, ids.shape[1] + 1), len(asked))
    repeated = [word for word in asked for _ in range(ids.shape[1])]
    return _neighbours_frame(repeated, ranks, _texts(model.vocabulary, ids.ravel()), cosines.ravel())


def _texts(vocabulary: Vocabulary, ids: Int64Array) -> list[str]:
    distinct, positions = np.unique(ids, return_inverse=True)
    texts = [vocabulary.word(id_) for id_ in distinct.tolist()]
    return [texts[position] for position in positions.tolist()]


def _neighbours_frame(words: Iterable[str], ranks: Int64Array, neighbours: Iterable[str], cosines: Float32Array) -> Any:
    first, second = (pd.Series(list(texts), dtype="string") for texts in (words, neighbours))
    return pd.DataFrame({"word": first, "rank": ranks, "neighbour": second, "cosine": cosines})
