"""Analogies: how often "a is to b as c is to ?" is answered with the expected word."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.errors import InputError
from daskw2v.evaluation.questions import known_id, read_lines
from daskw2v.models.rows import Floats
from daskw2v.models.vectors import COSMUL_EPSILON, AnalogyMethod, Vectors, check_method
from daskw2v.storage import Location

_TABLE = 1 << 20  # cosines of the questions' words with a block of words: 4 MB, about a core's cache
_NARROWEST = 512  # words of such a block at least, or calls cost more than sums
_SCORES = 1 << 17  # scores of a block of questions with a block of words


@dataclass(frozen=True)
class AnalogyResult:
    """Outcome of one analogy set.

    Parameters
    ----------
    accuracy
        Share of questions answered rightly, 0..1; None without questions.
    questions
        Questions asked: all four words known.
    skipped
        Questions left out.
    categories
        Right answers and questions asked, for each category.
    """

    accuracy: float | None
    questions: int
    skipped: int
    categories: dict[str, tuple[int, int]]


def evaluate_analogy(
    vectors: Vectors,
    url: Location,
    method: AnalogyMethod = "3cosadd",
    restrict_vocab: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> AnalogyResult:
    """Answer analogies; the three given words are no answers.

    Parameters
    ----------
    vectors
        What to evaluate.
    url
        File in the layout of Google's set: a line `: category`, then lines of four words. Words are looked up
        as written, then lower-cased.
    method
        3cosadd or 3cosmul, as in `Vectors.analogy`.
    restrict_vocab
        Know only the first (most frequent) so many words, in questions and answers.
    storage_options
        Options for fsspec.

    Raises
    ------
    InputError
        If the file cannot be read or a line is malformed.
    ParameterError
        If the method is unknown.
    """
    check_method(method)
    limit = len(vectors) if restrict_vocab is None else min(restrict_vocab, len(vectors))
    names, asked, categories, skipped = _read_questions(vectors, url, limit, storage_options)
    right = _answers(vectors, asked[:, :3], method, limit) == asked[:, 3]
    counts = {name: (int(right[categories == i].sum()), int((categories == i).sum())) for i, name in enumerate(names)}
    accuracy = float(right.mean()) if len(asked) else None
    return AnalogyResult(accuracy, len(asked), skipped, counts)


def _read_questions(
    vectors: Vectors, url: Location, limit: int, storage_options: Mapping[str, Any] | None
) -> tuple[list[str], npt.NDArray[np.int64], npt.NDArray[np.int64], int]:
    """Return the categories; known questions' ids, shape (n, 4), and categories; how many are not known."""
    names: dict[str, int] = {}
    category, questions, categories, skipped = -1, [], [], 0
    for number, line in read_lines(url, storage_options):
        if line.startswith(":"):
            category = names.setdefault(line[1:].strip(), len(names))
            continue
        words = line.split()
        if len(words) != 4 or category < 0:
            raise InputError(
                f"Line {number} of {url} is not four words below a line ': category': {line[:60]!r}.",
                "Write ': name' above each category, and four words in each line below it.",
            )
        ids = [i for word in words if (i := known_id(vectors.vocabulary, word)) is not None and i < limit]
        if len(ids) < 4:
            skipped += 1
            continue
        questions.append(ids)
        categories.append(category)
    return list(names), np.array(questions, np.int64).reshape(-1, 4), np.array(categories, np.int64), skipped


def _answers(
    vectors: Vectors, questions: npt.NDArray[np.int64], method: AnalogyMethod, limit: int
) -> npt.NDArray[np.int64]:
    """Return the best word's id for each question (a, b, c), shape (n,); -1 where no word is left.

    Questions share few words, so each word's cosines are computed once; a question's scores are sums of them.
    """
    distinct, places = np.unique(questions, return_inverse=True)
    places = places.reshape(questions.shape)
    units = vectors.units(distinct)
    answers, best = np.full(len(questions), -1), np.full(len(questions), -np.inf, np.float32)
    width = max(_NARROWEST, _TABLE // max(1, len(distinct)))
    step = max(1, _SCORES // width)
    for words in vectors.blocks(limit, width):
        gain, loss, combine = _terms(words.cosines(units), method)
        for first in range(0, len(questions), step):
            block = slice(first, first + step)
            a, b, c = places[block].T
            scores = gain[b]
            combine(scores, gain[c], out=scores)
            combine(scores, loss[a], out=scores)
            _exclude(scores, questions[block] - words.start)
            found = scores.argmax(axis=1)
            score = scores[np.arange(len(found)), found]
            better = score > best[block]
            answers[block][better] = found[better] + words.start
            best[block][better] = score[better]
    return answers


def _terms(cosines: Floats, method: AnalogyMethod) -> tuple[Floats, Floats, np.ufunc]:
    """Return what b and c bring, what a brings, and how they join to a score."""
    if method == "3cosadd":  # the query's length is left out: it is the same for all candidates
        return cosines, -cosines, np.add
    gain = (cosines + np.float32(1)) / np.float32(2)
    return gain, np.float32(1) / (gain + np.float32(COSMUL_EPSILON)), np.multiply


def _exclude(scores: Floats, columns: npt.NDArray[np.int64]) -> None:
    """Put out of the race each row's `columns`, shape (rows, 3), as far as they lie in this block."""
    rows, words = np.nonzero((columns >= 0) & (columns < scores.shape[1]))
    scores[rows, columns[rows, words]] = -np.inf
