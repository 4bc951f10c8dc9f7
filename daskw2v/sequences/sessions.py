"""Sessions of events, as Parquet files of lists: sentences whose words are items (item2vec).

A table of events has a user, an item and a time in each row. Dask's dataframes bring the events of a user together from
all files. A task then sorts the events of some users by time and cuts them into sessions.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from distributed import Client

from daskw2v.cluster import check_cluster, clocks_watched, gather, waits_for_workers
from daskw2v.cluster.console import listening
from daskw2v.cluster.tasks import run_tasks
from daskw2v.config.resources import Resources
from daskw2v.config.settings import is_number
from daskw2v.corpus.files import Source
from daskw2v.corpus.formats import PARQUET, TEXT
from daskw2v.corpus.inputs import Inputs
from daskw2v.corpus.sources import find_sources
from daskw2v.errors import Daskw2vError, InputError, ParameterError, counted
from daskw2v.extras import Extra, needed
from daskw2v.progress import Watching
from daskw2v.sequences.identity import identity_of
from daskw2v.sequences.lists import write_lists
from daskw2v.store.credentials import Options
from daskw2v.store.stage import OpenStage, Stage
from daskw2v.store.storage import Store
from daskw2v.types import Int64Array

pd, pa = Extra("pandas", "events"), Extra("pyarrow", "events")

COLUMN = "items"
_HOME, _EXTRA = "sessions", "events"
_UNPACKED = 8  # bytes in memory for each byte of a file, about


@dataclass(frozen=True, kw_only=True)
class Sessions:
    """How to cut events into sessions.

    Parameters
    ----------
    user, item, time
        Columns of the table. Items are integers or strings; times are numbers, timestamps or ISO 8601 text.
    gap
        A session ends if the user's next event is later than this: a number in the unit of numeric times, or else a
        duration such as "30 min". None: all events of a user are one session.
    least
        Fewest items of a session; shorter ones are dropped.
    drop_repeats
        Whether to drop items that repeat the one before.

    Raises
    ------
    ParameterError
        If `least` is not an integer above 0.
    """

    user: str = "user"
    item: str = "item"
    time: str = "time"
    gap: str | None = None
    least: int = 2
    drop_repeats: bool = False

    def __post_init__(self) -> None:
        if not (is_number(self.least, Integral) and self.least >= 1):
            raise ParameterError(f"least={self.least!r} is not an integer >= 1.", "Give the fewest items of a session.")
        object.__setattr__(self, "least", int(self.least))

    @property
    def columns(self) -> list[str]:
        """Names of the columns that are read."""
        return [self.user, self.item, self.time]


def write_sessions(
    inputs: Inputs, work: Store, sessions: Sessions, resources: Resources, client: Client, listener: Watching = "show"
) -> list[str]:
    """Cut the events of each user into sessions, and write these as lists, in the column `items`.

    Events of a user at the same time are sorted by item, so that the result does not depend on the order of events in
    files. Workers keep a part of the events in memory and the others on their disks; all events of a user must fit into
    memory. A finished result is returned. An interrupted build starts over, since grouping events is most of the work.

    Parameters
    ----------
    inputs
        URLs, paths, folders or patterns of Parquet or CSV files.
    work
        The work directory, which all workers can reach.
    sessions
        How to cut sessions.
    resources
        How to read.
    client
        The cluster to run on.
    listener
        Called with the progress.

    Returns
    -------
    list of str
        URLs of Parquet files, in order, for `train` with `Params(column="items")`.

    Raises
    ------
    InputError
        If files cannot be read, a column is missing, has another type or missing values, or there is no session.
    ParameterError
        If the gap is not a duration.
    MissingExtraError
        If pandas or pyarrow is not installed.
    """
    needed("pandas", _EXTRA)
    with listening(listener, client) as listen, waits_for_workers(resources, listen):
        check_cluster(client, work)
        sources = find_sources(inputs, None, resources.storage_options, tables=True, work=work.url)
        home = work / _HOME / identity_of(sources, sessions)
        stage = Stage(work, home, partial(run_tasks, client), listen, "sessions", "files")
        with clocks_watched(client):
            manifest = stage.make(home.read_manifest, partial(_write, sources, sessions, resources, client))
    return [(home / name).url for name in manifest["files"]]


def _write(
    sources: Sequence[Source], sessions: Sessions, resources: Resources, client: Client, stage: OpenStage
) -> dict[str, Any]:
    n_files = max(1, math.ceil(_UNPACKED * sum(source.size for source in sources) / resources.block_bytes))
    files = [f"part-{number:06d}.parquet" for number in range(n_files)]
    stage.expect(n_files)
    with _explained(sources):
        events = _events(sources, sessions, resources)
        gap = _gap_of(sessions, events.dtypes[sessions.time])
        parts = events.shuffle(sessions.user, npartitions=n_files, shuffle_method="p2p").to_delayed()
        write = needed("dask", _EXTRA).delayed(_write_part, pure=False)
        jobs = [write(part, stage.home, file, sessions, gap) for part, file in zip(parts, files, strict=True)]
        n_items = sum(gather(client, client.compute(jobs), "Sessions"))
    if not n_items:
        raise InputError(
            f"There is no session of {counted(sessions.least, 'item')} or more in {counted(len(sources), 'file')}.",
            "Give a longer gap, or a lower least.",
        )
    manifest = {"files": files, "items": n_items, **asdict(sessions)}
    stage.finish(manifest, files)
    stage.report(n_files, counted(n_items, "item"))
    return manifest


@contextmanager
def _explained(sources: Sequence[Source]) -> Iterator[None]:
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


def _events(sources: Sequence[Source], sessions: Sessions, resources: Resources) -> Any:
    """Return the events as a Dask dataframe."""
    frames, urls, options = (
        needed("dask.dataframe", _EXTRA),
        [s.url for s in sources],
        Options(resources.storage_options),
    )
    kinds, read = {(source.format, source.compression) for source in sources}, _TABLES.get(sources[0].format)
    if len(kinds) > 1 or read is None:
        raise InputError(
            f"The {len(sources)} files have several formats, or one that is not a table.", "Give Parquet or CSV."
        )
    table = read(frames, urls, options, None if sources[0].compression else resources.block_bytes)
    missing = [name for name in sessions.columns if name not in table.columns]
    if missing:
        raise InputError(
            f"{urls[0]} has no column {missing[0]!r}.",
            f"Name user, item and time among: {', '.join(map(str, table.columns))}.",
        )
    events = table[sessions.columns]
    kind = events.dtypes[sessions.item]
    if isinstance(kind, pd.CategoricalDtype):
        return events.astype({sessions.item: "string"})
    if not (pd.api.types.is_integer_dtype(kind) or pd.api.types.is_string_dtype(kind)):
        raise InputError(
            f"Items, in the column {sessions.item!r}, are of type {kind}.",
            "Give integers or strings. In pandas, integers with missing values are not integers.",
        )
    return events


def _parquet_table(frames: Any, urls: list[str], options: Options, block_bytes: int | None) -> Any:
    return frames.read_parquet(urls, storage_options=options, split_row_groups="adaptive", blocksize=block_bytes)


def _csv_table(frames: Any, urls: list[str], options: Options, block_bytes: int | None) -> Any:
    return frames.read_csv(urls, storage_options=options, blocksize=block_bytes)


_TABLES = {PARQUET.name: _parquet_table, TEXT.name: _csv_table}


def _gap_of(sessions: Sessions, kind: Any) -> float | None:
    """Return the gap as a number, in nanoseconds if times are not numbers."""
    if sessions.gap is None:
        return None
    numeric = pd.api.types.is_numeric_dtype(kind)
    try:
        gap = float(sessions.gap) if numeric else float(pd.Timedelta(sessions.gap).as_unit("ns").value)
    except ValueError as error:
        raise ParameterError(
            f"gap={sessions.gap!r} is not a {'number' if numeric else 'duration'} ({error}).",
            f"Times are of type {kind}: give {'a number' if numeric else 'a duration such as 30 min'}.",
        ) from error
    if not 0 < gap < math.inf:
        raise ParameterError(f"gap={sessions.gap!r} is not above 0.", "Give a longer one, or none.")
    return gap


def _write_part(events: Any, home: Store, file: str, sessions: Sessions, gap: float | None) -> int:
    """Task: write the sessions of some users; return the number of their items."""
    items, edges = sessions_of(events, sessions, gap)
    write_lists(home, file, COLUMN, items, edges)
    return len(items)


def sessions_of(events: Any, sessions: Sessions, gap: float | None) -> tuple[Any, Int64Array]:
    """Return the items of all sessions of some users, as an Arrow array, and the bounds of the sessions in it.

    Parameters
    ----------
    events
        All events of these users: a pandas dataframe with the columns of `sessions`.
    sessions
        How to cut sessions.
    gap
        Gap in the unit of times, or in nanoseconds if they are not numbers.

    Raises
    ------
    InputError
        If an event lacks user, item or time.
    """
    n_missing = int((events[sessions.columns].isna().any(axis=1) | (events[sessions.item] == "").fillna(False)).sum())
    if n_missing:
        raise InputError(f"{n_missing} events lack user, item or time.", "Remove them first.")
    events = pd.DataFrame(
        {"user": events[sessions.user], "time": _numbers(events[sessions.time]), "item": events[sessions.item]}
    ).sort_values(["user", "time", "item"])
    first = _changes(events["user"])
    if gap is not None:
        first = first | (events["time"].diff() > gap).to_numpy(bool)
    if sessions.drop_repeats:
        other = first | _changes(events["item"])
        events, first = events[other], first[other]
    starts = np.flatnonzero(first)
    lengths = np.diff(starts, append=len(first))
    enough = lengths >= sessions.least
    items = pa.chunked_array(pa.array(events["item"][np.repeat(enough, lengths)])).combine_chunks()
    if not pa.types.is_integer(items.type):
        items = items.cast(pa.large_string())
    return items, np.append(0, np.cumsum(lengths[enough])).astype(np.int64)


def _changes(values: Any) -> npt.NDArray[np.bool_]:
    """Return for each value whether it differs from the one before."""
    codes, _ = pd.factorize(values)
    return np.append(np.ones(1, bool), codes[1:] != codes[:-1])[: len(codes)]


def _numbers(times: Any) -> Any:
    """Return times as numbers: as they are, or in nanoseconds."""
    if pd.api.types.is_numeric_dtype(times.dtype):
        return times
    if not pd.api.types.is_datetime64_any_dtype(times.dtype):
        times = pd.to_datetime(times, format="ISO8601", utc=True)
    return times.dt.as_unit("ns").astype("int64")
