"""The ids of a corpus as a Dask array, shard by shard."""

from typing import Any

import numpy as np

from daskw2v.errors import ParameterError
from daskw2v.extras import Extra
from daskw2v.shards.layout import Corpus, Shard, open_codes
from daskw2v.types import Int32Array
from daskw2v.vocabulary.buckets import shard_paths
from daskw2v.vocabulary.count import StoredVocabulary

dask, da = Extra("dask", "events"), Extra("dask.array", "events")  # loaded when used, and always installed


def corpus_ids(corpus: Corpus, vocabulary: StoredVocabulary) -> Any:
    """Return the ids of a corpus as a Dask array, shape (n_tokens,) int32, in order of positions.

    A chunk is a shard, which a worker reads from the work directory when it is computed. The numbers of tokens that
    lie before each shard are `corpus.bounds`.

    Parameters
    ----------
    corpus
        Result of `build_corpus`.
    vocabulary
        Its `build_vocabulary`. Words outside it are -1.

    Raises
    ------
    ParameterError
        If the vocabulary is of another corpus.
    StoreError
        If the vocabulary is gone; when the array is computed, if a shard is.

    Examples
    --------
    >>> from daskw2v.stages import Store, build_corpus, build_vocabulary, corpus_ids
    >>> store, params = Store("stages"), daskw2v.Params(min_count=1)
    >>> how = {"params": params, "resources": daskw2v.Resources(), "listener": None}
    >>> corpus = build_corpus("text.txt", store, **how)
    >>> vocabulary = build_vocabulary(corpus, store, **how)
    >>> corpus_ids(corpus, vocabulary).compute(scheduler="sync")[:5].tolist()
    [0, 2, 1, 0, 3]
    """
    known = {*shard_paths(vocabulary.home)}
    other = next((shard.path for shard in corpus.shards if shard.path not in known), None)
    if other is not None:
        raise ParameterError(
            f"The vocabulary {vocabulary.key} knows no shard {other}.", "Give what build_vocabulary made of the corpus."
        )
    read, stored = dask.delayed(_read_ids, pure=True), dask.delayed(vocabulary)
    parts = ((read(stored, shard), (shard.n_tokens,)) for shard in corpus.shards)
    return da.concatenate([da.from_delayed(part, shape, np.int32) for part, shape in parts])


def _read_ids(vocabulary: StoredVocabulary, shard: Shard) -> Int32Array:
    codes = open_codes(vocabulary.store, shard)[shard.first : shard.first + shard.n_tokens]
    ids: Int32Array = vocabulary.read_map(shard.path)[codes]
    return ids
