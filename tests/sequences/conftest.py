"""Graphs and plain truths that several tests of walks need."""

from collections import defaultdict

import numpy as np
import pyarrow.parquet as pq
import pytest

from daskw2v.sequences.rows import GraphRows


def table_of(edges, directed):
    """Return the weight of each edge, {source: {target: weight}}, of (source, target, weight)."""
    actual = defaultdict(lambda: defaultdict(float))
    for source, target, weight in edges:
        actual[source][target] += weight
        actual[target]
        if not directed and source != target:
            actual[target][source] += weight
    return actual


@pytest.fixture(scope="session")
def weights_of():
    """Add up edges as dictionaries."""
    return table_of


@pytest.fixture(scope="session")
def graph_of():
    """Make a graph in memory of (source, target, weight) whose nodes are 0, 1, ..., with a row for each type."""

    def make(edges, directed=False, types=None):
        table = table_of(edges, directed)
        of = [0] * (max(table) + 1) if types is None else types
        kinds = [(node, kind) for node in range(max(table) + 1) for kind in range(max(of) + 1)]
        rows = [sorted(to for to in table[node].items() if of[to[0]] == kind) for node, kind in kinds]
        weights = [np.cumsum([weight for _, weight in row]) for row in rows]
        even = all(weight == 1 for row in rows for _, weight in row)
        arrays = (
            np.cumsum([0, *map(len, rows)]),
            np.array([target for row in rows for target, _ in row], np.int32),
            np.empty(0) if even else np.concatenate(weights),
        )
        for array in arrays:
            array.setflags(write=False)  # as what is read has, for which kernels are compiled
        return GraphRows(*arrays)

    return make


@pytest.fixture(scope="session")
def lists_in():
    """Read all lists of some Parquet files."""
    return lambda urls: [row for url in urls for row in pq.read_table(url).column(0).to_pylist()]
