"""Categorization: how well clusters of words match human classes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.errors import ParameterError
from daskw2v.evaluation.reading import known_id, malformed_line, read_lines
from daskw2v.extras import needed, one_thread
from daskw2v.models.queries.vectors import Vectors
from daskw2v.store.urls import Location


@dataclass(frozen=True)
class CategorizationResult:
    """Outcome of one categorization set.

    Parameters
    ----------
    purity
        Share of words that belong to the most frequent class of their cluster, 0..1, mean over seeds; None without
        known words.
    low, high
        Lowest and highest purity of a seed; None without known words.
    words
        Number of lines whose word is known.
    missing
        Number of lines whose word is not known.
    classes
        Number of classes among the known words.
    """

    purity: float | None
    low: float | None
    high: float | None
    words: int
    missing: int
    classes: int


def evaluate_categorization(
    vectors: Vectors,
    url: Location,
    seeds: Sequence[int] = tuple(range(10)),
    storage_options: Mapping[str, Any] | None = None,
) -> CategorizationResult:
    """Cluster unit vectors by k-means, as many clusters as classes, and compare the clusters with the classes.

    There are fewer clusters if the words have fewer distinct vectors. Purity is defined as in Baroni and Lenci (2010),
    clustering as in W2V-CL (Li et al. 2019, section 5.2.3). Each seed initializes k-means (k-means++) once, so `low`
    and `high` show how much initialization matters.

    Parameters
    ----------
    vectors
        The model.
    url
        File of lines `word<TAB>class`; comments (#) are skipped. Words are looked up as written, then in lower
        case. A word with several classes (Battig) counts once for each class. All of these fall into the same
        cluster, so such a set cannot reach purity 1.
    seeds
        Seeds of k-means, at least one.
    storage_options
        Options for fsspec.

    Raises
    ------
    InputError
        If the file cannot be read or a line is malformed.
    ParameterError
        If there is no seed.
    MissingExtraError
        If scikit-learn is not installed.
    """
    if not len(seeds):
        raise ParameterError("seeds is empty; k-means needs one.", "Give at least one seed.")
    ids, names, missing = read_classes(vectors, url, storage_options)
    if not ids:
        return CategorizationResult(None, None, None, 0, missing, 0)
    distinct_classes, classes = np.unique(names, return_inverse=True)
    units = vectors.units(ids)
    n_clusters = min(len(distinct_classes), len(np.unique(units, axis=0)))  # words may share a vector
    clustering = needed("sklearn.cluster", "evaluation").KMeans
    with one_thread():
        clusters = [clustering(n_clusters, n_init=1, random_state=seed).fit_predict(units) for seed in seeds]
    purities = [purity(labels, classes) for labels in clusters]
    mean, n_classes = float(np.mean(purities)), len(distinct_classes)
    return CategorizationResult(mean, min(purities), max(purities), len(ids), missing, n_classes)


def purity(clusters: npt.NDArray[Any], classes: npt.NDArray[Any]) -> float:
    """Return the share of items that belong to the most frequent class of their cluster.

    Parameters
    ----------
    clusters, classes
        Cluster and class of each item, numbered from 0, both of shape (n,), n >= 1.
    """
    table = np.zeros((clusters.max() + 1, classes.max() + 1), np.int64)
    np.add.at(table, (clusters, classes), 1)
    return float(table.max(axis=1).sum() / len(clusters))


def read_classes(
    vectors: Vectors, url: Location, storage_options: Mapping[str, Any] | None
) -> tuple[list[int], list[str], int]:
    """Read a file of words and classes; return id and class of each line with a known word, and the number of others.

    Raises an InputError if the file cannot be read or a line is malformed.
    """
    lines = []
    for number, line in read_lines(url, storage_options):
        parts = [part.strip() for part in line.split("\t")]
        if len(parts) != 2 or not all(parts):
            remedy = "Write word<TAB>class in each line, or mark the line as a comment with #."
            raise malformed_line(url, number, line, "not a word and its class", remedy)
        lines.append((known_id(vectors.vocabulary, parts[0]), parts[1]))
    known = [line for line in lines if line[0] >= 0]
    return [id_ for id_, _ in known], [name for _, name in known], len(lines) - len(known)
