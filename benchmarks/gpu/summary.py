"""What the pieces found, as Markdown: a short table for README, then every row, and what is missing."""

from collections.abc import Callable, Iterator
from typing import Any

from benchmarks.gpu.pieces import PIECES
from benchmarks.gpu.running import DONE, UNTRIED, Results
from benchmarks.tables import Cell, Spread, text_of

Row = dict[str, Any]


def summary(results: Results) -> str:
    """Return the text; of pieces that are missing or have failed, too."""
    lines = ["## On a GPU", "", "| | |", "| --- | --- |"]
    lines += [f"| {name} | {found} |" for name, found in headlines(results)]
    lines += ["", "## Pieces", "", "| piece | state | seconds |", "| --- | --- | --- |"]
    for name in PIECES:
        record = results.record(name)
        lines.append(f"| {name} | {record.state} | {record.seconds:,.0f} |")
    for name, piece in PIECES.items():
        state = results.record(name).state
        if state != UNTRIED:
            lines += ["", f"## {name}: {piece.what}{'' if state == DONE else f' ({state}: what there is of it)'}"]
            lines += tables(results.rows(name))
    return "\n".join([*lines, ""])


def tables(rows: list[Row]) -> Iterator[str]:
    """Yield the lines of all tables of a piece."""
    for title in dict.fromkeys(row["table"] for row in rows):
        mine = [row for row in rows if row["table"] == title]
        columns = list(mine[0]["cells"])
        yield from ("", f"**{title}**", "", line("", *columns), line("---", *("---" for _ in columns)))
        for row in mine:
            yield line(row["name"], *(text_of(cell_of(cell), row["form"]) for cell in row["cells"].values()))


def line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def cell_of(cell: Any) -> Cell:
    """Return a cell as it was before it became JSON."""
    return Spread(**cell) if isinstance(cell, dict) else cell


def headlines(results: Results) -> Iterator[tuple[str, str]]:
    """Yield what README has to tell, each with its figure, or with the piece that has to tell it first."""
    told: dict[str, tuple[str, Callable[[list[Row]], str | None]]] = {
        "GPU": ("machine", lambda rows: _cell(rows, "GPU", "what is there")),
        "tests marked gpu": ("tests", _outcomes),
        "memory errors, by compute-sanitizer": ("memcheck", _sum),
        "races in shared memory, by compute-sanitizer": ("racecheck", _sum),
        "largest difference from float64, over the largest move": ("correctness", _largest),
        "sgns on 100 MB of Wikipedia, d=128, N=5, W=5, sample 1e-4: kernel alone, million words/s": (
            "speed", lambda rows: _speed(rows, "BlazingText", "kernel: before subsampling"),
        ),
        "the same, windows as FULL-W2V's": (
            "speed", lambda rows: _speed(rows, "FULL-W2V", "kernel: before subsampling"),
        ),
        "the same, windows of 1 to 5, whole task of a worker": (
            "speed", lambda rows: _speed(rows, "BlazingText", "task"),
        ),
        "fastest max_in_flight and hot_rows": ("sweep", _fastest),
        "quality on the GPU beside the processor's": ("quality", _quality),
        "whole run on the GPU beside the processor's, million words/s": ("peers", _beside),
    }  # fmt: skip
    for name, (piece, read) in told.items():
        found = read(results.rows(piece))
        yield name, found or f"not measured: {piece} is {results.record(piece).state}"


def _cell(rows: list[Row], name: str, column: str) -> str | None:
    """Return the cell of a row whose column begins so."""
    for row in rows:
        for head, cell in row["cells"].items():
            if row["name"] == name and head.startswith(column):
                return text_of(cell_of(cell), row["form"])
    return None


def _outcomes(rows: list[Row]) -> str | None:
    ends = [row["cells"]["outcome"] for row in rows]
    return ", ".join(f"{ends.count(end)} {end}" for end in sorted(set(ends))) or None


def _sum(rows: list[Row]) -> str | None:
    """Return what compute-sanitizer found in all kernels together, and where it could not look."""
    cells = [next(iter(row["cells"].values())) for row in rows]
    numbers, others = ([c for c in cells if isinstance(c, int) == kind] for kind in (True, False))
    told = [f"{sum(numbers)} in {len(numbers)} kernels"] if numbers else []
    return "; ".join([*told, *dict.fromkeys(others)]) or None


def _largest(rows: list[Row]) -> str | None:
    return f"{max(row['cells']['rows'] for row in rows):.1e}, of {len(rows)} kernels" if rows else None


def _speed(rows: list[Row], mode: str, column: str) -> str | None:
    names = (row["name"] for row in rows)
    found = [name for name in names if name.startswith("sgns, ") and mode in name and name.endswith("sample 0.0001")]
    return _cell(rows, found[0], column) if found else None


def _fastest(rows: list[Row]) -> str | None:
    best = {}
    for kind in ("max_in_flight", "hot_rows"):
        speeds = {
            row["name"]: row["cells"]["before subsampling"]["middle"] for row in rows if f"{kind}=" in row["name"]
        }
        if speeds:
            name = max(speeds, key=lambda name: speeds[name])
            best[name] = speeds[name]
    return "; ".join(f"{name}: {speed:,.1f} million words/s" for name, speed in best.items()) or None


def _quality(rows: list[Row]) -> str | None:
    """Return the scores of the most warps in flight, and of the processor."""
    if not rows:
        return None
    chosen = {row["name"]: row for row in (rows[0], rows[-1])}
    return "; ".join(
        f"{name}: "
        + ", ".join(
            f"{of} {text_of(cell_of(cell), row['form'])}" for of, cell in row["cells"].items() if of != "seconds"
        )
        for name, row in chosen.items()
    )


def _beside(rows: list[Row]) -> str | None:
    return (
        "; ".join(f"{row['name']}: {text_of(cell_of(row['cells']['whole run']), row['form'])}" for row in rows) or None
    )
