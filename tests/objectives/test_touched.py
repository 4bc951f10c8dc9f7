"""How likely windows touch rows: as often as they do in the text that is trained."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.config.params import Params
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.objectives.sg_hs.buckets.reference import word_paths
from daskw2v.objectives.touched import contexts_in_partition, nodes_in_partition, words_in_partition
from daskw2v.objectives.tree import make_linked_trees, word_path
from daskw2v.sampling.hierarchy import make_word_table
from daskw2v.sampling.segments import keep_thresholds
from daskw2v.sampling.settings import NegativeSampling
from daskw2v.sampling.weights import word_weights

WINDOWS = sorted(name for name, objective in OBJECTIVES.items() if objective.touched is not None)


def prepare_touched(params, counts):
    objective = OBJECTIVES[params.objective.name]
    return objective.touched(objective.prepare(params, counts), counts)


@pytest.mark.parametrize("objective", WINDOWS)
@given(
    counts=st.lists(st.integers(1, 10**9), min_size=1, max_size=40),
    sample=st.sampled_from([0.0, 1e-3, 1e-1]),
    window=st.integers(1, 9),
    shrink=st.booleans(),
)
def test_touched__has_the_rows_of_a_window(objective, counts, sample, window, shrink):
    """The chances add up to the contexts and targets of a window, in any text; likely rows come first."""
    params = Params(objective=objective, sample=sample, window=window, shrink_windows=shrink)
    counts = np.sort(np.array(counts))[::-1]
    touched = prepare_touched(params, counts)
    assert {name: len(rows) for name, rows in touched.items()} == OBJECTIVES[objective].tables(params, len(counts))
    assert touched["input"].sum() == pytest.approx(window + 1 if shrink else 2 * window)
    for rows in touched.values():
        assert (np.diff(rows) <= 1e-9).all() or sample, "subsampling may swap neighbours"
    if isinstance(params.objective, NegativeSampling):
        assert touched["output"].sum() == pytest.approx(1 + NegativeSampling.of(params).negative)
    elif len(counts) > 1:
        assert touched["output"][0] == pytest.approx(1), "the root is on all paths"


@pytest.mark.parametrize("objective", ["sgns", "cbow_ns"])
@pytest.mark.parametrize("markets", [[-1] * 5, [0] * 5, [2, -1, 0, 2, 2]])
def test_touched__has_the_words_of_each_centers_market(objective, markets):
    params, counts = Params(objective=objective, market_negative=3, sample=0.01), np.array([90, 40, 40, 9, 3])
    result, noise = OBJECTIVES[objective], word_weights(counts, None)
    prepared = result.with_markets(result.prepare(params, counts), counts, np.array(markets, np.int32))
    share = result.touched(prepared, counts)["input"] / (params.window + 1)
    expected = share + NegativeSampling.of(params).negative * noise / noise.sum()
    for word, market in enumerate(markets):
        near = noise * (np.array(markets) == market) if market >= 0 else noise
        expected += 3 * share[word] * near / near.sum()
    np.testing.assert_allclose(result.touched(prepared, counts)["output"], expected)


@pytest.mark.parametrize("objective", ["sg_hs", "cbow_hs"])
def test_touched__of_a_node_is_the_share_of_the_words_below_it(objective):
    params, counts = Params(objective=objective, sample=0.01), np.array([90, 40, 40, 9, 3, 1])
    prepared = OBJECTIVES[objective].prepare(params, counts)
    kept = counts * (keep_thresholds(counts, params.sample) / 2.0**32)
    expected = np.zeros(5)
    for word, share in enumerate(kept / kept.sum()):
        expected[word_path(prepared.tree, word)[0]] += share
    np.testing.assert_allclose(prepare_touched(params, counts)["output"], expected)


def test_contexts_in_partition__counts_items_of_a_batch():
    params, counts = Params(sample=1e-3), np.array([500, 70, 30])
    kept = counts * (keep_thresholds(counts, params.sample, 10_000) / 2.0**32)
    result = contexts_in_partition(params, counts, 10_000)
    assert result.sum() == pytest.approx(4)
    np.testing.assert_allclose(result, 4 * kept / kept.sum())


@pytest.mark.parametrize(("rule", "negative"), [("tns", 5), ("sns", 9), ("bns", 5)])
def test_words_in_partition__counts_items_of_a_batch(rule, negative):
    """Each item of noise draws a negative."""
    params, counts = Params(negative=5, sample=1e-3, negative_rule=rule), np.array([500, 70, 30])
    result = words_in_partition(params, counts, 10_000, make_word_table(counts, 0.75))
    assert result.sum() == pytest.approx(4 + negative)
    assert (result > contexts_in_partition(params, counts, 10_000)).all()


def test_nodes_in_partition__counts_items_of_a_batch():
    params, counts = Params(objective="sg_hs", n_partitions=32, sample=1e-3), np.arange(40, 0, -1)
    result = nodes_in_partition(params, counts, 10_000, make_linked_trees(params, counts))
    kept = counts * (keep_thresholds(counts, params.sample, 10_000) / 2.0**32)
    expected = np.zeros(40)
    for share, (nodes, _) in zip(kept / kept.sum(), word_paths(counts, 2), strict=True):
        expected[nodes] += share
    np.testing.assert_allclose(result, expected)
    assert result.max() < 1, "there are two trees"
