"""Scores of bigrams, and the rules of Params that decide which are phrases."""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.types import Float64Array, Int64Array


class BigramTotals(NamedTuple):
    """Totals of a text, which scores of bigrams depend on.

    Parameters
    ----------
    n_tokens
        Number of tokens.
    n_entries
        Number of distinct words plus number of distinct bigrams.
    """

    n_tokens: int
    n_entries: int


class Scoring(NamedTuple):
    """A way to score bigrams.

    Parameters
    ----------
    score
        Function that returns the scores of n bigrams: of the counts of the bigrams, of their first words and of their
        second words, shape (n,) each; of `min_count`; and of the totals of the text.
    threshold
        Default threshold: bigrams with a score above it are phrases.
    low, high
        Range of useful thresholds: above `low`, at most `high`.
    """

    score: Callable[[Int64Array, Int64Array, Int64Array, int, BigramTotals], Float64Array]
    threshold: float
    low: float
    high: float


# Float64 in gensim's order of operations, so that both find exactly the same phrases.


def _score_default(
    both: Int64Array, left: Int64Array, right: Int64Array, min_count: int, totals: BigramTotals
) -> Float64Array:
    """Return the score of Mikolov et al. (2013), with gensim's factor: thresholds suit texts of any length."""
    scores: Float64Array = (both - min_count) / (left.astype(np.float64) * right) * totals.n_entries
    return scores


def _score_npmi(both: Int64Array, left: Int64Array, right: Int64Array, _: int, totals: BigramTotals) -> Float64Array:
    """Return the score of Bouma (2009): 1 for words that only occur together, 0 for chance."""
    together, first, second = (counts / totals.n_tokens for counts in (both, left, right))
    scores: Float64Array = _log(together / (first * second)) / -_log(together)
    return scores


def _log(values: Float64Array) -> Float64Array:
    """Return the natural logarithm of each value, with equal bits on all processors, which NumPy's does not have."""
    return np.fromiter(map(math.log, values.tolist()), np.float64, len(values))


SCORINGS = {"default": Scoring(_score_default, 10.0, 0.0, math.inf), "npmi": Scoring(_score_npmi, 0.5, -1.0, 1.0)}


class PhraseRules(NamedTuple):
    """Rules that decide which bigrams are joined, and how.

    Parameters
    ----------
    min_count, threshold, scoring, delimiter
        As in `PhraseDetection`.
    """

    min_count: int
    threshold: float
    scoring: str
    delimiter: str

    def choose(
        self, both: Int64Array, left: Int64Array, right: Int64Array, totals: BigramTotals
    ) -> tuple[npt.NDArray[np.bool_], Float64Array]:
        """Return whether each of n bigrams is a phrase, and its score.

        Parameters
        ----------
        both, left, right
            Count of each bigram, which is at least `min_count`, of its first word and of its second word, shape (n,).
        totals
            Totals of the text.

        Returns
        -------
        is_phrase, scores
            Bool and float64, shape (n,) each.
        """
        scores = SCORINGS[self.scoring].score(both, left, right, self.min_count, totals)
        return scores > self.threshold, scores
