"""Rotation of CBOW in one process: what the buckets of a cluster would train, in the same order."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from benchmarks.rotation_objectives.kernels import Carried, fill, train_noise, train_paths
from benchmarks.rotation_objectives.parts import Parts, deal_parts
from benchmarks.stopwatch import stopwatch
from benchmarks.texts import Text
from daskw2v.config.params import Params
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.kernels.simd import aligned_zeros, huge_zeros, padded
from daskw2v.models.vectors import Vectors
from daskw2v.objectives.base import HotRows, Objective, Tables
from daskw2v.objectives.cpu.negatives import batch_scratch, shared_tile_of
from daskw2v.objectives.cpu.paths import path_scratch
from daskw2v.objectives.noise import BATCH
from daskw2v.objectives.registry import find_objective, reads
from daskw2v.objectives.tree import PreparedTree, linked_trees
from daskw2v.sampling.hierarchy import word_table
from daskw2v.sampling.run import Run
from daskw2v.sampling.text import read_text
from daskw2v.training.rotation.pass_schedule import RotationPasses
from daskw2v.types import Float32Array
from daskw2v.vocabulary.huffman import Tree
from daskw2v.vocabulary.partition import Partitions

PARTS, SUMS, FETCHED = "parts of windows", "parts, with sums of the others", "whole windows, contexts fetched"
SPLITS = (PARTS, SUMS, FETCHED)


def splits_of(kind: Objective, splits: Sequence[str]) -> list[str]:
    """Return those splits that an objective has a kernel for here: sums are carried with negatives alone."""
    return [split for split in splits if split != SUMS or reads(kind, "negative")]


class Done(NamedTuple):
    """What a pass trained: windows, parts of them, contexts, bytes of vectors sent; and its loss and processor time."""

    windows: int
    parts: int
    contexts: int
    sent: int
    loss: float
    seconds: float


class Emulation:
    """A training by buckets.

    Parameters
    ----------
    text, params
        What is trained; of the partitions and passes of strategy `rotation` too.
    split
        PARTS: a bucket trains the contexts of a window that are in its input partition, as a window of their own. SUMS:
        what the window's other contexts were, when their buckets were trained last, is added. FETCHED: a bucket trains
        whole windows on a copy of all input rows; copies are merged after each pass by the mean of what they changed.
    """

    def __init__(self, text: Text, params: Params, split: str) -> None:
        self._params, self._split, self._vocabulary = params, split, text.vocabulary.load()
        self._run = Run(text.work, text.corpus.name, text.vocabulary, params, "cpu")
        self._passes = RotationPasses(params, text.corpus.n_tokens)
        p, n, self._width = params.n_partitions, text.vocabulary.size, padded(params.vector_size)
        self._outputs, self._inputs = Partitions(n, p), Partitions(n, 1 if split == FETCHED else p)
        kind = find_objective(params.objective)
        if split not in splits_of(kind, [split]):
            raise ValueError(f"{params.objective} has no kernel for {split}")
        self._kernel = (_Noise if reads(kind, "negative") else _Paths)(
            params, [self._vocabulary.counts[self._outputs.words(k)] for k in range(p)], self._width
        )
        self._source = [self._first(self._inputs.words(k)) for k in range(self._inputs.n)]
        self._output = [huge_zeros(self._outputs.size(k) * self._width) for k in range(p)]

    def _first(self, words: Any) -> Float32Array:
        table = huge_zeros(len(words) * self._width)
        rows = find_objective(self._params.objective).initial(self._params, "input", words)
        table.reshape(-1, self._width)[:, : self._params.vector_size] = rows
        return table

    def passes(self) -> Iterator[Done]:
        """Train all passes; yield what each did."""
        for number in range(len(self._passes)):
            yield self.train(number)

    def train(self, number: int) -> Done:
        """Train a pass."""
        this = self._passes[number]
        segment, _, windows = read_text(self._run, this.epoch, this.start, this.stop)
        parts = deal_parts(segment, this.start, this.stop, windows, self._inputs, self._outputs)
        order = [
            (pair, one.alphas[0])
            for step in self._passes.steps(number)
            for of in step
            for one in of
            for pair in one.pairs
        ]
        took = stopwatch()
        loss = self._fetched(parts, number) if self._split == FETCHED else self._apart(parts, number, order)
        row, n = 4 * self._params.vector_size, len(parts.centers)
        sent = {PARTS: 0, SUMS: n * row, FETCHED: self._touched(parts) * row}[self._split]
        return Done(int((parts.sizes > 0).sum()), n, len(parts.contexts), sent, loss, took().processor_seconds)

    def _bucket(self, parts: Parts, i: int, j: int) -> tuple[int, int]:
        bucket = j * self._inputs.n + i
        return int(parts.edges[bucket]), int(parts.edges[bucket + 1])

    def _apart(self, parts: Parts, number: int, order: list[Any]) -> float:
        whole = self._split == SUMS
        carried = Carried(
            *(np.zeros((whole * n, self._width), np.float32) for n in (len(parts.sizes), len(parts.centers)))
        )
        for (i, j), _ in order if whole else []:
            fill(parts, *self._bucket(parts, i, j), self._source[i], carried)
        return sum(
            self._kernel.train(
                parts,
                self._bucket(parts, i, j),
                self._source[i],
                self._output[j],
                j,
                alpha,
                self._key(number, i, j),
                carried,
            )
            for (i, j), alpha in order
        )

    def _fetched(self, parts: Parts, number: int) -> float:
        base, loss = self._source[0], 0.0
        total, touching = np.zeros_like(base), np.zeros(self._inputs.n_words, np.float32)
        none = Carried(*np.zeros((2, 0, self._width), np.float32))
        for j in range(self._outputs.n):
            copy = aligned_zeros(len(base))
            copy[:] = base
            alpha = self._passes.alpha(number, 0.5)
            bucket = self._bucket(parts, 0, j)
            loss += self._kernel.train(parts, bucket, copy, self._output[j], j, alpha, self._key(number, 0, j), none)
            copy -= base
            total += copy
            touching += copy.reshape(-1, self._width).any(axis=1)
        total.reshape(-1, self._width)[:] /= np.maximum(1, touching)[:, None]
        base += total
        return loss

    def _touched(self, parts: Parts) -> int:
        """Return the input rows that the buckets of the output partitions take and give back."""
        bounds = parts.starts[parts.edges]
        return 2 * sum(len(np.unique(parts.contexts[a:b])) for a, b in pairwise(bounds.tolist()))

    def _key(self, number: int, i: int, j: int) -> np.uint64:
        return stream(self._params.seed, Purpose.NEGATIVE, (number * self._outputs.n + i) * self._outputs.n + j)

    def vectors(self) -> Vectors:
        """Return the input rows."""
        matrix = np.empty((self._inputs.n_words, self._params.vector_size), np.float32)
        for k, table in enumerate(self._source):
            matrix[self._inputs.words(k)] = table.reshape(-1, self._width)[:, : self._params.vector_size]
        return Vectors(self._vocabulary, matrix)


class _Noise:
    """Trains parts against negatives of their center's partition."""

    def __init__(self, params: Params, counts: list[Any], width: int) -> None:
        none = np.empty(0, np.float32)
        self._params, self._tables = params, [word_table(own, params.ns_exponent) for own in counts]
        self._scratch = batch_scratch(params, Tables(none, none, width, HotRows(0, 0, 0, 1)))
        self._width = width

    def train(
        self, parts: Parts, bucket: tuple[int, int], source: Float32Array, output: Float32Array, j: int, alpha: float,
        key: np.uint64, carried: Carried,
    ) -> float:  # fmt: skip
        tables = Tables(source, output, self._width, HotRows(0, 0, 0, 1))
        return float(train_noise(
            parts, *bucket, tables, np.float32(alpha), self._tables[j], key, self._params.negative, self._scratch,
            carried, (0,) * BATCH, shared_tile_of(self._params),
        ))  # fmt: skip


class _Paths:
    """Trains parts against paths of a tree of their center's partition."""

    def __init__(self, params: Params, counts: list[Any], width: int) -> None:
        none = np.empty(0, np.float32)
        self._links, self._width = [linked_trees(params, own) for own in counts], width
        depth = max(int(links[-1]) for links in self._links)
        tree = PreparedTree(params, Tree(*np.zeros((2, 0), np.int64)), depth)
        self._scratch = path_scratch(tree, Tables(none, none, width, HotRows(0, 0, 0, 1)))

    def train(
        self, parts: Parts, bucket: tuple[int, int], source: Float32Array, output: Float32Array, j: int, alpha: float,
        key: np.uint64, carried: Carried,
    ) -> float:  # fmt: skip
        tables = Tables(source, output, self._width, HotRows(0, 0, 0, 1))
        return float(train_paths(parts, *bucket, tables, np.float32(alpha), self._links[j], self._scratch))
