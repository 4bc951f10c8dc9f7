"""A piece as a process of its own: stopped at its limit, with its output and its rows in files of the results folder.

Of a piece NAME there are NAME.log, what it printed; NAME.rows, its rows as lines of JSON, each there as soon as it is
known; and NAME.json, how it ended. So whatever is killed, what was measured until then is kept.
"""

import json
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.gpu.pieces import Piece

ROOT = Path(__file__).parents[2]
DONE, FAILED, CUT, BROKEN, UNTRIED = "done", "failed", "cut", "broken off", "not tried"
_PATIENCE = 10.0  # seconds that a piece has to end by itself
_EVERY = 15.0  # seconds after which what there is is packed again


@dataclass
class Record:
    """How a piece ended: done, failed, cut at its limit, broken off with us, or not tried; and in how many seconds."""

    name: str
    state: str = UNTRIED
    seconds: float = 0.0
    command: str = ""


class Results:
    """A folder of results, and an archive of it that travels, if there is one.

    Parameters
    ----------
    folder
        Made where it is missing.
    archive
        A tar.gz, unpacked first where it exists.
    """

    def __init__(self, folder: Path, archive: Path | None = None) -> None:
        self.folder, self._archive = folder, archive
        folder.mkdir(parents=True, exist_ok=True)
        if archive and archive.exists():
            with tarfile.open(archive) as packed:
                packed.extractall(folder, filter="data")

    def path(self, name: str, kind: str) -> Path:
        return self.folder / f"{name}.{kind}"

    def record(self, name: str) -> Record:
        """Return how a piece ended."""
        path = self.path(name, "json")
        return Record(**json.loads(path.read_text())) if path.exists() else Record(name)

    def write(self, record: Record) -> None:
        path = self.path(record.name, "json")
        beside = path.with_suffix(".new")
        beside.write_text(json.dumps(asdict(record), indent=1))
        beside.replace(path)  # never half of it

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Return a piece's rows, as `papers.tables.keeper` wrote them: the last of each name, and no half line."""
        path, rows = self.path(name, "rows"), []
        for line in path.read_text().splitlines() if path.exists() else []:
            try:
                rows.append(json.loads(line))
            except ValueError:
                continue
        return list({(row["table"], row["name"]): row for row in rows}.values())

    def pack(self) -> None:
        """Write the archive, if there is one, anew."""
        if self._archive:
            self._archive.parent.mkdir(parents=True, exist_ok=True)
            beside = self._archive.with_name(f"{self._archive.name}.new")
            with tarfile.open(beside, "w:gz") as packed:
                for path in sorted(self.folder.iterdir()):
                    packed.add(path, path.name)
            beside.replace(self._archive)


def next_pieces(pieces: Sequence[Piece], results: Results, *, again: bool) -> list[Piece]:
    """Return what is still to be done: what was not tried first, then what did not come to its end.

    Parameters
    ----------
    again
        Whether what is done, or failed, is done again.
    """
    states = {piece.name: results.record(piece.name).state for piece in pieces}
    first = [piece for piece in pieces if again or states[piece.name] == UNTRIED]
    return first + [piece for piece in pieces if piece not in first and states[piece.name] in (CUT, BROKEN)]


def run_piece(
    piece: Piece, command: Sequence[str], environment: dict[str, str], results: Results, seconds: float
) -> Record:
    """Run a piece; return how it ended, which is written down as well.

    Parameters
    ----------
    command
        What follows `python`.
    seconds
        After which it is stopped, with all that it started.
    """
    words = [sys.executable, *command]
    record = Record(piece.name, BROKEN, 0.0, " ".join(command))
    results.write(record)
    began = time.monotonic()
    with results.path(piece.name, "log").open("a") as log:
        # A group of its own, so that all of it can be stopped, but of our session, so that it ends with us
        process = subprocess.Popen(
            words, cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            process_group=0,
        )  # fmt: skip
        try:
            code = _wait(process, began + seconds, results.pack)
        finally:
            _stop(process)
    record.seconds = round(time.monotonic() - began, 1)
    record.state = CUT if code is None else DONE if code == 0 else FAILED
    results.write(record)
    results.pack()
    return record


def _wait(process: subprocess.Popen[bytes], until: float, meanwhile: Callable[[], None]) -> int | None:
    """Return a process's exit code, or None if it goes on for too long."""
    while (left := until - time.monotonic()) > 0:
        try:
            return process.wait(min(left, _EVERY))
        except subprocess.TimeoutExpired:
            meanwhile()
    return None


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
