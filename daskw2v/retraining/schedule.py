"""A command at set times: each run a process of its own, one at a time, until a signal comes.

A run's memory is free when it ends, and its crash is its own. What is missed or left out is said, and nothing is kept
on disk: runs of `daskw2v retrain` know by themselves what is left to do.
"""

import logging
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from queue import Empty, SimpleQueue
from signal import SIGKILL, Signals
from subprocess import DEVNULL, Popen, TimeoutExpired
from threading import Lock
from time import monotonic
from typing import Any

from daskw2v.extras import needed
from daskw2v.retraining.cron import EXTRA
from daskw2v.retraining.outcome import Outcome

Say = Callable[[str], None]
Messages = SimpleQueue[int | None]  # signals, and None when a run has ended; handlers may put while others get

_LOOK = 60.0  # seconds between looks at the clock
_PATIENCE = 60.0  # seconds that a run has from being told to end until it is killed


class Runner:
    """Runs a command as a process, and passes signals on to it.

    Parameters
    ----------
    command
        The command.
    say
        Is told what becomes of a run.
    timeout
        Seconds that a run may take; as long as it likes by default.
    patience
        Seconds that it has after it was told to end, before it is killed.
    """

    def __init__(
        self, command: Sequence[str], say: Say, *, timeout: float | None = None, patience: float = _PATIENCE
    ) -> None:
        self._command, self._say = command, say
        self._timeout, self._patience = timeout, patience
        self._lock = Lock()
        self._process: Popen[bytes] | None = None
        self._stopped = False

    def run(self) -> int | None:
        """Run the command once; return its exit code, or None after `stop`.

        Raises
        ------
        OSError
            If it cannot be started.
        """
        with self._lock:
            if self._stopped:
                return None
            # Ctrl-C in a terminal reaches all of a session: so it gets what is passed on, and only that
            self._process = process = Popen(self._command, stdin=DEVNULL, start_new_session=True)
        try:
            self._say(f"A run has started: process {process.pid}.")
            return self._awaited(process)
        finally:
            with self._lock:
                self._process = None

    def stop(self, signum: int | None) -> bool:
        """Let no other run start; pass a signal on to the one at work, and tell whether there is one."""
        with self._lock:
            self._stopped = True
            if self._process is None:
                return False
            if signum is not None:
                self._process.send_signal(signum)
            return True

    def _awaited(self, process: "Popen[bytes]") -> int:
        try:
            return process.wait(self._timeout)
        except TimeoutExpired:
            self._say(f"The run takes longer than {self._timeout:g} s: it was told to end.")
            process.terminate()
        try:
            return process.wait(self._patience)
        except TimeoutExpired:
            self._say(f"The run did not end within {self._patience:g} s: it was killed.")
            os.killpg(process.pid, SIGKILL)  # with its workers
        return process.wait()


class Schedule:
    """Runs a command whenever its trigger fires.

    Parameters
    ----------
    runner
        Runs the command.
    trigger
        APScheduler's trigger, such as `read_cron` returns.
    say
        Is told what happens, a line each.
    misfire_grace
        Seconds that a run may be late, because the machine slept or stood still. Several missed times are one run;
        later ones wait for the next time.
    now
        Whether to run once at the start, too.
    """

    def __init__(self, runner: Runner, trigger: Any, say: Say, *, misfire_grace: int = 3600, now: bool = False) -> None:
        self._runner, self._trigger, self._say = runner, trigger, say
        self._stopped = False
        self._messages: Messages = SimpleQueue()
        self._events = needed("apscheduler.events", EXTRA)
        self._scheduler = needed("apscheduler.schedulers.background", EXTRA).BackgroundScheduler(timezone=UTC)
        self._scheduler.add_job(
            self._run, trigger, max_instances=1, coalesce=True, misfire_grace_time=misfire_grace,
            **({"next_run_time": datetime.now(UTC)} if now else {}),
        )  # fmt: skip
        unusual = self._events.EVENT_JOB_MISSED | self._events.EVENT_JOB_MAX_INSTANCES | self._events.EVENT_JOB_ERROR
        self._scheduler.add_listener(self._tell, unusual)
        logging.getLogger("apscheduler").addHandler(logging.NullHandler())  # what it would print is said here

    def stop(self, signum: int) -> None:
        """Let `serve` pass the signal on to the run at work, and end with it; signal handlers may call this."""
        self._messages.put(signum)

    def serve(self) -> None:
        """Run the command at its times, until `stop`; the run at work is waited for."""
        self._scheduler.start()
        self._say(f"The next run: {self._next()}.")
        while (signum := self._message()) is None:
            self._scheduler.wakeup()  # a machine that slept waits by a clock that slept, too
        self._stopped = True
        self._scheduler.remove_all_jobs()
        self._say(f"{Signals(signum).name}: no other run starts.")
        while self._runner.stop(signum):
            signum = self._message()
        self._scheduler.shutdown()

    def _message(self) -> int | None:
        with suppress(Empty):
            return self._messages.get(timeout=_LOOK)
        return None

    def _run(self) -> None:
        began = monotonic()
        try:
            code = self._runner.run()
        finally:
            self._messages.put(None)
        if code is not None:
            took = timedelta(seconds=round(monotonic() - began))
            self._say(f"The run has ended after {took}: {meaning(code)}. The next run: {self._next()}.")

    def _tell(self, event: Any) -> None:
        """Say what was not as usual."""
        if event.code == self._events.EVENT_JOB_MISSED:
            what = f"The run of {event.scheduled_run_time:%Y-%m-%d %H:%M:%S %Z} was missed, and it is too late for it"
        elif event.code == self._events.EVENT_JOB_MAX_INSTANCES:
            what = "A run was left out: the one before is still at work"
        else:
            what = f"A run could not be started ({event.exception})"
        self._say(f"{what}. The next run: {self._next()}.")

    def _next(self) -> str:
        """Return the next time. The scheduler is not asked: it is locked while it waits for runs to end."""
        now = datetime.now(UTC)
        when = None if self._stopped else self._trigger.get_next_fire_time(now, now)
        return "none" if when is None else f"{when:%Y-%m-%d %H:%M:%S %Z}"


def meaning(code: int) -> str:
    """Return what an exit code of `daskw2v retrain` means; it is negative, or 128 more, where a signal ended it."""
    with suppress(ValueError):
        return f"{Outcome(code).label} (exit code {code})"
    with suppress(ValueError):
        return f"ended by {Signals(-code if code < 0 else code - 128).name}"
    return f"crashed (exit code {code})"
