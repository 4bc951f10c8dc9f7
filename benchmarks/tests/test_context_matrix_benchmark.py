import argparse
import io

import numpy as np
import pytest

lab, losses, tables, vanilla, session_module = (
    pytest.importorskip(f"benchmarks.{name}", reason="python -m pytest finds benchmarks, daskw2v[bench] their needs")
    for name in (*(f"context_matrix.{name}" for name in ("lab", "losses", "tables", "vanilla")), "papers.session")
)


def spreads(**values):
    return {name: tables.Spread(value, value, value) for name, value in values.items()}


def test_setting__has_what_the_paper_says():
    setting = lab.Setting(dict)
    params, text, vanilla = setting.params(), setting.params("sgns"), setting.vanilla()
    assert (params.strategy, params.context_size, text.strategy) == ("columns", 4096, "averaging")
    for kind in (params, text):
        assert (kind.min_count, kind.window, kind.shrink_windows, kind.negative) == (50, 2, False, 5)
    assert (vanilla.batch, vanilla.alpha, vanilla.lazy, vanilla.vector_size) == (1024, 0.001, False, 500)
    assert [kind.lazy for kind in setting.vanillas().values()] == [False, True, True]


def test_variance_within_stretches__has_no_bias_and_no_drift():
    random = np.random.default_rng(1)
    values = random.normal(0, 2, (4000, 3, 5)) + np.array([0, 100])[np.arange(4000) % 2, None, None]
    lost = vanilla.Losses(np.full((4000, 5), 3.0), values.mean(axis=1), values.var(axis=1))
    np.testing.assert_allclose(losses.within(lost), 4, rtol=0.1)


def test_variance_within_stretches__leaves_out_those_that_met_no_word():
    iterations = np.array([[2.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    variance = np.array([[0.5, np.nan, 0.0], [np.nan, np.nan, 0.0]])
    found = losses.within(vanilla.Losses(iterations, variance, variance))
    assert found[0] == 1.0
    assert np.isnan(found[1:]).all()


def test_losses_of_columns__are_summed_up_by_tenths_and_together():
    columns = np.random.default_rng(2).normal(3, 1, (4000, 2))
    lost = losses.of_columns(columns)
    np.testing.assert_allclose(lost.mean[1], columns[400:800].mean(axis=0))
    np.testing.assert_allclose(losses.within(lost), 1, rtol=0.1)
    np.testing.assert_allclose(losses.within(losses.of_columns(columns, 4)), 0.25, rtol=0.2)


def test_summary__counts_the_sets_and_compares_what_they_cost(tmp_path):
    session = session_module.Session(argparse.Namespace(), tmp_path, io.StringIO(), number="002")
    ours = spreads(**{"Google": 0.5, "BATS": 0.2, "AP": 0.3, lab.MATRIX: 1.0, lab.TRAINING: 4.0})
    theirs = spreads(**{"Google": 0.4, "BATS": 0.3, "AP": 0.3, lab.MATRIX: 0.0, lab.TRAINING: 10.0})
    tables.summary(session, {tables.OURS: ours, "W2V-Vanilla": theirs})
    cells = list(session.tables[0].rows[-1].cells.values())
    assert cells == [3, 2, pytest.approx(0.0), 2.5, 2.0]
