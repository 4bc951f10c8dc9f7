"""The curvature that merges use, against the Hessian of the loss in float64."""

from types import SimpleNamespace

import numpy as np
import pytest

from daskw2v import Params
from daskw2v.objectives.curvature import Moments, add_moments, curvature_of_pairs, curvature_of_windows
from daskw2v.training.averaging import curvature
from daskw2v.training.averaging.curvature import compute_curvatures, compute_moments
from daskw2v.training.start.blocks import TableBlock

D, ROWS, CONTEXTS = 4, 30, 6


@pytest.fixture
def tables():
    rng = np.random.default_rng(0)
    return {name: rng.normal(0.3, 1, (ROWS, D)).astype(np.float32) for name in ("input", "output")}


@pytest.fixture
def touched():
    """How often a window touches each row: six contexts, and a center with five negatives."""
    rng = np.random.default_rng(1)
    shares = {name: rng.random(ROWS) for name in ("input", "output")}
    return {name: CONTEXTS * share / share.sum() for name, share in shares.items()}


@pytest.fixture
def run(touched, monkeypatch):
    monkeypatch.setattr(curvature, "touches_per_window", lambda run: touched)
    return SimpleNamespace(params=Params())


def moments(tables, touched):
    return {
        name: Moments(touched[name].sum(), touched[name] @ rows, (rows.T * touched[name]) @ rows)
        for name, rows in tables.items()
    }


def test_moments__of_blocks_add_up_to_those_of_the_table(run, tables, touched):
    blocks = [TableBlock("input", 0, 11), TableBlock("input", 11, ROWS)]
    computed = add_moments(
        *(compute_moments(run, block, tables["input"][block.start : block.stop]) for block in blocks)
    )
    expected = moments(tables, touched)["input"]
    assert computed.weight == pytest.approx(expected.weight)
    np.testing.assert_allclose(computed.first, expected.first, rtol=1e-5)
    np.testing.assert_allclose(computed.second, expected.second, rtol=1e-5)


def test_moments__of_many_rows_are_those_of_a_sample(run, touched, monkeypatch):
    """The most frequent ones all count; of the others each stands for those around it."""
    monkeypatch.setattr(curvature, "_SAMPLED", 10)
    rows = np.ones((ROWS, D), np.float32)
    rows[:10] = 2
    computed = compute_moments(run, TableBlock("input", 0, ROWS), rows)
    often, rest = touched["input"][:10].sum(), 3 * touched["input"][10::3].sum()
    assert computed.weight == pytest.approx(touched["input"].sum())
    np.testing.assert_allclose(computed.first, 2 * often + rest, rtol=1e-5)
    np.testing.assert_allclose(computed.second, 4 * often + rest, rtol=1e-5)


def test_curvature__of_pairs_is_what_a_touched_row_meets(tables, touched):
    computed = curvature_of_pairs(Params(), moments(tables, touched))
    for table, other in (("input", "output"), ("output", "input")):
        expected = sum(weight * np.outer(row, row) for weight, row in zip(touched[other], tables[other], strict=True))
        np.testing.assert_allclose(computed[table], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mean", [True, False])
def test_curvature__of_windows_is_that_of_their_hidden_vectors(tables, touched, mean):
    """Of the output rows it is the mean square of the hidden vector, here of drawn windows."""
    rng, share = np.random.default_rng(2), touched["input"] / touched["input"].sum()
    windows = tables["input"][rng.choice(ROWS, (100_000, CONTEXTS), p=share)].astype(np.float64)
    hidden = windows.mean(axis=1) if mean else windows.sum(axis=1)
    computed = curvature_of_windows(Params(objective="cbow_ns", cbow_mean=mean), moments(tables, touched))
    np.testing.assert_allclose(computed["output"], hidden.T @ hidden / len(hidden), atol=0.03 * (1 if mean else 36))


def test_curvature__of_windows_counts_what_contexts_move_together(tables, touched):
    """One context is a pair."""
    one = {**touched, "input": touched["input"] / CONTEXTS}
    computed, pairs = (
        of(Params(objective="cbow_ns"), moments(tables, one)) for of in (curvature_of_windows, curvature_of_pairs)
    )
    for table in computed:
        np.testing.assert_allclose(computed[table], pairs[table], rtol=1e-4, atol=1e-4)


def test_curvature__has_the_eigenvectors_of_the_other_table(run, tables, touched):
    blocks = [TableBlock(table, 0, ROWS) for table in tables]
    computed = compute_curvatures(run, blocks, [compute_moments(run, block, tables[block.table]) for block in blocks])
    for table, other in (("input", "output"), ("output", "input")):
        values, vectors = computed[table]
        matrix = curvature._SLOPE * moments(tables, touched)[other].second
        np.testing.assert_allclose(vectors * values @ vectors.T, matrix, rtol=1e-3, atol=1e-3)
        np.testing.assert_allclose(vectors.T @ vectors, np.eye(D), atol=1e-5)


def test_curvature__of_rows_that_are_zero_is_zero(run, tables):
    blocks = [TableBlock(table, 0, ROWS) for table in tables]
    zeros = np.zeros((ROWS, D), np.float32)
    for values, vectors in compute_curvatures(
        run, blocks, [compute_moments(run, block, zeros) for block in blocks]
    ).values():
        assert (values == 0).all()
        assert np.isfinite(vectors).all()
