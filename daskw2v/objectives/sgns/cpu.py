"""SGNS on the CPU: one pass over the centers of a segment.

Negatives are shared by a window (as in pWord2Vec and FULL-W2V), or each pair draws its own (as in word2vec.c).
"""

from typing import Any

import numpy as np

from daskw2v.config.params import Params
from daskw2v.kernels.jit import kernel
from daskw2v.kernels.rng import GOLDEN, draw
from daskw2v.objectives.base import Tables
from daskw2v.objectives.cpu import centers
from daskw2v.objectives.cpu.centers import CenterTrainer, WindowTargets, open_window
from daskw2v.objectives.cpu.scratch import Scratch, count_due_rows, fetch_hot, flush_hot, read_loss, scratch_addresses
from daskw2v.objectives.cpu.skip_gram import skip_gram, train_contexts
from daskw2v.objectives.cpu.steps import load_int64
from daskw2v.objectives.cpu.targets import NEGATIVES, draw_targets, make_tile, target_scratch
from daskw2v.objectives.noise import Negatives, PreparedNoise, make_negatives
from daskw2v.objectives.settings import SGNS
from daskw2v.objectives.windows import window_width


@kernel
def _train_pairs(
    segment: Any, first: Any, last: Any, tables: Any, scratch: Any, windows: Any, negatives: Any, tile: Any
) -> Any:
    """Train centers as the kernel of a `CenterTrainer`; each pair of center and context draws its own negatives.

    `scratch` is made for 2 * window + 1 windows: each pair uses the memory of a window.
    """
    states, max_pairs = scratch.states, len(scratch.states)
    words = np.zeros(max_pairs, np.int32)
    rows, signs = scratch.rows.reshape(-1, max_pairs), scratch.signs[: len(scratch.rows)].reshape(max_pairs, -1)
    text, addresses = centers.segment_addresses(segment, tables), centers.table_addresses(tables)
    work = scratch_addresses(scratch)
    n_targets, groups = work.n_targets, work.n_targets // len(tile)
    fetch_hot(tables, scratch)
    pairs, sentence = 0, centers.find_sentence(segment, first)
    for center in range(first, last):
        sentence, n, alpha = open_window(text, sentence, center, windows, addresses, work.contexts, work.copies)
        width = window_width(windows.prefixes, load_int64(text.positions, center), addresses.width)
        words[:] = segment.tokens[center]
        state = draw(negatives.key, segment.positions[center])
        for i in range(n):
            states[i] = state + np.uint64(i * (negatives.negative + negatives.market_negative)) * GOLDEN
        draw_targets(words[:n], states, negatives, addresses, rows, signs)
        for i in range(n):
            targets = WindowTargets(work.rows + i * 8, max_pairs, 8, groups, work.signs + i * n_targets * 4)
            pairs += train_contexts(work, work.contexts + i * 8, 1, targets, width, alpha, tile)
        due = count_due_rows(addresses.hot, center - first + 1, 1)
        if due:
            flush_hot(tables, scratch, due)
    flush_hot(tables, scratch, tables.hot.rows)
    return pairs, read_loss(scratch)


def _prepare_pairs(prepared: PreparedNoise, tables: Tables, epoch: int) -> tuple[Scratch, Negatives, tuple[int, ...]]:
    """Return the arguments scratch, aim and tile of `_train_pairs`."""
    params = prepared.params
    return target_scratch(params, tables, 2 * params.window + 1), make_negatives(prepared, epoch), make_tile(params)


_TRAINERS = {"shared": skip_gram(NEGATIVES), "pair": CenterTrainer(_train_pairs, _prepare_pairs)}


def find_trainer(params: Params) -> CenterTrainer:
    """Return the trainer of skip-gram with negative sampling for Params."""
    return _TRAINERS[SGNS.of(params).negative_sharing]
