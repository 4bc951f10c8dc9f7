"""Reads events in tasks: CSV is copied to Parquet, whose row groups become parts of a dataframe.

    read/<key>/<attempt>/<i>.parquet   rows of CSV files, with the columns that are read; deleted with the end of a part

Where a row of CSV ends is known only after all bytes before it were read. So one task reads a file; its copies are as
large as blocks. The kind of a column is that of all files together, so it does not depend on how they are cut.

Times are numbers, or points in time, which become nanoseconds since 1970.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial, reduce
from typing import Any, NamedTuple

from daskw2v.config.resources import Resources
from daskw2v.corpus.files import Batch, Source, TextBlock, batch_blocks
from daskw2v.corpus.formats import PARQUET
from daskw2v.corpus.formats.columns import MOST_WEIGHT
from daskw2v.corpus.sources import plan_blocks
from daskw2v.corpus.streams import batched
from daskw2v.errors import InputError, ParameterError
from daskw2v.extras import Extra, needed
from daskw2v.sequences import tables
from daskw2v.sequences.files import write_table
from daskw2v.sequences.settings import Sessions
from daskw2v.store.stage import OpenStage, run_once
from daskw2v.store.storage import Store
from daskw2v.store.threads import in_threads
from daskw2v.store.urls import Options

pd, pa, pc = Extra("pandas", "events"), Extra("pyarrow", "events"), Extra("pyarrow.compute", "events")

EXTRA = "events"
_IDS = {"user": "Users", "item": "Items", "market": "Markets"}  # roles of columns of ids, and how messages call these
_VARYING = ("user", "item", "time")  # roles whose kind depends on their values
_FIXED = {"market": tables.STRING, "weight": "float64", "goal": "bool"}  # kinds of the others
_TRUTH = {"true": "1", "false": "0"}  # as CSV writes truth values, in any case
CLOCK = "clock"  # kind of points in time; the others are types of pandas
WHOLE, REAL = "int64", "float64"
_NUMBER = r"^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$"
_WHAT = "Give numbers, timestamps, dates or ISO 8601 text."


class Reading(NamedTuple):
    """Settings for reading events: names of columns by role, options for fsspec, and seconds to wait for the store."""

    roles: dict[str, str]
    options: Options
    timeout: float


class Part(NamedTuple):
    """Events that a task reads at once: a batch of blocks, and the names of its columns by role."""

    batch: Batch
    roles: dict[str, str]


class EventTable(NamedTuple):
    """Events of files.

    Parameters
    ----------
    parts
        Parquet, in parts.
    kinds
        Type of each column by role: user, item and time, and weight, goal and market where `Sessions` names these;
        "clock" for times that are nanoseconds.
    reading
        How they are read.
    """

    parts: list[Part]
    kinds: dict[str, str]
    reading: Reading

    @property
    def frame(self) -> Any:
        """The events as a dataframe of Dask, whose columns are named by their roles."""
        frames = needed("dask.dataframe", EXTRA)
        types = {role: "int64" if kind == CLOCK else kind for role, kind in self.kinds.items()}
        empty = pd.DataFrame(columns=list(types)).astype(types)
        if not self.parts:
            return frames.from_pandas(empty, npartitions=1)
        read = partial(_frame_of, kinds=self.kinds, reading=self.reading, types=types)
        return frames.from_map(read, self.parts, meta=empty)


class _Copy(NamedTuple):
    """A file that holds rows of CSV: its name and size, the URL of the first row, and the kinds of `_VARYING`."""

    name: str
    size: int
    url: str
    kinds: dict[str, str]


def read_events(
    sources: Sequence[Source], sessions: Sessions, resources: Resources, stage: OpenStage, known: Mapping[str, str]
) -> EventTable:
    """Return the events of files; rows of CSV are copied to Parquet.

    Parameters
    ----------
    sources
        The files.
    sessions
        Names of the columns.
    resources
        How to read.
    stage
        Runs tasks, and has the folder of the copies.
    known
        Kinds of the columns of events that were carried over, by role; empty without such events.

    Raises
    ------
    InputError
        If a file is damaged, a column is missing or has another type, or times are numbers in one file and not in
        another; for CSV here, for Parquet when it is read, if a value is missing or out of range.
    """
    options = Options({**resources.storage_options, **stage.folder.options})
    reading, block_bytes = Reading(sessions.roles, options, resources.store_timeout), resources.block_bytes
    typed = [source for source in sources if tables.is_typed(source)]
    texts = [TextBlock(source, 0, source.size) for source in sources if not tables.is_typed(source)]
    jobs = [(batch, stage.folder, reading, block_bytes) for batch in batch_blocks(texts, block_bytes)]
    copies = [copy for made in stage.map("copy events", _copy, jobs, 0) for copy in made] if jobs else []
    find = partial(tables.types_of, names=[*reading.roles.values()], storage_options=options, timeout=reading.timeout)
    types = zip(typed, in_threads(find, typed), strict=True)
    kinds: list[tuple[str, Mapping[str, str | None]]] = [
        *((source.url, _kinds_of(of_file, reading.roles, source.url)) for source, of_file in types),
        *((copy.url, copy.kinds) for copy in copies),
        *([("what was carried over", known)] if known else []),
    ]
    copied = [Source(f"{stage.folder.url}/{copy.name}", copy.size, "", PARQUET.name, None) for copy in copies]
    parts = [
        Part(batch, roles)
        for files, roles in ((typed, reading.roles), (copied, {role: role for role in reading.roles}))
        for batch in batch_blocks(plan_blocks(files, block_bytes, options, reading.timeout), block_bytes)
    ]
    return EventTable(parts, _common_kinds(kinds, reading.roles), reading)


def _kinds_of(types: Mapping[str, Any], roles: Mapping[str, str], url: str) -> dict[str, str | None]:
    """Return the kinds of the roles `_VARYING` in a file with columns of these types; refuse other types."""
    numeric = pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean, pa.types.is_null
    kinds = dict[str, str | None]()
    for role, column in roles.items():
        kind = tables.value_type(types[column])
        if role in _IDS:
            kinds[role] = tables.kind_of_ids(kind, url, _IDS[role])
        elif role == "time":
            kinds[role] = kind_of_times(kind, url)
        elif not any(is_kind(kind) for is_kind in numeric):
            raise InputError(
                f"The column {column!r} of {role}s in {url} is of type {kind}.", "Give numbers or truth values."
            )
    return kinds


def _common_kinds(kinds: Sequence[tuple[str, Mapping[str, str | None]]], roles: Iterable[str]) -> dict[str, str]:
    """Return the kind of each role, by the URL and the kinds of the roles `_VARYING` of each file."""
    common = {"user": tables.common_ids, "item": tables.common_ids, "time": common_times}
    kind_of = {role: common[role]([(url, of_file[role]) for url, of_file in kinds]) for role in common}
    return {role: kind_of.get(role) or _FIXED[role] for role in roles}


def _copy(batch: Batch, folder: Store, reading: Reading, most: int) -> list[_Copy]:
    """Task: copy rows of CSV to Parquet files of about `most` bytes in memory, unless that was done before."""
    task = folder / "read" / batch.key
    made = run_once(task, task.read_manifest, partial(_copied, batch, folder, reading, most))
    return [_Copy(*copy) for copy in made["copies"]]


def _copied(batch: Batch, folder: Store, reading: Reading, most: int, attempt: Store) -> dict[str, Any]:
    texts = (
        (block.source.url, *_parsed({role: columns[name] for role, name in reading.roles.items()}, block.source.url))
        for block in batch.blocks
        for columns in tables.read_columns(block, [*reading.roles.values()], reading.options, reading.timeout)
    )
    copies, attempt_path = list[_Copy](), attempt.url.removeprefix(f"{folder.url}/")
    for held in batched(texts, lambda text: sum(array.nbytes for array in text[2].values()), most):
        kinds = _common_kinds([(url, of_text) for url, of_text, _ in held], reading.roles)
        rows = [_events(columns, kinds, reading.roles, url) for url, _, columns in held]
        name = f"{len(copies)}.parquet"
        size = len(write_table(attempt, name, pa.concat_tables(rows).combine_chunks()))
        copies.append(_Copy(f"{attempt_path}/{name}", size, held[0][0], {role: kinds[role] for role in _VARYING}))
    return {"copies": copies}


def _parsed(columns: Mapping[str, Any], url: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the kinds of the roles `_VARYING` in columns of text, and the columns cast to these kinds."""
    kinds, parsed = dict[str, str](), dict(columns)
    for role in _VARYING:
        text = columns[role]
        kinds[role], parsed[role] = parsed_times(text, url) if role == "time" else tables.parsed_ids(text)
    return kinds, parsed


def _events(columns: Mapping[str, Any], kinds: Mapping[str, str], roles: Mapping[str, str], url: str) -> Any:
    """Return columns cast to their kinds, as a table of Arrow."""
    arrays = {role: _typed(role, array, kinds[role], roles, url) for role, array in columns.items()}
    missing = reduce(pc.or_, (_is_missing(array) for role, array in arrays.items() if role != "market"))
    if n := pc.sum(missing).as_py():
        *names, last = roles
        raise InputError(f"{url}: {n} events lack {', '.join(names)} or {last}.", "Remove them first.")
    return pa.table(arrays)


def _is_missing(array: Any) -> Any:
    """Return which values are null, or text without characters."""
    return pc.fill_null(pc.equal(array, ""), True) if tables.is_text(array.type) else pc.is_null(array)


def _typed(role: str, array: Any, kind: str, roles: Mapping[str, str], url: str) -> Any:
    if role in _IDS:
        ids = tables.ids_of(array, kind, _IDS[role], url)
        return ids.fill_null("") if role == "market" else ids  # "" is none
    if role == "time":
        return times_of(array, kind, url)
    numbers = _numbers(array, role, roles[role], url)
    if role == "goal":
        return pc.not_equal(numbers, 0.0)
    if len(wrong := numbers.filter(pc.or_(pc.less(numbers, 0.0), pc.greater(numbers, float(MOST_WEIGHT))))):
        raise InputError(
            f"{roles[role]!r} of an event of {url} is {wrong[0].as_py():g}, which is no weight.",
            f"Give numbers in 0..{MOST_WEIGHT:,}: the times that an event counts, on average.",
        )
    return numbers


def _numbers(array: Any, role: str, column: str, url: str) -> Any:
    """Return numbers or truth values as float64; NaN is null."""
    if tables.is_text(array.type):
        array = pc.utf8_trim_whitespace(array)
        for word, number in _TRUTH.items():
            array = pc.if_else(pc.equal(pc.utf8_lower(array), word), number, array)
    try:
        numbers = array.cast(pa.float64())
    except pa.ArrowInvalid as error:
        raise InputError(
            f"The column {column!r} of {role}s in {url} holds what is none ({error}).", "Give numbers or truth values."
        ) from None
    return tables.without_nan(numbers)


def _read(part: Part, kinds: Mapping[str, str], reading: Reading) -> Any:
    """Return the columns of a part whose roles `kinds` names, as a table of Arrow."""
    names = {role: part.roles[role] for role in kinds}
    read = [
        _events({role: columns[name] for role, name in names.items()}, kinds, names, block.source.url)
        for block in part.batch.blocks
        for columns in tables.read_columns(block, [*names.values()], reading.options, reading.timeout)
    ]
    return pa.concat_tables(read) if read else None


def _frame_of(part: Part, kinds: Mapping[str, str], reading: Reading, types: Mapping[str, str]) -> Any:
    """Task: read a part as a dataframe of pandas."""
    table = _read(part, kinds, reading)
    frame = pd.DataFrame(columns=list(types)) if table is None else table.to_pandas()
    return frame.astype(dict(types))


def latest_of(part: Part, kind: str, reading: Reading, earlier: float | None) -> tuple[float | None, int]:
    """Task: return the latest time of a part, and how many are before an earlier one; `kind` is the kind of times."""
    table = _read(part, {"time": kind}, reading)
    if table is None or not len(table):
        return None, 0
    times = table.column("time")
    late = 0 if earlier is None else pc.sum(pc.less(times, earlier)).as_py()
    return pc.max(times).as_py(), late


def kind_of_times(kind: Any, url: str) -> str | None:
    """Return the kind of times in a column of an Arrow type; None where all are null.

    Raises
    ------
    InputError
        If it holds no times.
    """
    kind = tables.value_type(kind)
    if pa.types.is_null(kind):
        return None
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or tables.is_text(kind):
        return CLOCK
    if pa.types.is_integer(kind):
        return WHOLE
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return REAL
    raise InputError(f"Times of {url} are of type {kind}.", _WHAT)


def common_times(kinds: Iterable[tuple[str, str | None]]) -> str:
    """Return the kind of all times, by the URL and the kind of each file's times.

    Raises
    ------
    InputError
        If times are numbers in one file and not in another.
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
        If one is neither a number nor ISO 8601, or only a part of them are numbers.
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
            times = _timestamps(array, url) if tables.is_text(array.type) else array
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
        return tables.without_nan(numbers)
    return numbers


def _timestamps(texts: Any, url: str) -> Any:
    """Return ISO 8601 text as timestamps in nanoseconds; without a zone it is UTC."""
    try:
        times = pd.to_datetime(texts.to_pandas(), format="ISO8601", utc=True).dt.as_unit("ns")
    except ValueError as error:
        first = str(error).partition("\n")[0]
        raise InputError(f"{url} has a time that is neither a number nor ISO 8601 ({first}).", _WHAT) from None
    stamps = pa.array(times, pa.timestamp("ns", "UTC"))
    # pandas takes "now" and "today" as the time of reading
    relative = pc.is_in(pc.utf8_lower(texts), value_set=pa.array(["now", "today"], texts.type))
    wrong = texts.filter(pc.and_(pc.is_valid(texts), pc.or_(pc.is_null(stamps), relative)))
    if len(wrong):
        raise InputError(f"{url} has the time {wrong[0].as_py()!r}.", _WHAT)
    return stamps


def duration_of(sessions: Sessions, name: str, kinds: Mapping[str, str]) -> float | None:
    """Return a duration as a number, in nanoseconds if times are not numbers; None if there is none.

    Raises
    ------
    ParameterError
        If it is none, is not above 0, or has a unit where times are numbers, or none where they are not.
    """
    text, numeric = getattr(sessions, name), kinds["time"] != CLOCK
    if text is None:
        return None
    if not numeric and re.match(_NUMBER, text.strip()):
        raise ParameterError(
            f"{name}={text!r} has no unit, but times are no numbers.", f"Give one, such as {text + ' s'!r}."
        )
    try:
        duration = float(text) if numeric else float(pd.Timedelta(text).as_unit("ns").value)
    except ValueError as error:
        kind, of_times, such = ("number", "numbers", "1800") if numeric else ("duration", "no numbers", "30 min")
        raise ParameterError(
            f"{name}={text!r} is not a {kind} ({error}).", f"Times are {of_times}: give a {kind}, such as {such}."
        ) from error
    if not 0 < duration < math.inf:
        raise ParameterError(f"{name}={text!r} is not above 0.", "Give a longer one, or none.")
    return duration
