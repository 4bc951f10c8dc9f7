"""Every kernel is its float64 reference up to float32 rounding, on one thread with the same draws."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskw2v.objectives import Rate, sgns
from daskw2v.objectives.sgns import reference
from daskw2v.objectives.tile import group_sizes
from daskw2v.params import Params
from daskw2v.sampling.segments import Segment
from daskw2v.simd import aligned_zeros, padded


def make_segment(lengths, n_words, rng, gap=3):
    """Sentences of the given lengths over a small vocabulary, with gaps where words were dropped."""
    n = sum(lengths)
    tokens = rng.integers(0, n_words, n).astype(np.int32)
    positions = np.cumsum(rng.integers(1, gap + 1, n)).astype(np.int64)
    return Segment(tokens, positions, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))


def compare(params, segment, n_words, rng, first=0, last=None):
    last = len(segment.tokens) if last is None else last
    width = padded(params.vector_size)
    tables, truth = {}, {}
    for name in ("input", "output"):
        table = aligned_zeros(n_words * width)
        rows = table.reshape(n_words, width)[:, : params.vector_size]
        rows[:] = rng.normal(scale=0.3, size=rows.shape)
        tables[name], truth[name] = table, rows.astype(np.float64)
    prepared = sgns.SGNS.prepare(params, rng.integers(1, 100, n_words))
    rate = Rate(0.05, -1e-6, 10)
    pairs, loss = sgns.SGNS.trainers["cpu"](segment, first, last, tables, width, rate, 2, prepared)
    update = sgns.update_of(params, rate, 2)
    n, expected = reference.train(
        segment, first, last, truth["input"], truth["output"], update, prepared.noise,
        group_sizes(params.negative + 1)[1],
    )  # fmt: skip
    assert pairs == n
    assert loss == pytest.approx(expected, rel=1e-5, abs=1e-5)
    for name, table in tables.items():
        rows = table.reshape(n_words, width)
        np.testing.assert_allclose(rows[:, : params.vector_size], truth[name], rtol=1e-4, atol=2e-5)
        assert not rows[:, params.vector_size :].any(), "padding must stay zero"


@settings(deadline=None, max_examples=60)
@given(
    lengths=st.lists(st.integers(1, 30), max_size=6),
    n_words=st.integers(1, 30),
    vector_size=st.sampled_from([1, 2, 3, 15, 16, 17, 40, 100]),
    negative=st.sampled_from([1, 2, 5, 7, 8, 10, 20]),
    window=st.integers(1, 12),
    shrink_windows=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_sgns__cpu_equals_reference(lengths, n_words, vector_size, negative, window, shrink_windows, seed):
    params = Params(vector_size=vector_size, negative=negative, window=window, shrink_windows=shrink_windows, seed=seed)
    rng = np.random.default_rng(seed)
    compare(params, make_segment(lengths, n_words, rng), n_words, rng)


@pytest.mark.parametrize("vector_size", [*range(1, 41), 100, 300])
def test_sgns__cpu_equals_reference_in_every_dimension(vector_size):
    rng = np.random.default_rng(vector_size)
    compare(Params(vector_size=vector_size), make_segment([9, 1, 14], 12, rng), 12, rng)


def test_sgns__a_range_of_centers_trains_these_only():
    rng = np.random.default_rng(0)
    compare(Params(vector_size=8), make_segment([10, 30], 12, rng), 12, rng, first=7, last=19)


def test_sgns__chunks_in_turn_equal_one_pass():
    rng = np.random.default_rng(0)
    params = Params(vector_size=20)
    segment = make_segment([50, 70], 12, rng)
    prepared = sgns.SGNS.prepare(params, rng.integers(1, 100, 12))
    results = []
    for cuts in ([0, 120], [0, 13, 57, 120]):
        tables = {name: aligned_zeros(12 * 32) for name in ("input", "output")}
        tables["input"].reshape(12, 32)[:, :20] = sgns.SGNS.initial(params, "input", 0, 12)
        for a, b in itertools.pairwise(cuts):
            sgns.SGNS.trainers["cpu"](segment, a, b, tables, 32, Rate(0.05, 0.0, 0), 0, prepared)
        results.append(tables)
    for name in ("input", "output"):
        np.testing.assert_array_equal(results[0][name], results[1][name])


def test_reference__moves_along_the_gradient():
    """The update of a tile is alpha times the gradient of its loss, by finite differences."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(4, 6)), rng.normal(size=(5, 6))
    contexts, targets, signs = [2, 0], np.array([1, 3, 4]), np.array([1.0, -1.0, 0.0])

    def loss(x, y):
        logits = signs * (x[contexts] @ y[targets].T)
        return (np.abs(signs) * np.log1p(np.exp(-logits))).sum()

    alpha, eps = 1e-6, 1e-5
    new_x, new_y = x.copy(), y.copy()
    assert reference.tile(new_x, new_y, contexts, targets, signs, alpha) == pytest.approx(loss(x, y))
    for old, new, which in ((x, new_x, 0), (y, new_y, 1)):
        for i in np.ndindex(old.shape):
            bump = np.zeros_like(old)
            bump[i] = eps
            up, down = ((x + s * bump, y) if which == 0 else (x, y + s * bump) for s in (1, -1))
            slope = (loss(*up) - loss(*down)) / (2 * eps)
            assert (new - old)[i] == pytest.approx(-alpha * slope, rel=1e-4, abs=1e-11)
