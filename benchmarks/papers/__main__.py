"""The tables of the five papers, each beside what is measured here, as Markdown; rows are printed as they are known.

    python -m benchmarks.papers [000] [001] [002] [003] [004]
        [--parts 10] [--time-parts 3] [--times 3] [--threads 1 2] [--epochs 5] [--seeds 1 2 3]
        [--tools gensim fasttext] [--cache DIR] [--rows FILE] [--json]
        001: [--workers 1 2 4 8] [--rules momentum mean touched]
        002: [--classifier cnn] [--texts stsa custrev] [--vector-size 100]
        003: [--partitions 8] [--constants FILE] [--passes 8] [--table-rows 1048576]

All five take about an hour on two cores; each module says what its paper takes, and what more there is by options. What
--cache holds is not trained again: with it, a run goes on where it was stopped (`benchmarks.quality`). Times are always
taken anew. The paper's figures are of its own hardware and corpus, named below its title.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from typing import get_args

from benchmarks.calibration import TABLE_ROWS
from benchmarks.common import finish
from benchmarks.judges import TEXTS
from benchmarks.options import Smoke, parsed
from benchmarks.papers import blazingtext, cythnn, full_w2v, negative_sampling, w2v_cl
from benchmarks.papers.session import Session
from benchmarks.peers import SPEED
from benchmarks.tables import keeper
from daskw2v.evaluation.classification import ClassificationMethod
from daskw2v.training.averaging.merge import MERGE_RULES

PAPERS = {"000": cythnn, "001": blazingtext, "002": w2v_cl, "003": negative_sampling, "004": full_w2v}


def whole(text: str) -> int:
    """Return a number from 1 on."""
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


def share(text: str) -> float:
    """Return a number above 0."""
    value = float(text)
    if value <= 0:
        raise ValueError(text)
    return value


def number_of(text: str) -> str:
    """Return a paper's number; argparse's own `choices` refuse an empty list."""
    if text not in PAPERS:
        raise argparse.ArgumentTypeError(f"{text!r} is none of {', '.join(PAPERS)}")
    return text


SMOKE = Smoke(
    {
        "parts": 0.2, "time_parts": 0.1, "times": 1, "epochs": 1, "seeds": [1], "tools": [*SPEED], "workers": [1, 2],
        "vector_size": 16, "partitions": 2, "passes": 1, "table_rows": 1 << 14,
        "texts": ["stsa", "custrev"],
    },
    ("paper", "here"),
    tuple((number,) for number in PAPERS),
)  # fmt: skip


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "papers", nargs="*", type=number_of, metavar="PAPER", default=list(PAPERS), help="all by default"
    )
    parser.add_argument("--parts", type=share, default=10, help="tenths of the 100 MB corpus, where vectors are judged")
    parser.add_argument("--time-parts", type=share, default=3, help="tenths of the corpus, where time is taken")
    parser.add_argument("--times", type=whole, default=3, help="runs of each, where time is taken")
    parser.add_argument("--threads", type=whole, nargs="+", default=[1, 2], help="where time is taken")
    parser.add_argument("--epochs", type=whole, default=5, help="of vectors that are judged")
    parser.add_argument(
        "--seeds", type=int, nargs="+", help="of vectors that are judged; each paper has its own default"
    )
    parser.add_argument("--tools", nargs="*", choices=SPEED, default=["fasttext"], help="what runs beside ours")
    parser.add_argument("--workers", type=whole, nargs="+", default=blazingtext.WORKERS, help="001: replicas")
    parser.add_argument("--rules", nargs="+", choices=MERGE_RULES, default=blazingtext.RULES, help="001: of merging")
    parser.add_argument(
        "--classifier", choices=get_args(ClassificationMethod), default="logistic", help="002: of texts"
    )
    parser.add_argument("--texts", nargs="+", choices=TEXTS, default=[*TEXTS], help="002: sets of texts to label")
    parser.add_argument("--vector-size", type=whole, default=100, help="002: figures 13 to 21")
    parser.add_argument("--partitions", type=whole, default=8, help="003: where vectors are judged and time is taken")
    parser.add_argument("--constants", type=Path, help="003: file of the cost model's; written where it is missing")
    parser.add_argument("--passes", type=whole, default=8, help="003: half of those that constants are of")
    parser.add_argument("--table-rows", type=whole, default=TABLE_ROWS, help="003: of a table that no cache holds")
    parser.add_argument("--cache", type=Path, help="folder that keeps the scores, so that a run can go on")
    parser.add_argument("--rows", type=Path, help="file to which each row is added at once, as a line of JSON")
    return parsed(parser, SMOKE, arguments)


def main() -> None:
    options = parse()
    with tempfile.TemporaryDirectory() as name:
        out = sys.stderr if options.json else sys.stdout
        session = Session(options, Path(name), out, keep=keeper(options.rows))
        for number in options.papers:
            session.begin(number, PAPERS[number].PAPER)
            PAPERS[number].run(session)
    finish([row for table in session.tables for row in table.rows], session.out, as_json=options.json)


if __name__ == "__main__":
    main()
