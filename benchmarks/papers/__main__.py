"""The tables of the five papers, each beside what is measured here.

    python -m benchmarks.papers [000] [001] [002] [003] [004]
        [--parts 10] [--time-parts 3] [--times 3] [--threads 1 2] [--epochs 5] [--seeds 1 2 3]
        [--tools gensim fasttext] [--cache DIR]
        001: [--workers 1 2 4 8] [--rules sequential mean]
        002: [--classifier cnn] [--texts stsa custrev] [--vector-size 100]
        003: [--partitions 8 64 350]

All five take about an hour on two cores; each module says what its paper takes, and what more there is by options. What
--cache holds is not trained again: with it, a run goes on where it was stopped (`benchmarks.quality`). Times are always
taken anew. The paper's figures are of its own hardware and corpus, named below its title.
"""

import argparse
from pathlib import Path
from typing import get_args

from benchmarks.context_matrix.lab import PEERS
from benchmarks.harness import Benchmark, Smoke
from benchmarks.judges import TEXTS
from benchmarks.papers import blazingtext, cythnn, full_w2v, negative_sampling, w2v_cl
from benchmarks.papers.session import Session
from benchmarks.peers import ABOUT
from benchmarks.texts import name_of
from daskw2v.evaluation.classification import ClassificationMethod
from daskw2v.training.averaging.merge import MERGE_RULES

PAPERS = {"000": cythnn, "001": blazingtext, "002": w2v_cl, "003": negative_sampling, "004": full_w2v}


def number_of(text: str) -> str:
    """Return a paper's number; argparse's own `choices` refuse a default that is a list."""
    if text not in PAPERS:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(PAPERS)}")
    return text


def measure(session: Session) -> None:
    options = session.options
    session.text = f"{name_of(options.parts)} where vectors are judged, {name_of(options.time_parts)} for times"
    session.peers = {**ABOUT, **(PEERS if "002" in options.papers else {})}
    for number in options.papers:
        session.begin(number, PAPERS[number].PAPER)
        PAPERS[number].run(session)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("papers", nargs="*", type=number_of, metavar="PAPER", default=list(PAPERS), help="all if none")
    parser.add_argument("--parts", type=float, default=10, help="of 10 MB, where vectors are judged")
    parser.add_argument("--time-parts", type=float, default=3, help="of 10 MB, where time is taken")
    parser.add_argument("--times", type=int, default=3, help="runs of each, where time is taken")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="where time is taken")
    parser.add_argument("--epochs", type=int, default=5, help="of vectors that are judged")
    parser.add_argument("--seeds", type=int, nargs="+", help="of judged vectors; each paper has its own default")
    parser.add_argument("--tools", nargs="*", choices=ABOUT, default=["fasttext"], help="what runs beside ours")
    parser.add_argument("--workers", type=int, nargs="+", default=blazingtext.WORKERS, help="001: replicas")
    parser.add_argument("--rules", nargs="+", choices=MERGE_RULES, default=blazingtext.RULES, help="001: of merging")
    parser.add_argument("--classifier", choices=get_args(ClassificationMethod), default="logistic", help="002")
    parser.add_argument("--texts", nargs="+", choices=TEXTS, default=[*TEXTS], help="002: sets of texts to label")
    parser.add_argument("--vector-size", type=int, default=100, help="002: figures 14 to 21")
    parser.add_argument("--partitions", type=int, nargs="+", default=[8], help="003: numbers of partitions")
    parser.add_argument("--cache", type=Path, help="folder that keeps the scores, so that a run can go on")


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/objectives", "daskw2v/sampling", "daskw2v/kernels", "daskw2v/training"),
    Smoke(
        {
            "parts": 0.2,
            "time_parts": 0.1,
            "times": 1,
            "epochs": 1,
            "seeds": [1],
            "tools": [*ABOUT],
            "workers": [1, 2],
            "vector_size": 16,
            "partitions": [4, 16],
            "texts": ["stsa", "custrev"],
        },
        ("paper",),
        tuple((number,) for number in PAPERS),
    ),
    add_arguments,
    measure,
    Session,
)

if __name__ == "__main__":
    BENCHMARK.main()
