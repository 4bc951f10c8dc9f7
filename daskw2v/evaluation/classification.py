"""Text classification: how well a classifier that sees only word vectors labels texts."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from daskw2v.errors import InputError, ParameterError
from daskw2v.evaluation import cnn
from daskw2v.evaluation.texts import Ints, Split, Texts, read_texts, tabulate
from daskw2v.extras import needed, one_thread
from daskw2v.locations import Location
from daskw2v.models.vectors import Vectors

ClassificationMethod = Literal["logistic", "cnn"]

_STRENGTHS = (0.01, 0.1, 1.0)  # C, from strong to weak regularisation of standardised features
_DEV = 10  # one in so many training texts is set aside to choose settings by: Kim (2014), section 3
_FEWEST_TEXTS = 10  # of each label, so that every part to train on has some


@dataclass(frozen=True)
class ClassificationResult:
    """Outcome of one set of labelled texts.

    Parameters
    ----------
    accuracy
        Share of test texts labelled rightly, 0..1: the mean over folds.
    low, high
        Lowest and highest accuracy of a fold.
    texts
        Texts read.
    folds
        How many times another part was tested; 1 where the set has its own split.
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
    """Train a classifier on labelled texts' word vectors, which stay as they are, and test it on other texts.

    Parameters
    ----------
    vectors
        What to evaluate; all methods see unit vectors.
    urls
        One file (MR, SUBJ, CR, MPQA): cross-validation. Or the set's own three, to train on, to choose settings
        by, and to test on (SST). Lines are `label<TAB>text`, the words of a text parted by spaces; they are looked
        up as written, then lower-cased.
    method
        `logistic`: logistic regression on the mean of a text's known words (zero without any), each feature
        standardised, C of 0.01, 0.1 or 1. `cnn`: the network of `daskw2v.evaluation.cnn`, which W2V-CL
        (Li et al. 2019, section 5.2.4) uses; it takes an hour where the other takes a minute.
    folds
        Parts of one file: each is tested by a classifier that has learned from the others, of which a tenth is set
        aside to choose settings by. Each part has its share of every label.
    seed
        Decides what lies in which fold, and where the network starts.
    storage_options
        Options for fsspec.

    Raises
    ------
    InputError
        If a file cannot be read, a line is malformed, or labels are too few, too rare or never trained on.
    ParameterError
        If the method is unknown, the files are neither one nor three, or there is but one fold.
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


def _check_labels(labels: Ints, url: Location) -> None:
    counts = np.bincount(labels)
    if len(counts) < 2 or counts.min() < _FEWEST_TEXTS:
        raise InputError(
            f"{url} has {len(counts)} labels, of the rarest {counts.min(initial=len(labels))} texts.",
            f"Give a file of at least two labels with at least {_FEWEST_TEXTS} texts each.",
        )


def _check_split(labels: Ints, split: Split, urls: Sequence[Location]) -> None:
    trained = np.unique(labels[split.train])
    for url, part in zip(urls, split, strict=True):
        if not len(part):
            raise InputError(f"{url} holds no text.", "Give three files with texts: train, dev and test.")
        if len(trained) < 2 or not np.isin(labels[part], trained).all():
            raise InputError(
                f"{url} and {urls[0]} do not have the same labels, two or more.",
                "Give the files of one set in their order: train, dev and test.",
            )


def _fold(labels: Ints, folds: int, rng: np.random.Generator) -> Iterator[Split]:
    parts = _deal(labels, folds, rng)
    for fold in range(folds):
        rest = np.flatnonzero(parts != fold)
        aside = _deal(labels[rest], _DEV, rng) == 0
        yield Split(rest[~aside], rest[aside], np.flatnonzero(parts == fold))


def _deal(labels: Ints, n: int, rng: np.random.Generator) -> Ints:
    """Deal shuffled texts out to n parts, label by label; return each text's part, shape (texts,)."""
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    parts = np.empty(len(labels), np.int64)
    parts[order] = np.arange(len(labels)) % n
    return parts


def _logistic(texts: Texts, split: Split, seed: int) -> Ints:  # one optimum: no seed
    """Label the test texts by logistic regression, C being the best of several on the dev texts; shape (test,)."""
    regression = needed("sklearn.linear_model", "evaluation").LogisticRegression
    scaler = needed("sklearn.preprocessing", "evaluation").StandardScaler
    pipeline = needed("sklearn.pipeline", "evaluation").make_pipeline
    train, dev = texts.means[split.train], texts.means[split.dev]
    models = [pipeline(scaler(), regression(C=c, max_iter=1000)) for c in _STRENGTHS]
    with one_thread():
        for model in models:
            model.fit(train, texts.labels[split.train])
    best = max(models, key=lambda model: model.score(dev, texts.labels[split.dev]))  # the first of equals
    labels: Ints = best.predict(texts.means[split.test])
    return labels


_METHODS: dict[str, Callable[[Texts, Split, int], Ints]] = {"logistic": _logistic, "cnn": cnn.classify}
