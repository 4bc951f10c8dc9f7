"""Files of this machine are on disk before a manifest names them.

Written data is in the operating system's memory at first. A power loss takes data that is only there, in whole or part.
So files are noted once they are written, and forced to the disk together, at the end of a task and before a manifest:
one call for a whole filesystem (`syncfs`) costs less than one for each file. Folders are forced too, as they hold the
files' names, and any of them may be new. Object stores need nothing of this: they answer once data is safe.

A sync that failed is never repeated. The system reports an error of writing once, and forgets it: a second sync of the
same file would succeed, and the data would be lost.

macOS and Windows have no call for a whole filesystem: each file is forced there. macOS leaves what is forced in the
disk's own cache, and Windows forces no folders: its filesystem keeps a journal of names.
"""

import ctypes
import errno
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from itertools import groupby
from pathlib import PurePath

import psutil

from daskw2v.errors import StoreError
from daskw2v.store.threads import in_threads

# Linux's local filesystems, which force all that they hold in one go
_LOCAL = {"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "overlay", "tmpfs"}
FULL = {errno.ENOSPC, errno.EDQUOT}
_UNABLE = {errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM}  # not every folder can be opened and forced
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
syncfs: Callable[[int], int] | None = getattr(_libc, "syncfs", None)


class _Noted:
    """Files that this process has written and not forced, and how often forcing failed."""

    def __init__(self) -> None:
        self.files = set[str]()
        self.changing, self.forcing = threading.Lock(), threading.Lock()
        self.failures = 0
        self.failure: OSError | None = None


_noted = _Noted()
_before: ContextVar[int | None] = ContextVar("failures before the scope", default=None)


def wrote(path: str) -> None:
    """Note that a file was written, or has got another name."""
    with _noted.changing:
        _noted.files.add(path)


def force() -> None:
    """Force all files to the disk that this process has written until now.

    Raises
    ------
    StoreError
        If forcing fails, or has failed since the scope began: the disk's content is then unknown.
    """
    before = _before.get()
    with _noted.forcing:  # another thread may force the files of this one
        with _noted.changing:
            files, _noted.files = _noted.files, set()
        before = _noted.failures if before is None else before
        try:
            _force(sorted(files))
        except OSError as error:
            _noted.failures, _noted.failure = _noted.failures + 1, error
    if _noted.failures > before:
        raise _failed(_noted.failure) from _noted.failure


@contextmanager
def scope() -> Iterator[None]:
    """Make a block in which `force` fails only for failures since the block began."""
    token = _before.set(_noted.failures)
    try:
        yield
    finally:
        _before.reset(token)


@contextmanager
def durable() -> Iterator[None]:
    """Make a block, or a function, whose files are on disk at its end; raises as `force` does."""
    with scope():
        yield
        force()


def replace(path: str, content: bytes, move: Callable[[str, str], None] = os.replace, *, alone: bool = False) -> None:
    """Write a file, which is there as a whole or not at all, and force it to the disk after all that was noted.

    Parameters
    ----------
    path, content
        The file.
    move
        Gives the file its name: replaces an existing file, or fails.
    alone
        Whether noted files may be forced later: for files that name no others.

    Raises
    ------
    OSError
        If writing fails.
    StoreError
        As `force`.
    """
    folder, name = os.path.split(path)
    os.makedirs(folder, exist_ok=True)
    temporary = f"{folder}/.{name}.{os.urandom(8).hex()}"
    try:
        with open(temporary, "wb") as file:
            file.write(content)
            if alone:
                file.flush()
                os.fsync(file.fileno())
        if not alone:
            wrote(temporary)
            force()
        move(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    _fsync_folder(folder)


def force_name(path: str) -> None:
    """Force a file's name, and those of the folders that it lies in, to the disk."""
    in_threads(_fsync_folder, _folders(path))


def force_names(folder: str) -> None:
    """Force the names in a folder to the disk, without those that were deleted.

    Raises
    ------
    StoreError
        If that fails.
    """
    try:
        _fsync_folder(folder)
    except OSError as error:
        raise _failed(error) from error


def _force(files: list[str]) -> None:
    for device in _by_device(files).values():
        if not _force_filesystem(os.path.dirname(device[0])):
            in_threads(_fsync, device)
            in_threads(_fsync_folder, sorted({folder for file in device for folder in _folders(file)}))


def _by_device(files: list[str]) -> dict[int, list[str]]:
    """Return the files of each filesystem that are still there, as far as their folders are."""
    by_device = dict[int, list[str]]()
    for folder, of_folder in groupby(files, os.path.dirname):
        with suppress(FileNotFoundError):
            by_device.setdefault(os.stat(folder).st_dev, []).extend(of_folder)
    return by_device


def _force_filesystem(folder: str) -> bool:
    """Force a whole filesystem; return False if it is of a kind that cannot, or need not, do so."""
    if syncfs is None or not is_local(folder):
        return False
    file = os.open(folder, os.O_RDONLY)
    try:
        if syncfs(file):
            code = ctypes.get_errno()
            raise OSError(code, os.strerror(code), folder)
    finally:
        os.close(file)
    return True


def is_local(folder: str) -> bool:
    """Return whether a folder is on a disk of this machine, and not on another's; False where that is not known."""
    if sys.platform != "linux":
        return False
    try:
        mounted = {disk.mountpoint: disk.fstype for disk in psutil.disk_partitions(all=True)}  # the last one is on top
        path = os.path.realpath(folder, strict=True)
    except OSError:  # without /proc; without the folder
        return False
    return next((mounted[parent] in _LOCAL for parent in (path, *_folders(path)) if parent in mounted), False)


def _folders(path: str) -> list[str]:
    """Return the folders that a file lies in, up to the root: any may be new."""
    return [os.fspath(folder) for folder in PurePath(path).parents]


def _failed(error: OSError | None) -> StoreError:
    if error is not None and error.errno in FULL:
        return StoreError.no_space(str(error.filename))
    problem = f"What was written could not be forced to the disk ({error})."
    return StoreError(problem, "Look after the disk; the same command goes on.")


def _fsync(path: str) -> None:
    with suppress(FileNotFoundError):  # deleted meanwhile
        file = os.open(path, os.O_RDWR if sys.platform == "win32" else os.O_RDONLY)
        try:
            os.fsync(file)
        except OSError as error:
            error.filename = path
            raise
        finally:
            os.close(file)


def _fsync_folder(path: str) -> None:
    if sys.platform == "win32":
        return
    try:
        _fsync(path)
    except OSError as error:
        if error.errno not in _UNABLE:
            raise
