"""Text classification: how accurate a classifier is whose only features are word vectors."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from daskw2v.errors import InputError, ParameterError
from daskw2v.evaluation import cnn
from daskw2v.evaluation.texts import Split, Texts, read_texts, tabulate
from daskw2v.extras import needed, one_thread
from daskw2v.models.queries.vectors import Vectors
from daskw2v.store.urls import Location
from daskw2v.types import Int64Array

ClassificationMethod = Literal["logistic", "cnn"]

_STRENGTHS = (0.01, 0.1, 1.0)  # C, from strong to weak regularisation of standardised features
_DEV = 10  # one of ten training texts is kept for validation: Kim (2014), section 3
_FEWEST_TEXTS = 10  # of each label, so that the training part of every fold has some


@dataclass(frozen=True)
class ClassificationResult:
    """Outcome of one set of labelled texts.

    Parameters
    ----------
    accuracy
        Share of test texts with the correct label, 0..1, mean over folds.
    low, high
        Lowest and highest accuracy of a fold.
    texts
        Number of texts.
    folds
        Number of folds; 1 if the set has its own split.
    coverage
        Share of the texts' words that the model knows, 0..1.
    """

    accuracy: float
    low: float
    high: float
    texts: int
    folds: int
    coverage: float


def evaluate_classification(
    vectors: Vectors,
    urls: Location | Sequence[Location],
    method: ClassificationMethod = "logistic",
    folds: int = 10,
    seed: int = 0,
    storage_options: Mapping[str, Any] | None = None,
) -> ClassificationResult:
    """Train a classifier on labelled texts, the word vectors frozen, and test it on other texts.

    Parameters
    ----------
    vectors
        What to evaluate. All methods use unit vectors.
    urls
        One file, for cross-validation (MR, SUBJ, CR, MPQA), or three: training, validation and test (SST). Lines are
        `label<TAB>text`, the words of a text separated by spaces. Words are looked up as written, then in lower
        case.
    method
        `logistic`: logistic regression on the mean vector of a text's known words (zero without any), features
        standardised, C chosen among 0.01, 0.1 and 1. `cnn`: the network of `daskw2v.evaluation.cnn`, which W2V-CL
        (Li et al. 2019, section 5.2.4) uses; it takes an hour where logistic regression takes a minute.
    folds
        Number of stratified folds of one file. A tenth of each fold's training texts is kept for validation.
    seed
        Seed of the folds, and of the network's initial weights.
    storage_options
        Options for fsspec.

    Raises
    ------
    InputError
        If a file cannot be read, a line is malformed, or labels are too few, too rare or never trained on.
    ParameterError
        If the method is unknown, there are neither one nor three files, or fewer than two folds.
    MissingExtraError
        If scikit-learn, or PyTorch for `cnn`, is not installed.
    """
    classify = _METHODS.get(method)
    if classify is None:
        raise ParameterError(f"method={method!r} is unknown.", "Give logistic or cnn.")
    files = [urls] if isinstance(urls, str | os.PathLike) else list(urls)
    if len(files) not in (1, 3):
        raise ParameterError(f"There are {len(files)} files.", "Give one file, or three: train, dev and test.")
    if folds < 2:
        raise ParameterError(f"folds={folds!r} leaves nothing to train on.", "Give at least 2 folds.")
    parts = [read_texts(url, storage_options) for url in files]
    texts = tabulate(vectors, [text for part in parts for text in part])
    if len(files) == 1:
        _check_labels(texts.labels, files[0])
        splits = list(_fold(texts.labels, folds, np.random.default_rng(seed)))
    else:
        numbers = np.split(np.arange(len(texts.labels)), np.cumsum([len(part) for part in parts])[:-1])
        splits = [Split(*numbers)]
        _check_split(texts.labels, splits[0], files)
    rates = [float(np.mean(classify(texts, split, seed) == texts.labels[split.test])) for split in splits]
    return ClassificationResult(
        float(np.mean(rates)), min(rates), max(rates), len(texts.labels), len(rates), texts.coverage
    )


def _check_labels(labels: Int64Array, url: Location) -> None:
    counts = np.bincount(labels)
    if len(counts) < 2 or counts.min() < _FEWEST_TEXTS:
        raise InputError(
            f"{url} has {len(counts)} labels; the rarest has {counts.min(initial=len(labels))} texts.",
            f"Give a file of at least two labels with at least {_FEWEST_TEXTS} texts each.",
        )


def _check_split(labels: Int64Array, split: Split, urls: Sequence[Location]) -> None:
    trained = np.unique(labels[split.train])
    for url, part in zip(urls, split, strict=True):
        if not len(part):
            raise InputError(f"{url} contains no texts.", "Give three files with texts: train, dev and test.")
        if len(trained) < 2 or not np.isin(labels[part], trained).all():
            raise InputError(
                f"{url} has labels that {urls[0]} lacks, or {urls[0]} has only one.",
                "Give three files of one set in this order: train, dev and test.",
            )


def _fold(labels: Int64Array, folds: int, rng: np.random.Generator) -> Iterator[Split]:
    parts = _deal(labels, folds, rng)
    for fold in range(folds):
        rest = np.flatnonzero(parts != fold)
        aside = _deal(labels[rest], _DEV, rng) == 0
        yield Split(rest[~aside], rest[aside], np.flatnonzero(parts == fold))


def _deal(labels: Int64Array, n: int, rng: np.random.Generator) -> Int64Array:
    """Assign shuffled texts to n parts in turn, label by label; return the part of each text, shape (texts,)."""
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    parts = np.empty(len(labels), np.int64)
    parts[order] = np.arange(len(labels)) % n
    return parts


def _logistic(texts: Texts, split: Split, seed: int) -> Int64Array:  # convex: the seed is not used
    """Label the test texts by logistic regression, with the C that does best on the dev texts; shape (test,)."""
    regression = needed("sklearn.linear_model", "evaluation").LogisticRegression
    scaler = needed("sklearn.preprocessing", "evaluation").StandardScaler
    pipeline = needed("sklearn.pipeline", "evaluation").make_pipeline
    train, dev = texts.means[split.train], texts.means[split.dev]
    models = [pipeline(scaler(), regression(C=c, max_iter=1000)) for c in _STRENGTHS]
    with one_thread():
        for model in models:
            model.fit(train, texts.labels[split.train])
    best = max(models, key=lambda model: model.score(dev, texts.labels[split.dev]))  # of equals, the first
    labels: Int64Array = best.predict(texts.means[split.test])
    return labels


_METHODS: dict[str, Callable[[Texts, Split, int], Int64Array]] = {"logistic": _logistic, "cnn": cnn.classify}
