"""Sessions in the work directory: one folder for each part of the events.

    sessions/<identity>/ended-<i>.parquet     lists of items: sessions that ended in this part, or in none before
                        open-<i>.parquet      the sessions that are open at its end, for training if no part follows
                        carried-<i>.parquet   the events of these, which the next part goes on from
                        ended-markets.parquet, open-markets.parquet   how often items are in markets, in sessions that
                                              ended or are open, if events name these

A part is named by its files and by what was carried to it. So a part is made anew where one of its files changed, and
the parts behind it only if that changes what is carried to them.
"""

import hashlib
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any, NamedTuple, Self

from daskw2v.corpus.files import Source
from daskw2v.corpus.formats import PARQUET
from daskw2v.errors import DamageError
from daskw2v.sequences.lists import read_columns
from daskw2v.sequences.sessions import Sessions
from daskw2v.store.limits import refused, shown, typed
from daskw2v.store.stage import Layout
from daskw2v.store.storage import MANIFEST, Store

LAYOUT = Layout("sessions/<name>/<file>", unused="sessions/<name>")
ENDED, OPEN, CARRIED = "ended", "open", "carried"
MARKETS = {ENDED: "ended-markets", OPEN: "open-markets"}  # role of the counts of these sessions' items in markets


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
        Numbers of events, with those carried to it, and of those earlier than the latest of the parts before.
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
        """What the next part depends on."""
        return [self.latest, self.kinds, [file.digest for file in self.of(CARRIED)]]

    def sources(self, roles: Collection[str]) -> Iterator[Source]:
        """Yield the files of some roles as files of text."""
        for file in self.files:
            if file.role in roles:
                name = f"{LAYOUT.folder}/{self.home.name}/{file.name}"
                yield Source(f"{self.home.url}/{file.name}", file.size, "", PARQUET.name, None, name)


def groups_of(sources: Sequence[Source], sessions: Sessions) -> list[list[Source]]:
    """Return the files of each part: all, or one, or those that follow each other in a folder."""
    match sessions.per:
        case None:
            return [list(sources)]
        case "file":
            return [[source] for source in sources]
    return [list(group) for _, group in groupby(sources, lambda source: source.url.rpartition("/")[0])]


def manifest_of(part: EventPart) -> dict[str, Any]:
    """Return what `find_part` reads."""
    return {name: value for name, value in asdict(part).items() if name != "home"}


def find_part(home: Store) -> EventPart | None:
    """Return a part that was written and of which no file is missing or cut short.

    Raises
    ------
    StoreError
        If its manifest is damaged, or says something else.
    """
    manifest = home.read_manifest()
    if manifest is None:
        return None
    place = f"{home.url}/{MANIFEST}"
    values = {name: value for name, value in manifest.items() if name in EventPart.__dataclass_fields__}
    rows = values.get("files")
    if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == len(File._fields) for row in rows):
        raise refused(place, f"describes no sessions: {shown(manifest)}")
    files = [typed(File, dict(zip(File._fields, row, strict=True)), place) for row in rows]
    part = typed(EventPart, {**values, "files": files}, place, home=home)
    sizes = home.sizes()
    return part if all(sizes.get(file.name) == file.size for file in files) else None


def read_markets(work: Store, sources: Sequence[Source]) -> Iterator[Any]:
    """Yield how often items are in markets, as tables of Arrow, in sessions that are files of text.

    None where their events name no markets.

    Raises
    ------
    DamageError
        If a part is gone or damaged.
    """
    for folder, role in dict.fromkeys(_places(sources)):
        home = work / LAYOUT.folder / folder
        part = find_part(home)
        if part is None:
            raise DamageError.of(f"{home.url}/{MANIFEST}", "is gone, or a file that it names")
        for file in part.of(MARKETS[role]):
            yield read_columns(home, file.name)


def _places(sources: Sequence[Source]) -> Iterator[tuple[str, str]]:
    """Yield the part that each file of sessions belongs to, and its role there."""
    for source in sources:
        match source.name.split("/"):
            case [LAYOUT.folder, part, file]:
                yield part, file.partition("-")[0]
