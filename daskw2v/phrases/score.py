"""Scores of bigrams, and the rules of Params that decide which are phrases."""

import math
from collections.abc import Callable
from dataclasses import fields
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from daskw2v.config.params import Params
from daskw2v.config.registry import find
from daskw2v.config.settings import default_of
from daskw2v.errors import ParameterError
from daskw2v.types import Float64Array, Int64Array


class BigramTotals(NamedTuple):
    """Totals of a text.

    Parameters
    ----------
    words, entries
        Number of words; number of distinct words and distinct bigrams together.
    """

    words: int
    entries: int


class Scoring(NamedTuple):
    """A score of bigrams.

    Parameters
    ----------
    score
        Function of the counts of bigrams, of their first and of their second words, of min_count and of totals.
    threshold
        Default threshold: a phrase has a score above it.
    low, high
        Range of useful thresholds: above `low`, at most `high`.
    """

    score: Callable[[Int64Array, Int64Array, Int64Array, int, BigramTotals], Float64Array]
    threshold: float
    low: float
    high: float


# Float64 in gensim's order of operations, so that both find exactly the same phrases.


def _default(
    both: Int64Array, left: Int64Array, right: Int64Array, min_count: int, totals: BigramTotals
) -> Float64Array:
    """Mikolov et al. (2013), with gensim's factor, which makes thresholds independent of the length of the text."""
    scores: Float64Array = (both - min_count) / (left.astype(np.float64) * right) * totals.entries
    return scores


def _npmi(both: Int64Array, left: Int64Array, right: Int64Array, _: int, totals: BigramTotals) -> Float64Array:
    """Bouma (2009): 1 for words that only occur together, 0 for words that occur together by chance."""
    together, first, second = (counts / totals.words for counts in (both, left, right))
    scores: Float64Array = _log(together / (first * second)) / -_log(together)
    return scores


def _log(values: Float64Array) -> Float64Array:
    # NumPy's log differs in the last bit between processors
    return np.fromiter(map(math.log, values.tolist()), np.float64, len(values))


SCORINGS = {"default": Scoring(_default, 10.0, 0.0, math.inf), "npmi": Scoring(_npmi, 0.5, -1.0, 1.0)}


class PhraseRules(NamedTuple):
    """Rules that decide which bigrams are joined, and how.

    Parameters
    ----------
    min_count, threshold, scoring, delimiter
        The Params `phrase_min_count`, `phrase_threshold`, `phrase_scoring` and `phrase_delimiter`.
    """

    min_count: int
    threshold: float
    scoring: str
    delimiter: str

    @classmethod
    def of(cls, params: Params) -> Self:
        """Return the rules of Params, with the default threshold of the scoring if none is given."""
        own = find(SCORINGS, "phrase_scoring", params.phrase_scoring).threshold
        threshold = own if params.phrase_threshold is None else params.phrase_threshold
        return cls(params.phrase_min_count, threshold, params.phrase_scoring, params.phrase_delimiter)

    def choose(
        self, both: Int64Array, left: Int64Array, right: Int64Array, totals: BigramTotals
    ) -> tuple[npt.NDArray[np.bool_], Float64Array]:
        """Decide which bigrams are phrases.

        Parameters
        ----------
        both, left, right
            Counts of each bigram, at least `min_count`, of its first and of its second word, shape (n,).
        totals
            Totals of the text.

        Returns
        -------
        chosen, scores
            Shape (n,) each.
        """
        scores = SCORINGS[self.scoring].score(both, left, right, self.min_count, totals)
        return scores > self.threshold, scores


def check_phrases(params: Params) -> None:
    """Refuse options that would be ignored, thresholds out of range, and phrases with `base_matrix`.

    Raises
    ------
    ParameterError
        If an option of phrases is set without `phrases`, the threshold is out of the scoring's range, or `base_matrix`
        is given.
    """
    if not params.phrases:
        for f in fields(params):
            if "phrases" in f.metadata["needs"] and (value := getattr(params, f.name)) != default_of(f):
                raise ParameterError(
                    f"{f.name}={value!r} changes nothing for phrases=0.",
                    f"Give phrases=1 or more, or leave {f.name} out.",
                )
        return
    scoring, threshold = SCORINGS[params.phrase_scoring], PhraseRules.of(params).threshold
    if not scoring.low < threshold <= scoring.high:
        bounds = f"above {scoring.low:g}" + ("" if math.isinf(scoring.high) else f" and at most {scoring.high:g}")
        raise ParameterError(
            f"phrase_threshold={threshold!r} is out of range for phrase_scoring={params.phrase_scoring!r}.",
            f"Give a threshold {bounds}.",
        )
    base = params.flat().get("base_matrix")
    if base is not None:
        raise ParameterError(
            f"phrases={params.phrases} cannot be used with base_matrix={base!r}: new text changes "
            "which words of the old text are joined.",
            "Leave base_matrix out and read all text again, or leave phrases out.",
        )


def with_threshold(params: Params) -> Params:
    """Return Params with the default threshold of the scoring, if there are phrases and none is given."""
    return params.replace(phrase_threshold=PhraseRules.of(params).threshold) if params.phrases else params
