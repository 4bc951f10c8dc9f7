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


def test_bytes_of_the_papers_scheme__are_two_vectors_for_each_that_goes_to_another_worker(main):
    params = main.negative_sampling.Params(vector_size=10, negative=5)
    vectors = {"tns": 2, "sns": 4, "bns": 12}
    for rule, n in vectors.items():
        sent = main.negative_sampling.paper_bytes(params.replace(negative_rule=rule), pairs=100, workers=4)
        assert sent == n * 10 * 4 * 75
