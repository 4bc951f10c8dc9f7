"""Other programs on the same text, in turn with ours: any whose command line can be written down.

A program is timed as a whole, start, vocabulary and output included; and so is `train` of ours. Each runs with one
epoch and with several: what the others take more is training alone.
"""

import shlex
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.cuda.bench import Bench
from benchmarks.harness import alternate
from benchmarks.stopwatch import stopwatch
from benchmarks.tables import Spread
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.training.pipeline import train

FIELDS = ("text", "output", "size", "window", "negative", "epochs", "sample")


def peer_of(text: str) -> tuple[str, str]:
    """Return name and command of NAME=COMMAND; raises ValueError, also where a command has unknown fields."""
    name, equals, command = text.partition("=")
    if not (name and equals and command):
        raise ValueError(text)
    try:
        command.format(**dict.fromkeys(FIELDS, ""))
    except (KeyError, IndexError):
        raise ValueError(text) from None
    return name, command


def seconds_of(command: str, text: Path, output: Path, params: Params, epochs: int) -> float:
    """Run a program; return what it takes."""
    values = {
        "text": text, "output": output, "size": params.vector_size, "window": params.window,
        "negative": params.negative, "epochs": epochs, "sample": params.sample,
    }  # fmt: skip
    took = stopwatch()
    subprocess.run([word.format(**values) for word in shlex.split(command)], check=True, stdout=subprocess.DEVNULL)
    return took().seconds


def ours(bench: Bench, device: str, params: Params, epochs: int) -> float:
    """Train as a user does, from the text on; return what it takes."""
    work, took = bench.fresh(device), stopwatch()  # a work directory keeps what was done
    train(bench.wiki.path, work=work, params=params.replace(epochs=epochs), resources=Resources(device=device))
    return took().seconds


def compare(
    programs: dict[str, Callable[[int], float]], words: int, epochs: int, times: int
) -> dict[str, tuple[Spread, Spread]]:
    """Return of each program, called with epochs, words/s of several epochs, and of those beyond the first."""
    runs = {f"{name}\n{n}": partial(program, n) for name, program in programs.items() for n in (1, epochs)}
    for run in runs.values():
        run()  # warms caches, and compiles
    found, speeds = alternate(runs, times), {}
    for name in programs:
        one, several = found[f"{name}\n1"], found[f"{name}\n{epochs}"]
        more = [b - a for a, b in zip(one, several, strict=True)]
        beyond = [words * (epochs - 1) / seconds if seconds > 0 else float("nan") for seconds in more]
        speeds[name] = Spread.of(words * epochs / seconds for seconds in several), Spread.of(beyond)
    return speeds


def peers(bench: Bench) -> None:
    """Print million words/s before subsampling."""
    options, words = bench.options, bench.wiki.vocabulary.total
    params, epochs = Params(vector_size=128), max(2, options.epochs)
    table = bench.table(
        f"Peers: d=128, N=5, W=5, sample 1e-4, {epochs} epochs of {words:,} words: million words/s",
        ("whole run", "epochs beyond the first"),
    )
    programs: dict[str, Callable[[int], float]] = {
        f"daskw2v, {device}": partial(ours, bench, device, params) for device in ("cuda", "cpu")
    }
    for name, command in options.peer:
        bench.peers[name] = command
        programs[name] = partial(seconds_of, command, bench.wiki.path, bench.folder / "vectors", params)
    for name, spreads in compare(programs, words, epochs, options.times).items():
        table.row(name, *(spread.scaled(1e-6) for spread in spreads))
