import itertools

import numpy as np
import pytest

from daskw2v.config.params import Params
from daskw2v.objectives.base import Rate
from daskw2v.objectives.noise import negatives_of
from daskw2v.objectives.reference import targets_of, windows_in
from daskw2v.objectives.registry import find_objective
from daskw2v.objectives.tree import path_of
from daskw2v.objectives.windows import windows_of
from daskw2v.sampling.segments import Segment

in_flight = pytest.importorskip("benchmarks.in_flight", reason="no benchmarks here: run pytest as python -m pytest")
kernels = pytest.importorskip("benchmarks.in_flight_kernels")

N_WORDS, N_TOKENS = 40, 600
RATE = Rate(0.1, -1e-5, 7)


@pytest.fixture(scope="module")
def segment():
    random = np.random.default_rng(5)
    words = np.minimum(random.zipf(1.3, N_TOKENS) - 1, N_WORDS - 1).astype(np.int32)
    return Segment(words, np.arange(N_TOKENS) * 2 + 7, np.array([0, 1, 50, 52, 190, 480, N_TOKENS]))


@pytest.fixture(scope="module")
def counts(segment):
    return np.bincount(segment.tokens, minlength=N_WORDS) + 1


class Warp:
    """A slot as the GPU has it: a generator of ticks, each of which reads tables and yields what is to be added."""

    def __init__(self, segment, params, point, prepared, tables, windows):
        self.segment, self.params, self.hot, self.prepared = segment, params, point.hot, prepared
        self.top, self.flush = point.top if hasattr(prepared, "tree") else 0, point.flush
        self.tables, self.windows, self.loss, self.examples = tables, windows, 0.0, 0

    def train(self, first, last):
        tokens, bounds, ring = self.segment.tokens, self.segment.bounds, {}
        for center in range(first, last):
            if (center - first) % self.flush == 0:
                taken = self.tables["output"][: self.top].copy()
                self.nodes = taken.copy()
            moves, sentence = [], np.searchsorted(bounds, center, side="right") - 1
            reached = range(
                max(bounds[sentence], center - self.params.window),
                min(bounds[sentence + 1], center + self.params.window + 1),
            )
            moves += [("input", tokens[i], np.subtract(*ring.pop(i))) for i in set(ring) - set(reached)]
            for i in set(reached) - set(ring):
                if tokens[i] >= self.hot:
                    ring[i] = self.tables["input"][tokens[i]].copy(), self.tables["input"][tokens[i]].copy()
            moves += self.window(self.windows[center], center, ring)
            if center == last - 1:
                moves += [("input", tokens[i], now - before) for i, (now, before) in ring.items()]
            if center == last - 1 or (center + 1 - first) % self.flush == 0:
                moves += [("output", row, gained) for row, gained in enumerate(self.nodes - taken)]
            yield moves

    def window(self, window, center, ring):
        reach, tokens, moves = len(window.contexts), self.segment.tokens, []
        if not reach:
            return moves
        places = self.places(window, center)
        hot = {i: self.tables["input"][tokens[i]].copy() for i in places if tokens[i] < self.hot}
        rows = [hot[i] if i in hot else ring[i][0] for i in places]
        targets, signs = self.targets(window)
        groups = -(-len(targets) // 8)
        size, output = -(-len(targets) // groups), self.tables["output"].copy()
        output[: self.top] = self.nodes
        hidden = in_flight.HIDDEN[self.params.objective]
        x, move = (np.mean(rows, axis=0)[None] if hidden else np.array(rows)), 0.0
        for g in range(0, len(targets), size):
            y, sign = output[targets[g : g + size]], signs[g : g + size]
            p = 1 / (1 + np.exp(-sign * (x @ y.T)))
            self.loss -= (np.abs(sign) * np.log(p)).sum()
            gain = window.alpha * sign * (1 - p)
            for row, gained in zip(targets[g : g + size], gain.T @ x, strict=True):
                if row < self.top:
                    self.nodes[row] += gained
                else:
                    moves.append(("output", row, gained))
            if hidden:
                move += gain @ y
            else:
                x += gain @ y
        self.examples += len(x)
        for row, now in zip(rows, rows + move if hidden else x, strict=True):
            row[:] = now
        return moves + [("input", tokens[i], row - self.tables["input"][tokens[i]]) for i, row in hot.items()]

    def places(self, window, center):
        bounds = self.segment.bounds
        sentence = np.searchsorted(bounds, center, side="right") - 1
        for reach in range(self.params.window + 1):
            start, stop = max(bounds[sentence], center - reach), min(bounds[sentence + 1], center + reach + 1)
            if stop - start - 1 == len(window.contexts):
                return [i for i in range(start, stop) if i != center]
        raise AssertionError

    def targets(self, window):
        if hasattr(self.prepared, "tree"):
            return path_of(self.prepared.tree, window.word)
        return targets_of(self.prepared.noise, negatives_of(self.prepared, 1).key, window, self.params.negative)


def reference(segment, params, point, prepared, tables, damping):
    """Train all warps in float64, tick by tick; return examples and loss."""
    windows = list(windows_in(segment, 0, len(segment.tokens), windows_of(params, RATE, 1)))
    pieces = iter(range(0, len(segment.tokens), point.piece))
    warps = [Warp(segment, params, point, prepared, tables, windows) for _ in range(point.in_flight)]
    busy: dict[int, object] = {}
    for tick in itertools.count():
        added = []
        for p, warp in enumerate(warps):
            moves = next(busy[p], None) if p in busy else None
            if moves is None:
                busy.pop(p, None)
                first = next(pieces, None) if tick * point.in_flight >= p * kernels.START else None
                if first is None:
                    continue
                busy[p] = warp.train(first, min(first + point.piece, len(segment.tokens)))
                moves = next(busy[p])
            added += moves
            if point.in_turn:
                add(tables, added, damping)
                added = []
        add(tables, added, damping)
        if not busy:
            return sum(warp.examples for warp in warps), sum(warp.loss for warp in warps)


def add(tables, moves, damping):
    for table, row, move in moves:
        tables[table][row] += damping[table][row] * move


ONE, MANY, DAMPED, IN_TURN = (1, 0, 0, 64), (3, 2, 0, 64), (8, 1, 0.5, 32), (5, 3, 0.5, 64, True)
CASES = [*itertools.product(in_flight.HIDDEN, [ONE, MANY, DAMPED, IN_TURN])]
CASES += [
    (name, (*case, *top))
    for name in ("sg_hs", "cbow_hs")
    for case, top in [((*DAMPED, False), (7, 8)), (IN_TURN, (3, 5)), ((*MANY, False), (100, 64))]
]


@pytest.mark.parametrize(("objective", "point"), CASES)
def test_training__is_that_of_warps_side_by_side(segment, counts, objective, point):
    params, point = Params(objective=objective, vector_size=20, sample=0.01, window=3), in_flight.Point(*point)
    emulator = in_flight.Emulator(params, counts, point)
    tables = {name: emulator.table(name).astype(float) for name in ("input", "output")}
    prepared = find_objective(objective).prepare(params, counts)
    damping = dict(zip(tables, np.split(emulator.model.damping, [N_WORDS]), strict=True))
    examples, loss = reference(segment, params, point, prepared, tables, damping)
    assert emulator.train(segment, 0, len(segment.tokens), RATE, 1) == (examples, pytest.approx(loss, rel=1e-5))
    for name, rows in tables.items():
        np.testing.assert_allclose(emulator.table(name), rows, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("objective", in_flight.HIDDEN)
def test_touched__is_how_often_windows_use_rows(objective):
    random = np.random.default_rng(1)
    counts, n = np.array([50, 30, 15, 5]), 8_000
    words = np.repeat(np.arange(4), counts * n // 100).astype(np.int32)
    segment = Segment(random.permutation(words), np.arange(n), np.array([0, n]))
    params = Params(objective=objective, sample=0, window=2)
    prepared = find_objective(objective).prepare(params, counts)
    uses = np.zeros(7 if hasattr(prepared, "tree") else 8)
    for window in windows_in(segment, 0, n, windows_of(params, RATE, 0)):
        np.add.at(uses, window.contexts, 1)
        if hasattr(prepared, "tree"):
            targets = path_of(prepared.tree, window.word)[0]
        else:
            targets = targets_of(prepared.noise, negatives_of(prepared, 0).key, window, params.negative)[0]
        np.add.at(uses, 4 + targets, 1)
    touched = find_objective(objective).touched(prepared, counts)
    np.testing.assert_allclose(uses / n, np.concatenate([touched["input"], touched["output"]]), rtol=0.1)


@pytest.mark.parametrize(("objective", "copies"), [("sg_hs", 3), ("sgns", 0)])
def test_copies_of_nodes__gather_the_moves_of_many_windows(counts, objective, copies):
    params, point = Params(objective=objective, vector_size=20), in_flight.Point(50, 0, 4)
    alone, gathered = (
        in_flight.Emulator(params, counts, p).model.damping[N_WORDS:] for p in (point, point._replace(top=3, flush=16))
    )
    assert (alone[:3] < 1).all()
    np.testing.assert_allclose(gathered[:copies], alone[:copies] / 16)
    np.testing.assert_array_equal(gathered[copies:], alone[copies:])
