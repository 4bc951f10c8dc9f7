"""Answers to many analogy questions in one pass over the vectors, with bounded memory."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from daskw2v.evaluation.relations import KnownRelation
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.blocks import VectorBlock, cut
from daskw2v.types import Float32Array, Int64Array

_TABLE = 1 << 20  # cosines of a relation's words with a block of words: 4 MB, about the cache of a core
_NARROWEST = 512  # fewest words in a block: in smaller ones the overhead of calls dominates
_SCORES = 1 << 17  # scores of a block of questions with a block of words

Scores = Callable[[slice], Float32Array]


class Solver(NamedTuple):
    """A method applied to the n questions of one relation.

    Parameters
    ----------
    known
        The relation.
    given
        Ids of the words to exclude from each question's answers, shape (n, k).
    asked
        Index of the pair whose second word each question asks for, shape (n,).
    skipped
        Number of questions skipped.
    on
        Takes a block of words and returns a function from a slice of questions to the words' scores, shape
        (questions, words). The caller may overwrite the scores.
    """

    known: KnownRelation
    given: Int64Array
    asked: Int64Array
    skipped: int
    on: Callable[[VectorBlock], Scores]


def solve(vectors: Vectors, solvers: Sequence[Solver], limit: int) -> list[Int64Array]:
    """Return each solver's answers: ids below `limit`, shape (n,), or -1 if all words are excluded."""
    ids = [np.full(len(solver.asked), -1) for solver in solvers]
    best = [np.full(len(solver.asked), -np.inf, np.float32) for solver in solvers]
    words = max((solver.known.pairs.size for solver in solvers), default=0)
    width = max(_NARROWEST, _TABLE // max(1, words))
    for block in vectors.blocks(limit, width):
        for solver, answers, highest in zip(solvers, ids, best, strict=True):
            if not len(answers):
                continue
            scores_of, given = solver.on(block), block.columns(solver.given)
            for rows in cut(len(answers), max(1, _SCORES // width)):
                scores = scores_of(rows)
                _exclude(scores, given[rows])
                columns = scores.argmax(axis=1)
                found, score = block.ids[columns], scores[np.arange(len(columns)), columns]
                earlier = found < answers[rows]  # of equal scores, the more frequent word
                better = (score > highest[rows]) | ((score == highest[rows]) & earlier)
                answers[rows][better] = found[better]
                highest[rows][better] = score[better]
    return ids


def _exclude(scores: Float32Array, columns: Int64Array) -> None:
    """Set the scores of each row's `columns`, shape (rows, k), to -inf, but for -1."""
    rows, words = np.nonzero(columns >= 0)
    scores[rows, columns[rows, words]] = -np.inf
