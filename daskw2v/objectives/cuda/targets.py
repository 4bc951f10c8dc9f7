"""Targets of a window on an NVIDIA GPU: a center and its negatives, or the inner nodes on the center's path.

Negatives are drawn as on the CPU. A path is read from the leaf up.
"""

from functools import lru_cache
from typing import Any

import numpy as np
from numba import int32

from daskw2v.kernels.alias import choose, slot_in
from daskw2v.kernels.cuda.warp import LANES, at, device
from daskw2v.kernels.rng import below, draw
from daskw2v.objectives.cuda.shape import Aim, Shape
from daskw2v.objectives.noise import BATCH

_NONE, _ONE = np.float32(0.0), np.float32(1.0)


@lru_cache(maxsize=64)
def negative_targets(
    shape: Shape, negative: int, market_negative: int = 0, *, per_context: bool = False, batches: bool = False
) -> Aim:
    """Return the targets of windows, a center and its negatives; kernels get `objectives.noise.Negatives`.

    Parameters
    ----------
    negative, market_negative
        As in Params.
    per_context
        Whether each context draws its negatives.
    batches
        Whether BATCH windows, each in another quarter of the range, share negatives, except negatives of a market.
    """
    drawn = negative + market_negative
    targets = 1 + drawn
    groups = -(-targets // shape.group)
    size = -(-targets // groups)
    listed = groups * size

    @device
    def write(
        aim: Any, text: Any, center: Any, first: Any, last: Any, number: Any, lane: Any, listed_words: Any, signs: Any
    ) -> Any:
        """List the center, its negatives and the padding, with signs; return the number of targets without padding."""
        word, drawer = at(text.tokens, center), center
        if batches:
            drawer = first + (center - first) % ((last - first + BATCH - 1) // BATCH)
        # Casts: under the simulator these functions return Python's numbers
        state = np.uint64(draw(aim.key, at(text.positions, drawer)))
        for k in range(lane, listed, LANES):
            target, sign = word, _NONE
            if k == 0:
                sign = _ONE
            elif k <= negative:
                bits = np.uint64(draw(state, number * drawn + k))
                slot = np.uint64(below(bits, aim.table.size))
                target = np.int32(choose(slot, aim.table[slot], bits))
                sign = _NONE if target == word else -_ONE
            elif k <= drawn:
                own_state = np.uint64(draw(aim.key, at(text.positions, center)))
                bits = np.uint64(draw(own_state, number * drawn + k))
                slot = np.uint64(slot_in(at(aim.markets.spans, word), bits))
                slot = np.uint64(choose(slot, aim.markets.slots[slot], bits))
                target = at(aim.markets.words, slot)
                sign = _NONE if target == word else -_ONE
            listed_words[np.uint64(k)], signs[np.uint64(k)] = target, sign
        return targets

    return Aim(listed, size, write, per_context=per_context)


@lru_cache(maxsize=64)
def path_targets(shape: Shape, depth: int) -> Aim:
    """Return the targets of windows, at most `depth` nodes of a path; kernels get `vocabulary.huffman.Tree`."""
    size = shape.group
    max_listed = max(size, -(-depth // size) * size)

    @device
    def write(
        tree: Any, text: Any, center: Any, first: Any, last: Any, number: Any, lane: Any, listed: Any, signs: Any
    ) -> Any:
        """List the nodes of the center's path, from the leaf up, and the padding; return the number of nodes."""
        word = at(text.tokens, center)
        start, stop = at(tree.starts, word), at(tree.starts, word + 1)
        n = int32(stop - start)
        for k in range(lane, (n + size - 1) // size * size, LANES):
            step = at(tree.steps, stop - 1 - k if k < n else start)
            listed[np.uint64(k)] = ~step if step < 0 else step
            signs[np.uint64(k)] = (-_ONE if step < 0 else _ONE) if k < n else _NONE
        return n

    return Aim(max_listed, size, write, top=shape.top)
