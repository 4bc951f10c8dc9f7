"""Whole runs on one worker and on two, by strategy: does another worker pay?

Each run is `daskw2v train` in a process of its own and an empty folder, with compiled kernels, on workers of one
thread, or of `--threads`. All are compared with the plain run: one replica on one worker of one thread. They run in
turn. With averaging there are as many replicas as workers; threads of a worker train one replica without locks
(Hogwild). With rotation there are `--partitions` on any number. The digest is that of the vectors of seed 1: the same
bits have the same one. Texts are the first parts of the 100 MB corpus, which begins again after ten, and one made of
`--types` words by Zipf's law, whose vectors are not judged.

Processor seconds are those of all processes of a run: client, scheduler, workers. Those of training are the workers'
from the first round to the published model, and one worker lives in the client's process. Where others use the machine,
they tell more than seconds do: what a run would take on idle cores is at least its processor seconds over its
workers. Other than training is what part of the workers' time, while the model is trained, was not spent in training
tasks: dealing of pairs, merging, sending, waiting.

    python -m benchmarks.scaling [--texts wiki zipf] [--parts 30] [--types 1000000] [--words 50000000] [--sizes 100 300]
        [--objective sgns] [--strategies averaging rotation] [--workers 1 2] [--threads 1] [--partitions 8] [--passes P]
        [--epochs 1] [--times 5] [--json]
"""

import argparse
import hashlib
import itertools
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, TextIO

from benchmarks.common import alternate, finish, spread
from benchmarks.large_vocabulary import write_zipf
from benchmarks.options import Smoke, parsed
from benchmarks.quality import judged
from benchmarks.whole_runs import MB, SCORES, measure, text_of
from daskw2v.config.params import Params
from daskw2v.errors import counted
from daskw2v.models.vectors import Vectors
from daskw2v.training.warm_up import warm_up

PLAIN = "plain"
WIKI, ZIPF = "wiki", "zipf"
STRATEGIES = ("averaging", "rotation")


@dataclass(frozen=True)
class Row:
    """Medians over the runs, and means of the scores; none for text that was made."""

    text: str
    megabytes: float
    types: int
    d: int
    run: str
    seconds: float
    spread: str
    speed_up: float
    processor_seconds: float
    processor_ratio: float
    nanoseconds_a_word: float
    training_seconds: float
    training_speed_up: float
    training_processor_seconds: float
    training_processor_ratio: float
    other: float
    sent_megabytes: float
    digest: str
    scores: dict[str, float]


class Run(NamedTuple):
    """What a run took: in all, and while the model was trained."""

    seconds: float
    processor_seconds: float
    training_seconds: float
    training_processor_seconds: float
    other: float
    sent: int
    words: int
    types: int
    digest: str
    scores: dict[str, float]


class Setting(NamedTuple):
    """Options of `train`, the workers, and the threads of each."""

    workers: int
    threads: int
    options: tuple[str, ...]


def settings_of(options: argparse.Namespace) -> Iterator[tuple[str, Setting]]:
    """Yield the runs by name, the plain one first."""
    yield PLAIN, Setting(1, 1, ("--strategy", "averaging"))
    for strategy in options.strategies:
        for n, threads in itertools.product(options.workers, options.threads):
            if strategy == "rotation":
                how = {"--n-partitions": options.partitions}
                if options.passes is not None:
                    how["--passes-per-epoch"] = options.passes
            elif n * threads > 1:
                how = {"--n-replicas": n}
            else:
                continue  # one replica is the plain run
            yield (
                f"{strategy}, {counted(n, 'worker')}{f' of {threads} threads' if threads > 1 else ''}",
                Setting(n, threads, ("--strategy", strategy, *(str(part) for pair in how.items() for part in pair))),
            )


def run(text: Sequence[Path], setting: Setting, more: Sequence[str], judge: bool, seeds: list[int]) -> Run:
    """Train with the next seed; see what it took, and judge the vectors if asked to."""
    with tempfile.TemporaryDirectory(dir=text[0].parent) as output:
        command = [
            sys.executable, "-m", "daskw2v", "train", *map(str, text), "--work", output,
            "--threads", str(setting.threads), "--workers", str(setting.workers),
            "--seed", str(seeds.pop(0)), *setting.options, *more,
        ]  # fmt: skip
        seconds, processor_seconds, _ = measure(command, {}, memory=False)
        vectors = Vectors.open(output)
        found = vectors.metadata["metrics"]
        busy = sum(worker["seconds"] for worker in found["workers"])
        return Run(
            seconds,
            processor_seconds,
            found["seconds"],
            sum(worker["processor_seconds"] for worker in found["workers"]),
            1 - busy / (found["seconds"] * setting.workers),
            sum(worker["sent"] for worker in found["workers"]),
            found["words"],
            len(vectors),
            hashlib.sha256(vectors.vectors[:].tobytes()).hexdigest()[:6],
            {name: score for name, score in judged(vectors).items() if name in SCORES} if judge else {},
        )


def compare(name: str, text: Sequence[Path], d: int, more: Sequence[str], options: argparse.Namespace) -> list[Row]:
    """Run all settings in turn on a text."""
    size = sum(path.stat().st_size for path in text) / MB
    more = ["--objective", options.objective, "--vector-size", str(d), "--epochs", str(options.epochs), *more]
    runs = {
        key: partial(run, text, setting, more, name == WIKI, list(range(1, options.times + 1)))
        for key, setting in settings_of(options)
    }
    found, rows = alternate(runs, options.times), list[Row]()
    for key, these in found.items():

        def median(field: str, of: str = key) -> float:
            return statistics.median(getattr(one, field) for one in found[of])

        rows.append(
            Row(
                name,
                round(size, 1),
                these[0].types,
                d,
                key,
                median("seconds"),
                spread([one.seconds for one in these]),
                median("seconds", PLAIN) / median("seconds"),
                median("processor_seconds"),
                median("processor_seconds") / median("processor_seconds", PLAIN),
                median("processor_seconds") / these[0].words * 1e9,
                median("training_seconds"),
                median("training_seconds", PLAIN) / median("training_seconds"),
                median("training_processor_seconds"),
                median("training_processor_seconds") / median("training_processor_seconds", PLAIN),
                median("other"),
                median("sent") / MB,
                these[0].digest,
                {score: statistics.mean(one.scores[score] for one in these) for score in these[0].scores},
            )
        )
    return rows


def report(rows: Sequence[Row], out: TextIO) -> None:
    """Print a table."""
    first = rows[0]
    print(f"\n{first.text}, {first.megabytes:g} MB, {first.types:,} words, d={first.d}:\n", file=out)
    columns = (
        "seconds", "speed-up", "processor s", "of plain", "ns a word", "training s", "speed-up", "processor s",
        "of plain", "other than training", "sent, MB", "digest", *first.scores,
    )  # fmt: skip
    print(f"| run | {' | '.join(columns)} |\n|{'---|' * (len(columns) + 1)}", file=out)
    for row in rows:
        scores = "".join(f" {score:.3f} |" for score in row.scores.values())
        print(
            f"| {row.run} | {row.seconds:.1f} ({row.spread}) | {row.speed_up:.2f} | {row.processor_seconds:.1f} | "
            f"{row.processor_ratio:.2f} | {row.nanoseconds_a_word:.0f} | {row.training_seconds:.1f} | "
            f"{row.training_speed_up:.2f} | {row.training_processor_seconds:.1f} | "
            f"{row.training_processor_ratio:.2f} | {row.other:.0%} | {row.sent_megabytes:,.0f} | {row.digest} |"
            f"{scores}",
            file=out, flush=True,
        )  # fmt: skip


def texts_of(folder: Path, options: argparse.Namespace) -> Iterator[tuple[str, list[Path], Mapping[str, str]]]:
    """Write the texts; yield the name, the files and the options of each."""
    if WIKI in options.texts:
        yield WIKI, [text_of(folder, options.parts)], {}
    if ZIPF in options.texts:
        made = folder / ZIPF
        made.mkdir()
        yield ZIPF, write_zipf(made, options.types, options.words)[0], {"--min-count": "1"}


SMOKE = Smoke(
    {"parts": 0.05, "types": 2000, "words": 20_000, "sizes": [16], "times": 1, "workers": [1, 2], "threads": [1, 2]},
    (
        WIKI,
        ZIPF,
        PLAIN,
        "averaging, 1 worker of 2 threads",
        "averaging, 2 workers",
        "rotation, 1 worker",
        "rotation, 1 worker of 2 threads",
        "rotation, 2 workers",
    ),
)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", nargs="+", choices=(WIKI, ZIPF), default=[WIKI, ZIPF])
    parser.add_argument("--parts", type=float, default=30, help="tenths of the 100 MB corpus")
    parser.add_argument("--types", type=int, default=1_000_000, help="words of the text that is made")
    parser.add_argument("--words", type=int, default=50_000_000, help="its tokens")
    parser.add_argument("--sizes", type=int, nargs="+", default=[100, 300], help="vector_size")
    parser.add_argument("--strategies", nargs="+", choices=STRATEGIES, default=list(STRATEGIES))
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2], help="numbers of workers")
    parser.add_argument("--threads", type=int, nargs="+", default=[1], help="of each worker")
    parser.add_argument("--objective", choices=("sgns", "sg_hs", "cbow_ns", "cbow_hs"), default=Params.objective)
    parser.add_argument("--partitions", type=int, default=8)
    parser.add_argument("--passes", type=int, default=Params.passes_per_epoch, help="of rotation, an epoch")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--times", type=int, default=5)
    return parsed(parser, SMOKE)


def main() -> None:
    options = parse()
    out, rows = sys.stderr if options.json else sys.stdout, list[Row]()
    warm_up()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for text, paths, more in texts_of(folder, options):
            for d in options.sizes:
                found = compare(text, paths, d, [part for pair in more.items() for part in pair], options)
                report(found, out)
                rows += found
    finish(rows, out, as_json=options.json)


if __name__ == "__main__":
    main()
