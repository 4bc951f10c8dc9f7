import argparse
import io

import pytest

lab, tables, session_module = (
    pytest.importorskip(f"benchmarks.{name}", reason="python -m pytest finds benchmarks, daskw2v[bench] their needs")
    for name in (*(f"context_matrix.{name}" for name in ("lab", "tables")), "papers.session")
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
