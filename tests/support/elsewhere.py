"""Hides what other systems lack from this process, as far as daskw2v could see it: a test of code for them, on Linux.

Libraries are imported first and keep what they use. Paths stay those of Linux: `os.name` and `os.path` are not changed.
"""

import ctypes
import errno
import mmap
import os
import signal
import sys
from types import FrameType
from typing import Any

# fmt: off
_LINUX = {  # what macOS has not either
    os: ("sched_getaffinity", "memfd_create", "MFD_CLOEXEC", "MFD_ALLOW_SEALING", "posix_fallocate", "posix_fadvise",
         "copy_file_range", "O_DIRECT", "pidfd_open"),
    mmap: ("MADV_HUGEPAGE", "MAP_POPULATE"),
}
_POSIX = {  # what Windows has not either
    os: ("fork", "register_at_fork", "mkfifo", "statvfs", "fchmod", "fchown", "chown", "pread", "pwrite", "killpg",
         "setsid", "getuid", "geteuid", "getpgid", "uname", "getloadavg", "O_CLOEXEC", "O_NOFOLLOW", "O_DIRECTORY",
         "O_NONBLOCK"),
    mmap: ("MAP_PRIVATE", "MAP_SHARED", "MAP_ANONYMOUS", "PROT_READ", "PROT_WRITE"),
    signal: ("SIGKILL", "SIGSTOP", "SIGUSR1", "SIGHUP", "SIGVTALRM", "setitimer", "ITIMER_VIRTUAL", "pthread_kill"),
}
# fmt: on
_MODULES = ("fcntl", "resource", "pwd", "grp", "termios")  # of POSIX


def hide(platform: str) -> None:
    """Make this process look to daskw2v like one of `sys.platform` "darwin" or "win32"."""
    windows = platform == "win32"
    for module, names in [*_LINUX.items(), *(_POSIX.items() if windows else ())]:
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    if hasattr(os, "process_cpu_count"):  # of Python 3.13, which asks `sched_getaffinity` on Linux alone
        os.process_cpu_count = os.cpu_count
    if windows:
        for name in _MODULES:
            sys.modules[name] = None  # type: ignore[assignment]  # importing it is an ImportError
    _hide_libc(windows)
    _hide_proc()
    sys.platform = platform


def _hide_libc(windows: bool) -> None:
    load = ctypes.CDLL

    def loaded(name: str | None, *args: Any, **options: Any) -> Any:
        if name is None and _asked_by_us():
            raise TypeError("Windows has no C library without a name") if windows else AssertionError("not Linux's")
        return load(name, *args, **options)

    ctypes.CDLL = loaded  # type: ignore[assignment, misc]


def _hide_proc() -> None:
    stat = os.stat

    def found(path: Any, *args: Any, **options: Any) -> os.stat_result:
        _refuse(path)
        return stat(path, *args, **options)

    os.stat = found
    sys.addaudithook(lambda event, args: _refuse(args[0]) if event == "open" else None)


def _refuse(path: Any) -> None:
    if str(path).startswith(("/proc/", "/sys/")) and _asked_by_us():
        raise FileNotFoundError(errno.ENOENT, "hidden", str(path))


def _asked_by_us() -> bool:
    """Tell whether daskw2v asks, and no library that it calls: the first file that is none of Python's own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if "/daskw2v/" in file or "site-packages" in file:
            return "/daskw2v/" in file and "site-packages" not in file
        frame = frame.f_back
    return False
