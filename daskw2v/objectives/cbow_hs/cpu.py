"""CBOW with hierarchical softmax on the CPU: a window's contexts together predict their center's way."""

from typing import Any

from daskw2v.jit import kernel
from daskw2v.objectives.hidden import gather, scatter
from daskw2v.objectives.hot import fetch_hot, flush_due, flush_hot
from daskw2v.objectives.paths import find_way, train_hidden_way
from daskw2v.objectives.scratch import loss_of, place_of
from daskw2v.objectives.steps import address, load_int32
from daskw2v.objectives.windows import open_window, sentence_of, text_of


@kernel
def train(
    segment: Any, first: Any, last: Any, source: Any, output: Any, width: Any, hot: Any, scratch: Any, windows: Any,
    tree: Any, mean: Any,
) -> Any:  # fmt: skip
    """Train the centers first..last-1 of a segment.

    Parameters
    ----------
    segment, first, last, source, output, width, hot, scratch, windows, tree
        As in `objectives.sg_hs.cpu.train`.
    mean
        Whether a window's hidden vector is the mean of its contexts, or their sum.

    Returns
    -------
    windows, loss
        Trained windows (those with a context), and the summed loss of all of them.
    """
    rows, signs = scratch.rows.reshape(2, -1), scratch.signs[: len(scratch.rows)].reshape(2, -1)
    way, sign, text, place = 8 * rows.shape[1], 4 * rows.shape[1], text_of(segment), place_of(scratch)
    sources, outputs, row_list, sign_list = address(source), address(output), address(rows), address(signs)
    hidden, vectors, row = address(scratch.hidden), address(scratch.vectors), 4 * width
    fetch_hot(source, output, width, hot, scratch)
    trained, turn, sentence, groups, size = 0, 0, sentence_of(segment, first), 0, 0
    if first < last:
        groups, size = find_way(tree, segment.tokens[first], outputs, width, hot, rows, signs, turn)
    for center in range(first, last):
        sentence, n, alpha = open_window(text, sentence, center, windows, sources, width, hot, place.contexts)
        next_groups, next_size = 0, 0
        if center + 1 < last:
            word = load_int32(text.tokens, center + 1)
            next_groups, next_size = find_way(tree, word, outputs, width, hot, rows, signs, 1 - turn)
        here, there, its_signs = row_list + turn * way, row_list + (1 - turn) * way, sign_list + turn * sign
        if n > 0:
            gather(place.contexts, n, width, mean, hidden, hidden + 2 * row)
            train_hidden_way(place, vectors, hidden + row, here, there - here, groups, size, width, its_signs, alpha)
            scatter(place.contexts, n, width, mean, hidden + row)
            trained += 1
        groups, size, turn = next_groups, next_size, 1 - turn
        flush_due(source, output, width, hot, scratch, center - first + 1, 1)
    flush_hot(source, output, width, hot, scratch, hot.rows)
    return trained, loss_of(scratch)
