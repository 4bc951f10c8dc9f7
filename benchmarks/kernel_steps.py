"""What bounds the SGNS kernel: the fixed cost of a window, the cost of a column, and that of memory.

The kernel alone is timed, on one thread: text, without subsampling, is in memory already. With 300 words (numbers taken
modulo 300) both tables fit the processor's caches; there the time of a window is that of its own work, close to a line
over the columns. What the vocabulary's tables take on top is memory. GFLOP/s are those of `benchmarks.train_speed`,
beside the peak of `benchmarks.fma_peak`, measured in turn. At one size of vectors three variants stand for
comparison: negatives of each pair's own (as word2vec.c), tables in small pages, and rows of n-grams of 3 to 6 letters.

    python -m benchmarks.kernel_steps [--sizes 16 32 64 128 256] [--words 1000000] [--parts 10] [--times 3] [--json]
"""

import argparse
import math
import mmap
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
import numpy.typing as npt

from benchmarks.common import alternate, finish, spread
from benchmarks.fma_peak import measure_peak
from benchmarks.options import Smoke, parsed
from benchmarks.texts import encode
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
COMPARED = 128  # size of the vectors of the variants
CACHED, WHOLE, PAIR, SMALL_PAGES = "cached", "whole vocabulary", "own negatives", "small pages"
NGRAMS = "n-grams"


class Text(NamedTuple):
    """A segment, how often each word occurs in the corpus, shape (V,) int64, and the words."""

    segment: Segment
    counts: npt.NDArray[np.int64]
    vocabulary: Vocabulary


class Done(NamedTuple):
    """Windows and pairs of a run."""

    windows: int
    pairs: int


@dataclass(frozen=True)
class Row:
    """The median of a variant's runs."""

    variant: str
    vector_size: int
    n_words: int
    ns_per_window: float
    spread: str
    pairs_per_second: float
    gflops: float
    share_of_peak: float


def read(params: Params, parts: float, words: int) -> Text:
    """Return the first positions of the corpus, subsampled, and the counts of all of it."""
    with tempfile.TemporaryDirectory() as folder:
        text = encode(Path(folder), parts)
        vocabulary = text.vocabulary.load()
        counts = vocabulary.counts
        keep, key = keep_thresholds(counts, params.sample), stream(params.seed, Purpose.SUBSAMPLE)
        stop = min(words, text.corpus.n_tokens)
        segment, _ = SegmentReader(text.work, text.corpus, text.vocabulary).read(0, stop, params.window, keep, key)
    return Text(segment, counts, vocabulary)


def with_few_words(text: Text) -> Text:
    tokens = text.segment.tokens % np.int32(FEW)
    return text._replace(segment=text.segment._replace(tokens=tokens), counts=np.bincount(tokens, minlength=FEW))


def small_zeros(n: int) -> npt.NDArray[np.float32]:
    """As `daskw2v.kernels.simd.huge_zeros`, in small pages."""
    memory = mmap.mmap(-1, 4 * n, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, np.float32, n)


def composing(trainer: Trainer, text: Text, params: Params, zeros: Callable[[int], npt.NDArray[np.float32]]) -> Trainer:
    """Return a trainer of rows that are composed of the n-grams of words."""
    width, vocabulary = padded(params.vector_size), text.vocabulary
    offsets, buckets = ngrams_in(vocabulary.data, vocabulary.offsets, params.minn, params.maxn, params.bucket)
    used, rows = np.unique(buckets, return_inverse=True)
    ones = np.ones(len(vocabulary), np.float32)
    found = WordFeatures(offsets, rows.astype(np.int32), np.zeros(0, np.float32), ones)
    features = weigh_own_rows(found, text.counts, params.prior_count)
    composer = composer_of(features, len(used), params.window, width)
    composed = ComposedRows(features, zeros(len(used) * width), composer, params.window)

    def train(
        segment: Segment, first: int, last: int, tables: Tables, rate: Rate, epoch: int, prepared: Any, /
    ) -> tuple[int, float]:
        return train_composed(trainer, segment, first, last, tables, rate, epoch, prepared, composed)

    return train


def timer(
    text: Text, params: Params, zeros: Callable[[int], npt.NDArray[np.float32]] = huge_zeros
) -> tuple[Callable[[], float], Done]:
    """Return a function that trains the segment once and returns the seconds of a window; and what it trains."""
    objective, n_words, width = find_objective(params.objective), len(text.counts), padded(params.vector_size)
    source, output = zeros(n_words * width), zeros(n_words * width)
    source.reshape(-1, width)[:, : params.vector_size] = objective.initial(params, "input", np.arange(n_words))
    memory, rate = Tables(source, output, width, HotRows(0, 0, 0, 1)), Rate(start_alpha(params), 0.0, 0)
    prepared, n = objective.prepare(params, text.counts), len(text.segment[0])
    trainer = find_trainer(objective, "cpu")
    if params.maxn:
        trainer = composing(trainer, text, params, zeros)

    def measure() -> float:
        began = time.perf_counter()
        _, loss = trainer(text.segment, 0, n, memory, rate, 0, prepared)
        seconds = time.perf_counter() - began
        if not math.isfinite(loss):
            raise RuntimeError(f"The loss is {loss}: what was timed is no training.")
        return seconds / n

    pairs, _ = trainer(text.segment, 0, n, memory, rate, 0, prepared)  # compiles
    return measure, Done(n, pairs)


def compare(text: Text, sizes: Sequence[int], times: int) -> list[Row]:
    """Measure all variants in turn."""
    few, sgns = with_few_words(text), Params(negative_sharing="shared")
    made = {}
    for size in sizes:
        params = sgns.replace(vector_size=size)
        made[CACHED, size], made[WHOLE, size] = timer(few, params), timer(text, params)
    params = sgns.replace(vector_size=COMPARED)
    made[PAIR, COMPARED] = timer(text, params.replace(negative_sharing="pair"))
    made[SMALL_PAGES, COMPARED] = timer(text, params, small_zeros)
    made[NGRAMS, COMPARED] = timer(text, params.replace(maxn=6))
    names = {key: f"{key[0]} {key[1]}" for key in made}
    runs: dict[str, Callable[[], float]] = {names[key]: measure for key, (measure, _) in made.items()}
    runs["peak"] = partial(measure_peak, 1)
    results = alternate(runs, times)
    peak, rows = max(results["peak"]), []
    for (variant, size), (_, done) in made.items():
        seconds = results[names[variant, size]]
        middle = statistics.median(seconds)
        speed = done.pairs / done.windows / middle
        gflops = speed * 6 * size * (1 + sgns.negative) / 1e9
        n_words = FEW if variant == CACHED else len(text.counts)
        rows.append(Row(variant, size, n_words, middle * 1e9, spread(seconds), speed, gflops, gflops / peak))
    return rows


def line_of(times: Mapping[int, float]) -> tuple[float, float]:
    """Return what a window and what a column take, in ns: the line through times by size, errors taken relatively."""
    sizes, values = np.array([*times]), np.array([*times.values()])
    column, fixed = np.polyfit(sizes, values, 1, w=1 / values)
    return float(fixed), float(column)


def report(rows: Sequence[Row], out: TextIO) -> None:
    """Print a line for each row, then what they say."""
    for row in rows:
        print(
            f"d={row.vector_size}, {row.variant} ({row.n_words} words): {row.ns_per_window:.0f} ns a window "
            f"({row.spread}), {row.pairs_per_second / 1e6:.2f} million pairs/s, {row.gflops:.1f} GFLOP/s, "
            f"{row.share_of_peak:.0%} of {row.gflops / row.share_of_peak:.0f}",
            file=out,
        )
    cached, whole = ({row.vector_size: row for row in rows if row.variant == v} for v in (CACHED, WHOLE))
    if len(cached) > 1:
        fixed, column = line_of({size: row.ns_per_window for size, row in cached.items()})
        size, row = next(iter(cached.items()))
        operations = row.gflops * row.ns_per_window / size  # of a column
        print(
            f"cached: {fixed:.0f} ns a window, and {column:.2f} ns for each column: {operations / column:.0f} GFLOP/s",
            file=out,
        )
    for size, row in whole.items():
        memory = row.ns_per_window - cached[size].ns_per_window
        print(f"d={size}: memory takes {memory:.0f} of {row.ns_per_window:.0f} ns a window", file=out)


SMOKE = Smoke(
    {"sizes": [16, 32], "words": 50_000, "parts": 0.1, "times": 1},
    (CACHED, WHOLE, PAIR, SMALL_PAGES, NGRAMS),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[16, 32, 64, 128, 256], help="vector sizes")
    parser.add_argument("--words", type=int, default=1_000_000, help="of the text, that are trained")
    parser.add_argument("--parts", type=float, default=10, help="tenths of the 100 MB corpus that give the vocabulary")
    parser.add_argument("--times", type=int, default=3)
    options = parsed(parser, SMOKE)
    out = sys.stderr if options.json else sys.stdout
    rows = compare(read(Params(sample=0), options.parts, options.words), options.sizes, options.times)
    report(rows, out)
    finish(rows, out, as_json=options.json)


if __name__ == "__main__":
    main()
