"""Files in folders named by columns, such as day=2026-11-01: which of them pass filters."""

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from operator import eq
from typing import Any
from urllib.parse import unquote

from daskw2v.config.filters import COMPARISONS, MEMBERSHIP, Filter, Filters
from daskw2v.corpus.files import Source
from daskw2v.errors import InputError, counted

_NULL = "__HIVE_DEFAULT_PARTITION__"
_NUMBER = re.compile(r"-?\d+(\.\d+)?", re.ASCII)


def columns_of(url: str) -> dict[str, str | None]:
    """Return the columns that the folders of a file name, and their values; None for a missing value."""
    found = dict[str, str | None]()
    for folder in url.split("/")[:-1]:
        name, equals, value = folder.partition("=")
        if equals and name:
            found[unquote(name)] = None if value == _NULL else unquote(value)
    return found


def filtered(sources: Sequence[Source], filters: Filters) -> list[Source]:
    """Return the files that pass filters, in order; without filters, all.

    Raises
    ------
    InputError
        If a file's folders do not name a column, its value cannot be compared, or no file passes.
    """
    if not filters:
        return list(sources)
    passed = [source for source in sources if any(all(_holds(source, f) for f in group) for group in filters)]
    if not passed:
        said = " or ".join(" and ".join(f"{f.column} {f.operator} {f.value}" for f in group) for group in filters)
        raise InputError(f"None of {counted(len(sources), 'file')} passes {said}.", "Give other filters.")
    return passed


def _holds(source: Source, condition: Filter) -> bool:
    columns = columns_of(source.url)
    if condition.column not in columns:
        named = ", ".join(columns) or "none"
        raise InputError(
            f"No folder of {source.url} names the column {condition.column!r}; there is {named}.",
            f"Filters choose files by folders such as {condition.column}=1, not rows.",
        )
    value = columns[condition.column]
    if value is None:
        return False
    if isinstance(condition.value, tuple):
        found = any(eq(*_alike(source, value, member)) for member in condition.value)
        return found is MEMBERSHIP[condition.operator]
    return COMPARISONS[condition.operator](*_alike(source, value, condition.value))


def _alike(source: Source, value: str, other: Any) -> tuple[Any, Any]:
    """Return a folder's value, and what it is compared with, as one type: texts that are both numbers are numbers.

    Folders are called month=9 and month=10, whose texts have another order.
    """
    if isinstance(other, str) and not (_NUMBER.fullmatch(value) and _NUMBER.fullmatch(other)):
        return value, other
    try:
        return Decimal(value), Decimal(str(other))
    except InvalidOperation:
        raise InputError(
            f"{value!r}, of a folder of {source.url}, is not a number, and is compared with {other!r}.",
            f"Give text, such as {str(other)!r}.",
        ) from None
