"""Hosts for processes: PID, UTS and mount namespaces of their own.

Processes of two hosts cannot see each other, so a lease of the other host is taken over once it gives no sign of life.
Needs root.
"""

import ctypes
import multiprocessing
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from multiprocessing.process import BaseProcess
from typing import NoReturn

import psutil

_LIBC = ctypes.CDLL(None, use_errno=True)
_NEW_MOUNTS, _NEW_NAME, _NEW_PROCESSES = 0x00020000, 0x04000000, 0x20000000
_PRIVATE, _RECURSIVE = 1 << 18, 1 << 14
# Processes are forked from one without threads: a lock that a thread holds would stay held in its copy for ever
PROCESSES = multiprocessing.get_context("forkserver")
PROCESSES.set_forkserver_preload(["benchmarks.fencing.paused"])
BROKEN = 99  # exit code after an error that is not the package's


def missing() -> str | None:
    """Return what this machine lacks for hosts, or None."""
    if not sys.platform.startswith("linux"):
        return "Linux"
    return None if start("probe", _nothing).wait() == 0 else "the right to make namespaces"


class Host:
    """A process on a host of its own.

    Parameters
    ----------
    process
        The one that holds the host.
    """

    def __init__(self, process: BaseProcess) -> None:
        self._process = process

    def wait(self) -> int:
        """Wait for the end, and return the exit code."""
        self._process.join()
        assert self._process.exitcode is not None
        return self._process.exitcode

    def wait_for_stop(self) -> bool:
        """Return whether the process has stopped itself; False if it has ended."""
        while self._process.is_alive():
            if self._stopped():
                return True
            time.sleep(0.01)
        return False

    def go_on(self) -> None:
        """Continue the process that has stopped itself."""
        for process in self._stopped():
            process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        """End the host with all its processes."""
        for process in self._inside():
            process.kill()
        self.wait()

    def _stopped(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            return [process for process in self._inside() if process.status() == psutil.STATUS_STOPPED]
        return []

    def _inside(self) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            if self._process.is_alive():  # its number may be another's later
                return psutil.Process(self._process.pid).children(recursive=True)
        return []


def start(name: str, work: Callable[[], int]) -> Host:
    """Call a function, which can be pickled, in a process on a new host; it returns the exit code."""
    process = PROCESSES.Process(target=_exit, args=(partial(_hold, name, work),))
    process.start()
    return Host(process)


def _nothing() -> int:
    return 0


def _hold(name: str, work: Callable[[], int]) -> int:
    _must(_LIBC.unshare(_NEW_MOUNTS | _NEW_NAME | _NEW_PROCESSES))
    socket.sethostname(name)
    # The first process of a host ignores signals such as SIGSTOP
    return _forked(partial(_forked, partial(_with_processes, work)))


def _with_processes(work: Callable[[], int]) -> int:
    _must(_LIBC.mount(b"none", b"/", None, _PRIVATE | _RECURSIVE, None))
    _must(_LIBC.mount(b"proc", b"/proc", b"proc", 0, None))
    return work()


def _forked(work: Callable[[], int]) -> int:
    pid = os.fork()
    if pid == 0:
        _exit(work)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _exit(work: Callable[[], int]) -> NoReturn:
    """End this process with the exit code of a function."""
    code = BROKEN
    try:
        code = work()
    except SystemExit as done:
        code = int(done.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _must(failed: int) -> None:
    if failed:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
