"""SGNS on the CPU over a bucket: pairs of which one partition holds all contexts, another all centers and negatives.

Four pairs share their negatives, which are drawn from the partition of the centers. They come from four places of the
bucket: neighbours are pairs of one window.

With target negative sampling (Stergiou et al. 2017) a bucket has all that its pairs need. With the other rules, which
draw negatives elsewhere, a pair is several items, each in a bucket of its own: its center without negatives, and
negatives without the center.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.jit import inline, kernel
from daskw2v.objectives.base import FloatArray, HotRows, Memory
from daskw2v.objectives.hidden import BATCH, OWN, add_move, train_hidden
from daskw2v.objectives.negatives import RUN
from daskw2v.objectives.scratch import loss_of, make_scratch, place_of
from daskw2v.objectives.steps import MAX_TARGETS, address, group_sizes, load_int64, prefetch
from daskw2v.sampling.hierarchy import row_of_negative
from daskw2v.sampling.rng import draw


def train_bucket(
    contexts: npt.NDArray[np.int32],
    centers: npt.NDArray[np.int32],
    source: FloatArray,
    output: FloatArray,
    width: int,
    alpha: float,
    negative: int,
    words: npt.NDArray[np.uint64],
    key: np.uint64,
    positive: bool = True,
) -> tuple[int, float]:
    """Train the pairs of a bucket in place; return their number and their summed loss.

    Parameters
    ----------
    contexts, centers
        Rows of the pairs in the two partitions, shapes (n,) int32. Without `positive`, -1 for a center elsewhere.
    source, output
        The input rows of the contexts' partition and the output rows of the centers', flat float32.
    width
        Row length in floats, a multiple of 16.
    alpha, negative
        Learning rate, and negatives that four pairs share; 0 for none. A pair's center is none of them.
    words
        `sampling.hierarchy.word_table` of the centers' partition.
    key
        Stream of the bucket's draws.
    positive
        Whether the pairs' centers are trained, or their negatives alone.
    """
    groups, size = group_sizes(negative, OWN) if negative else (1, 0)
    rows, signs = groups * size + 2 * BATCH, groups * BATCH * MAX_TARGETS
    scratch = make_scratch(Memory(source, output, width, HotRows(0, 0, 0, 1)), 1, RUN, groups, rows, signs, BATCH)
    pairs, loss = _train(
        contexts, centers, source, output, width, scratch, np.float32(alpha), negative, words, key, positive,
        (0,) * BATCH, (0,) * size,
    )  # fmt: skip
    return int(pairs), float(loss)


@kernel
def _train(
    contexts: Any, centers: Any, source: Any, output: Any, width: Any, scratch: Any, alpha: Any, negative: Any,
    words: Any, key: Any, positive: Any, batch: Any, tile: Any,
) -> Any:  # fmt: skip
    """Train the pairs of a bucket; arguments as in `train_bucket`.

    `scratch` is for RUN batches of pairs; `batch` and `tile` are tuples as long as a batch has pairs, and a group has
    negatives.
    """
    rows, signs = scratch.rows.reshape(-1, RUN), scratch.signs[:-MAX_TARGETS].reshape(RUN, -1, BATCH * MAX_TARGETS)
    place, groups, size, n = place_of(scratch), signs.shape[1], len(tile), len(contexts)
    targets, sign_list, moves, row = address(rows), address(signs), address(scratch.hidden), 4 * width
    own, vectors = targets + groups * size * RUN * 8, targets + (groups * size + BATCH) * RUN * 8
    at, apart = RUN, (n + BATCH - 1) // BATCH
    for start in range(apart):
        if at >= RUN - 1:  # the rows of a run's last batch are known for their prefetch only
            _draw(
                contexts, centers, start, apart, address(source), address(output), width, negative, words, key,
                positive, scratch.states, rows, signs, size,
            )  # fmt: skip
            at = 0
        here, these = targets + at * 8, vectors + at * 8
        for pair in range(BATCH):
            prefetch(load_int64(these, pair * RUN + 1), width)
        sign = sign_list + at * groups * (4 * BATCH * MAX_TARGETS)
        train_hidden(place, these, RUN, moves, here, own + at * 8, 8, groups, RUN, width, sign, alpha, batch, tile)
        for pair in range(BATCH):
            if start + pair * apart < n:
                add_move(these + pair * RUN * 8, moves + pair * row, width)
        at += 1
    return n, loss_of(scratch)


@inline
def _draw(
    contexts: Any, centers: Any, first: Any, apart: Any, source: Any, output: Any, width: Any, negative: Any,
    words: Any, key: Any, positive: Any, states: Any, rows: Any, signs: Any, size: Any,
) -> None:  # fmt: skip
    """Write the rows and signs of at most RUN batches: batch i has the pairs first + i, and each `apart` behind it."""
    n, n_shared, groups, row = min(RUN, apart - first), len(rows) - 2 * BATCH, signs.shape[1], 4 * width
    for i in range(n):
        states[i] = draw(key, first + i)
    for k in range(n_shared):
        for i in range(n):
            rows[k, i] = output + row_of_negative(states[i], k, words) * row
    for pair in range(BATCH):
        own, vectors = rows[n_shared + pair], rows[n_shared + BATCH + pair]
        start, lane = first + pair * apart, pair * MAX_TARGETS
        inside = min(n, max(len(contexts) - start, 0))
        for i in range(inside):
            own[i] = output + max(centers[start + i], 0) * row
            vectors[i] = source + contexts[start + i] * row
            signs[i, groups - 1, lane + OWN] = 1.0 if positive else 0.0
        for k in range(negative):
            group, place, drawn = k // size, lane + k % size, rows[k]
            for i in range(inside):
                center = (drawn[i] == own[i]) & (centers[start + i] >= 0)
                signs[i, group, place] = np.float32(0.0 if center else -1.0)
        for i in range(inside, n):  # no pair is left: any rows stand here, and do not count
            own[i], vectors[i] = rows[n_shared, i], source
            signs[i, :, lane : lane + MAX_TARGETS] = 0.0
