"""Processor seconds, and seconds, of what should start at once: imports, a query, and `daskw2v train` besides training.

Each command runs in processes of its own, in turn with the others. The model that is asked is of random vectors, as
many as those of `daskw2v demo`. `import zarr` is what reading any model takes. `again` is the command of a run that has
nothing left to do. `beyond training` is a whole run with compiled kernels, from text to vectors: its seconds are
without those of the rounds of training, its processor seconds with them.

    python -m benchmarks.startup [--times 9] [--parts 1] [--epochs 5]
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.harness import Benchmark, Session, Smoke, alternate
from benchmarks.processes import Usage, run_process
from benchmarks.tables import Spread
from benchmarks.texts import name_of, write_text
from daskw2v.models.queries.vectors import Vectors
from daskw2v.vocabulary.vocabulary import Vocabulary

WORDS, DIMENSIONS = 5000, 100
PROGRAM = ("-m", "daskw2v")
AGAIN, BEYOND = "daskw2v train, again", "daskw2v train, beyond training"
# Processor seconds that a command may take; of the last one, seconds
LIMITS = {"import daskw2v": 0.4, "daskw2v --help": 0.3, "daskw2v --version": 0.3, "daskw2v similar": 0.7, BEYOND: 2.0}
ENVIRONMENT = {"PYTHONPATH": str(Path(__file__).parents[1]), "PYTHONDONTWRITEBYTECODE": ""}  # as what is installed

Calls = Mapping[str, Callable[[], Usage]]


def call(*arguments: str) -> Usage:
    """Run Python with arguments in a process of its own."""
    return run_process([sys.executable, *arguments], ENVIRONMENT, memory=False)


def queries(model: str) -> Calls:
    """Return imports and queries, by what the user writes."""
    asked = {
        "import zarr": ("-c", "import zarr"),
        "import daskw2v": ("-c", "import daskw2v"),
        "daskw2v --help": (*PROGRAM, "--help"),
        "daskw2v --version": (*PROGRAM, "--version"),
        "daskw2v similar": (*PROGRAM, "similar", model, "7"),
    }
    return {name: partial(call, *arguments) for name, arguments in asked.items()}


def trainings(text: Path, folder: Path, options: argparse.Namespace) -> Calls:
    """Return a training that is done, and one that is not."""

    def train(work: Path) -> Usage:
        given = ("--epochs", str(options.epochs), "--threads", "2")
        return call(*PROGRAM, "train", str(text), "--work", str(work), *given)

    def beyond_training() -> Usage:
        with tempfile.TemporaryDirectory(dir=folder) as work:
            took = train(Path(work))
            return took._replace(seconds=took.seconds - Vectors.open(work).metadata["metrics"]["seconds"])

    train(folder / "done")
    return {AGAIN: partial(train, folder / "done"), BEYOND: beyond_training}


def write_model(url: str) -> None:
    """Write random vectors of the words 0, 1, ..."""
    rows = np.random.default_rng(1).standard_normal((WORDS, DIMENSIONS), np.float32)
    Vectors(Vocabulary.from_words([*map(str, range(WORDS))], range(WORDS, 0, -1)), rows).save(url)


def measure(session: Session) -> None:
    """Run each command once, which warms the disk and writes bytecode, then as often as asked for."""
    options, model = session.options, str(session.folder / "model")
    session.text = f"random vectors; {name_of(options.parts)}"
    write_model(model)
    text = write_text(session.folder / "text.txt", options.parts)
    calls = {**queries(model), **trainings(text, session.folder, options)}
    alternate(calls, 1)
    table = session.table("What should start at once", ("processor s", "s", "limit"), ".2f")
    for name, took in alternate(calls, options.times).items():
        used = Spread.of(one.processor_seconds for one in took)
        table.row(name, used, Spread.of(one.seconds for one in took), LIMITS.get(name))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--times", type=int, default=9)
    parser.add_argument("--parts", type=float, default=1, help="of 10 MB, to train on")
    parser.add_argument("--epochs", type=int, default=5)


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/cli", "daskw2v/models", "daskw2v/store"),
    Smoke({"times": 1, "parts": 0.01, "epochs": 1}, (*queries(""), AGAIN, BEYOND)),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
