"""Leases: at most one process at a time works on something in a work directory.

A lease is a log of numbered entries, `leases/<name>/<number>.json` (`NumberedLog`). The highest entry names the holder,
or says that the lease was released. Taking, taking over and releasing are the same operation: entry n + 1 is created
exclusively by a process that has read entry n. So of several processes that take over the lease of a dead holder, one
gets it.

A holder rewrites its own entry every BEAT seconds, with a counter and its machine's monotonic clock. Processes of
another machine compare counters, never clocks: a holder whose counter stays the same for EXPIRY seconds counts as dead.
On the same machine a holder is dead if its process has ended, or if the clock says that it gave no sign of life for
EXPIRY seconds: it is stopped, or hangs. No process ever writes to the entry of another one.

A holder may be paused, lose its lease, and go on. `Lease.guard` gives a store that compares the holder's number with
the highest one before each write and deletion, and refuses them once the lease is lost. A pause between this check and
the write is the reason for `taken_over`, by which the next holder takes what the former one was about to write.
"""

import os
import platform
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from daskw2v.errors import BusyError, DamageError, Daskw2vError, StoreError
from daskw2v.progress import Listener, Progress
from daskw2v.store.durability import scope
from daskw2v.store.numbered import NumberedLog
from daskw2v.store.storage import Store

_FOLDER = "leases"
BEAT = 10.0  # seconds between two signs of life
EXPIRY = 60.0  # seconds without a sign of life after which a holder counts as dead
LOOK = 1.0  # seconds between two readings of another holder's entry
_RELEASED = {"released": True}
_PROBE = "probe"  # a lease that nobody holds: its entry says that the store was probed
_UNKNOWN = {"beats": 0, "pid": "?", "host": "?", "machine": "?", "born": "?", "thread": "?", "clock": float("inf")}


@dataclass(frozen=True)
class Token:
    """The number under which a process holds a lease; small, safe to send to a worker.

    Parameters
    ----------
    log
        The entries of the lease.
    number, entry
        Number of the holder's entry, and its identity.
    what
        What the lease is for, for messages.
    """

    log: NumberedLog
    number: int
    entry: str
    what: str

    def lost(self) -> StoreError | None:
        """Read the store; return None if the lease is held, or the error that says who has taken it over."""
        if self.log.ends_with(self.number, self.entry):
            return None
        newest = _read(partial(self.log.read, self.log.newest_number(self.number))) or _RELEASED
        taker = "Another process, which has finished," if newest.get("released") else _holder(newest)
        problem = f"{taker} has taken over {self.what}: no sign of life came from here for {EXPIRY:g} s."
        return StoreError(problem, "This process stops. Let one of the two go on.")

    def check(self) -> None:
        """Read the store, and check that the lease is held.

        Raises
        ------
        StoreError
            If another process has taken it over.
        """
        if (error := self.lost()) is not None:
            raise error


class Lease:
    """A lease that this process holds.

    Parameters
    ----------
    token
        The holder's number.
    """

    def __init__(self, token: Token) -> None:
        self.token = token
        self._entry = _myself()
        self._lost: StoreError | None = None
        self._done = threading.Event()

    def guard(self, store: Store) -> Store:
        """Return a store whose writes and deletions are refused once the lease is lost, here and on workers."""
        return store.guarded(self.token)

    def check(self) -> None:
        """Check without reading the store whether the last sign of life found that the lease was lost.

        Raises
        ------
        StoreError
            If so.
        """
        if self._lost is not None:
            raise self._lost

    def guarding(self, listener: Listener) -> Listener:
        """Return a listener that ends a run which has lost the lease, at its next progress."""

        def listen(progress: Progress) -> None:
            self.check()
            listener(progress)

        return listen

    def keep_alive(self) -> None:
        """Give signs of life until the lease is released or lost."""
        beats = 0
        while not self._done.wait(BEAT):
            with suppress(Exception):  # a store that cannot be reached: the next sign of life may reach it
                self._lost = self.token.lost()
                if self._lost is not None:
                    return
                beats += 1
                signs = {"beats": beats, "clock": time.monotonic()}
                self.token.log.rewrite(self.token.number, self.token.entry, {**self._entry, **signs})

    def stop(self) -> None:
        """End the signs of life."""
        self._done.set()


@contextmanager
def hold(
    work: Store,
    name: str,
    what: str,
    *,
    waiting: Callable[[str], None] | None = None,
    taken_over: Callable[[str], None] = lambda holder: None,
) -> Iterator[Lease]:
    """Hold the lease of that name in a work directory for the time of a block.

    Parameters
    ----------
    work
        The work directory.
    name, what
        Name of the lease, and what it is for, for messages.
    waiting
        Called with a message about the holder that is waited for. By default a living holder is an error.
    taken_over
        Called with the name of a holder that did not release the lease, before the block begins.

    Raises
    ------
    BusyError
        If another process holds it.
    StoreError
        If this thread holds it, and would wait for itself.
    """
    # Not guarded by other leases. A sign of life that takes longer than until the next one is worth nothing
    folder = replace(work / _FOLDER, timeout=min(work.timeout, BEAT), guards=())
    token, dead = _take(folder, name, what, waiting)
    lease = Lease(token)
    beating = threading.Thread(target=lease.keep_alive, daemon=True)
    beating.start()
    try:
        if dead is not None:
            taken_over(dead)
        with scope():  # an earlier failure of the disk is no concern of this holder
            yield lease
    finally:
        lease.stop()
        beating.join()
        _release(token)


def hold_run(
    work: Store, run: str, taken_over: Callable[[str], None] = lambda holder: None
) -> AbstractContextManager[Lease]:
    """Hold the lease of a run in a work directory; raises as `hold` does."""
    return hold(work, run, f"the run {run} in {work.url}", taken_over=taken_over)


def _release(token: Token) -> None:
    """Let others take the lease. If the store refuses that, it expires."""
    try:
        token.log.append(token.number + 1, _RELEASED)  # creates nothing where another process has taken it over
    except Daskw2vError:
        with suppress(Daskw2vError):  # on a full disk files can be deleted, but not created
            token.log.withdraw(token.number, token.entry)


def _take(folder: Store, name: str, what: str, waiting: Callable[[str], None] | None) -> tuple[Token, str | None]:
    """Wait until the lease has no holder that lives, and take it; return the holder that did not release it, too."""
    log, earlier = NumberedLog(folder / name), f"{name}.json"  # earlier releases wrote one file, and deleted it
    seen, since, reported = None, time.monotonic(), False
    while True:
        number = log.newest_number()
        if not number:
            NumberedLog(folder / _PROBE).probe()
        old = _read(partial(folder.read_manifest, earlier))
        entry = old if old is not None else _read(partial(log.read, number)) if number else _RELEASED
        if entry is None:  # deleted meanwhile, as there is a newer one
            continue
        if not entry.get("released"):
            beat = (number, entry.get("name"), entry["beats"])
            lives = _lives(entry)
            if lives or (lives is None and seen not in (None, beat)):
                if waiting is None:
                    remedy = "Wait until it is done, stop it, or give another work directory."
                    raise BusyError(f"{_holder(entry)} is at work on {what}.", remedy)
                if lives and entry["pid"] == os.getpid() and entry["thread"] == threading.get_ident():
                    raise StoreError(f"{what} is this thread's own already.", "Do one after the other.")
                if not reported:
                    waiting(f"waiting for {_holder(entry)}")
                    reported = True
            if beat != seen:
                seen, since = beat, time.monotonic()
            if lives or (lives is None and time.monotonic() - since <= EXPIRY):
                time.sleep(LOOK)
                continue
            if old is not None:
                (folder / earlier).remove()
        identity = log.append(number + 1, {**_myself(), "beats": 0, "clock": time.monotonic()})
        if identity is not None:
            dead = None if entry.get("released") else _holder(entry)
            return Token(log, number + 1, identity, what), dead


def _read(read: Callable[[], dict[str, Any] | None]) -> dict[str, Any] | None:
    """Return an entry; an entry that cannot be read has an unknown holder, and has to expire."""
    try:
        entry = read()
    except DamageError:
        return _UNKNOWN
    return None if entry is None else _UNKNOWN | entry


def _myself() -> dict[str, Any]:
    """Return the entries that name this thread of this process as the holder."""
    process = {"pid": os.getpid(), "born": _born(os.getpid()), "thread": threading.get_ident()}
    return {"host": platform.node(), "machine": _machine(), **process}


def _machine() -> str:
    """Return a name that processes which see each other's numbers have in common."""
    boot, numbers = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")
    return f"{boot.read_text().strip()}-{numbers.stat().st_ino}" if boot.exists() else platform.node()


def _born(pid: int) -> str | None:
    """Return when a process began, where there is /proc by a clock that cannot be set; None without the process."""
    try:
        if Path("/proc").exists():
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
        return str(psutil.Process(pid).create_time())
    except (OSError, psutil.Error):
        return None


def _lives(entry: dict[str, Any]) -> bool | None:
    """Return whether a holder on this machine lives, and gave a sign of life lately; None where it is on another."""
    if entry["machine"] != _machine():
        return None
    return bool(_born(entry["pid"]) == entry["born"]) and time.monotonic() - entry["clock"] <= EXPIRY


def _holder(entry: dict[str, Any]) -> str:
    return f"Process {entry['pid']} on {entry['host']}"
