"""CBOW with negative sampling on the CPU: a window's contexts together predict their center."""

from typing import Any

from daskw2v.jit import kernel
from daskw2v.objectives.hidden import gather, scatter
from daskw2v.objectives.hot import fetch_hot, flush_hot
from daskw2v.objectives.negatives import RUN, draw_run
from daskw2v.objectives.scratch import loss_of, place_of
from daskw2v.objectives.steps import SIGNS, address
from daskw2v.objectives.windows import open_window, sentence_of, text_of, train_group


@kernel
def train(
    segment: Any, first: Any, last: Any, source: Any, output: Any, width: Any, hot: Any, scratch: Any, windows: Any,
    negatives: Any, mean: Any, tile: Any,
) -> Any:  # fmt: skip
    """Train the centers first..last-1 of a segment.

    Parameters
    ----------
    segment, first, last, source, output, width, hot, scratch, windows, negatives, tile
        As in `objectives.sgns.cpu.train`.
    mean
        Whether a window's hidden vector is the mean of its contexts, or their sum.

    Returns
    -------
    windows, loss
        Trained windows (those with a context), and the summed loss of all of them.
    """
    rows, signs = scratch.rows.reshape(-1, RUN), scratch.signs.reshape(RUN, -1, SIGNS)
    text, place, groups, size = text_of(segment), place_of(scratch), signs.shape[1], len(tile)
    sources, outputs, targets, sign_list = address(source), address(output), address(rows), address(signs)
    hidden, only = address(scratch.hidden), address(scratch.only)
    fetch_hot(source, output, width, hot, scratch)
    trained, sentence, at = 0, sentence_of(segment, first), RUN
    for center in range(first, last):
        if at >= RUN - 1:  # the targets of a run's last window are known for their prefetch only
            stop = min(center + RUN, last)
            draw_run(segment, center, stop, negatives, outputs, width, hot, scratch.states, rows, signs, size)
            at = 0
        sentence, n, alpha = open_window(text, sentence, center, windows, sources, width, hot, place.contexts)
        if n > 0:
            gather(place.contexts, n, width, mean, hidden)
            for g in range(groups):
                here = targets + (g * size * RUN + at) * 8
                sign = sign_list + (at * groups + g) * (4 * SIGNS)
                train_group(place, only, 1, here, here + 8, RUN, width, sign, alpha, tile)
            scatter(place.contexts, n, width, mean, hidden)
            trained += 1
        at += 1
        if hot.rows and (center - first) % hot.flush == hot.flush - 1:
            flush_hot(source, output, width, hot, scratch)
    flush_hot(source, output, width, hot, scratch)
    return trained, loss_of(scratch)
