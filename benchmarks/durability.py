"""What it costs that files are on disk before a manifest names them: whole trainings with and without.

Each training has a work directory of its own, on two workers of one thread that stay, with kernels in the cache; both
kinds take turns. Syncing is the time that the client and all tasks spend in it, which tasks do side by side.

    python -m benchmarks.durability [--parts 10] [--times 5] [--epochs 1] [--work DIR] [--json]
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from distributed import Client

from benchmarks.common import cluster_of, finish, write_text
from benchmarks.options import Smoke, parsed
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.store import durability
from daskw2v.training.pipeline import train

RUNS: dict[str, dict[str, Any]] = {
    "averaging": {},
    "rotation": {"strategy": "rotation", "n_partitions": 8, "passes_per_epoch": 4},
}


@dataclass(frozen=True)
class Row:
    """Medians over runs, in seconds, and the share of a run that syncing adds."""

    strategy: str
    without: float
    synced: float
    share: float
    syncing: float
    calls: int


class Clock:
    """Takes the place of what forces files, and counts its calls and seconds."""

    def __init__(self, *, forces: bool) -> None:
        self.seconds, self.calls, self._forces = 0.0, 0, forces
        self._force = FORCE

    def __call__(self, files: list[str]) -> None:
        if files and self._forces:
            began = time.perf_counter()
            self._force(files)
            self.seconds += time.perf_counter() - began
            self.calls += 1


FORCE = durability._force


def _set(clock: Clock | None) -> None:
    durability._force = FORCE if clock is None else clock


def _read() -> tuple[float, int]:
    clock = durability._force
    assert isinstance(clock, Clock)
    return clock.seconds, clock.calls


@contextmanager
def timed(client: Client, *, forces: bool) -> Iterator[list[tuple[float, int]]]:
    """Count what this process and all workers force, or leave it out; in the end the list holds what each did."""
    found = list[tuple[float, int]]()
    _set(Clock(forces=forces))
    client.run(lambda: _set(Clock(forces=forces)))
    try:
        yield found
        found += [_read(), *client.run(_read).values()]
    finally:
        _set(None)
        client.run(_set, None)


def measure(strategy: str, text: Path, folder: Path, times: int, epochs: int) -> Row:
    params, resources = Params(epochs=epochs, **RUNS[strategy]), Resources(threads=1)
    seconds: dict[bool, list[float]] = {False: [], True: []}
    syncing, calls = list[float](), list[int]()
    with cluster_of(2) as client:
        for number in range(times + 1):  # the first two are warm-up
            for forces in (False, True):
                with tempfile.TemporaryDirectory(dir=folder) as work, timed(client, forces=forces) as found:
                    began = time.perf_counter()
                    train(str(text), work=work, params=params, resources=resources, client=client, listener=None)
                    took = time.perf_counter() - began
                if number:
                    seconds[forces].append(took)
                    if forces:
                        syncing.append(sum(spent for spent, _ in found))
                        calls.append(sum(n for _, n in found))
    without, synced = (statistics.median(seconds[forces]) for forces in (False, True))
    return Row(
        strategy, without, synced, synced / without - 1, statistics.median(syncing), int(statistics.median(calls))
    )


SMOKE = Smoke({"parts": 0.02, "times": 1}, tuple(RUNS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=float, default=10, help="tenths of the 100 MB corpus")
    parser.add_argument("--times", type=int, default=5, help="trainings of each kind")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--work", type=Path, help="folder for text and work; a temporary one by default")
    options = parsed(parser, SMOKE)
    out = sys.stderr if options.json else sys.stdout
    print("| strategy | s without | s synced | share | s in syncs | syncs |\n|---|---|---|---|---|---|", file=out)
    rows = []
    with tempfile.TemporaryDirectory(dir=options.work) as name:
        text = write_text(Path(name) / "text.txt", options.parts)
        for strategy in RUNS:
            row = measure(strategy, text, Path(name), options.times, options.epochs)
            figures = f"{row.without:.2f} | {row.synced:.2f} | {row.share:+.1%} | {row.syncing:.2f} | {row.calls}"
            print(f"| {strategy} | {figures} |", file=out, flush=True)
            rows.append(row)
    finish(rows, out, as_json=options.json)


if __name__ == "__main__":
    main()
