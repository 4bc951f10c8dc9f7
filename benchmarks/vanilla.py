"""Quality and speed of plain minibatches by their size: the baseline of W2V-CL's paper, W2V-Vanilla, on one core.

Skip-gram with negative sampling as Chainer's example has it: each pair of center and context has negatives of its own,
the loss is summed over a batch of pairs, and Adam moves both tables once a batch. Two kinds of Adam: lazy, which moves
the rows that a batch meets, and dense as Chainer's, which moves all rows by their moments (`vanilla_kernels`). Pairs
come in the order of the text. Figure 13 of the paper has quality fall as batches grow beyond 1024; a small batch meets
few rows twice, so that Adam's work is what it costs.

Prints Spearman's rank correlation, 3CosAdd accuracy and million raw in-vocabulary words/s of each batch size and
learning rate: means over seeds, and half the distance of the extremes. 0.005 is best for lazy Adam at 1024, larger
batches want more: with one rate for all, the paper's figure shows that too. Some 20 s each, half as much again without
subsampling, and a minute for the text.

    python -m benchmarks.vanilla [--batches 256 1024 4096 16384 65536] [--alpha 0.005 0.02] [--dense] [--sample 1e-4]
        [--size 100] [--epochs 1] [--seeds 1] [--parts 10] [--json]
"""

import argparse
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TextIO

import numpy as np
import numpy.typing as npt

from benchmarks.common import ANALOGY, DATA, SIMILARITY, finish
from benchmarks.options import Smoke, parsed
from benchmarks.texts import Text, encode
from benchmarks.vanilla_kernels import Draws, State, Watched, decay_of, make_state, settle, step, train
from daskw2v.config.params import Params
from daskw2v.errors import ParameterError
from daskw2v.evaluation import evaluate
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.kernels.simd import padded
from daskw2v.models.vectors import Vectors
from daskw2v.objectives.base import initial_rows
from daskw2v.objectives.cpu.steps import MAX_TARGETS
from daskw2v.sampling.hierarchy import word_table
from daskw2v.sampling.reader import SegmentReader
from daskw2v.sampling.segments import Segment, cut, keep_thresholds
from daskw2v.shards.layout import Corpus
from daskw2v.store.storage import Store
from daskw2v.types import Float32Array
from daskw2v.vocabulary.count import StoredVocabulary

Floats = npt.NDArray[np.float64]

MIN_COUNT = 50  # the paper's
SETS = [*SIMILARITY, DATA / "eval" / "mturk287.tsv"]


@dataclass(frozen=True)
class Vanilla:
    """What is trained.

    Parameters
    ----------
    batch
        Pairs that Adam takes together.
    alpha
        Learning rate.
    lazy
        Whether rows that a batch does not meet stay.
    negative, window, shrink_windows, vector_size, sample, epochs, seed
        As in Params; at most seven negatives.
    """

    batch: int
    alpha: float = 0.001
    lazy: bool = True
    negative: int = 5
    window: int = 2
    shrink_windows: bool = False
    vector_size: int = 100
    sample: float = 0.0
    epochs: int = 1
    seed: int = 1

    def __post_init__(self) -> None:
        if self.batch < 1 or not 1 <= self.negative < MAX_TARGETS:
            raise ParameterError(
                f"Batches of {self.batch} pairs with {self.negative} negatives cannot be trained.",
                f"Give batches of a pair or more, and 1 to {MAX_TARGETS - 1} negatives.",
            )


class Losses(NamedTuple):
    """Losses of some words' pairs, those whose input row is the word's, in stretches of equal length of the text.

    Parameters
    ----------
    batches
        How many batches of a stretch met the word, shape (stretches, words).
    mean, variance
        Of the word's mean loss in each of these batches; NaN where there were none.
    """

    batches: Floats
    mean: Floats
    variance: Floats


@dataclass(frozen=True)
class Trained:
    """What a training gave.

    Parameters
    ----------
    vectors
        The words' vectors.
    seconds
        Of reading and training, without first rows and compilation.
    words, pairs, batches, rows_met
        In-vocabulary words gone through, pairs trained, batches, and rows that these met, summed over batches.
    loss
        Mean loss of a pair with its negatives.
    losses
        Of the words asked for.
    """

    vectors: Vectors
    seconds: float
    words: int
    pairs: int
    batches: int
    rows_met: int
    loss: float
    losses: Losses | None = None


class Trainer:
    """A training in memory, segment by segment.

    Parameters
    ----------
    settings
        What is trained.
    counts
        Of all words.
    positions
        Corpus positions of all epochs.
    watched, stretches
        Words whose losses are kept, and stretches of the text for these.
    """

    def __init__(
        self,
        settings: Vanilla,
        counts: npt.NDArray[np.int64],
        positions: int,
        watched: Sequence[int] = (),
        stretches: int = 1,
    ) -> None:
        self.settings, self.n_words = settings, len(counts)
        self.width = padded(settings.vector_size)
        self.state: State = make_state(self.n_words, self.width, settings.negative, settings.batch)
        self._decay = decay_of(settings.alpha)
        self._noise = word_table(counts, Params().ns_exponent)
        params = Params(vector_size=settings.vector_size, seed=settings.seed)
        self._rows("input", 0)[:] = initial_rows(params, "input", np.arange(self.n_words))
        number = np.full(self.n_words if len(watched) else 0, -1, np.int32)
        number[list(watched)] = np.arange(len(watched))
        self._watched = Watched(
            number, np.zeros((len(watched), 2)), np.zeros((stretches, len(watched), 3)), positions / stretches
        )

    def _rows(self, table: str, part: int) -> Float32Array:
        records = self.state.records.reshape(2, self.n_words, 3, self.width)
        return records[0 if table == "input" else 1, :, part, : self.settings.vector_size]

    def train(
        self, segment: Segment, first: int, last: int, most: int, origin: int = 0, epoch: int = 0
    ) -> tuple[int, float, int]:
        """Train a range of centers, and no center after `most` pairs; return pairs, loss, and the next center.

        `origin` is the number of corpus positions in the epochs before. A batch goes on from one range to the next.
        """
        s = self.settings
        draws = Draws(
            s.window, s.shrink_windows, stream(s.seed, Purpose.WINDOW, epoch), stream(s.seed, Purpose.NEGATIVE, epoch),
            s.negative, self._noise,
        )  # fmt: skip
        pairs, loss, center = train(
            segment, first, last, most, self.state, self.width, s.batch, s.lazy, self._decay, draws, self._watched,
            origin, (0,) * (s.negative + 1),
        )  # fmt: skip
        return pairs, float(loss), center

    def finish(self, position: int) -> None:
        """Train what is left of the last batch, which ends at a position; then rows are what they are."""
        if self.state.counters[0]:
            step(self.state, self.width, self.settings.lazy, self._decay, self._watched, position)
        if not self.settings.lazy:
            settle(self.state, self.width, self._decay)

    def table(self, name: str) -> Float32Array:
        """Return a copy of the rows of the table "input" or "output", shape (V, vector_size)."""
        return self._rows(name, 0).copy()

    @property
    def losses(self) -> Losses:
        """Losses of the watched words so far."""
        batches, total, squares = np.moveaxis(self._watched.records, 2, 0)
        with np.errstate(invalid="ignore"):
            mean = total / batches
            return Losses(batches, mean, np.maximum(squares / batches - mean * mean, 0.0))


def train_vanilla(
    work: Store,
    corpus: Corpus,
    vocabulary: StoredVocabulary,
    settings: Vanilla,
    word_losses: Sequence[int] = (),
    stretches: int = 20,
    max_pairs: int | None = None,
    on_progress: Callable[[float, float], None] | None = None,
) -> Trained:
    """Train on one thread.

    Parameters
    ----------
    work, corpus, vocabulary
        The text.
    settings
        What is trained.
    word_losses, stretches
        Ids of words whose losses are kept, and stretches of all epochs that they are kept for.
    max_pairs
        Stop at the first center after so many pairs.
    on_progress
        Called now and then with the share of the text gone through, and the mean loss of a pair since the last call.
    """
    known = vocabulary.load()
    reader, length = SegmentReader(work, corpus, vocabulary), corpus.n_tokens
    keep = keep_thresholds(known.counts, settings.sample)
    whole = settings.epochs * length
    most = sys.maxsize if max_pairs is None else max_pairs
    trainer = Trainer(settings, known.counts, whole, word_losses, stretches)
    _compile(settings, word_losses)
    pairs, words, loss, began = 0, 0.0, 0.0, time.perf_counter()
    for epoch in range(settings.epochs):
        key = stream(settings.seed, Purpose.SUBSAMPLE, epoch)
        for start, stop in cut(0, length):
            if pairs >= most:
                break
            segment, of_range = reader.read(start, stop, settings.window, keep, key)
            first, last = segment.centers(start, stop)
            done, lost, center = trainer.train(segment, first, last, most - pairs, epoch * length, epoch)
            pairs, loss = pairs + done, loss + lost
            words += of_range * (center - first) / max(last - first, 1)
            if on_progress is not None:
                on_progress((epoch * length + stop) / whole, lost / max(done, 1))
    trainer.finish(whole)
    seconds = time.perf_counter() - began
    _, _, batches, rows = map(int, trainer.state.counters)
    losses = trainer.losses if len(word_losses) else None
    vectors = Vectors(known, trainer.table("input"))
    return Trained(vectors, seconds, round(words), pairs, batches, rows, loss / max(pairs, 1), losses)


def _compile(settings: Vanilla, word_losses: Sequence[int]) -> None:
    """Train a few words, so that the kernels are there."""
    segment = Segment(np.zeros(4, np.int32), np.arange(4), np.array([0, 4]))
    trainer = Trainer(settings, np.ones(4, np.int64), 4, range(min(len(word_losses), 4)))
    trainer.train(segment, 0, 4, 100)
    trainer.finish(4)


@dataclass(frozen=True)
class Row:
    """Speed and scores by batch size, as means over seeds.

    `rows_met` is the number of rows that a batch moves on average; `spreads` are half the distances of the scores'
    extremes.
    """

    batch: int
    adam: str
    alpha: float
    sample: float
    words_per_second: float
    seconds: float
    loss: float
    rows_met: float
    scores: dict[str, float]
    spreads: dict[str, float]


def judged(vectors: Vectors) -> dict[str, float]:
    """Return the score of each set."""
    result = evaluate(vectors, SETS, ANALOGY, analogy_methods=("3cosadd",)).as_dict()
    scores = {name: figures["spearman"] for name, figures in result["similarity"].items()}
    return scores | {name: figures["accuracy"] for name, figures in result["analogy"].items()}


def measure(text: Text, settings: Vanilla, seeds: Sequence[int] = (1,)) -> Row:
    """Train an epoch or more with each seed, and judge the vectors."""
    runs = [train_vanilla(text.work, text.corpus, text.vocabulary, replace(settings, seed=seed)) for seed in seeds]
    scores = [judged(run.vectors) for run in runs]
    by_set = {name: [one[name] for one in scores] for name in scores[0]}
    seconds, loss, rows = (
        statistics.mean(of(run) for run in runs)
        for of in (lambda run: run.seconds, lambda run: run.loss, lambda run: run.rows_met / max(run.batches, 1))
    )
    return Row(
        settings.batch, "lazy" if settings.lazy else "dense", settings.alpha, settings.sample,
        runs[0].words / seconds, seconds, loss, rows,
        {name: statistics.mean(values) for name, values in by_set.items()},
        {name: (max(values) - min(values)) / 2 for name, values in by_set.items()},
    )  # fmt: skip


def report(row: Row, out: TextIO) -> None:
    scores = ", ".join(f"{name} {value:.3f} ± {row.spreads[name]:.3f}" for name, value in row.scores.items())
    print(
        f"batches of {row.batch:,}, {row.adam} Adam, alpha {row.alpha}, sample {row.sample}: {scores}; "
        f"{row.words_per_second / 1e6:.3f} million words/s ({row.seconds:.1f} s); a batch moves {row.rows_met:,.0f} "
        f"rows, loss of a pair {row.loss:.3f}",
        file=out, flush=True,
    )  # fmt: skip


SMOKE = Smoke({"batches": [256, 1024], "size": 16, "parts": 0.3, "seeds": [1, 2]}, ("lazy", "ws353", "google_analogy"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, nargs="+", default=[256, 1024, 4096, 16384, 65536])
    parser.add_argument("--alpha", type=float, nargs="+", default=[0.005], help="learning rates to try")
    parser.add_argument("--dense", action="store_true", help="let all rows move at each batch, as Chainer does")
    parser.add_argument("--sample", type=float, default=1e-4)
    parser.add_argument("--size", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--parts", type=float, default=10, help="tenths of the 100 MB corpus")
    options = parsed(parser, SMOKE)
    out, rows = sys.stderr if options.json else sys.stdout, []
    with tempfile.TemporaryDirectory() as folder:
        text = encode(Path(folder), options.parts, Params(min_count=MIN_COUNT))
        for batch, alpha in itertools.product(options.batches, options.alpha):
            settings = Vanilla(
                batch, alpha, not options.dense, vector_size=options.size, sample=options.sample, epochs=options.epochs
            )
            rows.append(measure(text, settings, options.seeds))
            report(rows[-1], out)
    finish(rows, out, as_json=options.json)


if __name__ == "__main__":
    main()
