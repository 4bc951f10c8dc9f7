"""Evaluation of vectors on published sets: similarity, analogies, categorization, classification, outliers."""

import os
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from daskw2v.errors import ParameterError
from daskw2v.evaluation.analogy import Method, evaluate_analogy
from daskw2v.evaluation.categorization import evaluate_categorization
from daskw2v.evaluation.classification import ClassificationMethod, evaluate_classification
from daskw2v.evaluation.outliers import evaluate_outliers
from daskw2v.evaluation.results import Evaluation, Score
from daskw2v.evaluation.similarity import evaluate_similarity
from daskw2v.models.queries.vectors import Vectors
from daskw2v.store.urls import Location, as_url

__all__ = ["Evaluation", "Score", "evaluate"]


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
        What to evaluate.
    similarity, analogy, categorization, classification, outliers
        URLs of the sets: files or folders that `evaluate_similarity`, `evaluate_analogy` and so on read. A
        classification set of three files (training, validation, test) is given as one text, the URLs separated by
        commas.
    analogy_methods, classification_methods
        Methods to use. The first gives the set's score in `Evaluation.scores`.
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
        If two sets of a kind have the same name, or a method is unknown.
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
    options = storage_options
    return Evaluation(
        {name: evaluate_similarity(vectors, url, options) for name, url in by_name("similarity", similarity).items()},
        {
            name: {
                method: evaluate_analogy(vectors, url, method, restrict_vocab, options) for method in analogy_methods
            }
            for name, url in by_name("analogy", analogy).items()
        },
        {
            name: evaluate_categorization(vectors, url, storage_options=options)
            for name, url in by_name("categorization", categorization).items()
        },
        {
            name: {
                method: evaluate_classification(vectors, url.split(","), method, storage_options=options)
                for method in classification_methods
            }
            for name, url in by_name("classification", classification).items()
        },
        {name: evaluate_outliers(vectors, url, options) for name, url in by_name("outliers", outliers).items()},
    )


def by_name(kind: str, locations: Sequence[Location]) -> dict[str, str]:
    """Return the URL of each set of a kind, by the set's name.

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
