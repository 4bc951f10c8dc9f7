"""Plain minibatches with Adam on one core: W2V-Vanilla, the baseline of W2V-CL's paper.

Skip-gram with negative sampling as Chainer's example has it: each pair of center and context has negatives of its own,
the loss is summed over a batch of pairs, and Adam moves both tables once a batch. Two kinds of Adam: lazy, which moves
the rows that a batch meets, and dense as Chainer's, which moves all rows by their moments (`vanilla_kernels`). Pairs
come in the order of the text.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from benchmarks.context_matrix.vanilla_kernels import Draws, Watched, adam_of, make_state, settle, step, train
from benchmarks.texts import Text
from daskw2v.config.params import Params
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.kernels.simd import padded
from daskw2v.models.vectors import Vectors
from daskw2v.objectives.base import initial_rows
from daskw2v.sampling.hierarchy import word_table
from daskw2v.sampling.reader import SegmentReader
from daskw2v.sampling.segments import Segment, cut, keep_thresholds
from daskw2v.types import Float32Array, Float64Array, Int64Array


@dataclass(frozen=True)
class Vanilla:
    """What is trained; where not said, as in Params. Windows do not shrink."""

    batch: int = 1024  # pairs that Adam takes together
    alpha: float = 0.001
    lazy: bool = False  # whether rows that a batch does not meet stay
    negative: int = 5
    window: int = 2
    vector_size: int = 100
    sample: float = 0.0
    epochs: int = 1
    seed: int = 1


class Losses(NamedTuple):
    """Losses of some words' pairs, those whose input row is the word's, in stretches of equal length of the text."""

    iterations: Float64Array  # how many batches of a stretch met the word, shape (stretches, words)
    mean: Float64Array  # of the word's mean loss in each of these; NaN where there were none
    variance: Float64Array


class Trained(NamedTuple):
    """The words' vectors; seconds of reading and training; pairs trained; and losses of the words asked for."""

    vectors: Vectors
    seconds: float
    pairs: int
    losses: Losses | None = None


class Trainer:
    """A training in memory, segment by segment.

    Losses of words that are watched are kept, by stretches of all corpus positions.
    """

    def __init__(
        self, settings: Vanilla, counts: Int64Array, positions: int, watched: Sequence[int] = (), stretches: int = 1
    ) -> None:
        s, self.n_words = settings, len(counts)
        self._settings, self._adam = s, adam_of(s.batch, s.lazy, s.alpha)
        self._state = make_state(self.n_words, padded(s.vector_size), s.negative, s.batch)
        self.noise = word_table(counts, Params().ns_exponent)
        params = Params(vector_size=s.vector_size, seed=s.seed)
        self._rows("input")[:] = initial_rows(params, "input", np.arange(self.n_words))
        number = np.full(self.n_words if len(watched) else 0, -1, np.int32)
        number[list(watched)] = np.arange(len(watched))
        totals = np.zeros((len(watched), 2)), np.zeros((stretches, len(watched), 3))
        self._watched = Watched(number, *totals, positions / stretches)

    def _rows(self, table: str) -> Float32Array:
        of_table = self._state.rows[: self.n_words] if table == "input" else self._state.rows[self.n_words :]
        return of_table[:, 0, : self._settings.vector_size]

    def train(self, segment: Segment, first: int, last: int, origin: int = 0, epoch: int = 0) -> int:
        """Train a range of centers, and return the number of pairs; a batch goes on from one range to the next.

        `origin` is the number of corpus positions in the epochs before.
        """
        s = self._settings
        draws = Draws(s.window, s.negative, stream(s.seed, Purpose.NEGATIVE, epoch), self.noise)
        return int(train(segment, first, last, self._state, draws, self._adam, self._watched, origin))

    def finish(self, position: int) -> None:
        """Train what is left of the last batch, which ends at a position; then rows are what they are."""
        if self._state.counters[0]:
            step(self._state, self._adam, self._watched, position)
        if not self._settings.lazy:
            settle(self._state, self._adam)

    def table(self, name: str) -> Float32Array:
        """Return a copy of the rows of the table "input" or "output", shape (V, vector_size)."""
        return self._rows(name).copy()

    @property
    def losses(self) -> Losses:
        """Losses of the watched words so far."""
        batches, total, squares = np.moveaxis(self._watched.records, 2, 0)
        with np.errstate(invalid="ignore"):
            mean = total / batches
            return Losses(batches, mean, np.maximum(squares / batches - mean * mean, 0.0))


def train_vanilla(text: Text, settings: Vanilla, word_losses: Sequence[int] = (), stretches: int = 1) -> Trained:
    """Train on one thread; losses of these words are kept for so many stretches of all epochs."""
    known, length = text.vocabulary.load(), text.corpus.n_tokens
    reader, whole = SegmentReader(text.work, text.corpus, text.vocabulary), settings.epochs * length
    keep = keep_thresholds(known.counts, settings.sample)
    trainer = Trainer(settings, known.counts, whole, word_losses, stretches)
    pairs, began = 0, time.perf_counter()
    for epoch in range(settings.epochs):
        key = stream(settings.seed, Purpose.SUBSAMPLE, epoch)
        for start, stop in cut(0, length):
            segment, _ = reader.read(start, stop, settings.window, keep, key)
            pairs += trainer.train(segment, *segment.centers(start, stop), epoch * length, epoch)
    trainer.finish(whole)
    seconds = time.perf_counter() - began
    losses = trainer.losses if len(word_losses) else None
    return Trained(Vectors(known, trainer.table("input")), seconds, pairs, losses)
