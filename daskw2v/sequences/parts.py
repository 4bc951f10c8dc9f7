"""Sessions of events as Parquet files of lists: sentences whose words are items (item2vec).

    sessions/<identity>/ended-<i>.parquet     lists of items: sessions that ended in this part, or in none before
                        open-<i>.parquet      the sessions that are open at its end, for training if no part follows
                        carried-<i>.parquet   the events of these, which the next part goes on from
                        ended-markets.parquet, open-markets.parquet   how often items are in markets, in sessions that
                                              ended or are open, if events name these

A part of the events has a folder, named by its files and by what was carried to it. So a part is made anew where one of
its files changed, and the parts behind it only if that changes what is carried to them.

Dask's dataframes bring the events of a user together from all files of a part. A task then cuts the events of several
users. With `per`, parts are read in their order, each once: the events of sessions that are open at the end of one are
carried over to the next. So a new file costs its own events and those carried to it.
"""

import hashlib
import json
import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple, Self

from dask.utils import format_bytes
from distributed import Client

from daskw2v.cluster.clocks import clocks_watched
from daskw2v.cluster.connecting import check_cluster
from daskw2v.cluster.local import shuffling
from daskw2v.cluster.tasks import run_tasks
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
from daskw2v.sequences.cutting import Cut, divide, sessions_of
from daskw2v.sequences.events import EXTRA, EventTable, duration_of, latest_of, read_events
from daskw2v.sequences.files import identity_of, read_columns, write_columns, write_lists
from daskw2v.sequences.settings import Sessions
from daskw2v.sequences.tables import check_table
from daskw2v.store.limits import refused, shown, typed
from daskw2v.store.stage import Layout, OpenStage, RunTasks, Stage
from daskw2v.store.storage import MANIFEST, Store
from daskw2v.vocabulary.markets import add_up

pa = Extra("pyarrow", EXTRA)

LAYOUT = Layout("sessions/<name>/<file>", unused="sessions/<name>")
ENDED, OPEN, CARRIED = "ended", "open", "carried"
MARKETS = {ENDED: "ended-markets", OPEN: "open-markets"}  # role of the counts of these sessions' items in markets
_CSV = {TEXT.name: CSV.name}  # files of any name that no other format has
_STAGE = "sessions"
_UNPACKED = 8  # bytes in memory for each byte of a file, about
_JOINED = 8  # tables of counts that are joined at once


class File(NamedTuple):
    """A file of a part: ENDED, OPEN or CARRIED, or one of MARKETS; its name, size and digest."""

    role: str
    name: str
    size: int
    digest: str

    @classmethod
    def of(cls, role: str, name: str, content: bytes) -> Self:
        """Describe a file that was written."""
        return cls(role, name, len(content), hashlib.blake2b(content, digest_size=16).hexdigest())


@dataclass(frozen=True)
class EventPart:
    """A part of the events whose sessions are written.

    Parameters
    ----------
    home
        Its folder.
    files
        What it holds.
    events, late
        Number of events, carried ones included, and number of events earlier than the latest one of the parts before.
    latest
        Time of the latest event up to its end, as text; "" if there was none.
    kinds
        Type of each column, in the order of `EventTable.kinds`.
    """

    home: Store
    files: tuple[File, ...]
    events: int
    late: int
    latest: str
    kinds: tuple[str, ...]

    def of(self, role: str) -> list[File]:
        """Return the files of a role."""
        return [file for file in self.files if file.role == role]

    @property
    def latest_time(self) -> float | None:
        """Time of the latest event up to its end."""
        return json.loads(self.latest) if self.latest else None

    @property
    def handed_on(self) -> list[Any]:
        """The values that the next part depends on."""
        return [self.latest, self.kinds, [file.digest for file in self.of(CARRIED)]]

    def sources(self, roles: Collection[str]) -> Iterator[Source]:
        """Yield the files whose role is in `roles`, as files of text."""
        for file in self.files:
            if file.role in roles:
                name = f"{LAYOUT.folder}/{self.home.name}/{file.name}"
                yield Source(f"{self.home.url}/{file.name}", file.size, "", PARQUET.name, None, name)


def groups_of(sources: Sequence[Source], sessions: Sessions) -> list[list[Source]]:
    """Return the files of each part: all files, one file, or consecutive files of a folder."""
    match sessions.per:
        case None:
            return [list(sources)]
        case "file":
            return [[source] for source in sources]
    return [list(group) for _, group in groupby(sources, lambda source: source.url.rpartition("/")[0])]


def manifest_of(part: EventPart) -> dict[str, Any]:
    """Return the manifest that `find_part` reads."""
    return {name: value for name, value in asdict(part).items() if name != "home"}


def find_part(home: Store) -> EventPart | None:
    """Return a part that was written; None if it was not, or if a file is missing or cut short.

    Raises
    ------
    StoreError
        If its manifest is damaged, or says something else.
    """
    manifest = home.read_manifest()
    if manifest is None:
        return None
    url = f"{home.url}/{MANIFEST}"
    values = {name: value for name, value in manifest.items() if name in EventPart.__dataclass_fields__}
    rows = values.get("files")
    if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == len(File._fields) for row in rows):
        raise refused(url, f"describes no sessions: {shown(manifest)}")
    files = [typed(File, dict(zip(File._fields, row, strict=True)), url) for row in rows]
    part = typed(EventPart, {**values, "files": files}, url, home=home)
    sizes = home.sizes()
    return part if all(sizes.get(file.name) == file.size for file in files) else None


def read_markets(work: Store, sources: Sequence[Source]) -> Iterator[Any]:
    """Yield tables of Arrow that say how often items are in markets, in the sessions of files of text.

    Parts whose events name no markets have no table.

    Raises
    ------
    DamageError
        If a part is gone or damaged.
    """
    for folder, role in dict.fromkeys(_parts_and_roles(sources)):
        home = work / LAYOUT.folder / folder
        part = find_part(home)
        if part is None:
            raise DamageError.of(f"{home.url}/{MANIFEST}", "is gone, or a file that it names")
        for file in part.of(MARKETS[role]):
            yield read_columns(home, file.name)


def _parts_and_roles(sources: Sequence[Source]) -> Iterator[tuple[str, str]]:
    """Yield the part that each file of sessions belongs to, and its role in that part."""
    for source in sources:
        match source.name.split("/"):
            case [LAYOUT.folder, part, file]:
                yield part, file.partition("-")[0]


def write_sessions(
    inputs: Inputs,
    work: Store,
    sessions: Sessions,
    params: Params,
    resources: Resources,
    client: Callable[[], Client],
    listener: Listener,
) -> list[Source]:
    """Cut the events of each user into sessions, and write these as lists, unless they were written before.

    Workers keep a part of the events in memory and the others on their disks; all events of a user must fit into
    memory. An interrupted part starts over, since grouping events is most of the work.

    Parameters
    ----------
    inputs
        URLs, paths, folders or patterns of Parquet or CSV files.
    work
        The work directory, which all workers can reach.
    sessions
        How to cut sessions.
    params
        `column` names the column of lists; `window` is how far items see each other.
    resources
        How to read.
    client
        Returns the cluster; called if sessions must be written.
    listener
        Called with the progress; the last message says how much was read.

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
        If a duration is none or has no unit, or goals are asked for with windows that shrink.
    DamageError
        If what an earlier part handed on is damaged.
    MissingExtraError
        If pandas or pyarrow is not installed.
    """
    needed("pandas", EXTRA)
    if sessions.goal is not None and params.shrink_windows:
        raise ParameterError(
            f"goal={sessions.goal!r} with shrink_windows=True: windows that shrink do not reach it.",
            "Give shrink_windows=False, or leave goal out.",
        )
    sources = [
        replace(source, format=_CSV.get(source.format, source.format))
        for source in find_sources(
            inputs, None, resources.storage_options, resources.store_timeout, work=work.url, listener=listener
        )
    ]
    for source in sources:
        check_table(source)
    writer = _Writer(work, sessions, params, resources, client, listener)
    parts = list[EventPart]()
    for files in groups_of(sources, sessions):
        parts.append(writer.part(files, parts[-1] if parts else None))
    writer.report(sources, parts)
    last, written = len(parts) - 1, list[Source]()
    for number, part in enumerate(parts):
        written += part.sources([ENDED, OPEN] if number == last else [ENDED])
    if not written:
        raise InputError(
            f"There is no session of {counted(sessions.least, 'item')} or more in {counted(len(sources), 'file')}.",
            "Give a longer gap, or a lower least.",
        )
    return written


@dataclass
class _Writer:
    """Writes the parts of one call, and counts what it reads."""

    work: Store
    sessions: Sessions
    params: Params
    resources: Resources
    client: Callable[[], Client]
    listener: Listener
    written: list[str] = field(default_factory=list)
    read: int = 0

    def part(self, files: Sequence[Source], before: EventPart | None) -> EventPart:
        """Find or write a part."""
        previous = before if self.sessions.carries else None
        handed_on = None if previous is None else previous.handed_on
        window = 0 if self.sessions.goal is None else self.params.window
        identity = identity_of(files, asdict(self.sessions), self.params.column, window, handed_on)
        home = self.work / LAYOUT.folder / identity
        stage = Stage(self.work, home, self._runner, self.listener, _STAGE, "files")
        return stage.make(partial(find_part, home), partial(self._write, files, previous))

    def _runner(self) -> RunTasks:
        """Return what runs tasks on the cluster, which is checked."""
        client = self.client()
        check_cluster(client, self.work)
        return partial(run_tasks, client)

    def report(self, sources: Sequence[Source], parts: Sequence[EventPart]) -> None:
        """Report how much was read, and how many events came late."""
        size, late = sum(source.size for source in sources), sum(part.late for part in parts)
        message = f"read {format_bytes(self.read)} of {format_bytes(size)} in {len(self.written)} of " + counted(
            len(parts), "part"
        )
        if late:
            message += f"; {counted(late, 'event')} later than the part of their time"
        self.listener(Progress(_STAGE, len(parts), len(parts), "parts", message=message))

    def _write(self, files: Sequence[Source], before: EventPart | None, stage: OpenStage) -> EventPart:
        client, carried = self.client(), [] if before is None else before.of(CARRIED)
        size = sum(source.size for source in files) + sum(file.size for file in carried)
        n_files = max(1, math.ceil(_UNPACKED * size / self.resources.block_bytes))
        stage.expect(n_files)
        waiting = waits_for_workers(self.resources, self.listener)
        with waiting, clocks_watched(client), shuffling():
            known = {} if before is None else dict(zip(self.sessions.roles, before.kinds, strict=True))
            table = read_events(files, self.sessions, self.resources, stage, known)
            cut, late = self._cut(table, before, stage)
            frame = table.frame
            if before is not None:
                frame = _with_carried(frame, before)
            frames = frame.shuffle("user", npartitions=n_files, shuffle_method="p2p").to_delayed()
            write = needed("dask", EXTRA).delayed(_write_users, pure=False, nout=2)
            jobs = [
                write(users, stage.home, number, self.sessions, cut, self.params.column)
                for number, users in enumerate(frames)
            ]
            outputs, counts = zip(*jobs, strict=True)
            markets = [_write_markets(counts, role, stage.home) for role in MARKETS] if self.sessions.market else []
            made = gather(client, client.compute([*outputs, *markets]), "Sessions")
        written = tuple(file for _, files_of in made for file in files_of)
        n_events = sum(n for n, _ in made)
        part = EventPart(
            stage.home,
            written,
            n_events,
            late,
            "" if cut.latest is None else repr(cut.latest),
            tuple(table.kinds.values()),
        )
        stage.finish(manifest_of(part), [file.name for file in written])
        stage.report(n_files, counted(n_events, "event"))
        self.read += size
        self.written.append(stage.home.name)
        return part

    def _cut(self, table: EventTable, before: EventPart | None, stage: OpenStage) -> tuple[Cut, int]:
        """Return how to cut, and the number of late events; times are read where the latest one counts."""
        gap, half_life = (duration_of(self.sessions, name, table.kinds) for name in ("gap", "half_life"))
        cut = Cut(gap, half_life=half_life, window=self.params.window)
        if half_life is None and not self.sessions.carries:
            return cut, 0
        earlier = None if before is None else before.latest_time
        jobs = [(part, table.kinds["time"], table.reading, earlier) for part in table.parts]
        latest_times = stage.map("find times", latest_of, jobs, 0) if jobs else []
        known = [latest for latest, _ in latest_times if latest is not None] + ([] if earlier is None else [earlier])
        return cut._replace(latest=max(known, default=None)), sum(n for _, n in latest_times)


def _with_carried(frame: Any, before: EventPart) -> Any:
    """Return a dataframe of Dask with the events that a part carries over to it."""
    frames, names = needed("dask.dataframe", EXTRA), [file.name for file in before.of(CARRIED)]
    if not names:
        return frame
    read = partial(_read_carried, home=before.home, types=dict(frame.dtypes))
    return frames.concat([frame, frames.from_map(read, names, meta=frame._meta)])


def _read_carried(name: str, home: Store, types: dict[str, Any]) -> Any:
    """Task: read events that were carried over."""
    return read_columns(home, name).to_pandas().astype(types)


def _write_users(
    events: Any, home: Store, number: int, sessions: Sessions, cut: Cut, column: str
) -> tuple[tuple[int, list[File]], dict[str, Any]]:
    """Task: write the sessions of users; return the number of events and the files, and the items by market."""
    ended, unfinished = divide(events, sessions, cut)
    files, counts = list[File](), dict[str, Any]()

    def note(role: str, write: Callable[..., bytes], *content: Any) -> None:
        name = f"{role}-{number:06d}.parquet"
        files.append(File.of(role, name, write(home, name, *content)))

    for role, rows in ((ENDED, ended), (OPEN, unfinished)):
        items, edges, counts[role] = sessions_of(rows, sessions, cut)
        if len(items):
            note(role, write_lists, column, items, edges)
    if len(unfinished):
        columns = {name: pa.chunked_array(pa.array(unfinished[name])).combine_chunks() for name in unfinished}
        note(CARRIED, write_columns, columns)
    return (len(events), files), counts


def _write_markets(counts: Sequence[Any], role: str, home: Store) -> Any:
    """Return a Delayed that writes how often items are in markets, in sessions of a role, from counts by role."""
    delayed = needed("dask", EXTRA).delayed
    join, tables = delayed(add_up, pure=False), [of_users[role] for of_users in counts]
    while len(tables) > 1:  # few at a time, so that pairs that all have are held once
        tables = [join(tables[first : first + _JOINED]) for first in range(0, len(tables), _JOINED)]
    return delayed(_write_counts, pure=False)(tables[0], home, MARKETS[role])


def _write_counts(counts: Any, home: Store, role: str) -> tuple[int, list[File]]:
    """Task: write how often items are in markets; return no events, and the file."""
    name = f"{role}.parquet"
    columns = dict(zip(counts.column_names, counts.combine_chunks().columns, strict=True))
    return 0, [File.of(role, name, write_columns(home, name, columns))] if len(counts) else []
