import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.errors import InputError, MissingExtraError, ParameterError
from daskw2v.evaluation import analogy
from daskw2v.evaluation.analogy import KnownRelation, Relation, evaluate_analogy, read_relations
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.queries.word_queries import COSMUL_EPSILON
from daskw2v.models.stored.tables import StoredRows
from daskw2v.store.arrays import open_array, write_array
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary

WORDS = [f"w{i}" for i in range(200)]
OFFSETS = ["3cosadd", "3cosmul", "pairdirection"]


def unit(x):
    return x / np.linalg.norm(x)


def score(method, x, a, b, c):
    """Score x as an answer to "a is to b as c is to x": the definitions, in float64."""
    if method == "3cosadd":
        return x @ unit(b - a + c)
    if method == "3cosmul":
        return (1 + x @ b) / 2 * (1 + x @ c) / 2 / ((1 + x @ a) / 2 + COSMUL_EPSILON)
    return unit(x - c) @ unit(b - a)


def reference_scores(method, matrix, question, limit):
    """Return the score of each word in float64; -inf for the words of the question and for ids from `limit` on."""
    units = [unit(x) for x in matrix.astype(np.float64)]
    question_units = [units[i] for i in question]
    return np.array(
        [score(method, x, *question_units) if i < limit and i not in question else -np.inf for i, x in enumerate(units)]
    )


def make_vectors(matrix):
    names = [f"w{i}" for i in range(len(matrix))]
    return Vectors(Vocabulary.from_words(names, [1] * len(names)), matrix.astype(np.float32))


@pytest.fixture(scope="module")
def vectors():
    """Pairs of words that differ by nearly the same vector, so that about half of the analogies hold."""
    rng = np.random.default_rng(4)
    first = rng.standard_normal((100, 30))
    second = first + rng.standard_normal(30) + 1.1 * rng.standard_normal((100, 30))
    return make_vectors(np.stack([first, second], axis=1).reshape(200, 30))


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


def read_known_questions(url):
    with open(url) as f:
        return [line.split() for line in f if not line.startswith(":") and "unknown" not in line]


def make_keyed(vectors):
    keyed = pytest.importorskip("gensim.models").KeyedVectors(vectors.vector_size)
    keyed.add_vectors(vectors.vocabulary.words, vectors.vectors)
    return keyed


def assert_equals_gensim(vectors, url, restrict_vocab=None):
    limit = restrict_vocab or len(vectors)
    accuracy, sections = make_keyed(vectors).evaluate_word_analogies(url, limit, case_insensitive=False)
    result = evaluate_analogy(vectors, url, restrict_vocab=restrict_vocab)
    right = {s["section"]: len(s["correct"]) for s in sections[:-1]}
    wrong = {s["section"]: len(s["incorrect"]) for s in sections[:-1]}
    assert result.categories == {name: (right[name], right[name] + wrong[name]) for name in right}
    assert result.accuracy == pytest.approx(accuracy, abs=1e-6)
    assert 0.1 < result.accuracy < 0.9
    return result


@pytest.fixture(params=[None, 7], ids=["one block", "many blocks"])
def blocks(request, monkeypatch):
    """Read vectors in blocks of the default size, or of seven rows."""
    read_blocks, n_rows_at_once = Vectors.blocks, request.param
    if n_rows_at_once:
        monkeypatch.setattr(
            Vectors, "blocks", lambda self, limit=None, n_rows=None: read_blocks(self, limit, n_rows_at_once)
        )


@pytest.fixture
def regression():
    """Scikit-learn's logistic regression on one thread, as other cores may be busy."""
    linear_model = pytest.importorskip("sklearn.linear_model", reason="scikit-learn comes with daskw2v[evaluation]")
    threadpoolctl = pytest.importorskip("threadpoolctl")
    with threadpoolctl.threadpool_limits(1):
        yield linear_model.LogisticRegression(class_weight="balanced")


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("restrict_vocab", [None, 120])
def test_evaluate_analogy__equals_gensim(vectors, url, restrict_vocab):
    result = assert_equals_gensim(vectors, url, restrict_vocab)
    assert result.questions + result.skipped == 300
    assert result.groups == {}


def test_evaluate_analogy__equals_gensim_on_googles_set(data, tmp_path):
    """Each seventh question is asked; about half of the analogies hold for the vectors."""
    with (data / "eval" / "google_analogy.txt").open() as f:
        lines = [line for i, line in enumerate(f) if line.startswith(":") or i % 7 == 0]
    relations = read_relations(write(tmp_path, "".join(lines)))
    rng, rows = np.random.default_rng(8), {}
    for relation in relations:
        offset = rng.standard_normal(50)
        for source, (target,) in relation.pairs:
            start = rows.setdefault(source, rng.standard_normal(50))
            rows.setdefault(target, start + offset + 1.2 * rng.standard_normal(50))
    words = [*rows][: len(rows) * 19 // 20]
    matrix = np.array([rows[word] for word in words], np.float32)
    vectors = Vectors(Vocabulary.from_words(words, [1] * len(words)), matrix)
    result = assert_equals_gensim(vectors, str(tmp_path / "set.txt"))
    assert result.questions + result.skipped == sum(len(relation.questions) for relation in relations)
    assert result.skipped > 0
    right, asked = zip(result.groups["semantic"], result.groups["syntactic"], strict=True)
    assert (sum(asked), sum(right) / sum(asked)) == (result.questions, result.accuracy)


@pytest.mark.filterwarnings("ignore:Call to deprecated:DeprecationWarning")  # gensim's own
@pytest.mark.usefixtures("blocks")
def test_evaluate_analogy__multiplies_like_gensim(vectors, url, monkeypatch):
    monkeypatch.setattr(analogy, "COSMUL_EPSILON", 1e-6)  # gensim's
    keyed = make_keyed(vectors)
    right = [keyed.most_similar_cosmul([b, c], [a], topn=1)[0][0] == d for a, b, c, d in read_known_questions(url)]
    assert evaluate_analogy(vectors, url, "3cosmul").accuracy == pytest.approx(np.mean(right), abs=1e-6)
    assert 0.1 < np.mean(right) < 0.9


@pytest.mark.usefixtures("blocks")
@pytest.mark.parametrize("method", OFFSETS)
def test_evaluate_analogy__equals_the_definition(vectors, url, method):
    questions = [[int(word[1:]) for word in words] for words in read_known_questions(url)]
    right = [
        int(reference_scores(method, vectors.vectors, q[:3], 120).argmax()) == q[3] for q in questions if max(q) < 120
    ]
    result = evaluate_analogy(vectors, url, method, restrict_vocab=120)
    assert (result.accuracy, result.questions) == (np.mean(right), len(right))
    assert 0.02 < result.accuracy < 0.9


@pytest.mark.parametrize("method", ["3cosadd", "3cosmul"])
def test_evaluate_analogy__agrees_with_single_questions(vectors, url, method):
    right = [vectors.analogy(a, b, c, method=method)[0][0] == d for a, b, c, d in read_known_questions(url)]
    assert evaluate_analogy(vectors, url, method).accuracy == pytest.approx(np.mean(right), abs=1e-6)


@given(st.data())
def test_solve__finds_the_best_word_of_small_vocabularies(data):
    n_words = data.draw(st.integers(1, 12), "words")
    limit = data.draw(st.integers(1, n_words), "limit")
    method = data.draw(st.sampled_from(OFFSETS), "method")
    seed, dimensions = data.draw(st.integers(0, 2**32), "seed"), data.draw(st.integers(2, 5), "dimensions")
    words = st.integers(0, limit - 1)
    pairs = np.array(data.draw(st.lists(st.tuples(words, words), min_size=1, max_size=6), "pairs"))
    indices = st.integers(0, len(pairs) - 1)
    questions = np.array(data.draw(st.lists(st.tuples(indices, indices), min_size=1, max_size=8), "questions"))
    matrix = np.random.default_rng(seed).standard_normal((n_words, dimensions)).astype(np.float32)

    known = KnownRelation(Relation("r", None, [], questions), pairs, questions, frozenset())
    vectors = make_vectors(matrix)
    (answers,) = analogy.solve(vectors, [analogy.SOLVERS[method](vectors, known, limit)], limit)
    for (i, j), answer in zip(questions, answers, strict=True):
        question = [*pairs[i], pairs[j, 0]]
        if set(range(limit)) <= set(question):
            assert answer == -1
        elif question[0] != question[1]:  # otherwise all scores are equal
            scores = reference_scores(method, matrix, question, limit)
            assert scores[answer] == pytest.approx(scores.max(), abs=1e-4)


def test_evaluate_analogy__accepts_any_of_several_right_answers(tmp_path):
    """Of the right answers for c, e is the nearest to b - a + c, and is a word of no question."""
    matrix = np.array([[1, 0, 0], [1, 1, 0], [1, 0, 1], [0, 0, 1], [1, 1, 1]], np.float32)
    vectors = Vectors(Vocabulary.from_words(list("abcde"), [1] * 5), matrix)
    result = evaluate_analogy(vectors, write(tmp_path, "a\tb\nc\td/no/e\n"))
    assert result.categories == {"set": (1, 2)}
    assert evaluate_analogy(vectors, write(tmp_path, "a\tb\nc\td\n")).categories == {"set": (0, 2)}


def test_evaluate_analogy__excludes_only_the_words_of_the_question(tmp_path):
    """The other right answer for a is no word of the question: it may be the answer for c."""
    matrix = np.array([[1, 0, 0], [1, 1, 0], [1, 0.1, 0], [1, 1.1, 0], [0, 0, 1]], np.float32)
    vectors = Vectors(Vocabulary.from_words(list("abcde"), [1] * 5), matrix)
    assert evaluate_analogy(vectors, write(tmp_path, "a\tb/d\nc\td\n")).categories == {"set": (2, 2)}


@pytest.mark.parametrize("method", OFFSETS)
def test_evaluate_analogy__reads_vectors_in_a_store(vectors, url, tmp_path, method):
    group = Store(str(tmp_path)).create_group()
    write_array(group, "input", vectors.vectors, chunk_rows=16)
    stored = Vectors(vectors.vocabulary, StoredRows(open_array(group, "input")))
    assert evaluate_analogy(stored, url, method) == evaluate_analogy(vectors, url, method)


def test_evaluate_analogy__lowers_only_unknown_words(vectors, tmp_path):
    result = evaluate_analogy(vectors, write(tmp_path, ": a\nW0 W1 w2 W3\nx W1 W2 W3\n"))
    assert (result.questions, result.skipped) == (1, 1)


@pytest.mark.parametrize("method", [*OFFSETS, "lrcos"])
@pytest.mark.parametrize("text", ["", ": empty\n", ": a\nx y z w\n"])
def test_evaluate_analogy__has_no_accuracy_without_questions(vectors, tmp_path, text, method):
    result = evaluate_analogy(vectors, write(tmp_path, text), method)
    assert result.accuracy is None
    assert result.questions == 0


@pytest.mark.parametrize("method", OFFSETS)
def test_evaluate_analogy__answers_nothing_if_all_words_are_excluded(tmp_path, method):
    vectors = Vectors(Vocabulary.from_words(["a", "b", "c"], [1] * 3), np.eye(3, dtype=np.float32))
    result = evaluate_analogy(vectors, write(tmp_path, ": x\na b c a\n"), method)
    assert result.categories == {"x": (0, 1)}


def test_evaluate_analogy__reads_equal_vectors_and_zero_vectors(tmp_path):
    matrix = np.array([[1, 0], [1, 1], [1, 0], [0, 0], [1, 1.5]], np.float32)
    vectors = Vectors(Vocabulary.from_words(list("abcde"), [1] * 5), matrix)
    for method in OFFSETS:
        assert evaluate_analogy(vectors, write(tmp_path, "a b c e\n"), method).categories == {"set": (1, 1)}


def test_evaluate_analogy__names_a_malformed_line(vectors, tmp_path):
    with pytest.raises(InputError, match=r"Line 2 of .*Write four words in each line"):
        evaluate_analogy(vectors, write(tmp_path, ": a\nw0 w1 w2\n"))


def test_evaluate_analogy__refuses_an_unknown_method(vectors, url):
    with pytest.raises(ParameterError, match=r"method='3cosdiv' .*Choose one of: 3cosadd, .*lrcos"):
        evaluate_analogy(vectors, url, "3cosdiv")


def test_evaluate_analogy__refuses_a_vocabulary_of_no_words(vectors, url):
    with pytest.raises(ParameterError, match=r"restrict_vocab=0 is below 1.*Give at least 1"):
        evaluate_analogy(vectors, url, restrict_vocab=0)


def test_evaluate_analogy__names_the_extra_of_lrcos(vectors, url, monkeypatch):
    def absent(module, extra):
        raise MissingExtraError(f"{module} is not installed.", f"Run: pip install 'daskw2v[{extra}]'.")

    monkeypatch.setattr(analogy, "needed", absent)
    with pytest.raises(MissingExtraError, match=r"sklearn.linear_model .*pip install 'daskw2v\[evaluation\]'"):
        evaluate_analogy(vectors, url, "lrcos")


@pytest.mark.usefixtures("blocks")
def test_lrcos__equals_a_plain_script(vectors, tmp_path, regression):
    """Twenty pairs with two right second words each; one more pair is not known."""
    url = write(tmp_path, "unknown\tw1\n" + "".join(f"w{2 * i}\tw{2 * i + 1}/w{i + 90}\n" for i in range(20)))
    units = np.array([unit(x) for x in vectors.vectors[:150].astype(np.float64)])
    drawn = np.random.default_rng(0).integers(150, size=20)
    right = 0
    for asked in range(20):
        other_pairs = [i for i in range(20) if i != asked]
        positives = [2 * i + 1 for i in other_pairs]
        negatives = [2 * i for i in other_pairs] + [drawn[i] for i in other_pairs]
        regression.fit(units[positives + negatives], [1] * len(positives) + [0] * len(negatives))
        scores = regression.predict_proba(units)[:, 1] * (units @ units[2 * asked])
        scores[2 * asked] = -np.inf
        right += scores.argmax() in (2 * asked + 1, asked + 90)
    result = evaluate_analogy(vectors, url, "lrcos", restrict_vocab=150)
    assert result.categories == {"set": (right, 20)}
    assert result.skipped == 1
    assert 0.1 < right / 20 < 0.95


def test_lrcos__scores_as_scikit_learn_does(vectors, regression):
    """All scores are compared, not only the best."""
    pairs = np.arange(12).reshape(6, 2)
    known = KnownRelation(Relation("r", None, [], np.empty((0, 2))), pairs, np.empty((0, 2)), frozenset())
    solver = analogy.SOLVERS["lrcos"](vectors, known, 200)
    block = next(vectors.blocks())
    units = np.array([unit(x) for x in vectors.vectors.astype(np.float64)])
    drawn = np.random.default_rng(0).integers(200, size=6)
    words = np.concatenate([pairs[1:, 0], pairs[1:, 1], drawn[1:]])
    regression.fit(units[words], [0] * 5 + [1] * 5 + [0] * 5)
    expected = regression.predict_proba(units)[:, 1] * (units @ units[0])
    np.testing.assert_allclose(solver.scorer_on(block)(slice(0, 1))[0], expected, atol=2e-4)


def test_lrcos__skips_a_single_pair(vectors, tmp_path):
    result = evaluate_analogy(vectors, write(tmp_path, "w0\tw1\nunknown\tw2\n"), "lrcos")
    assert (result.categories, result.skipped, result.accuracy) == ({"set": (0, 0)}, 2, None)


@pytest.mark.usefixtures("regression")
def test_lrcos__asks_once_about_each_pair_of_googles_layout(vectors, url):
    result = evaluate_analogy(vectors, url, "lrcos")
    relations = read_relations(url)
    known = [sum("unknown" not in targets for _, targets in relation.pairs) for relation in relations]
    assert [asked for _, asked in result.categories.values()] == known
    assert result.questions + result.skipped == sum(len(relation.pairs) for relation in relations)
    assert result.accuracy > evaluate_analogy(vectors, url).accuracy


def test_evaluate_analogy__reads_bats(data):
    """The model knows a random half of the words."""
    relations = read_relations(data / "eval" / "bats")
    rng = np.random.default_rng(3)
    words = sorted({word for r in relations for source, targets in r.pairs for word in (source, *targets)})
    words = [words[i] for i in rng.permutation(len(words))][: len(words) // 2]
    vectors = Vectors(Vocabulary.from_words(words, [1] * len(words)), rng.standard_normal((len(words), 8), np.float32))
    result = evaluate_analogy(vectors, data / "eval" / "bats")
    assert len(result.categories) == 40
    assert list(result.groups) == sorted({r.group for r in relations})
    assert sum(asked for _, asked in result.groups.values()) == result.questions > 1000
    assert result.questions + result.skipped == sum(len(r.questions) for r in relations)
