"""Sessions of events, as Parquet files of lists: sentences whose words are items (item2vec).

A table of events has a row for each: who, which item, when. Dask's dataframes bring together the events of a user, who
may stand anywhere in the files; a task then puts those of some users in order of time and cuts them into sessions.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from distributed import Client

from daskw2v.checked import is_number
from daskw2v.cluster import check_cluster, gather, waits_for_workers
from daskw2v.console import listening
from daskw2v.corpus.inputs import Inputs
from daskw2v.corpus.sources import Source, find_sources
from daskw2v.credentials import Options
from daskw2v.errors import Daskw2vError, InputError, ParameterError
from daskw2v.extras import needed
from daskw2v.params import Resources
from daskw2v.progress import Listener, Progress, Watching
from daskw2v.sequences.lists import write_lists
from daskw2v.sequences.stages import contents_of, stage
from daskw2v.storage import Store
from daskw2v.wording import counted

try:
    import pandas as pd
    import pyarrow as pa
except ImportError:  # write_sessions tells the user
    pd = pa = None

COLUMN = "items"
_HOME, _EXTRA = "sessions", "events"
_UNPACKED = 8  # bytes in memory for each of a file, about


@dataclass(frozen=True, kw_only=True)
class Sessions:
    """What a session is.

    Parameters
    ----------
    user, item, time
        Columns of the table. Items are integers or strings; times are numbers, timestamps or ISO 8601 text.
    gap
        A session ends where the next event of the user comes later than this: a number in the unit of numeric times,
        else a duration such as "30 min". None: all events of a user are one session.
    least
        Sessions of fewer items are left out.
    drop_repeats
        Whether an item that follows itself counts once.

    Raises
    ------
    ParameterError
        If `least` is no integer above 0.
    """

    user: str = "user"
    item: str = "item"
    time: str = "time"
    gap: str | None = None
    least: int = 2
    drop_repeats: bool = False

    def __post_init__(self) -> None:
        if not (is_number(self.least, Integral) and self.least >= 1):
            raise ParameterError(f"least={self.least!r} is no integer >= 1.", "Give the fewest items of a session.")
        object.__setattr__(self, "least", int(self.least))

    @property
    def columns(self) -> list[str]:
        """The names of what is read."""
        return [self.user, self.item, self.time]


def write_sessions(
    inputs: Inputs, work: Store, sessions: Sessions, resources: Resources, client: Client, listener: Watching = "show"
) -> list[str]:
    """Bring the events of each user together, cut them into sessions, and write these as lists, in the column `items`.

    Events of a user at the same time are put in order of their items, so that files do not depend on how events lie in
    theirs. Workers hold some events at a time, the others lie on their disks; all events of a user must fit. What was
    finished before is returned; what was cut short begins anew, since bringing events together is all the work.

    Parameters
    ----------
    inputs
        URLs, paths, folders or patterns of Parquet or CSV files.
    work
        The work directory, which all workers can reach.
    sessions
        What a session is.
    resources
        How to read.
    client
        Where to run.
    listener
        Is told when it begins and ends.

    Returns
    -------
    list of str
        URLs of Parquet files, in order: what `train` reads with `Params(column="items")`.

    Raises
    ------
    InputError
        If files cannot be read, lack a column, have one of another type or without a value, or hold no session.
    ParameterError
        If the gap is no duration.
    MissingExtraError
        If pandas or pyarrow is not installed.
    """
    needed("pandas", _EXTRA)
    with listening(listener, client) as listen, waits_for_workers(resources, listen):
        check_cluster(client, work)
        sources = find_sources(inputs, None, resources.storage_options, tables=True, work=work.url)
        with stage(work, _HOME, [contents_of(sources), asdict(sessions)], listen) as (home, guarded):
            manifest = home.read_manifest() or _write(home, sources, sessions, resources, client, guarded)
    return [(home / name).url for name in manifest["files"]]


def _write(
    home: Store, sources: Sequence[Source], sessions: Sessions, resources: Resources, client: Client, listener: Listener
) -> dict[str, Any]:
    n_files = max(1, math.ceil(_UNPACKED * sum(source.size for source in sources) / resources.block_bytes))
    files = [f"part-{number:06d}.parquet" for number in range(n_files)]
    listener(Progress("sessions", 0, n_files, "files"))
    with _explained(sources):
        events = _events(sources, sessions, resources)
        gap = _gap_of(sessions, events.dtypes[sessions.time])
        parts = events.shuffle(sessions.user, npartitions=n_files, shuffle_method="p2p").to_delayed()
        write = needed("dask", _EXTRA).delayed(_write_part, pure=False)
        jobs = [write(part, home, file, sessions, gap) for part, file in zip(parts, files, strict=True)]
        n_items = sum(gather(client, client.compute(jobs), "Sessions"))
    if not n_items:
        raise InputError(
            f"There is no session of {counted(sessions.least, 'item')} in {counted(len(sources), 'file')}.",
            "Give a longer gap, or a lower least.",
        )
    manifest = {"files": files, "items": n_items, **asdict(sessions)}
    home.write_manifest(manifest)
    listener(Progress("sessions", n_files, n_files, "files", message=counted(n_items, "item")))
    return manifest


@contextmanager
def _explained(sources: Sequence[Source]) -> Iterator[None]:
    """Turn what pandas, Arrow and Dask raise of files that they cannot read into our error."""
    try:
        yield
    except Daskw2vError:
        raise
    except (ValueError, TypeError, KeyError, OSError, pa.ArrowException) as error:
        raise InputError(
            f"{sources[0].url} (of {counted(len(sources), 'file')}) cannot be read as events ({error}).",
            "Give Parquet, or CSV with a header, whose columns have one type throughout.",
        ) from error


def _events(sources: Sequence[Source], sessions: Sessions, resources: Resources) -> Any:
    """Return the events as a dataframe of Dask's."""
    frames, urls, options = (
        needed("dask.dataframe", _EXTRA),
        [s.url for s in sources],
        Options(resources.storage_options),
    )
    kinds = {(source.format, source.compression) for source in sources}
    if len(kinds) > 1 or kinds & {("jsonl", None)}:
        raise InputError(
            f"The {len(sources)} files are of several kinds, or of one that is no table.", "Give all as Parquet or CSV."
        )
    if sources[0].format == "parquet":
        table = frames.read_parquet(
            urls, storage_options=options, split_row_groups="adaptive", blocksize=resources.block_bytes
        )
    else:
        table = frames.read_csv(
            urls, storage_options=options, blocksize=None if sources[0].compression else resources.block_bytes
        )
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
            "Give integers or strings: integers of which some are missing are no integers to pandas.",
        )
    return events


def _gap_of(sessions: Sessions, kind: Any) -> float | None:
    """Return the gap as a number: nanoseconds where times are no numbers."""
    if sessions.gap is None:
        return None
    numeric = pd.api.types.is_numeric_dtype(kind)
    try:
        gap = float(sessions.gap) if numeric else float(pd.Timedelta(sessions.gap).as_unit("ns").value)
    except ValueError as error:
        raise ParameterError(
            f"gap={sessions.gap!r} is no {'number' if numeric else 'duration'} ({error}).",
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


def sessions_of(events: Any, sessions: Sessions, gap: float | None) -> tuple[Any, npt.NDArray[np.int64]]:
    """Return the items of all sessions of some users, as an Arrow array, and where sessions begin and end in it.

    Parameters
    ----------
    events
        All events of these users: a dataframe of pandas with the columns of `sessions`.
    sessions
        What a session is.
    gap
        In the unit of times, or in nanoseconds where they are no numbers.

    Raises
    ------
    InputError
        If an event lacks user, item or time.
    """
    n_missing = int((events[sessions.columns].isna().any(axis=1) | (events[sessions.item] == "").fillna(False)).sum())
    if n_missing:
        raise InputError(f"{n_missing} events lack user, item or time.", "Leave them out first.")
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
    """Tell which values are not the one before."""
    codes, _ = pd.factorize(values)
    return np.append(np.ones(1, bool), codes[1:] != codes[:-1])[: len(codes)]


def _numbers(times: Any) -> Any:
    """Return times as numbers: as they are, or in nanoseconds."""
    if pd.api.types.is_numeric_dtype(times.dtype):
        return times
    if not pd.api.types.is_datetime64_any_dtype(times.dtype):
        times = pd.to_datetime(times, format="ISO8601", utc=True)
    return times.dt.as_unit("ns").astype("int64")
