"""Text classification: how accurate a classifier is whose only features are word vectors."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import ModuleType
from typing import Any, Literal, NamedTuple

import numpy as np

from daskw2v.errors import InputError, ParameterError
from daskw2v.evaluation.reading import known_id, malformed_line, read_lines
from daskw2v.extras import needed, one_thread
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.blocks import cut
from daskw2v.store.urls import Location
from daskw2v.types import Float32Array, Float64Array, Int64Array

ClassificationMethod = Literal["logistic", "cnn"]

_STRENGTHS = (0.01, 0.1, 1.0)  # C, from strong to weak regularisation of standardised features
_DEV = 10  # one of ten training texts is kept for validation: Kim (2014), section 3
_FEWEST_TEXTS = 10  # of each label, so that the training part of every fold has texts of each

_WIDTHS = (3, 4, 5)  # of filters, in words
_FILTERS = 100  # of each width
_DROPOUT = 0.5
_MAX_NORM = 3.0  # of each label's output weights
_BATCH = 50
_RHO, _EPSILON = 0.95, 1e-6  # Adadelta's


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
        Number of all texts, also those for training.
    folds
        Number of folds; 1 if the set has its own split.
    coverage
        Share of the texts' tokens that the model knows, 0..1.
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
        The model. All methods use unit vectors.
    urls
        One file, for cross-validation (MR, SUBJ, CR, MPQA), or three: training, validation and test (SST). Lines are
        `label<TAB>text`, the words of a text separated by spaces. Words are looked up as written, then in lower
        case.
    method
        `logistic`: logistic regression on the mean vector of a text's known words (zero without any), features
        standardised, C chosen among 0.01, 0.1 and 1. `cnn`: the network of `classify_by_cnn`, which W2V-CL (Li et al.
        2019, section 5.2.4) uses; it takes an hour where logistic regression takes a minute.
    folds
        Number of stratified folds of one file. A tenth of each fold's training texts is kept for validation.
    seed
        Seed of the folds, and of the network, as in `classify_by_cnn`.
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
        splits = list(_split_folds(texts.labels, folds, np.random.default_rng(seed)))
    else:
        numbers = np.split(np.arange(len(texts.labels)), np.cumsum([len(part) for part in parts])[:-1])
        splits = [Split(*numbers)]
        _check_split(texts.labels, splits[0], files)
    rates = [float(np.mean(classify(texts, split, seed) == texts.labels[split.test])) for split in splits]
    mean, n = float(np.mean(rates)), len(texts.labels)
    return ClassificationResult(mean, min(rates), max(rates), n, len(rates), texts.coverage)


class Split(NamedTuple):
    """Indices of the training, validation and test texts, each of shape (n,) int64."""

    train: Int64Array
    dev: Int64Array
    test: Int64Array


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts and their labels.

    Parameters
    ----------
    labels
        Label of each text, numbered from 0, shape (n,) int64.
    rows
        For each text, the index of each of its words' rows in `table`, int64; 0 for unknown words.
    table
        Unit vectors of the known words, shape (1 + words, D) float32; row 0 is zero.
    """

    labels: Int64Array
    rows: list[Int64Array]
    table: Float32Array

    @cached_property
    def means(self) -> Float64Array:
        """Mean unit vector of the known words of each text, shape (n, D); zero without known words."""
        means = np.zeros((len(self.rows), self.table.shape[1]))
        for mean, rows in zip(means, self.rows, strict=True):
            if (rows > 0).any():
                mean[:] = self.table[rows[rows > 0]].mean(axis=0, dtype=np.float64)
        return means

    @property
    def coverage(self) -> float:
        """Share of all tokens in the texts that the model knows, 0..1."""
        return float(np.mean(np.concatenate(self.rows) > 0))


def read_texts(url: Location, storage_options: Mapping[str, Any] | None = None) -> list[tuple[str, list[str]]]:
    """Read a file of lines `label<TAB>text`; return the label and the list of words of each line.

    Raises
    ------
    InputError
        If the file cannot be read or a line is malformed.
    """
    texts = []
    for number, line in read_lines(url, storage_options):
        label, tab, text = line.partition("\t")
        if not (tab and label.strip() and text.strip()):
            remedy = "Write label<TAB>text in each line; one file has the texts of all labels."
            raise malformed_line(url, number, line, "not a label and a text", remedy)
        texts.append((label.strip(), text.split()))
    return texts


def tabulate(vectors: Vectors, texts: Sequence[tuple[str, list[str]]]) -> Texts:
    """Return texts as integers: the rank of each label among the sorted labels, and each word's row in a table.

    The table has the words' unit vectors. A word is looked up as written, then in lower case. Unknown words have row 0,
    which is zero.

    Parameters
    ----------
    vectors
        The model.
    texts
        Labels and words, as `read_texts` returns them.
    """
    ids = {word: known_id(vectors.vocabulary, word) for word in {word for _, words in texts for word in words}}
    known = sorted({*ids.values()} - {-1})
    row_of = {id_: row for row, id_ in enumerate([-1, *known])}
    table = np.concatenate([np.zeros((1, vectors.vector_size), np.float32), vectors.units(known)])
    _, labels = np.unique(np.array([label for label, _ in texts], dtype=str), return_inverse=True)
    rows = [np.array([row_of[ids[word]] for word in words], np.int64) for _, words in texts]
    return Texts(labels.astype(np.int64), rows, table)


def _check_labels(labels: Int64Array, url: Location) -> None:
    """Raise InputError if a file has fewer than two labels, or a label with too few texts for folds."""
    counts = np.bincount(labels)
    if len(counts) < 2 or counts.min() < _FEWEST_TEXTS:
        problem = f"{url} has {len(counts)} labels; the rarest has {counts.min(initial=len(labels))} texts."
        raise InputError(problem, f"Give a file of at least two labels with at least {_FEWEST_TEXTS} texts each.")


def _check_split(labels: Int64Array, split: Split, urls: Sequence[Location]) -> None:
    """Raise InputError if a part has no texts, or labels that the training part lacks, or if that has only one label.

    `urls` are the files of the parts, for messages.
    """
    trained = np.unique(labels[split.train])
    for url, part in zip(urls, split, strict=True):
        if not len(part):
            raise InputError(f"{url} contains no texts.", "Give three files with texts: train, dev and test.")
        if len(trained) < 2 or not np.isin(labels[part], trained).all():
            problem = f"{url} has labels that {urls[0]} lacks, or {urls[0]} has only one."
            raise InputError(problem, "Give three files of one set in this order: train, dev and test.")


def _split_folds(labels: Int64Array, folds: int, rng: np.random.Generator) -> Iterator[Split]:
    """Yield the split of each fold: one of `folds` parts as test texts, a tenth of the others as validation texts."""
    parts = _assign_parts(labels, folds, rng)
    for fold in range(folds):
        rest = np.flatnonzero(parts != fold)
        is_dev = _assign_parts(labels[rest], _DEV, rng) == 0
        yield Split(rest[~is_dev], rest[is_dev], np.flatnonzero(parts == fold))


def _assign_parts(labels: Int64Array, n: int, rng: np.random.Generator) -> Int64Array:
    """Assign shuffled texts to n parts in turn, label by label; return each text's part, 0..n-1, shape (texts,)."""
    order = rng.permutation(len(labels))
    order = order[np.argsort(labels[order], kind="stable")]
    parts = np.empty(len(labels), np.int64)
    parts[order] = np.arange(len(labels)) % n
    return parts


def _logistic(texts: Texts, split: Split, seed: int) -> Int64Array:  # convex: the seed is not used
    """Return labels of the test texts, shape (test,), by logistic regression, with the C that is best on dev texts."""
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


def classify_by_cnn(texts: Texts, split: Split, seed: int, epochs: int = 25) -> Int64Array:
    """Return labels of the test texts by a convolutional network, trained on the training texts in PyTorch on the CPU.

    W2V-CL (Li et al. 2019, section 5.2.4) evaluates with such a network but does not give its settings. The settings
    are those of CNN-static in Kim (2014), "Convolutional Neural Networks for Sentence Classification", section 3.1, and
    of the author's program: Adadelta, and the last epoch with the best accuracy on the dev texts. Two things differ.
    Kim gives words without a vector a random one; here it is zero, so that only the evaluated vectors count. Kim fills
    up the last batch.

    Parameters
    ----------
    texts, split
        All texts, and their split.
    seed
        Seed of initial weights, dropout and the order of texts. The same seed and number of threads give the same
        labels.
    epochs
        Passes over the training texts.

    Returns
    -------
    labels
        Labels of the test texts, shape (test,) int64.

    Raises
    ------
    MissingExtraError
        If PyTorch is not installed.
    """
    torch = needed("torch", "torch")
    rng = np.random.default_rng(seed)
    labels, highest, answers = torch.from_numpy(texts.labels), -1.0, np.empty(0, np.int64)
    with torch.random.fork_rng(devices=[]):  # leaves the caller's random state as it is
        torch.manual_seed(seed)
        network = _Network(torch, texts)
        for _ in range(epochs):
            order = rng.permutation(split.train)
            for batch in cut(len(order), _BATCH):
                network.learn(order[batch], labels[order[batch]])
            accuracy = float(np.mean(network.predict(split.dev) == texts.labels[split.dev]))
            if accuracy >= highest:
                highest, answers = accuracy, network.predict(split.test)
    return answers


class _Network:
    """A network of convolutions over the words of a text, max pooling, and a linear layer.

    Parameters
    ----------
    torch
        The module of PyTorch.
    texts
        All texts.
    """

    def __init__(self, torch: ModuleType, texts: Texts) -> None:
        self._torch, self._rows, self._table = torch, texts.rows, torch.from_numpy(texts.table)
        size, n_labels = texts.table.shape[1], int(texts.labels.max()) + 1
        self._filters = [torch.nn.Conv1d(size, _FILTERS, width) for width in _WIDTHS]
        self._dropout = torch.nn.Dropout(_DROPOUT)
        self._output = torch.nn.Linear(_FILTERS * len(_WIDTHS), n_labels)
        weights = [weight for layer in (*self._filters, self._output) for weight in layer.parameters()]
        self._optimizer = torch.optim.Adadelta(weights, lr=1.0, rho=_RHO, eps=_EPSILON)

    def _scores(self, texts: Int64Array) -> Any:
        """Return the logits of n texts, by their numbers, as a tensor of shape (n, labels)."""
        # Both sides are padded with zeros, as wide as the widest filter, even in the longest text: so the filters'
        # value at zeros takes part in every maximum, and a text's scores do not depend on the batch it is in.
        padding, longest = max(_WIDTHS), max(len(self._rows[text]) for text in texts)
        padded = np.zeros((len(texts), longest + 2 * padding), np.int64)
        for padded_row, text in zip(padded, texts, strict=True):
            padded_row[padding : padding + len(self._rows[text])] = self._rows[text]
        words = self._table[self._torch.from_numpy(padded)].transpose(1, 2)
        # ReLU after the maximum gives the same as before it, for less work.
        values = self._torch.cat([layer(words).amax(dim=2).relu() for layer in self._filters], dim=1)
        return self._output(self._dropout(values))

    def learn(self, texts: Int64Array, labels: Any) -> None:
        """Take one step of the optimizer on texts, by their numbers, whose labels are a tensor."""
        self._dropout.train()
        self._optimizer.zero_grad()
        self._torch.nn.functional.cross_entropy(self._scores(texts), labels).backward()
        self._optimizer.step()
        with self._torch.no_grad():
            weight = self._output.weight
            weight.copy_(weight.renorm(2, 0, _MAX_NORM))

    def predict(self, texts: Int64Array) -> Int64Array:
        """Return the predicted labels of n texts, by their numbers, shape (n,)."""
        self._dropout.eval()
        with self._torch.no_grad():
            parts = cut(len(texts), _BATCH)
            return np.concatenate([self._scores(texts[part]).argmax(dim=1).numpy() for part in parts])


_METHODS: dict[str, Callable[[Texts, Split, int], Int64Array]] = {"logistic": _logistic, "cnn": classify_by_cnn}
