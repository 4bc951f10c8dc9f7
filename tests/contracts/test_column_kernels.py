"""Kernels that train columns of the word-context matrix are their float64 reference up to float32 rounding.

Those of a GPU run in a process of their own (`test_cuda`), in Numba's simulator: then all is small, since that is slow.
"""

import importlib
import itertools
import os

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskw2v.config.params import Params
from daskw2v.objectives.base import MOMENTS, MatrixColumns
from daskw2v.objectives.registry import OBJECTIVES, settle_params
from daskw2v.sampling.settings import NegativeSampling
from daskw2v.training.devices import find_device

DEVICE, SIMULATED = os.environ.get("DASKW2V_TEST_DEVICE", "cpu"), bool(numba.config.ENABLE_CUDASIM)
KERNELS = [
    (name, DEVICE)
    for name, objective in OBJECTIVES.items()
    if DEVICE in objective.column_trainers and not objective.has_network
]
OPTIMIZERS = [(*kernel, optimizer) for kernel in KERNELS for optimizer in OBJECTIVES[kernel[0]].alphas]
N_WORDS, START = 24, 8


def make_tables(params, n_rows, rng):
    """The rows and moments of a part, and all rows of the other table."""
    shape = n_rows, params.vector_size
    rows = rng.normal(scale=0.3, size=shape).astype(np.float32)
    moments = [rng.normal(scale=0.1, size=shape), rng.random(shape) * 0.1][: MOMENTS[params.optimizer]]
    others = rng.normal(scale=0.3, size=(N_WORDS, params.vector_size)).astype(np.float32)
    return [rows, *(values.astype(np.float32) for values in moments)], others


def make_columns(n_rows, n_columns, rng, alpha=0.05, first=3):
    contexts = rng.integers(0, N_WORDS, (n_rows, n_columns)).astype(np.int32)
    contexts[rng.random(n_rows) < 0.2] = -1  # words without any
    return MatrixColumns(contexts, START, first, alpha, np.uint64(rng.integers(2**62)))


def train(params, device, columns, trained, others, prepared, threads=1):
    """Train the input table; return its rows and moments, and the losses."""
    objective = OBJECTIVES[params.objective.name]
    pieces = {"output": [others[:5], others[5:]]}
    part = find_device(device).row_trainer(objective, params, prepared, {"input": trained}, pieces, threads)
    losses = part.train("input", columns)
    return part.take("input"), losses


def compare(params, device, columns, rng, threads=1):
    params = settle_params(params)
    trained, others = make_tables(params, len(columns.contexts), rng)
    prepared = OBJECTIVES[params.objective.name].prepare(params, rng.integers(1, 100, N_WORDS))
    tables, losses = train(params, device, columns, trained, others, prepared, threads)
    rows, *moments = (values.astype(np.float64) for values in trained)
    reference = importlib.import_module(f"daskw2v.objectives.{params.objective.name}.reference")
    expected = reference.train_columns(
        columns, rows, moments, others.astype(np.float64), NegativeSampling.of(params).negative, prepared.noise
    )
    np.testing.assert_allclose(losses, expected, rtol=1e-5, atol=1e-5)
    for values, truth in zip(tables, (rows, *moments), strict=True):
        np.testing.assert_allclose(values, truth, rtol=1e-4, atol=1e-5)


DRAWN = {
    "n_rows": st.integers(1, 5 if SIMULATED else 16),
    "n_columns": st.sampled_from([1, 8] if SIMULATED else [1, 2, 7, 63, 64, 65, 130]),
    "vector_size": st.sampled_from([1, 3, 15, 16, 17, 40, 100]),
    "threads": st.sampled_from([1, 1, 3]),
    "seed": st.integers(0, 2**31),
}


def compare_drawn(objective, device, optimizer, n_rows, n_columns, vector_size, negative, threads, seed):
    rng = np.random.default_rng(seed)
    params = Params(objective=objective, optimizer=optimizer, vector_size=vector_size, negative=negative)
    compare(params, device, make_columns(n_rows, n_columns, rng), rng, threads)


# Each length of a group is compiled anew. A group of five, and three
@pytest.mark.sampled(1)
@pytest.mark.parametrize(("objective", "device", "optimizer"), OPTIMIZERS)
@settings(max_examples=5 if SIMULATED else 40)
@given(**DRAWN, negative=st.sampled_from([5, 17]))
def test_columns__equal_their_reference(objective, device, optimizer, **drawn):
    compare_drawn(objective, device, optimizer, **drawn)


# A group of one negative, and two, of which the second has one place to fill
@pytest.mark.slow
@pytest.mark.parametrize(("objective", "device", "optimizer"), OPTIMIZERS)
@settings(max_examples=5 if SIMULATED else 40)
@given(**DRAWN, negative=st.sampled_from([1, 11]))
def test_columns__equal_their_reference_with_other_numbers_of_negatives(objective, device, optimizer, **drawn):
    compare_drawn(objective, device, optimizer, **drawn)


@pytest.mark.parametrize(("objective", "device", "optimizer"), OPTIMIZERS)
@pytest.mark.parametrize("vector_size", [1, 127, 129, 300] if SIMULATED else [1, 15, 16, 17, 31, 33, 300])
def test_columns__equal_their_reference_in_every_dimension(objective, device, optimizer, vector_size):
    rng = np.random.default_rng(vector_size)
    params = Params(objective=objective, optimizer=optimizer, vector_size=vector_size)
    compare(params, device, make_columns(3 if SIMULATED else 10, 3, rng), rng)


@pytest.mark.parametrize(("objective", "device", "optimizer"), OPTIMIZERS)
def test_columns__are_the_same_bits_however_words_are_shared_out(objective, device, optimizer):
    """Parts of whole batches, threads, and columns trained a few at a time."""
    rng = np.random.default_rng(0)
    # Cuts inside and between the columns whose negatives are drawn at once
    n_rows, negative, cuts, shares = 16, 5, (0, 1, 64, 70), [([0, 16], 3), ([0, 4, 16], 1), ([0, 8, 12, 16], 2)]
    if SIMULATED:
        n_rows, negative, cuts, shares = 8, 43, (0, 1, 3), [([0, 4, 8], 1)]
    params = settle_params(Params(objective=objective, optimizer=optimizer, vector_size=20, negative=negative))
    trained, others = make_tables(params, n_rows, rng)
    columns = make_columns(n_rows, cuts[-1], rng)
    prepared = OBJECTIVES[objective].prepare(params, rng.integers(1, 100, N_WORDS))
    whole, losses = train(params, device, columns, trained, others, prepared)
    for ends, threads in shares:
        for a, b in itertools.pairwise(ends):
            here = columns._replace(contexts=columns.contexts[a:b], row=START + a)
            part, lost = train(params, device, here, [rows[a:b] for rows in trained], others, prepared, threads)
            np.testing.assert_array_equal(lost, losses[a:b])
            for rows, expected in zip(part, whole, strict=True):
                np.testing.assert_array_equal(rows, expected[a:b])
    tables = trained
    for a, b in itertools.pairwise(cuts):
        here = columns._replace(contexts=np.ascontiguousarray(columns.contexts[:, a:b]), first=columns.first + a)
        tables, _ = train(params, device, here, tables, others, prepared)
    for rows, expected in zip(tables, whole, strict=True):
        np.testing.assert_array_equal(rows, expected)


@pytest.mark.parametrize(("objective", "device", "optimizer"), OPTIMIZERS)
def test_columns__leave_words_without_context_alone(objective, device, optimizer):
    rng = np.random.default_rng(0)
    params = settle_params(Params(objective=objective, optimizer=optimizer, vector_size=20))
    trained, others = make_tables(params, 6, rng)
    trained = [trained[0], *(np.zeros_like(rows) for rows in trained[1:])]
    columns = make_columns(6, 5, rng)
    columns.contexts[:] = -1
    columns.contexts[2] = 3
    prepared = OBJECTIVES[objective].prepare(params, np.arange(1, N_WORDS + 1))
    (rows, *_), losses = train(params, device, columns, trained, others, prepared)
    assert losses[2] > 0
    assert not losses[[0, 1, 3, 4, 5]].any()
    moved = (rows != trained[0]).any(axis=1)
    assert moved.tolist() == [False, False, True, False, False, False]


@pytest.mark.parametrize(("objective", "device", "optimizer"), OPTIMIZERS)
def test_columns__bring_a_word_closer_to_its_contexts(objective, device, optimizer):
    """With one word all negatives are the context itself, and none counts."""
    params = settle_params(Params(objective=objective, optimizer=optimizer, vector_size=8))
    rng = np.random.default_rng(0)
    trained, others = make_tables(params, 1, rng)
    trained = [trained[0], *(np.zeros_like(rows) for rows in trained[1:])]
    prepared = OBJECTIVES[objective].prepare(params, np.array([9]))
    columns = MatrixColumns(np.zeros((1, 20), np.int32), 0, 0, 0.01, np.uint64(7))
    (rows, *_), losses = train(params, device, columns, trained, others[:6], prepared)
    dots = [float(r[0] @ others[0]) for r in (trained[0], rows)]
    assert dots[0] < dots[1]
    assert 20 * np.logaddexp(0, -dots[1]) < losses[0] <= 20 * np.logaddexp(0, -dots[0])
