"""Power losses: after any write of a command, what was not synced is lost, whole or in parts, or in another order.

Each command is recorded once, on a small text. For each loss of power a disk is built that holds what was synced; the
rest is all lost, all there, there without content, or drawn at random. Readers have to see the old or the new answers,
and the same command, given again, has to end with the bits of an undisturbed one. Disks of equal content are tried
once. Files are synced with their whole filesystem (bulk), or each for itself (single). TMPDIR is best in memory.

    python -m benchmarks.power_loss [--times 300] [--seconds S] [--commands NAME ...] [--syncs bulk single] [--seed 0]
"""

import argparse
import math
import time
from itertools import islice, product

import numpy as np

from benchmarks.harness import Benchmark, Session, Smoke
from benchmarks.processes import one_thread
from tests.support.power_losses import COMMANDS, Played

SYNCS = {"bulk": True, "single": False}


def play(name: str, syncs: str, played: Played, session: Session) -> tuple[int, int, int]:
    """Lose power as often and as long as the options say; return losses, disks that differ, and right ends."""
    options, losses, disks, right = session.options, 0, 0, 0
    end = time.monotonic() + options.seconds
    for outage in islice(played.outages(options.seed), options.times):
        if time.monotonic() > end:
            break
        losses += 1
        tree = played.disk(outage)
        if not played.is_new(tree):
            continue
        problem = played.go_on(tree)
        disks, right = disks + 1, right + (problem is None)
        if problem is not None:
            session.wrong(f"{name}, {syncs}, {outage}: {problem}")
    return losses, disks, right


def measure(session: Session) -> None:
    options, total = session.options, np.zeros(3, int)
    session.text = "days of 660 words, drawn by Zipf's law"
    table = session.table("Losses of power", ("writes and syncs", "losses of power", "disks", "right ends"))
    with one_thread() as client:
        for name, syncs in product(options.commands, options.syncs):
            played = Played(name, session.fresh("disks"), client, bulk=SYNCS[syncs])
            found = play(name, syncs, played, session)
            table.row(f"{name}, {syncs}", len(played.prefixes) - 1, *found)
            total += found
    table.row("all", None, *total.tolist())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--times", type=int, default=300, help="losses of power for each command and kind of sync")
    parser.add_argument("--seconds", type=float, default=math.inf, help="most for each of them")
    parser.add_argument("--commands", nargs="+", choices=list(COMMANDS), default=list(COMMANDS))
    parser.add_argument("--syncs", nargs="+", choices=list(SYNCS), default=list(SYNCS))
    parser.add_argument("--seed", type=int, default=0)


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/store", "daskw2v/models", "daskw2v/retraining"),
    Smoke({"times": 2, "commands": ["versions publish"]}, ("writes and syncs", "disks", "bulk", "single")),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
