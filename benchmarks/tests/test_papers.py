import io
import math
import re

import pytest

tables = pytest.importorskip("benchmarks.papers.tables", reason="no benchmarks here: run pytest as python -m pytest")


@pytest.fixture
def main():
    for tool in ("gensim", "fasttext"):
        pytest.importorskip(tool, reason="benchmarks need it: pip install 'daskw2v[bench]'")
    import benchmarks.papers.__main__ as module

    return module


def test_table__rows_are_printed_when_they_are_known_and_kept():
    out = io.StringIO()
    table = tables.Table("001", "Table 1: quality", ("paper", "here"), out, ".2f")
    assert out.getvalue().endswith("|  | paper | here |\n| --- | --- | --- |\n")
    table.row("a|b", 0.125, tables.Spread(0.5, 0.25, 1.0))
    table.row("c", 19_544, None)
    table.row("d", "missing", tables.Spread.of([3.0, 3.0, 3.0]))
    assert out.getvalue().splitlines()[-3:] == [
        "| a/b | 0.12 | 0.50 (0.25..1.00) |",
        "| c | 19,544 |  |",
        "| d | missing | 3.00 |",
    ]
    assert table.rows[1] == tables.Row("001", "Table 1: quality", "c", {"paper": 19_544, "here": None})


def test_table__refuses_a_row_with_another_number_of_cells():
    table = tables.Table("001", "Table 1", ("paper", "here"), io.StringIO())
    with pytest.raises(ValueError, match="zip"):
        table.row("a", 1)


def test_spread__has_the_middle_between_the_extremes():
    assert tables.Spread.of([4.0, 1.0, 2.0]).scaled(2) == tables.Spread(4.0, 2.0, 8.0)


def test_papers__every_figure_has_its_place_in_the_paper(main):
    for module in main.PAPERS.values():
        assert module.PAPER.figures
        for figures in module.PAPER.figures:
            assert re.match(r"(table|sections?|figure) \d", figures.source)
            assert figures.values
            assert all(math.isfinite(value) for value in figures.values.values())


def test_options__know_the_papers_and_refuse_others(main):
    assert main.parse([]).papers == ["000", "001", "002", "003", "004"]
    assert main.parse(["003", "000"]).papers == ["003", "000"]
    for wrong in (["005"], ["--parts", "0"], ["--rules", "sum"]):
        with pytest.raises(SystemExit):
            main.parse(wrong)
