"""Many warps that train at once, emulated on one core: the kernels of `benchmarks.in_flight`.

A slot stands for a warp. It trains piece after piece of the text, window after window, on copies of its contexts' rows,
and adds what they gained to the table when they fall out of reach; targets are read as a window begins and moved as it
ends, but for rows at the top of a tree: a slot has copies of them, and adds what they gained every few windows. Time
goes in ticks, a window of each slot. What a tick adds stands in a journal until all slots have read, or, `in_turn`,
until the slot's window ends.

All rows are one array, the input table and the output table behind it, so that a row's address says which it is.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.in_flight_rows import add_row, add_rows
from daskw2v.kernels.alias import pick
from daskw2v.kernels.jit import inline, kernel
from daskw2v.kernels.rng import GOLDEN, draw, mix
from daskw2v.kernels.simd import SLOTS, huge_zeros
from daskw2v.objectives.base import HotRows, Tables
from daskw2v.objectives.cpu.hidden import gather, scatter
from daskw2v.objectives.cpu.scratch import Scratch, loss_of, make_scratch, scratch_addresses
from daskw2v.objectives.cpu.steps import (
    MAX_TARGETS,
    address,
    copy_row,
    dots_one,
    gradients_one,
    gradients_two,
    load_int64,
    prefetch_row,
)
from daskw2v.objectives.noise import Negatives
from daskw2v.sampling.dealing import reach_of
from daskw2v.types import Float32Array
from daskw2v.vocabulary.huffman import Tree, taken

START = 64  # ticks over which slots begin, so that they do not end their pieces together
_TILE = (0,) * MAX_TARGETS  # a group of targets; what fills it up does not count
_AHEAD = 6  # entries of the journal that are brought close


class Model(NamedTuple):
    """The rows of both tables.

    Parameters
    ----------
    rows
        Input rows, then output rows, `width` floats each.
    damping
        Factor of all moves of each row, shape (rows,) float32.
    n_words
        Number of input rows.
    width
        Row length in floats, a multiple of 16.
    """

    rows: Float32Array
    damping: Float32Array
    n_words: int
    width: int


class TargetSettings(NamedTuple):
    """What windows are trained against.

    Parameters
    ----------
    negatives, tree
        Negatives, or the ways of a tree where there is one.
    top, flush
        Nodes below this number have copies in each slot, which are taken anew after so many windows of a piece.
    """

    negatives: Negatives
    tree: Tree
    top: int
    flush: int


class Slots(NamedTuple):
    """What each slot is at.

    Parameters
    ----------
    centers, starts, stops
        Its next center, and its piece, shapes (slots,) int64.
    lows, highs
        The range of tokens that it has copies of, shapes (slots,) int64.
    sentences
        The sentence of its center, shape (slots,) int64.
    rings
        Of each slot 2 * window + 1 copies as they are now, and as many as they were loaded.
    tops
        The same of the nodes that it has copies of.
    """

    centers: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]
    stops: npt.NDArray[np.int64]
    lows: npt.NDArray[np.int64]
    highs: npt.NDArray[np.int64]
    sentences: npt.NDArray[np.int64]
    rings: Float32Array
    tops: Float32Array


class Journal(NamedTuple):
    """Moves that are still to be added: the addresses of rows, int64, and what each gains, `width` floats."""

    rows: npt.NDArray[np.int64]
    moves: Float32Array


class Work(NamedTuple):
    """What a training works in. `fresh` holds copies of the contexts that no ring keeps."""

    slots: Slots
    journal: Journal
    scratch: Scratch
    fresh: Float32Array


def make_work(model: Model, in_flight: int, window: int, n_targets: int, top: int, in_turn: bool) -> Work:
    """Return what so many slots work in, whose windows have at most n_targets, with copies of so many nodes."""
    room, groups = 2 * window + 1, -(-n_targets // MAX_TARGETS)
    arrays: list[Any] = [np.zeros(in_flight, np.int64) for _ in range(6)]
    arrays += [huge_zeros(max(1, in_flight * 2 * n * model.width)) for n in (room, top)]
    entries = (n_targets + 3 * room + top) * (1 if in_turn else in_flight)
    none = np.empty(0, np.float32)
    return Work(
        Slots(*arrays),
        Journal(np.full(entries + _AHEAD, model.rows.ctypes.data, np.int64), huge_zeros(entries * model.width)),
        make_scratch(
            Tables(none, none, model.width, HotRows(0, 0, 0, 1)), window, 1, groups, groups * MAX_TARGETS,
            groups * MAX_TARGETS,
        ),
        huge_zeros(room * model.width),
    )  # fmt: skip


@kernel
def train(
    segment: Any, first: Any, last: Any, model: Any, work: Any, windows: Any, targets: Any, hot: Any, piece: Any,
    hidden: Any, mean: Any, in_turn: Any,
) -> Any:  # fmt: skip
    """Train the centers first..last-1 of a segment.

    Parameters
    ----------
    segment, first, last
        Text, and a range of indices into its tokens.
    model, work
        `Model` and `Work`.
    windows, targets
        `objectives.windows.Windows` and `TargetSettings`.
    hot
        Words below this number are never kept in a ring.
    piece
        Centers that a slot takes at a time.
    hidden, mean
        Whether contexts predict together (CBOW), and whether by their mean or their sum.
    in_turn
        Whether a slot sees what those before it moved in the same tick.

    Returns
    -------
    examples, loss
        Trained pairs, or windows where contexts predict together, and their summed loss.
    """
    work.scratch.mantissa[:], work.scratch.exponent[:] = 1.0, 0
    slots, n_slots = work.slots, len(work.slots.centers)
    slots.centers[:], slots.stops[:] = last, last
    taken, n_pieces, tick, trained, busy = 0, (last - first + piece - 1) // piece, 0, 0, 1
    while busy > 0:
        busy, entries = 0, 0
        for p in range(n_slots):
            if slots.centers[p] == slots.stops[p]:
                if taken == n_pieces or tick * n_slots < p * START:
                    continue
                _take_piece(
                    segment, first + taken * piece, min(first + (taken + 1) * piece, last), slots, p, windows.window
                )
                taken += 1
            busy += 1
            entries, n = _train_window(segment, p, model, work, entries, windows, targets, hot, hidden, mean)
            trained += n
            if in_turn:
                _add_moves(model, work.journal, entries)
                entries = 0
        _add_moves(model, work.journal, entries)
        tick += 1
    return trained, loss_of(work.scratch)


@inline
def _take_piece(segment: Any, center: Any, stop: Any, slots: Any, p: Any, window: Any) -> None:
    sentence = np.searchsorted(segment.bounds, center, side="right") - 1
    slots.centers[p], slots.starts[p], slots.stops[p], slots.sentences[p] = center, center, stop, sentence
    slots.lows[p] = slots.highs[p] = max(segment.bounds[sentence], center - window)


@kernel
def _train_window(
    segment: Any, p: Any, model: Any, work: Any, entries: Any, windows: Any, targets: Any, hot: Any, hidden: Any,
    mean: Any,
) -> Any:  # fmt: skip
    """Train the next window of slot p; return the number of entries in the journal, and the examples trained."""
    slots, scratch, tokens, bounds = work.slots, work.scratch, segment.tokens, segment.bounds
    width, row, base, room = model.width, 4 * model.width, address(model.rows), 2 * windows.window + 1
    ring, fresh = address(slots.rings) + p * 2 * room * row, address(work.fresh)
    top, tops, nodes = targets.top, address(slots.tops) + p * 2 * targets.top * row, base + model.n_words * row
    center, sentence = slots.centers[p], slots.sentences[p]
    if (center - slots.starts[p]) % targets.flush == 0:
        for k in range(top):
            copy_row(nodes + k * row, tops + k * row, width)
            copy_row(nodes + k * row, tops + (top + k) * row, width)
    while center >= bounds[sentence + 1]:
        sentence += 1
    low, high = max(bounds[sentence], center - windows.window), min(bounds[sentence + 1], center + windows.window + 1)
    entries = _put_back(tokens, slots.lows[p], min(low, slots.highs[p]), hot, base, ring, room, width, work.journal,
                        entries)  # fmt: skip
    for i in range(max(low, slots.highs[p]), high):
        if tokens[i] >= hot:
            now = ring + i % room * row
            copy_row(base + tokens[i] * row, now, width)
            copy_row(base + tokens[i] * row, now + room * row, width)
    position = segment.positions[center]
    reach = reach_of(windows.window, windows.shrink_windows, windows.key, position)
    n, start = 0, max(low, center - reach)
    stop = min(high, center + reach + 1)
    for i in range(start, stop):
        if i != center:
            scratch.contexts[n] = fresh + n * row
            if tokens[i] >= hot:
                scratch.contexts[n] = ring + i % room * row
            else:
                copy_row(base + tokens[i] * row, fresh + n * row, width)
            n += 1
    if n > 0:
        alpha = np.float32(windows.alpha + windows.slope * (position - windows.origin))
        n_targets, n_copies = _find_targets(tokens[center], position, model, targets, tops, scratch)
        entries = _train_targets(n, n_targets, n_copies, model, work, entries, alpha, hidden, mean)
        k = 0
        for i in range(start, stop):
            if i != center:
                if tokens[i] < hot:
                    entries = _write(
                        base + tokens[i] * row, fresh + k * row, base + tokens[i] * row, width, work.journal, entries
                    )
                k += 1
    slots.centers[p], slots.sentences[p], slots.lows[p], slots.highs[p] = center + 1, sentence, low, high
    if center + 1 == slots.stops[p]:
        entries = _put_back(tokens, low, high, hot, base, ring, room, width, work.journal, entries)
    if center + 1 == slots.stops[p] or (center + 1 - slots.starts[p]) % targets.flush == 0:
        for k in range(top):
            entries = _write(nodes + k * row, tops + k * row, tops + (top + k) * row, width, work.journal, entries)
    return entries, min(n, 1) if hidden else n


@inline
def _write(row: Any, now: Any, before: Any, width: Any, journal: Any, entries: Any) -> Any:
    """Note what a row gained; return the number of entries."""
    journal.rows[entries] = row
    add_row(before, np.float32(-1.0), now, address(journal.moves) + entries * 4 * width, width)
    return entries + 1


@inline
def _put_back(
    tokens: Any, low: Any, high: Any, hot: Any, base: Any, ring: Any, room: Any, width: Any, journal: Any, entries: Any
) -> Any:
    """Note what the copies of the tokens low..high-1 gained; return the number of entries."""
    for i in range(low, high):
        if tokens[i] >= hot:
            now = ring + i % room * (4 * width)
            entries = _write(base + tokens[i] * (4 * width), now, now + room * (4 * width), width, journal, entries)
    return entries


@inline
def _find_targets(word: Any, position: Any, model: Any, targets: Any, tops: Any, scratch: Any) -> Any:
    """Write rows and signs of a window's targets, group by group; return their number, and how many are copies."""
    rows, signs, row = scratch.rows, scratch.signs, 4 * model.width
    output, tree, negatives = address(model.rows) + model.n_words * row, targets.tree, targets.negatives
    start, n, copies = np.int64(0), np.int64(negatives.negative + 1), np.int64(0)
    if len(tree.steps) > 0:
        start, n = tree.starts[word], tree.starts[word + 1] - tree.starts[word]
    groups, size = _spread(n)
    signs[: groups * MAX_TARGETS] = 0.0
    rows[: groups * MAX_TARGETS] = output
    state = draw(negatives.key, position)
    for t in range(n):
        at = t // size * MAX_TARGETS + t % size
        if len(tree.steps) > 0:  # from the leaf up, so that copies come last
            node, turn = taken(tree.steps[start + n - 1 - t])
            copies += node < targets.top
            rows[at] = (tops if node < targets.top else output) + node * row
            signs[at] = np.float32(1 - 2 * turn)
        elif t == 0:
            rows[at], signs[at] = output + word * row, 1.0
        else:
            drawn = pick(negatives.table, mix(state + np.uint64(t) * GOLDEN))
            rows[at], signs[at] = output + drawn * row, np.float32(0.0 if drawn == word else -1.0)
    return n, copies


@inline
def _spread(n: Any) -> Any:
    """Return how many groups n targets are spread over, and the targets of each (the last may hold fewer)."""
    groups = (n + MAX_TARGETS - 1) // MAX_TARGETS
    return groups, (n + groups - 1) // max(groups, 1)


@inline
def _train_targets(
    n: Any, n_targets: Any, n_copies: Any, model: Any, work: Any, entries: Any, alpha: Any, hidden: Any, mean: Any
) -> Any:
    """Move n contexts and the last n_copies targets; note moves of the others, that are as the window found them."""
    scratch, width, row, place = work.scratch, model.width, 4 * model.width, scratch_addresses(work.scratch)
    vector, zeros = address(scratch.hidden), address(scratch.hidden) + 2 * 4 * model.width
    rows, signs, moves = address(scratch.rows), address(scratch.signs), address(work.journal.moves)
    contexts, left, shift = place.contexts, n, 0
    if hidden:  # it stays until all targets have moved: its own move stands behind it
        gather(place.contexts, n, width, mean, vector, zeros)
        copy_row(zeros, vector + row, width)
        contexts, left, shift = address(scratch.vectors), 1, row
    groups, size = _spread(n_targets)
    for g in range(groups):
        group, sign = rows + g * MAX_TARGETS * 8, signs + g * MAX_TARGETS * 4
        inside = min(size, n_targets - g * size)
        for i in range(left):
            values = place.values + i * (4 * MAX_TARGETS)
            dots_one((load_int64(contexts, i),), group, group, 1, width, values, _TILE)
        even = left // 2 * SLOTS
        gradients_two(place.values, even, sign, alpha, place.mantissa, place.exponent, _TILE)
        if left % 2:
            gradients_one(place.values + 4 * even, SLOTS, sign, alpha, place.mantissa, place.exponent, _TILE)
        for t in range(inside):
            work.journal.rows[entries + t] = load_int64(group, t)
            add_rows(contexts, place.values + 4 * t, MAX_TARGETS, left, zeros, moves + (entries + t) * row, width)
        for i in range(left):
            moved = load_int64(contexts, i) + shift
            add_rows(group, place.values + i * (4 * MAX_TARGETS), 1, inside, moved, moved, width)
        noted = min(inside, max(0, n_targets - n_copies - g * size))
        for t in range(noted, inside):
            copy = load_int64(group, t)
            add_row(moves + (entries + t) * row, np.float32(1.0), copy, copy, width)
        entries += noted
    if hidden:
        scatter(place.contexts, n, width, mean, vector + row)
    return entries


@inline
def _add_moves(model: Any, journal: Any, entries: Any) -> None:
    """Add all moves of the journal to their rows, each times the row's damping."""
    rows, moves, row, base = address(journal.rows), address(journal.moves), 4 * model.width, address(model.rows)
    for e in range(entries):
        prefetch_row(load_int64(rows, e + _AHEAD), model.width)
        place = load_int64(rows, e)
        add_row(moves + e * row, model.damping[(place - base) // row], place, place, model.width)
