"""Outlier detection: how often a model detects the word that does not belong to a topic."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.errors import InputError
from daskw2v.evaluation.reading import known_id, read_lines
from daskw2v.models.queries.vectors import Vectors
from daskw2v.store.storage import Store
from daskw2v.store.urls import Location, as_url
from daskw2v.types import Float32Array

_FEWEST_WORDS = 2  # of a topic: with the outlier, three


@dataclass(frozen=True)
class OutlierResult:
    """Outcome of one outlier detection set.

    Parameters
    ----------
    accuracy
        Share of tested outliers that are detected, 0..1; None if none was tested.
    opp
        Outlier position percentage: share of a topic's words that are more compact than the outlier, 0..1, mean over
        outliers; None if none was tested.
    outliers
        Number of outliers tested.
    missing
        Number of outliers skipped: they are not known, or fewer than two words of their topic are.
    topics
        Accuracy by topic; None if none of its outliers was tested.
    """

    accuracy: float | None
    opp: float | None
    outliers: int
    missing: int
    topics: dict[str, float | None]


def evaluate_outliers(
    vectors: Vectors, url: Location, storage_options: Mapping[str, Any] | None = None
) -> OutlierResult:
    """Add each outlier to the words of its topic and test whether it is the least similar to the others.

    Camacho-Collados and Navigli (2016, section 2): a word's compactness is the sum of its cosines with the others. An
    outlier is detected if its compactness is below that of all others. Their program gives unknown words a zero
    vector, which is always detected; here unknown words are skipped.

    Parameters
    ----------
    vectors
        The model.
    url
        Folder with a file `topic.txt` for each topic, as in 8-8-8: its words, a blank line, its outliers, one on each
        line. Words are looked up as written, then in lower case. Expressions of several words are also looked up with
        underscores between the words; if they are unknown, the mean of their known words is used.
    storage_options
        Options for fsspec.

    Raises
    ------
    InputError
        If the folder has no such file, or a file cannot be read or is malformed.
    """
    positions: dict[str, list[float]] = {}
    missing = 0
    for topic, words, outliers in read_topics(as_url(url, "folder"), storage_options):
        all_units = ([_unit_vector(vectors, word) for word in group] for group in (words, outliers))
        units, tested = ([unit for unit in group if unit is not None] for group in all_units)
        if len(units) < _FEWEST_WORDS:
            tested = []
        positions[topic] = [_outlier_position(np.array(units), unit) for unit in tested]
        missing += len(outliers) - len(tested)
    all_positions = [position for topic_positions in positions.values() for position in topic_positions]
    topics = {topic: _mean(np.equal(topic_positions, 1)) for topic, topic_positions in positions.items()}
    return OutlierResult(_mean(np.equal(all_positions, 1)), _mean(all_positions), len(all_positions), missing, topics)


def _mean(values: Sequence[float] | npt.NDArray[np.bool_]) -> float | None:
    """Return the mean of values; None without values."""
    return float(np.mean(values)) if len(values) else None


def _outlier_position(units: Float32Array, outlier: Float32Array) -> float:
    """Return the share of n words whose compactness is above the outlier's, from unit vectors, (n, D) and (D,)."""
    to_outlier = units @ outlier
    between = units @ units.T
    compactness = between.sum(axis=1) - between.diagonal() + to_outlier
    return float(np.mean(compactness > to_outlier.sum()))


def _unit_vector(vectors: Vectors, expression: str) -> Float32Array | None:
    """Return the unit vector of a word or an expression, shape (D,); None if the model knows none of its words."""
    joined = re.sub(r"[\s_]+", "_", expression)
    for form in (expression, joined):
        if (id_ := known_id(vectors.vocabulary, form)) >= 0:
            return vectors.units([id_]).reshape(-1)
    ids = [id_ for word in joined.split("_") if (id_ := known_id(vectors.vocabulary, word)) >= 0]
    if not ids:
        return None
    mean = vectors.rows(np.array(ids)).mean(axis=0)
    composed: Float32Array = mean / np.float32(float(np.linalg.norm(mean)) or 1)
    return composed


def read_topics(url: str, storage_options: Mapping[str, Any] | None) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield the name, the words and the outliers of each topic in a folder; raises as `evaluate_outliers` does."""
    names = [name for name in Store(url, dict(storage_options or {})).children() if name.endswith(".txt")]
    if not names:
        raise InputError(f"{url} contains no .txt file.", "Give the folder with a file TOPIC.txt for each topic.")
    for name in names:
        file = f"{url.rstrip('/')}/{name}"
        lines = (line for _, line in read_lines(file, storage_options, keep_all=True))
        groups = [list(words) for is_word, words in groupby(lines, bool) if is_word]
        if len(groups) != 2:
            problem = f"{file} has {len(groups)} groups of lines, not 2."
            raise InputError(problem, "Write the topic's words, a blank line and the outliers, one on each line.")
        yield name.removesuffix(".txt"), groups[0], groups[1]
