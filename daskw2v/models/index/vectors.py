"""Vectors with an index for nearest neighbours; how an index is built, and its recall measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from daskw2v.config.registry import find
from daskw2v.errors import ParameterError
from daskw2v.models.index.kinds import EFFORT, KINDS, Searcher
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.arguments import as_positive_int
from daskw2v.models.stored.blocks import cut, normalize_queries, normalize_rows
from daskw2v.models.stored.index_files import IndexSummary, describe_file, read_file, read_summary, write_index
from daskw2v.models.stored.quantization import check_part_size
from daskw2v.models.stored.store import read_attempt
from daskw2v.models.versions.resolving import read_resolved, resolve
from daskw2v.store.retries import TIMEOUT
from daskw2v.store.storage import Store
from daskw2v.store.urls import Location
from daskw2v.types import Float32Array, Int64Array
from daskw2v.vocabulary.vocabulary import Word

_QUERIES = 256  # queries whose candidates are searched at once
_COMPARED = 1 << 15  # candidates whose rows are in memory at once: of _QUERIES queries with the default effort
_RECALL_QUERIES = 1000  # words that the recall is measured with
_TOPN = 10
_MAX_LINKS = 512


@dataclass(frozen=True, eq=False, repr=False)
class IndexedVectors(Vectors):
    """Vectors with an index, which finds the nearest words, or most of them, with exact cosines.

    `nearest`, `most_similar` and analogies by `3cosadd` use the index, which finds all of the nearest words if it is
    `int8`, and most of them otherwise. Where it finds too few, or another word may be nearer by the bounds of `int8`,
    the search is done again without it. `exact` searches without the index. Searches with the index refuse
    `restrict_vocab`; all else is as in `Vectors`. Words outside the vocabulary can be queries but not neighbours.

    Parameters
    ----------
    searcher
        The index.
    summary
        Summary of the index, with its recall.

    Examples
    --------
    >>> import daskw2v
    >>> daskw2v.Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]]).save("indexed")
    >>> _ = daskw2v.build_index("indexed", kind="int8")
    >>> vectors = daskw2v.IndexedVectors.open("indexed")
    >>> vectors.most_similar("king", topn=1)[0][0], vectors.summary.kind
    ('queen', 'int8')
    """

    searcher: Searcher | None = None
    summary: IndexSummary | None = None

    @classmethod
    def open(
        cls,
        url: Location,
        storage_options: Mapping[str, Any] | None = None,
        in_memory: bool | None = None,
        store_timeout: float = TIMEOUT,
        version: str | None = None,
        effort: int = EFFORT,
    ) -> Self:
        """Open a trained model and its index, which `build_index` has built.

        Do not open an index that you do not trust: build your own. Its checksum detects damage, not attacks.

        Parameters
        ----------
        url, storage_options, in_memory, store_timeout, version
            As in `Vectors.open`. The index itself is loaded into memory.
        effort
            Candidates that a search keeps. With more candidates, an index has a higher recall and takes longer, and
            fewer searches of an `int8` index are done again without it.

        Raises
        ------
        ParameterError
            If `effort` is below 1.
        StoreError
            As `Vectors.open`; also if there is no index, or it is damaged or of other vectors.
        VocabularyError
            If the vocabulary is damaged.
        MissingExtraError
            If the index needs usearch, which is not installed.

        Examples
        --------
        >>> import daskw2v
        >>> daskw2v.Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]]).save("memory://open-index")
        >>> _ = daskw2v.build_index("memory://open-index", kind="int8")
        >>> daskw2v.IndexedVectors.open("memory://open-index", effort=200).nearest("king", topn=2)[0].tolist()
        [1, 2]
        """
        effort = as_positive_int("effort", effort)

        read = partial(cls._read_with_index, in_memory=in_memory, effort=effort)
        return read_resolved(read, url, storage_options, store_timeout, version)

    @classmethod
    def _read_with_index(cls, store: Store, in_memory: bool | None, effort: int) -> Self:
        """Open a version in a folder with its index."""
        vectors, summary = cls._read(store, in_memory), read_summary(store)
        shape = len(vectors), vectors.vector_size
        searcher = KINDS[summary.kind](shape, effort)
        searcher.read(read_file(store, summary, shape), store.url)
        vars(vectors).update(searcher=searcher, summary=summary)
        return vectors

    def _nearest(
        self, queries: Float32Array, topn: int, restrict_vocab: int | None = None
    ) -> tuple[Int64Array, Float32Array]:
        """Return ids and cosines as `WordQueries._nearest` does. Where the index is unsure, all words are searched."""
        assert self.searcher is not None
        if restrict_vocab is not None:
            problem = f"restrict_vocab={restrict_vocab!r}: an index always searches all words."
            raise ParameterError(problem, "Use `exact` instead.")
        units, topn = normalize_queries(queries), min(topn, len(self))
        ids, cosines = np.empty((len(units), topn), np.int64), np.empty((len(units), topn), np.float32)
        unsure = np.empty(len(units), bool)
        for part in cut(len(units), _QUERIES):
            candidates, bounds = self.searcher.candidates(units[part], topn)
            ids[part], cosines[part] = self._rank_candidates(units[part], candidates, topn)
            unsure[part] = bounds > cosines[part, -1]
        if unsure.any():
            ids[unsure], cosines[unsure] = super()._nearest(units[unsure], topn)
        return ids, cosines

    def exact(
        self, queries: Word | Sequence[Word] | npt.ArrayLike, topn: int = 10, restrict_vocab: int | None = None
    ) -> tuple[Int64Array, Float32Array]:
        """Find the nearest words by comparing with all vectors, not with the index.

        Parameters, results and errors are those of `Vectors.nearest`.

        Examples
        --------
        >>> import daskw2v
        >>> daskw2v.Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]]).save("memory://exact")
        >>> _ = daskw2v.build_index("memory://exact", kind="int8")
        >>> daskw2v.IndexedVectors.open("memory://exact").exact("king", topn=2)[0].tolist()
        [1, 2]
        """
        return self._search_words(super()._nearest, queries, topn, restrict_vocab)

    def _rank_candidates(self, units: Float32Array, ids: Int64Array, topn: int) -> tuple[Int64Array, Float32Array]:
        """Return ids and exact cosines of the `topn` best candidates of each query, both of shape (n, topn)."""
        cosines = np.empty(ids.shape, np.float32)
        for part in cut(len(ids), max(1, _COMPARED // ids.shape[1])):
            distinct_ids, positions = np.unique(ids[part], return_inverse=True)
            rows = self.units(np.maximum(distinct_ids, 0))[positions.reshape(ids[part].shape)]
            cosines[part] = np.einsum("nd,nkd->nk", units[part], rows)
        order = np.lexsort((ids, -cosines), axis=1)[:, :topn]
        return np.take_along_axis(ids, order, axis=1), np.take_along_axis(cosines, order, axis=1)


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
    ids = np.sort(np.random.default_rng(0).choice(len(indexed), min(_RECALL_QUERIES, len(indexed)), replace=False))
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
