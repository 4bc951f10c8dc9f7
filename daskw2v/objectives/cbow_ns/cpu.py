"""CBOW with negative sampling on the CPU: a window's contexts together predict their center.

Four windows share their negatives, or each window draws its own (as in word2vec.c). Windows that share are far from
each other: a range of centers is cut into four streams, and a batch has a window of each. Neighbours have contexts in
common and lose by it: on 100 MB of Wikipedia, 9 % of the Google analogies.
"""

from typing import Any

from daskw2v.config.params import Params
from daskw2v.kernels.jit import kernel
from daskw2v.objectives.base import Tables
from daskw2v.objectives.cpu import centers
from daskw2v.objectives.cpu.centers import RUN, CenterTrainer, WindowTargets, open_window
from daskw2v.objectives.cpu.hidden import cbow, gather, scatter, train_hidden
from daskw2v.objectives.cpu.scratch import Scratch, fetch_hot, flush_hot, loss_of, rows_due, scratch_addresses
from daskw2v.objectives.cpu.steps import MAX_TARGETS, address, load_int64, store_int64
from daskw2v.objectives.cpu.targets import NEGATIVES, batch_scratch, draw_batches, shared_tile_of
from daskw2v.objectives.noise import BATCH, Negatives, PreparedNoise, negatives_of
from daskw2v.objectives.settings import CBOW
from daskw2v.objectives.windows import width_at

_BATCH = (0,) * BATCH  # as long as a batch has windows


@kernel
def _train(segment: Any, first: Any, last: Any, tables: Any, scratch: Any, windows: Any, aim: Any, tile: Any) -> Any:
    """Train as a `CenterTrainer` does, a batch of windows at a time that share their negatives.

    Parameters
    ----------
    scratch
        `objectives.cpu.scratch.Scratch` for RUN batches.
    aim
        `objectives.noise.Negatives`, and whether a hidden vector is the mean of a window's contexts, or their sum.

    Returns
    -------
    windows, loss
        Number of trained windows, which have a context, and the summed loss.
    """
    negatives, mean = aim
    rows, signs = scratch.rows.reshape(-1, RUN), scratch.signs[:-MAX_TARGETS].reshape(RUN, -1, BATCH * MAX_TARGETS)
    text, there = centers.segment_addresses(segment, tables), centers.table_addresses(tables)
    work = scratch_addresses(scratch)
    groups, size, row = signs.shape[1], len(tile), 4 * tables.width
    room = 8 * (2 * windows.window + 1)
    own = work.rows + groups * size * RUN * 8
    lengths, sentences = address(scratch.lengths), address(scratch.sentences)
    fetch_hot(tables, scratch)
    trained, at, apart = 0, RUN, (last - first + BATCH - 1) // BATCH
    for w in range(BATCH):
        store_int64(sentences, w, centers.sentence_of(segment, min(first + w * apart, last - 1)))
    for start in range(first, first + apart):
        if at >= RUN - 1:  # the targets of a run's last batch are known for their prefetch only
            n = min(RUN, first + apart - start)
            draw_batches(segment, start, n, apart, last, negatives, there, scratch.states, rows, signs, size)
            at = 0
        rate, width = 0.0, width_at(windows.prefixes, load_int64(text.positions, start), tables.width)
        for w in range(BATCH):
            center, contexts, n = start + w * apart, work.contexts + w * room, 0
            if center < last:
                copies = work.copies + w * (2 * windows.window + 1) * row
                sentence = load_int64(sentences, w)
                sentence, n, alpha = open_window(text, sentence, center, windows, there, contexts, copies)
                store_int64(sentences, w, sentence)
                rate = alpha if w == 0 else rate
            store_int64(lengths, w, n)
            if n > 0:
                gather(contexts, n, width, mean, work.hidden + w * row, work.zeros)
                trained += 1
            else:
                signs[at, :, w * MAX_TARGETS : (w + 1) * MAX_TARGETS] = 0.0
        of_batch = work.signs + at * groups * (4 * BATCH * MAX_TARGETS)
        shared = WindowTargets(work.rows + at * 8, RUN, 8, groups, of_batch)
        updates = work.zeros - BATCH * 4 * width
        train_hidden(work, work.vectors, 1, updates, shared, own + at * 8, width, rate, _BATCH, tile)
        for w in range(BATCH):
            scatter(work.contexts + w * room, load_int64(lengths, w), width, mean, updates + w * 4 * width)
        at += 1
        due = rows_due(there.hot, (start - first + 1) * BATCH, BATCH)
        if due:
            flush_hot(tables, scratch, due)
    flush_hot(tables, scratch, tables.hot.rows)
    return trained, loss_of(scratch)


def _prepare(
    prepared: PreparedNoise, tables: Tables, epoch: int
) -> tuple[Scratch, tuple[Negatives, bool], tuple[int, ...]]:
    params = prepared.params
    aim = negatives_of(prepared, epoch), CBOW.of(params).cbow_mean
    return batch_scratch(params, tables), aim, shared_tile_of(params)


_SHARING = CenterTrainer(_train, _prepare)


def trainer_of(params: Params) -> CenterTrainer:
    """Return the trainer: of windows that share their negatives, or that draw their own, as in word2vec.c."""
    of = CBOW.of(params)
    return _SHARING if of.negative_sharing == "shared" else cbow(NEGATIVES, of.cbow_mean)
