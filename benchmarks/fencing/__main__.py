"""Lose leases in every way: races for a dead holder's lease, and hosts that are paused at a write and go on later.

Races: 2 to 8 processes take over the lease of a killed holder at the same moment. Pauses: a process on a host of its
own (PID, UTS and mount namespaces; needs root) is stopped before each of its writes and deletions, and between the
check of its lease and the write. A process on another host takes over the lease and works to its end. Then the first
goes on. A lease expires after 1 s here, not after 60.

    python -m benchmarks.fencing [--races 1000] [--seed 0] [--every 1] [--scenes NAME ...] [--json]
"""

import argparse
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TextIO

from benchmarks.common import finish
from benchmarks.fencing.hosts import missing
from benchmarks.fencing.paused import SCENES, pauses
from benchmarks.fencing.races import Races, race
from benchmarks.options import LEFT_OUT, Smoke, parsed


@dataclass(frozen=True)
class Pauses:
    """What became of a scene's trials."""

    first: str
    second: str
    points: int
    refused: int
    finished: int
    other_ends: int
    older: int
    lost: int


SMOKE = Smoke({"races": 8, "every": 6, "scenes": ["publish", "gc"]}, ("processes", "paused"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--races", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--every", type=int, default=1, help="pause at every n-th point only")
    first = sorted({scene.first.split()[0] for scene in SCENES})
    parser.add_argument("--scenes", nargs="*", default=[], choices=first, help="what the paused host does; all if none")
    options = parsed(parser, SMOKE)
    out = sys.stderr if options.json else sys.stdout
    rows: list[Races | Pauses] = []
    with tempfile.TemporaryDirectory() as folder:
        print("| processes | races | holders at once, least | most |\n| --- | --- | --- | --- |", file=out)
        for raced in race(Path(folder) / "races", options.races, options.seed):
            rows.append(raced)
            print(f"| {raced.processes} | {raced.races} | {raced.least} | {raced.most} |", file=out)
        if (lacking := missing()) is not None:
            print(f"{LEFT_OUT}paused hosts: no {lacking}", file=out)
        else:
            rows += _pauses(Path(folder), options.scenes, options.every, out)
    finish(rows, out, as_json=options.json)
    if any(isinstance(row, Pauses) and (row.older or row.lost or row.other_ends) for row in rows):
        sys.exit("A host that lost its lease changed something.")
    if any(isinstance(row, Races) and (row.least, row.most) != (1, 1) for row in rows):
        sys.exit("A lease had not one holder.")


def _pauses(folder: Path, scenes: list[str], every: int, out: TextIO) -> list[Pauses]:
    print("\n| paused host | other host | pauses | refused, exit code 2 | had finished | other ends "
          "| older version served | something lost |\n" + "| --- " * 8 + "|", file=out)  # fmt: skip
    rows = []
    for line in pauses(folder, scenes, every):
        row = Pauses(*line.scene, line.points, line.refused, line.finished, len(line.other_ends), line.older, line.lost)
        rows.append(row)
        print("".join(f"| {value} " for value in asdict(row).values()) + "|", file=out, flush=True)
        for told in line.other_ends:
            print(told, file=sys.stderr)
    return rows


if __name__ == "__main__":
    main()
