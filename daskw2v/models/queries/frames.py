"""Words, counts and vectors as tables of pandas and Arrow; and the parts of them that workers read from a store."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from daskw2v.extras import Extra
from daskw2v.models.stored.tables import read_table
from daskw2v.store.arrays import open_subgroup, read_array
from daskw2v.store.storage import Store
from daskw2v.types import Float32Array, Int64Array
from daskw2v.vocabulary.vocabulary import Vocabulary

pa, pd = Extra("pyarrow", "arrow"), Extra("pandas", "events")


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
    """Read the vectors of some words of a version, shape (n, D)."""
    return read_table(store, "input", ids.start, ids.stop)


def read_frame(ids: slice, store: Store) -> Any:
    """Read some words of a version as `frame`."""
    words = _read_words(store, ids)
    return frame(words, words.counts, read_rows(store, ids), ids.start)


def _read_words(store: Store, ids: slice) -> Vocabulary:
    group = open_subgroup(store.open_group(), "vocabulary")
    offsets = read_array(group, "offsets", ids.start, ids.stop + 1)
    words = read_array(group, "words", int(offsets[0]), int(offsets[-1]))
    return Vocabulary(words, offsets - offsets[0], read_array(group, "counts", ids.start, ids.stop))
