"""How commands print what they found: tables for people, JSON for programs."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click
from rich.console import Console
from rich.table import Table

_LONG = 4  # entries of a list that a table still shows


def print_table(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a table, with a head if a column has a name."""
    table = Table(*columns, box=None, pad_edge=False, show_header=any(columns))
    for row in rows:
        table.add_row(*row)
    # A pipe has no width: whatever reads it wants whole lines.
    console = Console(width=None if sys.stdout.isatty() else 10_000, markup=False, highlight=False)
    with console.capture() as captured:
        console.print(table)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def print_groups(groups: Iterable[tuple[str, Sequence[tuple[str, str]]]]) -> None:
    """Print tables of two columns, each below its title."""
    for number, (title, rows) in enumerate(groups):
        click.echo(f"{'' if number == 0 else chr(10)}{title}")
        print_table(("", ""), ((f"  {name}", text) for name, text in rows))


def print_neighbours(neighbours: Iterable[tuple[str, float]]) -> None:
    """Print words with their cosines."""
    print_table(("word", "cosine"), ((word, f"{cosine:.4f}") for word, cosine in neighbours))


def print_json(values: Mapping[str, Any]) -> None:
    """Print JSON."""
    click.echo(json.dumps(values, indent=1, ensure_ascii=False))


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    """Yield the leaves of nested mappings: {"a": {"b": 1}} gives ("a.b", "1")."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", _brief(value)


def _brief(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list) and len(value) > _LONG:
        return f"{len(value)} entries (shown by --json)"
    return str(value)
