"""Logs of small files with rising numbers, by which processes agree on one order of events without a lock.

An entry is created exclusively. Of several processes that have read entry n and then create entry n + 1, one succeeds;
the others read again. So no process changes a state that it has not read. Entries that are no longer needed are
deleted, but the highest one stays, so numbers never fall, unless its creator withdraws it. Each entry has a random
identity.

The store has to support exclusive creation: local disks and NFS do (a hard link), and so do S3, Google Cloud Storage
and compatible stores (a conditional put). A store that ignores the condition is refused when the first process writes
to a work directory (`probe`).
"""

import re
import uuid
from contextlib import suppress
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
        Folder of the entries, which has no other files.
    kept
        Number of newest entries that are never deleted.
    """

    folder: Store
    kept: int = 1

    def newest_number(self, known: int = 0) -> int:
        """Return the highest number of an entry, at least `known`; 0 if there is no entry."""
        return self._skip_unlisted(max([known, *self.list_numbers()]))

    def read(self, number: int) -> dict[str, Any] | None:
        """Return the values of an entry; None if it does not exist (yet, or any more).

        Raises
        ------
        DamageError
            If the entry is damaged.
        """
        return self.folder.read_manifest(_file_name(number))

    def append(self, number: int, values: dict[str, Any]) -> str | None:
        """Create the entry `number`, after the caller has read the entry before; return the new entry's identity.

        The result is None if another process has created this entry or a later one. Entries that are not to be kept are
        deleted.
        """
        entry = uuid.uuid4().hex
        try:
            self.folder.create_manifest({**values, _ENTRY: entry}, _file_name(number))
        except StoreError:  # such as of a lease that was lost after a try which succeeded, but whose answer was lost
            if not self._has_identity(number, entry):
                raise
        # A try that timed out may have succeeded. Several stores answer once with the former content
        if not (self._has_identity(number, entry) or self._has_identity(number, entry)):
            return None
        numbers = self.list_numbers()
        newest = self._skip_unlisted(max([number, *numbers]))
        if newest >= number + self.kept:  # an entry of this number was created and deleted before
            (self.folder / _file_name(number)).remove()
            return None
        for entry_number in numbers:
            if entry_number <= number - self.kept:
                with suppress(StoreError):  # the new entry exists; the next one deletes what is left
                    (self.folder / _file_name(entry_number)).remove()
        return entry

    def probe(self) -> None:
        """Check once that the store creates files exclusively; the newest entry records the answer.

        Raises
        ------
        StoreError
            If the store replaces a file where it should refuse to create it.
        """
        newest = self.newest_number()
        if newest and (self.read(newest) or {}).get("exclusive"):
            return
        number = newest + 1
        if self.append(number, {"released": True, "first": True}) is None:
            return  # another process probes
        self.folder.create_manifest({"released": True}, _file_name(number))
        if not any((self.read(number) or {}).get("first") for _ in range(2)):  # one answer may be old
            (self.folder / _file_name(number)).remove()
            raise StoreError(
                f"{self.folder.url} is in a store that creates no file exclusively: of two processes that publish at "
                "once, one would lose its change.",
                "Give a work directory on a disk, or in a store with conditional writes (S3: If-None-Match).",
            )
        self.append(number + 1, {"released": True, "exclusive": True})

    def ends_with(self, number: int, entry: str) -> bool:
        """Return whether the newest entry is that which `append` has created with this number and identity."""
        if self.newest_number(number) != number:
            return False
        try:  # twice, as a store may answer once with old content
            return self._has_identity(number, entry) or self._has_identity(number, entry)
        except DamageError:  # an entry of another process would be undamaged
            return True

    def rewrite(self, number: int, entry: str, values: dict[str, Any]) -> None:
        """Replace the values of the entry of this number and identity, which only its creator may do."""
        self.folder.write_manifest({**values, _ENTRY: entry}, _file_name(number), alone=True)

    def withdraw(self, number: int, entry: str) -> None:
        """Delete the entry of this number and identity if it is the newest, which only its creator may do."""
        if self.ends_with(number, entry):
            (self.folder / _file_name(number)).remove()

    def _skip_unlisted(self, number: int) -> int:
        """Return the highest number of consecutive entries from `number` on; several stores list new files late."""
        while self.folder.read_bytes(_file_name(number + 1)) is not None:
            number += 1
        return number

    def _has_identity(self, number: int, entry: str) -> bool:
        """Return whether the entry of a number exists and has an identity."""
        values = self.read(number)
        return values is not None and values.get(_ENTRY) == entry

    def list_numbers(self) -> list[int]:
        """Return the numbers of the entries that the store lists, in any order."""
        return [int(match[1]) for name in self.folder.children() if (match := _NAME.fullmatch(name))]


def _file_name(number: int) -> str:
    """Return the name of an entry's file."""
    return f"{number:08}.json"
