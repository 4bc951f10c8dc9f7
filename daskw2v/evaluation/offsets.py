"""Analogies answered by what one pair's words differ in: 3CosAdd, 3CosMul and PairDirection.

Levy and Goldberg (2014), "Linguistic regularities in sparse and explicit word representations". A question's scores
are joined from two rows of tables that its relation has: one for the pair that is given, one for the word that is asked
about. So each word's cosines are computed once, though questions are many times as many.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from daskw2v.evaluation.relations import KnownRelation
from daskw2v.evaluation.solving import Scores, Solver, cut
from daskw2v.models.rows import Floats
from daskw2v.models.vectors import COSMUL_EPSILON, Block, Vectors

_NEAREST = 1e-6  # squared distance of unit vectors: cosines of float32 tell no smaller one
_QUESTIONS = 1 << 13  # whose vectors are held at once


class _Method(NamedTuple):
    """How the score of x as an answer to "a is to b as c is to x" comes from cosines.

    Parameters
    ----------
    pair
        Of cos(x, a) and cos(x, b): what the given pair brings.
    word
        Of cos(x, c): what the word brings that is asked about.
    join
        How both become a score.
    from_word
        Whether the pair's part is counted from c on: less (b - a) c.
    """

    pair: Callable[[Floats, Floats], Floats]
    word: Callable[[Floats], Floats]
    join: np.ufunc
    from_word: bool = False


def _difference(to_a: Floats, to_b: Floats) -> Floats:
    return to_b - to_a


def _shifted(cosines: Floats) -> Floats:
    """Map cosines to 0..1."""
    return (cosines + np.float32(1)) / np.float32(2)


def _ratio(to_a: Floats, to_b: Floats) -> Floats:
    ratio: Floats = _shifted(to_b) / (_shifted(to_a) + np.float32(COSMUL_EPSILON))
    return ratio


def _closeness(to_c: Floats) -> Floats:
    """Return 1 / |x - c|, as unit vectors lie sqrt(2 - 2 cos) apart."""
    squared = np.float32(2) - np.float32(2) * to_c
    closeness: Floats = np.float32(1) / np.sqrt(np.maximum(squared, np.float32(_NEAREST)))
    return closeness


# The lengths of b - a + c and of b - a are left out: they are the same for all x.
_METHODS = {
    "3cosadd": _Method(_difference, np.positive, np.add),
    "3cosmul": _Method(_ratio, _shifted, np.multiply),
    "pairdirection": _Method(_difference, _closeness, np.multiply, from_word=True),
}


def _solver(method: _Method, vectors: Vectors, known: KnownRelation, limit: int) -> Solver:
    sources, targets = vectors.units(known.pairs[:, 0]), vectors.units(known.pairs[:, 1])
    first, second = known.questions.T
    start = _along(targets - sources, sources, known) if method.from_word else None

    def on(block: Block) -> Scores:
        to_sources, to_targets = block.cosines(sources), block.cosines(targets)
        pair, word = method.pair(to_sources, to_targets), method.word(to_sources)

        def scores(rows: slice) -> Floats:
            found: Floats = pair[first[rows]]
            if start is not None:
                found -= start[rows, None]
            method.join(found, word[second[rows]], out=found)
            return found

        return scores

    given = np.concatenate([known.pairs[first], known.pairs[second, :1]], axis=1)
    return Solver(known, given, second, len(known.relation.questions) - len(second), on)


def _along(offsets: Floats, units: Floats, known: KnownRelation) -> Floats:
    """Return (b - a) c of each question, shape (n,)."""
    blocks = [known.questions[rows].T for rows in cut(len(known.questions), _QUESTIONS)]
    products = [np.einsum("ij,ij->i", offsets[first], units[second]) for first, second in blocks]
    return np.concatenate([np.empty(0, np.float32), *products])


SOLVERS = {name: partial(_solver, method) for name, method in _METHODS.items()}
