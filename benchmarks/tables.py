"""Tables of figures: Markdown rows as they come, and the same as values."""

import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TextIO


@dataclass(frozen=True)
class Spread:
    """The middle of several values, and their extremes."""

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float], middle: Callable[[list[float]], float] = statistics.median) -> Self:
        several = list(values)
        return cls(middle(several), min(several), max(several))

    def scaled(self, factor: float) -> "Spread":
        return Spread(self.middle * factor, self.low * factor, self.high * factor)


def mean_of(values: Iterable[float | None]) -> Spread | None:
    """Return the mean of what is known, such as the scores of several seeds, and the extremes; None of nothing."""
    known = [value for value in values if value is not None]
    return Spread.of(known, statistics.mean) if known else None


Cell = str | float | Spread | None


def text_of(cell: Cell, form: str) -> str:
    """Return a cell as text: whole numbers in full, others by the table's format, nothing for None."""
    if cell is None:
        return ""
    if isinstance(cell, str):
        return cell.replace("|", "/")
    if isinstance(cell, Spread):
        low, middle, high = (format(value, form) for value in (cell.low, cell.middle, cell.high))
        return middle if low == high else f"{middle} ({low}..{high})"
    return f"{cell:,}" if isinstance(cell, int) else format(cell, form)


def line_of(cells: Iterable[Cell], form: str) -> str:
    """Return a Markdown row."""
    return f"| {' | '.join(text_of(cell, form) for cell in cells)} |"


def plain(value: Any) -> Any:
    """Return what JSON has no form for as what it has: a Spread, or a scalar of NumPy."""
    return [value.middle, value.low, value.high] if isinstance(value, Spread) else value.item()


@dataclass(frozen=True)
class Row:
    """A row of a table: its name, and its cells by column."""

    table: str
    name: str
    cells: dict[str, Cell]


Keep = Callable[[Row, str], None]


def keeper(path: Path | None) -> Keep | None:
    """Return what adds a row, and the format of its numbers, to a file as a line of JSON; None for no file."""
    if path is None:
        return None

    def keep(row: Row, form: str) -> None:
        with path.open("a") as out:
            print(json.dumps({**vars(row), "form": form}, default=plain), file=out)

    return keep


@dataclass
class Table:
    """Prints its head when it is made, and each row when it is known.

    Parameters
    ----------
    title
        What stands above the table.
    columns
        Heads of all columns but the first, which names rows.
    out
        Where it is printed.
    form
        Format of numbers that are not whole.
    rows
        What it has printed.
    keep
        Called with each row at once: what a run that is killed has measured is kept.
    """

    title: str
    columns: Sequence[str]
    out: TextIO
    form: str = ".3f"
    rows: list[Row] = field(default_factory=list)
    keep: Keep | None = None

    def __post_init__(self) -> None:
        print(f"\n**{self.title}**\n", file=self.out)
        self._print("", *self.columns)
        self._print("---", *("---" for _ in self.columns))

    def row(self, name: str, *cells: Cell) -> None:
        """Print a row, with a cell for each column."""
        self.rows.append(Row(self.title, name, dict(zip(self.columns, cells, strict=True))))
        self._print(name, *cells)
        if self.keep:
            self.keep(self.rows[-1], self.form)

    def as_dict(self) -> dict[str, Any]:
        """Return it as a record keeps it."""
        rows = {row.name: [*row.cells.values()] for row in self.rows}
        return {"title": self.title, "columns": [*self.columns], "form": self.form, "rows": rows}

    def _print(self, *cells: Cell) -> None:
        print(line_of(cells, self.form), file=self.out, flush=True)
