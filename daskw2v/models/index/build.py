"""Builds an index and measures its recall."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from daskw2v.errors import ParameterError
from daskw2v.models.attempts import attempt_of
from daskw2v.models.index.files import IndexSummary, write_index, written
from daskw2v.models.index.searcher import EFFORT, Searcher
from daskw2v.models.opened import open_model
from daskw2v.models.queries import at_least_one
from daskw2v.models.resolving import resolve
from daskw2v.models.vectors import Vectors
from daskw2v.store.storage import Store
from daskw2v.store.urls import Location
from daskw2v.types import Int64Array, UInt8Array

_QUERIES = 1000  # words that the recall is measured with
_TOPN = 10
_MOST_LINKS = 512


def build_index(
    url: Location,
    storage_options: Mapping[str, Any] | None = None,
    *,
    version: str | None = None,
    connectivity: int = 16,
    expansion: int = 128,
    threads: int = 0,
) -> IndexSummary:
    """Build the index of a finished version, and measure its recall. An existing index is replaced.

    Parameters
    ----------
    url, storage_options, version
        As in `Vectors.open`.
    connectivity
        Links of a word in the HNSW graph, twice as many on its lowest level. More links raise recall and take memory.
    expansion
        Candidates for a word's links while building. More candidates raise recall and take time.
    threads
        Threads to build with; all cores by default. Only one thread gives the same bits each time.

    Returns
    -------
    summary
        Summary of the index, with its recall.

    Raises
    ------
    ParameterError
        If there are no words, or a number is out of range.
    StoreError
        As `Vectors.open`.
    MissingExtraError
        If usearch is not installed.
    """
    if not 2 <= at_least_one("connectivity", connectivity) <= _MOST_LINKS:
        raise ParameterError(f"connectivity={connectivity} is out of range.", f"Give 2 to {_MOST_LINKS}.")
    at_least_one("expansion", expansion)
    store = resolve(url, storage_options, version=version)
    return index_version(store, connectivity, expansion, threads)


def index_version(store: Store, connectivity: int = 16, expansion: int = 128, threads: int = 0) -> IndexSummary:
    """Do the same for the folder of a version, which may be guarded by a lease; nothing is checked."""
    vectors = Vectors(*open_model(store, None))
    if not len(vectors):
        raise ParameterError(f"{store.url} has no words.", "Build an index of a model that has some.")
    builder = Searcher(vectors.vector_size, EFFORT, connectivity=connectivity, expansion_add=expansion)
    for block in vectors.blocks():
        builder.add(block.start, block.vectors / block.norms[:, None], threads)
    content = builder.content()
    ids = np.sort(np.random.default_rng(0).choice(len(vectors), min(_QUERIES, len(vectors)), replace=False))
    words, dimensions = vectors.vectors.shape
    recall = _recall(vectors, content, ids)
    summary = IndexSummary(
        words, dimensions, connectivity, expansion, recall, len(ids), *written(content), attempt_of(store)
    )
    write_index(store, summary, content)
    return summary


def _recall(vectors: Vectors, content: UInt8Array, ids: Int64Array) -> float:
    """Return the share of the nearest words of `ids`, without themselves, that an index finds."""
    searcher, units = Searcher(vectors.vector_size, EFFORT), vectors.units(ids)
    searcher.read(content, "what was built")
    nearest, found = vectors.nearest(units, _TOPN + 1)[0], searcher.candidates(units, _TOPN + 1)
    wanted = [set(row) - {own} for row, own in zip(nearest.tolist(), ids.tolist(), strict=True)]
    hits = sum(len(words.intersection(row)) for words, row in zip(wanted, found.tolist(), strict=True))
    return hits / max(1, sum(map(len, wanted)))
