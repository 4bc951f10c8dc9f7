"""Scores of an evaluation as a page shows them: with the parts of a set, and what its interval means."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from daskw2v.evaluation import Evaluation, Score

_INTERVALS = {  # what low and high are
    "similarity": "95 % confidence",
    "categorization": "the lowest and the highest of several clusterings",
    "classification": "the lowest and the highest of several folds",
}


@dataclass(frozen=True)
class Part:
    """A category, or a group of categories, of a set.

    Parameters
    ----------
    name
        Its name.
    accuracy
        Share that was answered rightly, 0..1; None where nothing was asked.
    questions
        How much was asked; None where that is not known.
    """

    name: str
    accuracy: float | None
    questions: int | None


@dataclass(frozen=True)
class Rated:
    """A score with the parts of its set; of sets without parts, there are none."""

    score: Score
    coverage: float | None
    groups: tuple[Part, ...] = ()
    categories: tuple[Part, ...] = ()


def rated(evaluation: Evaluation) -> Iterator[Rated]:
    """Yield all scores with their parts."""
    for score in evaluation.rows():
        if score.kind == "analogy":
            answers = evaluation.analogy[score.name][score.measure]
            yield Rated(score, score.coverage, _parts(answers.groups), _parts(answers.categories))
        elif score.kind == "outliers":
            topics = evaluation.outliers[score.name].topics
            yield Rated(score, score.coverage, (), tuple(Part(name, value, None) for name, value in topics.items()))
        elif score.kind == "classification":  # no text is left out, but words of them are
            yield Rated(score, evaluation.classification[score.name][score.measure].coverage)
        else:
            yield Rated(score, score.coverage)


def interval_notes(evaluation: Evaluation) -> list[str]:
    """Say what the intervals mean that these scores have."""
    kinds = dict.fromkeys(score.kind for score in evaluation.rows() if score.low is not None)
    return [f"{kind}: {_INTERVALS[kind]}" for kind in kinds if kind in _INTERVALS]


def _parts(counts: Mapping[str, tuple[int, int]]) -> tuple[Part, ...]:
    return tuple(Part(name, right / asked if asked else None, asked) for name, (right, asked) in counts.items())
