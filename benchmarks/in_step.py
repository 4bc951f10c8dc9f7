"""What many threads of one replica lose, each with a core of its own, emulated on one core.

Threads train their copies of the hot rows and flush them (`flush_words`). In step, no thread sees what the others train
until all have flushed. More threads than cores, which the system lets take turns, see more of each other, and so tell
nothing of many cores. Prints the mean loss of an example in the first epoch and in the last, NaN where it diverges.

    python -m benchmarks.in_step [--objectives sgns cbow_ns sg_hs cbow_hs] [--threads 1 2 16 64] [--flush 512]
        [--rows 127] [--parts 2] [--epochs 5] [--json]
"""

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from benchmarks.common import finish
from benchmarks.options import Smoke, parsed
from benchmarks.texts import Text, encode
from daskw2v.config.params import Params
from daskw2v.kernels.simd import padded
from daskw2v.objectives.base import Rate
from daskw2v.objectives.registry import OBJECTIVES, find_objective, settled
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import cut
from daskw2v.sampling.text import read_text
from daskw2v.training.devices import Threads
from daskw2v.training.devices.cpu import flush_words_of, hot_rows_of
from daskw2v.training.prepared import prepared_of
from daskw2v.training.schedule import alpha_at
from tests.support.lockstep import first_tables, train_in_step

HOGWILD = [name for name, objective in OBJECTIVES.items() if "cpu" in objective.trainers]
_STRETCH = 1 << 20  # positions that threads share evenly


@dataclass(frozen=True)
class Row:
    """What some threads learn."""

    objective: str
    threads: int
    hot_rows: int
    flush_words: int
    first: float
    last: float


def train_many(text: Text, params: Params, threads: Threads, out: TextIO) -> Row:
    """Train by threads in step; print a line."""
    objective, length = find_objective(params.objective), text.corpus.n_tokens
    run = Run(text.work, text.corpus.name, text.vocabulary, params, "cpu")
    tables, width = first_tables(objective, params, text.vocabulary.size), padded(params.vector_size)
    losses = list[float]()
    for epoch in range(params.epochs):
        examples, loss = 0, 0.0
        for start, stop in cut(0, length, _STRETCH):
            segment, _, _ = read_text(run, epoch, start, stop)
            alpha, end = (alpha_at(params, (epoch + at / length) / params.epochs) for at in (start, stop))
            rate = Rate(alpha, (end - alpha) / (stop - start), start)
            done, lost = train_in_step(objective, prepared_of(run), tables, width, threads, segment, rate, epoch)
            examples, loss = examples + done, loss + lost
        losses.append(loss / examples)
    row = Row(
        objective.name, threads.n, hot_rows_of(objective, threads), flush_words_of(objective, threads), losses[0],
        losses[-1],
    )  # fmt: skip
    print(
        f"{row.objective}, {row.threads} thread(s) in step, {row.hot_rows} hot rows, flushed after {row.flush_words} "
        f"centers: loss {row.first:.4f} in the first epoch, {row.last:.4f} in the last",
        file=out, flush=True,
    )  # fmt: skip
    return row


SMOKE = Smoke({"parts": 0.02, "epochs": 1, "threads": [1, 16]}, tuple(HOGWILD))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objectives", nargs="+", choices=HOGWILD, default=HOGWILD)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2, 16, 64])
    parser.add_argument("--flush", type=int, help="flush_words; the package's own where not given")
    parser.add_argument("--rows", type=int, help="hot_rows of each thread; likewise")
    parser.add_argument("--parts", type=float, default=2, help="tenths of the 100 MB corpus")
    parser.add_argument("--epochs", type=int, default=5)
    return parsed(parser, SMOKE)


def main() -> None:
    options = parse()
    out = sys.stderr if options.json else sys.stdout
    with tempfile.TemporaryDirectory() as name:
        text = encode(Path(name), options.parts)
        rows = [
            train_many(
                text, settled(Params(objective=objective, epochs=options.epochs)),
                Threads(n, options.rows, options.flush), out,
            )
            for objective in options.objectives for n in options.threads
        ]  # fmt: skip
    finish(rows, out, as_json=options.json)


if __name__ == "__main__":
    main()
