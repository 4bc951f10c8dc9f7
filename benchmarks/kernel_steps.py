"""What bounds the SGNS kernel: its own work, memory, and rows that are made of n-grams.

The kernel alone is timed, on one thread: text, without subsampling, is in memory already. With 300 words (numbers taken
modulo 300) both tables fit the processor's caches: there a window takes its own work. What the vocabulary's tables take
more is memory; and what words made of their n-grams of 3 to 6 letters take more, in all dimensions of a window, is a
constant of the cost model (`daskw2v.training.cost.constants`). The share of the processor's peak counts operations as
`benchmarks.train_speed` does.

    python -m benchmarks.kernel_steps [--sizes 100 128 300] [--words 1000000] [--parts 10] [--times 3]
"""

import argparse
import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from benchmarks.fma_peak import measure_peak
from benchmarks.harness import Benchmark, Session, Smoke
from benchmarks.texts import encode, name_of
from daskw2v.config.params import Params
from daskw2v.features.ngram_kernel import ngrams_in
from daskw2v.features.words import WordFeatures, weigh_own_rows
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.kernels.simd import huge_zeros, padded
from daskw2v.objectives.base import HotRows, Rate, Tables, Trainer
from daskw2v.objectives.cpu.composed import ComposedRows, composer_of, train_composed
from daskw2v.objectives.registry import find_objective, find_trainer, start_alpha
from daskw2v.sampling.reader import SegmentReader
from daskw2v.sampling.segments import Segment, keep_thresholds
from daskw2v.vocabulary.vocabulary import Vocabulary

FEW = 300  # words whose tables fit the caches
CACHED, WHOLE, NGRAMS = "cached", "whole vocabulary", "n-grams"


class Text(NamedTuple):
    """A segment, how often each word occurs in the corpus, shape (V,) int64, and the words."""

    segment: Segment
    counts: npt.NDArray[np.int64]
    vocabulary: Vocabulary


def read(session: Session) -> Text:
    """Return the first words of the corpus, and the counts of all of it."""
    text = encode(session.folder, session.options.parts)
    vocabulary, params = text.vocabulary.load(), Params(sample=0)
    keep, key = keep_thresholds(vocabulary.counts, params.sample), stream(params.seed, Purpose.SUBSAMPLE)
    stop = min(session.options.words, text.corpus.n_tokens)
    segment, _ = SegmentReader(text.work, text.corpus, text.vocabulary).read(0, stop, params.window, keep, key)
    return Text(segment, vocabulary.counts, vocabulary)


def with_few_words(text: Text) -> Text:
    tokens = text.segment.tokens % np.int32(FEW)
    return text._replace(segment=text.segment._replace(tokens=tokens), counts=np.bincount(tokens, minlength=FEW))


def composing(trainer: Trainer, text: Text, params: Params) -> Trainer:
    """Return a trainer of rows that are composed of the n-grams of words."""
    width, vocabulary = padded(params.vector_size), text.vocabulary
    offsets, buckets = ngrams_in(vocabulary.data, vocabulary.offsets, params.minn, params.maxn, params.bucket)
    used, rows = np.unique(buckets, return_inverse=True)
    ones = np.ones(len(vocabulary), np.float32)
    found = WordFeatures(offsets, rows.astype(np.int32), np.zeros(0, np.float32), ones)
    features = weigh_own_rows(found, text.counts, params.prior_count)
    composer = composer_of(features, len(used), params.window, width)
    composed = ComposedRows(features, huge_zeros(len(used) * width), composer, params.window)

    def train(
        segment: Segment, first: int, last: int, tables: Tables, rate: Rate, epoch: int, prepared: Any, /
    ) -> tuple[int, float]:
        return train_composed(trainer, segment, first, last, tables, rate, epoch, prepared, composed)

    return train


def timer(text: Text, params: Params) -> tuple[Callable[[], float], float]:
    """Return what trains the segment once and returns the seconds of a window; and the pairs of a window."""
    objective, n_words, width = find_objective("sgns"), len(text.counts), padded(params.vector_size)
    source, output = huge_zeros(n_words * width), huge_zeros(n_words * width)
    source.reshape(-1, width)[:, : params.vector_size] = objective.initial(params, "input", np.arange(n_words))
    memory, rate = Tables(source, output, width, HotRows(0, 0, 0, 1)), Rate(start_alpha(params), 0.0, 0)
    prepared, n = objective.prepare(params, text.counts), len(text.segment.tokens)
    trainer = find_trainer(objective, "cpu")
    if params.maxn:
        trainer = composing(trainer, text, params)

    def seconds() -> float:
        began = time.perf_counter()
        _, loss = trainer(text.segment, 0, n, memory, rate, 0, prepared)
        taken = time.perf_counter() - began
        if not math.isfinite(loss):
            raise RuntimeError(f"The loss is {loss}: what was timed is no training.")
        return taken / n

    pairs, _ = trainer(text.segment, 0, n, memory, rate, 0, prepared)  # compiles
    return seconds, pairs / n


def measure(session: Session) -> None:
    """Measure all variants of a size in turn; print a row for each."""
    options = session.options
    session.text = f"the first {options.words:,} words of {name_of(options.parts)}, with the vocabulary of all of it"
    text = read(session)
    few, sizes = with_few_words(text), [Params(vector_size=size) for size in options.sizes]
    columns = ("ns a window", "ns a dimension more than the whole vocabulary", "GFLOP/s", "of the processor's peak, %")
    table = session.table("Kernel of sgns, one thread", columns, ".2f")
    for plain in sizes:
        made = {
            WHOLE: timer(text, plain), CACHED: timer(few, plain), NGRAMS: timer(text, plain.replace(maxn=6)),
        }  # fmt: skip
        found = session.measure({**{name: run for name, (run, _) in made.items()}, "peak": partial(measure_peak, 1)})
        for name, (_, pairs) in made.items():
            took, whole = found[name], found[WHOLE].middle
            gflops = pairs * 6 * plain.vector_size * (1 + plain.negative) / took.middle / 1e9
            more = None if name == WHOLE else (took.middle - whole) * 1e9 / plain.vector_size
            share = 100 * gflops / found["peak"].high
            table.row(f"{name}, d={plain.vector_size}", took.scaled(1e9), more, gflops, share)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 128, 300], help="vector sizes")
    parser.add_argument("--words", type=int, default=1_000_000, help="of the text, that are trained")
    parser.add_argument("--parts", type=float, default=10, help="of 10 MB, that give the vocabulary")
    parser.add_argument("--times", type=int, default=3)


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/kernels", "daskw2v/objectives/cpu", "daskw2v/objectives/sgns", "daskw2v/training/cost/constants.py"),
    Smoke({"sizes": [16], "words": 50_000, "parts": 0.1, "times": 1}, (CACHED, WHOLE, NGRAMS)),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
