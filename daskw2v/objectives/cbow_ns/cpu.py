"""CBOW with negative sampling on the CPU: a window's contexts together predict their center.

Four windows share their negatives, or each window draws its own (as in word2vec.c). Windows that share are far from
each other: a range of centers is cut into four streams, and a batch has a window of each. Neighbours have contexts in
common; if they share negatives, vectors get worse.
"""

from typing import Any

from daskw2v.config.params import Params
from daskw2v.kernels.jit import kernel
from daskw2v.objectives.base import Tables
from daskw2v.objectives.cpu import centers
from daskw2v.objectives.cpu.centers import RUN, CenterTrainer, WindowTargets, open_window
from daskw2v.objectives.cpu.hidden import cbow, gather, scatter, train_hidden
from daskw2v.objectives.cpu.scratch import Scratch, count_due_rows, fetch_hot, flush_hot, read_loss, scratch_addresses
from daskw2v.objectives.cpu.steps import MAX_TARGETS, address, load_int64, store_int64
from daskw2v.objectives.cpu.targets import NEGATIVES, batch_scratch, draw_batches, make_shared_tile
from daskw2v.objectives.noise import BATCH, Negatives, PreparedNoise, make_negatives
from daskw2v.objectives.settings import CBOW
from daskw2v.objectives.windows import window_width

_BATCH = (0,) * BATCH  # as long as a batch has windows


@kernel
def _train(segment: Any, first: Any, last: Any, tables: Any, scratch: Any, windows: Any, aim: Any, tile: Any) -> Any:
    """Train centers as the kernel of a `CenterTrainer`, in batches of windows that share their negatives.

    Parameters
    ----------
    scratch
        `objectives.cpu.scratch.Scratch` for RUN batches.
    aim
        `objectives.noise.Negatives`, and `cbow_mean` of Params.
    tile
        Tuple with one element per negative of a group; the word is a target of its window alone.

    Returns
    -------
    windows, loss
        Number of trained windows, which have a context, and the summed loss.
    """
    negatives, mean = aim
    rows, signs = scratch.rows.reshape(-1, RUN), scratch.signs[:-MAX_TARGETS].reshape(RUN, -1, BATCH * MAX_TARGETS)
    text, addresses = centers.segment_addresses(segment, tables), centers.table_addresses(tables)
    work = scratch_addresses(scratch)
    groups, size, row = signs.shape[1], len(tile), 4 * tables.width
    list_bytes = 8 * (2 * windows.window + 1)
    own_rows = work.rows + groups * size * RUN * 8
    lengths, sentences = address(scratch.lengths), address(scratch.sentences)
    fetch_hot(tables, scratch)
    trained, run_index, apart = 0, RUN, (last - first + BATCH - 1) // BATCH
    for w in range(BATCH):
        store_int64(sentences, w, centers.find_sentence(segment, min(first + w * apart, last - 1)))
    for start in range(first, first + apart):
        if run_index >= RUN - 1:  # the targets of a run's last batch are known for their prefetch only
            n = min(RUN, first + apart - start)
            draw_batches(segment, start, n, apart, last, negatives, addresses, scratch.states, rows, signs, size)
            run_index = 0
        rate, width = 0.0, window_width(windows.prefixes, load_int64(text.positions, start), tables.width)
        for w in range(BATCH):
            center, contexts, n = start + w * apart, work.contexts + w * list_bytes, 0
            if center < last:
                copies = work.copies + w * (2 * windows.window + 1) * row
                sentence = load_int64(sentences, w)
                sentence, n, alpha = open_window(text, sentence, center, windows, addresses, contexts, copies)
                store_int64(sentences, w, sentence)
                rate = alpha if w == 0 else rate
            store_int64(lengths, w, n)
            if n > 0:
                gather(contexts, n, width, mean, work.hidden + w * row, work.zeros)
                trained += 1
            else:
                signs[run_index, :, w * MAX_TARGETS : (w + 1) * MAX_TARGETS] = 0.0
        batch_signs = work.signs + run_index * groups * (4 * BATCH * MAX_TARGETS)
        shared = WindowTargets(work.rows + run_index * 8, RUN, 8, groups, batch_signs)
        updates = work.zeros - BATCH * 4 * width
        train_hidden(work, work.vectors, 1, updates, shared, own_rows + run_index * 8, width, rate, _BATCH, tile)
        for w in range(BATCH):
            scatter(work.contexts + w * list_bytes, load_int64(lengths, w), width, mean, updates + w * 4 * width)
        run_index += 1
        due = count_due_rows(addresses.hot, (start - first + 1) * BATCH, BATCH)
        if due:
            flush_hot(tables, scratch, due)
    flush_hot(tables, scratch, tables.hot.rows)
    return trained, read_loss(scratch)


def _prepare(
    prepared: PreparedNoise, tables: Tables, epoch: int
) -> tuple[Scratch, tuple[Negatives, bool], tuple[int, ...]]:
    """Return the arguments scratch, aim and tile of the kernel."""
    params = prepared.params
    aim = make_negatives(prepared, epoch), CBOW.of(params).cbow_mean
    return batch_scratch(params, tables), aim, make_shared_tile(params)


_SHARING = CenterTrainer(_train, _prepare)


def find_trainer(params: Params) -> CenterTrainer:
    """Return the CBOW trainer for Params: windows share negatives, or draw their own, as in word2vec.c."""
    settings = CBOW.of(params)
    return _SHARING if settings.negative_sharing == "shared" else cbow(NEGATIVES, settings.cbow_mean)
