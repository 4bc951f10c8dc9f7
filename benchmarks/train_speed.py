"""Training speed against gensim and fastText, in the same run on the same text, and against the processor.

Speed is in raw in-vocabulary corpus words per second, before subsampling. What is timed of ours is the whole task
that a worker runs (reading shards, subsampling, training, copying the model in and out), compiled before;
`benchmarks.peers` says what is timed of others, and `benchmarks.whole_runs` times all that a user waits for. By default
all contexts of a center share their negatives (`negative_sharing="shared"`), as pWord2Vec's do; `daskw2v, pair` draws
them for each pair, as word2vec.c, gensim and fastText do. Each line also has the ratios of words by a second of one
processor, which say more where others use the machine.

GFLOP/s counts the multiplications and additions that the updates are made of (see `count_operations`), and no others;
the peak is measured in the same run (`benchmarks.fma_peak`). Where the peak of two threads is not twice that of one,
others use the machine: then what two threads gain says nothing.

The peers take nearly all of the time: with all 100 MB some 40 minutes a setting. Choose with the options:

    python -m benchmarks.train_speed [--parts 10] [--times 3] [--objectives sgns cbow_ns] [--threads 1 2]
        [--settings "d=100 sample 1e-4" ...] [--tools daskw2v "daskw2v, pair" gensim fasttext] [--json]
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from benchmarks.common import alternate, finish, spread
from benchmarks.epochs import Epoch, our_epoch
from benchmarks.fma_peak import measure_peak
from benchmarks.options import Smoke, parsed
from benchmarks.peers import EPOCHS, KINDS, PAIR
from benchmarks.texts import Text, encode
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.objectives.registry import settled
from daskw2v.sampling.reader import SegmentReader
from daskw2v.sampling.segments import cut, keep_thresholds
from daskw2v.training.devices import threads_of
from daskw2v.vocabulary.huffman import huffman_tree
from tests.support.windows import count_contexts

SETTINGS = {
    "d=100 sample 1e-4": Params(vector_size=100, sample=1e-4),
    "d=128 sample off": Params(vector_size=128, sample=0),
    "d=300 sample 1e-4": Params(vector_size=300, sample=1e-4),
    "d=100 n-grams": Params(vector_size=100, sample=1e-4, maxn=6),  # as fastText: of 3 to 6, in 2,000,000 buckets
}
NGRAM_TOOLS = ("daskw2v", PAIR, "fasttext")  # gensim's Word2Vec has none
TOOLS = ("daskw2v", PAIR, *EPOCHS)


@dataclass(frozen=True)
class Row:
    """Medians; `gflops` and `share_of_peak` are known of daskw2v only."""

    objective: str
    setting: str
    threads: int
    tool: str
    words_per_second: float
    spread: str
    words_per_processor_second: float
    gflops: float | None = None
    share_of_peak: float | None = None


def count_operations(text: Text, params: Params) -> float:
    """Return the floating-point operations that an epoch needs, counted over its own windows.

    A target (the word and its negatives, or the nodes on the way to it) takes 6 * vector_size: its dot product, its
    own move, and what it adds to the move of the other side. Skip-gram meets all targets once for each context;
    CBOW once a window, and takes 2 * vector_size for each context, to add it up and to move it.
    """
    kind, counts = KINDS[params.objective], text.vocabulary.load().counts
    n_targets = np.diff(huffman_tree(counts).starts) if kind.tree else np.full(len(counts), 1 + params.negative)
    reader = SegmentReader(text.work, text.corpus, text.vocabulary)
    keep, key = keep_thresholds(counts, params.sample), stream(params.seed, Purpose.SUBSAMPLE)
    operations = 0
    for start, stop in cut(0, text.corpus.n_tokens):
        segment, _ = reader.read(start, stop, params.window, keep, key)
        centers = slice(*segment.centers(start, stop))
        contexts = count_contexts(segment, params)[centers]
        targets = n_targets[segment.tokens[centers]]
        if kind.skip_gram:
            operations += 6 * int(contexts @ targets)
        else:
            operations += 6 * int(targets[contexts > 0].sum()) + 2 * int(contexts.sum())
    return float(operations * params.vector_size)


def epoch_of(tool: str, text: Text, params: Params, threads: int) -> Callable[[], Epoch]:
    """Return what trains an epoch by a tool."""
    if tool in EPOCHS:
        return EPOCHS[tool](text.path, text.vocabulary, params, threads)
    shared = params.replace(negative_sharing="pair") if tool == PAIR else params
    return our_epoch(text, shared, threads_of(threads, Resources()))


def compare(text: Text, objective: str, setting: str, threads: int, tools: Sequence[str], times: int) -> list[Row]:
    """Measure all tools in turn."""
    params = settled(SETTINGS[setting].replace(objective=objective))
    runs: dict[str, Callable[[], Any]] = {"peak": partial(measure_peak, threads)}
    for tool in tools:
        if params.maxn and tool not in NGRAM_TOOLS:
            continue
        if tool != PAIR or not KINDS[objective].tree:  # a tree has no negatives
            runs[tool] = epoch_of(tool, text, params, threads)
    results = alternate(runs, times)
    peak = max(results.pop("peak"))
    operations = count_operations(text, params) / text.vocabulary.total  # a word; whoever shares its negatives
    rows = []
    for tool, epochs in results.items():
        speeds = [epoch.speed for epoch in epochs]
        speed, economy = statistics.median(speeds), statistics.median(epoch.economy for epoch in epochs)
        gflops = operations * speed / 1e9 if tool not in EPOCHS else None
        share = gflops / peak if gflops is not None else None
        rows.append(Row(objective, setting, threads, tool, speed, spread(speeds), economy, gflops, share))
    return rows


def report(rows: Sequence[Row], out: TextIO) -> None:
    """Print a line: million words/s of each tool, and how many times its speed ours is, by processor time too."""
    ours, parts = rows[0], []
    for row in rows:
        part = f"{row.tool} {row.words_per_second / 1e6:.3f} ({row.spread})"
        if row.gflops is not None and row.share_of_peak is not None:
            part += f" at {row.gflops:.1f} GFLOP/s, {row.share_of_peak:.0%} of {row.gflops / row.share_of_peak:.0f}"
        if row is not ours:
            by_processor = ours.words_per_processor_second / row.words_per_processor_second
            part += f" {ours.words_per_second / row.words_per_second:.1f}x ({by_processor:.1f}x by processor time)"
        parts.append(part)
    print(
        f"{ours.objective}, {ours.setting}, {ours.threads} thread(s), million words/s: {'; '.join(parts)}",
        file=out, flush=True,
    )  # fmt: skip


def report_threads(rows: Sequence[Row], out: TextIO) -> None:
    """Print what more threads gain of ours, for each objective and setting."""
    speeds = {(r.objective, r.setting, r.threads): r.words_per_second for r in rows if r.tool == "daskw2v"}
    for (objective, setting, threads), speed in speeds.items():
        one = speeds.get((objective, setting, 1))
        if threads > 1 and one is not None:
            print(f"{objective}, {setting}: {threads} threads are {speed / one:.2f}x one", file=out)


SMOKE = Smoke(
    {"parts": 0.05, "times": 1, "settings": ["d=100 sample 1e-4"]},
    (*KINDS, *TOOLS),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=float, default=10, help="tenths of the 100 MB corpus")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--objectives", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=[next(iter(SETTINGS))])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))
    options = parsed(parser, SMOKE)
    out, rows = sys.stderr if options.json else sys.stdout, []
    with tempfile.TemporaryDirectory() as folder:
        text = encode(Path(folder), options.parts)
        for objective in options.objectives:
            for setting in options.settings:
                for threads in options.threads:
                    found = compare(text, objective, setting, threads, options.tools, options.times)
                    report(found, out)
                    rows += found
    report_threads(rows, out)
    finish(rows, out, as_json=options.json)


if __name__ == "__main__":
    main()
