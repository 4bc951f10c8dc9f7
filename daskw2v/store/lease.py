"""Leases: at most one process at a time works on a result or a run in a work directory.

A lease is a log of numbered entries, `leases/<name>/<number>.json` (`NumberedLog`). The highest entry names the holder,
or says that the lease was released. Acquiring, taking over and releasing are the same operation: entry n + 1 is created
exclusively by a process that has read entry n. So of several processes that take over the lease of a dead holder, one
gets it.

A holder rewrites its entry every BEAT seconds, with a counter and its machine's monotonic clock: a heartbeat. Processes
of another machine compare counters, never clocks: a holder whose counter stays the same for EXPIRY seconds counts as
dead. On the same machine a holder is dead if its process has ended, or if by the clock its last heartbeat is older than
EXPIRY seconds: it is stopped, or hangs. No process writes to another process's entry.

A holder may be paused, lose its lease, and go on. `Lease.guard` returns a store that compares the holder's number with
the highest number before each write and deletion, and refuses them once the lease is lost. For a pause between this
check and the write there is `taken_over`, by which the next holder creates what the former one was about to create.
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
from daskw2v.store.durability import failure_scope
from daskw2v.store.numbered import NumberedLog
from daskw2v.store.storage import Store

_FOLDER = "leases"
BEAT = 10.0  # seconds between two heartbeats
EXPIRY = 60.0  # seconds without a heartbeat after which a holder counts as dead
POLL = 1.0  # seconds between two readings of another holder's entry
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
        Number of the holder's entry, and the entry's identity.
    what
        What the lease protects, for messages.
    """

    log: NumberedLog
    number: int
    entry: str
    what: str

    def lost(self) -> StoreError | None:
        """Read the store; return None if the lease is held, or else an error that names the process that has it."""
        if self.log.ends_with(self.number, self.entry):
            return None
        newest = _read_entry(partial(self.log.read, self.log.newest_number(self.number))) or _RELEASED
        taker = "Another process, which has finished," if newest.get("released") else _describe_holder(newest)
        problem = f"{taker} has taken over {self.what}: no sign of life came from here for {EXPIRY:g} s."
        return StoreError(problem, "This process stops. Let one of the two go on.")

    def check(self) -> None:
        """Read the store, and check that the lease is held.

        Raises
        ------
        StoreError
            If another process has taken over the lease.
        """
        if (error := self.lost()) is not None:
            raise error


class Lease:
    """A lease that this process holds.

    Parameters
    ----------
    token
        Names the holder's entry.
    """

    def __init__(self, token: Token) -> None:
        self.token = token
        self._entry = _describe_self()
        self._lost: StoreError | None = None
        self._done = threading.Event()

    def guard(self, store: Store) -> Store:
        """Return the store with a guard: writes and deletions raise once the lease is lost, here and on workers."""
        return store.guarded(self.token)

    def check(self) -> None:
        """Check that the last heartbeat did not find the lease lost; the store is not read.

        Raises
        ------
        StoreError
            If the lease was lost.
        """
        if self._lost is not None:
            raise self._lost

    def guarding(self, listener: Listener) -> Listener:
        """Return a listener that calls `check` before `listener`, so that a run ends which has lost the lease."""

        def listen(progress: Progress) -> None:
            self.check()
            listener(progress)

        return listen

    def keep_alive(self) -> None:
        """Write heartbeats until `stop` is called, or the lease is lost."""
        beats = 0
        while not self._done.wait(BEAT):
            with suppress(Exception):  # the store cannot be reached: the next heartbeat may reach it
                self._lost = self.token.lost()
                if self._lost is not None:
                    return
                beats += 1
                heartbeat = {"beats": beats, "clock": time.monotonic()}
                self.token.log.rewrite(self.token.number, self.token.entry, {**self._entry, **heartbeat})

    def stop(self) -> None:
        """End the heartbeats."""
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
    """Acquire a lease in a work directory for a `with` block, and release it at the end.

    Parameters
    ----------
    work
        The work directory.
    name, what
        Name of the lease, and what it protects, for messages.
    waiting
        Called once with a message that names the holder, before this process waits for it. None: it does not wait for a
        living holder.
    taken_over
        Called with the name of a holder that did not release the lease, before the block begins.

    Raises
    ------
    BusyError
        If a living holder has the lease, and `waiting` is None.
    StoreError
        If this thread holds the lease, and would wait for itself.
    """
    # Not guarded by other leases. A heartbeat that takes longer than until the next one is useless
    folder = replace(work / _FOLDER, timeout=min(work.timeout, BEAT), guards=())
    token, dead = _acquire(folder, name, what, waiting)
    lease = Lease(token)
    beating = threading.Thread(target=lease.keep_alive, daemon=True)
    beating.start()
    try:
        if dead is not None:
            taken_over(dead)
        with failure_scope():  # earlier failures of the disk do not concern this holder
            yield lease
    finally:
        lease.stop()
        beating.join()
        _release(token)


def hold_run(
    work: Store, run: str, taken_over: Callable[[str], None] = lambda holder: None
) -> AbstractContextManager[Lease]:
    """Acquire the lease of a run, by its name, for a `with` block; raises as `hold` does."""
    return hold(work, run, f"the run {run} in {work.url}", taken_over=taken_over)


def _release(token: Token) -> None:
    """Release a lease, so that other processes may acquire it. If the store refuses that, the lease expires."""
    try:
        token.log.append(token.number + 1, _RELEASED)  # creates nothing if another process has taken over
    except Daskw2vError:
        with suppress(Daskw2vError):  # on a full disk files can be deleted, but not created
            token.log.withdraw(token.number, token.entry)


def _acquire(folder: Store, name: str, what: str, waiting: Callable[[str], None] | None) -> tuple[Token, str | None]:
    """Wait until a lease has no living holder, and acquire it; arguments are as in `hold`.

    Returns
    -------
    token
        The token of the lease.
    dead
        Name of the former holder if it did not release the lease, or None.
    """
    log, legacy_name = NumberedLog(folder / name), f"{name}.json"  # earlier releases wrote one file, and deleted it
    last_beat, since, reported = None, time.monotonic(), False
    while True:
        now = time.monotonic()  # before the entry is read: this process may be paused after it
        number = log.newest_number()
        if not number:
            NumberedLog(folder / _PROBE).probe()
        legacy_entry = _read_entry(partial(folder.read_manifest, legacy_name))
        entry = legacy_entry
        if entry is None:
            entry = _read_entry(partial(log.read, number)) if number else _RELEASED
        if entry is None:  # deleted meanwhile, as there is a newer one
            continue
        if not entry.get("released"):
            beat = (number, entry.get("name"), entry["beats"])
            is_alive = _is_alive(entry, now)
            if is_alive or (is_alive is None and last_beat not in (None, beat)):
                if waiting is None:
                    remedy = "Wait until it is done, stop it, or give another work directory."
                    raise BusyError(f"{_describe_holder(entry)} is at work on {what}.", remedy)
                if is_alive and entry["pid"] == os.getpid() and entry["thread"] == threading.get_ident():
                    raise StoreError(f"{what} is this thread's own already.", "Do one after the other.")
                if not reported:
                    waiting(f"waiting for {_describe_holder(entry)}")
                    reported = True
            if beat != last_beat:
                last_beat, since = beat, now
            if is_alive or (is_alive is None and now - since <= EXPIRY):
                time.sleep(POLL)
                continue
            if legacy_entry is not None:
                (folder / legacy_name).remove()
        identity = log.append(number + 1, {**_describe_self(), "beats": 0, "clock": time.monotonic()})
        if identity is not None:
            dead = None if entry.get("released") else _describe_holder(entry)
            return Token(log, number + 1, identity, what), dead


def _read_entry(read: Callable[[], dict[str, Any] | None]) -> dict[str, Any] | None:
    """Return the entry that `read` returns; a damaged entry has an unknown holder, and has to expire."""
    try:
        entry = read()
    except DamageError:
        return _UNKNOWN
    return None if entry is None else _UNKNOWN | entry


def _describe_self() -> dict[str, Any]:
    """Return the values of an entry that name this thread of this process as the holder."""
    process = {"pid": os.getpid(), "born": _get_start_time(os.getpid()), "thread": threading.get_ident()}
    return {"host": platform.node(), "machine": _get_machine(), **process}


def _get_machine() -> str:
    """Return a name that is equal for all processes that share process ids: of a machine, or a container."""
    boot, numbers = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")
    return f"{boot.read_text().strip()}-{numbers.stat().st_ino}" if boot.exists() else platform.node()


def _get_start_time(pid: int) -> str | None:
    """Return the start time of a process as text; None if there is no such process.

    With /proc it is of a clock that nobody can set.
    """
    try:
        if Path("/proc").exists():
            return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
        return str(psutil.Process(pid).create_time())
    except (OSError, psutil.Error):
        return None


def _is_alive(entry: dict[str, Any], now: float) -> bool | None:
    """Return whether an entry's holder lives, with a recent heartbeat by `now`; None if it is on another machine."""
    if entry["machine"] != _get_machine():
        return None
    return bool(_get_start_time(entry["pid"]) == entry["born"]) and now - entry["clock"] <= EXPIRY


def _describe_holder(entry: dict[str, Any]) -> str:
    """Return the name of an entry's holder, for messages."""
    return f"Process {entry['pid']} on {entry['host']}"
