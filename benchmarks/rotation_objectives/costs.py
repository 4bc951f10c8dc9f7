"""What a window takes in the kernels of buckets, in processor time, against the kernel for whole windows."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from benchmarks.common import alternate, spread
from benchmarks.rotation_objectives.emulation import Emulation, splits_of
from benchmarks.stopwatch import stopwatch
from benchmarks.texts import Text
from daskw2v.config.params import Params
from daskw2v.kernels.simd import huge_zeros, padded
from daskw2v.objectives.base import HotRows, Objective, Rate, Tables
from daskw2v.objectives.registry import find_bucket_trainer, find_objective, find_trainer, settled, start_alpha
from daskw2v.sampling.dealing import WindowSize, deal_pairs
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import Segment
from daskw2v.sampling.skipgrams import Bucket
from daskw2v.sampling.text import read_text
from daskw2v.training.rotation.pass_schedule import RotationPasses
from daskw2v.types import Float32Array, Int64Array
from daskw2v.vocabulary.partition import Partitions

ONE, PAIRS = "one worker", "rotation"


@dataclass(frozen=True)
class Cost:
    """Medians of a window, in nanoseconds of a processor: of the kernel, and of dealing pairs into buckets.

    `relative` is the kernel's time over that of the first row of the objective. A window has so many parts, each with
    so many contexts, and `sent` bytes of vectors go to other workers for it, beside the partitions.
    """

    objective: str
    variant: str
    partitions: int
    parts: float
    contexts: float
    kernel_ns: float
    spread: str
    relative: float
    deal_ns: float
    sent: float


class Ran(NamedTuple):
    """A run of a kernel: windows, parts of them, contexts, bytes sent, and seconds."""

    windows: int
    parts: int
    contexts: int
    sent: int
    seconds: float


class Kernel:
    """A way to train the windows of a pass, and the nanoseconds that dealing one takes."""

    def __init__(self, run: Callable[[], Ran], deal_ns: float = 0.0) -> None:
        self._run, self.deal_ns = run, deal_ns
        self.last = Ran(1, 1, 1, 0, 0.0)

    def __call__(self) -> float:
        self.last = self._run()
        return 1e9 * self.last.seconds / self.last.windows


class _Pass(NamedTuple):
    """The text of the first pass, and what trains it."""

    segment: Segment
    stop: int
    windows: WindowSize
    n_windows: int
    kind: Objective
    params: Params
    counts: Int64Array

    def rows(self, table: str, words: Int64Array) -> Float32Array:
        """Return the first rows of some words, flat and padded."""
        width = padded(self.params.vector_size)
        rows = huge_zeros(len(words) * width)
        rows.reshape(-1, width)[:, : self.params.vector_size] = self.kind.initial(self.params, table, words)
        return rows

    def tables(self, source: Float32Array, output: Float32Array) -> Tables:
        return Tables(source, output, padded(self.params.vector_size), HotRows(0, 0, 0, 1))


def _read(objective: str, text: Text) -> _Pass:
    params = settled(Params(objective=objective, strategy="rotation"))
    whole = RotationPasses(params, text.corpus.n_tokens)[0]
    run = Run(text.work, text.corpus.name, text.vocabulary, params, "cpu")
    segment, _, windows = read_text(run, 0, whole.start, whole.stop)
    n_windows = int(np.searchsorted(segment.positions, whole.stop))
    counts = text.vocabulary.load().counts
    return _Pass(segment, whole.stop, windows, n_windows, find_objective(objective), params, counts)


def _windows(this: _Pass) -> Kernel:
    """Return the kernel of whole windows, as averaging has it."""
    words = np.arange(len(this.counts))
    memory = this.tables(this.rows("input", words), this.rows("output", words))
    prepared, trainer = this.kind.prepare(this.params, this.counts), find_trainer(this.kind, "cpu")
    rate = Rate(start_alpha(this.params), 0.0, 0)

    def run() -> Ran:
        took = stopwatch()
        trainer(this.segment, 0, this.n_windows, memory, rate, 0, prepared)
        return Ran(this.n_windows, this.n_windows, 0, 0, took().processor_seconds)

    return Kernel(run)


def _pairs(this: _Pass, p: int) -> Kernel:
    """Return the kernel of buckets of pairs, as rotation has it."""
    partitions = Partitions(len(this.counts), p)
    dealt = deal_pairs(this.segment, 0, this.stop, this.windows, partitions)
    own = [partitions.words(k) for k in range(p)]
    sources, outputs = ([this.rows(name, words) for words in own] for name in ("input", "output"))
    others = [this.kind.partition_table(this.params, this.counts[words]) for words in own]
    train, alpha = find_bucket_trainer(this.kind, "cpu"), start_alpha(this.params)

    def run() -> Ran:
        took = stopwatch()
        for bucket in range(p * p):
            j, i = divmod(bucket, p)
            pairs = dealt.entries[dealt.edges[bucket] : dealt.edges[bucket + 1]]
            memory = this.tables(sources[i], outputs[j])
            train(Bucket(pairs, pairs[:0]), memory, alpha, this.params, others[j], np.uint64(bucket))
        n = len(dealt.entries)
        return Ran(this.n_windows, n, n, 0, took().processor_seconds)

    return Kernel(run, _deal_ns(this, p))


def _deal_ns(this: _Pass, p: int) -> float:
    """Return the nanoseconds that dealing the pairs of a window takes."""
    for _ in range(2):  # the first time compiles
        took = stopwatch()
        deal_pairs(this.segment, 0, this.stop, this.windows, Partitions(len(this.counts), p))
        seconds = took().processor_seconds
    return 1e9 * seconds / this.n_windows


def _parts(emulation: Emulation) -> Ran:
    done = emulation.train(0)
    return Ran(done.windows, done.parts, done.contexts, done.sent, done.seconds)


def costs(objective: str, text: Text, partitions: Sequence[int], splits: Sequence[str], times: int) -> list[Cost]:
    """Train the first pass by all kernels in turn; return a row for each."""
    this = _read(objective, text)
    kernels: dict[tuple[str, int], Kernel] = {(ONE, 1): _windows(this)}
    for p in partitions:
        if this.kind.bucket_trainers:
            kernels[PAIRS, p] = _pairs(this, p)
            continue
        for split in splits_of(this.kind, splits):
            emulation = Emulation(text, this.params.replace(n_partitions=p), split)
            kernels[split, p] = Kernel(partial(_parts, emulation), _deal_ns(this, p))
    return _compared(objective, kernels, times)


def _compared(objective: str, kernels: Mapping[tuple[str, int], Kernel], times: int) -> list[Cost]:
    names = {f"{name}|{p}": kernel for (name, p), kernel in kernels.items()}
    for kernel in names.values():
        kernel()  # compiles
    measured, rows = alternate(names, times), []
    first = statistics.median(measured[f"{ONE}|1"])
    for (name, p), kernel in kernels.items():
        values, last = measured[f"{name}|{p}"], kernel.last
        middle, parts = statistics.median(values), last.parts / last.windows
        contexts, sent = last.contexts / last.parts, last.sent / last.windows
        rows.append(
            Cost(objective, name, p, parts, contexts, middle, spread(values), middle / first, kernel.deal_ns, sent)
        )
    return rows
