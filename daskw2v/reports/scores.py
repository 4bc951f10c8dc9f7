"""Scores of an evaluation as the report shows them: with categories, and with the meaning of intervals."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from daskw2v.evaluation import Evaluation, Score

_INTERVALS = {  # meaning of low and high
    "similarity": "95 % confidence",
    "categorization": "lowest and highest of several clusterings",
    "classification": "lowest and highest of several folds",
}


@dataclass(frozen=True)
class CategoryScore:
    """Score of a category, or of a group of categories, of a set.

    Parameters
    ----------
    name
        Name of the category.
    accuracy
        Share of correct answers, 0..1; None without questions.
    questions
        Number of questions; None if unknown.
    """

    name: str
    accuracy: float | None
    questions: int | None


@dataclass(frozen=True)
class Rated:
    """A score with the scores of the set's groups and categories, if it has any."""

    score: Score
    coverage: float | None
    groups: tuple[CategoryScore, ...] = ()
    categories: tuple[CategoryScore, ...] = ()


def rated(evaluation: Evaluation) -> Iterator[Rated]:
    """Yield all scores with those of groups and categories."""
    for score in evaluation.rows():
        if score.kind == "analogy":
            answers = evaluation.analogy[score.name][score.measure]
            yield Rated(score, score.coverage, _parts(answers.groups), _parts(answers.categories))
        elif score.kind == "outliers":
            topics = evaluation.outliers[score.name].topics
            yield Rated(
                score, score.coverage, (), tuple(CategoryScore(name, value, None) for name, value in topics.items())
            )
        elif score.kind == "classification":  # all texts are evaluated; the coverage is that of their words
            yield Rated(score, evaluation.classification[score.name][score.measure].coverage)
        else:
            yield Rated(score, score.coverage)


def interval_notes(evaluation: Evaluation) -> list[str]:
    """Return the meaning of the intervals of each kind of score."""
    kinds = dict.fromkeys(score.kind for score in evaluation.rows() if score.low is not None)
    return [f"{kind}: {_INTERVALS[kind]}" for kind in kinds if kind in _INTERVALS]


def _parts(counts: Mapping[str, tuple[int, int]]) -> tuple[CategoryScore, ...]:
    return tuple(
        CategoryScore(name, right / asked if asked else None, asked) for name, (right, asked) in counts.items()
    )
