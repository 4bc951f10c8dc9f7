"""Composed input rows: kernels of all objectives equal their references, whatever rows are composed of."""

import importlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskw2v.config.params import Params
from daskw2v.features.words import WordFeatures, compose_vectors, weigh_own_rows
from daskw2v.kernels.simd import aligned_zeros, padded
from daskw2v.objectives import reference
from daskw2v.objectives.base import HotRows, Rate, Tables
from daskw2v.objectives.cpu import composed as kernels
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.sampling.segments import Segment
from tests.support.options import reads_field

OBJECTIVES_OF_TEXT = sorted(name for name, objective in OBJECTIVES.items() if reads_field(objective, "maxn"))
RATE = Rate(0.05, -1e-6, 10)
TIMES = 4  # the rounding of the reference in float32, within which a kernel equals it in float64


def load_features(n_words, n_features, rng, weighted, prior_count):
    """Features at random: of some words none, of some the same one twice; one that all words have."""
    sizes = rng.integers(0, 6, n_words)
    rows = rng.integers(0, n_features, sizes.sum()).astype(np.int32)
    rows[rng.random(len(rows)) < 0.3] = 0
    weights = rng.uniform(0.1, 3, len(rows)) if weighted else np.zeros(0)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    found = WordFeatures(offsets, rows, weights.astype(np.float32), np.ones(n_words, np.float32))
    return weigh_own_rows(found, rng.integers(1, 100, n_words), prior_count)


def table_of(n_rows, params, rng, behind=0):
    """A table of normal draws with room behind it, and the same as (rows, D) float64."""
    table = aligned_zeros((n_rows + behind) * padded(params.vector_size))
    rows = table.reshape(-1, padded(params.vector_size))[:n_rows, : params.vector_size]
    rows[:] = rng.normal(scale=0.3, size=rows.shape)
    return table, rows.astype(np.float64)


def compare(params, n_words, n_features, rng, *, weighted=False, prior_count=0, hot=0, lengths=(9, 1, 40, 30)):
    objective, width = OBJECTIVES[params.objective.name], padded(params.vector_size)
    tokens = rng.integers(0, n_words, sum(lengths)).astype(np.int32)
    bounds = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    segment = Segment(tokens, np.cumsum(rng.integers(1, 4, len(tokens))).astype(np.int64), bounds)
    features = load_features(n_words, n_features, rng, weighted, prior_count)
    prepared = objective.prepare(params, rng.integers(1, 100, n_words))
    n_output = objective.tables(params, n_words)["output"]
    own, own_truth = table_of(n_words, params, rng)
    rows, rows_truth = table_of(n_features, params, rng)
    output, output_truth = table_of(n_output, params, rng, hot)
    hot_rows = HotRows(min(hot, n_words, n_output), n_words, n_output, 10) if hot else HotRows(0, 0, 0, 1)
    composer = kernels.make_composer(features, n_features, params.window, width)
    first, last = min(2, len(tokens)), len(tokens) - 3
    done = kernels.train_composed(
        objective.trainers["cpu"],
        segment,
        first,
        last,
        Tables(own, output, width, hot_rows),
        RATE,
        2,
        prepared,
        kernels.ComposedRows(features, rows, composer, params.window),
    )
    truth = importlib.import_module(f"daskw2v.objectives.{params.objective.name}.reference")

    def expected(dtype):
        starts = [table.astype(dtype) for table in (own_truth, rows_truth, output_truth)]
        examples, loss = reference.train_composed(
            truth.train,
            segment,
            first,
            last,
            *starts,
            features,
            params.window,
            kernels.STRETCH,
            kernels.CROWD,
            RATE,
            2,
            prepared,
        )
        return examples, loss, starts

    exact, rounded = expected(np.float64), expected(np.float32)  # few rows in a crowd: updates may enlarge rounding
    assert done[0] == exact[0]
    assert done[1] == pytest.approx(exact[1], rel=1e-4, abs=1e-5 + TIMES * abs(rounded[1] - exact[1]))
    for table, true, less_exact in zip((own, rows, output), exact[2], rounded[2], strict=True):
        trained, rounding = table.reshape(-1, width), np.abs(less_exact - true).max(initial=0)
        within = {"rtol": 1e-3, "atol": 1e-4 + TIMES * rounding}
        np.testing.assert_allclose(trained[: len(true), : params.vector_size], true, **within)
        assert not trained[:, params.vector_size :].any(), "padding must stay zero"
    assert (composer.word_numbers == -1).all()
    assert (composer.feature_numbers == -1).all()


@pytest.mark.parametrize("hot", [0, 5])
@pytest.mark.parametrize("objective", OBJECTIVES_OF_TEXT)
def test_composed_rows__are_trained_as_in_the_reference(objective, hot, monkeypatch):
    monkeypatch.setattr(kernels, "STRETCH", 20)
    monkeypatch.setattr(kernels, "CROWD", 3)
    for seed, (weighted, prior_count) in enumerate([(False, 0), (False, 40), (True, 0), (True, 40)]):
        rng = np.random.default_rng(seed)
        params = Params(objective=objective, vector_size=20, window=4)
        compare(params, 30, 25, rng, weighted=weighted, prior_count=prior_count, hot=hot)


@settings(max_examples=30)
@given(data=st.data())
def test_composed_rows__are_trained_as_in_the_reference_whatever_they_are_of(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**31)))
    n_words, n_features = data.draw(st.sampled_from([4, 30, 100])), data.draw(st.sampled_from([1, 2, 40]))
    params = Params(vector_size=data.draw(st.sampled_from([1, 16, 100])), window=data.draw(st.integers(1, 9)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "STRETCH", data.draw(st.sampled_from([1, 7, 4096])))
        patch.setattr(kernels, "CROWD", data.draw(st.sampled_from([1, 16])))
        compare(
            params,
            n_words,
            n_features,
            rng,
            weighted=data.draw(st.booleans()),
            prior_count=data.draw(st.sampled_from([0, 10])),
            lengths=data.draw(st.lists(st.integers(3, 30), min_size=1)),
        )


def test_composed_rows__are_trained_as_in_the_reference_where_updates_enlarge_rounding(monkeypatch):
    """One feature that all words have, of which 16 add their changes: the reference in float32 is .04 off."""
    monkeypatch.setattr(kernels, "STRETCH", 7)
    monkeypatch.setattr(kernels, "CROWD", 16)
    params = Params(vector_size=1, window=6)
    compare(params, 4, 1, np.random.default_rng(468), lengths=(18, 5, 4, 3, 18, 29))


@pytest.mark.parametrize("objective", OBJECTIVES_OF_TEXT)
def test_words_without_features__are_trained_as_without_them(objective):
    """To the last bit, but where windows far from each other share negatives: these are taken from a stretch."""
    params = Params(objective=objective, vector_size=20, window=4)
    rng, n_words = np.random.default_rng(1), 30
    tokens = rng.integers(0, n_words, 300).astype(np.int32)
    segment = Segment(tokens, np.arange(300), np.array([0, 100, 300]))
    none = WordFeatures(
        np.zeros(n_words + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), np.ones(n_words, np.float32)
    )
    prepared = OBJECTIVES[objective].prepare(params, rng.integers(1, 100, n_words))
    results = []
    for with_features in (True, False):
        draws = np.random.default_rng(2)
        (own, _), (output, _) = (table_of(n_words, params, draws) for _ in range(2))
        work = (segment, 0, 300, Tables(own, output, padded(20), HotRows(0, 0, 0, 1)), RATE, 0, prepared)
        train = OBJECTIVES[objective].trainers["cpu"]
        if with_features:
            composer = kernels.make_composer(none, 0, 4, padded(20))
            kernels.train_composed(train, *work, kernels.ComposedRows(none, aligned_zeros(0), composer, 4))
        else:
            train(*work)
        results.append((own, output))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-5, atol=1e-6)


def test_a_change__moves_the_mean_as_much():
    """Whatever the weights: what training changed in a composed row is what composing it again gives."""
    rng, params = np.random.default_rng(5), Params(vector_size=16)
    features = load_features(10, 60, rng, weighted=True, prior_count=30)
    single = np.unique(features.rows, return_counts=True)
    alone = [
        w
        for w in range(10)
        if all(
            single[1][np.searchsorted(single[0], r)] == 1
            for r in features.rows[features.offsets[w] : features.offsets[w + 1]]
        )
    ]
    (own, _), (rows, _) = table_of(10, params, rng), table_of(60, params, rng)
    composer = kernels.make_composer(features, 60, 2, 16)
    inputs, tokens = np.zeros(10, np.int32), np.arange(10, dtype=np.int32)
    found = kernels.compose_rows(tokens, 0, 10, inputs, features, own, rows, 16, composer)
    before = composer.rows.copy().reshape(-1, 16)
    expected = compose_vectors(features, own.reshape(-1, 16), lambda r: rows.reshape(-1, 16)[r])
    np.testing.assert_allclose(before, expected, rtol=1e-5, atol=1e-6)
    change = rng.normal(size=before.shape).astype(np.float32)
    composer.rows[:] += change.ravel()
    kernels.spread_changes(*found, features, own, rows, 16, composer, 16)
    after = compose_vectors(features, own.reshape(-1, 16), lambda r: rows.reshape(-1, 16)[r])
    assert alone
    np.testing.assert_allclose(after[alone], (before + change)[alone], rtol=1e-4, atol=1e-5)
