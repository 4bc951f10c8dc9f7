"""Reads events in tasks: CSV is copied to Parquet, whose row groups become parts of a dataframe.

    read/<key>/<attempt>/<i>.parquet   rows of CSV files, with the columns that are read; deleted with the end of a part

Where a row of CSV ends is known only after all bytes before it were read. So one task reads all of a file; its copies
are as large as blocks. The kind of a column is a type of pandas, or `CLOCK`. It is that of all files together, so it
does not depend on how they are cut. The role of a column is what it holds, a key of `Sessions.roles`.

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
from daskw2v.corpus.formats.columns import MAX_WEIGHT
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
_ID_ROLES = {"user": "Users", "item": "Items", "market": "Markets"}  # roles of columns of ids; names in messages
_VARYING_ROLES = ("user", "item", "time")  # roles whose kind depends on their values
_FIXED_KINDS = {"market": tables.STRING, "weight": "float64", "goal": "bool"}  # kinds of all other roles
_TRUTH_VALUES = {"true": "1", "false": "0"}  # as CSV writes truth values, in any case
CLOCK = "clock"  # kind of points in time; all other kinds are types of pandas
INTEGER_TIMES, FLOAT_TIMES = "int64", "float64"
_NUMBER = r"^[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?$"
_TIMES_REMEDY = "Give numbers, timestamps, dates or ISO 8601 text."


class Reading(NamedTuple):
    """Arguments for reading events: columns' names by role, options for fsspec, and the store's timeout in seconds."""

    roles: dict[str, str]
    options: Options
    timeout: float

    @property
    def columns(self) -> list[str]:
        """Names of the columns."""
        return list(self.roles.values())


class EventBatch(NamedTuple):
    """Events that one task reads: a batch of blocks of Parquet, and the names of its columns by role."""

    batch: Batch
    roles: dict[str, str]


class EventTable(NamedTuple):
    """The events of files.

    Parameters
    ----------
    parts
        The events as Parquet, one part for each task.
    kinds
        Kind of each column by role: user, item and time, and weight, goal and market where `Sessions` names these;
        with `CLOCK`, times in `frame` are nanoseconds, int64.
    reading
        How the parts are read.
    """

    parts: list[EventBatch]
    kinds: dict[str, str]
    reading: Reading

    @property
    def frame(self) -> Any:
        """The events as a Dask dataframe, whose columns are named by their roles."""
        frames = needed("dask.dataframe", EXTRA)
        types = {role: "int64" if kind == CLOCK else kind for role, kind in self.kinds.items()}
        empty = pd.DataFrame(columns=list(types)).astype(types)
        if not self.parts:
            return frames.from_pandas(empty, npartitions=1)
        read = partial(_frame_of, kinds=self.kinds, reading=self.reading, types=types)
        return frames.from_map(read, self.parts, meta=empty)


class _CopiedFile(NamedTuple):
    """A Parquet file with rows of CSV files.

    `name` is its path below the stage's folder, `size` its bytes, `url` the CSV file of the first row; `kinds` has the
    kind of each role of `_VARYING_ROLES`.
    """

    name: str
    size: int
    url: str
    kinds: dict[str, str]


def read_events(
    sources: Sequence[Source], sessions: Sessions, resources: Resources, stage: OpenStage, carried: Mapping[str, str]
) -> EventTable:
    """Return the table of the events in files, after rows of CSV were copied to Parquet.

    Parameters
    ----------
    sources
        The files.
    sessions
        Names of the columns.
    resources
        Options and timeout of the store, and bytes of a block.
    stage
        Runs tasks; copies are written to its folder.
    carried
        Kinds by role of the events that an earlier part carries over, which count as one more file: the table's kinds
        fit these events, too. Empty without such events.

    Raises
    ------
    InputError
        If a file is damaged; if a column is missing, or has a type that its role does not allow; or if times are
        numbers in one file, or in what is carried over, and not in another. A value that is missing or out of range
        raises it here for CSV, and for Parquet when the value is read.
    """
    options = Options({**resources.storage_options, **stage.folder.options})
    reading, block_bytes = Reading(sessions.roles, options, resources.store_timeout), resources.block_bytes
    typed = [source for source in sources if tables.is_typed(source)]
    texts = [TextBlock(source, 0, source.size) for source in sources if not tables.is_typed(source)]
    jobs = [(batch, stage.folder, reading, block_bytes) for batch in batch_blocks(texts, block_bytes)]
    copies = [copy for files in stage.map("copy events", _copy, jobs, 0) for copy in files] if jobs else []
    read = partial(tables.read_types, names=reading.columns, options=options, timeout=reading.timeout)
    types = zip(typed, in_threads(read, typed), strict=True)
    kinds: list[tuple[str, Mapping[str, str | None]]] = [
        *((source.url, _find_kinds(types_in_file, reading.roles, source.url)) for source, types_in_file in types),
        *((copy.url, copy.kinds) for copy in copies),
        *([("what was carried over", carried)] if carried else []),
    ]
    copied_sources = [Source(f"{stage.folder.url}/{copy.name}", copy.size, "", PARQUET.name, None) for copy in copies]
    parts = [
        EventBatch(batch, roles)
        for files, roles in ((typed, reading.roles), (copied_sources, {role: role for role in reading.roles}))
        for batch in batch_blocks(plan_blocks(files, block_bytes, options, reading.timeout), block_bytes)
    ]
    return EventTable(parts, _find_common_kinds(kinds, reading.roles), reading)


def _find_kinds(types: Mapping[str, Any], roles: Mapping[str, str], url: str) -> dict[str, str | None]:
    """Return the kinds of ids and times in a Parquet file by role; None for a column of nulls.

    `types` are Arrow types by column, `roles` columns by role. A type that a role does not allow raises InputError.
    """
    is_numeric = pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_boolean, pa.types.is_null
    kinds = dict[str, str | None]()
    for role, column in roles.items():
        kind = tables.value_type(types[column])
        if role in _ID_ROLES:
            kinds[role] = tables.find_id_kind(kind, url, _ID_ROLES[role])
        elif role == "time":
            kinds[role] = find_time_kind(kind, url)
        elif not any(is_kind(kind) for is_kind in is_numeric):
            problem = f"The column {column!r} of {role}s in {url} is of type {kind}."
            raise InputError(problem, "Give numbers or truth values.")
    return kinds


def _find_common_kinds(kinds: Sequence[tuple[str, Mapping[str, str | None]]], roles: Iterable[str]) -> dict[str, str]:
    """Return the kind of each role; `kinds` are the URL and the kinds, of `_VARYING_ROLES` at least, of each file.

    Raises as `common_time_kind` does.
    """
    common = {"user": tables.common_id_kind, "item": tables.common_id_kind, "time": common_time_kind}
    kind_of = {role: common[role]([(url, file_kinds[role]) for url, file_kinds in kinds]) for role in common}
    return {role: kind_of.get(role) or _FIXED_KINDS[role] for role in roles}


def _copy(batch: Batch, folder: Store, reading: Reading, max_bytes: int) -> list[_CopiedFile]:
    """Task: copy the rows of CSV files to Parquet files of about `max_bytes` in memory each; return the copies.

    Copies that an earlier run of the task wrote are returned as they are. `folder` is that of the stage.
    """
    task = folder / "read" / batch.key
    manifest = run_once(task, task.read_manifest, partial(_write_copies, batch, folder, reading, max_bytes))
    return [_CopiedFile(*copy) for copy in manifest["copies"]]


def _write_copies(batch: Batch, folder: Store, reading: Reading, max_bytes: int, attempt: Store) -> dict[str, Any]:
    """Copy rows of CSV files to Parquet files in the folder of an attempt; return the manifest."""
    roles = reading.roles.items()
    parsed = (
        (block.source.url, *_parse_text({role: columns[name] for role, name in roles}, block.source.url))
        for block in batch.blocks
        for columns in tables.read_columns(block, reading.columns, reading.options, reading.timeout)
    )
    copies, attempt_path = list[_CopiedFile](), attempt.url.removeprefix(f"{folder.url}/")
    for texts in batched(parsed, lambda text: sum(array.nbytes for array in text[2].values()), max_bytes):
        kinds = _find_common_kinds([(url, text_kinds) for url, text_kinds, _ in texts], reading.roles)
        rows = [_cast_events(columns, kinds, reading.roles, url) for url, _, columns in texts]
        name = f"{len(copies)}.parquet"
        size = len(write_table(attempt, name, pa.concat_tables(rows).combine_chunks()))
        varying = {role: kinds[role] for role in _VARYING_ROLES}
        copies.append(_CopiedFile(f"{attempt_path}/{name}", size, texts[0][0], varying))
    return {"copies": copies}


def _parse_text(columns: Mapping[str, Any], url: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the kinds of the roles `_VARYING_ROLES` in Arrow columns of text by role, and the columns cast to them."""
    kinds, parsed = dict[str, str](), dict(columns)
    for role in _VARYING_ROLES:
        text = columns[role]
        kinds[role], parsed[role] = parse_times(text, url) if role == "time" else tables.parse_ids(text)
    return kinds, parsed


def _cast_events(columns: Mapping[str, Any], kinds: Mapping[str, str], roles: Mapping[str, str], url: str) -> Any:
    """Return an Arrow table of columns by role, each cast to its kind; refuse missing values, except of market."""
    arrays = {role: _cast_column(role, array, kinds[role], roles, url) for role, array in columns.items()}
    missing = reduce(pc.or_, (_is_missing(array) for role, array in arrays.items() if role != "market"))
    if n_incomplete := pc.sum(missing).as_py():
        *names, last = roles
        raise InputError(f"{url}: {n_incomplete} events lack {', '.join(names)} or {last}.", "Remove them first.")
    return pa.table(arrays)


def _is_missing(array: Any) -> Any:
    """Return an Arrow array of whether each value is null, or text without characters."""
    return pc.fill_null(pc.equal(array, ""), True) if tables.is_text(array.type) else pc.is_null(array)


def _cast_column(role: str, array: Any, kind: str, roles: Mapping[str, str], url: str) -> Any:
    """Return the Arrow column of a role cast to a kind; a value that is not allowed raises InputError.

    Weights and goals have one kind each, whatever `kind` is. `roles` are columns by role, for messages.
    """
    if role in _ID_ROLES:
        ids = tables.cast_ids(array, kind, _ID_ROLES[role], url)
        return ids.fill_null("") if role == "market" else ids  # "" is none
    if role == "time":
        return cast_times(array, kind, url)
    numbers = _cast_numbers(array, role, roles[role], url)
    if role == "goal":
        return pc.not_equal(numbers, 0.0)
    if len(wrong := numbers.filter(pc.or_(pc.less(numbers, 0.0), pc.greater(numbers, float(MAX_WEIGHT))))):
        problem = f"{roles[role]!r} of an event of {url} is {wrong[0].as_py():g}, which is no weight."
        raise InputError(problem, f"Give numbers in 0..{MAX_WEIGHT:,}: the times that an event counts, on average.")
    return numbers


def _cast_numbers(array: Any, role: str, column: str, url: str) -> Any:
    """Return an Arrow column of numbers or truth values, or of text of these, as float64; NaN becomes null.

    Other values raise InputError.
    """
    if tables.is_text(array.type):
        array = pc.utf8_trim_whitespace(array)
        for word, number in _TRUTH_VALUES.items():
            array = pc.if_else(pc.equal(pc.utf8_lower(array), word), number, array)
    try:
        numbers = array.cast(pa.float64())
    except pa.ArrowInvalid as error:
        problem = f"The column {column!r} of {role}s in {url} holds what is none ({error})."
        raise InputError(problem, "Give numbers or truth values.") from None
    return tables.without_nan(numbers)


def _read_table(part: EventBatch, kinds: Mapping[str, str], reading: Reading) -> Any:
    """Return an Arrow table of the roles in `kinds` of a part, cast to these kinds; None if the part has no rows."""
    names = {role: part.roles[role] for role in kinds}
    read = [
        _cast_events({role: columns[name] for role, name in names.items()}, kinds, names, block.source.url)
        for block in part.batch.blocks
        for columns in tables.read_columns(block, [*names.values()], reading.options, reading.timeout)
    ]
    return pa.concat_tables(read) if read else None


def _frame_of(part: EventBatch, kinds: Mapping[str, str], reading: Reading, types: Mapping[str, str]) -> Any:
    """Task: return the events of a part as a pandas dataframe; `types` are the pandas types of the columns."""
    table = _read_table(part, kinds, reading)
    frame = pd.DataFrame(columns=list(types)) if table is None else table.to_pandas()
    return frame.astype(dict(types))


def find_latest(part: EventBatch, kind: str, reading: Reading, earlier: float | None) -> tuple[float | None, int]:
    """Task: return the latest time of a batch of events, and the number of its times before `earlier`.

    `kind` is the kind of times. The latest time is None without events; the number is 0 if `earlier` is None.
    """
    table = _read_table(part, {"time": kind}, reading)
    if table is None or not len(table):
        return None, 0
    times = table.column("time")
    late = 0 if earlier is None else pc.sum(pc.less(times, earlier)).as_py()
    return pc.max(times).as_py(), late


def find_time_kind(arrow_type: Any, url: str) -> str | None:
    """Return the kind of times in a column: `CLOCK`, `INTEGER_TIMES` or `FLOAT_TIMES`; None if the type is null.

    Raises
    ------
    InputError
        If values of the type are no times.
    """
    arrow_type = tables.value_type(arrow_type)
    if pa.types.is_null(arrow_type):
        return None
    if pa.types.is_timestamp(arrow_type) or pa.types.is_date(arrow_type) or tables.is_text(arrow_type):
        return CLOCK
    if pa.types.is_integer(arrow_type):
        return INTEGER_TIMES
    if pa.types.is_floating(arrow_type) or pa.types.is_decimal(arrow_type):
        return FLOAT_TIMES
    raise InputError(f"Times of {url} are of type {arrow_type}.", _TIMES_REMEDY)


def common_time_kind(kinds: Iterable[tuple[str, str | None]]) -> str:
    """Return the kind that times of several files have in common: `INTEGER_TIMES` if no file has a kind.

    `kinds` are the URL and the kind of each file, None for a column of nulls.

    Raises
    ------
    InputError
        If times are numbers in one file and not in another.
    """
    first = {kind: url for url, kind in reversed([*kinds]) if kind is not None}
    if CLOCK in first and len(first) > 1:
        other = next(url for kind, url in first.items() if kind != CLOCK)
        problem = f"Times of {other} are numbers, those of {first[CLOCK]} are not."
        raise InputError(problem, "Write all of them as numbers, or all as timestamps.")
    return next((kind for kind in (CLOCK, FLOAT_TIMES) if kind in first), INTEGER_TIMES)


def parse_times(texts: Any, url: str) -> tuple[str, Any]:
    """Return the kind of times in a column of CSV, and the times as an Arrow array of int64, float64 or timestamps.

    Raises
    ------
    InputError
        If a time is neither a number nor ISO 8601, or some times are numbers and others are not.
    """
    texts = pc.utf8_trim_whitespace(texts)
    is_number = pc.match_substring_regex(texts, _NUMBER)
    if not pc.any(is_number).as_py():
        return CLOCK, _parse_timestamps(texts, url)
    not_numbers = texts.filter(pc.invert(is_number))
    if len(not_numbers):
        problem = f"{url} has the time {not_numbers[0].as_py()!r}, where other times are numbers."
        raise InputError(problem, "Write all of them as numbers, or all as ISO 8601.")
    try:
        return INTEGER_TIMES, texts.cast(pa.int64())
    except pa.ArrowInvalid:
        return FLOAT_TIMES, texts.cast(pa.float64())


def cast_times(array: Any, kind: str, url: str) -> Any:
    """Return an Arrow array of times as int64 or float64: numbers as they are, points in time in nanoseconds.

    Raises
    ------
    InputError
        If a time is infinite, beyond the range of nanoseconds in 64 bits, or not ISO 8601.
    """
    try:
        if kind == CLOCK:
            times = _parse_timestamps(array, url) if tables.is_text(array.type) else array
            zone = times.type.tz if pa.types.is_timestamp(times.type) else None
            return times.cast(pa.timestamp("ns", zone)).cast(pa.int64())
        numbers = array.cast(kind)
    except pa.ArrowInvalid as error:
        problem = f"{url} has a time out of range ({error})."
        raise InputError(problem, "Times are of the years 1678..2261, or numbers of 64 bits.") from None
    if kind == FLOAT_TIMES:
        if len(infinite := numbers.filter(pc.is_inf(numbers))):
            raise InputError(f"{url} has the time {infinite[0].as_py()}.", "Give finite times.")
        return tables.without_nan(numbers)
    return numbers


def _parse_timestamps(texts: Any, url: str) -> Any:
    """Return an Arrow array of ISO 8601 text as timestamps in nanoseconds; a time without a zone is UTC.

    Other text raises InputError.
    """
    try:
        times = pd.to_datetime(texts.to_pandas(), format="ISO8601", utc=True).dt.as_unit("ns")
    except ValueError as error:
        first = str(error).partition("\n")[0]
        raise InputError(f"{url} has a time that is neither a number nor ISO 8601 ({first}).", _TIMES_REMEDY) from None
    stamps = pa.array(times, pa.timestamp("ns", "UTC"))
    # pandas takes "now" and "today" as the time of reading
    relative = pc.is_in(pc.utf8_lower(texts), value_set=pa.array(["now", "today"], texts.type))
    refused = texts.filter(pc.and_(pc.is_valid(texts), pc.or_(pc.is_null(stamps), relative)))
    if len(refused):
        raise InputError(f"{url} has the time {refused[0].as_py()!r}.", _TIMES_REMEDY)
    return stamps


def parse_duration(sessions: Sessions, name: str, kinds: Mapping[str, str]) -> float | None:
    """Return the setting `name` of sessions, "gap" or "half_life", as a duration in the unit of times; None if not set.

    The unit is nanoseconds if times are points in time. `kinds` are kinds of columns by role.

    Raises
    ------
    ParameterError
        If the setting is no duration, is not above 0, has a unit where times are numbers, or no unit where they are
        points in time.
    """
    text, numeric = getattr(sessions, name), kinds["time"] != CLOCK
    if text is None:
        return None
    if not numeric and re.match(_NUMBER, text.strip()):
        problem = f"{name}={text!r} has no unit, but times are no numbers."
        raise ParameterError(problem, f"Give one, such as {text + ' s'!r}.")
    try:
        duration = float(text) if numeric else float(pd.Timedelta(text).as_unit("ns").value)
    except ValueError as error:
        kind, times, example = ("number", "numbers", "1800") if numeric else ("duration", "no numbers", "30 min")
        problem = f"{name}={text!r} is not a {kind} ({error})."
        raise ParameterError(problem, f"Times are {times}: give a {kind}, such as {example}.") from error
    if not 0 < duration < math.inf:
        raise ParameterError(f"{name}={text!r} is not above 0.", "Give a longer one, or none.")
    return duration
