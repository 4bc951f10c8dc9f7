"""Hosts for processes: a fork with PID, UTS and mount namespaces of its own.

Processes of two hosts cannot see each other, so a lease of the other host is taken over once it gives no sign of life.
Needs root.
"""

import ctypes
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable

import psutil

_LIBC = ctypes.CDLL(None, use_errno=True)
_NEW_MOUNTS, _NEW_NAME, _NEW_PROCESSES = 0x00020000, 0x04000000, 0x20000000
_PRIVATE, _RECURSIVE = 1 << 18, 1 << 14
BROKEN = 99  # exit code after an error that is not the package's


def missing() -> str | None:
    """Return what this machine lacks for hosts, or None."""
    if not sys.platform.startswith("linux"):
        return "Linux"
    return None if start("probe", lambda: 0).wait() == 0 else "the right to make namespaces"


class Host:
    """A process on a host of its own.

    Parameters
    ----------
    pid
        Of the process that holds the host.
    """

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._code: int | None = None

    def wait(self) -> int:
        """Wait for the end, and return the exit code."""
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._code

    def wait_for_stop(self) -> bool:
        """Return whether the process has stopped itself; False if it has ended."""
        while self._code is None:
            if self._stopped():
                return True
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                self._code = os.waitstatus_to_exitcode(status)
            signal.sigtimedwait([], 0.01)
        return False

    def go_on(self) -> None:
        """Continue the process that has stopped itself."""
        for process in self._stopped():
            process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End the host with all its processes."""
        if self._code is None:
            for process in psutil.Process(self._pid).children(recursive=True):
                process.kill()
            self.wait()

    def _stopped(self) -> list[psutil.Process]:
        try:
            found = psutil.Process(self._pid).children(recursive=True)
            return [process for process in found if process.status() == psutil.STATUS_STOPPED]
        except psutil.NoSuchProcess:
            return []


def start(name: str, work: Callable[[], int]) -> Host:
    """Call a function in a process on a new host; it returns the exit code."""
    pid = os.fork()
    if pid == 0:
        os._exit(_coded(lambda: _hold(name, work)))
    return Host(pid)


def _hold(name: str, work: Callable[[], int]) -> int:
    _must(_LIBC.unshare(_NEW_MOUNTS | _NEW_NAME | _NEW_PROCESSES))
    socket.sethostname(name)
    return _forked(lambda: _forked(lambda: _with_processes(work)))  # the first process ignores signals such as SIGSTOP


def _with_processes(work: Callable[[], int]) -> int:
    _must(_LIBC.mount(b"none", b"/", None, _PRIVATE | _RECURSIVE, None))
    _must(_LIBC.mount(b"proc", b"/proc", b"proc", 0, None))
    return work()


def _forked(work: Callable[[], int]) -> int:
    pid = os.fork()
    if pid == 0:
        os._exit(_coded(work))
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _coded(work: Callable[[], int]) -> int:
    try:
        return work()
    except SystemExit as done:
        return int(done.code or 0)
    except BaseException:
        traceback.print_exc()
        return BROKEN


def _must(failed: int) -> None:
    if failed:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
