"""One at a time: who works on something in a work directory says so, again and again, until it is done.

A lease is a small file with its holder's name and a number that grows. It belongs to its holder as long as the number
grows; clocks of several machines are not compared. What died on this machine is known at once.
"""

import os
import platform
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil

from daskw2v.errors import BusyError, DamageError, Daskw2vError, StoreError
from daskw2v.progress import Listener, Progress
from daskw2v.store.durability import scope
from daskw2v.store.storage import Store

_FOLDER = "leases"
BEAT = 10.0  # seconds between two signs of life
EXPIRY = 60.0  # seconds without any after which a holder is taken for dead
_NOBODY = ""  # who wrote a file that cannot be read
_LOOK = 1.0  # seconds between looks at somebody else's


class Lease:
    """What its holder has.

    Parameters
    ----------
    home
        Where leases lie.
    file
        Its file's name.
    what
        What it is for, for messages.
    """

    def __init__(self, home: Store, file: str, what: str) -> None:
        self._home, self._file, self.what = home, file, what
        self._name = uuid.uuid4().hex
        self._beats, self._thread = 0, threading.get_ident()
        self._lost: str | None = None
        self._done = threading.Event()

    def check(self) -> None:
        """Check that it is still ours.

        Raises
        ------
        StoreError
            If somebody took us for dead and took it.
        """
        if self._lost is not None:
            raise StoreError(
                f"{self._lost} has taken over {self.what}: no sign of life came from here for {EXPIRY:g} s.",
                "Let one of the two go on.",
            )

    def take(self) -> bool:
        """Write the file, where there is none; tell whether it is ours."""
        self._home.create_manifest(self._values(), self._file)
        return self.is_ours(self.read())  # some stores overwrite

    def read(self) -> dict[str, Any] | None:
        """Return what its file says, or None where there is none."""
        try:
            return self._home.read_manifest(self._file)
        except DamageError:  # somebody has just begun to write it, or died over it
            return {"name": _NOBODY, "beats": 0, "pid": "?", "host": "?", "machine": "?"}

    def is_ours(self, found: dict[str, Any] | None) -> bool:
        """Tell whether that is what this lease wrote."""
        return found is not None and found["name"] == self._name

    def remove(self) -> None:
        """Take it from whoever has it."""
        (self._home / self._file).remove()

    def _values(self) -> dict[str, Any]:
        return {"name": self._name, "beats": self._beats, "thread": self._thread, **_myself()}

    def live(self) -> None:
        """Give signs of life until it is given back or lost."""
        while not self._done.wait(BEAT):
            with suppress(Exception):  # a store that is gone for a while: the next beat may reach it
                found = self.read()
                if found is None or not (self.is_ours(found) or found["name"] == _NOBODY):
                    self._lost = "Somebody, who is done," if found is None else _holder(found)
                    return
                self._beats += 1
                self._home.write_manifest(self._values(), self._file, alone=True)

    def end(self) -> None:
        """Stop the signs of life."""
        self._done.set()

    def give_back(self) -> None:
        """Let others take it; signs of life have stopped."""
        with suppress(Daskw2vError):  # it expires
            found = self.read()
            if self._lost is None and found is not None and (self.is_ours(found) or found["name"] == _NOBODY):
                self.remove()

    def guarding(self, listener: Listener) -> Listener:
        """Return a listener that hears of progress only while the lease is ours."""

        def listen(progress: Progress) -> None:
            self.check()
            listener(progress)

        return listen


@contextmanager
def hold(work: Store, name: str, what: str, *, waiting: Callable[[str], None] | None = None) -> Iterator[Lease]:
    """Hold the lease of that name in a work directory for the time of a block.

    Parameters
    ----------
    work
        The work directory.
    name, what
        Name of the lease, and what it is for, for messages.
    waiting
        Wait until others are done, and tell this who they are. By default nobody waits for a holder that lives.

    Raises
    ------
    BusyError
        If somebody else holds it.
    """
    # A sign of life that takes longer than till the next one is none
    home = Store((work / _FOLDER).url, work.options, min(work.timeout, BEAT))
    lease = Lease(home, f"{name}.json", what)
    while not lease.take():
        _await_end(lease, waiting)
    beating = threading.Thread(target=lease.live, daemon=True)
    beating.start()
    try:
        with scope():  # an earlier failure of the disk is no concern of this holder
            yield lease
    finally:
        lease.end()
        beating.join()
        lease.give_back()


def hold_run(work: Store, run: str) -> AbstractContextManager[Lease]:
    """Hold the lease of a run in a work directory; raises as `hold` does."""
    return hold(work, run, f"the run {run} in {work.url}")


def _await_end(lease: Lease, waiting: Callable[[str], None] | None) -> None:
    """Return when a lease is free; remove it where its holder is dead."""
    seen, since, told = None, time.monotonic(), False
    while (found := lease.read()) is not None:
        if lease.is_ours(found):  # it was there when it was asked for, and not read
            return
        beat = (found["name"], found["beats"])
        lives = _lives(found)
        if lives or (lives is None and seen is not None and beat != seen):
            if waiting is None:
                raise BusyError(
                    f"{_holder(found)} is at work on {lease.what}.",
                    "Wait until it is done, stop it, or give another work directory.",
                )
            if lives and found["pid"] == os.getpid() and found["thread"] == threading.get_ident():
                raise StoreError(f"{lease.what} is this thread's own already.", "Do one after the other.")
            if not told:
                waiting(f"waiting for {_holder(found)}")
                told = True
        if beat != seen:
            seen, since = beat, time.monotonic()
        if lives is False or (lives is None and time.monotonic() - since > EXPIRY):
            again = lease.read()
            if again is not None and again["name"] == found["name"]:
                lease.remove()
            return
        time.sleep(_LOOK)


def _myself() -> dict[str, Any]:
    return {"host": platform.node(), "machine": _machine(), "pid": os.getpid(), "born": _born(os.getpid())}


def _machine() -> str:
    """Return what two processes have in common that see each other's numbers."""
    boot, numbers = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")
    if not boot.exists():
        return platform.node()
    return f"{boot.read_text().strip()}-{numbers.stat().st_ino}"


def _born(pid: int) -> str | None:
    """Return when a process began, by a clock that nobody sets; None where there is none."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        return stat.read_text().rpartition(")")[2].split()[19] if stat.parent.parent.exists() else _born_elsewhere(pid)
    except OSError:
        return None


def _born_elsewhere(pid: int) -> str | None:
    """Do the same where there is no /proc."""
    try:
        return str(psutil.Process(pid).create_time())
    except psutil.Error:
        return None


def _lives(found: dict[str, Any]) -> bool | None:
    """Tell whether a holder on this machine lives; None where it is on another."""
    if found["machine"] != _machine():
        return None
    return bool(_born(found["pid"]) == found["born"])


def _holder(found: dict[str, Any]) -> str:
    return f"Process {found['pid']} on {found['host']}"
