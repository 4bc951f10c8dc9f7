"""SGNS on the CPU over a bucket: pairs of which one partition holds all contexts, another all centers and negatives.

Four pairs share their negatives, which are drawn from the partition of the centers. They come from four places of the
bucket: neighbours are pairs of one window. Where a pair has its center, noise has a negative that it does not share.

With target negative sampling (Stergiou et al. 2017) a bucket has all that its pairs need. With the other rules, which
draw negatives elsewhere, a pair is several items, each in a bucket of its own: its center without negatives, and noise,
which is negatives without the center. A bucket trains slices of both in turn: centers alone pull all rows together, and
few of them may do so before noise drives the rows apart again.
"""

from functools import lru_cache
from threading import get_ident
from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.jit import inline, kernel
from daskw2v.objectives.base import FloatArray, HotRows, Memory
from daskw2v.objectives.hidden import BATCH, OWN, add_move, train_hidden
from daskw2v.objectives.negatives import RUN
from daskw2v.objectives.scratch import Scratch, loss_of, make_scratch, place_of
from daskw2v.objectives.steps import MAX_TARGETS, address, group_sizes, load_int64, prefetch
from daskw2v.sampling.hierarchy import row_of_negative
from daskw2v.sampling.rng import draw

Items = tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]

NOISE = np.uint64(0x8CB92BA72F3D8DD7)  # sets the draws of noise apart from those of pairs
SLICE = RUN - 1  # batches, at most: the last one prefetches what stands behind its rows


def train_bucket(
    pairs: Items,
    noise: Items,
    source: FloatArray,
    output: FloatArray,
    width: int,
    alpha: float,
    negative: int,
    each: int,
    words: npt.NDArray[np.uint64],
    key: np.uint64,
) -> tuple[int, float]:
    """Train the pairs and the noise of a bucket in place; return the number of pairs, and the summed loss of all.

    Parameters
    ----------
    pairs
        Contexts and centers: rows in the two partitions, shapes (n,) int32.
    noise
        The same of what is trained with negatives only, shapes (m,); -1 for a center in another partition.
    source, output
        The input rows of the contexts' partition and the output rows of the centers', flat float32.
    width
        Row length in floats, a multiple of 16.
    alpha
        Learning rate.
    negative, each
        Negatives of a pair, which four share, and of an item of noise, which four share but for one; 0 for none. A
        center is no negative of its own.
    words
        `sampling.hierarchy.word_table` of the centers' partition.
    key
        Stream of the bucket's draws.
    """
    shared = max(each - 1, 0)
    scratch = _scratch(get_ident(), width, max(negative, shared))
    loss = _train(
        pairs, noise, source, output, width, np.float32(alpha), negative, shared, words, key, scratch, (0,) * BATCH,
        _tile(negative), _tile(shared),
    )  # fmt: skip
    return len(pairs[0]), float(loss)


def _tile(negative: int) -> tuple[int, ...]:
    return (0,) * group_sizes(negative, OWN)[1] if negative else ()


@lru_cache(maxsize=256)
def _scratch(thread: int, width: int, negative: int) -> Scratch:
    """Return a thread's own scratch: made for each bucket, it would take as long as 700 pairs."""
    groups, size = group_sizes(max(negative, 1), OWN)
    rows, signs = groups * size + 2 * BATCH, groups * BATCH * MAX_TARGETS
    none = np.empty(0, np.float32)
    return make_scratch(Memory(none, none, width, HotRows(0, 0, 0, 1)), 1, RUN, groups, rows, signs, BATCH)


@kernel
def _train(
    pairs: Any, noise: Any, source: Any, output: Any, width: Any, alpha: Any, negative: Any, shared: Any, words: Any,
    key: Any, scratch: Any, batch: Any, tile: Any, noise_tile: Any,
) -> Any:  # fmt: skip
    """Train slices of pairs and of noise in turn, in proportion; arguments as in `train_bucket`.

    Four pairs share `negative` negatives, four of the noise `shared`; `batch` and the tiles are tuples as long as a
    batch has items, and a group of each kind has negatives.
    """
    scratch.mantissa[:], scratch.exponent[:] = 1.0, 0
    n_pairs, n_noise = (len(pairs[0]) + BATCH - 1) // BATCH, (len(noise[0]) + BATCH - 1) // BATCH
    n = (max(n_pairs, n_noise) + SLICE - 1) // SLICE
    for i in range(n):
        _train_slice(
            pairs, i * n_pairs // n, (i + 1) * n_pairs // n, n_pairs, source, output, width, alpha, negative, words,
            key, True, scratch, batch, tile,
        )  # fmt: skip
        _train_slice(
            noise, i * n_noise // n, (i + 1) * n_noise // n, n_noise, source, output, width, alpha, shared, words,
            key ^ NOISE, False, scratch, batch, noise_tile,
        )  # fmt: skip
    return loss_of(scratch)


@kernel
def _train_slice(
    items: Any, first: Any, last: Any, apart: Any, source: Any, output: Any, width: Any, alpha: Any, negative: Any,
    words: Any, key: Any, positive: Any, scratch: Any, batch: Any, tile: Any,
) -> None:  # fmt: skip
    """Train the batches first..last-1, at most SLICE; batch i has the items i, i + apart, and so on."""
    place, size, n = place_of(scratch), len(tile), len(items[0])
    groups = max(negative + size - 1, 1) // max(size, 1)
    n_shared, n_signs, row = groups * size, groups * BATCH * MAX_TARGETS, 4 * width
    rows = scratch.rows[: (n_shared + 2 * BATCH) * RUN].reshape(-1, RUN)
    signs = scratch.signs[: RUN * n_signs].reshape(RUN, groups, -1)
    _draw(
        items[0], items[1], first, last, apart, address(source), address(output), width, negative, words, key,
        positive, scratch.states, rows, signs, size,
    )  # fmt: skip
    targets, moves = address(rows), address(scratch.hidden)
    own, vectors, sign = targets + n_shared * RUN * 8, targets + (n_shared + BATCH) * RUN * 8, address(signs)
    for i in range(first, last):
        for item in range(BATCH):
            prefetch(load_int64(vectors, item * RUN + 1), width)
        train_hidden(place, vectors, RUN, moves, targets, own, 8, groups, RUN, width, sign, alpha, batch, tile)
        for item in range(BATCH):
            if i + item * apart < n:
                add_move(vectors + item * RUN * 8, moves + item * row, width)
        targets, own, vectors, sign = targets + 8, own + 8, vectors + 8, sign + 4 * n_signs


@inline
def _draw(
    contexts: Any, centers: Any, first: Any, last: Any, apart: Any, source: Any, output: Any, width: Any,
    negative: Any, words: Any, key: Any, positive: Any, states: Any, rows: Any, signs: Any, size: Any,
) -> None:  # fmt: skip
    """Write the rows and signs of the batches first..last-1: of pairs if `positive`, or of noise."""
    n, n_shared, groups, row = last - first, len(rows) - 2 * BATCH, signs.shape[1], 4 * width
    for i in range(n):
        states[i] = draw(key, first + i)
    for k in range(n_shared):
        for i in range(n):
            rows[k, i] = output + row_of_negative(states[i], k, words) * row
    signs[:n] = 0.0  # what the kind before left does not count
    for item in range(BATCH):
        own, vectors = rows[n_shared + item], rows[n_shared + BATCH + item]
        start, lane = first + item * apart, item * MAX_TARGETS
        inside = min(n, max(len(contexts) - start, 0))
        for i in range(inside):
            own[i] = output + centers[start + i] * row  # of no word where that is -1
            vectors[i] = source + contexts[start + i] * row
            signs[i, groups - 1, lane + OWN] = 1.0
        for k in range(negative):
            group, place, drawn = k // size, lane + k % size, rows[k]
            for i in range(inside):
                signs[i, group, place] = np.float32(0.0 if drawn[i] == own[i] else -1.0)
        for i in range(0 if positive else inside):
            drawn_row = output + row_of_negative(states[i], negative + item, words) * row
            signs[i, groups - 1, lane + OWN] = np.float32(0.0 if drawn_row == own[i] else -1.0)
            own[i] = drawn_row
        for i in range(inside, n):  # no item is left: any rows stand here
            own[i], vectors[i] = rows[n_shared, i], source
