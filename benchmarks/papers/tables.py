"""What a paper says, and tables of it beside ours: Markdown rows as they come, and the same as values."""

import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from typing import Any, Self, TextIO


@dataclass(frozen=True)
class Figures:
    """What one place of a paper says, by name.

    Parameters
    ----------
    source
        The place, such as "table 2" or "section 5.1".
    values
        The figures, as printed there.
    """

    source: str
    values: Mapping[Any, float]

    def __getitem__(self, name: Any) -> float:
        return self.values[name]

    def get(self, name: Any) -> float | None:
        """Return a figure, or None where the paper has none."""
        return self.values.get(name)


@dataclass(frozen=True)
class Paper:
    """A paper: authors, year and title; its hardware, corpora and settings; and its figures."""

    title: str
    setting: str
    figures: tuple[Figures, ...]


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

    def inverse(self) -> "Spread":
        return Spread(1 / self.middle, 1 / self.high, 1 / self.low)


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


@dataclass(frozen=True)
class Row:
    """A row of a table of a paper: its name, and its cells by column."""

    paper: str
    table: str
    name: str
    cells: dict[str, Cell]


Keep = Callable[[Row, str], None]


def keeper(path: Path | None) -> Keep | None:
    """Return what adds a row, and the format of its numbers, to a file as a line of JSON; None for no file."""
    if path is None:
        return None

    def plain(value: Any) -> Any:
        return asdict(value) if is_dataclass(value) else value.item()  # a scalar of NumPy

    def keep(row: Row, form: str) -> None:
        with path.open("a") as out:
            print(json.dumps({**asdict(row), "form": form}, default=plain), file=out)

    return keep


@dataclass
class Table:
    """Prints its head when it is made, and each row when it is known.

    Parameters
    ----------
    paper, title
        Number of the paper; what stands above the table.
    columns
        Heads of all columns but the first, which names rows. Where the paper's figures have columns of their own, each
        begins with "paper" or with "here".
    out
        Where it is printed.
    form
        Format of numbers that are not whole.
    rows
        What it has printed.
    keep
        Called with each row at once: what a run that is killed has measured is kept.
    """

    paper: str
    title: str
    columns: Sequence[str]
    out: TextIO
    form: str = ".3f"
    rows: list[Row] = field(default_factory=list)
    keep: Keep | None = None

    def __post_init__(self) -> None:
        print(f"\n**{self.title}**\n", file=self.out)
        self._line("", *self.columns)
        self._line("---", *("---" for _ in self.columns))

    def row(self, name: str, *cells: Cell) -> None:
        """Print a row, with a cell for each column."""
        self.rows.append(Row(self.paper, self.title, name, dict(zip(self.columns, cells, strict=True))))
        self._line(name, *cells)
        if self.keep:
            self.keep(self.rows[-1], self.form)

    def _line(self, *cells: Cell) -> None:
        print(f"| {' | '.join(text_of(cell, self.form) for cell in cells)} |", file=self.out, flush=True)
