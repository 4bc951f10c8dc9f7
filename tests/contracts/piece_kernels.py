"""Kernels of an NVIDIA GPU over pieces of text are their float64 reference: `test_cuda` runs this in the simulator.

Where there is a GPU, one warp is in flight here, so that it too has one order only.
"""

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskw2v.config.params import Params
from daskw2v.objectives.cuda import pieces
from daskw2v.objectives.cuda.pieces import MIN_PIECE
from daskw2v.objectives.cuda.shape import Shape
from daskw2v.objectives.cuda.targets import negative_targets
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.sampling.segments import Segment
from tests.support.cuda.cases import Windows
from tests.support.cuda.compiling import Setting
from tests.support.cuda.occupancy import MULTIPROCESSORS
from tests.support.options import reads_field

KERNELS = sorted(name for name, objective in OBJECTIVES.items() if "cuda" in objective.trainers)


NO_WORD = 1 << 30  # its row is behind all tables: who reads it fails


def make_segment(lengths, n_words, rng, gap=3, spare=0):
    """Sentences of the given lengths, with gaps where words were dropped; in arrays that are so much longer."""
    n = sum(lengths)
    tokens = np.concatenate([rng.integers(0, n_words, n), np.full(spare, NO_WORD)]).astype(np.int32)
    positions = np.cumsum(rng.integers(1, gap + 1, n + spare)).astype(np.int64)
    bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Segment(tokens, positions, bounds)


def compare(params, segment, n_words, rng, first=0, last=None, counts=None, **how):
    """Train a range on one warp and in float64; return the tables before and after."""
    counts = rng.integers(1, 100, n_words) ** rng.integers(1, 5) if counts is None else counts  # trees flat to deep
    case = Windows.made(params, segment, counts, rng, first, last, **how)
    found, truth = case.on_gpu(), case.truth()
    assert found.totals[0] == truth.totals[0]
    assert found.totals[1] == pytest.approx(truth.totals[1], rel=1e-5, abs=1e-5)
    for rows, expected in zip(found.tables, truth.tables, strict=True):
        np.testing.assert_allclose(rows[:, : params.vector_size], expected, rtol=1e-4, atol=3e-5)
        assert not rows[:, params.vector_size :].any(), "padding must stay zero"
    return case.tables, found.tables


@st.composite
def options(draw, objective):
    chosen = {}
    if reads_field(OBJECTIVES[objective], "negative"):
        chosen["negative"] = draw(st.sampled_from([1, 5, 5, 8, 17]))
        chosen["negative_sharing"] = draw(st.sampled_from(["shared", "pair"]))
    if reads_field(OBJECTIVES[objective], "market_negative"):
        chosen["market_negative"] = draw(st.sampled_from([0, 0, 3]))
    if reads_field(OBJECTIVES[objective], "cbow_mean"):
        chosen["cbow_mean"] = draw(st.booleans())
    return chosen


@pytest.mark.parametrize("objective", KERNELS)
@settings(max_examples=5)
@given(
    lengths=st.lists(st.integers(0, 9), max_size=4),
    spare=st.sampled_from([0, 5]),
    n_words=st.sampled_from([1, 2, 3, 30]),
    vector_size=st.sampled_from([1, 16, 40, 100, 130, 300]),
    window=st.integers(1, 7),
    shrink_windows=st.booleans(),
    hot_rows=st.sampled_from([0, 0, 2]),
    seed=st.integers(0, 2**31),
    data=st.data(),
)
def test_warp__equals_its_reference(
    objective, lengths, spare, n_words, vector_size, window, shrink_windows, hot_rows, seed, data
):
    rng = np.random.default_rng(seed)
    params = Params(
        objective=objective,
        vector_size=vector_size,
        window=window,
        shrink_windows=shrink_windows,
        seed=seed,
        **data.draw(options(objective)),
    )
    compare(params, make_segment(lengths, n_words, rng, spare=spare), n_words, rng, hot_rows=hot_rows)


EDGES = {
    "sentences of one token": ([1] * 9, 12, 5, 20),
    "empty sentences": ([0, 0, 4, 0, 0, 3, 0], 12, 2, 20),
    "window longer than any sentence, and no ring for it": ([2, 3], 12, 300, 20),
    "two words, so that many negatives are the center": ([9, 3], 2, 5, 20),
    "a ring of more than 48 KB": ([11, 12], 12, 10, 290),
    "no ring for rows so long": ([4], 12, 2, 1400),
}


@pytest.mark.parametrize("objective", KERNELS)
@pytest.mark.parametrize("edge", EDGES)
def test_warp__equals_its_reference_at_the_edges(objective, edge):
    lengths, n_words, window, vector_size = EDGES[edge]
    rng = np.random.default_rng(0)
    params = (
        Params(objective=objective, vector_size=vector_size, window=window, negative=2, shrink_windows=False)
        if (reads_field(OBJECTIVES[objective], "negative"))
        else Params(objective=objective, vector_size=vector_size, window=window, shrink_windows=False)
    )
    compare(params, make_segment(lengths, n_words, rng), n_words, rng)


@pytest.mark.skipif(not numba.config.ENABLE_CUDASIM, reason="on a GPU nobody knows which piece is first")
@pytest.mark.parametrize("warps", [3, 5])
@pytest.mark.parametrize("objective", KERNELS)
def test_pieces__begin_and_end_inside_a_sentence(objective, warps, monkeypatch):
    """There are three of them, whatever warps there are; so many damp each other, and no others."""
    monkeypatch.setattr(pieces, "MIN_PIECE", 5)
    rng = np.random.default_rng(0)
    params = Params(objective=objective, vector_size=8, window=2)
    compare(params, make_segment([3, 0, 14], 3, rng, spare=7), 3, rng, n_pieces=warps)


def test_n_pieces__are_long_and_not_too_many():
    assert [pieces.count_pieces(n, 3) for n in (1, MIN_PIECE, 2 * MIN_PIECE - 1, 2 * MIN_PIECE, 9 * MIN_PIECE)] == [
        1,
        1,
        1,
        2,
        3,
    ]


def test_damped_chances__are_of_the_first_rows_that_too_many_windows_touch():
    touched = np.array([0.5, 0.1, 0.05, 0.01])
    assert [len(pieces.damped_chances(touched, n)) for n in (1, 8, 9, 41, 81, 500)] == [0, 0, 1, 2, 3, 4]
    np.testing.assert_array_equal(pieces.damped_chances(touched, 41), np.float32([0.5, 0.1]))


@pytest.mark.parametrize("objective", KERNELS)
def test_warp__trains_a_range_of_centers_only(objective):
    rng = np.random.default_rng(0)
    params = Params(objective=objective, vector_size=8, window=3)
    compare(params, make_segment([6, 30], 12, rng), 12, rng, first=4, last=21)


@pytest.mark.parametrize("sharing", ["shared", "pair"])
@pytest.mark.parametrize("objective", [name for name in KERNELS if reads_field(OBJECTIVES[name], "market_negative")])
def test_warp__equals_its_reference_with_negatives_of_markets(objective, sharing):
    rng = np.random.default_rng(0)
    params = Params(objective=objective, vector_size=8, window=2, negative_sharing=sharing, market_negative=3)
    compare(params, make_segment([3, 9], 12, rng), 12, rng, first=1, last=11)


@pytest.mark.parametrize("objective", ["cbow_hs", "sg_hs"])
def test_warp__equals_its_reference_on_the_deepest_ways(objective):
    """Counts that grow by powers make a tree that is one long way: several groups of nodes."""
    rng = np.random.default_rng(1)
    params = Params(objective=objective, vector_size=8, window=2)
    compare(params, make_segment([8], 25, rng), 25, rng, counts=2 ** np.arange(25, 0, -1))


@pytest.mark.parametrize("objective", KERNELS)
def test_warp__leaves_the_model_alone_where_there_is_no_center(objective):
    rng = np.random.default_rng(0)
    params = Params(objective=objective, vector_size=8)
    for lengths, first, last in (([], 0, 0), ([0, 0], 0, 0), ([5], 0, 0), ([5], 3, 3), ([1, 0, 1], 0, 2)):
        segment = make_segment(lengths, 12, rng, spare=4)
        before, after = compare(params, segment, 12, rng, first, last, n_pieces=2)
        for rows, trained in zip(before, after, strict=True):
            np.testing.assert_array_equal(rows, trained)


def test_ring__has_the_places_of_a_window_or_none():
    """So a window of any length, and rows of any length, can be trained."""

    def slots(width, window, negative=5):
        shape = Shape(width, window, True, 48 << 10)
        return shape.slots(negative_targets(shape, negative))

    assert [slots(128, 5), slots(128, 1024), slots(65536, 1)] == [11, 0, 0]
    assert [slots(320, 9, 55), slots(320, 9, 50)] == [0, 19], "just too much for 48 KB, and just not"
    assert [Shape(width, 5, True, 0).group for width in (16, 128, 144, 512, 2048)] == [8, 8, 6, 3, 1]
    assert [Shape(width, 5, True, 0).top for width in (16, 128, 144, 512, 1024, 2048)] == [63, 7, 7, 1, 1, 0]


@pytest.mark.parametrize(
    ("capability", "slots"),
    [((7, 5), [11, 0, 0, 0]), ((8, 0), [11, 11, 0, 0]), ((8, 6), [11, 0, 0, 0]), ((9, 0), [11, 11, 21, 0])],
)
def test_ring__leaves_room_for_four_warps_of_a_multiprocessor(capability, slots):
    """By the shared memory that the GPU has."""
    limits, found = MULTIPROCESSORS[capability], []
    for vector_size, window in ((128, 5), (300, 5), (300, 10), (300, 12)):
        shape = Setting(vector_size, capability, window).shape
        aim = negative_targets(shape, 5)
        found.append(shape.slots(aim))
        ring = shape.ring_bytes(2 * window + 1) + 8 * aim.listed
        assert bool(found[-1]) == (limits.room(32, ring) >= 4)
    assert found == slots
