"""Gates: what a new version has to pass before it is published, by itself and against the version that is served."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from daskw2v.checked import Checked, choice, number, numbers
from daskw2v.errors import ParameterError
from daskw2v.evaluation import Evaluation, Score, by_name
from daskw2v.evaluation.stability import neighbour_stability
from daskw2v.locations import Location
from daskw2v.models.vectors import Vectors
from daskw2v.retraining.novelty import Novelty

_FREQUENT = 300  # words whose neighbours are compared
COLUMNS = ("", "gate", "found")  # of `Verdict.rows`


@dataclass(frozen=True, kw_only=True)
class Gates(Checked):
    """What is asked of a new version; None of a field: nothing. Of a first version only what is no comparison is asked.

    Raises
    ------
    ParameterError
        If a value is outside its range; the message names field, value and range.
    """

    min_score: Mapping[str, float] = choice(
        {}, "least score of evaluation sets by kind and name, such as similarity/ws353", numbers(-1, 1)
    )
    max_drop: float | None = choice(
        0.1,
        "most that the score of a set may be below the published version's, as a share of that",
        number(0, 1),
        optional=True,
    )
    min_coverage: float | None = choice(
        None, "least share of each set's items whose words are known", number(0, 1), optional=True
    )
    max_coverage_drop: float | None = choice(
        0.05,
        "most that the coverage of a set may be below the published version's, as a share of that",
        number(0, 1),
        optional=True,
    )
    min_kept: float | None = choice(
        0.9,
        "least share of the published version's words that are still there, each by its count there",
        number(0, 1),
        optional=True,
    )
    max_unknown: float | None = choice(
        0.2,
        "most of the new text's words that the published version does not know, as a share",
        number(0, 1),
        optional=True,
    )
    max_shift: float | None = choice(
        0.6,
        "most that word frequencies of the new text differ from the published version's, half of all differences",
        number(0, 1),
        optional=True,
    )
    min_stability: float | None = choice(
        0.2,
        "least share of the ten neighbours of frequent words that the published version has too",
        number(0, 1),
        optional=True,
    )
    max_zero: float | None = choice(0.0, "most words whose vectors are zero, as a share", number(0, 1), optional=True)
    max_long: float | None = choice(
        0.001, "most words whose vectors are too long, as a share", number(0, 1), optional=True
    )
    times_median: float = choice(
        20.0, "times the median length beyond which a vector is too long", number(1, open_low=True)
    )


class Gate(NamedTuple):
    """What one gate found.

    Parameters
    ----------
    name
        The field of `Gates`, and the set that it was asked of.
    value, bound
        What was found, None where it is undefined; and what was asked for, None of what has to be finite.
    passed
        Whether the version may pass.
    text
        The same in words.
    """

    name: str
    value: float | None
    bound: float | None
    passed: bool
    text: str


@dataclass(frozen=True)
class Verdict:
    """What all gates found: a version passes if it passes each of them."""

    gates: tuple[Gate, ...]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return what `as_dict` was made of."""
        return cls(tuple(Gate(**gate) for gate in values["gates"]))

    @property
    def passed(self) -> bool:
        """Whether the version may be published."""
        return not self.failed

    @property
    def failed(self) -> tuple[Gate, ...]:
        """The gates that stop it."""
        return tuple(gate for gate in self.gates if not gate.passed)

    def as_dict(self) -> dict[str, Any]:
        """Return JSON types; what is not finite is null."""
        gates = [{**gate._asdict(), "value": finite_or_none(gate.value)} for gate in self.gates]
        return {"passed": self.passed, "gates": gates}

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yield the lines of a table with `COLUMNS`, what stops the version first."""
        for gate in sorted(self.gates, key=lambda gate: gate.passed):
            yield "passed" if gate.passed else "STOPPED", gate.name, gate.text

    def as_text(self) -> str:
        """Return a line for each gate, what stops the version first."""
        return "\n".join(f"{state} {name}: {text}" for state, name, text in self.rows())


class Evaluated(NamedTuple):
    """A version, and what its evaluation found, as `scores_of` has it."""

    vectors: Vectors
    scores: Mapping[str, Score]


def check_gates(gates: Gates, sets: Mapping[str, Sequence[Location]]) -> None:
    """Refuse gates that could not be asked, before anything is trained.

    Parameters
    ----------
    gates
        What will be asked.
    sets
        URLs of the sets that versions will be evaluated on, by kind.

    Raises
    ------
    ParameterError
        If a gate needs sets that are not there.
    """
    names = {f"{kind}/{name}" for kind, urls in sets.items() for name in by_name(kind, urls)}
    if unknown := sorted(gates.min_score.keys() - names):
        raise ParameterError(
            f"min_score asks for {', '.join(unknown)}, which will not be evaluated.",
            f"Give the sets to evaluate on, or name one of these: {', '.join(sorted(names)) or 'there is none'}.",
        )
    if gates.min_coverage is not None and not names:
        raise ParameterError(
            f"min_coverage={gates.min_coverage} has no set to ask for.", "Give sets to evaluate on, or leave it out."
        )


def judge(gates: Gates, new: Evaluated, published: Evaluated | None = None, novelty: Novelty | None = None) -> Verdict:
    """Ask a new version all gates.

    Parameters
    ----------
    gates
        What is asked.
    new
        The version, in memory or in a store, and how it scores.
    published
        The version that is served, evaluated on the same sets; None before the first.
    novelty
        How strange the new text is to it; None where there is no new text.
    """
    lengths, scores = _lengths(new.vectors), new.scores
    found = [_loss(new.vectors), *_of_lengths(gates, lengths), *_of_scores(gates, scores)]
    if novelty is not None:
        found += _of_novelty(gates, novelty)
    if published is not None:
        finite = bool(np.isfinite(lengths).all())
        found += _of_changes(gates, scores, published.scores)
        found += _of_words(gates, new.vectors, published.vectors, finite)
    return Verdict(tuple(found))


def _loss(new: Vectors) -> Gate:
    return _gate("loss", "mean loss of a pair", new.metadata.get("metrics", {}).get("loss"))


def _of_lengths(gates: Gates, lengths: npt.NDArray[np.float64]) -> Iterator[Gate]:
    finite = lengths[np.isfinite(lengths)]
    yield _at_most("finite", "vectors that are not finite", len(lengths) - len(finite), 0)
    if gates.max_zero is not None:
        yield _at_most("max_zero", "share of vectors that are zero", _share(lengths == 0), gates.max_zero)
    if gates.max_long is not None:
        some = finite[finite > 0]
        longest = gates.times_median * float(np.median(some)) if len(some) else math.nan
        share = _share(~(lengths <= longest)) if len(some) else math.nan
        what = f"share of vectors longer than {longest:.4g}, {gates.times_median:g} times the median"
        yield _at_most("max_long", what, share, gates.max_long)


def _of_scores(gates: Gates, scores: Mapping[str, Score]) -> Iterator[Gate]:
    for name, least in gates.min_score.items():
        yield _at_least(f"min_score {name}", "score", scores[name].value if name in scores else None, least)
    if gates.min_coverage is not None:
        for name, score in scores.items():
            yield _at_least(f"min_coverage {name}", "items known", score.coverage, gates.min_coverage)


def _of_novelty(gates: Gates, novelty: Novelty) -> Iterator[Gate]:
    if gates.max_unknown is not None:
        what = "share of the new text's words that the published version does not know"
        yield _at_most("max_unknown", what, novelty.unknown, gates.max_unknown)
    if gates.max_shift is not None:
        what = "distance of the new text's word frequencies from the published version's"
        yield _at_most("max_shift", what, novelty.shift, gates.max_shift)


def _of_changes(gates: Gates, new: Mapping[str, Score], published: Mapping[str, Score]) -> Iterator[Gate]:
    """Compare sets; a set that was undefined for the published version sets no bound."""
    for name, before in published.items():
        now = new.get(name)
        for field, what, drop, value, then in (
            ("max_drop", "score", gates.max_drop, now and now.value, before.value),
            ("max_coverage_drop", "items known", gates.max_coverage_drop, now and now.coverage, before.coverage),
        ):
            if drop is not None and then is not None:
                yield _at_least(f"{field} {name}", f"{what} (published: {then:.4g})", value, then - drop * abs(then))


def _of_words(gates: Gates, new: Vectors, published: Vectors, finite: bool) -> Iterator[Gate]:
    if gates.min_kept is not None:
        words = published.vocabulary
        known = new.vocabulary.find_all(words) >= 0
        total = int(words.counts.sum())
        share = int(words.counts[known].sum()) / total if total else math.nan
        yield _at_least("min_kept", "share of the published version's words, by count", share, gates.min_kept)
    if gates.min_stability is not None:
        overlap = (
            neighbour_stability(published, new, published.vocabulary.between(0, _FREQUENT)).overlap if finite else None
        )
        yield _at_least("min_stability", "share of neighbours that stayed", overlap, gates.min_stability)


def scores_of(evaluation: Evaluation) -> dict[str, Score]:
    """Return one score for each set, by kind and name: of several methods, the first."""
    found: dict[str, Score] = {}
    for score in evaluation.rows():
        found.setdefault(f"{score.kind}/{score.name}", score)
    return found


def _lengths(vectors: Vectors) -> npt.NDArray[np.float64]:
    """Return the length of each vector, shape (V,); infinite or NaN where it holds such a value."""
    found = np.empty(len(vectors))
    for rows in vectors.slices():
        block = np.asarray(vectors.vectors[rows], np.float64)
        found[rows] = np.sqrt(np.einsum("ij,ij->i", block, block))
    return found


def _share(which: npt.NDArray[np.bool_]) -> float:
    return float(which.mean()) if len(which) else math.nan


def _at_least(name: str, what: str, value: float | None, bound: float) -> Gate:
    return _gate(name, what, value, bound, passed=value is not None and value >= bound, asked=f"at least {bound:.4g}")


def _at_most(name: str, what: str, value: float | None, bound: float) -> Gate:
    return _gate(name, what, value, bound, passed=value is not None and value <= bound, asked=f"at most {bound:.4g}")


def _gate(
    name: str, what: str, value: float | None, bound: float | None = None, *, passed: bool = True, asked: str = "finite"
) -> Gate:
    """Return a gate, which nothing passes that is undefined or not finite."""
    shown = "undefined" if value is None else f"{value:.4g}"
    return Gate(
        name, value, bound, passed and finite_or_none(value) is not None, f"{what}: {shown}; asked for: {asked}"
    )


def finite_or_none(value: float | None) -> float | None:
    """Return a number that JSON has, None for others."""
    return value if value is not None and math.isfinite(value) else None
