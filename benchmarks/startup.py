"""Processor seconds, and seconds, of what should start at once: imports, a query, and `daskw2v train` besides training.

Each command runs in processes of its own, in turn with the others. The model that is asked is of random vectors, as
many as those of `daskw2v demo`; or one that was trained. `import zarr` is what reading any model takes.

`again` is the command of a run that has nothing left to do. `beyond training` is a whole run with compiled kernels,
from text to vectors: its seconds are without those of the rounds of training, its processor seconds with them.

python -m benchmarks.startup [--runs 9] [--work demo-work --word file] [--parts 1] [--epochs 5] [--threads 2] [--json]
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.common import alternate, finish, spread, write_text
from benchmarks.options import Smoke, parsed
from benchmarks.stopwatch import Took, stopwatch
from daskw2v.models.store import write_vocabulary
from daskw2v.models.tables import create_model, write_table_rows
from daskw2v.models.vectors import Vectors
from daskw2v.models.versions import publish
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary

ROOT = Path(__file__).parents[1]
WORDS, DIMENSIONS = 5000, 100
PROGRAM = ("-m", "daskw2v")
AGAIN, BEYOND = "daskw2v train, again", "daskw2v train, beyond training"
# Processor seconds that a command may take; of the last one, seconds
LIMITS = {"import daskw2v": 0.4, "daskw2v --help": 0.3, "daskw2v --version": 0.3, "daskw2v similar": 0.7, BEYOND: 2.0}


@dataclass(frozen=True)
class Row:
    """A command's medians and their spreads, and its limit."""

    command: str
    processor_seconds: float
    spread: str
    seconds: float
    spread_of_seconds: str
    limit: float | None


Calls = Mapping[str, Callable[[], Took]]


def queries(work: str, word: str) -> Calls:
    """Return imports and queries, by what the user writes."""
    asked = {
        "import zarr": ("-c", "import zarr"),
        "import daskw2v": ("-c", "import daskw2v"),
        "daskw2v --help": (*PROGRAM, "--help"),
        "daskw2v --version": (*PROGRAM, "--version"),
        "daskw2v similar": (*PROGRAM, "similar", work, word),
    }
    return {name: partial(call, *arguments) for name, arguments in asked.items()}


def trainings(text: Path, folder: Path, options: argparse.Namespace) -> Calls:
    """Return a training that is done, and one that is not."""

    def train(work: Path) -> Took:
        given = ("--epochs", str(options.epochs), "--threads", str(options.threads))
        return call(*PROGRAM, "train", str(text), "--work", str(work), *given)

    def beyond_training() -> Took:
        with tempfile.TemporaryDirectory(dir=folder) as work:
            took = train(Path(work))
            return took._replace(seconds=took.seconds - Vectors.open(work).metadata["metrics"]["seconds"])

    train(folder / "done")
    return {AGAIN: partial(train, folder / "done"), BEYOND: beyond_training}


def write_model(work: Store) -> None:
    """Publish random vectors of the words 0, 1, ..."""
    store = work / "models" / "v0001-r"
    create_model(store, {"input": (WORDS, DIMENSIONS)}, row_block=WORDS)
    write_table_rows(store, "input", 0, np.random.default_rng(1).standard_normal((WORDS, DIMENSIONS), np.float32))
    write_vocabulary(store, Vocabulary.from_words([*map(str, range(WORDS))], range(WORDS, 0, -1)))
    publish(work / "models", store.name, {})


def call(*arguments: str) -> Took:
    """Run Python with arguments in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is compiled already
    took = stopwatch()
    done = subprocess.run([sys.executable, *arguments], check=False, capture_output=True, text=True, env=environment)
    if done.returncode:
        sys.exit(f"{' '.join(arguments)} ended with {done.returncode}: {done.stderr}")
    return took()


def measure(calls: Calls, runs: int) -> Iterator[Row]:
    """Run each command once, which warms the disk and writes bytecode, then as often as asked for."""
    alternate(calls, 1)
    for name, took in alternate(calls, runs).items():
        used, seconds = [one.processor_seconds for one in took], [one.seconds for one in took]
        medians = statistics.median(used), spread(used), statistics.median(seconds), spread(seconds)
        yield Row(name, *medians, LIMITS.get(name))


SMOKE = Smoke({"runs": 1, "parts": 0.01, "epochs": 1}, (*queries("", ""), AGAIN, BEYOND))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9, help="of which medians are taken")
    parser.add_argument("--work", help="a work directory with a model; random vectors by default")
    parser.add_argument("--word", default="7", help="to ask the model for")
    parser.add_argument("--parts", type=float, default=1, help="tenths of the 100 MB corpus to train on")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parsed(parser, SMOKE)
    out = sys.stderr if options.json else sys.stdout
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if options.work is None:
            write_model(Store(name))
        text = write_text(folder / "text.txt", options.parts)
        calls = {**queries(options.work or name, options.word), **trainings(text, folder, options)}
        rows = list(measure(calls, options.runs))
    print("| command | processor s | s | limit |\n|---|---|---|---|", file=out)
    for row in rows:
        limit = "" if row.limit is None else f"{row.limit:.1f}"
        print(
            f"| `{row.command}` | {row.processor_seconds:.2f} ({row.spread}) | {row.seconds:.2f} "
            f"({row.spread_of_seconds}) | {limit} |",
            file=out,
        )
    finish(rows, out, as_json=options.json)


if __name__ == "__main__":
    main()
