import gensim
import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.errors import InputError
from daskw2v.evaluation.similarity import evaluate_similarity, spearman
from daskw2v.models.vectors import Vectors
from daskw2v.vocabulary.vocabulary import Vocabulary

WORDS = [f"w{i}" for i in range(60)]


@pytest.fixture(scope="module")
def vectors():
    matrix = np.random.default_rng(2).standard_normal((60, 6), np.float32)
    return Vectors(Vocabulary.from_words(WORDS, [1] * 60), matrix)


def write(tmp_path, text):
    path = tmp_path / "set.tsv"
    path.write_bytes(text.encode())
    return str(path)


def test_evaluate_similarity__equals_gensim(vectors, tmp_path):
    rng = np.random.default_rng(3)
    pairs = [(*rng.choice([*WORDS, "unknown"], 2), rng.integers(0, 20) / 2) for _ in range(100)]
    url = write(tmp_path, "".join(f"{a}\t{b}\t{score}\n" for a, b, score in pairs))
    keyed = gensim.models.KeyedVectors(6)
    keyed.add_vectors(WORDS, vectors.vectors)
    _, expected, unknown = keyed.evaluate_word_pairs(url, case_insensitive=False)
    found = evaluate_similarity(vectors, url)
    assert found.spearman == pytest.approx(expected.statistic, abs=1e-6)
    assert found.pairs + found.missing == 100
    assert found.missing == pytest.approx(unknown)


@pytest.mark.parametrize("separator", ["\t", ",", ", ", " ", "  "])
@pytest.mark.parametrize("header", ["", "word1{0}word2{0}score\n", "\ufeff# a comment\n\nword1{0}word2{0}score\n"])
def test_evaluate_similarity__reads_every_layout(vectors, tmp_path, separator, header):
    lines = [separator.join(["w1", f"w{i}", str(i)]) + "\r\n" for i in range(2, 8)]
    found = evaluate_similarity(vectors, write(tmp_path, header.format(separator) + "".join(lines)))
    assert found.pairs == 6
    assert found.missing == 0
    assert found.spearman is not None


def test_evaluate_similarity__lowers_only_unknown_words(tmp_path):
    matrix = np.array([[1, 0], [0, 1], [1, 1]], np.float32)
    vectors = Vectors(Vocabulary.from_words(["Apple", "apple", "new york"], [1] * 3), matrix)
    url = write(tmp_path, "Apple\tNew York\t1\nAPPLE\tnew york\t2\nApple\tapple\t0\nApple\tpear\t0\n")
    found = evaluate_similarity(vectors, url)
    assert (found.pairs, found.missing) == (3, 1)
    assert found.spearman == pytest.approx(np.sqrt(3) / 2)


@pytest.mark.parametrize("text", ["", "w1\tw2\t1\nw1\tw3\t2\n", "w1\tw2\t5\nw1\tw3\t5\nw1\tw4\t5\n"])
def test_evaluate_similarity__has_no_figure_where_none_is_defined(vectors, tmp_path, text):
    assert evaluate_similarity(vectors, write(tmp_path, text)).spearman is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("w1\tw2\t1\nw1\tw2\tx\n", 2),
        ("w1\tw2\n", 1),
        ("#\nw1\tw2\t1\t2\n", 2),
        ("a\tb\tc\nd\te\tf\n", 2),
        ("w1\tw2\t1\nw1\tw2\tnan\n", 2),
    ],
)
def test_evaluate_similarity__names_a_malformed_line(vectors, tmp_path, text, line):
    with pytest.raises(InputError, match=f"Line {line} of .*TAB"):
        evaluate_similarity(vectors, write(tmp_path, text))


def test_evaluate_similarity__names_a_line_that_is_not_utf8(vectors, tmp_path):
    (tmp_path / "set.tsv").write_bytes(b"w1\tw2\t1\nw\xff\tw2\t1\n")
    with pytest.raises(InputError, match=r"Line 2 of .* not UTF-8"):
        evaluate_similarity(vectors, str(tmp_path / "set.tsv"))


def test_evaluate_similarity__names_a_missing_file(vectors, tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        evaluate_similarity(vectors, str(tmp_path / "absent"))


@given(st.lists(st.tuples(st.integers(-3, 3), st.floats(-1, 1)), min_size=3))
def test_spearman__equals_scipy(pairs):
    x, y = np.array(pairs, float).T
    found = spearman(x, y)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert found is None
    else:
        assert found == pytest.approx(scipy.stats.spearmanr(x, y).statistic, abs=1e-9)
