import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.evaluation.similarity import SimilarityResult, confidence, evaluate_similarity, read_pairs, spearman
from daskw2v.models.queries.vectors import Vectors
from daskw2v.vocabulary.vocabulary import Vocabulary

WORDS = [f"w{i}" for i in range(60)]


def random_vectors(words, dimensions=6):
    matrix = np.random.default_rng(2).standard_normal((len(words), dimensions), np.float32)
    return Vectors(Vocabulary.from_words(words, [1] * len(words)), matrix)


@pytest.fixture(scope="module")
def vectors():
    return random_vectors(WORDS)


def write(tmp_path, text):
    path = tmp_path / "set.tsv"
    path.write_bytes(text.encode())
    return str(path)


def assert_equals_gensim(vectors, url):
    keyed = pytest.importorskip("gensim.models").KeyedVectors(vectors.vector_size)
    keyed.add_vectors(vectors.vocabulary.words, vectors.vectors)
    _, expected, unknown = keyed.evaluate_word_pairs(url, case_insensitive=False)
    result = evaluate_similarity(vectors, url)
    assert result.spearman == pytest.approx(expected.statistic, abs=1e-6)
    assert 100 * (1 - result.coverage) == pytest.approx(unknown)
    assert result.low < result.spearman < result.high


def test_evaluate_similarity__equals_gensim(vectors, tmp_path):
    rng = np.random.default_rng(3)
    pairs = [(*rng.choice([*WORDS, "unknown"], 2), rng.integers(0, 20) / 2) for _ in range(100)]
    assert_equals_gensim(vectors, write(tmp_path, "".join(f"{a}\t{b}\t{score}\n" for a, b, score in pairs)))


@pytest.mark.parametrize("name", ["ws353", "simlex999"])
def test_evaluate_similarity__equals_gensim_on_published_sets(data, name):
    url = str(data / "eval" / f"{name}.tsv")
    words = sorted({word for pair in read_pairs(url) for word in pair[:2]})
    assert_equals_gensim(random_vectors(words[: len(words) * 9 // 10], 20), url)


def test_evaluate_similarity__lowers_only_unknown_words(tmp_path):
    matrix = np.array([[1, 0], [0, 1], [1, 1]], np.float32)
    vectors = Vectors(Vocabulary.from_words(["Apple", "apple", "new york"], [1] * 3), matrix)
    url = write(tmp_path, "Apple\tNew York\t1\nAPPLE\tnew york\t2\nApple\tapple\t0\nApple\tpear\t0\n")
    result = evaluate_similarity(vectors, url)
    assert (result.pairs, result.missing) == (3, 1)
    assert result.spearman == pytest.approx(np.sqrt(3) / 2)


@pytest.mark.parametrize("text", ["", "w1\tw2\t1\nw1\tw3\t2\n", "w1\tw2\t5\nw1\tw3\t5\nw1\tw4\t5\nw1\tw5\t5\n"])
def test_evaluate_similarity__has_no_score_if_none_is_defined(vectors, tmp_path, text):
    result = evaluate_similarity(vectors, write(tmp_path, text))
    assert (result.spearman, result.low, result.high) == (None, None, None)


def test_coverage__is_the_share_of_pairs_compared():
    assert SimilarityResult(0.5, 0.1, 0.8, 30, 10).coverage == 0.75
    assert SimilarityResult(None, None, None, 0, 3).coverage == 0
    assert SimilarityResult(None, None, None, 0, 0).coverage is None


@given(st.lists(st.tuples(st.integers(-3, 3), st.floats(-1, 1)), min_size=3))
def test_spearman__equals_scipy(pairs):
    x, y = np.array(pairs, float).T
    result = spearman(x, y)
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert result is None
    else:
        assert result == pytest.approx(scipy.stats.spearmanr(x, y).statistic, abs=1e-9)


def test_confidence__equals_numbers_worked_out_by_hand():
    # z = atanh(0.5) = 0.549306, standard error sqrt(1.125 / 100) = 0.106066, 1.959964 of it 0.207886
    assert confidence(0.5, 103) == pytest.approx((np.tanh(0.341420), np.tanh(0.757192)), abs=1e-6)
    assert confidence(-0.5, 103) == pytest.approx((np.tanh(-0.757192), np.tanh(-0.341420)), abs=1e-6)


@pytest.mark.parametrize(("rho", "n"), [(None, 100), (0.5, 3), (1.0, 100), (-1.0, 100)])
def test_confidence__is_undefined_without_spread(rho, n):
    assert confidence(rho, n) == (None, None)


def test_confidence__holds_the_true_correlation_95_times_of_100():
    """Normal samples with correlation 0.5 between them have a Spearman correlation of 6 / pi asin(0.25)."""
    rng, truth, trials = np.random.default_rng(6), 6 / np.pi * np.arcsin(0.25), 1000
    held = 0
    for x, noise in rng.standard_normal((trials, 2, 80)):
        low, high = confidence(spearman(x, 0.5 * x + np.sqrt(0.75) * noise), 80)
        held += low < truth < high
    assert 0.93 < held / trials < 0.97
