"""Small trainings that a kernel for NVIDIA GPUs is held to the truth by: one warp against float64.

Contracts of the tests and the benchmark's tables take them from here: on a GPU, in Numba's simulator, or emulated.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from daskw2v.config.params import Params
from daskw2v.errors import ClusterError
from daskw2v.extras import needed
from daskw2v.kernels.cuda import load
from daskw2v.kernels.simd import padded
from daskw2v.objectives.base import DeviceTables, MatrixColumns, Rate
from daskw2v.objectives.context_matrix.reference import train_columns
from daskw2v.objectives.context_matrix.updates import step_size
from daskw2v.objectives.cuda import reference
from daskw2v.objectives.noise import BATCH, make_negatives
from daskw2v.objectives.reference import WindowRule
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.objectives.settings import SharedNegatives
from daskw2v.objectives.sg_hs.buckets import reference as path_reference
from daskw2v.objectives.sgns.buckets.reference import train_bucket
from daskw2v.objectives.tree import PreparedTree, count_trees
from daskw2v.objectives.windows import make_windows
from daskw2v.sampling.segments import Segment
from daskw2v.sampling.settings import NegativeSampling
from daskw2v.sampling.skipgrams import Bucket
from daskw2v.training.devices import find_device
from daskw2v.training.devices.base import map_arrays
from tests.support.cuda.compiling import Setting
from tests.support.markets import prepare

EPOCH, KEY = 2, np.uint64(99)
Table = npt.NDArray[Any]


class Trained(NamedTuple):
    """Tables, padding and all, and the examples and summed loss, or the loss of each row."""

    tables: list[Table]
    totals: Table


def rule_of(objective: str) -> WindowRule:
    """Return how an objective trains a window."""
    rule: WindowRule = import_module(f"daskw2v.objectives.{objective}.reference").RULE
    return rule


def count_table_rows(sizes: list[int], vector_size: int, rng: np.random.Generator) -> list[Table]:
    """Return tables of padded rows, float32."""
    tables = [np.zeros((size, padded(vector_size)), np.float32) for size in sizes]
    for table in tables:
        table[:, :vector_size] = rng.normal(scale=0.3, size=(len(table), vector_size))
    return tables


def likely(tables: list[Table], rng: np.random.Generator) -> list[Table]:
    """Return how likely the first half of each table's rows is touched; some of them move too far."""
    return [np.sort(9 * rng.random(len(table) // 2))[::-1].astype(np.float32) for table in tables]


def difference(before: list[Table], found: Trained, truth: Trained) -> float:
    """Return the largest distance from the truth, over the largest move of a table's rows."""
    distances = []
    for start, got, expected in zip(before, found.tables, truth.tables, strict=True):
        width = expected.shape[1]
        move = np.abs(expected - start[:, :width]).max(initial=0.0)
        distances.append(np.abs(got[:, :width] - expected).max(initial=0.0) / move if move else 0.0)
    return float(max(distances))


class Windows(NamedTuple):
    """Windows of a segment, for objectives that go over text; `touched` as in `objectives.base.DeviceTables`."""

    params: Params
    segment: Segment
    first: int
    last: int
    tables: list[Table]
    prepared: Any
    touched: list[Table]
    hot_rows: int = 0
    n_pieces: int = 1
    rate: Rate = Rate(0.05, -1e-6, 10)

    @classmethod
    def made(
        cls,
        params: Params,
        segment: Segment,
        counts: Table,
        rng: np.random.Generator,
        first: int = 0,
        last: int | None = None,
        **how: Any,
    ) -> "Windows":
        """Return a case with tables drawn; a range of centers, all by default."""
        objective, last = OBJECTIVES[params.objective.name], int(segment.bounds[-1]) if last is None else last
        sizes = list(objective.tables(params, len(counts)).values())
        tables = count_table_rows(sizes, params.vector_size, rng)
        prepared, touched = prepare(params, counts, rng), likely(tables, rng)
        return cls(params, segment, first, last, tables, prepared, touched, **how)

    def on_gpu(self) -> Trained:
        """Train on the GPU, or in the simulator."""
        cuda = load("numba.cuda")
        put, width = cuda.to_device, padded(self.params.vector_size)
        there: list[Any] = [put(table.ravel()) for table in self.tables]
        totals = put(np.zeros(2))
        likely, n = [put(rows) for rows in self.touched], self.n_pieces
        memory = DeviceTables(there[0], there[1], width, self.hot_rows, n, likely[0], likely[1], totals, cuda.stream())
        kernel: Any = OBJECTIVES[self.params.objective.name].trainers["cuda"]
        segment, prepared = map_arrays(put, self.segment), map_arrays(put, self.prepared)
        kernel(segment, *map(put, self.centers()), memory, self.rate, EPOCH, prepared)
        return Trained([rows.copy_to_host().reshape(-1, width) for rows in there], totals.copy_to_host())

    def centers(self) -> tuple[Table, Table]:
        """Return the range as a kernel takes it."""
        return np.array([self.first]), np.array([self.last])

    def _pieces(self) -> int:
        pieces = needed("daskw2v.objectives.cuda.pieces", "cuda")
        return int(pieces.count_pieces(self.last - self.first, self.n_pieces))

    def truth(self) -> Trained:
        """Train in float64."""
        pieces, aim, n = needed("daskw2v.objectives.cuda.pieces", "cuda"), self.aim(), self._pieces()
        tables = [table[:, : self.params.vector_size].astype(np.float64) for table in self.tables]
        source, output = tables
        moves, adds = (_factors(some, len(table), n) for some, table in zip(self.touched, tables, strict=True))
        flushed = _factors(self.touched[1][: aim.top], aim.top, n * pieces.FLUSH)
        has_ring = self.shape().slots(aim) > 0
        damping = reference.Damping(
            moves, adds, aim.size, lambda word: has_ring and word >= self.hot_rows, n, aim.top, flushed
        )
        totals = reference.train(
            self.segment,
            self.first,
            self.last,
            source,
            output,
            self.rate,
            EPOCH,
            self.prepared,
            damping,
            rule_of(self.params.objective.name),
        )
        return Trained(tables, np.array(totals))

    def shape(self) -> Any:
        """Return what its kernel is compiled for here, or for an H100 where there is no GPU."""
        try:
            pieces = load("daskw2v.objectives.cuda.pieces")
        except ClusterError:
            return Setting(self.params.vector_size, window=self.params.window).shape
        return pieces.make_shape(padded(self.params.vector_size), self.params.window)

    def aim(self) -> Any:
        """Return the targets of a window."""
        if isinstance(self.prepared, PreparedTree):
            return needed("daskw2v.objectives.cuda.targets", "cuda").path_targets(self.shape(), self.prepared.depth)
        of = SharedNegatives.of(self.params)
        each = of.negative_sharing == "pair" and not rule_of(self.params.objective.name).as_one
        negatives = needed("daskw2v.objectives.cuda.targets", "cuda")
        drawn = of.negative, of.market_negative
        return negatives.negative_targets(self.shape(), *drawn, per_context=each)

    def waiting(self) -> dict[str, Any]:
        """Return which rows wait in shared memory, as `traffic.rows_of` takes it."""
        pieces, aim = needed("daskw2v.objectives.cuda.pieces", "cuda"), self.aim()
        return {"ring": self.shape().slots(aim) > 0, "top": aim.top, "flush": pieces.FLUSH}

    def emulated(self, kernel: Any) -> tuple[Trained, Table]:
        """Train by a `tests.support.cuda.emulated.Kernel`; return how often it carried out each step, too."""
        shapes, tables, totals = needed("daskw2v.objectives.cuda.shape", "cuda"), _copies(self.tables), np.zeros(2)
        there = shapes.KernelTables(*(table.ravel() for table in tables), self.hot_rows, *self.touched)
        tree = isinstance(self.prepared, PreparedTree)
        aim = self.prepared.tree if tree else make_negatives(self.prepared, EPOCH)
        windows = make_windows(self.params, self.rate, EPOCH)
        arguments = there, self.segment, *self.centers(), windows, aim, totals
        return Trained(tables, totals), kernel.launch(arguments, blocks=self.n_pieces)


class Pairs(NamedTuple):
    """A bucket of two partitions."""

    params: Params
    bucket: Bucket
    negative: int
    each: int
    tables: list[Table]
    words: npt.NDArray[np.uint64]
    touched: list[Table]
    alpha: float = 0.05

    def on_gpu(self) -> Trained:
        kernels = load("daskw2v.objectives.sgns.buckets.cuda")
        how = self.alpha, self.negative, self.each, self.words, KEY
        return _bucket_on_gpu(self, lambda memory: kernels.train_bucket(self.bucket, memory, *how))

    def truth(self) -> Trained:
        (source, output), how = _truth_of_bucket(self)
        batch = partial(reference.train_items, **how)
        _, loss = train_bucket(
            *self.bucket, source, output, self.alpha, self.negative, self.each, self.words, KEY, batch
        )
        return Trained([source, output], np.array([0, loss]))

    def emulated(self, kernel: Any) -> tuple[Trained, Table]:
        """Train pairs without noise, as `Windows.emulated` does."""
        kernels = needed("daskw2v.objectives.sgns.buckets.cuda", "cuda")
        tables, totals, there = _emulated_tables(self)
        kinds = [
            kernels.Items(items, shared, KEY) for items, shared in zip(self.bucket, (self.negative, 0), strict=True)
        ]
        slices = -(-len(self.bucket.pairs) // (kernels.ITEMS * kernels.SLICE))
        done = kernel.launch((there, *kinds, slices, self.alpha, self.words, totals))
        return Trained(tables, totals), done


class PathPairs(NamedTuple):
    """A bucket of two partitions, whose centers are leaves of trees; `counts` are those of their words."""

    params: Params
    pairs: Table
    tables: list[Table]
    counts: npt.NDArray[np.int64]
    touched: list[Table]
    alpha: float = 0.05

    @property
    def links(self) -> npt.NDArray[np.uint64]:
        return OBJECTIVES["sg_hs"].partition_table(self.params, self.counts)

    def on_gpu(self) -> Trained:
        kernels = load("daskw2v.objectives.sg_hs.buckets.cuda")
        return _bucket_on_gpu(self, lambda memory: kernels.train_bucket(self.pairs, memory, self.alpha, self.links))

    def truth(self) -> Trained:
        (source, output), how = _truth_of_bucket(self)
        paths = path_reference.word_paths(self.counts, count_trees(self.params, len(self.counts)))
        step = partial(reference.train_step, **how)
        _, loss = path_reference.train_bucket(self.pairs, source, output, self.alpha, paths, step)
        return Trained([source, output], np.array([0, loss]))

    def emulated(self, kernel: Any) -> tuple[Trained, Table]:
        """Train as `Windows.emulated` does."""
        kernels = needed("daskw2v.objectives.sg_hs.buckets.cuda", "cuda")
        tables, totals, there = _emulated_tables(self)
        bounds = kernels.cut_steps(self.pairs)
        stride = kernels.find_stride(len(bounds) - 1)
        done = kernel.launch((there, self.pairs, bounds, stride, self.alpha, self.links, totals))
        return Trained(tables, totals), done


def _bucket_on_gpu(case: Pairs | PathPairs, train: Callable[[DeviceTables], None]) -> Trained:
    cuda, width = load("numba.cuda"), padded(case.params.vector_size)
    there, likely = ([cuda.to_device(rows.ravel()) for rows in some] for some in (case.tables, case.touched))
    totals: Any = cuda.to_device(np.zeros(2))
    train(DeviceTables(there[0], there[1], width, 0, 1, likely[0], likely[1], totals, cuda.stream()))
    return Trained([rows.copy_to_host().reshape(-1, width) for rows in there], totals.copy_to_host())


def _emulated_tables(case: Pairs | PathPairs) -> tuple[list[Table], Table, Any]:
    """Return copies of a case's tables, totals, and the tables as a kernel takes them."""
    shapes, tables = needed("daskw2v.objectives.cuda.shape", "cuda"), _copies(case.tables)
    there = shapes.KernelTables(*(table.ravel() for table in tables), 0, *case.touched)
    return tables, np.zeros(2), there


def _truth_of_bucket(case: Pairs | PathPairs) -> tuple[Any, Any]:
    """Return the rows of a bucket's partitions, float64, and how a batch of it is trained."""
    batches = needed("daskw2v.objectives.cuda.batches", "cuda")
    tables = [table[:, : case.params.vector_size].astype(np.float64) for table in case.tables]
    moves, adds = (_factors(some, len(table), 1) for some, table in zip(case.touched, tables, strict=True))
    return tables, {"damping": reference.Damping(moves, adds, batches.group_size(padded(case.params.vector_size)))}


class Matrix(NamedTuple):
    """Columns of the word-context matrix, for one batch of words."""

    params: Params
    columns: MatrixColumns
    trained: list[Table]
    others: Table
    prepared: Any

    @property
    def tables(self) -> list[Table]:
        return self.trained

    def on_gpu(self) -> Trained:
        of_device, objective = find_device("cuda").row_trainer, OBJECTIVES[self.params.objective.name]
        own = [rows[:, : self.params.vector_size] for rows in self.trained]
        others = {"output": [self.others[:, : self.params.vector_size]]}
        part = of_device(objective, self.params, self.prepared, {"input": own}, others, 1)
        losses = part.train("input", self.columns)
        return Trained(list(part.take("input")), losses)

    def truth(self) -> Trained:
        d = self.params.vector_size
        rows, *moments = (table[:, :d].astype(np.float64) for table in self.trained)
        others = self.others[:, :d].astype(np.float64)
        negative = NegativeSampling.of(self.params).negative
        losses = train_columns(self.columns, rows, moments, others, negative, self.prepared.noise)
        return Trained([rows, *moments], losses)

    def emulated(self, kernel: Any) -> tuple[Trained, Table]:
        """Train as `Windows.emulated` does."""
        n_words, n_columns = self.columns.contexts.shape
        batches, rates = -(-n_words // BATCH), np.full(n_columns, self.columns.alpha, np.float32)
        if self.params.optimizer == "adam":
            rates[:] = step_size.py_func(self.columns.alpha, np.arange(n_columns) + self.columns.first)
        trained = np.zeros((len(self.trained), batches * BATCH, self.others.shape[1]), np.float32)
        trained[:, :n_words], losses = self.trained, np.zeros(n_words, np.float32)
        done = kernel.launch(
            (
                trained.reshape(-1),
                self.others.ravel(),
                self.columns.contexts,
                self.prepared.noise,
                rates,
                self.columns.key,
                self.columns.first,
                self.columns.row // BATCH,
                0,
                trained[0].size,
                losses,
            ),
            (32, BATCH),
            batches,
        )
        return Trained(list(trained[:, :n_words]), losses), done


def _factors(touched: Table, n_rows: int, in_flight: int) -> Table:
    """Return what the moves of each row are multiplied by, shape (n_rows, 1)."""
    factors, together = np.ones((n_rows, 1)), needed("daskw2v.objectives.cuda.pieces", "cuda").TOGETHER
    factors[: len(touched), 0] = together / np.maximum(together, in_flight * touched)
    return factors


def _copies(tables: list[Table]) -> list[Table]:
    return [table.copy() for table in tables]
