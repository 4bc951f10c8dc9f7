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
        [--settings "d=100 sample 1e-4" ...] [--tools daskw2v "daskw2v, pair" gensim fasttext]
"""

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.epochs import Epoch, our_epoch
from benchmarks.fma_peak import measure_peak
from benchmarks.harness import Benchmark, Session, Smoke, alternate
from benchmarks.peers import ABOUT, EPOCHS, KINDS, PAIR
from benchmarks.tables import Spread, Table
from benchmarks.texts import Text, encode, name_of
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.errors import counted
from daskw2v.features.settings import has_features
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.objectives.registry import settle_params
from daskw2v.sampling.reader import SegmentReader
from daskw2v.sampling.segments import cut_range, keep_thresholds
from daskw2v.training.devices import Threads
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


COLUMNS = ("M words/s", "ours / its", "the same by processor time", "GFLOP/s", "of the processor's peak")


def count_operations(text: Text, params: Params) -> float:
    """Return the floating-point operations that an epoch needs, counted over its own windows.

    A target (the word and its negatives, or the nodes on the way to it) takes 6 * vector_size: its dot product, its
    own move, and what it adds to the move of the other side. Skip-gram meets all targets once for each context;
    CBOW once a window, and takes 2 * vector_size for each context, to add it up and to move it.
    """
    kind, counts = KINDS[params.objective.name], text.vocabulary.load().counts
    negative = params.flat().get("negative", 0)
    n_targets = np.diff(huffman_tree(counts).starts) if kind.tree else np.full(len(counts), 1 + negative)
    reader = SegmentReader(text.work, text.corpus, text.vocabulary)
    keep, key = keep_thresholds(counts, params.sample), stream(params.seed, Purpose.SUBSAMPLE)
    operations = 0
    for start, stop in cut_range(0, text.corpus.n_tokens):
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
    return our_epoch(text, shared, Threads(threads, Resources().device))


def compare(table: Table, text: Text, objective: str, setting: str, threads: int, options: argparse.Namespace) -> None:
    """Measure all tools in turn; print a row for each."""
    params = settle_params(SETTINGS[setting].replace(objective=objective))
    runs: dict[str, Callable[[], Any]] = {"peak": partial(measure_peak, threads)}
    for tool in options.tools:
        if has_features(params) and tool not in NGRAM_TOOLS:
            continue
        if tool != PAIR or not KINDS[objective].tree:  # a tree has no negatives
            runs[tool] = epoch_of(tool, text, params, threads)
    results = alternate(runs, options.times)
    peak = max(results.pop("peak"))
    operations = count_operations(text, params) / text.vocabulary.total  # a word; whoever shares its negatives
    speed = {tool: Spread.of(epoch.speed / 1e6 for epoch in epochs) for tool, epochs in results.items()}
    economy = {tool: Spread.of(epoch.economy for epoch in epochs).middle for tool, epochs in results.items()}
    first = next(iter(speed))
    for tool, mine in speed.items():
        gflops = operations * mine.middle / 1e3 if tool not in EPOCHS else None
        table.row(
            f"{objective}, {setting}, {counted(threads, 'thread')}, {tool}",
            mine,
            None if tool == first else speed[first].middle / mine.middle,
            None if tool == first else economy[first] / economy[tool],
            gflops,
            gflops and f"{gflops / peak:.0%} of {peak:.0f}",
        )


def measure(session: Session) -> None:
    options = session.options
    session.text, session.peers = name_of(options.parts), {tool: ABOUT[tool] for tool in options.tools if tool in ABOUT}
    text = encode(session.folder, options.parts)
    table = session.table("Training speed", COLUMNS, ".2f")
    for objective in options.objectives:
        for setting in options.settings:
            for threads in options.threads:
                compare(table, text, objective, setting, threads, options)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", type=float, default=10, help="of 10 MB")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--objectives", nargs="+", choices=KINDS, default=list(KINDS))
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=[next(iter(SETTINGS))])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/objectives", "daskw2v/sampling", "daskw2v/kernels"),
    Smoke({"parts": 0.05, "times": 1}, (*KINDS, *TOOLS)),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
