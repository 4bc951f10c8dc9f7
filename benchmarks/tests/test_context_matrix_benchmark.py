import argparse
import io

import numpy as np
import pytest

curves, lab, speed, tables, session_module = (
    pytest.importorskip(f"benchmarks.{name}", reason="python -m pytest finds benchmarks, daskw2v[bench] their needs")
    for name in (*(f"context_matrix.{name}" for name in ("curves", "lab", "speed", "tables")), "papers.session")
)


def spreads(**values):
    return {name: tables.Spread(value, value, value) for name, value in values.items()}


def test_setting__has_what_the_paper_says():
    setting = lab.Setting(dict)
    params, text, vanilla = setting.params(), setting.params("sgns"), setting.vanilla()
    of = params.flat()
    assert (of["strategy"], of["context_size"], text.strategy.name) == ("columns", 4096, "averaging")
    for kind in (params, text):
        assert (kind.min_count, kind.window, kind.shrink_windows, kind.flat()["negative"]) == (50, 2, False, 5)
    assert (vanilla.batch, vanilla.alpha, vanilla.lazy, vanilla.vector_size) == (1024, 0.001, False, 500)
    assert [kind.lazy for kind in setting.vanillas().values()] == [False, True, True]


def test_summary__counts_the_sets_and_compares_what_they_cost(tmp_path):
    session = session_module.Session(argparse.Namespace(), tmp_path, io.StringIO(), number="002")
    ours = spreads(**{"Google": 0.5, "BATS": 0.2, "AP": 0.3, lab.MATRIX: 1.0, lab.TRAINING: 4.0})
    theirs = spreads(**{"Google": 0.4, "BATS": 0.3, "AP": 0.3, lab.MATRIX: 0.0, lab.TRAINING: 10.0})
    tables.summary(session, {tables.OURS: ours, "W2V-Vanilla": theirs})
    cells = list(session.tables[0].rows[-1].cells.values())
    assert cells == [3, 2, pytest.approx(0.0), 2.5, 2.0]


def test_words__are_counted_by_length_of_text(tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("a a b\n" * 50 + "c d a\n" * 50)
    text = argparse.Namespace(path=path)
    assert list(curves.count_words(text, 2)) == [(150, 2, 2), (300, 4, 4)]


def test_losses__of_words_are_those_of_their_pairs():
    """Without any knowledge each sigmoid is a half; a negative that is the context does not count."""
    judge = curves._Judge(np.array([[1, 1], [0, -1], [-1, -1]], np.int32), np.array([0.0, 0.0, 1.0]), 3)
    rows = np.zeros((3, 2), np.float32)
    np.testing.assert_allclose(judge.losses(rows, rows), [4 * np.log(2), 4 * np.log(2), np.nan])
    near = judge.losses(np.full((3, 2), 3, np.float32), np.array([[1, 1], [1, 1], [-1, -1]], np.float32))
    assert near[0] < 0.1
    alone = judge._replace(noise=np.array([0.0, 1.0, 1.0]))
    np.testing.assert_allclose(alone.losses(rows, rows)[:2], [np.log(2), 4 * np.log(2)], rtol=1e-6)


def test_forecast__of_workers_is_limited_by_what_does_not_get_less():
    params = lab.Setting(dict).params(gather_every=64, vector_size=500)
    assert speed.forecast(1e6, 2e6, 20_000, params.replace(gather_every=10**6), 8) == pytest.approx(8, rel=0.01)
    assert speed.forecast(1e6, 1e6, 20_000, params, 16) < 2
    assert speed.forecast(1e6, 2e6, 20_000, params, 8) < 8
