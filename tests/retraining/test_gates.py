"""Gates: what is stopped before it is published."""

import json
import random

import numpy as np
import pytest

from daskw2v import Params, evaluate, train
from daskw2v.errors import ParameterError
from daskw2v.evaluation import Evaluation
from daskw2v.evaluation.similarity import SimilarityResult
from daskw2v.evaluation.stability import neighbour_stability
from daskw2v.models.queries.vectors import Vectors
from daskw2v.retraining.gates import Evaluated, Gates, check_gates, first_scores, judge
from daskw2v.vocabulary.vocabulary import Vocabulary

TOPICS = [[f"t{topic}w{i}" for i in range(11)] for topic in range(12)]
EVERY = [word for topic in TOPICS for word in topic]
PARAMS = Params(vector_size=12, min_count=1, sample=0, epochs=20, rounds_per_epoch=1, window=4, alpha=0.1)


def sentences(seed, n=600):
    """Return sentences of words of one topic each."""
    draw = random.Random(seed)
    return [draw.choices(draw.choice(TOPICS), k=9) for _ in range(n)]


def shuffled(seed):
    """Return sentences whose tokens stand in any order: the same words and counts, but no sense."""
    lines = sentences(seed)
    tokens = [token for line in lines for token in line]
    random.Random(seed).shuffle(tokens)
    return [tokens[i : i + 9] for i in range(0, len(tokens), 9)]


def noise(seed):
    """Return sentences of letters by chance."""
    draw = random.Random(seed)
    return [["".join(draw.choices("abcdef", k=3)) for _ in range(9)] for _ in range(600)]


def foreign(seed):
    """Return sentences in another language, which shares a name."""
    return [[token if token == "t0w0" else token[::-1] for token in line] for line in sentences(seed)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("gates")


@pytest.fixture(scope="module")
def night(folder, client):
    """Train on sentences and evaluate, as a night's run does."""
    pairs = folder / "topics.tsv"
    draw = random.Random(0)
    drawn = [(draw.choice(EVERY), draw.choice(draw.choice(TOPICS))) for _ in range(150)]
    drawn += [tuple(draw.sample(topic, 2)) for topic in TOPICS * 12]
    pairs.write_text("".join(f"{a}\t{b}\t{int(a.split('w')[0] == b.split('w')[0])}\n" for a, b in drawn))

    def trained(name, lines):
        (folder / f"{name}.txt").write_text("".join(" ".join(line) + "\n" for line in lines))
        vectors = train(folder / f"{name}.txt", work=folder / name, params=PARAMS, client=client)
        return Evaluated(vectors, first_scores(evaluate(vectors, similarity=[pairs])))

    return trained


@pytest.fixture(scope="module")
def published(night):
    return night("published", sentences(1))


def names(verdict):
    return {gate.name.split()[0] for gate in verdict.failed}


def test_judge__lets_the_next_day_pass(night, published):
    verdict = judge(Gates(min_score={"similarity/topics": 0.5}), night("next", sentences(2)), published)
    assert verdict.passed, verdict.as_text()
    assert "STOPPED" not in verdict.as_text()
    assert {gate.name for gate in verdict.gates} == {
        "loss",
        "finite",
        "max_zero",
        "max_long",
        "min_score similarity/topics",
        "max_drop similarity/topics",
        "max_coverage_drop similarity/topics",
        "min_kept",
        "min_stability",
    }


@pytest.mark.parametrize(
    ("text", "stopped_by"),
    [
        (shuffled, {"max_drop", "min_stability"}),  # all words are there, as often as ever
        pytest.param(noise, {"max_drop", "max_coverage_drop", "min_kept", "min_stability"}, marks=pytest.mark.slow),
        pytest.param(foreign, {"max_drop", "max_coverage_drop", "min_kept", "min_stability"}, marks=pytest.mark.slow),
    ],
)
def test_judge__stops_garbage(night, published, text, stopped_by):
    garbage = night(text.__name__, text(3))
    assert names(judge(Gates(), garbage, published)) == stopped_by
    first = judge(Gates(min_score={"similarity/topics": 0.5}), garbage)
    assert names(first) == {"min_score"}


def version(rows, words=None, counts=None, loss=2.5, score=0.6, known=90, missing=10):
    """Return an evaluated version as it is told to be."""
    words = words or [f"w{i}" for i in range(len(rows))]
    vocabulary = Vocabulary.from_words(words, counts or range(len(words), 0, -1))
    evaluation = Evaluation({"set": SimilarityResult(score, None, None, known, missing)}, {}, {}, {}, {})
    return Evaluated(Vectors(vocabulary, rows, {"metrics": {"loss": loss}}), first_scores(evaluation))


@pytest.fixture
def rows():
    return np.random.default_rng(1).standard_normal((60, 5), np.float32)


def gate(verdict, name):
    (actual,) = [gate for gate in verdict.gates if gate.name == name]
    return actual


@pytest.mark.parametrize("loss", [None, float("nan"), float("inf")])
def test_judge__wants_a_finite_loss(rows, loss):
    verdict = judge(Gates(), version(rows, loss=loss))
    assert [gate.name for gate in verdict.failed] == ["loss"]
    assert json.loads(json.dumps(verdict.as_dict(), allow_nan=False))["gates"][0]["value"] is None


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_judge__wants_finite_vectors(rows, bad):
    published = version(rows.copy())
    rows[7, 2] = bad
    verdict = judge(Gates(max_long=1.0), version(rows), published)
    assert gate(verdict, "finite").value == 1
    assert names(verdict) == {"finite", "min_stability"}  # neighbours of such vectors are not asked for


def test_judge__counts_vectors_that_are_zero_or_too_long(rows):
    rows[:3], rows[3:5] = 0, rows[3:5] * 1000
    verdict = judge(Gates(), version(rows))
    assert {g.name: g.value for g in verdict.failed} == {"max_zero": 3 / 60, "max_long": 2 / 60}
    assert judge(Gates(max_zero=3 / 60, max_long=2 / 60), version(rows)).passed
    assert judge(Gates(max_zero=None, max_long=None), version(rows)).passed
    assert judge(Gates(max_zero=1, times_median=1e6), version(rows)).passed


def test_judge__stops_a_model_of_zeros(rows):
    verdict = judge(Gates(max_zero=1), version(np.zeros_like(rows)))
    assert names(verdict) == {"max_long"}  # lengths that have no median


@pytest.mark.parametrize(
    ("score", "known", "gates", "stopped_by"),
    [
        (0.6, 90, {}, set()),
        (0.54, 86, {}, set()),
        (0.53, 90, {}, {"max_drop"}),
        (0.6, 85, {}, {"max_coverage_drop"}),
        (0.6, 90, {"min_score": {"similarity/set": 0.61}}, {"min_score"}),
        (0.61, 90, {"min_score": {"similarity/set": 0.61}}, set()),
        (0.6, 90, {"min_score": {"similarity/other": -1}}, {"min_score"}),  # never evaluated
        (0.6, 90, {"min_coverage": 0.91}, {"min_coverage"}),
        (0.6, 90, {"min_coverage": 0.9}, set()),
        (None, 90, {}, {"max_drop"}),
        (float("nan"), 90, {"min_score": {"similarity/set": -1}}, {"max_drop", "min_score"}),
        (None, 0, {"min_coverage": 0}, {"max_drop", "max_coverage_drop"}),
        (None, 90, {"max_drop": None}, set()),
        (0.6, 1, {"max_coverage_drop": None}, set()),
    ],
)
def test_judge__compares_scores_and_coverage(rows, score, known, gates, stopped_by):
    new = version(rows, score=score, known=known, missing=100 - known)
    assert names(judge(Gates(**gates), new, version(rows))) == stopped_by


@pytest.mark.parametrize(("before", "after", "passes"), [(-0.1, -0.105, True), (-0.1, -0.12, False), (None, -1, True)])
def test_judge__takes_a_drop_from_what_there_was(rows, before, after, passes):
    assert judge(Gates(), version(rows, score=after), version(rows, score=before)).passed is passes


def test_judge__misses_a_set_that_only_the_published_version_was_evaluated_on(rows):
    nothing = Evaluated(version(rows).vectors, {})
    assert names(judge(Gates(), nothing, version(rows))) == {"max_drop", "max_coverage_drop"}


def test_judge__weighs_the_words_that_are_gone(rows):
    published = version(rows, counts=[940, *[1] * 59])
    gone = version(rows[30:], words=[f"w{i}" for i in range(30, 60)])
    kept = version(rows[:30], words=[f"w{i}" for i in range(30)])
    assert gate(judge(Gates(), kept, published), "min_kept").value == pytest.approx(969 / 999)
    assert gate(judge(Gates(), kept, published), "min_kept").passed
    assert gate(judge(Gates(), gone, published), "min_kept").value == pytest.approx(30 / 999)
    assert "min_kept" in names(judge(Gates(), gone, published))
    assert "min_kept" not in names(judge(Gates(min_kept=None), gone, published))


def test_judge__looks_at_the_neighbours_of_all_frequent_words(rows):
    published, new = version(rows), version(np.random.default_rng(2).standard_normal((60, 5), np.float32))
    actual = gate(judge(Gates(), new, published), "min_stability")
    assert actual.value == neighbour_stability(published.vectors, new.vectors).overlap  # of 1,000 words, if there are
    assert 0 < actual.value < 1


def test_judge__undefined_never_passes(rows):
    """Nothing in common, and nothing counted: no share follows."""
    published = version(rows, counts=[0] * 60)
    other = version(rows, words=[f"x{i}" for i in range(60)])
    lenient = Gates(max_drop=1, max_coverage_drop=1, min_kept=0, min_stability=0)
    assert names(judge(lenient, other, published)) == {"min_kept", "min_stability"}


def test_judge__gives_no_empty_model_a_pass():
    verdict = judge(Gates(), version(np.zeros((0, 5), np.float32)))
    assert names(verdict) == {"max_zero", "max_long"}


def test_verdict__tells_what_stopped_a_version_first(rows):
    verdict = judge(Gates(min_score={"similarity/set": 0.75}), version(rows, score=0.7), version(rows))
    assert verdict.as_text().splitlines()[0] == (
        "STOPPED min_score similarity/set: score: 0.7; asked for: at least 0.75"
    )
    report = verdict.as_dict()
    assert report["passed"] is False
    (stopped,) = [g for g in report["gates"] if not g["passed"]]
    assert (stopped["name"], stopped["value"], stopped["bound"]) == ("min_score similarity/set", 0.7, 0.75)
    assert json.loads(json.dumps(report, allow_nan=False)) == report


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("min_score", {"similarity/ws353": 2}),
        ("min_score", {"similarity/ws353": float("nan")}),
        ("min_score", {1: 0.5}),
        ("min_score", 0.5),
        ("max_drop", 1.5),
        ("max_drop", float("nan")),
        ("min_kept", -1),
        ("min_stability", "high"),
        ("times_median", 1),
        ("times_median", None),
        ("max_zero", True),
    ],
)
def test_gates__refuse_what_is_out_of_range(field, value):
    with pytest.raises(ParameterError, match=rf"{field}=.* is not a"):
        Gates(**{field: value})


def test_check_gates__wants_the_sets_that_are_asked_for():
    sets = {"similarity": ["folder/ws353.tsv"], "analogy": []}
    check_gates(Gates(min_score={"similarity/ws353": 0.6}, min_coverage=0.5), sets)
    with pytest.raises(ParameterError, match=r"similarity/simlex999, which will not.*similarity/ws353"):
        check_gates(Gates(min_score={"similarity/simlex999": 0.3}), sets)
    with pytest.raises(ParameterError, match=r"min_coverage=0\.5 needs an evaluation set"):
        check_gates(Gates(min_coverage=0.5), {})
