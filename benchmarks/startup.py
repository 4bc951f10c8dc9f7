"""Processor seconds, and seconds, of what should start at once: importing the package, and asking a model for a word.

Each command runs in processes of its own, in turn with the others. The model is of random vectors, as many as those of
`daskw2v demo`; or one that was trained. `import zarr` is what reading any model takes.

python -m benchmarks.startup [--runs 9] [--work demo-work --word file] [--json]
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.common import Took, alternate, finish, spread, stopwatch
from benchmarks.options import Smoke, parsed
from daskw2v.models.store import create_model, write_table_rows, write_vocabulary
from daskw2v.models.versions import publish
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary

ROOT = Path(__file__).parents[1]
WORDS, DIMENSIONS = 5000, 100


@dataclass(frozen=True)
class Row:
    """A command's medians, the spread of its processor seconds, and how many of these it may take."""

    command: str
    processor_seconds: float
    spread: str
    seconds: float
    limit: float | None


def commands(work: str, word: str) -> dict[str, tuple[Sequence[str], float | None]]:
    """Return what is run, by what the user writes, and its limit in processor seconds."""
    program = ("-m", "daskw2v")
    return {
        "import zarr": (("-c", "import zarr"), None),
        "import daskw2v": (("-c", "import daskw2v"), 0.4),
        "daskw2v --help": ((*program, "--help"), 0.3),
        "daskw2v --version": ((*program, "--version"), 0.3),
        "daskw2v similar": ((*program, "similar", work, word), 0.7),
    }


def write_model(work: Store) -> None:
    """Publish random vectors of the words 0, 1, ..."""
    store = work / "models" / "v0001-r"
    create_model(store, {"input": (WORDS, DIMENSIONS)}, row_block=WORDS)
    write_table_rows(store, "input", 0, np.random.default_rng(1).standard_normal((WORDS, DIMENSIONS), np.float32))
    write_vocabulary(store, Vocabulary.from_words([*map(str, range(WORDS))], range(WORDS, 0, -1)))
    publish(work / "models", store.name, {})


def call(arguments: Sequence[str]) -> Took:
    """Run Python with arguments in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is compiled already
    took = stopwatch()
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL, env=environment)
    return took()


def measure(asked: Mapping[str, tuple[Sequence[str], float | None]], runs: int) -> Iterator[Row]:
    """Run each command once, which warms the disk and writes bytecode, then as often as asked for."""
    calls = {name: partial(call, arguments) for name, (arguments, _) in asked.items()}
    alternate(calls, 1)
    for name, took in alternate(calls, runs).items():
        used = [one.processor_seconds for one in took]
        seconds = statistics.median(one.seconds for one in took)
        yield Row(name, statistics.median(used), spread(used), seconds, asked[name][1])


SMOKE = Smoke({"runs": 1}, tuple(commands("", "")))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=9, help="of which medians are taken")
    parser.add_argument("--work", help="a work directory with a model; random vectors by default")
    parser.add_argument("--word", default="7", help="to ask the model for")
    options = parsed(parser, SMOKE)
    out = sys.stderr if options.json else sys.stdout
    with tempfile.TemporaryDirectory() as folder:
        if options.work is None:
            write_model(Store(folder))
        rows = list(measure(commands(options.work or folder, options.word), options.runs))
    print("| command | processor s | limit | s |\n|---|---|---|---|", file=out)
    for row in rows:
        limit = "" if row.limit is None else f"{row.limit:.1f}"
        print(
            f"| `{row.command}` | {row.processor_seconds:.2f} ({row.spread}) | {limit} | {row.seconds:.2f} |", file=out
        )
    finish(rows, out, as_json=options.json)


if __name__ == "__main__":
    main()
