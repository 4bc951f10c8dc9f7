"""Word similarity: rank correlation of cosines with human scores.

One rule reads the layouts of all published sets: the first two fields are words, and the score is in the first field
after them that is a number. If the first line has no number there, it is a header.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.evaluation.reading import known_id, malformed_line, read_lines, split_fields
from daskw2v.models.queries.vectors import Vectors
from daskw2v.store.urls import Location
from daskw2v.types import Float64Array

FEWEST_PAIRS = 3  # two pairs always correlate perfectly
_DEVIATIONS = NormalDist().inv_cdf(0.975)  # standard deviations on both sides of the mean that hold 95 %
_LEMMA = re.compile(r"(.+)-[a-z]")  # MEN's lemmas: sun-n, old-j, run-v


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
        Number of pairs skipped, as the model lacks a word.
    """

    spearman: float | None
    low: float | None
    high: float | None
    pairs: int
    missing: int

    @property
    def coverage(self) -> float | None:
        """Share of the pairs that were compared, 0..1; None for an empty set."""
        return self.pairs / (self.pairs + self.missing) if self.pairs + self.missing else None


def evaluate_similarity(
    vectors: Vectors, url: Location, storage_options: Mapping[str, Any] | None = None
) -> SimilarityResult:
    """Return the rank correlation of the cosines of word pairs with human scores, with its interval.

    Parameters
    ----------
    vectors
        The model.
    url
        File in a layout that `read_pairs` reads. Words are looked up as written, then in lower case.
    storage_options
        Options for fsspec.

    Raises
    ------
    InputError
        If the file cannot be read or a line is malformed.
    """
    pairs = read_pairs(url, storage_options)
    ids = np.array([[known_id(vectors.vocabulary, word) for word in pair[:2]] for pair in pairs]).reshape(-1, 2)
    known = (ids >= 0).all(axis=1)
    first, second = np.split(vectors.units(ids[known].T.ravel()), 2)
    scores = np.array([pair.score for pair in pairs])[known]
    rho = spearman(np.einsum("ij,ij->i", first, second), scores)
    low, high = confidence(rho, len(scores))
    return SimilarityResult(rho, low, high, len(scores), len(pairs) - len(scores))


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
    """Return the rank of each of n values less the mean rank, shape (n,); equal values share their mean rank."""
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return np.asarray(ranks - (len(x) + 1) / 2)


class ScoredPair(NamedTuple):
    """Two words and how similar people find them."""

    first: str
    second: str
    score: float


class _Line(NamedTuple):
    """A line of a file: its number from 1, its text, and its fields."""

    number: int
    text: str
    fields: list[str]


def read_pairs(url: Location, storage_options: Mapping[str, Any] | None = None) -> list[ScoredPair]:
    """Read the pairs of one set.

    Parameters
    ----------
    url
        File of WordSim-353, SimLex-999, MEN, MTurk-287 or -771, RW, SimVerb-3500, or of the same form. Tabs, commas or
        spaces separate fields. A header, comments (#) and other columns (parts of speech, single raters, relations)
        are skipped, and so are names of rows, as R writes them. Fields may be in quotes. If every word ends in a part
        of speech, as MEN's lemmas do (`sun-n`), the endings are removed.
    storage_options
        Options for fsspec.

    Returns
    -------
    pairs
        In the order of the file.

    Raises
    ------
    InputError
        If the file cannot be read or a line is malformed.
    """
    lines = [_Line(number, text, split_fields(text, "\t,")) for number, text in read_lines(url, storage_options)]
    lines = _remove_row_names(lines)
    column = _find_score_column(lines[:2])
    if len(lines) > 1 and _number_at(lines[0], column) is None and len(lines[0].fields) > column:
        del lines[0]  # a header
    pairs = []
    for line in lines:
        score = _number_at(line, column)
        if score is None:
            problem = f"not two words with a score in field {column + 1}"
            remedy = "Write word1<TAB>word2<TAB>score in each line, or mark the line as a comment with #."
            raise malformed_line(url, line.number, line.text, problem, remedy)
        pairs.append(ScoredPair(line.fields[0], line.fields[1], score))
    return _remove_tags(pairs)


def _remove_row_names(lines: list[_Line]) -> list[_Line]:
    """Return lines without names of rows, which R and pandas write in a column with an empty header, or none."""
    if len(lines) < 2 or not lines[0].fields:
        return lines
    unnamed = len(lines[1].fields) == len(lines[0].fields) + 1 and lines[0].text.startswith('"')
    if unnamed:
        return [lines[0], *(line._replace(fields=line.fields[1:]) for line in lines[1:])]
    return lines if lines[0].fields[0] else [line._replace(fields=line.fields[1:]) for line in lines]


def _find_score_column(lines: Sequence[_Line]) -> int:
    """Return the index of the field with the score, from the first two lines; 2 if neither has a number.

    The second line decides, since the first may be a header that numbers raters.
    """
    columns = ((line, column) for line in reversed(lines) for column in range(2, len(line.fields)))
    return next((column for line, column in columns if _number_at(line, column) is not None), 2)


def _number_at(line: _Line, column: int) -> float | None:
    """Return the field of a line with this index as a number; None if it is missing or no finite number."""
    try:
        value = float(line.fields[column])
    except (IndexError, ValueError):
        return None
    return value if math.isfinite(value) else None


def _remove_tags(pairs: list[ScoredPair]) -> list[ScoredPair]:
    """Return pairs without parts of speech, as in sun-n, if all words end in one; else the same pairs."""
    lemmas = [(_LEMMA.fullmatch(pair.first), _LEMMA.fullmatch(pair.second), pair.score) for pair in pairs]
    untagged = [ScoredPair(a[1], b[1], score) for a, b, score in lemmas if a and b]
    return untagged if len(untagged) == len(pairs) else pairs
