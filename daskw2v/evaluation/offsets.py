"""Analogies answered by vector offsets: 3CosAdd, 3CosMul and PairDirection.

Levy and Goldberg (2014), "Linguistic regularities in sparse and explicit word representations". The scores of a
question "a is to b as c is to x" combine two rows of scores: one of the pair (a, b), one of the word c. Each row is
computed once for all questions of the relation that use it.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from daskw2v.evaluation.relations import KnownRelation
from daskw2v.evaluation.solving import Scores, Solver
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.queries.word_queries import COSMUL_EPSILON
from daskw2v.models.stored.blocks import VectorBlock, cut
from daskw2v.types import Float32Array

_NEAREST = 1e-6  # least squared distance of unit vectors that float32 cosines can tell from 0
_QUESTIONS = 1 << 13  # questions whose vectors are in memory at once


class _Method(NamedTuple):
    """How to compute the score of x as the answer to "a is to b as c is to x".

    Parameters
    ----------
    pair
        Computes the term of the given pair from cos(x, a) and cos(x, b).
    word
        Computes the term of c from cos(x, c).
    join
        Combines both terms into the score.
    from_word
        Whether (b - a) c is subtracted from the pair's term, which is then (b - a) (x - c).
    """

    pair: Callable[[Float32Array, Float32Array], Float32Array]
    word: Callable[[Float32Array], Float32Array]
    join: np.ufunc
    from_word: bool = False


def _difference(to_a: Float32Array, to_b: Float32Array) -> Float32Array:
    return to_b - to_a


def _shifted(cosines: Float32Array) -> Float32Array:
    """Map cosines to 0..1."""
    return (cosines + np.float32(1)) / np.float32(2)


def _ratio(to_a: Float32Array, to_b: Float32Array) -> Float32Array:
    ratio: Float32Array = _shifted(to_b) / (_shifted(to_a) + np.float32(COSMUL_EPSILON))
    return ratio


def _closeness(to_c: Float32Array) -> Float32Array:
    """Return 1 / |x - c|; the distance of unit vectors is sqrt(2 - 2 cos)."""
    squared = np.float32(2) - np.float32(2) * to_c
    closeness: Float32Array = np.float32(1) / np.sqrt(np.maximum(squared, np.float32(_NEAREST)))
    return closeness


# The lengths of b - a + c and of b - a are omitted, as they are the same for all x.
_METHODS = {
    "3cosadd": _Method(_difference, np.positive, np.add),
    "3cosmul": _Method(_ratio, _shifted, np.multiply),
    "pairdirection": _Method(_difference, _closeness, np.multiply, from_word=True),
}


def _solver(method: _Method, vectors: Vectors, known: KnownRelation, limit: int) -> Solver:
    sources, targets = vectors.units(known.pairs[:, 0]), vectors.units(known.pairs[:, 1])
    first, second = known.questions.T
    start = _along(targets - sources, sources, known) if method.from_word else None

    def on(block: VectorBlock) -> Scores:
        to_sources, to_targets = block.cosines(sources), block.cosines(targets)
        pair, word = method.pair(to_sources, to_targets), method.word(to_sources)

        def scores(rows: slice) -> Float32Array:
            found: Float32Array = pair[first[rows]]
            if start is not None:
                found -= start[rows, None]
            method.join(found, word[second[rows]], out=found)
            return found

        return scores

    given = np.concatenate([known.pairs[first], known.pairs[second, :1]], axis=1)
    return Solver(known, given, second, len(known.relation.questions) - len(second), on)


def _along(offsets: Float32Array, units: Float32Array, known: KnownRelation) -> Float32Array:
    """Return (b - a) c of each question, shape (n,)."""
    blocks = [known.questions[rows].T for rows in cut(len(known.questions), _QUESTIONS)]
    products = [np.einsum("ij,ij->i", offsets[first], units[second]) for first, second in blocks]
    return np.concatenate([np.empty(0, np.float32), *products])


SOLVERS = {name: partial(_solver, method) for name, method in _METHODS.items()}
