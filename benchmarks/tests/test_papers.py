import math
import re

import pytest


@pytest.fixture
def main():
    for tool in ("gensim", "fasttext"):
        pytest.importorskip(tool, reason="benchmarks need it: pip install 'daskw2v[bench]'")
    import benchmarks.papers.__main__ as module

    return module


def test_papers__every_figure_has_its_place_in_the_paper(main):
    for module in main.PAPERS.values():
        assert module.PAPER.figures
        for figures in module.PAPER.figures:
            assert re.match(r"(table|sections?|figure) \d", figures.source)
            assert figures.values
            assert all(math.isfinite(value) for value in figures.values.values())


def test_papers__all_are_printed_unless_some_are_named(main):
    assert main.BENCHMARK.parse([]).papers == ["000", "001", "002", "003", "004"]
    assert main.BENCHMARK.parse(["003", "000"]).papers == ["003", "000"]
    with pytest.raises(SystemExit):
        main.BENCHMARK.parse(["005"])
