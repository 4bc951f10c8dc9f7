"""A piece as a process of its own: stopped at its limit, with its output and its rows in files of the results folder.

Of a piece NAME there are NAME.log, what it printed; NAME.rows, its rows as lines of JSON, each there as soon as it is
known; and NAME.json, how it ended. So whatever is killed, what was measured until then is kept.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.gpu.pieces import BROKEN, CUT, DONE, FAILED, UNTRIED, Piece
from benchmarks.records import ROOT

_PATIENCE = 10.0  # seconds that a piece has to end by itself


@dataclass
class Ended:
    """How a piece ended: done, failed, cut at its limit, broken off with us, or not tried; and in how many seconds."""

    name: str
    state: str = UNTRIED
    seconds: float = 0.0


class Results:
    """A folder of results, made when there is one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str, kind: str) -> Path:
        return self.folder / f"{name}.{kind}"

    def ended(self, name: str) -> Ended:
        """Return how a piece ended."""
        path = self.path(name, "json")
        return Ended(**json.loads(path.read_text())) if path.exists() else Ended(name)

    def write(self, ended: Ended) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.path(ended.name, "json")
        beside = path.with_suffix(".new")
        beside.write_text(json.dumps(asdict(ended), indent=1))
        beside.replace(path)  # never half of it

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return a piece's rows, as `tables.keeper` wrote them: the last of each name, and no half line."""
        path, rows = self.path(name, "rows"), []
        for line in path.read_text().splitlines() if path.exists() else []:
            try:
                rows.append(json.loads(line))
            except ValueError:
                continue
        return list({(row["table"], row["name"]): row for row in rows}.values())


def next_pieces(pieces: Sequence[Piece], results: Results, *, again: bool) -> list[Piece]:
    """Return what is still to be done: what was not tried, or all `again`; then what did not come to its end."""
    states = {piece.name: results.ended(piece.name).state for piece in pieces}
    first = [piece for piece in pieces if again or states[piece.name] == UNTRIED]
    return first + [piece for piece in pieces if piece not in first and states[piece.name] in (CUT, BROKEN)]


def run_piece(
    piece: Piece, command: Sequence[str], environment: dict[str, str], results: Results, seconds: float
) -> Ended:
    """Run what follows `python`, and stop it after some seconds with all that it started; write and return its end."""
    ended = Ended(piece.name, BROKEN)
    results.write(ended)
    began, code = time.monotonic(), None
    with results.path(piece.name, "log").open("a") as log:
        # A group of its own, so that all of it can be stopped, but of our session, so that it ends with us
        process = subprocess.Popen(
            [sys.executable, *command],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            process_group=0,
        )
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            pass
        finally:
            _stop(process)
    ended.seconds = round(time.monotonic() - began, 1)
    ended.state = CUT if code is None else DONE if code == 0 else FAILED
    results.write(ended)
    return ended


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a process's group: all that it started, if it has ended itself."""
    for how, patience in ((signal.SIGTERM, _PATIENCE), (signal.SIGKILL, None)):
        try:
            os.killpg(process.pid, how)
        except ProcessLookupError:
            return
        try:
            process.wait(patience)
        except subprocess.TimeoutExpired:
            continue
