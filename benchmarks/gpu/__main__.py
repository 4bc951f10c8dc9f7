"""All that a machine with an NVIDIA GPU is wanted for: tests, checks, and every table, in 40 minutes or less.

    python -m benchmarks.gpu [--pieces tests memcheck ...] [--minutes 40] [--results gpu-results] [--archive FILE]
        [--again] [--dry-run] [--list] [--summary]

Pieces run one after the other in order of worth, each in a process of its own, of nine minutes at most. What was done
is not done again: the same command goes on where it was stopped. A piece begins as long as the time that it usually
takes is left of --minutes. --archive is unpacked before, and packed after each piece, for machines that are lent for a
command and give back few files. summary.md, in the results folder, tells what is known by now, and what is not.

--dry-run goes through all of it without a GPU, in two minutes: with Numba's simulator, a text of a few words, and
stand-ins for NVIDIA's programs. Its figures say nothing.
"""

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.common import DATA, finish
from benchmarks.gpu import stand_in
from benchmarks.gpu.pieces import MOST, PIECES, Piece
from benchmarks.gpu.running import DONE, Results, next_pieces, run_piece
from benchmarks.gpu.summary import summary
from benchmarks.options import Smoke, parsed
from daskw2v.errors import Daskw2vError
from daskw2v.kernels.cuda import check_gpu

SMOKE = Smoke({"list": True}, tuple(PIECES))  # tests go through the dry run


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pieces", nargs="+", choices=PIECES, default=list(PIECES), help="in order of worth; all")
    parser.add_argument("--minutes", type=float, default=40.0, help="all pieces together")
    parser.add_argument("--results", type=Path, default=Path("gpu-results"), help="folder of all that is kept")
    parser.add_argument("--archive", type=Path, help="tar.gz of the results, unpacked before and packed after a piece")
    parser.add_argument("--again", action="store_true", help="also what is done, or has failed")
    parser.add_argument("--dry-run", action="store_true", help="every line of it, without a GPU")
    parser.add_argument("--list", action="store_true", help="name the pieces, and how they ended")
    parser.add_argument("--summary", action="store_true", help="run nothing, and print the summary")
    return parsed(parser, SMOKE, arguments)


def command_of(piece: Piece, results: Results, *, dry_run: bool) -> list[str]:
    """Return what follows `python`."""
    words = [*piece.command, *(piece.tiny if dry_run else ()), "--rows", str(results.path(piece.name, "rows"))]
    if piece.cached:
        words += ["--cache", str(results.folder / "cache")]
    return ["-m", *(["benchmarks.gpu.stand_in"] if dry_run and piece.simulated else []), *words]


def run(options: argparse.Namespace, results: Results) -> bool:
    """Run what is to be done and fits; tell whether all of it is done now."""
    pieces = [PIECES[name] for name in PIECES if name in options.pieces]
    environment = _environment(options, results)
    until = time.monotonic() + 60 * options.minutes
    for piece in next_pieces(pieces, results, again=options.again):
        left, most = until - time.monotonic(), MOST if options.dry_run else piece.most
        if left < piece.usual and not options.dry_run:
            print(f"{piece.name}: usually takes {piece.usual} s, and {left:.0f} s are left", flush=True)
            continue
        print(f"{piece.name}: {piece.what}, at most {min(most, left):.0f} s", flush=True)
        command = command_of(piece, results, dry_run=options.dry_run)
        record = run_piece(piece, command, environment(piece), results, min(most, left))
        print(f"{piece.name}: {record.state} in {record.seconds:.0f} s; {results.path(piece.name, 'log')}", flush=True)
    return all(results.record(piece.name).state == DONE for piece in pieces)


def _environment(options: argparse.Namespace, results: Results) -> Callable[[Piece], dict[str, str]]:
    """Return what gives a piece its environment."""
    prepared = stand_in.prepare(results.folder.resolve() / "stand-in") if options.dry_run else {}

    def of(piece: Piece) -> dict[str, str]:
        simulated = {"NUMBA_ENABLE_CUDASIM": str(int(piece.simulated))} if options.dry_run else {}
        return {**os.environ, "DASKW2V_DATA": str(DATA.resolve()), "PYTHONUNBUFFERED": "1", **prepared, **simulated}

    return of


def main() -> None:
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # so that what runs is stopped, too
    results = Results(options.results, options.archive)
    if options.list:
        out, rows = sys.stderr if options.json else sys.stdout, []
        for piece in PIECES.values():
            state = results.record(piece.name).state
            print(f"{piece.name:14} {state:10} {piece.usual:4} s, at most {piece.most} s: {piece.what}", file=out)
            rows.append({"name": piece.name, "state": state, "usual": piece.usual, "most": piece.most})
        finish(rows, out, as_json=options.json)
        return
    if not (options.summary or options.dry_run):
        try:
            check_gpu()
        except Daskw2vError as error:
            sys.exit(str(error))
    good = options.summary or run(options, results)
    text = summary(results)
    (results.folder / "summary.md").write_text(text)
    results.pack()
    print(text)
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
