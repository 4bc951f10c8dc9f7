"""Every kernel is its float64 reference up to float32 rounding, on one thread with the same draws."""

import importlib
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskw2v.config.params import Params
from daskw2v.kernels.simd import aligned_zeros, padded
from daskw2v.objectives.base import HotRows, Rate, Tables
from daskw2v.objectives.reference import train_hidden, train_targets, window_columns
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.objectives.windows import make_prefixes
from daskw2v.sampling.segments import Segment
from tests.support.markets import prepare
from tests.support.options import reads_field

ALL = sorted(name for name, objective in OBJECTIVES.items() if objective.trainers)
ALONE = HotRows(0, 0, 0, 1)


def make_segment(lengths, n_words, rng, gap=3):
    """Sentences of the given lengths over a small vocabulary, with gaps where words were dropped."""
    n = sum(lengths)
    tokens = rng.integers(0, n_words, n).astype(np.int32)
    positions = np.cumsum(rng.integers(1, gap + 1, n)).astype(np.int64)
    return Segment(tokens, positions, np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64))


def make_memory(params, n_words, rng, hot=ALONE):
    """Tables of normal draws with room for hot rows behind them, and the same as (rows, D) float64."""
    width, tables, truth = padded(params.vector_size), [], []
    for n_rows in OBJECTIVES[params.objective.name].tables(params, n_words).values():
        table = aligned_zeros((n_rows + hot.rows) * width)
        rows = table.reshape(-1, width)[:n_rows, : params.vector_size]
        rows[:] = rng.normal(scale=0.3, size=rows.shape)
        tables.append(table)
        truth.append(rows.astype(np.float64))
    return Tables(*tables, width, hot), truth


def compare(params, segment, n_words, rng, first=0, last=None, hot_rows=0, counts=None):
    objective = OBJECTIVES[params.objective.name]
    reference = importlib.import_module(f"daskw2v.objectives.{params.objective.name}.reference")
    last = len(segment.tokens) if last is None else last
    rows = objective.tables(params, n_words)
    hot = HotRows(min(hot_rows, *rows.values()), rows["input"], rows["output"], 10)
    memory, truth = make_memory(params, n_words, rng, hot)
    if counts is None:
        counts = rng.integers(1, 100, n_words) ** rng.integers(1, 5)  # the tree: flat to deep
    prepared = prepare(params, counts, rng)
    # Where three words are all contexts and targets, each row takes thousands of updates, and rounding grows: without
    # bounds, if these are large (half a unit of the last place became .00005). So are sums of contexts, and rounding
    few = 0.005 if params.flat().get("cbow_mean", True) else 0.001
    rate = Rate(few if n_words <= 3 else 0.05, -1e-6, 10)
    examples, loss = objective.trainers["cpu"](segment, first, last, memory, rate, 2, prepared)
    n, expected = reference.train(segment, first, last, *truth, rate, 2, prepared)
    assert examples == n
    slack = 4 if n_words <= 3 or not params.flat().get("cbow_mean", True) else 1
    assert loss == pytest.approx(expected, rel=slack * 1e-5, abs=1e-5)
    for table, expected_rows in zip(memory[:2], truth, strict=True):
        trained = table.reshape(-1, memory.width)
        np.testing.assert_allclose(
            trained[: len(expected_rows), : params.vector_size], expected_rows, rtol=1e-4, atol=slack * 3e-5
        )
        assert not trained[:, params.vector_size :].any(), "padding must stay zero"


# What only some objectives read. Each combination is compiled anew, and so is each length of a group of targets: of six
# there are one group (5) and three (17), of two one group (1), and of eleven two with one place to fill (10).
# Hierarchical softmax has groups of five to eight.
OPTIONS = {
    "negative": [5, 17, 1, 10],
    "market_negative": [0, 3],
    "negative_sharing": ["shared", "pair"],
    "cbow_mean": [True, False],
}
# Besides the defaults, one combination of other values, where it is compiled fast
OTHERS = {
    "sgns": {"negative": 17, "negative_sharing": "pair"},
    "cbow_ns": {"negative": 17, "negative_sharing": "pair", "cbow_mean": False},
}


def combinations(objective):
    """Return all values of what only some objectives read."""
    read = [name for name in OPTIONS if reads_field(OBJECTIVES[objective], name)]
    return [dict(zip(read, values, strict=True)) for values in itertools.product(*(OPTIONS[name] for name in read))]


def prefixes(vector_size):
    """Draw `prefix_sizes` of vectors: none, if they are short."""
    fit = range(16, vector_size, 16)
    return st.sets(st.sampled_from(fit), max_size=3).map(sorted) if fit else st.just(())


@st.composite
def cases(draw, objective, options):
    """Draw Params, sentences, the number of words and hot rows, and a source of tables."""
    seed, n_words = draw(st.integers(0, 2**31)), draw(st.sampled_from([1, 2, 3, 12, 30, 100, 500]))
    rng = np.random.default_rng(seed)
    vector_size = draw(st.sampled_from([1, 2, 3, 15, 16, 17, 40, 100]))
    params = Params(
        objective=objective,
        vector_size=vector_size,
        prefix_sizes=draw(prefixes(vector_size)),
        seed=seed,
        window=draw(st.integers(1, 12)),
        shrink_windows=draw(st.booleans()),
        **draw(st.sampled_from(options)),
    )
    segment = make_segment(draw(st.lists(st.integers(1, 30), max_size=6)), n_words, rng)
    return params, segment, n_words, rng, draw(st.sampled_from([0, 0, 3, 100]))


@pytest.mark.parametrize("objective", ALL)
@settings(max_examples=50)
@given(data=st.data())
def test_cpu__equals_its_reference(objective, data):
    *case, hot_rows = data.draw(cases(objective, [{}, OTHERS.get(objective, {})]))
    compare(*case, hot_rows=hot_rows)


@pytest.mark.slow
@pytest.mark.parametrize("objective", ALL)
@settings(max_examples=200)
@given(data=st.data())
def test_cpu__equals_its_reference_with_all_options(objective, data):
    *case, hot_rows = data.draw(cases(objective, combinations(objective)))
    compare(*case, hot_rows=hot_rows)


@pytest.mark.parametrize("objective", ALL)
@pytest.mark.parametrize("vector_size", [1, 15, 16, 17, 31, 33, 100, 300])
def test_cpu__equals_its_reference_in_every_dimension(objective, vector_size):
    rng = np.random.default_rng(vector_size)
    compare(Params(objective=objective, vector_size=vector_size), make_segment([9, 1, 14], 12, rng), 12, rng)


@pytest.mark.parametrize("objective", ALL)
@pytest.mark.parametrize("options", [0, 1])
def test_cpu__equals_its_reference_with_prefixes(objective, options):
    rng = np.random.default_rng(options)
    more = [{}, OTHERS.get(objective, {"cbow_mean": False} if objective == "cbow_hs" else {})][options]
    params = Params(objective=objective, vector_size=100, prefix_sizes=(16, 48, 64), window=3, **more)
    compare(params, make_segment([90, 1, 70], 12, rng), 12, rng, first=2, hot_rows=4 * options)


def test_prefixes__are_those_of_a_third_of_the_windows():
    params = Params(vector_size=64, prefix_sizes=(16, 32), seed=3)
    positions = np.arange(20_000)
    columns = [window_columns(make_prefixes(params, 1), position).stop for position in positions.tolist()]
    shares = {stop: columns.count(stop) / len(columns) for stop in set(columns)}
    assert shares == pytest.approx({None: 2 / 3, 16: 1 / 6, 32: 1 / 6}, abs=0.02)
    again = [window_columns(make_prefixes(params, 2), position).stop for position in positions[:100].tolist()]
    assert again != columns[:100], "epochs draw anew"


EDGES = {
    "no token": ([], 12, 5),
    "sentences of one token": ([1] * 9, 12, 5),
    "window longer than any sentence": ([2, 3, 7, 1, 4], 12, 300),
    "one word": ([9, 1, 14], 1, 5),
    "two words, so that many negatives are the center": ([40, 3], 2, 5),
    "more sentences than one run of windows": ([3] * 50, 12, 2),
}


@pytest.mark.parametrize("objective", ALL)
@pytest.mark.parametrize("hot_rows", [0, 5])
@pytest.mark.parametrize("edge", EDGES)
def test_cpu__equals_its_reference_at_the_edges(objective, edge, hot_rows):
    lengths, n_words, window = EDGES[edge]
    rng = np.random.default_rng(0)
    params = Params(objective=objective, vector_size=20, window=window, shrink_windows=False)
    compare(params, make_segment(lengths, n_words, rng), n_words, rng, hot_rows=hot_rows)


@pytest.mark.parametrize("objective", OTHERS)
@pytest.mark.parametrize("sharing", ["shared", "pair"])
def test_cpu__equals_its_reference_with_negatives_of_markets(objective, sharing):
    params = Params(objective=objective, vector_size=20, negative_sharing=sharing, market_negative=3)
    for seed, (lengths, n_words) in enumerate([([40, 1, 90], 30), ([9, 200], 5), ([40], 1), ([3] * 50, 12)]):
        rng = np.random.default_rng(seed)
        last = sum(lengths) - 2
        compare(params, make_segment(lengths, n_words, rng), n_words, rng, first=3, last=last, hot_rows=seed % 2 * 4)


@pytest.mark.parametrize("objective", ["cbow_hs", "sg_hs"])
@pytest.mark.parametrize("base", [2, 3])
def test_cpu__equals_its_reference_on_the_deepest_ways(objective, base):
    """Counts that grow by powers make a tree that is one long path: groups of all lengths, and many of them."""
    rng = np.random.default_rng(base)
    params = Params(objective=objective, vector_size=8)
    compare(params, make_segment([150], 38, rng), 38, rng, counts=base ** np.arange(38, 0, -1))


@pytest.mark.parametrize("objective", ALL)
def test_cpu__a_range_of_centers_trains_these_only(objective):
    rng = np.random.default_rng(0)
    params = Params(objective=objective, vector_size=8)
    compare(params, make_segment([10, 300], 12, rng), 12, rng, first=7, last=219)


@pytest.mark.parametrize("objective", ALL)
def test_cpu__chunks_in_turn_equal_one_pass(objective):
    """But for CBOW that shares negatives: its batches take windows from all of a range."""
    rng = np.random.default_rng(0)
    params = Params(objective=objective, vector_size=20, **(OTHERS[objective] if objective == "cbow_ns" else {}))
    segment = make_segment([50, 170], 12, rng)
    prepared = OBJECTIVES[objective].prepare(params, rng.integers(1, 100, 12))
    results = []
    for cuts in ([0, 220], [0, 13, 57, 220]):
        memory, _ = make_memory(params, 12, np.random.default_rng(1))
        for a, b in itertools.pairwise(cuts):
            OBJECTIVES[objective].trainers["cpu"](segment, a, b, memory, Rate(0.05, 0.0, 0), 0, prepared)
        results.append(memory)
    np.testing.assert_array_equal(results[0].source, results[1].source)
    np.testing.assert_array_equal(results[0].output, results[1].output)


@pytest.mark.parametrize(
    ("objective", "options"), [(objective, options) for objective, others in OTHERS.items() for options in ({}, others)]
)
def test_ns__a_negative_equal_to_the_center_does_not_count(objective, options):
    """With one word all negatives are the center itself: contexts and center only ever come closer."""
    rng = np.random.default_rng(0)
    params = Params(objective=objective, vector_size=8, **options)
    compare(params, make_segment([40], 2, rng), 2, rng)
    memory, _ = make_memory(params, 1, rng)
    prepared = OBJECTIVES[objective].prepare(params, np.array([9]))
    segment = make_segment([40], 1, rng)
    dots = [memory.source @ memory.output]
    for _ in range(3):
        OBJECTIVES[objective].trainers["cpu"](segment, 0, 40, memory, Rate(0.05, 0.0, 0), 0, prepared)
        dots.append(memory.source @ memory.output)
    assert all(a < b for a, b in itertools.pairwise(dots)), dots


def finite_differences(loss, x, y):
    """The slope of loss(x, y) by each entry of both, by finite differences."""
    eps, slopes = 1e-5, []
    for which, old in enumerate((x, y)):
        slope = np.zeros_like(old)
        for i in np.ndindex(old.shape):
            bump = np.zeros_like(old)
            bump[i] = eps
            up, down = ((x + s * bump, y) if which == 0 else (x, y + s * bump) for s in (1, -1))
            slope[i] = (loss(*up) - loss(*down)) / (2 * eps)
        slopes.append(slope)
    return slopes


def losses(logits, signs):
    return (np.abs(signs) * np.log1p(np.exp(-signs * logits))).sum()


def test_reference__train_targets_moves_along_the_gradient():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(4, 6)), rng.normal(size=(5, 6))
    contexts, targets, signs = [2, 0], np.array([1, 3, 4]), np.array([1.0, -1.0, 0.0])

    def loss(x, y):
        return losses(x[contexts] @ y[targets].T, signs)

    new_x, new_y, alpha = x.copy(), y.copy(), 1e-6
    assert train_targets(new_x, contexts, new_y, (targets, signs), alpha, 8) == pytest.approx(loss(x, y))
    for new, old, slope in zip((new_x, new_y), (x, y), finite_differences(loss, x, y), strict=True):
        np.testing.assert_allclose(new - old, -alpha * slope, rtol=1e-4, atol=1e-11)


@pytest.mark.parametrize("own", [[], [4, 2]])
def test_reference__train_hidden_moves_along_the_gradient(own):
    """word2vec gives each context of a mean the whole gradient of the mean: that many times its own."""
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(5, 6)), rng.normal(size=(5, 6))
    contexts, targets = [[2, 0], [3, 1]], np.array([1, 3])
    signs = np.array([[1.0, -1.0], [0.0, -1.0]])

    def loss(x, y):
        hidden = np.stack([x[rows].mean(axis=0) for rows in contexts])
        alone = losses((hidden * y[own]).sum(axis=1), np.ones(2)) if own else 0.0
        return losses(hidden @ y[targets].T, signs) + alone

    new_x, new_y, alpha = x.copy(), y.copy(), 1e-6
    assert train_hidden(new_x, contexts, new_y, (targets, signs), own, alpha, True) == pytest.approx(loss(x, y))
    for new, old, slope, share in zip((new_x, new_y), (x, y), finite_differences(loss, x, y), (2, 1), strict=True):
        np.testing.assert_allclose(new - old, -alpha * share * slope, rtol=1e-4, atol=1e-11)
