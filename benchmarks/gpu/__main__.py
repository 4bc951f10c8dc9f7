"""All that a machine with an NVIDIA GPU is wanted for, in an hour or in slices: tests, checks, and every table.

    python -m benchmarks.gpu [--pieces tests memcheck ...] [--minutes 60] [--results gpu-results] [--again]
        [--dry-run] [--list] [--record NAME]

Pieces run one after the other, first those that no record in benchmarks/results has, last those that most have; each
in a process of its own, of nine minutes at most, whose rows are kept as they come. A piece begins as long as the time
that it usually takes is left of --minutes. What is done in --results is not done again: the same command goes on where
it was stopped, on another machine, too, which then also finds the kernels that were compiled (--results has them).

In the end, and with --list alone, the order and all rows that are known are printed. --dry-run goes through all of it
without a GPU, in a few minutes: with Numba's simulator, a text of a few words, and stand-ins for NVIDIA's programs. Its
figures say nothing.
"""

import argparse
import os
import signal
import sys
import time
from pathlib import Path

from benchmarks.gpu import stand_in
from benchmarks.gpu.pieces import DONE, MOST, PIECES, TABLE, Piece, in_order, measured
from benchmarks.gpu.running import Results, next_pieces, run_piece
from benchmarks.harness import Benchmark, Session, Smoke
from benchmarks.records import cell_of
from benchmarks.texts import DATA
from daskw2v.errors import Daskw2vError
from daskw2v.kernels.cuda import check_gpu


def command_of(piece: Piece, results: Results, *, dry_run: bool) -> list[str]:
    """Return what follows `python`."""
    stand_in = ["benchmarks.gpu.stand_in"] if dry_run and piece.simulated else []
    cache = ["--cache", str(results.folder.resolve() / "cache")] if piece.cached else []
    tiny, rows = piece.tiny if dry_run else (), ["--rows", str(results.path(piece.name, "rows").resolve())]
    return ["-m", *stand_in, *piece.command, *tiny, *rows, *cache]


def run(session: Session, pieces: list[Piece], results: Results) -> None:
    """Run what is to be done and fits."""
    options, kernels = session.options, str(results.folder.resolve() / "kernels")
    environment = {
        "NUMBA_CACHE_DIR": kernels,
        **os.environ,
        "DASKW2V_DATA": str(DATA.resolve()),
        "PYTHONUNBUFFERED": "1",
    }
    if options.dry_run:
        environment |= stand_in.prepare(session.fresh("stand-in"))
    until = time.monotonic() + 60 * options.minutes
    for piece in next_pieces(pieces, results, again=options.again):
        left, most = until - time.monotonic(), MOST if options.dry_run else piece.most
        if left < piece.usual and not options.dry_run:
            session.note(f"{piece.name}: usually takes {piece.usual} s, and {left:.0f} s are left")
            continue
        if options.dry_run:
            environment["NUMBA_ENABLE_CUDASIM"] = str(int(piece.simulated))
        session.note(f"{piece.name}: {piece.what}, at most {min(most, left):.0f} s")
        command = command_of(piece, results, dry_run=options.dry_run)
        ended = run_piece(piece, command, environment, results, min(most, left))
        session.note(f"{piece.name}: {ended.state} in {ended.seconds:.0f} s; {results.path(piece.name, 'log')}")


def summarize(session: Session, pieces: list[Piece], days: dict[str, list[str]], results: Results) -> None:
    """Print in which order pieces run and how they ended, and all their rows."""
    table, minutes = session.table(TABLE, ("what", "measured", "usually s", "ends at minute", "state", "s"), ".0f"), 0.0
    for piece in pieces:
        ended, minutes = results.ended(piece.name), minutes + piece.usual / 60
        when = ", ".join(days[piece.name]) or "never"
        table.row(piece.name, piece.what, when, piece.usual, minutes, ended.state, ended.seconds)
    for piece in pieces:
        rows = results.rows(piece.name)
        for title in dict.fromkeys(row["table"] for row in rows):
            mine = [row for row in rows if row["table"] == title]
            table = session.table(f"{title} ({piece.name})", list(mine[0]["cells"]), mine[0]["form"])
            for row in mine:
                table.row(row["name"], *map(cell_of, row["cells"].values()))


def measure(session: Session) -> None:
    options, results, days = session.options, Results(session.options.results), measured()
    session.text = "100 MB of Wikipedia, and a drawn text of 555,514 words"
    pieces = [piece for piece in in_order(days) if piece.name in options.pieces]
    if options.record and (options.list or options.dry_run):
        sys.exit("A record is of the machine that measures: without --list and --dry-run.")
    if not options.list:
        if not options.dry_run:
            try:
                check_gpu()
            except Daskw2vError as error:
                sys.exit(str(error))
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))  # so that what runs is stopped, too
        run(session, pieces, results)
    summarize(session, pieces, days, results)
    left = [piece.name for piece in pieces if results.ended(piece.name).state != DONE]
    if left and not options.list:
        session.wrong(f"not done: {', '.join(left)}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--pieces", nargs="+", choices=PIECES, default=list(PIECES), help="all by default")
    parser.add_argument("--minutes", type=float, default=60.0, help="all pieces together")
    parser.add_argument("--results", type=Path, default=Path("gpu-results"), help="folder of all that is kept")
    parser.add_argument("--again", action="store_true", help="also what is done, or has failed")
    parser.add_argument("--dry-run", action="store_true", help="every line of it, without a GPU")
    parser.add_argument("--list", action="store_true", help="run nothing; print the order, and what is known")


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/kernels/cuda", "daskw2v/objectives", "daskw2v/sampling", "daskw2v/training/devices"),
    Smoke({"list": True}, tuple(PIECES)),  # tests go through the dry run
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
