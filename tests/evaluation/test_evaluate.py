import json

import numpy as np
import pytest

from daskw2v.errors import ParameterError
from daskw2v.evaluation import evaluate
from daskw2v.models.queries.vectors import Vectors
from daskw2v.vocabulary.vocabulary import Vocabulary


@pytest.fixture(scope="module")
def vectors():
    matrix = np.array([[1, 0], [0, 1], [1, 1], [2, 1], [1, -1]], np.float32)
    return Vectors(Vocabulary.from_words(list("abcde"), [1] * 5), matrix)


def test_evaluate__reports_by_the_names_of_the_files(vectors, tmp_path):
    (tmp_path / "pairs.tsv").write_text("a\tb\t1\na\tc\t2\na\td\t3\na\tx\t3\n")
    (tmp_path / "few.csv").write_text("a,b,1\n")
    (tmp_path / "questions.txt").write_text(": one\na b c d\na b c x\n: two\n")
    report = evaluate(
        vectors,
        similarity=[str(tmp_path / "pairs.tsv"), str(tmp_path / "few.csv")],
        analogy=[str(tmp_path / "questions.txt")],
    ).as_dict()
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    assert report["similarity"] == {
        "pairs": {"spearman": pytest.approx(1), "low": None, "high": None, "pairs": 3, "missing": 1},
        "few": {
            "spearman": None,
            "low": None,
            "high": None,
            "pairs": 1,
            "missing": 0,
            "why": "the model knows 1 of 1, and 3 are needed",
        },
    }
    analogy = report["analogy"]["questions"]
    assert (analogy["questions"], analogy["skipped"]) == (1, 1)
    assert analogy["accuracy"] == analogy["accuracy_3cosmul"] == 1
    assert analogy["categories"] == {"one": {"right": 1, "questions": 1}, "two": {"right": 0, "questions": 0}}


@pytest.mark.parametrize(
    ("kind", "content", "why"),
    [
        ("similarity", "x,y,1\nq,r,2\n", "the model knows 0 of 2, and 3 are needed"),
        ("similarity", "a,b,1\nq,r,2\n", "the model knows 1 of 2, and 3 are needed"),
        ("similarity", "a,b,1\na,c,1\na,d,1\n", "all values are equal"),
        ("similarity", "# nothing\n", "the set is empty"),
        ("analogy", ": one\na b c x\n", "the model knows 0 of 1"),
        ("categorization", "x\tone\ny\ttwo\n", "the model knows 0 of 2"),
    ],
)
def test_evaluate__says_why_there_is_no_score(vectors, tmp_path, kind, content, why):
    (tmp_path / "set.txt").write_text(content)
    evaluation = evaluate(vectors, **{kind: [str(tmp_path / "set.txt")]})
    assert evaluation.as_dict()[kind]["set"]["why"] == why
    assert f"| none: {why} |" in evaluation.as_markdown()


def test_evaluate__accepts_no_sets(vectors):
    evaluation = evaluate(vectors)
    assert evaluation.as_dict() == evaluation.scores() == {}
    assert list(evaluation.rows()) == []


def test_evaluate__refuses_two_files_of_one_name(vectors, tmp_path):
    with pytest.raises(ParameterError, match="have the same name, 'ws353'"):
        evaluate(vectors, similarity=[str(tmp_path / "a/ws353.tsv"), str(tmp_path / "b/ws353.csv.gz")])


def test_scores__of_two_kinds_of_one_name_have_the_names_of_kinds(vectors, tmp_path):
    (tmp_path / "all.tsv").write_text("a\tb\t1\na\tc\t2\na\td\t3\n")
    (tmp_path / "all.txt").write_text(": one\na b c d\n")
    (tmp_path / "few.tsv").write_text("a\tb\t3\na\tc\t2\na\td\t1\n")
    similarity = [str(tmp_path / name) for name in ("all.tsv", "few.tsv")]
    scores = evaluate(vectors, similarity=similarity, analogy=[str(tmp_path / "all.txt")]).scores()
    assert scores == {"similarity/all": pytest.approx(1), "few": pytest.approx(-1), "analogy/all": 1}


def test_evaluate__reads_the_published_sets(vectors, data):
    folder = data / "eval"
    sizes = {"ws353": 353, "simlex999": 999, "mturk287": 287}
    urls = [str(folder / f"{name}.tsv") for name in sizes]
    report = evaluate(vectors, urls, [str(folder / "google_analogy.txt")]).as_dict()
    result = {name: set_["pairs"] + set_["missing"] for name, set_ in report["similarity"].items()}
    assert result == sizes
    assert report["analogy"]["google_analogy"]["skipped"] == 19544
