"""SGNS on the CPU: one pass over the centers of a segment.

Negatives are shared by a window (as in pWord2Vec and FULL-W2V) and drawn one window ahead, so that their rows can
be prefetched while the present window is computed. Contexts are taken four at a time, or two, or one, against all
targets; one word twice in a tile would lose one of its moves, so such contexts come one after the other.
"""

from typing import Any

import numpy as np

from daskw2v.jit import inline, kernel
from daskw2v.objectives.tile import SIGNS, prefetch, step_four, step_one, step_two
from daskw2v.sampling.alias import pick
from daskw2v.sampling.rng import GOLDEN, below, draw, mix

_HALF_TILE = SIGNS // 3


@kernel
def train(
    segment: Any,
    first: Any,
    last: Any,
    source: Any,
    output: Any,
    width: Any,
    update: Any,
    noise: Any,
    tile: Any,
) -> Any:
    """Train the centers first..last-1 of a segment.

    Parameters
    ----------
    segment
        `sampling.segments.Segment`: tokens, positions and sentence bounds after subsampling.
    first, last
        Range of centers, as indices into the segment's tokens.
    source, output
        Flat tables of rows padded to `width` floats, float32; changed in place.
    width
        Row length in floats, a multiple of 16.
    update
        `objectives.sgns.Update`: window, learning rate and the keys of the draws.
    noise
        Alias table of the negatives, shape (V,) uint64.
    tile
        Tuple as long as a tile has targets.

    Returns
    -------
    pairs, loss
        Trained pairs (context, target or negative's window), and the summed loss of all of them.
    """
    tokens, positions, bounds = segment.tokens, segment.positions, segment.bounds
    n_targets = update.negative + 1
    size = len(tile)
    n_groups = (n_targets + size - 1) // size
    rows = np.zeros((2, n_groups * size), np.int64)
    signs = np.zeros((2, n_groups * SIGNS), np.float32)
    contexts = np.empty(2 * update.window, np.int64)
    mantissa = np.ones(16, np.float32)
    exponent = np.zeros(16, np.int32)
    pairs = 0
    turn = 0
    sentence = np.searchsorted(bounds, first, side="right") - 1
    if first < last:
        _targets(segment, first, output, width, update, noise, rows[turn], signs[turn], size)
    for center in range(first, last):
        while center >= bounds[sentence + 1]:
            sentence += 1
        position = positions[center]
        reach = _reach(update, position)
        start, stop = max(bounds[sentence], center - reach), min(bounds[sentence + 1], center + reach + 1)
        n = 0
        for i in range(start, stop):
            contexts[n] = np.int64(tokens[i]) * width
            n += 1 if i != center else 0
        pairs += n
        if center + 1 < last:
            _targets(segment, center + 1, output, width, update, noise, rows[1 - turn], signs[1 - turn], size)
        if center + update.window + 1 < len(tokens):
            prefetch(source, np.int64(tokens[center + update.window + 1]) * width, width)
        alpha = np.float32(update.alpha + update.slope * (position - update.origin))
        i = 0
        while i < n:
            taken = _distinct(contexts, i, n)
            for g in range(n_groups):
                if taken == 4:
                    x = (contexts[i], contexts[i + 1], contexts[i + 2], contexts[i + 3])
                    step_four(source, x, output, rows[turn], signs[turn], g, width, alpha, mantissa, exponent, tile)
                elif taken == 2:
                    y = (contexts[i], contexts[i + 1])
                    step_two(source, y, output, rows[turn], signs[turn], g, width, alpha, mantissa, exponent, tile)
                else:
                    z = (contexts[i],)
                    step_one(source, z, output, rows[turn], signs[turn], g, width, alpha, mantissa, exponent, tile)
            i += taken
        turn = 1 - turn
    loss = 0.0
    for lane in range(16):
        loss += exponent[lane] * np.log(2.0) + np.log(np.float64(mantissa[lane]))
    return pairs, loss


@inline
def _distinct(contexts: Any, i: Any, n: Any) -> Any:
    """Return how many contexts from i on one tile takes: 4 or 2 different ones, else 1."""
    a, left = contexts[i], n - i
    if left < 2 or contexts[i + 1] == a:
        return 1
    b = contexts[i + 1]
    if left < 4:
        return 2
    c, d = contexts[i + 2], contexts[i + 3]
    if c in (a, b, d) or d in (a, b):
        return 2
    return 4


@inline
def _reach(update: Any, position: Any) -> Any:
    """Return how far the window at a corpus position reaches to either side."""
    reach = update.window
    if update.shrink_windows:
        reach -= np.int64(below(draw(update.window_key, position), reach))
    return reach


@kernel
def _targets(
    segment: Any, center: Any, output: Any, width: Any, update: Any, noise: Any, rows: Any, signs: Any, size: Any
) -> None:
    """Set rows and signs for a center: the word itself and its negatives; one equal to it does not count."""
    word = np.int64(segment.tokens[center])
    state = draw(update.negative_key, segment.positions[center])
    rows[0] = word * width
    signs[0] = 1.0
    signs[_HALF_TILE] = 1.0
    prefetch(output, word * width, width)
    for k in range(1, update.negative + 1):
        other = pick(noise, mix(state + np.uint64(k) * GOLDEN))
        group = k // size
        lane = group * SIGNS + k - group * size
        rows[k] = other * width
        sign = np.float32(0.0 if other == word else -1.0)
        signs[lane] = sign
        signs[lane + _HALF_TILE] = sign
        prefetch(output, other * width, width)
    for k in range(update.negative + 1, len(rows)):  # what fills the last tile does not count, and stays close
        rows[k] = rows[0]
