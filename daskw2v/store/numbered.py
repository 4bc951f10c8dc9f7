"""Logs of small files with rising numbers, by which processes agree on one order of events without a lock.

An entry is created exclusively. Of several processes that have read entry n and then create entry n + 1, one succeeds;
the others read again. So no process changes a state that it has not read. Entries that are no longer needed are
deleted, but the highest one stays, so numbers never fall, unless its creator withdraws it. Each entry has its own
identity.

The store has to support exclusive creation: local disks and NFS do (a hard link), and so do S3, Google Cloud Storage
and compatible stores (a conditional put). A store that ignores the condition is refused when the first process writes
to a work directory (`probe`).
"""

import re
import uuid
from dataclasses import dataclass
from typing import Any

from daskw2v.errors import DamageError, StoreError
from daskw2v.store.storage import Store

_NAME, _ENTRY = re.compile(r"(\d{8,})\.json"), "entry"


@dataclass(frozen=True)
class NumberedLog:
    """A log in a folder, the files `00000001.json`, `00000002.json`, ...; small, safe to send to a worker.

    Parameters
    ----------
    folder
        Where the entries are. Nothing else is in it.
    kept
        Number of newest entries that are never deleted.
    """

    folder: Store
    kept: int = 1

    def newest_number(self, known: int = 0) -> int:
        """Return the highest number, at least `known`; 0 if there is no entry."""
        number = max([known, *self._numbers()])
        while self.folder.read_bytes(_file(number + 1)) is not None:  # several stores list new files late
            number += 1
        return number

    def read(self, number: int) -> dict[str, Any] | None:
        """Return an entry, or None if it does not exist (yet, or any more).

        Raises
        ------
        DamageError
            If it is damaged.
        """
        return self.folder.read_manifest(_file(number))

    def append(self, number: int, values: dict[str, Any]) -> str | None:
        """Create an entry after `number - 1`, which the caller has read; return its identity.

        None if another process has created this entry or a later one. Entries that are not kept are deleted.
        """
        entry = uuid.uuid4().hex
        self.folder.create_manifest({**values, _ENTRY: entry}, _file(number))
        # A try that timed out may have succeeded. Several stores answer once with the former content
        if not (self._is_of(number, entry) or self._is_of(number, entry)):
            return None
        if self.newest_number(number) >= number + self.kept:  # the number had been used and deleted long before
            (self.folder / _file(number)).remove()
            return None
        for old in self._numbers():
            if old <= number - self.kept:
                (self.folder / _file(old)).remove()
        return entry

    def probe(self) -> None:
        """Check once that the store creates files exclusively; entry 1 is kept as the answer.

        Raises
        ------
        StoreError
            If it writes a file over another one that was to be created.
        """
        if self.newest_number() or self.append(1, {"released": True, "exclusive": True}) is None:
            return
        self.folder.create_manifest({"exclusive": False}, _file(1))
        if not any((self.read(1) or {}).get("exclusive") for _ in range(2)):  # one answer may be old
            (self.folder / _file(1)).remove()
            raise StoreError(
                f"{self.folder.url} is in a store that creates no file exclusively: of two processes that publish at "
                "once, one would lose its change.",
                "Give a work directory on a disk, or in a store with conditional writes (S3: If-None-Match).",
            )

    def ends_with(self, number: int, entry: str) -> bool:
        """Return whether the newest entry is the one that `append` has created with this number and identity."""
        return self._ends_with(number, entry) or self._ends_with(
            number, entry
        )  # a store may answer once with old content

    def _ends_with(self, number: int, entry: str) -> bool:
        try:
            return self.newest_number(number) == number and self._is_of(number, entry)
        except DamageError:  # another process would have created a whole one
            return True

    def rewrite(self, number: int, entry: str, values: dict[str, Any]) -> None:
        """Replace the content of an entry, which only the process that created it may do."""
        self.folder.write_manifest({**values, _ENTRY: entry}, _file(number), alone=True)

    def withdraw(self, number: int, entry: str) -> None:
        """Delete an entry if it is the newest, which only the process that created it may do."""
        if self.ends_with(number, entry):
            (self.folder / _file(number)).remove()

    def _is_of(self, number: int, entry: str) -> bool:
        values = self.read(number)
        return values is not None and values.get(_ENTRY) == entry

    def _numbers(self) -> list[int]:
        return [int(match[1]) for name in self.folder.children() if (match := _NAME.fullmatch(name))]


def _file(number: int) -> str:
    return f"{number:08}.json"
