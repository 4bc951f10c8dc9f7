"""The kernel for buckets of pairs against the kernel for windows, in pairs/s, by the number of partitions.

Both train the same subsampled text on one thread, in memory, from the same first rows; a run of buckets is one pass
over all of them, in the order of strategy `rotation`. Negatives are drawn from the center's partition (TNS); one number
of partitions is trained with noise from all of them too (SNS, BNS). Dealing pairs, and their noise, into buckets is
timed as well. The loss, of a pair with its negatives, says that all learn: with TNS it is that of negatives from the
center's own partition.

    python -m benchmarks.buckets [--partitions 1 8 32 64] [--noise 8] [--size 100] [--words 3000000] [--parts 10]
        [--times 3] [--json]
"""

import argparse
import itertools
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.common import alternate, finish, spread
from benchmarks.kernel_steps import read
from benchmarks.options import Smoke, parsed
from daskw2v.config.params import Params
from daskw2v.kernels.alias import alias_table
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.kernels.simd import huge_zeros, padded
from daskw2v.objectives.base import HotRows, Rate, Tables
from daskw2v.objectives.registry import find_objective, find_trainer, start_alpha
from daskw2v.objectives.sgns.buckets.cpu import train_bucket
from daskw2v.sampling.dealing import Noise, WindowSize, deal_pairs
from daskw2v.sampling.hierarchy import BNS, SNS, TNS, split_negatives, word_table, word_weights
from daskw2v.sampling.pairs import Pairs
from daskw2v.sampling.segments import Segment
from daskw2v.training.rotation.pass_schedule import RotationPasses
from daskw2v.vocabulary.partition import Partitions

WINDOWS = "windows"
RULES = {TNS: "tns", SNS: "sns", BNS: "bns"}


@dataclass(frozen=True)
class Row:
    """A median; `deal_ns` is the time to deal a pair into its bucket, and `loss` that of a pair in the last run."""

    kernel: str
    pairs_per_second: float
    spread: str
    relative: float
    loss: float
    deal_ns: float | None = None


class Kernel:
    """A way to train the text: what it did last, and the seconds of it."""

    def __init__(self, run: Callable[[], tuple[int, float, float]], deal_ns: float | None = None) -> None:
        self._run, self.deal_ns, self.loss = run, deal_ns, 0.0

    def __call__(self) -> float:
        pairs, loss, seconds = self._run()
        self.loss = loss / pairs
        return pairs / seconds


def first_rows(params: Params, words: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
    """Return the first input rows of some words, flat and padded."""
    width = padded(params.vector_size)
    table = huge_zeros(len(words) * width)
    table.reshape(-1, width)[:, : params.vector_size] = find_objective("sgns").initial(params, "input", words)
    return table


def windows(params: Params, segment: Segment, counts: npt.NDArray[np.int64]) -> Kernel:
    objective, width, n = find_objective("sgns"), padded(params.vector_size), len(counts)
    source, output = first_rows(params, np.arange(n)), huge_zeros(n * width)
    memory, rate = Tables(source, output, width, HotRows(0, 0, 0, 1)), Rate(start_alpha(params), 0.0, 0)
    trainer, prepared = find_trainer(objective, "cpu"), objective.prepare(params, counts)

    def run() -> tuple[int, float, float]:
        began = time.perf_counter()
        pairs, loss = trainer(segment, 0, len(segment.tokens), memory, rate, 0, prepared)
        return pairs, loss, time.perf_counter() - began

    return Kernel(run)


def deal(params: Params, segment: Segment, partitions: Partitions, noise: Noise | None) -> list[Pairs]:
    """Return the buckets of pairs or of noise, one output partition after the other."""
    windows = WindowSize(params.window, params.shrink_windows, stream(params.seed, Purpose.WINDOW))
    dealt = deal_pairs(segment, 0, int(segment.positions[-1]) + 1, windows, partitions, noise)
    return [dealt.entries[a:b] for a, b in itertools.pairwise(dealt.edges)]


def buckets(params: Params, segment: Segment, counts: npt.NDArray[np.int64], p: int, rule: int) -> Kernel:
    partitions, width, none = Partitions(len(counts), p), padded(params.vector_size), np.empty(0, np.uint32)
    own = [partitions.words(k) for k in range(p)]
    sources = [first_rows(params, words) for words in own]
    outputs = [huge_zeros(len(words) * width) for words in own]
    tables = [word_table(counts[words], params.ns_exponent) for words in own]
    weights = [float(word_weights(counts[words], params.ns_exponent).sum()) for words in own]
    negative, each = split_negatives(rule, params.negative)
    how = Noise(rule, params.negative, alias_table(np.array(weights)), stream(params.seed, Purpose.PARTITION))
    for _ in range(2):  # the first time compiles
        began = time.perf_counter()
        pairs = deal(params, segment, partitions, None)
        noise = deal(params, segment, partitions, how) if each else [none] * p**2
        seconds = time.perf_counter() - began
    steps = RotationPasses(params.replace(n_partitions=p), len(segment.tokens)).steps(0)
    order = [pair for groups in steps for rounds in groups for one in rounds for pair in one.pairs]

    def run() -> tuple[int, float, float]:
        trained, loss, began = 0, 0.0, time.perf_counter()
        for i, j in order:
            bucket, key = j * p + i, stream(params.seed, Purpose.NEGATIVE, i * p + j)
            done = train_bucket(
                pairs[bucket], noise[bucket], sources[i], outputs[j], width, start_alpha(params), negative, each,
                tables[j], key,
            )  # fmt: skip
            trained, loss = trained + done[0], loss + done[1]
        return trained, loss, time.perf_counter() - began

    return Kernel(run, seconds * 1e9 / sum(map(len, pairs)))


SMOKE = Smoke(
    {"partitions": [1, 2], "noise": [2], "words": 50_000, "parts": 0.1, "times": 1},
    (WINDOWS, *RULES.values()),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, nargs="+", default=[1, 8, 32, 64])
    parser.add_argument("--noise", type=int, nargs="*", default=[8], help="partitions that are trained by all rules")
    parser.add_argument("--size", type=int, default=100, help="vector_size")
    parser.add_argument("--words", type=int, default=3_000_000, help="of the text, that are trained")
    parser.add_argument("--parts", type=float, default=10, help="tenths of the 100 MB corpus that give the vocabulary")
    parser.add_argument("--times", type=int, default=3)
    options = parsed(parser, SMOKE)
    out = sys.stderr if options.json else sys.stdout
    params = Params(vector_size=options.size)
    segment, counts, _ = read(params, options.parts, options.words)
    kernels = {WINDOWS: windows(params, segment, counts)}
    variants = [(p, TNS) for p in options.partitions] + [(p, rule) for p in options.noise for rule in (SNS, BNS)]
    kernels |= {f"{p} partitions, {RULES[rule]}": buckets(params, segment, counts, p, rule) for p, rule in variants}
    for kernel in kernels.values():
        kernel()  # compiles
    speeds = alternate(kernels, options.times)
    middles = {name: statistics.median(values) for name, values in speeds.items()}
    rows = [
        Row(name, middle, spread(speeds[name]), middle / middles[WINDOWS], kernels[name].loss, kernels[name].deal_ns)
        for name, middle in middles.items()
    ]
    for row in rows:
        dealt = "" if row.deal_ns is None else f", dealt in {row.deal_ns:.0f} ns a pair"
        print(
            f"{row.kernel}: {row.pairs_per_second / 1e6:.2f} million pairs/s ({row.spread}), {row.relative:.2f} of "
            f"{WINDOWS}, loss {row.loss:.3f}{dealt}",
            file=out,
        )
    finish(rows, out, as_json=options.json)


if __name__ == "__main__":
    main()
