"""Records of figures: a JSON file of each run that is kept, in `benchmarks/results`."""

import json
import subprocess
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any, Self

from benchmarks.tables import Cell, Spread, plain

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"


@dataclass(frozen=True)
class Record:
    """A run of a benchmark.

    Parameters
    ----------
    what
        What was measured, as a title.
    command
        What prints it; at `commit`, where the command of today is another.
    commit, date
        Of the code that was measured, and of the day, as YYYY-MM-DD.
    machine
        As `benchmarks.machine.Machine` has it; what is not known of an old run is left out.
    text, seeds, threads
        What was trained on, and how; no seeds where there is one.
    peers
        What ran beside ours, by name: its settings, and what it did differently.
    code
        Files and folders that the figures speak of.
    notes
        Sentences: what limits the figures, and what differs.
    tables
        Each with `title`, `columns`, `form` (the format of numbers) and `rows`: by name a list of cells. A cell is a
        number, text, None, or a list of the middle, the lowest and the highest of several.
    """

    what: str
    command: str
    commit: str
    date: str
    machine: dict[str, Any]
    text: str
    seeds: list[int]
    threads: list[int]
    peers: dict[str, str]
    code: list[str]
    notes: list[str]
    tables: list[dict[str, Any]]

    @classmethod
    def read(cls, name: str) -> Self:
        """Return a record by the name of its file.

        Raises
        ------
        FileNotFoundError
            If there is none.
        TypeError
            If the file has other fields.
        """
        return cls(**json.loads((RESULTS / f"{name}.json").read_text()))

    def write(self, name: str) -> None:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.json").write_text(json.dumps(vars(self), indent=1, default=plain) + "\n")

    def cell(self, table: str, row: str, column: str) -> Cell:
        """Return a cell of the table whose title begins so.

        Raises
        ------
        LookupError
            If there is none.
        """
        found = next((one for one in self.tables if one["title"].startswith(table)), None)
        if found is None:
            raise LookupError(f"No table {table!r} in {self.what!r}: {[one['title'] for one in self.tables]}")
        return cell_of(found["rows"][row][found["columns"].index(column)])

    def number(self, table: str, row: str, column: str) -> float:
        """Return a figure: of several values the middle one.

        Raises
        ------
        LookupError
            If there is none.
        """
        cell = self.cell(table, row, column)
        if cell is None or isinstance(cell, str):
            raise LookupError(f"{row}, {column} of {table!r} is no figure: {cell!r}")
        return cell.middle if isinstance(cell, Spread) else cell

    def changes(self, until: str = "HEAD") -> int | None:
        """Return how many commits have changed the code since, pages aside; None where git does not know the commit."""
        since = f"{self.commit.rstrip('+')}..{until.rstrip('+')}"
        words = ["git", "rev-list", "--count", since, "--", *self.code, ":(exclude)*.md"]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        return int(done.stdout) if done.returncode == 0 else None


def cell_of(value: Any) -> Cell:
    """Return a cell of what JSON has for it."""
    return Spread(*value) if isinstance(value, list) else value


def names() -> list[str]:
    """Return the names of all records."""
    return sorted(path.stem for path in RESULTS.glob("*.json"))


def commit_now() -> str:
    """Return the commit of this checkout, with a plus where files differ from it."""
    words = ["git", "describe", "--always", "--dirty=+", "--abbrev=10", "--exclude=*"]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def today() -> str:
    return datetime.now(UTC).date().isoformat()


def age(day: str, now: str) -> int:
    """Return the days between two days."""
    return (date.fromisoformat(now) - date.fromisoformat(day)).days
