"""Printing of results: tables for people, JSON for programs."""

import json
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, wraps
from itertools import zip_longest
from typing import Any, NamedTuple

import click
from rich.cells import cell_len

from daskw2v.safe_text import escaped, escaped_json, escaped_lines

_MAX_ENTRIES = 4  # of a list that a table shows
_MIN_WIDTH = 20  # characters of a column that is folded

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


class Output(NamedTuple):
    """The output of a command.

    Parameters
    ----------
    facts
        The values that `--json` prints.
    show
        Function that prints the output for people.
    exit_code
        The exit code of the command.
    """

    facts: Mapping[str, Any]
    show: Callable[[], object]
    exit_code: int = 0


def prints_output(command: Callable[..., Output]) -> Callable[..., None]:
    """Return a command that prints the output which a function returns, as JSON with the option `--json`."""

    @json_option
    @wraps(command)
    def printing(*args: Any, as_json: bool, **options: Any) -> None:
        output = command(*args, **options)
        if as_json:
            print_json(output.facts)
        else:
            output.show()
        if output.exit_code:
            click.get_current_context().exit(output.exit_code)

    return printing


def print_lines(text: str) -> None:
    """Print lines of text, without control characters, as the text may be another program's."""
    click.echo(escaped_lines(text))


def print_table(columns: Sequence[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a table of texts, with `columns` as the header unless all of them are "".

    Each row has one text per column. Where a terminal is too narrow, the widest column is folded.
    """
    lines = [tuple(map(escaped, cells)) for cells in (*([columns] if any(columns) else []), *rows)]
    widths = [max(map(cell_len, cells)) for cells in zip(*lines, strict=True)]
    if widths and sys.stdout.isatty():  # programs that read from a pipe need complete lines
        beyond = sum(widths) + 2 * (len(widths) - 1) - shutil.get_terminal_size().columns
        widest = widths.index(max(widths))
        widths[widest] = min(widths[widest], max(widths[widest] - beyond, _MIN_WIDTH))
    for number, cells in enumerate(lines):
        folded = [_fold(cell, width) for cell, width in zip(cells, widths, strict=True)]
        for parts in zip_longest(*folded, fillvalue=""):
            padded = (part + " " * (width - cell_len(part)) for part, width in zip(parts, widths, strict=True))
            line = "  ".join(padded).rstrip()
            click.echo(click.style(line, bold=True) if any(columns) and number == 0 else line)


def _fold(cell: str, width: int) -> list[str]:
    """Return the lines of a cell in a column of `width` characters."""
    return [cell] if cell_len(cell) <= width else textwrap.wrap(cell, width, break_on_hyphens=False)


def print_groups(groups: Iterable[tuple[str, Sequence[tuple[str, str]]]]) -> None:
    """Print tables of two columns, names and texts, each below its title."""
    for number, (title, rows) in enumerate(groups):
        click.echo(f"{'' if number == 0 else chr(10)}{escaped(title)}")
        print_table(("", ""), ((f"  {name}", text) for name, text in rows))


def cosine_facts(neighbours: Iterable[tuple[str, float]]) -> list[dict[str, Any]]:
    """Return words and their cosines as a list of dicts, for JSON."""
    return [{"word": word, "cosine": float(cosine)} for word, cosine in neighbours]


def neighbours_output(neighbours: Sequence[tuple[str, float]]) -> Output:
    """Return the output of words and their cosines."""
    rows = ((word, f"{cosine:.4f}") for word, cosine in neighbours)
    return Output({"neighbours": cosine_facts(neighbours)}, lambda: print_table(("word", "cosine"), rows))


def named_output(name: str, value: str) -> Output:
    """Return the output of one value, which has this name in JSON."""
    return Output({name: value}, partial(print_lines, value))


def print_json(values: Mapping[str, Any]) -> None:
    """Print values as one document of JSON."""
    click.echo(escaped_json(json.dumps(values, indent=1, ensure_ascii=False)))


def flatten(values: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, str]]:
    """Yield the names and texts of the leaves of nested mappings: {"a": {"b": 1}} gives ("a.b", "1").

    A list is one leaf. The text of a list of more than `_MAX_ENTRIES` entries is their number.
    """
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", _format_leaf(value)


def _format_leaf(value: Any) -> str:
    """Return a value as short text."""
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list) and len(value) > _MAX_ENTRIES:
        return f"{len(value)} entries (shown by --json)"
    return str(value)
