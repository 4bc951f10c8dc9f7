import sys
from pathlib import Path

import numpy as np
import pytest

from daskw2v.errors import InputError, MissingExtraError, ParameterError
from daskw2v.evaluation import classification
from daskw2v.evaluation.classification import ClassificationResult, evaluate_classification, read_texts, tabulate
from daskw2v.models.queries.vectors import Vectors
from daskw2v.vocabulary.vocabulary import Vocabulary

WORDS = [f"w{i}" for i in range(40)]
SPLIT = ("train", "dev", "test")


@pytest.fixture(scope="module")
def vectors():
    """Words of four topics, ten of each, around one direction for each topic."""
    rng = np.random.default_rng(0)
    matrix = np.repeat(np.eye(4, 12), 10, axis=0) + 0.3 * rng.standard_normal((40, 12))
    return Vectors(Vocabulary.from_words(WORDS, [1] * 40), matrix.astype(np.float32))


@pytest.fixture(scope="module")
def _sklearn():
    pytest.importorskip("sklearn", reason="scikit-learn comes with daskw2v[evaluation]")


def topic_texts(n, noise=0.0, seed=0):
    """Return lines of n texts, each of the words of one topic; a share `noise` of the words is of any topic."""
    rng = np.random.default_rng(seed)
    lines = []
    for i in range(n):
        words = np.where(rng.random(8) < noise, rng.integers(40, size=8), 10 * (i % 4) + rng.integers(10, size=8))
        lines.append(f"topic {i % 4}\t" + " ".join(f"w{word}" for word in words))
    return lines


def write(path, lines):
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


@pytest.mark.usefixtures("_sklearn")
def test_evaluate_classification__learns_planted_topics(vectors, tmp_path):
    url = write(tmp_path / "set.tsv", topic_texts(400))
    assert evaluate_classification(vectors, url) == ClassificationResult(1.0, 1.0, 1.0, 400, 10, 1.0)


@pytest.mark.usefixtures("_sklearn")
def test_evaluate_classification__learns_nothing_from_random_labels(vectors, tmp_path):
    lines = [line.replace("topic 2", "topic 0").replace("topic 3", "topic 1") for line in topic_texts(200, noise=1)]
    result = evaluate_classification(vectors, write(tmp_path / "set.tsv", lines), folds=4)
    assert 0.35 < result.accuracy < 0.65
    assert result.low < result.accuracy < result.high


@pytest.mark.usefixtures("_sklearn")
def test_evaluate_classification__equals_a_plain_script(vectors, tmp_path):
    from sklearn.linear_model import LogisticRegression

    urls = [write(tmp_path / name, topic_texts(n, 0.8, n)) for name, n in zip(SPLIT, (200, 60, 100), strict=True)]
    units = dict(zip(WORDS, vectors.units(range(40)), strict=True))
    texts = [[line.split("\t") for line in Path(url).read_text().splitlines()] for url in urls]
    features = [np.array([np.mean([units[w] for w in text.split()], axis=0) for _, text in part]) for part in texts]
    labels = [[label for label, _ in part] for part in texts]
    centre, scale = features[0].mean(axis=0), features[0].std(axis=0)
    x = [(part - centre) / scale for part in features]
    models = [LogisticRegression(C=c, max_iter=1000).fit(x[0], labels[0]) for c in (0.01, 0.1, 1)]
    best = max(models, key=lambda model: model.score(x[1], labels[1]))
    result = evaluate_classification(vectors, urls)
    assert result.accuracy == result.low == result.high == pytest.approx(best.score(x[2], labels[2]))
    assert 0.3 < result.accuracy < 0.95
    assert (result.texts, result.folds) == (360, 1)


@pytest.mark.usefixtures("_sklearn")
def test_evaluate_classification__counts_unknown_words_and_texts_without_known_ones(vectors, tmp_path):
    lines = [f"{i % 2}\tW{10 * (i % 2)} absent" for i in range(40)] + ["0\tabsent", "1\t# absent absent"]
    result = evaluate_classification(vectors, write(tmp_path / "set.tsv", lines), folds=2)
    assert result.coverage == pytest.approx(40 / 84)
    assert 40 / 42 <= result.accuracy < 1  # the two without known words look alike


@pytest.mark.usefixtures("_sklearn")
def test_evaluate_classification__repeats_itself_with_a_seed(vectors, tmp_path):
    url = write(tmp_path / "set.tsv", topic_texts(80, 0.9))
    first, again, other = (evaluate_classification(vectors, url, folds=3, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


def test_split_folds__tests_each_text_once_and_balances_labels():
    labels = np.repeat([0, 1, 2], [50, 30, 21])
    splits = list(classification._split_folds(labels, 10, np.random.default_rng(0)))
    np.testing.assert_array_equal(np.sort(np.concatenate([split.test for split in splits])), np.arange(101))
    for split in splits:
        np.testing.assert_array_equal(np.sort(np.concatenate(split)), np.arange(101))
        assert len(split.dev) in (9, 10)
        assert np.ptp(np.bincount(labels[split.test]) - [5, 3, 2]) <= 1
    assert not np.array_equal(splits[0].test, np.sort(np.argsort(labels, kind="stable")[:11]))  # shuffled


def test_read_texts__separates_label_and_words(tmp_path):
    url = write(tmp_path / "set.tsv", ["# comment", "", "very good\t a  fine\tfilm ", "0\t# 1"])
    assert read_texts(url) == [("very good", ["a", "fine", "film"]), ("0", ["#", "1"])]


def test_tabulate__reads_only_the_texts_words(vectors):
    texts = tabulate(vectors, [("b", ["w3", "absent", "W1", "w3"]), ("a", ["absent"])])
    np.testing.assert_array_equal(texts.labels, [1, 0])
    assert [rows.tolist() for rows in texts.rows] == [[2, 0, 1, 2], [0]]
    np.testing.assert_array_equal(texts.table[0], 0)
    np.testing.assert_array_equal(texts.table[1:], vectors.units([1, 3]))
    np.testing.assert_allclose(texts.means[0], vectors.units([3, 1, 3]).mean(axis=0), rtol=1e-6)
    np.testing.assert_array_equal(texts.means[1], 0)
    assert texts.coverage == 3 / 5


@pytest.mark.parametrize("line", ["1", "a text without label", "1\t", "\ta text", "1\t \t"])
def test_evaluate_classification__names_a_malformed_line(vectors, tmp_path, line):
    with pytest.raises(InputError, match=r"Line 2 of .*set.tsv is not a label and a text: .*label<TAB>text"):
        evaluate_classification(vectors, write(tmp_path / "set.tsv", ["0\ta", line]))


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "has 0 labels; the rarest has 0 texts"),
        (["0\tw1"] * 20, "has 1 labels; the rarest has 20 texts"),
        (["0\tw1"] * 20 + ["1\tw1"] * 9, "has 2 labels; the rarest has 9 texts.*at least 10 texts each"),
    ],
)
def test_evaluate_classification__refuses_rare_labels(vectors, tmp_path, lines, message):
    with pytest.raises(InputError, match=message):
        evaluate_classification(vectors, write(tmp_path / "set.tsv", lines))


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ((["0\tw1", "1\tw2"], [], ["0\tw1"]), "dev contains no texts.*train, dev and test"),
        ((["0\tw1", "1\tw2"], ["0\tw1"], ["2\tw1"]), "test has labels that .*train lacks"),
        ((["0\tw1"], ["0\tw1"], ["0\tw1"]), "train has labels that .*train lacks, or .*train has only one"),
    ],
)
def test_evaluate_classification__refuses_an_invalid_split(vectors, tmp_path, contents, message):
    urls = [write(tmp_path / name, lines) for name, lines in zip(SPLIT, contents, strict=True)]
    with pytest.raises(InputError, match=message):
        evaluate_classification(vectors, urls)


@pytest.mark.parametrize(
    ("urls", "options", "message"),
    [
        ("a", {"method": "forest"}, "method='forest' is unknown. Give logistic or cnn"),
        (["a", "b"], {}, "There are 2 files.*one file, or three"),
        ([], {}, "There are 0 files"),
        ("a", {"folds": 1}, "folds=1 leaves nothing to train on.*at least 2"),
    ],
)
def test_evaluate_classification__refuses_invalid_arguments(vectors, urls, options, message):
    with pytest.raises(ParameterError, match=message):
        evaluate_classification(vectors, urls, **options)


@pytest.mark.parametrize(
    ("method", "module", "extra"),
    [("logistic", "sklearn.linear_model", "evaluation"), ("cnn", "torch", "torch")],
)
def test_evaluate_classification__names_the_extra(vectors, tmp_path, monkeypatch, method, module, extra):
    monkeypatch.setitem(sys.modules, module, None)
    url = write(tmp_path / "set.tsv", topic_texts(40))
    with pytest.raises(MissingExtraError, match=rf"pip install 'daskw2v\[{extra}\]'"):
        evaluate_classification(vectors, url, method)


@pytest.mark.parametrize(("name", "texts"), [("mr", 10662), ("subj", 10000), ("cr", 3771), ("mpqa", 10603)])
def test_read_texts__reads_the_published_sets(data, name, texts):
    result = read_texts(data / "eval" / f"{name}.tsv")
    assert len(result) == texts
    assert {label for label, _ in result} == {"0", "1"}


@pytest.mark.usefixtures("_sklearn")
def test_evaluate_classification__reads_sst(data):
    urls = [data / "eval" / f"sst2_{name}.tsv" for name in SPLIT]
    words = [".", "film", "movie", "bad", "too", "no", "moving", "best", "enjoyable", "dull", "funny", "heart"]
    vectors = Vectors(Vocabulary.from_words(words, [1] * 12), np.eye(12, dtype=np.float32))
    result = evaluate_classification(vectors, urls)
    assert result.texts == 6920 + 872 + 1821
    assert 0.55 < result.accuracy < 0.7  # a few words of praise and blame are better than chance
