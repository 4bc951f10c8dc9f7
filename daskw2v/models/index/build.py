"""Builds an index and measures its recall."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from daskw2v.config.registry import find
from daskw2v.errors import ParameterError
from daskw2v.models.index.kinds import EFFORT, KINDS
from daskw2v.models.index.vectors import IndexedVectors
from daskw2v.models.stored.arguments import as_positive_int
from daskw2v.models.stored.blocks import normalize_rows
from daskw2v.models.stored.index_files import IndexSummary, describe_file, write_index
from daskw2v.models.stored.quantization import check_part_size
from daskw2v.models.stored.store import read_attempt
from daskw2v.models.versions.resolving import resolve
from daskw2v.store.storage import Store
from daskw2v.store.urls import Location
from daskw2v.types import Int64Array

_QUERIES = 1000  # words that the recall is measured with
_TOPN = 10
_MAX_LINKS = 512


def build_index(
    url: Location,
    storage_options: Mapping[str, Any] | None = None,
    *,
    version: str | None = None,
    kind: str = "hnsw",
    connectivity: int | None = None,
    expansion: int | None = None,
    part_size: int | None = None,
    threads: int = 0,
) -> IndexSummary:
    """Build the index of a finished version, and measure its recall. An existing index is replaced.

    Parameters
    ----------
    url, storage_options, version
        As in `Vectors.open`.
    kind
        `hnsw`, a graph, finds most of the nearest words in time that hardly grows with the number of words. `int8`, a
        table of a quarter of the vectors' size, finds what exact search finds. `product`, a table of a 16th, and
        `binary`, one of a 32nd, find most of it. Tables need no extra.
    connectivity
        Links of a word in the graph, 16 by default, twice as many on its lowest level. More links raise recall and take
        memory.
    expansion
        Candidates for a word's links while building, 128 by default. More candidates raise recall and take time.
    part_size
        Dimensions that a byte of a `product` index stands for, 4 by default. Smaller parts raise recall and take
        memory.
    threads
        Threads to build with; all cores by default. Only one thread gives the same bits of a graph each time.

    Returns
    -------
    summary
        Summary of the index, with its recall.

    Raises
    ------
    ParameterError
        If there are no words, no such kind, a number is out of range, or the kind does not read it.
    StoreError
        As `Vectors.open`.
    MissingExtraError
        If usearch is needed, which is not installed.

    Examples
    --------
    >>> import daskw2v
    >>> daskw2v.Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]]).save("to-index")
    >>> summary = daskw2v.build_index("to-index", kind="int8")
    >>> summary.words, summary.recall
    (3, 1.0)
    """
    values = {"connectivity": connectivity, "expansion": expansion, "part_size": part_size}
    options, readable = {name: n for name, n in values.items() if n is not None}, find(KINDS, "kind", kind).OPTIONS
    for name, value in options.items():
        if name not in readable:
            readers = " or ".join(repr(other) for other, reader in KINDS.items() if name in reader.OPTIONS)
            problem = f"kind={kind!r} does not read {name}={value}."
            raise ParameterError(problem, f"Leave it out, or give kind={readers}.")
        as_positive_int(name, value)
    if connectivity is not None and not 2 <= connectivity <= _MAX_LINKS:
        raise ParameterError(f"connectivity={connectivity} is out of range.", f"Give 2 to {_MAX_LINKS}.")
    if part_size is not None:
        check_part_size(part_size)
    return index_version(resolve(url, storage_options, version=version), kind, threads, **options)


def index_version(store: Store, kind: str = "hnsw", threads: int = 0, **options: int) -> IndexSummary:
    """Build and write the index of the version in a folder, as `build_index` does, without checking its options.

    The folder may be guarded by a lease.
    """
    options, indexed = {**KINDS[kind].OPTIONS, **options}, IndexedVectors._read(store, None)
    if not len(indexed):
        raise ParameterError(f"{store.url} has no words.", "Build an index of a model that has some.")
    shape = len(indexed), indexed.vector_size
    searcher = KINDS[kind](shape, EFFORT, **options)
    for rows in indexed.slices():
        searcher.add(rows.start, normalize_rows(indexed.rows(rows)), threads)
    content = searcher.content()
    searcher = KINDS[kind](shape, EFFORT)
    searcher.read(content, "what was built")
    ids = np.sort(np.random.default_rng(0).choice(len(indexed), min(_QUERIES, len(indexed)), replace=False))
    file, size, digest = describe_file(content)
    summary = IndexSummary(
        words=len(indexed),
        dimensions=indexed.vector_size,
        connectivity=options.get("connectivity", 0),
        expansion=options.get("expansion", 0),
        recall=_measure_recall(replace(indexed, vectors=indexed._rows, searcher=searcher), ids),
        queries=len(ids),
        file=file,
        size=size,
        digest=digest,
        version=read_attempt(store),
        kind=kind,
    )
    write_index(store, summary, content)
    return summary


def _measure_recall(indexed: IndexedVectors, ids: Int64Array) -> float:
    """Return the recall of an index, 0..1: the share of the ten nearest words of each word of `ids` that it finds."""
    units = indexed.units(ids)
    nearest, indexed_ids = (search(units, _TOPN + 1)[0].tolist() for search in (indexed.exact, indexed.nearest))
    expected_ids = [set(row) - {id_} for row, id_ in zip(nearest, ids.tolist(), strict=True)]
    hits = sum(len(neighbours.intersection(row)) for neighbours, row in zip(expected_ids, indexed_ids, strict=True))
    return hits / max(1, sum(map(len, expected_ids)))
