import numpy as np
import pytest

from daskw2v.errors import ParameterError
from daskw2v.evaluation import stability as module
from daskw2v.evaluation.stability import StabilityResult, neighbour_stability
from daskw2v.models.queries import rows as rows_module
from daskw2v.models.queries.vectors import Vectors
from daskw2v.vocabulary.vocabulary import Vocabulary


def model(words, seed, noise=0.0):
    """Return a model in which a word's vector is a function of the word, but for the noise."""
    base = {word: np.random.default_rng(int(word[1:])).standard_normal(8) for word in words}
    matrix = np.array([base[word] for word in words]) + noise * np.random.default_rng(seed).standard_normal(
        (len(words), 8)
    )
    return Vectors(Vocabulary.from_words(words, [1] * len(words)), matrix.astype(np.float32))


@pytest.fixture(scope="module")
def pair():
    """Two models that share 80 words, in different order."""
    return model([f"w{i}" for i in range(100)], 1, 0.5), model([f"w{i}" for i in range(119, 19, -1)], 2, 0.5)


def reference(a, b, words, topn):
    """Return the nearest common words of each word in both models, from cosines of all pairs."""
    common = [word for word in a.vocabulary.words if word in b]
    result = {}
    for word in words:
        sets = []
        for vectors in (a, b):
            candidates = [other for other in common if other != word]
            cosines = [vectors.similarity(word, other) for other in candidates]
            sets.append({candidates[i] for i in np.argsort(cosines)[::-1][:topn]})
        result[word] = sets
    return result


@pytest.fixture(params=[False, True], ids=["one block", "many blocks"])
def _blocks(request, monkeypatch):
    if request.param:
        monkeypatch.setattr(rows_module, "BLOCK_BYTES", 4 * 8 * 7)
        monkeypatch.setattr(rows_module, "SCORES", 30)
        monkeypatch.setattr(module, "QUERIES", 9)


@pytest.mark.usefixtures("_blocks")
def test_neighbour_stability__equals_its_reference(pair):
    result = neighbour_stability(*pair, topn=7)
    expected = reference(*pair, [f"w{i}" for i in range(20, 100)], 7)
    overlaps = {word: len(x & y) / 7 for word, (x, y) in expected.items()}
    assert result.overlaps == pytest.approx(overlaps)
    assert result.overlap == pytest.approx(np.mean(list(overlaps.values())))
    assert result.jaccard == pytest.approx(np.mean([len(x & y) / len(x | y) for x, y in expected.values()]))
    assert (result.words, result.missing, result.topn) == (80, 0, 7)
    assert 0.2 < result.overlap < 0.9


def test_neighbour_stability__compares_the_passed_words(pair):
    result = neighbour_stability(*pair, words=["w50", "w3", "w21", "w50", "absent", "w110"])
    all_overlaps = neighbour_stability(*pair).overlaps
    assert result.overlaps == {word: all_overlaps[word] for word in ("w50", "w21")}
    assert (result.words, result.missing) == (2, 3)


def test_neighbour_stability__compares_the_thousand_most_frequent_common_words():
    a, b = model([f"w{i}" for i in range(1100)], 1), model([f"w{i}" for i in range(1099, 19, -1)], 2)
    assert list(neighbour_stability(a, b).overlaps) == [f"w{i}" for i in range(20, 1020)]


def test_neighbour_stability__is_one_for_a_rotated_model(pair):
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((8, 8)))[0].astype(np.float32)
    order = np.random.default_rng(1).permutation(100)
    words = np.array(pair[0].vocabulary.words)[order]
    rotated = Vectors(Vocabulary.from_words(words.tolist(), [1] * 100), 3 * pair[0].vectors[order] @ rotation)
    result = neighbour_stability(pair[0], rotated)
    assert (result.overlap, result.jaccard, result.words) == (1, 1, 100)


def test_neighbour_stability__compares_fewer_neighbours_if_models_share_fewer_words():
    result = neighbour_stability(model(["w1", "w2", "w3", "w4"], 1), model(["w5", "w3", "w1", "w2"], 1))
    assert result == StabilityResult(1.0, 1.0, 3, 0, 2, {"w1": 1.0, "w2": 1.0, "w3": 1.0})


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (None, StabilityResult(None, None, 1, 0, 0, {})),
        (["w2"], StabilityResult(None, None, 0, 1, 0, {})),
    ],
)
def test_neighbour_stability__has_no_figure_without_neighbours(words, expected):
    assert neighbour_stability(model(["w1", "w2"], 1), model(["w3", "w1"], 1), words) == expected
    assert neighbour_stability(model(["w1"], 1), model(["w2"], 1)).words == 0


def test_neighbour_stability__refuses_no_neighbours(pair):
    with pytest.raises(ParameterError, match=r"topn=0 is below 1. Give a topn of at least 1"):
        neighbour_stability(*pair, topn=0)
