import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.errors import InputError, MissingExtraError, ParameterError
from daskw2v.evaluation.categorization import CategorizationResult, evaluate_categorization, purity
from daskw2v.models.queries.vectors import Vectors
from daskw2v.vocabulary.vocabulary import Vocabulary

WORDS = [f"w{i}" for i in range(60)]


def model(matrix, words=WORDS):
    return Vectors(Vocabulary.from_words(words, [1] * len(words)), np.asarray(matrix, np.float32))


@pytest.fixture(scope="module")
def vectors():
    return model(np.random.default_rng(2).standard_normal((60, 6)))


@pytest.fixture(scope="module")
def cluster():
    return pytest.importorskip("sklearn.cluster", reason="scikit-learn comes with daskw2v[evaluation]")


def write(tmp_path, text):
    (tmp_path / "set.tsv").write_text(text)
    return str(tmp_path / "set.tsv")


@pytest.mark.usefixtures("cluster")
def test_evaluate_categorization__finds_planted_clusters(tmp_path):
    rng = np.random.default_rng(0)
    centres = np.repeat(np.eye(5, 20), 12, axis=0)
    lengths = rng.uniform(0.1, 10, (60, 1))  # which the direction alone must not mind
    vectors = model(lengths * (centres + 0.05 * rng.standard_normal((60, 20))))
    url = write(tmp_path, "".join(f"w{i}\tclass {i // 12}\n" for i in range(60)))
    assert evaluate_categorization(vectors, url) == CategorizationResult(1.0, 1.0, 1.0, 60, 0, 5)


def test_evaluate_categorization__equals_a_plain_script(vectors, tmp_path, cluster):
    from sklearn.metrics.cluster import contingency_matrix

    classes = np.random.default_rng(3).integers(4, size=60)
    url = write(tmp_path, "".join(f"w{i}\tc{c}\n" for i, c in enumerate(classes)))
    units = vectors.vectors / np.linalg.norm(vectors.vectors, axis=1, keepdims=True)
    expected = []
    for seed in (5, 6, 7):
        results = cluster.KMeans(n_clusters=4, n_init=1, random_state=seed).fit(units).labels_
        expected.append(contingency_matrix(classes, results).max(axis=0).sum() / 60)
    result = evaluate_categorization(vectors, url, seeds=(5, 6, 7))
    assert result.purity == pytest.approx(np.mean(expected))
    assert (result.low, result.high) == (min(expected), max(expected))
    assert result.low < result.high


@pytest.mark.usefixtures("cluster")
def test_evaluate_categorization__counts_each_line_of_a_word(tmp_path):
    url = write(tmp_path, "# comment\nW0\tgem\nw0\tstone\nw1\ttree\nabsent\ttree\n")
    result = evaluate_categorization(model([[1, 0], [0, 1]], WORDS[:2]), url)
    assert result == CategorizationResult(pytest.approx(2 / 3), *[pytest.approx(2 / 3)] * 2, 3, 1, 3)


@pytest.mark.usefixtures("cluster")
def test_evaluate_categorization__accepts_zero_vectors(tmp_path):
    url = write(tmp_path, "w0\ta\nw1\tb\n")
    assert evaluate_categorization(model(np.zeros((60, 3))), url).purity == 0.5


@pytest.mark.parametrize(("text", "missing"), [("", 0), ("absent\tclass\n", 1)])
def test_evaluate_categorization__has_no_figure_without_words(vectors, tmp_path, text, missing):
    result = evaluate_categorization(vectors, write(tmp_path, text))
    assert result == CategorizationResult(None, None, None, 0, missing, 0)


@pytest.mark.parametrize("line", ["w1", "w1 class", "w1\t", "w1\tclass\tmore"])
def test_evaluate_categorization__names_a_malformed_line(vectors, tmp_path, line):
    with pytest.raises(InputError, match=r"Line 2 of .*set.tsv is not a word and its class: .*word<TAB>class"):
        evaluate_categorization(vectors, write(tmp_path, f"w0\tclass\n{line}\n"))


def test_evaluate_categorization__names_a_missing_file(vectors, tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        evaluate_categorization(vectors, tmp_path / "absent")


def test_evaluate_categorization__refuses_no_seeds(vectors, tmp_path):
    with pytest.raises(ParameterError, match=r"seeds is empty.*at least one seed"):
        evaluate_categorization(vectors, write(tmp_path, "w0\tclass\n"), seeds=())


def test_evaluate_categorization__names_the_extra(vectors, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'daskw2v\[evaluation\]'"):
        evaluate_categorization(vectors, write(tmp_path, "w0\tclass\n"))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1), st.permutations(range(5)))
def test_purity__depends_on_no_names_and_no_order(pairs, names):
    clusters, classes = np.array(pairs).T
    expected = sum(max(np.bincount(classes[clusters == c])) for c in np.unique(clusters)) / len(pairs)
    assert purity(clusters, classes) == pytest.approx(expected)
    assert purity(np.array(names)[clusters][::-1], classes[::-1]) == pytest.approx(expected)


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(
    ("name", "lines", "classes"),
    [("ap", 402, 21), ("bless", 200, 17), ("esslli2008_1a", 44, 6), ("esslli2008_2c", 45, 9)],
)
def test_evaluate_categorization__reads_the_published_sets(data, name, lines, classes):
    url = data / "eval" / f"{name}.tsv"
    words = sorted({line.split("\t")[0] for line in url.read_text().splitlines()})
    vectors = model(np.random.default_rng(0).standard_normal((len(words), 10)), words)
    result = evaluate_categorization(vectors, url, seeds=(0,))
    assert (result.words, result.missing, result.classes) == (lines, 0, classes)
    assert 1 / classes < result.purity < 0.7


def test_evaluate_categorization__reads_battig(data):
    result = evaluate_categorization(model(np.eye(1, 3), ["absent"]), data / "eval" / "battig.tsv")
    assert result.missing == 5231
