"""Plain minibatches with Adam on one core: W2V-Vanilla, the baseline of W2V-CL's paper.

As in Chainer's example, each pair has negatives of its own, the loss is summed over a batch of pairs in the order of
the text, and Adam moves both tables once a batch: all rows (dense), or those that the batch meets (lazy).
"""

from dataclasses import dataclass

import numpy as np

from benchmarks.context_matrix.vanilla_kernels import Draws, adam_of, make_state, settle, step, train
from benchmarks.context_matrix.vanilla_network import segments_of, train_network
from benchmarks.texts import Text
from daskw2v.config.params import Params
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.kernels.simd import padded
from daskw2v.models.queries.vectors import Vectors
from daskw2v.objectives.base import initial_rows
from daskw2v.sampling.hierarchy import make_word_table
from daskw2v.sampling.segments import Segment
from daskw2v.sampling.weights import NS_EXPONENT
from daskw2v.types import Float32Array, Int64Array


@dataclass(frozen=True)
class Vanilla:
    """What is trained; where not said, as in Params. Windows do not shrink."""

    batch: int = 1024  # pairs that Adam takes together
    alpha: float = 0.001
    lazy: bool = False  # whether rows that a batch does not meet stay
    ns_exponent: float = NS_EXPONENT
    of_characters: bool = False  # whether a network makes the input rows of words' characters, by PyTorch
    centered: bool = False  # whether the mean of all rows is subtracted from the vectors
    negative: int = 5
    window: int = 2
    vector_size: int = 100
    sample: float = 0.0
    epochs: int = 1
    seed: int = 1


class Trainer:
    """A training in memory, segment by segment."""

    def __init__(self, settings: Vanilla, counts: Int64Array) -> None:
        s, self.n_words = settings, len(counts)
        self._settings, self._adam = s, adam_of(s.batch, s.lazy, s.alpha)
        self._state = make_state(self.n_words, padded(s.vector_size), s.negative, s.batch)
        self.noise = make_word_table(counts, s.ns_exponent)
        params = Params(vector_size=s.vector_size, seed=s.seed)
        self.table("input")[:] = initial_rows(params, "input", np.arange(self.n_words))

    @property
    def gradients_bytes(self) -> int:
        """Bytes of the gradients of a batch."""
        return self._state.gradients.nbytes

    def table(self, name: str) -> Float32Array:
        """Return the rows of the table "input" or "output", shape (V, vector_size)."""
        of_table = self._state.rows[: self.n_words] if name == "input" else self._state.rows[self.n_words :]
        return of_table[:, 0, : self._settings.vector_size]

    def train(self, segment: Segment, first: int, last: int, epoch: int = 0) -> int:
        """Train a range of centers, and return the number of pairs; a batch goes on from one range to the next."""
        s = self._settings
        draws = Draws(s.window, s.negative, stream(s.seed, Purpose.NEGATIVE, epoch), self.noise)
        return int(train(segment, first, last, self._state, draws, self._adam))

    def finish(self) -> None:
        """Train what is left of the last batch, and let all rows catch up."""
        if self._state.counters[0]:
            step(self._state, self._adam)
        if not self._settings.lazy:
            settle(self._state, self._adam)


def train_vanilla(text: Text, settings: Vanilla) -> tuple[Vectors, int]:
    """Train on one thread; return the words' vectors, and how many pairs were trained."""
    if settings.of_characters and settings.lazy:
        raise ValueError("Adam of the network is not lazy")
    rows, pairs = train_network(text, settings) if settings.of_characters else _train_rows(text, settings)
    vectors = Vectors(text.vocabulary.load(), rows)
    return center(vectors) if settings.centered else vectors, pairs


def _train_rows(text: Text, settings: Vanilla) -> tuple[Float32Array, int]:
    """Train rows of the words' own."""
    trainer, pairs = Trainer(settings, text.vocabulary.load().counts), 0
    for segment, first, last, epoch, _ in segments_of(text, settings):
        pairs += trainer.train(segment, first, last, epoch)
    trainer.finish()
    return trainer.table("input").copy(), pairs


def center(vectors: Vectors) -> Vectors:
    """Return vectors less the mean of all of them."""
    rows = vectors.vectors[:]
    return Vectors(vectors.vocabulary, rows - rows.mean(axis=0))
