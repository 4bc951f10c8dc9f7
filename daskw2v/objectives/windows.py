"""What all objectives on the CPU share: the window around a center, its rows, and its step.

Each function is compiled into the kernels that call it. Rows and lists are named by their addresses.
"""

from typing import Any, NamedTuple

import numpy as np

from daskw2v.jit import inline
from daskw2v.objectives.base import Rate
from daskw2v.objectives.steps import (
    MAX_TARGETS,
    address,
    dots_four,
    dots_one,
    dots_two,
    gradients_one,
    gradients_two,
    load_int32,
    load_int64,
    moves_four,
    moves_one,
    moves_two,
    prefetch,
    store_int64,
)
from daskw2v.params import Params
from daskw2v.sampling.dealing import reach_of
from daskw2v.sampling.rng import Purpose, stream
from daskw2v.simd import SLOTS


class Windows(NamedTuple):
    """What a kernel needs to know about the windows of one range of work.

    Parameters
    ----------
    window, shrink_windows
        As in Params.
    alpha, slope, origin
        As in `Rate`.
    key
        Stream of this epoch's draws of window sizes.
    """

    window: int
    shrink_windows: bool
    alpha: float
    slope: float
    origin: int
    key: np.uint64


def windows_of(params: Params, rate: Rate, epoch: int) -> Windows:
    """Return the kernel's view of a range of work in an epoch."""
    return Windows(params.window, params.shrink_windows, *rate, stream(params.seed, Purpose.WINDOW, epoch))


@inline
def row_of(table: Any, number: Any, width: Any, hot_rows: Any, shift: Any) -> Any:
    """Return the address of a table's row; the hottest have a copy of the thread's own, `shift` rows behind."""
    row = np.int64(number)
    return table + (row + (shift if row < hot_rows else 0)) * (4 * width)


class Text(NamedTuple):
    """Addresses of a segment's arrays, and the number of its tokens."""

    tokens: int
    positions: int
    bounds: int
    n: int


@inline
def text_of(segment: Any) -> Any:
    """Return the addresses of a segment's arrays."""
    return Text(address(segment.tokens), address(segment.positions), address(segment.bounds), len(segment.tokens))


@inline
def sentence_of(segment: Any, center: Any) -> Any:
    """Return the number of the sentence that holds a center."""
    return np.searchsorted(segment.bounds, center, side="right") - 1


@inline
def open_window(
    text: Any, sentence: Any, center: Any, windows: Any, source: Any, width: Any, hot: Any, contexts: Any
) -> Any:
    """Write the rows of a center's contexts, and bring the row close that later windows reach first.

    Parameters
    ----------
    text, sentence, center
        `Text`, the sentence of the center before, and the center.
    windows
        `Windows`.
    source, width, hot
        Address of the input table, its row length, and `HotRows`.
    contexts
        Address of the list that receives the rows.

    Returns
    -------
    sentence, n, alpha
        The center's sentence, the number of its contexts, and the learning rate there.
    """
    while center >= load_int64(text.bounds, sentence + 1):
        sentence += 1
    position = load_int64(text.positions, center)
    reach = reach_of(windows.window, windows.shrink_windows, windows.key, position)
    start = max(load_int64(text.bounds, sentence), center - reach)
    stop = min(load_int64(text.bounds, sentence + 1), center + reach + 1)
    n = 0
    for i in range(start, stop):
        store_int64(contexts, n, row_of(source, load_int32(text.tokens, i), width, hot.rows, hot.source))
        n += 1 if i != center else 0
    coming = min(center + windows.window + 1, text.n - 1)
    prefetch(row_of(source, load_int32(text.tokens, coming), width, hot.rows, hot.source), width)
    return sentence, n, np.float32(windows.alpha + windows.slope * (position - windows.origin))


@inline
def train_group(
    place: Any, contexts: Any, n: Any, targets: Any, ahead: Any, stride: Any, width: Any, signs: Any, alpha: Any,
    tile: Any,
) -> None:  # fmt: skip
    """Train n contexts against a group of targets.

    Parameters
    ----------
    place
        `objectives.scratch.Place`.
    contexts, n
        Address of the list of contexts, and its length.
    targets, ahead, stride
        Address of the group's first target in the list of rows, of the one to prefetch, and the rows between one
        target and the next.
    width
        Row length in floats.
    signs
        Address of the group's signs.
    alpha
        Learning rate.
    tile
        Tuple as long as the group has targets.
    """
    for i in range(0, n - 3, 4):
        a, b = load_int64(contexts, i), load_int64(contexts, i + 1)
        c, d = load_int64(contexts, i + 2), load_int64(contexts, i + 3)
        dots_four((a, b, c, d), targets, ahead, stride, width, place.values + i * (4 * MAX_TARGETS), tile)
    i = n // 4 * 4
    if n & 2:
        a, b = load_int64(contexts, i), load_int64(contexts, i + 1)
        dots_two((a, b), targets, ahead, stride, width, place.values + i * (4 * MAX_TARGETS), tile)
    if n & 1:
        a = load_int64(contexts, n - 1)
        dots_one((a,), targets, ahead, stride, width, place.values + (n - 1) * (4 * MAX_TARGETS), tile)
    even = n // 2 * SLOTS
    gradients_two(place.values, even, signs, alpha, place.mantissa, place.exponent, tile)
    if n & 1:
        gradients_one(place.values + 4 * even, SLOTS, signs, alpha, place.mantissa, place.exponent, tile)
    i = 0
    while i < n:
        values = place.values + i * (4 * MAX_TARGETS)
        left = n - i
        a = load_int64(contexts, i)
        b = load_int64(contexts, i + 1) if left > 1 else a
        c = load_int64(contexts, i + 2) if left > 3 else a
        d = load_int64(contexts, i + 3) if left > 3 else a
        if (a != b) & (a != c) & (a != d) & (b != c) & (b != d) & (c != d):
            moves_four((a, b, c, d), targets, ahead, stride, width, values, tile)
            i += 4
        elif a != b:
            moves_two((a, b), targets, ahead, stride, width, values, tile)
            i += 2
        else:
            moves_one((a,), targets, ahead, stride, width, values, tile)
            i += 1
