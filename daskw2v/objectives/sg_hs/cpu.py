"""Skip-gram with hierarchical softmax on the CPU: all contexts of a window share their center's way."""

from typing import Any

from daskw2v.jit import kernel
from daskw2v.objectives.hot import fetch_hot, flush_due, flush_hot
from daskw2v.objectives.paths import find_way, train_way
from daskw2v.objectives.scratch import loss_of, place_of
from daskw2v.objectives.steps import address, load_int32
from daskw2v.objectives.windows import open_window, sentence_of, text_of


@kernel
def train(
    segment: Any, first: Any, last: Any, source: Any, output: Any, width: Any, hot: Any, scratch: Any, windows: Any,
    tree: Any,
) -> Any:  # fmt: skip
    """Train the centers first..last-1 of a segment.

    Parameters
    ----------
    segment, first, last, source, output, width, hot, windows
        As in `objectives.sgns.cpu.train`; `output` holds the tree's inner nodes.
    scratch
        `objectives.scratch.Scratch` for the ways of two windows.
    tree
        `vocabulary.huffman.Tree`.

    Returns
    -------
    pairs, loss
        Trained pairs (context, center), and the summed loss of all of them.
    """
    rows, signs = scratch.rows.reshape(2, -1), scratch.signs[: len(scratch.rows)].reshape(2, -1)
    way, sign, text, place = 8 * rows.shape[1], 4 * rows.shape[1], text_of(segment), place_of(scratch)
    sources, outputs, row_list, sign_list = address(source), address(output), address(rows), address(signs)
    fetch_hot(source, output, width, hot, scratch)
    pairs, turn, sentence, groups, size = 0, 0, sentence_of(segment, first), 0, 0
    if first < last:
        groups, size = find_way(tree, segment.tokens[first], outputs, width, hot, rows, signs, turn)
    for center in range(first, last):
        sentence, n, alpha = open_window(text, sentence, center, windows, sources, width, hot, place.contexts)
        next_groups, next_size = 0, 0
        if center + 1 < last:
            word = load_int32(text.tokens, center + 1)
            next_groups, next_size = find_way(tree, word, outputs, width, hot, rows, signs, 1 - turn)
        here, there, its_signs = row_list + turn * way, row_list + (1 - turn) * way, sign_list + turn * sign
        train_way(place, place.contexts, n, here, there, groups, size, width, its_signs, alpha)
        pairs += n
        groups, size, turn = next_groups, next_size, 1 - turn
        flush_due(source, output, width, hot, scratch, center - first + 1, 1)
    flush_hot(source, output, width, hot, scratch, hot.rows)
    return pairs, loss_of(scratch)
