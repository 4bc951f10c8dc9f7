"""Analogies answered by what kind of word is asked for: LRCos.

Drozd, Gladkova and Matsuoka (2016), "Word embeddings, analogies, and machine learning: beyond king - man + woman =
queen". A regression tells the words of the relation's second kind, say capitals, from others; the answer to "what is
beside c?" is the word x of the highest P(x is of that kind) cos(x, c).
"""

import numpy as np
import numpy.typing as npt

from daskw2v.evaluation.relations import KnownRelation
from daskw2v.evaluation.solving import Scores, Solver
from daskw2v.extras import needed, one_thread
from daskw2v.models.rows import Floats
from daskw2v.models.vectors import Block, Vectors

_SEED = 0  # of the random words
_LARGEST = 80  # e to this power is still a float32
_ITERATIONS = 1000  # more than a regression ever takes


def solver(vectors: Vectors, known: KnownRelation, limit: int) -> Solver:
    """Ask once about each pair's first word c; c itself is no answer.

    The regression learns from all other pairs the model knows, three unit vectors of each: the second word is of the
    kind; the first word is not, nor is a word drawn at random from the first `limit`, with the same seed for each
    relation. That is scikit-learn's `LogisticRegression(class_weight="balanced")`, as in the authors' own program
    (vecto), which repeats the first words four times.

    Parameters
    ----------
    vectors
        The model.
    known
        A relation of p pairs. With a single one there is nothing to learn from: its question is left out.
    limit
        How many words may be drawn.

    Raises
    ------
    MissingExtraError
        If scikit-learn is not installed.
    """
    n = len(known.pairs) if len(known.pairs) > 1 else 0
    weights, biases = _regressions(vectors, known, limit) if n else (np.empty((0, 0), np.float32),) * 2
    sources = vectors.units(known.pairs[:, 0])

    def on(block: Block) -> Scores:
        against = np.minimum(-block.cosines(weights) - biases, _LARGEST)
        scores: Floats = block.cosines(sources) / (1 + np.exp(against))
        return lambda rows: scores[rows]

    return Solver(known, known.pairs[:n, :1], np.arange(n), len(known.relation.pairs) - n, on)


def _regressions(vectors: Vectors, known: KnownRelation, limit: int) -> tuple[Floats, Floats]:
    """Return the weights and the bias of each pair's regression, which leaves it out: shapes (p, D) and (p, 1)."""
    n = len(known.pairs)
    drawn = np.random.default_rng(_SEED).integers(limit, size=n)
    examples = vectors.units(np.concatenate([known.pairs.T.ravel(), drawn])).astype(np.float64).reshape(3, n, -1)
    of_the_kind = np.repeat([False, True, False], n - 1)
    regression = needed("sklearn.linear_model", "evaluation").LogisticRegression
    model = regression(class_weight="balanced", max_iter=_ITERATIONS)
    weights: npt.NDArray[np.float64] = np.empty((n, examples.shape[2] + 1))
    with one_thread():
        for left_out in range(n):
            others = np.delete(examples, left_out, axis=1)
            model.fit(others.reshape(3 * (n - 1), -1), of_the_kind)
            weights[left_out] = *model.coef_[0], *model.intercept_
    return weights[:, :-1].astype(np.float32), weights[:, -1:].astype(np.float32)
