import gensim
import numpy as np
import pytest

from daskw2v.errors import InputError, ParameterError
from daskw2v.evaluation import analogy as module
from daskw2v.evaluation.analogy import evaluate_analogy
from daskw2v.models.vectors import Vectors
from daskw2v.vocabulary.vocabulary import Vocabulary

WORDS = [f"w{i}" for i in range(200)]


@pytest.fixture(scope="module")
def vectors():
    """Pairs of words that differ by nearly the same vector, so that about half of the analogies hold."""
    rng = np.random.default_rng(4)
    first = rng.standard_normal((100, 30))
    second = first + rng.standard_normal(30) + 1.1 * rng.standard_normal((100, 30))
    matrix = np.stack([first, second], axis=1).reshape(200, 30).astype(np.float32)
    return Vectors(Vocabulary.from_words(WORDS, [1] * 200), matrix)


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    rng, lines = np.random.default_rng(5), []
    for category in ("one", "two"):
        lines.append(f": {category}")
        for _ in range(150):
            a, c = rng.choice(100, 2, replace=False) * 2
            lines.append(f"w{a} w{a + 1} w{c} " + ("unknown" if rng.random() < 0.1 else f"w{c + 1}"))
    path = tmp_path_factory.mktemp("analogy") / "set.txt"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def write(tmp_path, text):
    (tmp_path / "set.txt").write_text(text)
    return str(tmp_path / "set.txt")


@pytest.fixture(scope="module")
def keyed(vectors):
    keyed = gensim.models.KeyedVectors(vectors.vector_size)
    keyed.add_vectors(WORDS, vectors.vectors)
    return keyed


@pytest.fixture(params=[(512, 1 << 17), (7, 100)], ids=["one block", "many blocks"])
def blocks(request, monkeypatch):
    width, scores = request.param
    monkeypatch.setattr(module, "_NARROWEST", width)
    monkeypatch.setattr(module, "_TABLE", width)
    monkeypatch.setattr(module, "_SCORES", scores)


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("restrict_vocab", [None, 120])
def test_evaluate_analogy__equals_gensim(vectors, keyed, url, restrict_vocab):
    accuracy, sections = keyed.evaluate_word_analogies(url, restrict_vocab or 200, case_insensitive=False)
    found = evaluate_analogy(vectors, url, restrict_vocab=restrict_vocab)
    right = {s["section"]: len(s["correct"]) for s in sections[:-1]}
    wrong = {s["section"]: len(s["incorrect"]) for s in sections[:-1]}
    assert found.categories == {name: (right[name], right[name] + wrong[name]) for name in right}
    assert found.accuracy == pytest.approx(accuracy, abs=1e-6)
    assert found.questions + found.skipped == 300
    assert 0.1 < found.accuracy < 0.9


@pytest.mark.filterwarnings("ignore:Call to deprecated:DeprecationWarning")  # gensim's own
@pytest.mark.usefixtures("blocks")
def test_evaluate_analogy__multiplies_like_gensim(vectors, keyed, url, monkeypatch):
    monkeypatch.setattr(module, "COSMUL_EPSILON", 1e-6)  # gensim's
    with open(url) as f:
        questions = [line.split() for line in f if not line.startswith(":") and "unknown" not in line]
    right = [keyed.most_similar_cosmul([b, c], [a], topn=1)[0][0] == d for a, b, c, d in questions]
    assert evaluate_analogy(vectors, url, "3cosmul").accuracy == pytest.approx(np.mean(right), abs=1e-6)
    assert 0.1 < np.mean(right) < 0.9


@pytest.mark.parametrize("method", ["3cosadd", "3cosmul"])
def test_evaluate_analogy__agrees_with_single_questions(vectors, url, method):
    with open(url) as f:
        questions = [line.split() for line in f if not line.startswith(":") and "unknown" not in line]
    right = [vectors.analogy(a, b, c, method=method)[0][0] == d for a, b, c, d in questions]
    assert evaluate_analogy(vectors, url, method).accuracy == pytest.approx(np.mean(right), abs=1e-6)


def test_evaluate_analogy__lowers_only_unknown_words(vectors, tmp_path):
    found = evaluate_analogy(vectors, write(tmp_path, ": a\nW0 W1 w2 W3\nx W1 W2 W3\n"))
    assert (found.questions, found.skipped) == (1, 1)


@pytest.mark.parametrize("text", ["", ": empty\n", ": a\nx y z w\n"])
def test_evaluate_analogy__has_no_accuracy_without_questions(vectors, tmp_path, text):
    found = evaluate_analogy(vectors, write(tmp_path, text))
    assert found.accuracy is None
    assert found.questions == 0


def test_evaluate_analogy__answers_nothing_where_no_word_is_left(tmp_path):
    vectors = Vectors(Vocabulary.from_words(["a", "b", "c"], [1] * 3), np.eye(3, dtype=np.float32))
    found = evaluate_analogy(vectors, write(tmp_path, ": x\na b c a\n"))
    assert found.categories == {"x": (0, 1)}


@pytest.mark.parametrize(
    ("text", "line"), [("w0 w1 w2 w3\n", 1), (": a\nw0 w1 w2\n", 2), (": a\n\nw0 w1 w2 w3 w4\n", 3)]
)
def test_evaluate_analogy__names_a_malformed_line(vectors, tmp_path, text, line):
    with pytest.raises(InputError, match=f"Line {line} of .*four words in each line"):
        evaluate_analogy(vectors, write(tmp_path, text))


def test_evaluate_analogy__refuses_an_unknown_method(vectors, url):
    with pytest.raises(ParameterError, match="3cosdiv"):
        evaluate_analogy(vectors, url, "3cosdiv")
