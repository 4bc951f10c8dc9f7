"""Sessions of events as Parquet files of lists: sentences whose words are items (item2vec).

    sessions/<identity>/ended-<i>.parquet     lists of items: the sessions that have ended by the end of this part
                        open-<i>.parquet      the sessions that are open at its end, for training if no part follows
                        carried-<i>.parquet   the events of these, which the next part goes on from
                        ended-markets.parquet, open-markets.parquet   how often items are in markets, in sessions that
                                              ended or are open, if events name these

A part of the events is all files or, with `per`, one file or folder. Its folder is named by its files, the settings and
the events carried over to it. So a part is written again if one of its files changed, and later parts only if the
events carried over to them changed.

Dask's dataframes bring the events of a user together from all files of a part. A task then cuts the events of several
users. With `per`, parts are read in their order, each once: the events of sessions that are open at the end of a part
are carried over to the next part. So for a new file only its events and the carried events are read.
"""

import hashlib
import json
import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple, Self

from dask.utils import format_bytes

from daskw2v.cluster.clocks import watching_clocks
from daskw2v.cluster.connecting import GetClient
from daskw2v.cluster.local import silencing_shuffles
from daskw2v.cluster.tasks import connect_tasks
from daskw2v.cluster.waiting import gather, waits_for_workers
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.files import Source
from daskw2v.corpus.formats import CSV, PARQUET, TEXT
from daskw2v.corpus.inputs import Inputs
from daskw2v.corpus.sources import find_sources
from daskw2v.errors import DamageError, InputError, ParameterError, counted
from daskw2v.extras import Extra, needed
from daskw2v.progress import Listener, Progress
from daskw2v.sequences.cutting import Cut, cut_sessions, split_ended, to_arrow
from daskw2v.sequences.events import EXTRA, EventTable, find_latest, parse_duration, read_events
from daskw2v.sequences.files import digest_inputs, make_list_table, parse_tuples, read_table, write_table
from daskw2v.sequences.settings import Sessions
from daskw2v.sequences.tables import check_table
from daskw2v.store.limits import refused, shown, typed
from daskw2v.store.stage import Layout, OpenStage, Stage
from daskw2v.store.storage import MANIFEST, Store
from daskw2v.vocabulary.markets import add_up

pa = Extra("pyarrow", EXTRA)

LAYOUT = Layout("sessions/<name>/<file>", unused="sessions/<name>")
ENDED, OPEN, CARRIED = "ended", "open", "carried"
MARKETS = {ENDED: "ended-markets", OPEN: "open-markets"}  # role of the counts of these sessions' items in markets
_CSV = {TEXT.name: CSV.name}  # files of any name that no other format has
_STAGE = "sessions"
_MEMORY_RATIO = 8  # bytes in memory for each byte of a file, about
_TABLES_AT_ONCE = 8  # tables of counts that one task adds up


class File(NamedTuple):
    """A file of a part of the events: its role (ENDED, OPEN, CARRIED or a value of MARKETS), name, bytes and digest."""

    role: str
    name: str
    size: int
    digest: str

    @classmethod
    def write(cls, folder: Store, role: str, name: str, table: Any) -> Self:
        """Write an Arrow table to a Parquet file in a folder, and return its description."""
        content = write_table(folder, name, table)
        return cls(role, name, len(content), hashlib.blake2b(content, digest_size=16).hexdigest())


@dataclass(frozen=True)
class EventPart:
    """A part of the events whose sessions are written. All fields but `folder` are keys of its manifest.

    Parameters
    ----------
    folder
        The folder of the part's files.
    files
        The files in the folder, without the manifest.
    events, late
        Number of events, including events carried over to the part; number of the part's own events that are earlier
        than the latest event of the parts before.
    latest
        Time of the latest event of this and all earlier parts, a number as text; "" if no time was read.
    kinds
        Kind of each column, in the order of `EventTable.kinds`.
    """

    folder: Store
    files: tuple[File, ...]
    events: int
    late: int
    latest: str
    kinds: tuple[str, ...]

    def files_with_role(self, role: str) -> list[File]:
        """Return the files of the part that have a role."""
        return [file for file in self.files if file.role == role]

    def text_sources(self, roles: Collection[str]) -> Iterator[Source]:
        """Yield the part's files whose role is in `roles`, as files that `train` reads as text."""
        for file in self.files:
            if file.role in roles:
                name = f"{LAYOUT.folder}/{self.folder.name}/{file.name}"
                yield Source(f"{self.folder.url}/{file.name}", file.size, "", PARQUET.name, None, name)


def group_sources(sources: Sequence[Source], sessions: Sessions) -> list[list[Source]]:
    """Return the files of each part, by `Sessions.per`: all files, one file, or consecutive files of a folder."""
    match sessions.per:
        case None:
            return [list(sources)]
        case "file":
            return [[source] for source in sources]
    return [list(group) for _, group in groupby(sources, lambda source: source.url.rpartition("/")[0])]


def read_event_part(folder: Store) -> EventPart | None:
    """Read the finished part in a folder; None if there is no manifest, or a file is missing or has another size.

    Raises
    ------
    StoreError
        If the manifest is damaged, or describes no sessions.
    """
    manifest = folder.read_manifest()
    if manifest is None:
        return None
    url = f"{folder.url}/{MANIFEST}"
    values = {name: value for name, value in manifest.items() if name in EventPart.__dataclass_fields__}
    if not isinstance(files := values.get("files"), list):
        raise refused(url, f"describes no sessions: {shown(manifest)}")
    part = typed(EventPart, {**values, "files": parse_tuples(File, files, url)}, url, folder=folder)
    sizes = folder.sizes()
    return part if all(sizes.get(file.name) == file.size for file in part.files) else None


def read_markets(work: Store, sources: Sequence[Source]) -> Iterator[Any]:
    """Yield Arrow tables of how often each item is in each market, in the sessions that `sources` hold.

    `work` is the work directory; other files among `sources` than `write_sessions` returns are passed over. The columns
    are those of `vocabulary.markets`. Parts whose events name no markets have no table.

    Raises
    ------
    DamageError
        If a part is gone or damaged.
    """
    paths = (source.name.split("/") for source in sources if source.name.startswith(f"{LAYOUT.folder}/"))
    for name, role in dict.fromkeys((part, file.partition("-")[0]) for _, part, file in paths):
        folder = work / LAYOUT.folder / name
        if (part := read_event_part(folder)) is None:
            raise DamageError.of(f"{folder.url}/{MANIFEST}", "is gone, or a file that it names")
        for file in part.files_with_role(MARKETS[role]):
            yield read_table(folder, file.name)


def write_sessions(
    inputs: Inputs,
    work: Store,
    sessions: Sessions,
    params: Params,
    resources: Resources,
    client: GetClient,
    listener: Listener,
) -> list[Source]:
    """Cut the events of each user into sessions, and write these as lists, unless they were written before.

    Workers keep some of the events in memory and the others on their disks; all events of a user in a part must fit
    into memory. An interrupted part starts over, since grouping events is most of the work.

    Parameters
    ----------
    inputs
        URLs, paths, folders or patterns of Parquet or CSV files.
    work
        The work directory, which all workers can reach.
    sessions
        The rules by which sessions are cut.
    params
        `column` names the column of lists; `window` is the distance up to which items are contexts of each other.
    resources
        Options and timeout of the store, and bytes of a block.
    client
        Returns the client of the cluster; called only if sessions must be written.
    listener
        Called with the progress; the last message says how many bytes were read.

    Returns
    -------
    list of Source
        Parquet files, in order: the sessions that ended in each part, and sessions that are open at the end of the
        last one.

    Raises
    ------
    InputError
        If files cannot be read, a column is missing, has another type or missing values, or there is no session.
    ParameterError
        As `parse_duration`, or if goals are asked for with windows that shrink.
    DamageError
        If the events that an earlier part carries over are damaged.
    MissingExtraError
        If pandas or pyarrow is not installed.
    """
    needed("pandas", EXTRA)
    if sessions.goal is not None and params.shrink_windows:
        problem = f"goal={sessions.goal!r} with shrink_windows=True: windows that shrink do not reach it."
        raise ParameterError(problem, "Give shrink_windows=False, or leave goal out.")
    options, timeout = resources.storage_options, resources.store_timeout
    files = find_sources(inputs, None, options, timeout, work=work.url, listener=listener)
    sources = [replace(file, format=_CSV.get(file.format, file.format)) for file in files]
    for source in sources:
        check_table(source)
    writer = _Writer(work, sessions, params, resources, client, listener)
    parts = list[EventPart]()
    for group in group_sources(sources, sessions):
        parts.append(writer.make_part(group, parts[-1] if parts else None))
    writer.report(sources, parts)
    roles = ((part, [ENDED, OPEN] if part is parts[-1] else [ENDED]) for part in parts)
    text_sources = [source for part, names in roles for source in part.text_sources(names)]
    if not text_sources:
        raise InputError(
            f"There is no session of {counted(sessions.least, 'item')} or more in {counted(len(sources), 'file')}.",
            "Give a longer gap, or a lower least.",
        )
    return text_sources


@dataclass
class _Writer:
    """Writes the parts of one call of `write_sessions`; counts the parts written and the bytes read."""

    work: Store
    sessions: Sessions
    params: Params
    resources: Resources
    client: GetClient
    listener: Listener
    written: int = 0
    read: int = 0

    def make_part(self, files: Sequence[Source], previous: EventPart | None) -> EventPart:
        """Return the part of the events in `files`, written unless it exists; `previous` is None for the first part."""
        carried_inputs, carrying_part = None, previous if self.sessions.carries else None
        if carrying_part is not None:
            digests = [file.digest for file in carrying_part.files_with_role(CARRIED)]
            carried_inputs = [carrying_part.latest, carrying_part.kinds, digests]
        window = 0 if self.sessions.goal is None else self.params.window
        identity = digest_inputs(files, asdict(self.sessions), self.params.column, window, carried_inputs)
        folder = self.work / LAYOUT.folder / identity
        stage = Stage(self.work, folder, partial(connect_tasks, self.client, self.work), self.listener, _STAGE, "files")
        return stage.make(partial(read_event_part, folder), partial(self._write_part, files, carrying_part))

    def report(self, sources: Sequence[Source], parts: Sequence[EventPart]) -> None:
        """Report how much of the files was read, and how many events are late."""
        size, late = sum(source.size for source in sources), sum(part.late for part in parts)
        message = f"read {format_bytes(self.read)} of {format_bytes(size)} "
        message += f"in {self.written} of {counted(len(parts), 'part')}"
        if late:
            message += f"; {counted(late, 'event')} later than the part of their time"
        self.listener(Progress(_STAGE, len(parts), len(parts), "parts", message=message))

    def _write_part(self, files: Sequence[Source], previous: EventPart | None, stage: OpenStage) -> EventPart:
        """Write and return the part of the events in `files` and of events that `previous`, if any, carries over."""
        client, carried = self.client(), [] if previous is None else previous.files_with_role(CARRIED)
        size = sum(source.size for source in files) + sum(file.size for file in carried)
        n_files = max(1, math.ceil(_MEMORY_RATIO * size / self.resources.block_bytes))
        stage.expect(n_files)
        with waits_for_workers(self.resources, self.listener), watching_clocks(client), silencing_shuffles():
            known = {} if previous is None else dict(zip(self.sessions.roles, previous.kinds, strict=True))
            table = read_events(files, self.sessions, self.resources, stage, known)
            cut, late = self._find_cut(table, previous, stage)
            frame = table.frame if previous is None else _add_carried(table.frame, previous)
            frames = frame.shuffle("user", npartitions=n_files, shuffle_method="p2p").to_delayed()
            write = needed("dask", EXTRA).delayed(_write_users, pure=False, nout=2)
            jobs = [
                write(users, stage.folder, k, self.sessions, cut, self.params.column) for k, users in enumerate(frames)
            ]
            outputs, counts = zip(*jobs, strict=True)
            markets = [_write_markets(counts, role, stage.folder) for role in MARKETS] if self.sessions.market else []
            results = gather(client, client.compute([*outputs, *markets]), "Sessions")
        written, n_events = tuple(file for _, files in results for file in files), sum(n for n, _ in results)
        latest = "" if cut.latest is None else repr(cut.latest)
        part = EventPart(stage.folder, written, n_events, late, latest, tuple(table.kinds.values()))
        manifest = {name: value for name, value in asdict(part).items() if name != "folder"}
        stage.finish(manifest, [file.name for file in written])
        stage.report(n_files, counted(n_events, "event"))
        self.read += size
        self.written += 1
        return part

    def _find_cut(self, table: EventTable, previous: EventPart | None, stage: OpenStage) -> tuple[Cut, int]:
        """Return the rules by which sessions are cut, and the number of late events, as in `EventPart`.

        Times are read only where the time of the latest event matters.
        """
        gap, half_life = (parse_duration(self.sessions, name, table.kinds) for name in ("gap", "half_life"))
        cut = Cut(gap, half_life=half_life, window=self.params.window)
        if half_life is None and not self.sessions.carries:
            return cut, 0
        earlier = json.loads(previous.latest) if previous is not None and previous.latest else None
        jobs = [(part, table.kinds["time"], table.reading, earlier) for part in table.parts]
        results = stage.map("find times", find_latest, jobs, 0) if jobs else []
        times = [time for time in (earlier, *(latest for latest, _ in results)) if time is not None]
        return cut._replace(latest=max(times, default=None)), sum(n for _, n in results)


def _add_carried(frame: Any, part: EventPart) -> Any:
    """Return a Dask dataframe of the events of `frame` and the events that the previous part, `part`, carries over.

    The result is `frame` itself if `part` carries over none.
    """
    frames, names = needed("dask.dataframe", EXTRA), [file.name for file in part.files_with_role(CARRIED)]
    if not names:
        return frame
    read = partial(_read_carried, folder=part.folder, types=dict(frame.dtypes))
    return frames.concat([frame, frames.from_map(read, names, meta=frame._meta)])


def _read_carried(name: str, folder: Store, types: dict[str, Any]) -> Any:
    """Task: read a file of carried events as a pandas dataframe with columns of these types."""
    return read_table(folder, name).to_pandas().astype(types)


def _write_users(
    events: Any, folder: Store, number: int, sessions: Sessions, cut: Cut, column: str
) -> tuple[tuple[int, list[File]], dict[str, Any]]:
    """Task: write the sessions of a pandas dataframe of events, in files named by `number`.

    Returns
    -------
    outputs
        The number of events, and the files written.
    counts
        By the roles ENDED and OPEN, an Arrow table of how often each item is in each market.
    """
    ended, still_open = split_ended(events, sessions, cut)
    tables, counts = dict[str, Any](), dict[str, Any]()
    for role, rows in ((ENDED, ended), (OPEN, still_open)):
        items, edges, counts[role] = cut_sessions(rows, sessions, cut)
        if len(items):
            tables[role] = make_list_table(column, items, edges)
    if len(still_open):
        tables[CARRIED] = pa.table({name: to_arrow(still_open[name]) for name in still_open})
    files = [File.write(folder, role, f"{role}-{number:06d}.parquet", table) for role, table in tables.items()]
    return (len(events), files), counts


def _write_markets(counts: Sequence[Any], role: str, folder: Store) -> Any:
    """Return a Delayed of `_write_counts`, of how often items are in markets in sessions of a role, ENDED or OPEN.

    `counts` are Delayeds of the second output of `_write_users`, whose tables are added up.
    """
    delayed = needed("dask", EXTRA).delayed
    join, tables = delayed(add_up, pure=False), [by_role[role] for by_role in counts]
    while len(tables) > 1:  # few at a time, so that a task holds a pair that all tables have only a few times
        tables = [join(tables[first : first + _TABLES_AT_ONCE]) for first in range(0, len(tables), _TABLES_AT_ONCE)]
    return delayed(_write_counts, pure=False)(tables[0], folder, MARKETS[role])


def _write_counts(counts: Any, folder: Store, role: str) -> tuple[int, list[File]]:
    """Task: write how often items are in markets; return 0 events, and a list of the file.

    `role` is a value of MARKETS. An empty table is not written.
    """
    return 0, [File.write(folder, role, f"{role}.parquet", counts.combine_chunks())] if len(counts) else []
