"""Stability: how many nearest neighbours two models have in common."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from daskw2v.errors import ParameterError
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.queries.word_queries import QUERIES
from daskw2v.models.stored.blocks import Ranking, cut
from daskw2v.types import Int64Array

_FREQUENT = 1000  # words compared by default


@dataclass(frozen=True)
class StabilityResult:
    """Agreement of the nearest neighbours of words in two models.

    Parameters
    ----------
    overlap
        Share of a word's neighbours in one model that are also neighbours in the other, 0..1, mean over words; None
        without words or neighbours.
    jaccard
        Jaccard similarity of a word's neighbours in both models, 0..1, mean over words; None if `overlap` is.
    words
        Number of words compared. Both models know them.
    missing
        Number of words skipped, as one of the models lacks them.
    topn
        Number of neighbours of each word that were compared.
    overlaps
        Overlap by word.
    """

    overlap: float | None
    jaccard: float | None
    words: int
    missing: int
    topn: int
    overlaps: dict[str, float]


def neighbour_stability(a: Vectors, b: Vectors, words: Sequence[str] | None = None, topn: int = 10) -> StabilityResult:
    """Compare the nearest neighbours of words in two models.

    The overlap is the stability of Wendlandt, Kummerfeld and Mihalcea (2018, section 3), who use ten neighbours. The
    Jaccard similarity is used by Antoniak and Mimno (2018, section 5). Only words that both models know are
    neighbours, so a difference of vocabularies does not count. Models in a store are read block by block.

    Parameters
    ----------
    a, b
        Two models, such as two runs over one corpus, or yesterday's and today's.
    words
        Words to compare; duplicates count once. The default is the 1,000 most frequent words of `a` that `b` knows.
    topn
        Number of neighbours of each word. It is lowered if the models share fewer words.

    Raises
    ------
    ParameterError
        If `topn` is below 1.
    """
    if topn < 1:
        raise ParameterError(f"topn={topn!r} is below 1.", "Give a topn of at least 1.")
    in_b = b.vocabulary.find_all(a.vocabulary).astype(np.int64)
    common = np.flatnonzero(in_b >= 0)
    if words is None:
        ids, missing = common[:_FREQUENT], 0
    else:
        ids_in_a = [a.vocabulary.find(word) for word in dict.fromkeys(words)]
        ids = np.array([id_ for id_ in ids_in_a if id_ is not None and in_b[id_] >= 0], np.int64)
        missing = len(ids_in_a) - len(ids)
    k = min(topn, len(common) - 1)
    if not len(ids) or k < 1:
        return StabilityResult(None, None, len(ids), missing, max(k, 0), {})
    in_a = np.full(len(b), -1)
    in_a[in_b[common]] = common
    b_neighbours = in_a[_neighbours(b, in_b[ids], in_a >= 0, k)]
    a_neighbours = _neighbours(a, ids, in_b >= 0, k)
    shared = np.array([len(np.intersect1d(x, y)) for x, y in zip(a_neighbours, b_neighbours, strict=True)])
    overlaps = shared / k
    overlaps_by_word = dict(zip((a.vocabulary.word(i) for i in ids.tolist()), overlaps.tolist(), strict=True))
    jaccard = float((shared / (2 * k - shared)).mean())
    return StabilityResult(float(overlaps.mean()), jaccard, len(ids), missing, k, overlaps_by_word)


def _neighbours(vectors: Vectors, ids: Int64Array, eligible: npt.NDArray[np.bool_], n: int) -> Int64Array:
    """Return the ids of the n nearest eligible words of each word, itself excluded, shape (len(ids), n), best first.

    `eligible` states for each id whether the word may be a neighbour, shape (V,). More than n words must be eligible.
    """
    units = vectors.units(ids)
    groups = list(cut(len(ids), QUERIES))
    rankings = [Ranking(group.stop - group.start, n) for group in groups]
    for block in vectors.blocks_for(min(len(ids), QUERIES)):
        excluded = ~eligible[block.ids]
        for group, ranking in zip(groups, rankings, strict=True):
            scores = block.cosines(units[group])
            scores[:, excluded] = -np.inf
            query_columns = block.columns(ids[group])
            queried = np.flatnonzero(query_columns >= 0)
            scores[queried, query_columns[queried]] = -np.inf
            ranking.add(scores, block.ids)
    return np.concatenate([ranking.best()[0] for ranking in rankings])
