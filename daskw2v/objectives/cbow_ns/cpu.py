"""CBOW with negative sampling on the CPU: a window's contexts together predict their center.

Four windows share their negatives, or each window draws its own (as in word2vec.c). Those that share are far from
each other: a range of centers is cut into four streams, and each gives a window. Neighbours have contexts in
common and lose by it: on 100 MB of Wikipedia, 9 % of the Google analogies.
"""

from typing import Any

from daskw2v.jit import kernel
from daskw2v.objectives.hidden import BATCH, gather, scatter, train_hidden
from daskw2v.objectives.hot import fetch_hot, flush_due, flush_hot
from daskw2v.objectives.negatives import RUN, draw_batches, draw_run
from daskw2v.objectives.scratch import loss_of, place_of
from daskw2v.objectives.steps import MAX_TARGETS, address, load_int64, store_int64
from daskw2v.objectives.windows import open_window, sentence_of, text_of


@kernel
def train(
    segment: Any, first: Any, last: Any, source: Any, output: Any, width: Any, hot: Any, scratch: Any, windows: Any,
    negatives: Any, mean: Any, batch: Any, tile: Any,
) -> Any:  # fmt: skip
    """Train the centers first..last-1 of a segment, a batch of windows at a time that share their negatives.

    Parameters
    ----------
    segment, first, last, source, output, width, hot, windows, negatives
        As in `objectives.sgns.cpu.train`.
    scratch
        `objectives.scratch.Scratch` for RUN batches.
    mean
        Whether a window's hidden vector is the mean of its contexts, or their sum.
    batch, tile
        Tuples as long as a batch has windows, and a group has negatives.

    Returns
    -------
    windows, loss
        Trained windows (those with a context), and the summed loss of all of them.
    """
    rows, signs = scratch.rows.reshape(-1, RUN), scratch.signs[:-MAX_TARGETS].reshape(RUN, -1, BATCH * MAX_TARGETS)
    text, place, groups, size = text_of(segment), place_of(scratch), signs.shape[1], len(tile)
    sources, outputs, targets, sign_list = address(source), address(output), address(rows), address(signs)
    hidden, vectors, row = address(scratch.hidden), address(scratch.vectors), 4 * width
    room = 8 * (2 * windows.window + 1)
    moves, zeros, own = hidden + BATCH * row, hidden + 2 * BATCH * row, targets + groups * size * RUN * 8
    lengths, sentences = address(scratch.lengths), address(scratch.sentences)
    fetch_hot(source, output, width, hot, scratch)
    trained, at, apart = 0, RUN, (last - first + BATCH - 1) // BATCH
    for w in range(BATCH):
        store_int64(sentences, w, sentence_of(segment, min(first + w * apart, last - 1)))
    for start in range(first, first + apart):
        if at >= RUN - 1:  # the targets of a run's last batch are known for their prefetch only
            n = min(RUN, first + apart - start)
            draw_batches(
                segment, start, n, apart, last, negatives, outputs, width, hot, scratch.states, rows, signs, size
            )
            at = 0
        rate = 0.0
        for w in range(BATCH):
            center, contexts, n = start + w * apart, place.contexts + w * room, 0
            if center < last:
                sentence, n, alpha = open_window(
                    text, load_int64(sentences, w), center, windows, sources, width, hot, contexts
                )
                store_int64(sentences, w, sentence)
                rate = alpha if w == 0 else rate
            store_int64(lengths, w, n)
            if n > 0:
                gather(contexts, n, width, mean, hidden + w * row, zeros)
                trained += 1
            else:
                signs[at, :, w * MAX_TARGETS : (w + 1) * MAX_TARGETS] = 0.0
        sign = sign_list + at * groups * (4 * BATCH * MAX_TARGETS)
        here = targets + at * 8
        train_hidden(place, vectors, 1, moves, here, own + at * 8, 8, groups, RUN, width, sign, rate, batch, tile)
        for w in range(BATCH):
            scatter(place.contexts + w * room, load_int64(lengths, w), width, mean, moves + w * row)
        at += 1
        flush_due(source, output, width, hot, scratch, (start - first + 1) * BATCH, BATCH)
    flush_hot(source, output, width, hot, scratch, hot.rows)
    return trained, loss_of(scratch)


@kernel
def train_pairs(
    segment: Any, first: Any, last: Any, source: Any, output: Any, width: Any, hot: Any, scratch: Any, windows: Any,
    negatives: Any, mean: Any, batch: Any, tile: Any,
) -> Any:  # fmt: skip
    """Train as `train` does, but each window draws its own negatives, as in word2vec.c.

    `scratch` is for RUN windows, `batch` has the length 1, and `tile` that of a group of targets.
    """
    rows, signs = scratch.rows.reshape(-1, RUN), scratch.signs[: len(scratch.rows)].reshape(RUN, -1)
    text, place, n_targets = text_of(segment), place_of(scratch), signs.shape[1]
    sources, outputs, targets, sign_list = address(source), address(output), address(rows), address(signs)
    hidden, vectors, row = address(scratch.hidden), address(scratch.vectors), 4 * width
    fetch_hot(source, output, width, hot, scratch)
    trained, sentence, at = 0, sentence_of(segment, first), RUN
    for center in range(first, last):
        if at >= RUN - 1:  # the targets of a run's last window are known for their prefetch only
            stop = min(center + RUN, last)
            draw_run(segment, center, stop, negatives, outputs, width, hot, scratch.states, rows, signs)
            at = 0
        sentence, n, alpha = open_window(text, sentence, center, windows, sources, width, hot, place.contexts)
        if n > 0:
            gather(place.contexts, n, width, mean, hidden, hidden + 2 * row)
            here, sign = targets + at * 8, sign_list + at * n_targets * 4
            train_hidden(
                place,
                vectors,
                1,
                hidden + row,
                here,
                here,
                8,
                n_targets // len(tile),
                RUN,
                width,
                sign,
                alpha,
                batch,
                tile,
            )
            scatter(place.contexts, n, width, mean, hidden + row)
            trained += 1
        at += 1
        flush_due(source, output, width, hot, scratch, center - first + 1, 1)
    flush_hot(source, output, width, hot, scratch, hot.rows)
    return trained, loss_of(scratch)
