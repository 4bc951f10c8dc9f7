"""Which bigrams are phrases: scores of counts, and the rules that Params state."""

import math
from collections.abc import Callable
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from daskw2v.errors import ParameterError
from daskw2v.params import Params
from daskw2v.registry import find

Integers = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float64]


class Totals(NamedTuple):
    """What a text has in all.

    Parameters
    ----------
    words, entries
        Words, and distinct words and bigrams together.
    """

    words: int
    entries: int


class Scoring(NamedTuple):
    """A score of bigrams.

    Parameters
    ----------
    score
        Of counts of bigrams, of their first and of their second words, of min_count and of totals.
    threshold
        What it must exceed where Params leave it open.
    low, high
        Thresholds that can tell bigrams apart: above `low`, and up to `high`.
    """

    score: Callable[[Integers, Integers, Integers, int, Totals], Scores]
    threshold: float
    low: float
    high: float


# Float64 in gensim's order of operations: no bigram is a phrase here and none there.


def _default(both: Integers, left: Integers, right: Integers, min_count: int, totals: Totals) -> Scores:
    """Mikolov et al. (2013), with gensim's factor: a threshold means the same in texts of any length."""
    scores: Scores = (both - min_count) / (left.astype(np.float64) * right) * totals.entries
    return scores


def _npmi(both: Integers, left: Integers, right: Integers, _: int, totals: Totals) -> Scores:
    """Bouma (2009): 1 for words that only occur together, 0 for words that meet by chance."""
    together, first, second = (counts / totals.words for counts in (both, left, right))
    scores: Scores = _log(together / (first * second)) / -_log(together)
    return scores


def _log(values: Scores) -> Scores:
    # NumPy's own differs in the last bit from one processor to the other
    return np.fromiter(map(math.log, values.tolist()), np.float64, len(values))


SCORINGS = {"default": Scoring(_default, 10.0, 0.0, math.inf), "npmi": Scoring(_npmi, 0.5, -1.0, 1.0)}


class Rules(NamedTuple):
    """Which bigrams are joined, and by what.

    Parameters
    ----------
    min_count, threshold, scoring, delimiter
        As in Params, with `phrase_` before them.
    """

    min_count: int
    threshold: float
    scoring: str
    delimiter: str

    @classmethod
    def of(cls, params: Params) -> Self:
        """Return the rules that Params state, with the scoring's own threshold where they leave it open."""
        own = find(SCORINGS, "phrase_scoring", params.phrase_scoring).threshold
        threshold = own if params.phrase_threshold is None else params.phrase_threshold
        return cls(params.phrase_min_count, threshold, params.phrase_scoring, params.phrase_delimiter)

    def choose(
        self, both: Integers, left: Integers, right: Integers, totals: Totals
    ) -> tuple[npt.NDArray[np.bool_], Scores]:
        """Tell which bigrams are phrases.

        Parameters
        ----------
        both, left, right
            Occurrences of each bigram, at least `min_count`, of its first and of its second word, shape (n,).
        totals
            Of the text.

        Returns
        -------
        chosen, scores
            Shape (n,) each.
        """
        scores = SCORINGS[self.scoring].score(both, left, right, self.min_count, totals)
        return scores > self.threshold, scores


def check_phrases(params: Params) -> None:
    """Refuse what no pass would read, and thresholds that mean nothing.

    Raises
    ------
    ParameterError
        If an option of phrases is set without `phrases`, the threshold is out of the scoring's range, or a word-context
        matrix shall grow.
    """
    if not params.phrases:
        for name in ("phrase_min_count", "phrase_threshold", "phrase_scoring", "phrase_delimiter"):
            if (value := getattr(params, name)) != getattr(Params, name):
                raise ParameterError(
                    f"{name}={value!r} changes nothing for phrases=0.", f"Give phrases=1 or more, or leave {name} out."
                )
        return
    scoring, threshold = SCORINGS[params.phrase_scoring], Rules.of(params).threshold
    if not scoring.low < threshold <= scoring.high:
        bounds = f"above {scoring.low:g}" + ("" if math.isinf(scoring.high) else f" and at most {scoring.high:g}")
        raise ParameterError(
            f"phrase_threshold={threshold!r} is out of range for phrase_scoring={params.phrase_scoring!r}.",
            f"Give a threshold {bounds}.",
        )
    if params.base_matrix is not None:
        raise ParameterError(
            f"phrases={params.phrases} does not go with base_matrix={params.base_matrix!r}: new text changes "
            "which words of the old text are joined.",
            "Leave base_matrix out and read all text again, or leave phrases out.",
        )


def with_threshold(params: Params) -> Params:
    """Return the Params with the scoring's own threshold where they leave it open, and phrases are asked for."""
    return params.replace(phrase_threshold=Rules.of(params).threshold) if params.phrases else params
