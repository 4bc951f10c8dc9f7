"""The kernel for buckets of pairs, and those for windows, on the same text in memory, on one thread."""

import time
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from daskw2v.config.params import Params
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.kernels.simd import huge_zeros, padded
from daskw2v.objectives.base import HotRows, Rate, Tables
from daskw2v.objectives.registry import find_objective, find_trainer, start_alpha
from daskw2v.objectives.sgns.buckets.cpu import train_bucket
from daskw2v.sampling.hierarchy import make_word_table
from daskw2v.sampling.pairs import WindowSize, distribute_pairs
from daskw2v.sampling.segments import Segment
from daskw2v.sampling.settings import NegativeSampling
from daskw2v.vocabulary.partition import Partitions


def first_rows(params: Params, words: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """Return the first input rows of some words, flat and padded."""
    width = padded(params.vector_size)
    table = huge_zeros(len(words) * width)
    table.reshape(-1, width)[:, : params.vector_size] = find_objective("sgns").initial(params, "input", words)
    return table


def windows(params: Params, segment: Segment, counts: npt.NDArray[np.int64]) -> Callable[[], tuple[int, float]]:
    """Return what trains windows of a text by the objective of Params, and returns examples and seconds."""
    objective, width = find_objective(params.objective.name), padded(params.vector_size)
    rows = objective.tables(params, len(counts))
    source = first_rows(params, np.arange(rows["input"]))
    memory = Tables(source, huge_zeros(rows["output"] * width), width, HotRows(0, 0, 0, 1))
    rate, prepared = Rate(start_alpha(params), 0.0, 0), objective.prepare(params, counts)
    trainer = find_trainer(objective, "cpu")

    def run() -> tuple[int, float]:
        began = time.perf_counter()
        examples, _ = trainer(segment, 0, len(segment.tokens), memory, rate, 0, prepared)
        return examples, time.perf_counter() - began

    return run


def buckets(params: Params, segment: Segment, counts: npt.NDArray[np.int64]) -> Callable[[], tuple[int, float]]:
    """Return what trains the pairs of a text as one bucket, by sgns, and returns pairs and seconds."""
    of, width, n = NegativeSampling.of(params), padded(params.vector_size), len(counts)
    words = make_word_table(counts, of.ns_exponent)
    source, output = first_rows(params, np.arange(n)), huge_zeros(n * width)
    size = WindowSize(params.window, params.shrink_windows, stream(params.seed, Purpose.WINDOW))
    pairs = distribute_pairs(segment, 0, int(segment.positions[-1]) + 1, size, Partitions(n, 1)).entries
    key, alpha = stream(params.seed, Purpose.NEGATIVE, 0), start_alpha(params)

    def run() -> tuple[int, float]:
        began = time.perf_counter()
        done, _ = train_bucket(pairs, pairs[:0], source, output, width, alpha, of.negative, 0, words, key)
        return done, time.perf_counter() - began

    return run
