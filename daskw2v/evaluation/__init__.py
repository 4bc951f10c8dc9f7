"""Evaluation of vectors on published sets: similarity, analogies, categorization, classification, outliers."""

import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import PurePosixPath
from typing import Any, NamedTuple, TypeVar

from daskw2v.errors import ParameterError
from daskw2v.evaluation.analogy import AnalogyResult, Method, evaluate_analogy
from daskw2v.evaluation.categorization import CategorizationResult, evaluate_categorization
from daskw2v.evaluation.classification import ClassificationMethod, ClassificationResult, evaluate_classification
from daskw2v.evaluation.outliers import OutlierResult, evaluate_outliers
from daskw2v.evaluation.similarity import FEWEST_PAIRS, SimilarityResult, evaluate_similarity
from daskw2v.models.queries.vectors import Vectors
from daskw2v.store.urls import Location, as_url

__all__ = ["Evaluation", "Score", "evaluate"]

T = TypeVar("T")
COLUMNS = ("kind", "set", "measure", "score", "interval", "asked", "known")


class Score(NamedTuple):
    """One score of a set.

    Parameters
    ----------
    kind, name, measure
        Kind of set, name of the set, and measure, such as "analogy", "google_analogy", "3cosadd".
    value, low, high
        The score, and the bounds of its interval; None if undefined, and for kinds without intervals.
    items, missing
        Number of pairs, questions, words or outliers evaluated, or of texts in the set; number skipped, as the model
        lacks words.
    """

    kind: str
    name: str
    measure: str
    value: float | None
    low: float | None
    high: float | None
    items: int
    missing: int

    @property
    def coverage(self) -> float | None:
        """Share of the items that were evaluated, 0..1; 1 for texts; None for an empty set."""
        return self.items / (self.items + self.missing) if self.items + self.missing else None

    @property
    def why(self) -> str:
        """Reason why the set has no score, as a clause; "" if it has one."""
        if self.value is not None:
            return ""
        if self.coverage is None:
            return "the set is empty"
        needed = FEWEST_PAIRS if self.kind == "similarity" else 0
        if self.items < max(needed, 1):
            minimum = f", and {needed} are needed" if needed else ""
            return f"the model knows {self.items:,} of {self.items + self.missing:,}{minimum}"
        return "all values are equal" if needed else "too few are known"


@dataclass(frozen=True)
class Evaluation:
    """Results of all sets.

    Parameters
    ----------
    similarity, categorization, outliers
        Results by name of the set.
    analogy, classification
        Results by name of the set, then by method. The score of the first method is that of the set.
    """

    similarity: Mapping[str, SimilarityResult]
    analogy: Mapping[str, Mapping[str, AnalogyResult]]
    categorization: Mapping[str, CategorizationResult]
    classification: Mapping[str, Mapping[str, ClassificationResult]]
    outliers: Mapping[str, OutlierResult]

    def rows(self) -> Iterator[Score]:
        """Yield a `Score` for each set and method, kind by kind, and set by set."""
        for name, s in self.similarity.items():
            yield Score("similarity", name, "spearman", s.spearman, s.low, s.high, s.pairs, s.missing)
        for name, methods in self.analogy.items():
            for method, a in methods.items():
                yield Score("analogy", name, method, a.accuracy, None, None, a.questions, a.skipped)
        for name, c in self.categorization.items():
            yield Score("categorization", name, "purity", c.purity, c.low, c.high, c.words, c.missing)
        for name, classifiers in self.classification.items():
            for method, t in classifiers.items():
                yield Score("classification", name, method, t.accuracy, t.low, t.high, t.texts, 0)
        for name, o in self.outliers.items():
            yield Score("outliers", name, "accuracy", o.accuracy, None, None, o.outliers, o.missing)

    def scores(self) -> dict[str, float | None]:
        """Return the score of each set by the set's name; of several methods, the score of the first.

        Sets of several kinds that have one name are called `kind/name`.
        """
        kinds = Counter(name for sets in vars(self).values() for name in sets)
        scores: dict[str, float | None] = {}
        for row in self.rows():
            scores.setdefault(row.name if kinds[row.name] == 1 else f"{row.kind}/{row.name}", row.value)
        return scores

    def as_dict(self) -> dict[str, Any]:
        """Return the results as JSON types, by kind and set; kinds without sets are left out.

        Analogy and classification sets have the results of the first method; the accuracies of other methods
        are `accuracy_METHOD`. `why` says why a set has no score.
        """
        present = {kind: sets for kind, sets in vars(self).items() if sets}
        kinds = {kind: {name: _as_json(result) for name, result in sets.items()} for kind, sets in present.items()}
        for row in self.rows():
            if row.why:
                kinds[row.kind][row.name].setdefault("why", row.why)
        return kinds

    def cells(self) -> Iterator[tuple[str, ...]]:
        """Yield each `Score` of `rows` as a tuple of texts, one for each column of `COLUMNS`."""
        for row in self.rows():
            score = f"none: {row.why}" if row.value is None else f"{row.value:.3f}"
            interval = "" if row.low is None or row.high is None else f"{row.low:.3f}..{row.high:.3f}"
            known = "" if row.coverage is None else f"{row.coverage:.1%}"
            yield row.kind, row.name, row.measure, score, interval, f"{row.items:,}", known

    def as_markdown(self) -> str:
        """Return a Markdown table of all scores."""
        lines = [COLUMNS, ("---",) * len(COLUMNS), *self.cells()]
        return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def _as_json(result: Any) -> dict[str, Any]:
    """Return a result as JSON types; of results by method, the first result, and the accuracies of other methods.

    The counts of an `AnalogyResult` become mappings with "right" and "questions".
    """
    if isinstance(result, Mapping):
        method, *other_methods = result
        accuracies = {f"accuracy_{other}": result[other].accuracy for other in other_methods}
        return {"method": method, **_as_json(result[method]), **accuracies}
    figures = asdict(result)
    if isinstance(result, AnalogyResult):
        for part in ("categories", "groups"):
            figures[part] = {name: {"right": n, "questions": asked} for name, (n, asked) in figures[part].items()}
    return figures


def evaluate(
    vectors: Vectors,
    similarity: Sequence[Location] = (),
    analogy: Sequence[Location] = (),
    categorization: Sequence[Location] = (),
    classification: Sequence[Location] = (),
    outliers: Sequence[Location] = (),
    *,
    analogy_methods: Sequence[Method] = ("3cosadd", "3cosmul"),
    classification_methods: Sequence[ClassificationMethod] = ("logistic",),
    restrict_vocab: int | None = None,
    storage_options: Mapping[str, Any] | None = None,
) -> Evaluation:
    r"""Evaluate vectors on any number of sets.

    Parameters
    ----------
    vectors
        The model.
    similarity, analogy, categorization, classification, outliers
        URLs of the sets: files or folders that `evaluate_similarity`, `evaluate_analogy` and so on read. A
        classification set of three files (training, validation, test) is one text, the URLs separated by
        commas.
    analogy_methods, classification_methods
        Methods to use. `Evaluation.scores` has the score of the first.
    restrict_vocab
        In analogies, use only this many of the most frequent words.
    storage_options
        Options for fsspec.

    Returns
    -------
    evaluation
        Results by set. A set is named after its file, without folder and suffix.

    Raises
    ------
    InputError
        If a file cannot be read or a line is malformed.
    ParameterError
        If sets are one URL instead of a list, two sets of a kind have the same name, a method is unknown, or
        `restrict_vocab` is below 1.
    MissingExtraError
        If a method needs a package that is not installed.

    Examples
    --------
    >>> with open("pairs.tsv", "w") as file:
    ...     _ = file.write("king\tqueen\t9\nking\tapple\t1\nqueen\tapple\t2\n")
    >>> vectors = daskw2v.Vectors(["king", "queen", "apple"], [[3, 1], [2, 2], [-1, 1]])
    >>> scores = daskw2v.evaluate(vectors, similarity=["pairs.tsv"])
    >>> round(scores.similarity["pairs"].spearman, 3), scores.similarity["pairs"].pairs
    (1.0, 3)
    """
    options: dict[str, Any] = {"storage_options": storage_options}

    def answer_analogies(url: str) -> dict[str, AnalogyResult]:
        return {name: evaluate_analogy(vectors, url, name, restrict_vocab, **options) for name in analogy_methods}

    def classify(url: str) -> dict[str, ClassificationResult]:
        files = url.split(",")
        return {name: evaluate_classification(vectors, files, name, **options) for name in classification_methods}

    return Evaluation(
        _evaluate_sets("similarity", similarity, partial(evaluate_similarity, vectors, **options)),
        _evaluate_sets("analogy", analogy, answer_analogies),
        _evaluate_sets("categorization", categorization, partial(evaluate_categorization, vectors, **options)),
        _evaluate_sets("classification", classification, classify),
        _evaluate_sets("outliers", outliers, partial(evaluate_outliers, vectors, **options)),
    )


def _evaluate_sets(kind: str, locations: Sequence[Location], evaluate_set: Callable[[str], T]) -> dict[str, T]:
    """Return the result of `evaluate_set` for the URL of each set of a kind, by the set's name."""
    return {name: evaluate_set(url) for name, url in urls_by_name(kind, locations).items()}


def urls_by_name(kind: str, locations: Sequence[Location]) -> dict[str, str]:
    """Return the URL of each set of a kind, by the set's name: that of its first file, without folder and suffix.

    Raises
    ------
    ParameterError
        If `locations` is one URL instead of a list, or two sets have the same name.
    """
    if isinstance(locations, str | os.PathLike):
        raise ParameterError(f"{kind}={str(locations)!r} is not a list of URLs.", f"Give {kind}=[{str(locations)!r}].")
    named: dict[str, str] = {}
    for location in locations:
        url = as_url(location, kind)
        name = PurePosixPath(url.split(",")[0].removesuffix(".gz").rstrip("/")).stem
        if name in named:
            raise ParameterError(f"{named[name]} and {url} have the same name, {name!r}.", "Rename one of the files.")
        named[name] = url
    return named
