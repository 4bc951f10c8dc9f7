"""Vectors with an index for approximate nearest neighbours."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from daskw2v.errors import ParameterError
from daskw2v.models.index.files import IndexSummary, read_file, read_summary
from daskw2v.models.index.searcher import EFFORT, Searcher
from daskw2v.models.opened import open_model
from daskw2v.models.queries import at_least_one, query_vectors
from daskw2v.models.resolving import read_resolved
from daskw2v.models.units import unit
from daskw2v.models.vectors import Vectors
from daskw2v.store.retries import TIMEOUT
from daskw2v.store.storage import Store
from daskw2v.store.urls import Location
from daskw2v.types import Float32Array, Int64Array


@dataclass(frozen=True, eq=False, repr=False)
class IndexedVectors(Vectors):
    """Vectors with an index, which finds most of the nearest words, with exact cosines.

    `nearest`, `most_similar` and analogies by `3cosadd` use the index; everything else is as in `Vectors`. `exact`
    searches without the index. Words whose vectors a subword network computes can be queries but not neighbours.

    Parameters
    ----------
    searcher
        The index.
    summary
        Summary of the index, with its recall.
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
            Candidates that a search keeps. More candidates raise recall and take longer.

        Raises
        ------
        StoreError
            As `Vectors.open`; also if there is no index, or it is damaged or of other vectors.
        VocabularyError
            If the vocabulary is damaged.
        MissingExtraError
            If usearch is not installed.
        """
        effort = at_least_one("effort", effort)

        def read(store: Store) -> Any:
            opened, summary = open_model(store, in_memory), read_summary(store)
            searcher = Searcher(opened.vectors.shape[1], effort)
            searcher.read(read_file(store, summary, opened.vectors.shape), store.url)
            return cls(*opened, searcher, summary)

        opened: Self = read_resolved(read, url, storage_options, store_timeout, version)
        return opened

    def nearest(
        self, vectors: npt.ArrayLike, topn: int = 10, restrict_vocab: int | None = None
    ) -> tuple[Int64Array, Float32Array]:
        """Find most of the words nearest to vectors by cosine.

        Parameters
        ----------
        vectors, topn
            As in `Vectors.nearest`.
        restrict_vocab
            Must be None, as an index always searches all words.

        Returns
        -------
        ids, cosines
            As in `Vectors.nearest`. If the index finds fewer than `topn` words, the search is exact.

        Raises
        ------
        ParameterError
            As `Vectors.nearest`, and if `restrict_vocab` is given.
        """
        assert self.searcher is not None
        if restrict_vocab is not None:
            raise ParameterError(
                f"restrict_vocab={restrict_vocab!r}: an index always searches all words.", "Use `exact` instead."
            )
        queries = query_vectors(vectors, self.vector_size)
        single, units = queries.ndim == 1, unit(np.atleast_2d(queries))
        topn = min(at_least_one("topn", topn), len(self))
        ids, cosines = self._ranked(units, self.searcher.candidates(units, topn))
        short = (ids < 0).any(axis=1)
        if short.any():
            ids[short], cosines[short] = self.exact(units[short], topn)
        return (ids[0], cosines[0]) if single else (ids, cosines)

    def exact(
        self, vectors: npt.ArrayLike, topn: int = 10, restrict_vocab: int | None = None
    ) -> tuple[Int64Array, Float32Array]:
        """Find the words nearest to vectors, as `Vectors.nearest` does."""
        return super().nearest(vectors, topn, restrict_vocab)

    def _ranked(self, units: Float32Array, ids: Int64Array) -> tuple[Int64Array, Float32Array]:
        """Sort candidates by exact cosines."""
        wanted, places = np.unique(ids, return_inverse=True)
        rows = self.units(np.maximum(wanted, 0))[places.reshape(ids.shape)]
        cosines = np.einsum("nd,nkd->nk", units, rows)
        order = np.lexsort((ids, -cosines), axis=1)
        return np.take_along_axis(ids, order, axis=1), np.take_along_axis(cosines, order, axis=1)
