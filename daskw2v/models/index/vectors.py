"""Vectors with an index for nearest neighbours."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from daskw2v.errors import ParameterError
from daskw2v.models.index.kinds import EFFORT, KINDS, Searcher
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.arguments import as_positive_int
from daskw2v.models.stored.blocks import cut, normalize_queries
from daskw2v.models.stored.index_files import IndexSummary, read_file, read_summary
from daskw2v.models.versions.resolving import read_resolved
from daskw2v.store.retries import TIMEOUT
from daskw2v.store.storage import Store
from daskw2v.store.urls import Location
from daskw2v.types import Float32Array, Int64Array
from daskw2v.vocabulary.vocabulary import Word

_QUERIES = 256  # queries whose candidates are searched at once
_COMPARED = 1 << 15  # candidates whose rows are in memory at once: of as many queries for ten words each


@dataclass(frozen=True, eq=False, repr=False)
class IndexedVectors(Vectors):
    """Vectors with an index, which finds the nearest words, or most of them, with exact cosines.

    `nearest`, `most_similar` and analogies by `3cosadd` use the index, which finds all of the nearest words if it is
    `int8`, and most of them otherwise. Where it finds too few, the search is done again without it. `exact` searches
    without the index, which has no `restrict_vocab`; everything else is as in `Vectors`. Words whose vectors a subword
    network computes can be queries but not neighbours.

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
        """Return ids and cosines of the nearest words, (n, topn). Where the index is unsure, all words are searched."""
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
