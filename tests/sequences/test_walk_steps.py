from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chisquare

from daskw2v.kernels.rng import Purpose, stream
from daskw2v.sequences.reference import step_probabilities
from daskw2v.sequences.steps import Metapath, StepRule, shuffle_part, walk

RANDOM = np.random.default_rng(3)
HUB = [(0, node, 1.0) for node in range(1, 40)] + [(1, 2, 1.0), (2, 3, 1.0)]
DENSE = [(a, b, float(w)) for a, b, w in zip(*RANDOM.integers(0, 12, (2, 60)), RANDOM.uniform(0.1, 5, 60), strict=True)]


def walks_on(graph, first, length, p=1.0, q=1.0, seed=1):
    actual, lengths = np.full((len(first), length), -1, np.int32), np.empty(len(first), np.int64)
    anywhere = Metapath(np.zeros(length, np.uint8), 1)
    rule = StepRule(stream(seed, Purpose.WALK), 1 / p, 1 / q, anywhere)
    walk(graph, np.asarray(first, np.int32), rule, actual, lengths)
    return actual, lengths


BIASES = [(1, 1), (0.5, 2), (0.01, 1), (4, 0.25), (1000, 1000), (0.3, 0.3)]
DENSE_CASES = {("dense", False, *bias) for bias in BIASES}
QUICK = DENSE_CASES | {("hub", True, 1, 1), ("hub", False, 0.5, 2), ("dense", True, 0.5, 2)}
CASES = [
    pytest.param(name, directed, *bias, marks=() if (name, directed, *bias) in QUICK else pytest.mark.slow)
    for bias in BIASES
    for name in ("hub", "dense")
    for directed in (False, True)
]


@pytest.mark.parametrize(("name", "directed", "p", "q"), CASES)
def test_walk__steps_as_often_as_the_reference_says(graph_of, name, directed, p, q):
    edges = {"hub": HUB, "dense": DENSE}[name]
    graph = graph_of(edges, directed)
    n_nodes = len(graph.starts) - 1
    seen = np.zeros((n_nodes, n_nodes, n_nodes))
    for seed in range(40):
        walks, _ = walks_on(graph, range(n_nodes), 400, p, q, seed)
        steps = np.stack([walks[:, :-2].ravel(), walks[:, 1:-1].ravel(), walks[:, 2:].ravel()])
        np.add.at(seen, tuple(steps[:, steps[2] >= 0]), 1)
    values, tested = [], 0
    for before, here in np.argwhere(seen.any(axis=2)):
        counts = seen[before, here]
        expected = step_probabilities(graph, here, before, p, q) * counts.sum()
        assert not counts[expected == 0].any()
        usual = expected >= 10
        if usual.sum() > 1:
            actual, wanted = counts[usual], expected[usual]
            values.append(chisquare(actual, wanted * actual.sum() / wanted.sum()).pvalue)
            tested += 1
    assert tested == 0 or min(values) > 1e-3 / tested
    assert tested > 5 or directed


@given(
    st.lists(
        st.tuples(st.integers(0, 9), st.integers(0, 9), st.sampled_from([1.0, 0.5, 3.0])), min_size=1, max_size=30
    ),
    st.booleans(),
    st.sampled_from([(1.0, 1.0), (0.1, 3.0), (50.0, 0.02)]),
)
def test_walk__goes_along_edges_and_ends_only_where_none_leaves(graph_of, edges, directed, bias):
    graph = graph_of(edges, directed)
    first = np.arange(len(graph.starts) - 1)
    walks, lengths = walks_on(graph, first, 7, *bias)
    assert (walks[:, 0] == first).all()
    for nodes, n in zip(walks, lengths, strict=True):
        assert (nodes[:n] >= 0).all()
        assert (nodes[n:] == -1).all()
        for here, after in pairwise(nodes[:n]):
            assert after in graph.targets[graph.starts[here] : graph.starts[here + 1]]
        assert n == 7 or graph.starts[nodes[n - 1]] == graph.starts[nodes[n - 1] + 1]


def test_walk__depends_on_seed_and_node_and_not_on_its_company(graph_of):
    graph = graph_of(DENSE)
    together, _ = walks_on(graph, range(12), 50, 0.5, 2)
    alone = [walks_on(graph, [node], 50, 0.5, 2)[0][0] for node in reversed(range(12))]
    np.testing.assert_array_equal(together, alone[::-1])
    assert (walks_on(graph, range(12), 50, 0.5, 2, seed=2)[0] != together).any()


def test_walk__begins_as_another_walk_that_is_shorter(graph_of):
    graph = graph_of(DENSE)
    np.testing.assert_array_equal(
        walks_on(graph, range(12), 50, 2, 2)[0][:, :9], walks_on(graph, range(12), 9, 2, 2)[0]
    )


@given(st.integers(1, 200), st.integers(1, 20), st.integers(1, 20))
def test_parts__one_after_the_other_are_the_same_order(n_nodes, n_parts, others):
    key = stream(1, Purpose.START)
    orders = [
        np.concatenate([shuffle_part(n_nodes, key, part, n) for part in range(n)]).tolist() for n in (n_parts, others)
    ]
    assert orders[0] == orders[1]
    assert sorted(orders[0]) == list(range(n_nodes))
