"""The best answer to each of many questions, found in one reading of the vectors, with bounded memory."""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from daskw2v.evaluation.relations import KnownRelation
from daskw2v.models.ranking import Ids
from daskw2v.models.rows import Floats
from daskw2v.models.vectors import Block, Vectors

_TABLE = 1 << 20  # cosines of a relation's words with a block of words: 4 MB, about a core's cache
_NARROWEST = 512  # words of such a block at least, or calls cost more than sums
_SCORES = 1 << 17  # scores of a block of questions with a block of words

Scores = Callable[[slice], Floats]


class Solver(NamedTuple):
    """How n questions on one relation are answered.

    Parameters
    ----------
    known
        The relation.
    given
        Words that are no answers, shape (n, k).
    asked
        The pair whose second word each question asks for, shape (n,).
    skipped
        Questions left out.
    on
        Makes, for a block of words, a function from a slice of questions to the scores of the words, shape
        (questions, words); what it returns is the caller's.
    """

    known: KnownRelation
    given: Ids
    asked: Ids
    skipped: int
    on: Callable[[Block], Scores]


def solve(vectors: Vectors, solvers: Sequence[Solver], limit: int) -> list[Ids]:
    """Return, for each solver, the ids of the best words below `limit`, shape (n,); -1 where no word is left."""
    ids = [np.full(len(solver.asked), -1) for solver in solvers]
    best = [np.full(len(solver.asked), -np.inf, np.float32) for solver in solvers]
    words = max((solver.known.pairs.size for solver in solvers), default=0)
    width = max(_NARROWEST, _TABLE // max(1, words))
    for block in vectors.blocks(limit, width):
        for solver, answers, highest in zip(solvers, ids, best, strict=True):
            if not len(answers):
                continue
            scores_of = solver.on(block)
            for rows in cut(len(answers), max(1, _SCORES // width)):
                scores = scores_of(rows)
                _exclude(scores, solver.given[rows] - block.start)
                found = scores.argmax(axis=1)
                score = scores[np.arange(len(found)), found]
                better = score > highest[rows]
                answers[rows][better] = found[better] + block.start
                highest[rows][better] = score[better]
    return ids


def cut(length: int, step: int) -> Iterator[slice]:
    """Cut 0..length - 1 into slices of `step`."""
    return (slice(start, start + step) for start in range(0, length, step))


def _exclude(scores: Floats, columns: Ids) -> None:
    """Put out of the race each row's `columns`, shape (rows, k), as far as they lie in this block."""
    rows, words = np.nonzero((columns >= 0) & (columns < scores.shape[1]))
    scores[rows, columns[rows, words]] = -np.inf
