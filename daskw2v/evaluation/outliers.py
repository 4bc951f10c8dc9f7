"""Outlier detection: how often the word that does not belong stands out from the words of a topic."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskw2v.errors import InputError
from daskw2v.evaluation.questions import MOST_BYTES, known_id
from daskw2v.locations import Location, as_url
from daskw2v.models.files import reading
from daskw2v.models.rows import Floats
from daskw2v.models.vectors import Vectors
from daskw2v.storage import Store

_FEWEST_WORDS = 2  # with an outlier, three: of two words neither stands out


@dataclass(frozen=True)
class OutlierResult:
    """Outcome of one outlier detection set.

    Parameters
    ----------
    accuracy
        Share of outliers that stand out most, 0..1; None where none was tested.
    opp
        Outlier position percentage: share of a topic's words that stand out less than the outlier, 0..1, the mean
        over outliers; None where none was tested.
    outliers
        Outliers tested.
    missing
        Outliers left out: they, or all but one of their topic's words, are not known.
    topics
        Accuracy of each topic; None where none of its outliers was tested.
    """

    accuracy: float | None
    opp: float | None
    outliers: int
    missing: int
    topics: dict[str, float | None]


def evaluate_outliers(
    vectors: Vectors, url: Location, storage_options: Mapping[str, Any] | None = None
) -> OutlierResult:
    """Put each outlier among the words of a topic and look which word is least similar to the others.

    Camacho-Collados and Navigli (2016, section 2): a word's compactness is the sum of its cosines with the others;
    an outlier is found where its compactness is below that of all others. Their program takes an unknown word for a
    zero vector, which stands out of any topic; here unknown words are left out.

    Parameters
    ----------
    vectors
        What to evaluate.
    url
        Folder with a file `topic.txt` for each topic, as 8-8-8 has: its words, a blank line, the outliers, one in a
        line. Words are looked up as written, then lower-cased; expressions also with underscores between their
        words, and as the mean of the known ones.
    storage_options
        Options for fsspec.

    Raises
    ------
    InputError
        If there is no such file, or one cannot be read or is malformed.
    """
    found: dict[str, list[bool]] = {}
    positions: list[float] = []
    missing = 0
    for topic, words, outliers in read_topics(as_url(url, "folder"), storage_options):
        units = [unit for word in words if (unit := _unit(vectors, word)) is not None]
        found[topic] = []
        for outlier in outliers:
            unit = _unit(vectors, outlier)
            if unit is None or len(units) < _FEWEST_WORDS:
                missing += 1
                continue
            position = _position(np.array(units), unit)
            positions.append(position)
            found[topic].append(position == 1)
    every = [one for topic in found.values() for one in topic]
    topics = {topic: float(np.mean(ones)) if ones else None for topic, ones in found.items()}
    if not every:
        return OutlierResult(None, None, 0, missing, topics)
    return OutlierResult(float(np.mean(every)), float(np.mean(positions)), len(every), missing, topics)


def _position(units: Floats, outlier: Floats) -> float:
    """Return the share of words, shape (n, D), whose compactness is above the outlier's, shape (D,)."""
    with_outlier = units @ outlier
    between = units @ units.T
    compactness = between.sum(axis=1) - between.diagonal() + with_outlier
    return float(np.mean(compactness > with_outlier.sum()))


def _unit(vectors: Vectors, expression: str) -> Floats | None:
    """Return a word's unit vector, shape (D,), or an expression's by its words; None where the model knows none."""
    joined = re.sub(r"[\s_]+", "_", expression)
    for form in (expression, joined):
        id_ = known_id(vectors.vocabulary, form)
        if id_ is not None:
            unit: Floats = vectors.units([id_])[0]
            return unit
    ids = [id_ for word in joined.split("_") if (id_ := known_id(vectors.vocabulary, word)) is not None]
    if not ids:
        return None
    mean = vectors.rows(np.array(ids)).mean(axis=0)
    length = float(np.linalg.norm(mean))
    composed: Floats = mean / np.float32(length or 1)
    return composed


def read_topics(url: str, storage_options: Mapping[str, Any] | None) -> Iterator[tuple[str, list[str], list[str]]]:
    """Read each topic's name, words and outliers."""
    names = [name for name in Store(url, dict(storage_options or {})).children() if name.endswith(".txt")]
    if not names:
        raise InputError(f"{url} holds no file topic.txt.", "Give the folder that holds the topics' files.")
    for name in names:
        file = f"{url.rstrip('/')}/{name}"
        with reading(file, storage_options) as f:
            content = f.read(MOST_BYTES)
        if len(content) == MOST_BYTES:
            raise InputError(f"{file} is longer than {MOST_BYTES:,} bytes.", "This is no topic: leave the file out.")
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError(f"{file} is not UTF-8 ({error.reason}).", "Convert it to UTF-8.") from None
        groups = [[word.strip() for word in group.splitlines()] for group in re.split(r"\n\s*\n", text.strip())]
        if len(groups) != 2:
            raise InputError(
                f"{file} has {len(groups)} groups of lines, not 2.",
                "Write the topic's words, a blank line and the outliers, one in a line.",
            )
        yield name.removesuffix(".txt"), groups[0], groups[1]
