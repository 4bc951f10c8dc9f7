"""Power losses: after any write of a command, what was not synced is lost, whole or in parts, or in another order.

Each command is recorded once, on a small text. For each loss of power a disk is built that holds what was synced; the
rest is all lost, all there, there without content, or drawn at random. Readers have to see the old or the new answers,
and the same command, given again, has to end with the bits of an undisturbed one. Disks of equal content are tried
once. Files are synced with their whole filesystem (bulk), or each for itself (single).

    python -m benchmarks.power_loss [--times 300] [--seconds S] [--commands NAME ...] [--syncs bulk single] [--seed 0]
                                    [--work DIR] [--json]
"""

import argparse
import math
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TextIO

from distributed import Client

from benchmarks.common import finish, one_thread
from benchmarks.options import Smoke, parsed
from tests.support.power_losses import COMMANDS, Played

SYNCS = {"bulk": True, "single": False}


@dataclass(frozen=True)
class Row:
    """A command: its writes and syncs, losses of power, disks that differ, and how many of these ended right."""

    command: str
    syncs: str
    events: int
    losses: int
    disks: int
    right: int


def play(
    name: str, syncs: str, folder: Path, client: Client, times: int, seconds: float, seed: int, out: TextIO
) -> Row:
    """Lose power so many times in a command, for at most so many seconds."""
    played = Played(name, folder, client, bulk=SYNCS[syncs])
    losses = disks = right = 0
    end = time.monotonic() + seconds
    for outage in islice(played.outages(seed), times):
        if time.monotonic() > end:
            break
        losses += 1
        tree = played.disk(outage)
        if not played.is_new(tree):
            continue
        problem = played.go_on(tree)
        disks, right = disks + 1, right + (problem is None)
        if problem is not None:
            print(f"FAILED: {name}, {syncs}, {outage}: {problem}", file=out, flush=True)
    return Row(name, syncs, len(played.prefixes) - 1, losses, disks, right)


SMOKE = Smoke({"times": 2, "commands": ["versions publish"]}, ("events", "disks", "bulk", "single"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=300, help="losses of power for each command and kind of sync")
    parser.add_argument("--seconds", type=float, default=math.inf, help="most for each of them")
    parser.add_argument("--commands", nargs="+", choices=list(COMMANDS), default=list(COMMANDS))
    parser.add_argument("--syncs", nargs="+", choices=list(SYNCS), default=list(SYNCS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--work", type=Path, help="folder to write in, best in memory; a temporary one by default")
    options = parsed(parser, SMOKE)
    out = sys.stderr if options.json else sys.stdout
    rows = []
    print("| command | syncs | events | losses of power | disks | right end |\n|---|---|---|---|---|---|", file=out)
    with one_thread() as client:
        for name in options.commands:
            for syncs in options.syncs:
                with tempfile.TemporaryDirectory(dir=options.work) as folder:
                    limits = options.times, options.seconds
                    row = play(name, syncs, Path(folder), client, *limits, options.seed, out)
                print(f"| {name} | {syncs} | {row.events} | {row.losses} | {row.disks} | {row.right} |", file=out,
                      flush=True)  # fmt: skip
                rows.append(row)
    total = f"{sum(row.losses for row in rows)} | {sum(row.disks for row in rows)} | {sum(row.right for row in rows)}"
    print(f"| all | | | {total} |", file=out)
    finish(rows, out, as_json=options.json)
    if any(row.right < row.disks for row in rows):
        sys.exit(1)


if __name__ == "__main__":
    main()
