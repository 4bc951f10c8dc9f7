"""A convolutional network that classifies texts by frozen word vectors, in PyTorch, on the CPU.

W2V-CL (Li et al. 2019, section 5.2.4) evaluates with such a network but does not give its settings. These are those of
CNN-static in Kim (2014), "Convolutional Neural Networks for Sentence Classification", section 3.1, and of the author's
program: Adadelta, and the epoch with the best accuracy on the dev texts. Two things differ. Kim gives words without a
vector a random one; here it is zero, so that only the evaluated vectors count. Kim fills up the last batch.
"""

from types import ModuleType
from typing import Any

import numpy as np

from daskw2v.evaluation.texts import Split, Texts
from daskw2v.extras import needed
from daskw2v.types import Int64Array

_WIDTHS = (3, 4, 5)  # of filters, in words
_FILTERS = 100  # of each width
_DROPOUT = 0.5
_MAX_NORM = 3.0  # of each label's output weights
_BATCH = 50
_RHO, _EPSILON = 0.95, 1e-6  # Adadelta's


def classify(texts: Texts, split: Split, seed: int, epochs: int = 25) -> Int64Array:
    """Train on the training texts and label the test texts.

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
    labels, most, answers = torch.from_numpy(texts.labels), -1.0, np.empty(0, np.int64)
    with torch.random.fork_rng(devices=[]):  # leaves the caller's random state as it is
        torch.manual_seed(seed)
        network = _Network(torch, texts)
        for _ in range(epochs):
            order = rng.permutation(split.train)
            for first in range(0, len(order), _BATCH):
                batch = order[first : first + _BATCH]
                network.learn(batch, labels[batch])
            right = float(np.mean(network.answer(split.dev) == texts.labels[split.dev]))
            if right >= most:
                most, answers = right, network.answer(split.test)
    return answers


class _Network:
    """Convolution over the words, max pooling, and a linear layer.

    Parameters
    ----------
    torch
        The module.
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

    def _scores(self, numbers: Int64Array) -> Any:
        """Return the logits of the texts with these numbers, shape (n, labels)."""
        # Both sides are padded with zeros, as wide as the widest filter, even in the longest text: so the filters'
        # value at zeros takes part in every maximum, and a text's scores do not depend on the batch it is in.
        side, longest = max(_WIDTHS), max(len(self._rows[number]) for number in numbers)
        padded = np.zeros((len(numbers), longest + 2 * side), np.int64)
        for line, number in zip(padded, numbers, strict=True):
            line[side : side + len(self._rows[number])] = self._rows[number]
        words = self._table[self._torch.from_numpy(padded)].transpose(1, 2)
        # ReLU after the maximum gives the same as before it, for less work.
        values = self._torch.cat([layer(words).amax(dim=2).relu() for layer in self._filters], dim=1)
        return self._output(self._dropout(values))

    def learn(self, numbers: Int64Array, labels: Any) -> None:
        """Take one optimizer step on the texts with these numbers."""
        self._dropout.train()
        self._optimizer.zero_grad()
        self._torch.nn.functional.cross_entropy(self._scores(numbers), labels).backward()
        self._optimizer.step()
        with self._torch.no_grad():
            weight = self._output.weight
            weight.copy_(weight.renorm(2, 0, _MAX_NORM))

    def answer(self, numbers: Int64Array) -> Int64Array:
        """Return the labels predicted for the texts with these numbers, shape (n,)."""
        self._dropout.eval()
        with self._torch.no_grad():
            batches = [numbers[first : first + _BATCH] for first in range(0, len(numbers), _BATCH)]
            return np.concatenate([self._scores(batch).argmax(dim=1).numpy() for batch in batches])
