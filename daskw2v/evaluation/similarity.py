"""Word similarity: rank correlation of cosines with human scores."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.evaluation.pairs import read_pairs
from daskw2v.evaluation.reading import known_id
from daskw2v.models.queries.vectors import Vectors
from daskw2v.store.urls import Location
from daskw2v.types import Float64Array

FEWEST_PAIRS = 3  # two pairs always correlate perfectly
_DEVIATIONS = NormalDist().inv_cdf(0.975)  # standard deviations on both sides of the mean that hold 95 %


@dataclass(frozen=True)
class SimilarityResult:
    """Outcome of one similarity set.

    Parameters
    ----------
    spearman
        Rank correlation, -1..1; None with fewer than 3 pairs, or if all cosines or all scores are equal.
    low, high
        Bounds of its 95 % confidence interval, as `confidence` computes them; None if undefined.
    pairs
        Number of pairs compared. Both words are in the vocabulary.
    missing
        Number of pairs skipped.
    """

    spearman: float | None
    low: float | None
    high: float | None
    pairs: int
    missing: int

    @property
    def coverage(self) -> float | None:
        """Share of the pairs that were compared, 0..1; None for an empty set."""
        total = self.pairs + self.missing
        return self.pairs / total if total else None


def evaluate_similarity(
    vectors: Vectors, url: Location, storage_options: Mapping[str, Any] | None = None
) -> SimilarityResult:
    """Compare cosines with human scores.

    Parameters
    ----------
    vectors
        What to evaluate.
    url
        File in a layout that `read_pairs` reads. Words are looked up as written, then in lower case.
    storage_options
        Options for fsspec.

    Raises
    ------
    InputError
        If the file cannot be read or a line is malformed.
    """
    left, right, scores, missing = [], [], [], 0
    for first, second, score in read_pairs(url, storage_options):
        a, b = known_id(vectors.vocabulary, first), known_id(vectors.vocabulary, second)
        if a is None or b is None:
            missing += 1
            continue
        left.append(a)
        right.append(b)
        scores.append(score)
    units = vectors.units([*left, *right])
    cosines = np.einsum("ij,ij->i", units[: len(left)], units[len(left) :])
    rho = spearman(cosines, np.array(scores))
    low, high = confidence(rho, len(scores))
    return SimilarityResult(rho, low, high, len(scores), missing)


def spearman(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> float | None:
    """Return the Spearman correlation of two arrays of shape (n,); equal values get their mean rank.

    It is None with fewer than 3 values, or if all values of an array are equal.
    """
    if len(x) < FEWEST_PAIRS:
        return None
    a, b = _centered_ranks(x), _centered_ranks(y)
    scale = math.sqrt((a @ a) * (b @ b))
    return float(a @ b) / scale if scale > 0 else None


def confidence(rho: float | None, n: int) -> tuple[float, float] | tuple[None, None]:
    """Return the bounds of a rank correlation's 95 % confidence interval.

    Fisher's z with the standard error sqrt((1 + rho^2 / 2) / (n - 3)) of Bonett and Wright (2000), "Sample size
    requirements for estimating Pearson, Kendall and Spearman correlations", Psychometrika 65.

    Parameters
    ----------
    rho
        The correlation; None if undefined.
    n
        Number of pairs.

    Returns
    -------
    low, high
        Both None if the interval is undefined: rho is None, -1 or 1, or n is at most 3.
    """
    if rho is None or n <= FEWEST_PAIRS or abs(rho) >= 1:
        return None, None
    z, error = math.atanh(rho), math.sqrt((1 + rho**2 / 2) / (n - FEWEST_PAIRS))
    return math.tanh(z - _DEVIATIONS * error), math.tanh(z + _DEVIATIONS * error)


def _centered_ranks(x: npt.NDArray[Any]) -> Float64Array:
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return np.asarray(ranks - (len(x) + 1) / 2)
