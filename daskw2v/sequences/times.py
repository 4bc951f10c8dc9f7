"""Times of events: numbers, or points in time, which become nanoseconds since 1970; and durations between them."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

from daskw2v.errors import InputError, ParameterError
from daskw2v.extras import Extra
from daskw2v.sequences.sessions import Sessions
from daskw2v.sequences.tables import is_text, value_type

pd, pa, pc = Extra("pandas", "events"), Extra("pyarrow", "events"), Extra("pyarrow.compute", "events")

CLOCK = "clock"  # kind of points in time; the others are types of pandas
WHOLE, REAL = "int64", "float64"
_NUMBER = r"^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$"
_WHAT = "Give numbers, timestamps, dates or ISO 8601 text."


def kind_of_times(kind: Any, url: str) -> str | None:
    """Return the kind of times in a column of an Arrow type; None where all are null.

    Raises
    ------
    InputError
        If it holds no times.
    """
    kind = value_type(kind)
    if pa.types.is_null(kind):
        return None
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or is_text(kind):
        return CLOCK
    if pa.types.is_integer(kind):
        return WHOLE
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return REAL
    raise InputError(f"Times of {url} are of type {kind}.", _WHAT)


def common_times(kinds: Iterable[tuple[str, str | None]]) -> str:
    """Return the kind of all times, given the URL and kind of those of each file.

    Raises
    ------
    InputError
        If some are numbers, and others are not.
    """
    first = {kind: url for url, kind in reversed([*kinds]) if kind is not None}
    if CLOCK in first and len(first) > 1:
        other = next(url for kind, url in first.items() if kind != CLOCK)
        raise InputError(
            f"Times of {other} are numbers, those of {first[CLOCK]} are not.",
            "Write all of them as numbers, or all as timestamps.",
        )
    return next((kind for kind in (CLOCK, REAL) if kind in first), WHOLE)


def parsed_times(texts: Any, url: str) -> tuple[str, Any]:
    """Return the kind of times that are text of CSV, and the times: integers, float64, or timestamps.

    Raises
    ------
    InputError
        If one is neither a number nor ISO 8601, or only some are numbers.
    """
    texts = pc.utf8_trim_whitespace(texts)
    is_number = pc.match_substring_regex(texts, _NUMBER)
    if not pc.any(is_number).as_py():
        return CLOCK, _timestamps(texts, url)
    others = texts.filter(pc.invert(is_number))
    if len(others):
        raise InputError(
            f"{url} has the time {others[0].as_py()!r}, where other times are numbers.",
            "Write all of them as numbers, or all as ISO 8601.",
        )
    try:
        return WHOLE, texts.cast(pa.int64())
    except pa.ArrowInvalid:
        return REAL, texts.cast(pa.float64())


def times_of(array: Any, kind: str, url: str) -> Any:
    """Return times as int64 or float64: numbers as they are, points in time in nanoseconds.

    Raises
    ------
    InputError
        If one is infinite, beyond the range of nanoseconds in 64 bits, or not ISO 8601.
    """
    try:
        if kind == CLOCK:
            times = _timestamps(array, url) if is_text(array.type) else array
            zone = times.type.tz if pa.types.is_timestamp(times.type) else None
            return times.cast(pa.timestamp("ns", zone)).cast(pa.int64())
        numbers = array.cast(kind)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{url} has a time out of range ({error}).", "Times are of the years 1678..2261, or numbers of 64 bits."
        ) from None
    if kind == REAL:
        if len(infinite := numbers.filter(pc.is_inf(numbers))):
            raise InputError(f"{url} has the time {infinite[0].as_py()}.", "Give finite times.")
        return pc.if_else(pc.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)
    return numbers


def _timestamps(texts: Any, url: str) -> Any:
    """Return ISO 8601 text as timestamps in nanoseconds; without a zone it is UTC."""
    try:
        times = pd.to_datetime(texts.to_pandas(), format="ISO8601", utc=True).dt.as_unit("ns")
    except ValueError as error:
        first = str(error).partition("\n")[0]
        raise InputError(f"{url} has a time that is neither a number nor ISO 8601 ({first}).", _WHAT) from None
    found = pa.array(times, pa.timestamp("ns", "UTC"))
    wrong = texts.filter(pc.and_(pc.is_valid(texts), pc.or_(pc.is_null(found), _is_relative(texts))))
    if len(wrong):
        raise InputError(f"{url} has the time {wrong[0].as_py()!r}.", _WHAT)
    return found


def _is_relative(texts: Any) -> Any:
    """Tell which texts pandas takes as the time of reading."""
    return pc.is_in(pc.utf8_lower(texts), value_set=pa.array(["now", "today"], texts.type))


def duration_of(sessions: Sessions, name: str, kinds: Mapping[str, str]) -> float | None:
    """Return a duration as a number, in nanoseconds if times are not numbers; None if there is none.

    Raises
    ------
    ParameterError
        If it is none, is not above 0, or has a unit where times are numbers, or none where they are not.
    """
    given, numeric = getattr(sessions, name), kinds["time"] != CLOCK
    if given is None:
        return None
    if not numeric and _is_number(given):
        raise ParameterError(
            f"{name}={given!r} has no unit, but times are no numbers.", f"Give one, such as {given + ' s'!r}."
        )
    try:
        duration = float(given) if numeric else float(pd.Timedelta(given).as_unit("ns").value)
    except ValueError as error:
        raise ParameterError(
            f"{name}={given!r} is not a {'number' if numeric else 'duration'} ({error}).",
            f"Times are {'numbers' if numeric else 'no numbers'}: give a {'number' if numeric else 'duration'}, such "
            f"as {'1800' if numeric else '30 min'}.",
        ) from error
    if not 0 < duration < math.inf:
        raise ParameterError(f"{name}={given!r} is not above 0.", "Give a longer one, or none.")
    return duration


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
