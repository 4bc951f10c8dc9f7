"""The nearest words of many words, on the workers of a Dask cluster: each task searches for some of them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from daskw2v.extras import Extra
from daskw2v.models.queries.word_queries import WordQueries
from daskw2v.models.stored.threads import cut
from daskw2v.store.storage import Store
from daskw2v.types import Float32Array, Int64Array
from daskw2v.vocabulary.vocabulary import Vocabulary

pd, dd = Extra("pandas", "events"), Extra("dask.dataframe", "events")

Read = Callable[[Store, bool], WordQueries]  # opens a version's folder, in memory or not

# Words of a task, which reads all rows once: the search takes longer than reading, even from an object store
TASK_WORDS = 4096


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
    meta = _frame([], np.empty(0, np.int64), [], np.empty(0, np.float32))
    return dd.from_map(_search, parts, read=read, store=store, topn=topn, meta=meta, label="neighbours")


def _search(words: Sequence[str] | range, read: Read, store: Store, topn: int) -> Any:
    # Rows stay in the store: a worker's tasks take memory for blocks, whatever the size of the model
    model = read(store, False)
    asked = model.vocabulary.between(words.start, words.stop) if isinstance(words, range) else words
    ids, cosines = model.nearest(asked, topn)
    ranks = np.tile(np.arange(1, ids.shape[1] + 1), len(asked))
    repeated = [word for word in asked for _ in range(ids.shape[1])]
    return _frame(repeated, ranks, _texts(model.vocabulary, ids.ravel()), cosines.ravel())


def _texts(vocabulary: Vocabulary, ids: Int64Array) -> list[str]:
    distinct, places = np.unique(ids, return_inverse=True)
    texts = [vocabulary.word(id_) for id_ in distinct.tolist()]
    return [texts[place] for place in places.tolist()]


def _frame(words: Iterable[str], ranks: Int64Array, found: Iterable[str], cosines: Float32Array) -> Any:
    first, second = (pd.Series(list(texts), dtype="string") for texts in (words, found))
    return pd.DataFrame({"word": first, "rank": ranks, "neighbour": second, "cosine": cosines})
