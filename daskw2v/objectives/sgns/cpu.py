"""SGNS on the CPU: one pass over the centers of a segment.

Negatives are shared by a window (as in pWord2Vec and FULL-W2V), or each pair draws its own (as in word2vec.c).
"""

from typing import Any

import numpy as np

from daskw2v.jit import kernel
from daskw2v.objectives.hot import fetch_hot, flush_due, flush_hot
from daskw2v.objectives.negatives import RUN, draw_run, draw_targets
from daskw2v.objectives.scratch import loss_of, place_of
from daskw2v.objectives.steps import address
from daskw2v.objectives.windows import open_window, sentence_of, text_of, train_group
from daskw2v.sampling.rng import GOLDEN, draw


@kernel
def train(
    segment: Any, first: Any, last: Any, source: Any, output: Any, width: Any, hot: Any, scratch: Any, windows: Any,
    negatives: Any, tile: Any,
) -> Any:  # fmt: skip
    """Train the centers first..last-1 of a segment, with negatives shared by a window.

    Parameters
    ----------
    segment
        `sampling.segments.Segment`: tokens, positions and sentence bounds after subsampling.
    first, last
        Range of centers, as indices into the segment's tokens.
    source, output, width, hot
        `objectives.base.Memory`; the tables are changed in place.
    scratch
        `objectives.scratch.Scratch` for RUN windows.
    windows, negatives
        `objectives.windows.Windows` and `objectives.negatives.Negatives`.
    tile
        Tuple as long as a group has targets.

    Returns
    -------
    pairs, loss
        Trained pairs (context, center with its negatives), and the summed loss of all of them.
    """
    rows, signs = scratch.rows.reshape(-1, RUN), scratch.signs[: len(scratch.rows)].reshape(RUN, -1)
    text, place, size, n_targets = text_of(segment), place_of(scratch), len(tile), signs.shape[1]
    sources, outputs, targets, sign_list = address(source), address(output), address(rows), address(signs)
    fetch_hot(source, output, width, hot, scratch)
    pairs, sentence, at = 0, sentence_of(segment, first), RUN
    for center in range(first, last):
        if at >= RUN - 1:  # the targets of a run's last window are known for their prefetch only
            stop = min(center + RUN, last)
            draw_run(segment, center, stop, negatives, outputs, width, hot, scratch.states, rows, signs)
            at = 0
        sentence, n, alpha = open_window(text, sentence, center, windows, sources, width, hot, place.contexts)
        for t in range(0, n_targets, size):
            here, sign = targets + (t * RUN + at) * 8, sign_list + (at * n_targets + t) * 4
            train_group(place, place.contexts, n, here, here + 8, RUN, width, sign, alpha, tile)
        pairs += n
        at += 1
        flush_due(source, output, width, hot, scratch, center - first + 1, 1)
    flush_hot(source, output, width, hot, scratch, hot.rows)
    return pairs, loss_of(scratch)


@kernel
def train_pairs(
    segment: Any, first: Any, last: Any, source: Any, output: Any, width: Any, hot: Any, scratch: Any, windows: Any,
    negatives: Any, tile: Any,
) -> Any:  # fmt: skip
    """Train as `train` does, but each pair of center and context draws its own negatives, as in word2vec.c.

    `scratch` is for 2 * window + 1 windows: a window's pairs.
    """
    states, most = scratch.states, len(scratch.states)
    words = np.zeros(most, np.int32)
    rows, signs = scratch.rows.reshape(-1, most), scratch.signs[: len(scratch.rows)].reshape(most, -1)
    text, place, size, n_targets = text_of(segment), place_of(scratch), len(tile), signs.shape[1]
    sources, outputs, targets, sign_list = address(source), address(output), address(rows), address(signs)
    fetch_hot(source, output, width, hot, scratch)
    pairs, sentence = 0, sentence_of(segment, first)
    for center in range(first, last):
        sentence, n, alpha = open_window(text, sentence, center, windows, sources, width, hot, place.contexts)
        words[:] = segment.tokens[center]
        state = draw(negatives.key, segment.positions[center])
        for i in range(n):
            states[i] = state + np.uint64(i * negatives.negative) * GOLDEN
        draw_targets(words[:n], states, negatives, outputs, width, hot, rows, signs)
        for i in range(n):
            for t in range(0, n_targets, size):
                here, sign = targets + (t * most + i) * 8, sign_list + (i * n_targets + t) * 4
                train_group(place, place.contexts + 8 * i, 1, here, here + 8, most, width, sign, alpha, tile)
        pairs += n
        flush_due(source, output, width, hot, scratch, center - first + 1, 1)
    flush_hot(source, output, width, hot, scratch, hot.rows)
    return pairs, loss_of(scratch)
