"""Objectives: values that describe tables, initial rows and kernels; no code branches on their names.

A center is a token of a `Segment`, named by its index in the segment; it and its contexts, the tokens around it, are a
window. A part is a range of words whose rows one task trains on columns of the word-context matrix. A batch of a part
is BATCH rows that share negatives. D is `vector_size`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from daskw2v.config.choice import Choice
from daskw2v.config.params import Params
from daskw2v.kernels.jit import kernel
from daskw2v.kernels.rng import Purpose, draw, stream, unit
from daskw2v.objectives.curvature import Moments, curvature_of_pairs
from daskw2v.sampling.hierarchy import make_word_table
from daskw2v.sampling.segments import Segment
from daskw2v.sampling.settings import NegativeSampling
from daskw2v.sampling.skipgrams import Bucket
from daskw2v.types import BoolArray, Float32Array, Float64Array, Int32Array, Int64Array, RowIds, UInt8Array, UInt64Array

INPUT, OUTPUT = TABLES = "input", "output"  # names of the tables of all objectives
NOT_FROZEN = np.zeros(0, np.uint8)
WORDS = np.zeros(0, np.int32)  # `Tables.inputs` where the input rows are those of words
MOMENTS = {"sgd": 0, "adam": 2}  # number of moments that an optimizer keeps for each row


class Rate(NamedTuple):
    """The learning rate of a range of centers: alpha + slope * (position - origin) at a position of the corpus."""

    alpha: float
    slope: float
    origin: int


class HotRows(NamedTuple):
    """The copies of the hottest rows, the most used ones, that one thread trains instead of the rows.

    A flush adds their changes to the rows.

    Parameters
    ----------
    rows
        Number of rows copied, the first of each table; 0 where a thread works alone.
    source, output
        How many rows behind its original each copy lies, in the input and the output table; 0 for a table without
        copies.
    flush
        Centers that the thread trains between two flushes.
    """

    rows: int
    source: int
    output: int
    flush: int


class Tables(NamedTuple):
    """The tables that one thread trains.

    Parameters
    ----------
    source, output
        Flat tables of rows padded to `width` floats, float32: the words' vectors, and what they are trained against.
        Copies of hot rows follow the rows.
    width
        Row length in floats, a multiple of 16.
    hot
        The thread's copies of hot rows.
    frozen
        Not 0 for each frozen row of the input table, shape (V,) uint8; of length 0 where no row is frozen.
    inputs
        The input row of each token of the segment, int32; of length 0 if that is the id of its word.
    """

    source: Float32Array
    output: Float32Array
    width: int
    hot: HotRows
    frozen: UInt8Array = NOT_FROZEN
    inputs: Int32Array = WORDS


class DeviceTables(NamedTuple):
    """The tables that the warps of a device train; arrays are in its memory.

    Parameters
    ----------
    source, output, width
        As in `Tables`.
    hot_rows
        Number of first rows of the input table of which no warp keeps a copy from window to window.
    max_in_flight
        Warps that train at the same time, at most.
    source_touched, output_touched
        The chance that a window touches each of the first rows of a table, float32; for buckets, the mean number of
        updates of the row by a batch. The rows end with the last one that `max_in_flight` warps would update too far.
        Infinite for rows that do not move.
    totals
        Number of examples and summed loss, to be added to, shape (2,) float64.
    stream
        The stream of the device in which kernels are launched.
    """

    source: Any
    output: Any
    width: int
    hot_rows: int
    max_in_flight: int
    source_touched: Any
    output_touched: Any
    totals: Any
    stream: Any


class MatrixColumns(NamedTuple):
    """Columns of the word-context matrix, for the words of a part.

    Parameters
    ----------
    contexts
        Id of a context of each word for each column, shape (words, columns) int32; -1 for a word without any.
    row
        Id of the first word, a multiple of BATCH.
    first
        Index of the first column, counted over all epochs.
    alpha
        Learning rate.
    key
        Key of the stream from which negatives are drawn.
    """

    contexts: Int32Array
    row: int
    first: int
    alpha: float
    key: np.uint64


class PartTables(NamedTuple):
    """The tables for training a part of the words on columns.

    Parameters
    ----------
    trained
        Flat rows to train, padded to `width` floats, from the start of a batch to the end of the part, padded to
        complete batches, float32. With Adam, the moments of the part's rows follow.
    fixed
        Flat padded rows of all words in the other table, which is not trained, float32.
    width
        Row length in floats, a multiple of 16.
    trained_floats
        Number of floats of all rows of the part. A float's first moment lies this number of floats behind it, the
        second moment twice as far.
    """

    trained: Float32Array
    fixed: Float32Array
    width: int
    trained_floats: int


# Trains the centers first..last-1 of a segment in place: (segment, first, last, tables, rate, epoch, prepared) ->
# number of examples, pairs or windows, and their summed loss. `prepared` is the result of `Objective.prepare`. `tables`
# are `Tables`, or `DeviceTables` on a device with memory of its own: there `first` and `last` are arrays of one number
# in that memory, int64, and the trainer adds both sums to its `totals` and returns the number of its warps.
Trainer = Callable[[Segment, Any, Any, Any, Rate, int, Any], Any]

# Marks the rows that training the centers first..last-1 of a segment in an epoch may read:
# (prepared, segment, first, last, epoch, marks). `marks` has a bool for each row, by table.
MarkRows = Callable[[Any, Segment, int, int, int, Mapping[str, BoolArray]], None]

# Trains the batches first..last-1 of columns of the word-context matrix in place, and adds the losses of the
# part's words to `losses`: (columns, first, last, tables, prepared, losses)
ColumnTrainer = Callable[[MatrixColumns, int, int, PartTables, Any, Float32Array], None]

# Trains the bucket of two partitions in place: (bucket, tables, alpha, params, words, key) -> number of pairs and their
# summed loss. `words` is the result of `Objective.partition_table` for the output partition. `tables` are `Tables`, or
# `DeviceTables` on a device with memory of its own, where no other array is yet: there the trainer adds the loss to
# its `totals` and returns None.
BucketTrainer = Callable[[Bucket, Any, float, Params, Any, np.uint64], Any]


def initial_rows(params: Params, table: str, rows: RowIds) -> Float32Array:
    """Return the rows of a table before training, for the n numbers `rows`, shape (n, D) float32.

    Rows of "input" are small draws, rows of "output" zeros. The draws are from -4/D..4/D, where word2vec.c has
    -0.5/D..0.5/D and gensim -1/D..1/D: rows that begin nearly equal lose much of the first epoch.
    """
    if table == "output":
        return np.zeros((len(rows), params.vector_size), np.float32)
    return draw_rows(params, Purpose.INITIAL, rows)


def draw_rows(params: Params, purpose: Purpose, rows: RowIds) -> Float32Array:
    """Return draws from -4/D..4/D for the n numbers `rows`, shape (n, D) float32.

    They are a pure function of seed, purpose, row and column.
    """
    width, key = params.vector_size, stream(params.seed, purpose)
    values = np.empty((len(rows), width), np.float32)
    _draw_rows(key, np.ascontiguousarray(rows, np.int64), np.float32(8 / width), values)
    return values


@kernel
def _draw_rows(key: Any, rows: Any, span: Any, values: Any) -> None:
    """Write a draw of -span/2..span/2 for each of n rows and each column to `values`, shape (n, D)."""
    for i in range(len(rows)):
        first = np.uint64(rows[i]) * np.uint64(values.shape[1])
        for column in range(values.shape[1]):
            values[i, column] = (unit(draw(key, first + np.uint64(column))) - np.float32(0.5)) * span


def make_negatives_table(params: Params, counts: Int64Array) -> UInt64Array:
    """Return the alias table of a partition's negatives, uint64; it and `counts` have the shape (words,)."""
    return make_word_table(counts, NegativeSampling.of(params).ns_exponent)


def _not_measured(_: Params) -> None:
    """Return None, as the `cost` of an objective whose kernels were not measured."""


@dataclass(frozen=True, kw_only=True)
class Objective:
    """One training objective.

    Parameters
    ----------
    name
        As in Params.
    settings
        The class of its settings, of the same name.
    title
        The name in words, as a report shows it.
    alphas
        The initial learning rate for each optimizer that it has, its default optimizer first. They are used where
        Params leave the rate open, and were chosen by quality (benchmarks.quality, benchmarks.context_matrix).
    honours
        Fields of Params that it reads and not all objectives do (`honoured_by`), besides its settings.
    tables
        Function from the Params and the number of words to the number of rows of each table. All tables have
        vector_size columns; "input" holds the words' vectors, "output" the targets that they are trained against.
    initial
        Function from the Params, a table's name and n numbers of rows to these rows before training, shape (n, D)
        float32. It is pure, so that any worker can make any rows. By default `initial_rows`.
    prepare
        Function from the Params and the words' counts to the data that all kernels of a run read besides the tables.
    with_markets
        Function that adds the tables of markets to the result of `prepare`, given the words' counts and the number of
        each word's market, -1 without one, int32; for objectives that read `market_negative`.
    prepared_bytes
        Function from the Params and the number of words to the bytes of the result of `prepare`, by its parts.
    trainers
        By device, the function that trains a range of centers in place.
    bucket_trainers
        By device, the function that trains the bucket of two partitions in place; empty if there is none.
    partition_table
        Function from the Params and the counts of an output partition's words to the data that its buckets read besides
        its rows: at most two uint64 for each word. It is sent with the rows. By default the alias table of negatives.
    has_network
        Whether a network computes the input rows, as in `objectives.subwords`, so that these are not learned.
    check
        Function that raises an error if a process cannot train on a device, given PyTorch's name of it; for objectives
        that are not trained by kernels alone.
    touched
        Function from the result of `prepare` and the words' counts to the chance that a window touches each row, shape
        (rows,), by table; for objectives that are trained by windows: many at a time on a device, and replicas apart.
    curvature
        Function from the Params and the moments of each table's rows, weighted by `touched`, to the curvature of the
        loss along the rows of each table, shape (D, D) float64; for merges of replicas.
    targets_in_partition
        Function from the Params, the counts of an output partition's words, the sum of the counts of all words and the
        result of `partition_table` to the mean number of updates of each row by a batch of items (pairs), shape
        (rows,); for buckets on a device that trains many batches at a time.
    reached
        Function that marks the rows that training may read (`MarkRows`); without it replicas pull all rows.
    measured_by
        The objective whose kernel measures the loss on text, with the same tables; None for its own kernel.
    column_trainers
        By device, the function that trains columns of the word-context matrix in place; empty if there is none.
    tables_by_word
        The tables with a row for each word, whose rows can initialize a later model with another vocabulary.
    cost
        Function from the Params to the time of its kernels on a processor, as a multiple of that of sgns by default;
        None for kernels that were not measured, whose runs have no forecast (benchmarks.scale_model).
    max_replicas
        Number of replicas that "auto" takes at most: more lose quality, or were not measured (benchmarks.replicas).
    positions_per_merge
        Maximum number of corpus positions between two merges of the most frequent rows, where several replicas train
        several epochs, as measured; up to 256 merges an epoch. None for 64 an epoch, however long the text is.
    hot_rows
        Number of hot rows that all threads of a processor copy together, where Resources leave it open, as measured.
        Between two flushes the threads take the same steps on their copies; with too many, training diverges.
    flush_words
        Number of centers that all threads together train between two flushes of their copies, chosen likewise.
    """

    name: str
    settings: type[Choice]
    title: str
    alphas: Mapping[str, float]
    honours: tuple[str, ...] = ()
    tables: Callable[[Params, int], dict[str, int]]
    initial: Callable[[Params, str, RowIds], Float32Array] = initial_rows
    prepare: Callable[[Params, Int64Array], Any]
    with_markets: Callable[[Any, Int64Array, Int32Array], Any] | None = None
    prepared_bytes: Callable[[Params, int], Mapping[str, int]]
    trainers: Mapping[str, Trainer] = field(default_factory=dict)
    bucket_trainers: Mapping[str, BucketTrainer] = field(default_factory=dict)
    partition_table: Callable[[Params, Int64Array], UInt64Array] = make_negatives_table
    has_network: bool = False
    check: Callable[[str], None] | None = None
    column_trainers: Mapping[str, ColumnTrainer] = field(default_factory=dict)
    touched: Callable[[Any, Int64Array], dict[str, Float64Array]] | None = None
    curvature: Callable[[Params, Mapping[str, Moments]], dict[str, Float64Array]] = curvature_of_pairs
    targets_in_partition: Callable[[Params, Int64Array, int, UInt64Array], Float64Array] | None = None
    reached: MarkRows | None = None
    measured_by: "Objective | None" = None
    tables_by_word: tuple[str, ...] = ("input", "output")
    cost: Callable[[Params], float | None] = _not_measured
    max_replicas: int = 1
    positions_per_merge: int | None = None
    hot_rows: int = 254
    flush_words: int = 1024


def is_finite(rows: Float32Array) -> bool:
    """Return whether all numbers of rows, and the sum of their squares, are finite: else training has diverged."""
    return bool(np.isfinite(np.vdot(rows, rows)))
