"""LRCos: analogies answered with a classifier of the relation's second words.

Drozd, Gladkova and Matsuoka (2016), "Word embeddings, analogies, and machine learning: beyond king - man + woman =
queen". A logistic regression separates the relation's second words, say capitals, from other words. The answer for a
first word c is the word x with the highest P(x is in the class) cos(x, c).
"""

import numpy as np

from daskw2v.evaluation.relations import KnownRelation
from daskw2v.evaluation.solving import Scores, Solver
from daskw2v.extras import needed, one_thread
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.blocks import VectorBlock
from daskw2v.types import Float32Array, Float64Array

_SEED = 0  # of the random words
_LARGEST = 80  # exp(80) still fits float32
_ITERATIONS = 1000  # more than a regression needs


def solver(vectors: Vectors, known: KnownRelation, limit: int) -> Solver:
    """Make the solver, which asks one question for each pair: its first word c, which is excluded from the answers.

    The regression for a pair is fitted on all other pairs that the model knows. Each of them gives three examples,
    unit vectors: its second word is positive; its first word and one random word among the first `limit` are
    negative. The random words have the same seed in each relation. The regression is scikit-learn's
    `LogisticRegression(class_weight="balanced")`, as in the authors' program (vecto), which however repeats the first
    words four times.

    Parameters
    ----------
    vectors
        The model.
    known
        A relation. A single pair is skipped: there is no other pair to fit the regression on.
    limit
        Number of words to draw random words from, the most frequent ones.

    Raises
    ------
    MissingExtraError
        If scikit-learn is not installed.
    """
    n = len(known.pairs) if len(known.pairs) > 1 else 0
    weights, biases = _regressions(vectors, known, limit) if n else (np.empty((0, 0), np.float32),) * 2
    sources = vectors.units(known.pairs[:, 0])

    def on(block: VectorBlock) -> Scores:
        against = np.minimum(-block.cosines(weights) - biases, _LARGEST)
        scores: Float32Array = block.cosines(sources) / (1 + np.exp(against))
        return lambda rows: scores[rows]

    return Solver(known, known.pairs[:n, :1], np.arange(n), len(known.relation.pairs) - n, on)


def _regressions(vectors: Vectors, known: KnownRelation, limit: int) -> tuple[Float32Array, Float32Array]:
    """Return weights and bias of the regression fitted without each of p pairs, shapes (p, D) and (p, 1)."""
    n = len(known.pairs)
    drawn = np.random.default_rng(_SEED).integers(limit, size=n)
    examples = vectors.units(np.concatenate([known.pairs.T.ravel(), drawn])).astype(np.float64).reshape(3, n, -1)
    of_the_kind = np.repeat([False, True, False], n - 1)
    regression = needed("sklearn.linear_model", "evaluation").LogisticRegression
    model = regression(class_weight="balanced", max_iter=_ITERATIONS)
    weights: Float64Array = np.empty((n, examples.shape[2] + 1))
    with one_thread():
        for left_out in range(n):
            others = np.delete(examples, left_out, axis=1)
            model.fit(others.reshape(3 * (n - 1), -1), of_the_kind)
            weights[left_out] = *model.coef_[0], *model.intercept_
    return weights[:, :-1].astype(np.float32), weights[:, -1:].astype(np.float32)
