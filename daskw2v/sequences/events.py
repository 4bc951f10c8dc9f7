"""Reads events: Parquet or CSV as a dataframe of Dask whose columns have the same names and types in all files."""

import glob
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from daskw2v.config.resources import Resources
from daskw2v.corpus.files import Source
from daskw2v.corpus.formats import PARQUET, TEXT
from daskw2v.corpus.formats.weights import MOST
from daskw2v.errors import Daskw2vError, InputError, ParameterError, counted
from daskw2v.extras import Extra, needed
from daskw2v.sequences.sessions import Sessions
from daskw2v.store.credentials import Options

pd, pa = Extra("pandas", "events"), Extra("pyarrow", "events")

EXTRA = "events"
_STRING, _CLOCK = "string[pyarrow]", "clock"


class EventTable(NamedTuple):
    """Events of some files.

    Parameters
    ----------
    frame
        A dataframe of Dask with the columns user, time, item, and weight, goal and market where `Sessions` names these.
    kinds
        Type of each column; "clock" for times that are nanoseconds.
    """

    frame: Any
    kinds: dict[str, str]


def read_events(sources: Sequence[Source], sessions: Sessions, resources: Resources) -> EventTable:
    """Return the events of some files.

    Raises
    ------
    InputError
        If files are of several formats, a column is missing or has another type; and from tasks, if a value is missing
        or a weight is below 0.
    """
    table = _table(sources, resources)
    missing = [column for column in sessions.roles.values() if column not in table.columns]
    if missing:
        raise InputError(
            f"{sources[0].url} has no column {missing[0]!r}.",
            f"Name {_listed([*sessions.roles], 'and')} among: {', '.join(map(str, table.columns))}.",
        )
    kinds = {role: _kind(role, table.dtypes[column], column) for role, column in sessions.roles.items()}
    meta = {role: "int64" if kind == _CLOCK else kind for role, kind in kinds.items()}
    columns = dict(sessions.roles)
    frame = table[[*dict.fromkeys(columns.values())]].map_partitions(
        partial(_as_events, columns=columns, types=meta), meta=pd.DataFrame(columns=list(meta)).astype(meta)
    )
    return EventTable(frame, kinds)


@contextmanager
def explained(sources: Sequence[Source]) -> Iterator[None]:
    """Turn errors of pandas, Arrow and Dask on unreadable files into an InputError."""
    try:
        yield
    except Daskw2vError:
        raise
    except (ValueError, TypeError, KeyError, OSError, pa.ArrowException) as error:
        raise InputError(
            f"{sources[0].url} (of {counted(len(sources), 'file')}) cannot be read as events ({error}).",
            "Give Parquet, or CSV with a header, with columns of one type.",
        ) from error


def duration_of(sessions: Sessions, name: str, kinds: Mapping[str, str]) -> float | None:
    """Return a duration as a number, in nanoseconds if times are not numbers; None if there is none.

    Raises
    ------
    ParameterError
        If it is none, or not above 0.
    """
    given, kind = getattr(sessions, name), kinds["time"]
    if given is None:
        return None
    numeric = kind != _CLOCK
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


def reader_of(sources: Sequence[Source]) -> Callable[..., Any]:
    """Return the function that makes a dataframe of files; called with dask.dataframe, URLs, options, bytes of a block.

    Raises
    ------
    InputError
        If the files have several formats, or one that is not a table.
    """
    kinds, read = {(source.format, source.compression) for source in sources}, _TABLES.get(sources[0].format)
    if len(kinds) > 1 or read is None:
        raise InputError(
            f"The {len(sources)} files have several formats, or one that is not a table.", "Give Parquet or CSV."
        )
    return read


def _table(sources: Sequence[Source], resources: Resources) -> Any:
    # Escaped, as Dask would take the names of files for patterns
    frames, urls = needed("dask.dataframe", EXTRA), [glob.escape(source.url) for source in sources]
    block_bytes = None if sources[0].compression else resources.block_bytes
    return reader_of(sources)(frames, urls, Options(resources.storage_options), block_bytes)


def _parquet_table(frames: Any, urls: list[str], options: Options, block_bytes: int | None) -> Any:
    return frames.read_parquet(urls, storage_options=options, split_row_groups="adaptive", blocksize=block_bytes)


def _csv_table(frames: Any, urls: list[str], options: Options, block_bytes: int | None) -> Any:
    return frames.read_csv(urls, storage_options=options, blocksize=block_bytes)


_TABLES = {PARQUET.name: _parquet_table, TEXT.name: _csv_table}


def _kind(role: str, dtype: Any, column: str) -> str:
    """Return the type that a column is brought to."""
    numeric = pd.api.types.is_numeric_dtype(dtype)
    integer = pd.api.types.is_integer_dtype(dtype)
    match role:
        case "time" if not numeric:
            return _CLOCK
        case "item" | "market" if not (integer or _is_text(dtype)):
            raise InputError(
                f"{role.capitalize()}s, in the column {column!r}, are of type {dtype}.",
                "Give integers or strings. In pandas, integers with missing values are not integers.",
            )
        case "weight" | "goal" if not numeric:  # truth values are numeric
            raise InputError(f"The column {column!r} of {role}s is of type {dtype}.", "Give numbers or truth values.")
        case "weight":
            return "float64"
        case "goal":
            return "bool"
    if _is_text(dtype):
        return _STRING
    if integer:
        return "uint64" if str(dtype).lower() == "uint64" else "int64"
    return "float64" if numeric else str(dtype)


def _is_text(dtype: Any) -> bool:
    return isinstance(dtype, pd.CategoricalDtype) or bool(pd.api.types.is_string_dtype(dtype))


def _as_events(table: Any, columns: Mapping[str, str], types: Mapping[str, str]) -> Any:
    """Task: return a partition with columns of these names and types."""
    events = pd.DataFrame({role: table[column] for role, column in columns.items()})
    if "market" in events and types["market"] == _STRING:
        events["market"] = events["market"].astype(_STRING).fillna("")  # which is none
    n_missing = int((events.isna().any(axis=1) | (events["item"] == "").fillna(False).to_numpy(bool)).sum())
    if n_missing:
        raise InputError(f"{n_missing} events lack {_listed([*columns], 'or')}.", "Remove them first.")
    if "weight" in events:
        weights = events["weight"].to_numpy(np.float64)
        wrong = weights[~((weights >= 0) & (weights <= MOST))]
        if len(wrong):
            raise InputError(
                f"{columns['weight']!r} of an event is {wrong[0]:g}, which is no weight.",
                f"Give numbers in 0..{MOST:,}: the times that an event counts, on average.",
            )
    events["time"] = _numbers(events["time"])
    return events.astype(dict(types))


def _listed(names: Sequence[str], last: str) -> str:
    return f"{', '.join(names[:-1])} {last} {names[-1]}"


def _numbers(times: Any) -> Any:
    """Return times as numbers: as they are, or in nanoseconds."""
    if pd.api.types.is_numeric_dtype(times.dtype):
        return times
    if not pd.api.types.is_datetime64_any_dtype(times.dtype):
        times = pd.to_datetime(times, format="ISO8601", utc=True)
    return times.dt.as_unit("ns").astype("int64")
