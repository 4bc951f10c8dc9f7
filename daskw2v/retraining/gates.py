"""Gates: checks of a new version, alone and against the served, or published, version, before it is published."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
from distributed import Client

from daskw2v.cluster.tasks import run_tasks
from daskw2v.config.resources import Resources
from daskw2v.config.settings import Settings, number, numbers, setting
from daskw2v.errors import ParameterError
from daskw2v.evaluation import Evaluation, Score, evaluate, urls_by_name
from daskw2v.evaluation.stability import neighbour_stability
from daskw2v.models.queries.vectors import Vectors
from daskw2v.shards.layout import Corpus, Shard, open_codes, read_word_indices, read_words
from daskw2v.store.urls import Location
from daskw2v.types import Float64Array, Int32Array, Int64Array
from daskw2v.vocabulary.count import StoredVocabulary
from daskw2v.vocabulary.vocabulary import Vocabulary

_FREQUENT = 300  # most frequent words, whose neighbours are compared
COLUMNS = ("", "gate", "result")  # headings of `Verdict.rows`


def _share(default: float | None, help: str) -> Any:
    """Return the field of a bound in 0..1; None disables the gate."""
    return setting(default, help, number(0, 1), optional=True)


@dataclass(frozen=True, kw_only=True)
class Gates(Settings):
    """Requirements for a new version. None disables a gate. A first version is not compared with a served one.

    In any case, the loss and all vectors must be finite.

    Raises
    ------
    ParameterError
        If a value is outside its range; the message names field, value and range.

    Examples
    --------
    >>> gates = daskw2v.Gates(min_score={"similarity/ws353": 0.6}, max_drop=None)
    >>> gates.min_score["similarity/ws353"], gates.min_kept
    (0.6, 0.9)
    """

    min_score: Mapping[str, float] = setting(
        {}, "lowest score of evaluation sets, by kind and name, such as similarity/ws353", numbers(-1, 1)
    )
    max_drop: float | None = _share(0.1, "largest drop of a set's score, as a share of the published version's score")
    min_coverage: float | None = _share(
        None, "lowest coverage of each set: the share of its items whose words are known"
    )
    max_coverage_drop: float | None = _share(
        0.05, "largest drop of a set's coverage, as a share of the published version's coverage"
    )
    min_kept: float | None = _share(
        0.9,
        "lowest share of the published version's words that the new version still has, weighted by their old counts",
    )
    max_unknown: float | None = _share(
        0.2, "largest share of the new text's tokens whose word the published version does not know"
    )
    max_shift: float | None = _share(
        0.6, "largest total variation distance between word frequencies of the new text and of the published version"
    )
    min_stability: float | None = _share(
        0.2, "lowest share of frequent words' ten nearest neighbours that the published version has, too"
    )
    max_zero: float | None = _share(0.0, "largest share of words with a zero vector")
    max_long: float | None = _share(0.001, "largest share of words with a vector that is too long")
    times_median: float = setting(
        20.0, "length above which a vector is too long, in multiples of the median length", number(1, open_low=True)
    )


class Gate(NamedTuple):
    """The result of one gate.

    Parameters
    ----------
    name
        Field of `Gates`, followed by a space and "kind/name" of the evaluation set if there is one; or "loss" or
        "finite", for requirements without a field.
    value, bound
        Measured value, None if undefined; required bound, None if the value only has to be finite.
    passed
        Whether the version passes the gate.
    text
        The result as text.
    """

    name: str
    value: float | None
    bound: float | None
    passed: bool
    text: str


@dataclass(frozen=True)
class Verdict:
    """The results of all gates. A version passes if it passes every gate."""

    gates: tuple[Gate, ...]

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the verdict from its result of `as_dict`, in which values that were not finite are None."""
        return cls(tuple(Gate(**gate) for gate in values["gates"]))

    @property
    def passed(self) -> bool:
        """Whether the version may be published."""
        return not self.failed

    @property
    def failed(self) -> tuple[Gate, ...]:
        """The gates that the version does not pass."""
        return tuple(gate for gate in self.gates if not gate.passed)

    def as_dict(self) -> dict[str, Any]:
        """Return the verdict as JSON types; values that are not finite are null."""
        gates = [{**gate._asdict(), "value": finite_or_none(gate.value)} for gate in self.gates]
        return {"passed": self.passed, "gates": gates}

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yield the rows of a table with `COLUMNS`, "passed" or "STOPPED", name and text, failed gates first."""
        for gate in sorted(self.gates, key=lambda gate: gate.passed):
            yield "passed" if gate.passed else "STOPPED", gate.name, gate.text

    def as_text(self) -> str:
        """Return a line for each gate, failed gates first."""
        return "\n".join(f"{state} {name}: {text}" for state, name, text in self.rows())


class Evaluated(NamedTuple):
    """The vectors of a version and its scores by "kind/name", as `first_scores` returns them."""

    vectors: Vectors
    scores: Mapping[str, Score]


class Novelty(NamedTuple):
    """Difference of new text from the text of a version.

    Parameters
    ----------
    unknown
        Share of the new text's tokens whose word the version does not know.
    shift
        Total variation distance between the word frequencies of the new text and of the version's text, 0..1. All words
        that the version does not know count as one word.
    """

    unknown: float
    shift: float


def check_gates(gates: Gates, sets: Mapping[str, Sequence[Location]]) -> None:
    """Refuse gates whose evaluation sets are missing, before anything is trained.

    Parameters
    ----------
    gates
        The gates.
    sets
        URLs of the evaluation sets, by kind.

    Raises
    ------
    ParameterError
        If a gate needs a set that is not among `sets`.
    """
    names = {f"{kind}/{name}" for kind, urls in sets.items() for name in urls_by_name(kind, urls)}
    if unknown := sorted(gates.min_score.keys() - names):
        problem = f"min_score asks for {', '.join(unknown)}, which will not be evaluated."
        choices = ", ".join(sorted(names)) or "none"
        raise ParameterError(problem, f"Give these evaluation sets, or choose among those given: {choices}.")
    if gates.min_coverage is not None and not names:
        problem = f"min_coverage={gates.min_coverage} needs an evaluation set."
        raise ParameterError(problem, "Give one, or leave min_coverage out.")


def judge(gates: Gates, new: Evaluated, published: Evaluated | None = None, novelty: Novelty | None = None) -> Verdict:
    """Check a new version against all gates.

    Parameters
    ----------
    gates
        The gates.
    new
        The new version, in memory or in a store, and its scores.
    published
        The served version and its scores on the same sets; None before the first version.
    novelty
        Difference of the new text from the served version's text; None leaves out the gates of new text.
    """
    lengths, loss = _measure_lengths(new.vectors), new.vectors.metadata.get("metrics", {}).get("loss")
    results = [_make_gate("loss", "mean loss of a pair", loss), *_judge_lengths(gates, lengths)]
    results += _judge_scores(gates, new.scores)
    if novelty is not None:
        results += _judge_novelty(gates, novelty)
    if published is not None:
        results += _judge_changes(gates, new.scores, published.scores)
        results += _judge_words(gates, new.vectors, published.vectors, finite=bool(np.isfinite(lengths).all()))
    return Verdict(tuple(results))


def _judge_lengths(gates: Gates, lengths: Float64Array) -> Iterator[Gate]:
    """Yield the gates of the lengths of vectors, shape (V,)."""
    finite = lengths[np.isfinite(lengths)]
    yield _require_at_most("finite", "vectors that are not finite", len(lengths) - len(finite), 0)
    if gates.max_zero is not None:
        share = _compute_share(lengths == 0)
        yield _require_at_most("max_zero", "share of vectors that are zero", share, gates.max_zero)
    if gates.max_long is not None:
        positive = finite[finite > 0]
        longest = gates.times_median * float(np.median(positive)) if len(positive) else math.nan
        share = _compute_share(~(lengths <= longest)) if len(positive) else math.nan
        what = f"share of vectors longer than {longest:.4g}, {gates.times_median:g} times the median"
        yield _require_at_most("max_long", what, share, gates.max_long)


def _judge_scores(gates: Gates, scores: Mapping[str, Score]) -> Iterator[Gate]:
    """Yield the gates of scores and coverage, which need no other version."""
    for name, least in gates.min_score.items():
        yield _require_at_least(f"min_score {name}", "score", scores[name].value if name in scores else None, least)
    if gates.min_coverage is not None:
        for name, score in scores.items():
            yield _require_at_least(f"min_coverage {name}", "items known", score.coverage, gates.min_coverage)


def _judge_novelty(gates: Gates, novelty: Novelty) -> Iterator[Gate]:
    """Yield the gates of the novelty of the new text."""
    if gates.max_unknown is not None:
        what = "share of the new text's words that the published version does not know"
        yield _require_at_most("max_unknown", what, novelty.unknown, gates.max_unknown)
    if gates.max_shift is not None:
        what = "distance of the new text's word frequencies from the published version's"
        yield _require_at_most("max_shift", what, novelty.shift, gates.max_shift)


def _judge_changes(gates: Gates, new: Mapping[str, Score], published: Mapping[str, Score]) -> Iterator[Gate]:
    """Yield the gates that compare scores and coverage, as far as the published version has them."""
    for name, old_score in published.items():
        score = new.get(name)
        for field, what, drop, value, old in (
            ("max_drop", "score", gates.max_drop, score and score.value, old_score.value),
            ("max_coverage_drop", "items known", gates.max_coverage_drop, score and score.coverage, old_score.coverage),
        ):
            if drop is not None and old is not None:
                what = f"{what} (published: {old:.4g})"
                yield _require_at_least(f"{field} {name}", what, value, old - drop * abs(old))


def _judge_words(gates: Gates, new: Vectors, published: Vectors, *, finite: bool) -> Iterator[Gate]:
    """Yield the gates that compare words and neighbours; `finite` is whether all new vectors are finite."""
    words = published.vocabulary
    if gates.min_kept is not None:
        known = new.vocabulary.find_all(words) >= 0
        total = int(words.counts.sum())
        share = int(words.counts[known].sum()) / total if total else math.nan
        yield _require_at_least("min_kept", "share of the published version's words, by count", share, gates.min_kept)
    if gates.min_stability is not None:
        overlap = neighbour_stability(published, new, words.between(0, _FREQUENT)).overlap if finite else None
        yield _require_at_least("min_stability", "share of neighbours that stayed", overlap, gates.min_stability)


def first_scores(evaluation: Evaluation) -> dict[str, Score]:
    """Return the score of each evaluation set by "kind/name"; of several methods, the first counts."""
    scores: dict[str, Score] = {}
    for score in evaluation.rows():
        scores.setdefault(f"{score.kind}/{score.name}", score)
    return scores


def evaluate_sets(vectors: Vectors, resources: Resources) -> dict[str, Score]:
    """Evaluate vectors on the sets of `resources`, analogies by 3cosadd; return scores as `first_scores` does."""
    urls, options = dict[str, Any](resources.eval_sets), resources.storage_options
    return first_scores(evaluate(vectors, **urls, analogy_methods=("3cosadd",), storage_options=options))


def _measure_lengths(vectors: Vectors) -> Float64Array:
    """Return the length of each vector, shape (V,); infinite or NaN if the vector has such a value."""
    lengths = np.empty(len(vectors))
    for ids, rows in vectors.pieces():
        block = np.asarray(rows, np.float64)
        lengths[ids] = np.sqrt(np.einsum("ij,ij->i", block, block))
    return lengths


def _compute_share(which: npt.NDArray[np.bool_]) -> float:
    """Return the share of true elements, NaN for an empty array."""
    return float(which.mean()) if len(which) else math.nan


def _require_at_least(name: str, what: str, value: float | None, bound: float) -> Gate:
    """Return a gate that a value passes if it is at least `bound`; None never passes. `what` describes the value."""
    passed = value is not None and value >= bound
    return _make_gate(name, what, value, bound, passed=passed, required=f"at least {bound:.4g}")


def _require_at_most(name: str, what: str, value: float | None, bound: float) -> Gate:
    """Return a gate that a value passes if it is at most `bound`, None never; `what` describes the value."""
    passed = value is not None and value <= bound
    return _make_gate(name, what, value, bound, passed=passed, required=f"at most {bound:.4g}")


def _make_gate(
    name: str,
    what: str,
    value: float | None,
    bound: float | None = None,
    *,
    passed: bool = True,
    required: str = "finite",
) -> Gate:
    """Return a gate, which a value passes if `passed` is true and the value is finite; None never passes.

    `what` describes the value, `required` what is required of it.
    """
    passed = passed and finite_or_none(value) is not None
    shown = "undefined" if value is None else f"{value:.4g}"
    return Gate(name, value, bound, passed, f"{what}: {shown}; asked for: {required}")


def finite_or_none(value: float | None) -> float | None:
    """Return a finite number unchanged, and None for all other values, which JSON cannot represent."""
    return value if value is not None and math.isfinite(value) else None


def measure_novelty(
    client: Client, text: Corpus, stored: StoredVocabulary, words: Vocabulary, known: Vocabulary
) -> Novelty | None:
    """Return the novelty of text to a version; None if the text has no tokens.

    One task reads each shard; of a complete shard it reads only the dictionary.

    Parameters
    ----------
    client
        The cluster.
    text
        An excerpt of a corpus.
    stored, words
        The vocabulary of the whole corpus, in the store and in memory.
    known
        The vocabulary of the version.
    """
    jobs = {(shard.path, shard.first, shard.n_tokens): (stored, shard) for shard in text.shards}
    counted = np.zeros(len(words) + 1, np.int64)  # the last entry counts words outside the vocabulary
    for _, (ids, counts) in run_tasks(client, "novelty", _count_words, jobs):
        np.add.at(counted, ids, counts)
    total = int(counted.sum())
    if not total:
        return None
    rows = known.find_all(words)
    known_counts, old_shares = counted[:-1][rows >= 0], known.counts / max(1, int(known.counts.sum()))
    shares = np.zeros(len(known))
    shares[rows[rows >= 0]] = known_counts / total
    unknown = 1 - int(known_counts.sum()) / total
    return Novelty(unknown, float(np.abs(shares - old_shares).sum() + unknown) / 2)


def _count_words(vocabulary: StoredVocabulary, shard: Shard) -> tuple[Int32Array, Int64Array]:
    """Task: return the ids of a shard's words, -1 outside the vocabulary, and their counts in the shard.

    Both are in the order of codes, shape (n,); of a part of a stored shard, all words are listed.
    """
    store, path = vocabulary.store, shard.path
    ids, indices = vocabulary.read_map(path), read_word_indices(store, path)
    codes = open_codes(store, shard)
    if shard.n_tokens < len(codes):
        return ids, np.bincount(codes[shard.first : shard.first + shard.n_tokens], minlength=len(ids))
    *_, counts = read_words(store, path, 0, len(indices))
    return ids, counts[indices]
