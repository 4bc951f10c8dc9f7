"""Hot rows: time and quality against their number and the threads, as in figures 1 and 2 of Vuurens et al. (2016).

Time is that of the whole task that a worker runs over an epoch, as in `benchmarks.train_speed`; runs alternate over the
numbers of rows. One thread caches nothing, so it is one run. The paper gains most with many threads. Where the peak of
two threads (`benchmarks.fma_peak`, in the same run) is not twice that of one, others use the machine: then what two
threads gain says nothing.

    python -m benchmarks.cached_rows [--objectives sg_hs sgns] [--threads 1 2] [--rows 0 1 3 7 15 31 63 127]
        [--flush 512] [--parts 3] [--times 5] [--json]
    with --quality [0 31 127], models with so many rows are trained and judged too: [--epochs 5] [--seeds 1 2 3]
        [--quality-parts 10]

Resources are no part of what makes an experiment: trained again in the same work directory with other rows, it would
count as done already. So each training whose quality is judged has a directory of its own, and encodes anew (2 s).
"""

import argparse
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TextIO

from benchmarks.common import ANALOGY, SIMILARITY, alternate, finish, spread, write_text
from benchmarks.epochs import epoch_seconds
from benchmarks.fma_peak import measure_peak
from benchmarks.options import Smoke, parsed
from benchmarks.texts import Text, encode
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.evaluation import evaluate
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.training.devices import Threads
from daskw2v.training.devices.cpu import flush_words_of
from daskw2v.training.pipeline import train

QUALITY_ROWS = (0, 31, 127)
QUALITY_THREADS = 2


@dataclass(frozen=True)
class Speed:
    """The median of an epoch's time."""

    objective: str
    threads: int
    hot_rows: int | None
    flush_words: int
    seconds: float
    words_per_second: float
    spread: str


@dataclass(frozen=True)
class Quality:
    """One score over all seeds."""

    objective: str
    threads: int
    hot_rows: int | None
    flush_words: int
    score: str
    mean: float
    low: float
    high: float


def widths(threads: Sequence[int], rows: Sequence[int], flushes: Sequence[int]) -> list[Threads]:
    """Return all combinations, once each: a thread alone caches nothing, and without rows nothing is flushed."""
    found = [
        Threads(n, hot, flush) if n > 1 and hot else Threads(n, 0, flushes[0])
        for n in threads
        for hot in rows
        for flush in flushes
    ]
    return list(dict.fromkeys(found))


def name_of(width: Threads) -> str:
    flush = f", flush {width.flush_words or 'as chosen'}" if width.hot_rows else ""
    return f"{width.n} thread(s), {width.hot_rows} rows{flush}"


def compare_speed(text: Text, objective: str, choices: Sequence[Threads], times: int, out: TextIO) -> list[Speed]:
    """Measure all choices in turn; print a line for each."""
    params = Params(objective=objective)
    runs = {name_of(width): epoch_seconds(text, params, width) for width in choices}
    peaks = {f"peak {n}": partial(measure_peak, n) for n in sorted({width.n for width in choices})}
    results = alternate(runs | peaks, times)
    found = []
    for width in choices:
        seconds = results[name_of(width)]
        middle = statistics.median(seconds)
        row = Speed(
            objective,
            width.n,
            width.hot_rows,
            flush_words_of(OBJECTIVES[objective], width),
            middle,
            text.vocabulary.total / middle,
            spread(seconds),
        )
        print(
            f"{objective}, {name_of(width)}: {row.seconds:.2f} s an epoch ({row.spread}), "
            f"{row.words_per_second / 1e6:.3f} million words/s",
            file=out, flush=True,
        )  # fmt: skip
        found.append(row)
    best = [f"{name.split()[1]} thread(s) {max(results[name]):.0f}" for name in peaks]
    print(f"{objective}, peak in GFLOP/s: {', '.join(best)}", file=out, flush=True)
    return found


def score(text: Path, folder: Path, params: Params, width: Threads) -> dict[str, float]:
    """Train in a work directory of its own, and evaluate."""
    resources = Resources(threads=width.n, hot_rows=width.hot_rows, flush_words=width.flush_words)
    with tempfile.TemporaryDirectory(dir=folder) as work:
        vectors = train(text, work=work, params=params, resources=resources)
        result = evaluate(vectors, SIMILARITY, ANALOGY).as_dict()
    scores = {name: figures["spearman"] for name, figures in result["similarity"].items()}
    return scores | {name: figures["accuracy"] for name, figures in result["analogy"].items()}


def judge(text: Path, folder: Path, params: Params, width: Threads, seeds: Sequence[int], out: TextIO) -> list[Quality]:
    """Train once a seed; print a line, and return a row for each score."""
    results = [score(text, folder, params.replace(seed=seed), width) for seed in seeds]
    found = []
    for name in results[0]:
        values = [scores[name] for scores in results]
        found.append(
            Quality(
                params.objective,
                width.n,
                width.hot_rows,
                flush_words_of(OBJECTIVES[params.objective], width),
                name,
                statistics.mean(values),
                min(values),
                max(values),
            )
        )
    figures = ", ".join(f"{row.score} {row.mean:.3f} ({row.low:.3f}..{row.high:.3f})" for row in found)
    print(f"{params.objective}, {name_of(width)}: {figures}", file=out, flush=True)
    return found


SMOKE = Smoke(
    {"parts": 0.05, "rows": [0, 3], "times": 1, "quality": [31], "quality_parts": 0.1, "epochs": 1, "seeds": [1]},
    ("sg_hs", "sgns", "speed", "quality", *(path.stem for path in (*SIMILARITY, *ANALOGY))),
)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objectives", nargs="+", choices=OBJECTIVES, default=["sg_hs", "sgns"])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="of the measured times")
    parser.add_argument("--rows", type=int, nargs="+", default=[0, 1, 3, 7, 15, 31, 63, 127])
    parser.add_argument("--flush", type=int, nargs="+", default=[Resources().flush_words], help="flush_words")
    parser.add_argument("--parts", type=float, default=3, help="tenths of the 100 MB corpus, of the measured times")
    parser.add_argument("--times", type=int, default=5, help="runs of each; 0 measures no time")
    parser.add_argument(
        "--quality", type=int, nargs="*", metavar="ROWS",
        help=f"train as well, with {QUALITY_THREADS} threads; {QUALITY_ROWS} rows where none are given",
    )  # fmt: skip
    parser.add_argument("--quality-parts", type=float, default=10, help="tenths of the corpus, of --quality")
    parser.add_argument("--epochs", type=int, default=5, help="of --quality")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="of --quality")
    return parsed(parser, SMOKE)


def main() -> None:
    options = parse()
    out = sys.stderr if options.json else sys.stdout
    speeds: list[Speed] = []
    qualities: list[Quality] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.times:
            text = encode(folder, options.parts)
            choices = widths(options.threads, options.rows, options.flush)
            for objective in options.objectives:
                speeds += compare_speed(text, objective, choices, options.times, out)
        if options.quality is not None:
            whole = write_text(folder / "whole.txt", options.quality_parts)
            choices = widths([QUALITY_THREADS], options.quality or QUALITY_ROWS, options.flush)
            for objective in options.objectives:
                params = Params(objective=objective, epochs=options.epochs)
                for width in choices:
                    qualities += judge(whole, folder, params, width, options.seeds, out)
    finish({"speed": speeds, "quality": qualities}, out, as_json=options.json)


if __name__ == "__main__":
    main()
