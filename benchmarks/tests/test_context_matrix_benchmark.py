import argparse
import io

import numpy as np
import pytest

losses, quality, scaling, training, session_module, tables = (
    pytest.importorskip(f"benchmarks.{name}", reason="python -m pytest finds benchmarks, daskw2v[bench] their needs")
    for name in (
        "context_matrix.losses", "context_matrix.quality", "context_matrix.scaling", "context_matrix.training",
        "papers.session", "papers.tables",
    )
)  # fmt: skip


def spreads(**values):
    return {name: tables.Spread(value, value, value) for name, value in values.items()}


def test_setting__has_what_the_paper_says():
    setting = training.Setting(1, dict)
    params, text, vanilla = setting.params(), setting.params("sgns"), setting.vanilla()
    assert (params.strategy, params.context_size, text.strategy) == ("columns", 4096, "averaging")
    for kind in (params, text):
        assert (kind.min_count, kind.window, kind.shrink_windows, kind.negative) == (50, 2, False, 5)
    assert (vanilla.batch, vanilla.alpha, vanilla.lazy, vanilla.vector_size) == (1024, 0.001, False, 500)
    assert [kind.lazy for kind in setting.vanillas().values()] == [False, True, True]


def test_variance_within_stretches__has_no_bias_and_no_drift():
    random = np.random.default_rng(1)
    values = random.normal(0, 2, (4000, 3, 5)) + np.array([0, 100])[np.arange(4000) % 2, None, None]
    lost = losses.Lost(np.full((4000, 5), 3.0), values.mean(axis=1), values.var(axis=1))
    np.testing.assert_allclose(lost.within(), 4, rtol=0.1)


def test_variance_within_stretches__leaves_out_those_that_met_no_word():
    iterations = np.array([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    variance = np.array([[0.5, np.nan, 0.0], [np.nan, np.nan, 0.0]])
    found = losses.Lost(iterations, variance, variance).within()
    assert found[0] == 1.0
    assert np.isnan(found[1:]).all()


def test_losses_of_columns__are_summed_up_by_tenths_and_together():
    columns = np.random.default_rng(2).normal(3, 1, (4000, 2))
    lost = losses.lost_of(columns)
    np.testing.assert_allclose(lost.mean[1], columns[400:800].mean(axis=0))
    np.testing.assert_allclose(lost.within(), 1, rtol=0.1)
    np.testing.assert_allclose(losses.lost_of(columns, 4).within(), 0.25, rtol=0.2)


def test_watched_words__are_the_first_and_the_last():
    assert losses.watched(100) == {"most frequent": list(range(10)), "rarest": list(range(90, 100))}


def test_model_of_workers__is_linear_where_only_columns_cost():
    shares = {n: scaling.Share(0.0, 1.0 / n) for n in (1, 2, 8)}
    free = scaling.speedups(0, 500, shares, 16, scaling.Constants(0.0, 0.0))
    assert free == {2: (2.0, 2.0), 8: (8.0, 8.0)}
    slow = scaling.speedups(10**6, 500, shares, 16, scaling.Constants(0.01, 1e-8))
    assert all(slow[n][0] < slow[n][1] < free[n][1] for n in slow)


def test_summary__counts_the_sets_and_compares_what_they_cost(tmp_path):
    out = io.StringIO()
    session = session_module.Session(argparse.Namespace(), tmp_path, out, number="002")
    ours = spreads(**{"Google": 0.5, "BATS": 0.2, "AP": 0.3, training.MATRIX: 1.0, training.TRAINING: 4.0})
    theirs = spreads(**{"Google": 0.4, "BATS": 0.3, "AP": 0.3, training.MATRIX: 0.0, training.TRAINING: 10.0})
    quality.summary(session, {quality.OURS: ours, "W2V-Vanilla": theirs})
    cells = list(session.tables[0].rows[-1].cells.values())
    assert cells == [3, 2, pytest.approx(0.0), 2.5, 2.0]
