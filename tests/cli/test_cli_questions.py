import json
import os

import pytest

from tests.cli.fakes import FakeVectors
from tests.support.command_line import invoke


def test_similar__passes_words_and_options(calls):
    result = invoke("similar", "m", "king", "girl", "--negative", "boy", "--topn", "2", "--storage-option", "a=1")
    assert result.stdout.split() == ["word", "cosine", *["king+girl-boy", "0.5000"] * 2]
    assert FakeVectors.opened == ("m", {"a": 1}, False)


def test_analogy__asks_for_the_fourth_word(calls):
    assert "man:king=woman:" in invoke("analogy", "m", "man", "king", "woman", "--topn", "1").stdout


FILES = ("--similarity", "a.tsv", "b.tsv", "--analogy", "c.txt", "--similarity", "d.tsv")


def test_evaluate__takes_several_files_for_each_option(calls):
    texts = ("--classification", "e.tsv")
    result = invoke("evaluate", "m", *FILES, *texts, "--method", "lrcos", "--restrict-vocab", "9", "--cnn", "--json")
    assert calls["evaluate"] == {
        "similarity": ("a.tsv", "b.tsv", "d.tsv"),
        "analogy": ("c.txt",),
        "classification": ("e.tsv",),
        "analogy_methods": ("lrcos",),
        "classification_methods": ("logistic", "cnn"),
        "restrict_vocab": 9,
    }
    assert json.loads(result.stdout) == {
        "similarity": {"ws": {"spearman": 0.5, "low": 0.4, "high": 0.6, "pairs": 300, "missing": 53}}
    }


def test_evaluate__prints_a_table_for_people_and_for_documents(calls):
    heads, row = (line.split() for line in invoke("evaluate", *FILES, "--", "m").stdout.splitlines())
    assert heads == ["kind", "set", "measure", "score", "interval", "asked", "known"]
    assert row == ["similarity", "ws", "spearman", "0.500", "0.400..0.600", "300", "85.0%"]
    assert invoke("evaluate", "m", *FILES, "--markdown").stdout.splitlines() == [
        "| kind | set | measure | score | interval | asked | known |",
        "| --- | --- | --- | --- | --- | --- | --- |",
        "| similarity | ws | spearman | 0.500 | 0.400..0.600 | 300 | 85.0% |",
    ]


def test_evaluate__refuses_to_measure_nothing(calls):
    result = invoke("evaluate", "m")
    assert result.exit_code == 2
    assert "Nothing to evaluate" in result.stderr


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("evaluate", "m", "--similarity", "a", "--json", "--markdown"), "--json and --markdown cannot both"),
        (("evaluate", "m", "--similarity", "a", "--cnn"), "--cnn classifies texts"),
        (("evaluate", "m", "--similarity", "a", "--restrict-vocab", "9"), "--restrict-vocab is for analogies"),
    ],
)
def test_evaluating__refuses_options_that_would_be_ignored(calls, args, message):
    result = invoke(*args)
    assert result.exit_code == 2
    assert message in result.stderr


def test_report__evaluates_and_writes_beside_another_model(calls):
    assert invoke("report", "m", "out.html", *FILES, "--other", "n", "--word", "king", "queen").stdout == "out.html\n"
    report = calls["report"]
    assert (report["url"], report["words"], report["map_method"]) == ("out.html", ["king", "queen"], "graph")
    assert report["evaluation"] == report["other_evaluation"]
    assert calls["evaluate"] == {"similarity": ("a.tsv", "b.tsv", "d.tsv"), "analogy": ("c.txt",)}
    assert invoke("report", "m", "out.html").exit_code == 0
    assert calls["report"]["other"] is calls["report"]["other_evaluation"] is calls["report"]["words"] is None


def test_compare__writes_a_page_and_names_it_in_json(calls):
    assert invoke("compare", "m", "n", "--html", "x.html").stdout == "x.html\n"
    assert json.loads(invoke("compare", "m", "n", "--html", "x.html", "--json").stdout) == {"url": "x.html"}


def test_train__writes_a_report_with_the_sets_of_the_training(calls):
    result = invoke("train", "a", "--work", "w", "--report", "r.html", "--eval-similarity", "a.tsv", "b.tsv")
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[-1] == "r.html"
    assert calls["train"]["resources"].eval_similarity == (os.path.abspath("a.tsv"), os.path.abspath("b.tsv"))
    assert calls["evaluate"] == {"similarity": calls["train"]["resources"].eval_similarity}
    assert calls["report"]["url"] == "r.html"
