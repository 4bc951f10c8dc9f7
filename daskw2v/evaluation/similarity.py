"""Word similarity: how well cosines rank pairs of words as people did."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.errors import InputError
from daskw2v.evaluation.questions import known_id, read_lines
from daskw2v.models.vectors import Vectors
from daskw2v.storage import Location

_FEWEST_PAIRS = 3  # two pairs always correlate perfectly


@dataclass(frozen=True)
class SimilarityResult:
    """Outcome of one similarity set.

    Parameters
    ----------
    spearman
        Rank correlation, -1..1; None with fewer than 3 pairs, or where all cosines or all scores are equal.
    pairs
        Pairs compared: both words known.
    missing
        Pairs left out.
    """

    spearman: float | None
    pairs: int
    missing: int


def evaluate_similarity(
    vectors: Vectors, url: Location, storage_options: Mapping[str, Any] | None = None
) -> SimilarityResult:
    """Compare cosines with people's scores.

    Parameters
    ----------
    vectors
        What to evaluate.
    url
        File of lines `word1 word2 score`, parted by tabs, commas or spaces. A header and comments (#) are
        left out. Words are looked up as written, then lower-cased.
    storage_options
        Options for fsspec.

    Raises
    ------
    InputError
        If the file cannot be read or a line is malformed.
    """
    left, right, scores, missing = [], [], [], 0
    for first, second, score in _read_pairs(url, storage_options):
        a, b = known_id(vectors.vocabulary, first), known_id(vectors.vocabulary, second)
        if a is None or b is None:
            missing += 1
            continue
        left.append(a)
        right.append(b)
        scores.append(score)
    units = vectors.units([*left, *right])
    cosines = np.einsum("ij,ij->i", units[: len(left)], units[len(left) :])
    return SimilarityResult(spearman(cosines, np.array(scores)), len(scores), missing)


def spearman(x: npt.NDArray[Any], y: npt.NDArray[Any]) -> float | None:
    """Return the rank correlation of two samples of shape (n,), equal values sharing their mean rank.

    It is None, for undefined, with fewer than 3 values or where all of one sample are equal.
    """
    if len(x) < _FEWEST_PAIRS:
        return None
    a, b = _centered_ranks(x), _centered_ranks(y)
    scale = math.sqrt((a @ a) * (b @ b))
    return float(a @ b) / scale if scale > 0 else None


def _centered_ranks(x: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    _, inverse, counts = np.unique(x, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[inverse]
    return np.asarray(ranks - (len(x) + 1) / 2)


def _read_pairs(url: Location, storage_options: Mapping[str, Any] | None) -> Iterator[tuple[str, str, float]]:
    first = True
    for number, line in read_lines(url, storage_options):
        separator = next((s for s in ("\t", ",") if s in line), None)
        parts = [part.strip() for part in line.split(separator)]
        score = _number(parts[2]) if len(parts) == 3 else None
        if score is not None:
            yield parts[0], parts[1], score
        elif not (first and len(parts) == 3):  # a header
            raise InputError(
                f"Line {number} of {url} is not two words and a score: {line[:60]!r}.",
                "Write word1<TAB>word2<TAB>score in each line, or mark the line as a comment with #.",
            )
        first = False


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
