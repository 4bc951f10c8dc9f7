"""W2V-CL (Li et al. 2019) beside its baselines, on 100 MB of Wikipedia and one core.

With the paper's settings (section 5.1): words of 50 or more occurrences, windows of 2 words each way, 5 negatives.
Where not said, cost is processor time of one core, and scores are means over --seeds beside their extremes.

    python -m benchmarks.context_matrix [--tables heaps size contexts quality losses speed subwords imitation]
        [--parts 10] [--vector-size 500] [--epochs 1] [--seeds 1] [--sample 0] [--as-paper]
        [--times 3] [--cache DIR] [--json]
        heaps (figure 8): words by size of the text, and Heaps' law
        size (figure 14): quality and cost by columns of the matrix: [--context-sizes 256 ...] [--samples 0 1e-4]
        contexts (section 5.5): which change closes the gap to plain minibatches without subsampling:
            [--context-size 4096] [--alphas 0.005]
        quality (figure 15): W2V-CL, W2V-Vanilla, SGNS on all sets that the paper judges by, and what they cost:
            [--context-size 4096] [--alphas 0.0025 0.005] [--classifier cnn] [--texts stsa custrev]
        losses (figures 16, 17): mean and variance of the loss of frequent and of rare words: [--context-size 4096]
        speed (figure 18): words/s of one worker and of two, quality of each gather_every, and a model of more workers:
            [--gathers 4 16 64 256] [--time-columns 1024] [--context-size 4096]
        subwords (figures 20, 21): words made of their characters, which need PyTorch: quality, words/s, and
            neighbours of words that are not in the text: [--subword-columns 4096] [--subword-size 100]
            [--subword-pairs 5000000]
        imitation (of section 5.8): what the network learns where it is shown the rows themselves, on words of the text
            and on held-out ones: [--held 2000] [--imitation-epochs 8 32]

All of it takes more than an hour: some 15 minutes for size, 10 for contexts, 20 for quality, 10 for losses, 15 for
speed and 12 for subwords; with --vector-size 100 and --parts 3 a tenth of that. What --cache holds is not trained
again, but words of characters are, for their neighbours; losses and times are always taken anew.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import get_args

from benchmarks.common import finish
from benchmarks.context_matrix.contexts import contexts
from benchmarks.context_matrix.heaps import heaps
from benchmarks.context_matrix.imitation import imitation
from benchmarks.context_matrix.losses import losses
from benchmarks.context_matrix.quality import quality
from benchmarks.context_matrix.size import size
from benchmarks.context_matrix.speed import speed
from benchmarks.context_matrix.subwords import subwords
from benchmarks.context_matrix.training import Lab, Setting, lab_of
from benchmarks.judges import TEXTS, judge_of
from benchmarks.options import Smoke, parsed
from benchmarks.papers.session import Session
from daskw2v.evaluation.classification import ClassificationMethod

TABLES: dict[str, Callable[[Session, Setting, Lab], None]] = {
    "heaps": heaps,
    "size": size,
    "contexts": contexts,
    "quality": quality,
    "losses": losses,
    "speed": speed,
    "subwords": subwords,
    "imitation": imitation,
}


# `benchmarks.papers 002` makes the other tables, small
SMOKE = Smoke(
    {
        "tables": ["heaps", "imitation"], "parts": 0.3, "vector_size": 16, "context_size": 64, "held": 50,
        "imitation_epochs": [1], "subword_columns": 64, "subword_size": 16, "times": 1,
    },
    ("Figure 8", "Heaps", "Section 5.8: what a network"),
)  # fmt: skip


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--parts", type=float, default=10, help="tenths of the 100 MB corpus")
    parser.add_argument("--vector-size", type=int, default=Setting.vector_size)
    parser.add_argument("--epochs", type=int, default=Setting.epochs, help="over the matrix, or over the text")
    parser.add_argument("--seeds", type=int, nargs="+", default=Setting.seeds)
    parser.add_argument("--sample", type=float, default=Setting.sample, help="where no table tries --samples")
    parser.add_argument("--as-paper", action="store_true", help="train the matrix by the paper's updates, not by ours")
    parser.add_argument("--samples", type=float, nargs="+", default=Setting.samples, help="size: subsampling to try")
    parser.add_argument("--context-sizes", type=int, nargs="+", default=Setting.context_sizes, help="size: columns")
    parser.add_argument("--context-size", type=int, default=Setting.context_size, help="columns in all other tables")
    parser.add_argument("--batch", type=int, default=Setting.batch, help="pairs of W2V-Vanilla")
    parser.add_argument("--alphas", type=float, nargs="*", default=Setting.alphas, help="of its lazy Adam")
    parser.add_argument("--gathers", type=int, nargs="+", default=Setting.gathers, help="speed: gather_every")
    parser.add_argument("--time-columns", type=int, default=Setting.time_columns, help="speed: where time is taken")
    parser.add_argument("--subword-columns", type=int, default=Setting.subword_columns)
    parser.add_argument("--subword-size", type=int, default=Setting.subword_size, help="vector size")
    parser.add_argument("--subword-pairs", type=int, default=Setting.subword_pairs, help="of W2V-Vanilla with subwords")
    parser.add_argument("--subword-time-columns", type=int, default=Setting.subword_time_columns)
    parser.add_argument("--held", type=int, default=Setting.held, help="imitation: words held out of the text")
    parser.add_argument("--imitation-epochs", type=int, nargs="+", default=Setting.imitation_epochs, help="over rows")
    parser.add_argument(
        "--classifier", choices=get_args(ClassificationMethod), default="logistic", help="quality: of texts"
    )
    parser.add_argument("--texts", nargs="+", choices=TEXTS, default=[*TEXTS], help="quality: sets of texts to label")
    parser.add_argument("--times", type=int, default=3, help="runs of each, where time is taken")
    parser.add_argument("--cache", type=Path, help="folder that keeps the scores, so that a run can go on")
    return parsed(parser, SMOKE)


def setting_of(options: argparse.Namespace) -> Setting:
    values = {name: value for name, value in vars(options).items() if name in Setting.__dataclass_fields__}
    return Setting(judge=judge_of(options.classifier, options.texts), **values)


def main() -> None:
    options = parse()
    with tempfile.TemporaryDirectory() as name:
        session = Session(options, Path(name), sys.stderr if options.json else sys.stdout, number="002")
        with lab_of(session, options.parts) as lab:
            for table in options.tables:
                TABLES[table](session, setting_of(options), lab)
    finish([row for table in session.tables for row in table.rows], session.out, as_json=options.json)


if __name__ == "__main__":
    main()
