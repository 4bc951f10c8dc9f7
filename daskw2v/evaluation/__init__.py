"""How good vectors are, by published sets of word similarities and analogies."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import PurePosixPath
from typing import Any

from daskw2v.errors import ParameterError
from daskw2v.evaluation.analogy import evaluate_analogy
from daskw2v.evaluation.similarity import evaluate_similarity
from daskw2v.models.vectors import Vectors
from daskw2v.storage import Location


def evaluate(
    vectors: Vectors,
    similarity: Sequence[Location] = (),
    analogy: Sequence[Location] = (),
    storage_options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Evaluate vectors on any number of sets.

    Parameters
    ----------
    vectors
        What to evaluate.
    similarity, analogy
        URLs of files as `evaluate_similarity` and `evaluate_analogy` read them.
    storage_options
        Options for fsspec.

    Returns
    -------
    report
        JSON types: below "similarity" and "analogy", by the name of each file (without folder and suffix),
        its figures. Analogies have both accuracies: "accuracy" is 3CosAdd's, as are the categories.

    Raises
    ------
    InputError
        If a file cannot be read or a line is malformed.
    ParameterError
        If two files have one name.
    """
    return {
        "similarity": {
            name: asdict(evaluate_similarity(vectors, url, storage_options))
            for name, url in _by_name(similarity).items()
        },
        "analogy": {name: _analogy_report(vectors, url, storage_options) for name, url in _by_name(analogy).items()},
    }


def _by_name(locations: Sequence[Location]) -> dict[str, str]:
    named: dict[str, str] = {}
    for location in locations:
        url = os.fspath(location)
        name = PurePosixPath(url.removesuffix(".gz")).stem
        if name in named:
            raise ParameterError(f"{named[name]} and {url} have one name, {name!r}.", "Rename one of the files.")
        named[name] = url
    return named


def _analogy_report(vectors: Vectors, url: str, storage_options: Mapping[str, Any] | None) -> dict[str, Any]:
    added = evaluate_analogy(vectors, url, "3cosadd", storage_options=storage_options)
    multiplied = evaluate_analogy(vectors, url, "3cosmul", storage_options=storage_options)
    return {
        "accuracy": added.accuracy,
        "accuracy_3cosmul": multiplied.accuracy,
        "questions": added.questions,
        "skipped": added.skipped,
        "categories": {name: {"right": right, "questions": asked} for name, (right, asked) in added.categories.items()},
    }
