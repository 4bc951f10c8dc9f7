"""How an index is built and measured."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from daskw2v.errors import ParameterError
from daskw2v.locations import Location
from daskw2v.models.index.files import IndexSummary, write_index, written
from daskw2v.models.index.graph import MOST_LINKS, Bytes
from daskw2v.models.index.searcher import EFFORT, Searcher
from daskw2v.models.opened import open_model
from daskw2v.models.queries import at_least_one
from daskw2v.models.ranking import Ids
from daskw2v.models.vectors import Vectors
from daskw2v.models.versions import resolve

_QUERIES = 1000  # words that the recall is measured with
_TOPN = 10


def build_index(
    url: Location,
    storage_options: Mapping[str, Any] | None = None,
    *,
    version: str | None = None,
    connectivity: int = 16,
    expansion: int = 128,
    threads: int = 0,
) -> IndexSummary:
    """Build the index of a finished version, and measure it; one that is there is replaced.

    Parameters
    ----------
    url, storage_options, version
        As in `Vectors.open`.
    connectivity
        Links of a word in the graph, twice as many on its lowest level: more find more, and take memory.
    expansion
        Candidates for each word's links: more find more, and take time.
    threads
        To build with; all cores by default. Only one gives the same bits each time.

    Returns
    -------
    summary
        What its manifest says, the recall among others.

    Raises
    ------
    ParameterError
        If there are no words, or a number is out of range.
    StoreError
        As `Vectors.open`.
    MissingExtraError
        If usearch is not installed.
    """
    if not 2 <= at_least_one("connectivity", connectivity) <= MOST_LINKS // 2:
        raise ParameterError(f"connectivity={connectivity} makes no graph.", f"Give 2 to {MOST_LINKS // 2}.")
    at_least_one("expansion", expansion)
    store = resolve(url, storage_options, version=version)
    vectors = Vectors(*open_model(store, None))
    if not len(vectors):
        raise ParameterError(f"{store.url} has no words.", "Build an index of a model that has some.")
    builder = Searcher(vectors.vector_size, EFFORT, connectivity=connectivity, expansion_add=expansion)
    for block in vectors.blocks():
        builder.add(block.start, block.vectors / block.norms[:, None], threads)
    content = builder.content()
    ids = np.sort(np.random.default_rng(0).choice(len(vectors), min(_QUERIES, len(vectors)), replace=False))
    words, dimensions = vectors.vectors.shape
    summary = IndexSummary(
        words, dimensions, connectivity, expansion, _recall(vectors, content, ids), len(ids), *written(content)
    )
    write_index(store, summary, content)
    return summary


def _recall(vectors: Vectors, content: Bytes, ids: Ids) -> float:
    """Return the share of the words nearest to those of `ids`, themselves left out, that an index finds."""
    searcher, units = Searcher(vectors.vector_size, EFFORT), vectors.units(ids)
    searcher.read(content, "what was built")
    nearest, found = vectors.nearest(units, _TOPN + 1)[0], searcher.candidates(units, _TOPN + 1)
    wanted = [set(row) - {own} for row, own in zip(nearest.tolist(), ids.tolist(), strict=True)]
    hits = sum(len(words.intersection(row)) for words, row in zip(wanted, found.tolist(), strict=True))
    return hits / max(1, sum(map(len, wanted)))
