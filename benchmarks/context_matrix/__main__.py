"""W2V-CL (Li et al. 2019) beside its baselines, with the paper's settings, on one core.

Words of 50 or more occurrences, windows of 2 words each way, 5 negatives (section 5.1). Where not said, cost is
processor time of one core, and scores are means over --seeds with their extremes. `benchmarks.papers 002` prints the
same tables made small.

    python -m benchmarks.context_matrix [--tables batches words size contexts quality losses speed ...]
        [--parts 10] [--vector-size 500] [--epochs 1] [--min-count 50] [--seeds 1] [--sample 0] [--as-paper] [--times 3]
        [--cache DIR]
        batches (figures 4, 13): W2V-Vanilla's memory and quality by size of its batches
        words (figure 8): words by length of text, and Heaps' law
        size (figure 14): quality and cost by columns of the matrix: [--context-sizes 256 ...]
        contexts (section 5.5): which change closes the gap to plain minibatches without subsampling
        quality (figure 15): W2V-CL, W2V-Vanilla, SGNS on all sets that the paper judges by, and what they cost:
            [--classifier cnn] [--texts stsa custrev]
        losses (figures 16, 17): losses of frequent and of rare words while they are trained
        speed (figure 18): words/s of one worker and of two, quality of each gather_every: [--time-columns 512]
        subwords (figures 20, 21): the same of words made of their characters, which need PyTorch
        network (figure 20): words by the network of characters, by the matrix and by W2V-Vanilla: [--network-parts 1]
        all with the matrix: [--context-size 4096]; all with lazy Adam: [--alphas 0.0025 0.005]

All of it takes some three hours: 40 minutes for batches (an estimate), 15 for size, an hour for contexts, 20 for
quality, 10 for losses, 15 for speed, 12 for subwords, and 5 for network, more with more text; with --vector-size 100
and --parts 3 a tenth of that. What --cache holds is not trained again, but times are always taken anew.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from benchmarks.context_matrix.curves import HEAPS, batches, losses, words
from benchmarks.context_matrix.lab import PEERS, Lab, Setting, lab_of
from benchmarks.context_matrix.speed import SCALING, SPEED, SUBWORDS, speed, subwords
from benchmarks.context_matrix.tables import SAID, contexts, network, quality, size
from benchmarks.harness import Benchmark, Smoke
from benchmarks.judges import TEXTS, judge_of
from benchmarks.papers.session import Session
from benchmarks.texts import name_of
from daskw2v.evaluation.classification import ClassificationMethod

FIGURES = (HEAPS, *SAID, SPEED, SCALING, SUBWORDS)
TABLES: dict[str, Callable[[Session, Setting, Lab], None]] = {
    "batches": batches,
    "words": words,
    "size": size,
    "contexts": contexts,
    "quality": quality,
    "losses": losses,
    "speed": speed,
    "subwords": subwords,
    "network": network,
}


def measure(session: Session) -> None:
    options = session.options
    session.number, session.text, session.peers = "002", name_of(options.parts), PEERS
    fields = {name: value for name, value in vars(options).items() if name in Setting.__dataclass_fields__}
    setting = Setting(judge=judge_of(options.classifier, options.texts), **fields)
    with lab_of(session, options.parts, options.min_count) as lab:
        for table in options.tables:
            TABLES[table](session, setting, lab)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--parts", type=float, default=10, help="of 10 MB")
    parser.add_argument("--epochs", type=int, default=Setting.epochs, help="over the matrix, or over the text")
    parser.add_argument("--min-count", type=int, default=Setting.min_count)
    parser.add_argument("--seeds", type=int, nargs="+", default=Setting.seeds)
    parser.add_argument("--sample", type=float, default=Setting.sample)
    parser.add_argument("--as-paper", action="store_true", help="train the matrix by the paper's updates, not by ours")
    parser.add_argument("--vector-size", type=int, default=Setting.vector_size)
    parser.add_argument("--context-size", type=int, default=Setting.context_size, help="columns of the matrix")
    parser.add_argument("--context-sizes", type=int, nargs="+", default=Setting.context_sizes, help="of figure 14")
    parser.add_argument("--alphas", type=float, nargs="+", default=Setting.alphas, help="of lazy Adam")
    parser.add_argument("--network-parts", type=float, default=Setting.network_parts, help="of 10 MB, of networks")
    parser.add_argument("--classifier", choices=get_args(ClassificationMethod), default="logistic", help="of texts")
    parser.add_argument("--texts", nargs="+", choices=TEXTS, default=[*TEXTS], help="sets of texts to label")
    parser.add_argument("--times", type=int, default=3, help="runs of each, where time is taken")
    parser.add_argument("--time-columns", type=int, default=Setting.time_columns, help="where time is taken")
    parser.add_argument("--cache", type=Path, help="folder that keeps the scores, so that a run can go on")


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/objectives", "daskw2v/sampling", "daskw2v/kernels", "daskw2v/training/columns"),
    # `benchmarks.papers 002` makes the other tables, small
    Smoke(
        {"tables": ["contexts"], "parts": 0.3, "vector_size": 16, "context_size": 64, "alphas": [0.005]},
        ("W2V-Vanilla, Adam", "W2V-CL, contexts thinned"),
    ),
    add_arguments,
    measure,
    Session,
)

if __name__ == "__main__":
    BENCHMARK.main()
