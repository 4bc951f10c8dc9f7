"""The kernel for buckets of pairs, and that for windows, on the same text in memory: pairs/s of one thread."""

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


def windows(params: Params, segment: Segment, counts: npt.NDArray[np.int64]) -> Callable[[], float]:
    """Return what trains windows of a text, and returns pairs/s."""
    objective, width, n = find_objective("sgns"), padded(params.vector_size), len(counts)
    memory = Tables(first_rows(params, np.arange(n)), huge_zeros(n * width), width, HotRows(0, 0, 0, 1))
    rate, prepared = Rate(start_alpha(params), 0.0, 0), objective.prepare(params, counts)
    trainer = find_trainer(objective, "cpu")

    def run() -> float:
        began = time.perf_counter()
        pairs, _ = trainer(segment, 0, len(segment.tokens), memory, rate, 0, prepared)
        return pairs / (time.perf_counter() - began)

    return run


def buckets(params: Params, segment: Segment, counts: npt.NDArray[np.int64]) -> Callable[[], float]:
    """Return what trains the pairs of a text as one bucket, and returns pairs/s."""
    of, width, n = NegativeSampling.of(params), padded(params.vector_size), len(counts)
    words = make_word_table(counts, of.ns_exponent)
    source, output = first_rows(params, np.arange(n)), huge_zeros(n * width)
    size = WindowSize(params.window, params.shrink_windows, stream(params.seed, Purpose.WINDOW))
    pairs = distribute_pairs(segment, 0, int(segment.positions[-1]) + 1, size, Partitions(n, 1)).entries
    key, alpha = stream(params.seed, Purpose.NEGATIVE, 0), start_alpha(params)

    def run() -> float:
        began = time.perf_counter()
        done, _ = train_bucket(pairs, pairs[:0], source, output, width, alpha, of.negative, 0, words, key)
        return done / (time.perf_counter() - began)

    return run
