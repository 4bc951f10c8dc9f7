"""Filters of files by the columns of their folders, such as day=2026-11-01: as in pandas' and Dask's `read_parquet`."""

import datetime
import re
from collections.abc import Callable, Sequence
from operator import eq, ge, gt, le, lt, ne
from typing import Any, NamedTuple

from daskw2v.config.settings import checked_name, parsed_by

Value = str | int | float | tuple[str | int | float, ...]

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {"==": eq, "!=": ne, "<=": le, ">=": ge, "<": lt, ">": gt}
MEMBERSHIP = {"in": True, "not in": False}  # and whether members pass
_SYNONYMS = {"=": "=="}
_TEXT = re.compile(r"\s*([^\s=!<>]+)\s*(==|!=|<=|>=|=|<|>)(?![=!<>])\s*(.*?)\s*")


class Filter(NamedTuple):
    """A condition on the value of a column: the value that it is compared with, and the comparison.

    The operator is a key of `COMPARISONS`, or one of `MEMBERSHIP` with a sorted tuple as the value.
    """

    column: str
    operator: str
    value: Value


Filters = tuple[tuple[Filter, ...], ...]  # files pass that meet all conditions of at least one group


def make_filter(condition: Any) -> Filter:
    """Return the filter from (column, operator, value), or from text such as "day>=2026-11-01", whose value stays text.

    Raises
    ------
    ValueError, TypeError
        If the condition is neither; or if its value is not text, a number or a date or, for "in" and "not in", a list
        of these.
    """
    if isinstance(condition, str):
        match = _TEXT.fullmatch(condition)
        if match is None:
            raise ValueError(condition)
        condition = match.groups()
    column, operator, value = condition
    operator = _SYNONYMS.get(operator, operator)
    if operator in MEMBERSHIP and isinstance(value, list | tuple | set | frozenset):
        return Filter(checked_name(column), operator, tuple(sorted(map(_plain, value), key=str)))
    if operator not in COMPARISONS:
        raise ValueError(operator)
    return Filter(checked_name(column), operator, _plain(value))


def make_filters(conditions: Any) -> Filters:
    """Return groups of filters, from one condition, a list of conditions that all hold, or a list of such lists.

    Of several lists, one has to hold. Empty lists are left out.

    Raises
    ------
    ValueError, TypeError
        If these are no sequence, or one of them is no condition, as in `make_filter`.
    """
    if isinstance(conditions, str) or _is_condition(conditions):
        return ((make_filter(conditions),),)
    if not isinstance(conditions, Sequence):
        raise TypeError(conditions)
    nested = all(isinstance(member, list | tuple) and not _is_condition(member) for member in conditions)
    groups = conditions if nested and conditions else [conditions]
    return tuple(tuple(map(make_filter, group)) for group in groups if group)


def _is_condition(value: Any) -> bool:
    """Return whether a value is (column, operator, value)."""
    if not isinstance(value, list | tuple) or len(value) != 3 or not all(isinstance(part, str) for part in value[:2]):
        return False
    return value[1] in {*COMPARISONS, *MEMBERSHIP, *_SYNONYMS}


def _plain(value: Any) -> str | int | float:
    """Return a value that can be compared with folders' names: a date as ISO text, text and numbers unchanged.

    Raises a TypeError for other values.
    """
    if isinstance(value, datetime.date):  # and datetime
        return value.isoformat()
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError(value)
    return value


FILTERS = parsed_by(
    'conditions (column, operator, value) or texts such as "day>=2026-11-01", with ==, !=, <, <=, >, >=; '
    "or in, not in and a list",
    make_filters,
    "CONDITION",
)
