"""Files of this machine are on disk before a manifest names them.

Written data is in the operating system's memory at first; a power loss destroys data that is only in memory. So files
are noted once they are written, and forced to the disk together, at the end of a task and before a manifest: one call
for a filesystem (`syncfs`) costs less than one for each file. Folders are forced too, as they hold the files' names,
and any of them may be new. Object stores need none of this: they answer once data is safe.

A sync that failed is never repeated. The system reports an error of writing once, and forgets it: a second sync of the
same file would succeed, and the data would be lost.

macOS and Windows have no call for a filesystem: each file is forced. macOS leaves forced data in the disk's cache, and
Windows forces no folders: its filesystem keeps a journal of names.
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

# Linux's local filesystems that support `syncfs`
_SYNCFS_FILESYSTEMS = {"ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "overlay", "tmpfs"}
DISK_FULL = {errno.ENOSPC, errno.EDQUOT}
_UNSUPPORTED = {errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM}  # not every folder can be opened and forced
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
syncfs: Callable[[int], int] | None = getattr(_libc, "syncfs", None)


class _Noted:
    """Files that this process has written and not forced; the number of failures of forcing, and the last one."""

    def __init__(self) -> None:
        self.files = set[str]()
        self.changing, self.forcing = threading.Lock(), threading.Lock()
        self.failures = 0
        self.failure: OSError | None = None


_noted = _Noted()
_failures_before: ContextVar[int | None] = ContextVar("failures before the scope", default=None)


def note_written(path: str) -> None:
    """Note that a file was written, or renamed, so that `force_files` forces it."""
    with _noted.changing:
        _noted.files.add(path)


def force_files() -> None:
    """Force all files to the disk that this process has noted until now.

    Raises
    ------
    StoreError
        If forcing fails, or has failed since `failure_scope` began: the disk's content is then unknown.
    """
    failures_before = _failures_before.get()
    with _noted.forcing:  # another thread may force the files of this one
        with _noted.changing:
            files, _noted.files = _noted.files, set()
        failures_before = _noted.failures if failures_before is None else failures_before
        try:
            _force_to_disk(sorted(files))
        except OSError as error:
            _noted.failures, _noted.failure = _noted.failures + 1, error
    if _noted.failures > failures_before:
        raise _make_error(_noted.failure) from _noted.failure


@contextmanager
def failure_scope() -> Iterator[None]:
    """Begin a block in which `force_files` raises only for failures since the block began."""
    token = _failures_before.set(_noted.failures)
    try:
        yield
    finally:
        _failures_before.reset(token)


@contextmanager
def durable() -> Iterator[None]:
    """Begin a block, or decorate a function, after which all noted files are on disk; raises as `force_files` does."""
    with failure_scope():
        yield
        force_files()


def replace_file(
    path: str, content: bytes, move: Callable[[str, str], None] = os.replace, *, alone: bool = False
) -> None:
    """Write a file atomically, and force it to the disk after all noted files.

    Parameters
    ----------
    path, content
        Path and content of the file.
    move
        Called with a temporary path and `path`, to give the file its name: replaces an existing file, or fails.
    alone
        Whether noted files may be forced later: for files that name no other files.

    Raises
    ------
    OSError
        If writing fails.
    StoreError
        As `force_files`.
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
            note_written(temporary)
            force_files()
        move(temporary, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
    _fsync_folder(folder)


def force_name(path: str) -> None:
    """Force a file's name, and the names of the folders above it, to the disk; raises OSError."""
    in_threads(_fsync_folder, _list_parents(path))


def force_names(folder: str) -> None:
    """Force the names in a folder to the disk, so that deleted files stay deleted.

    Raises
    ------
    StoreError
        If forcing fails.
    """
    try:
        _fsync_folder(folder)
    except OSError as error:
        raise _make_error(error) from error


def _force_to_disk(files: list[str]) -> None:
    """Force sorted paths of files, and the names of the files and their folders, to the disk; raises OSError."""
    for device in _group_by_device(files).values():
        if not _force_filesystem(os.path.dirname(device[0])):
            in_threads(_fsync, device)
            in_threads(_fsync_folder, sorted({folder for file in device for folder in _list_parents(file)}))


def _group_by_device(files: list[str]) -> dict[int, list[str]]:
    """Return sorted files by the device number of their filesystem, without files of deleted folders."""
    by_device = dict[int, list[str]]()
    for folder, files_in_folder in groupby(files, os.path.dirname):
        with suppress(FileNotFoundError):
            by_device.setdefault(os.stat(folder).st_dev, []).extend(files_in_folder)
    return by_device


def _force_filesystem(folder: str) -> bool:
    """Force the filesystem of a folder to the disk; return False if it does not support that; raises OSError."""
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
    """Return whether a folder is on a disk of this machine; False where that is not known."""
    if sys.platform != "linux":
        return False
    try:
        mounted = {disk.mountpoint: disk.fstype for disk in psutil.disk_partitions(all=True)}  # the last one is on top
        path = os.path.realpath(folder, strict=True)
    except OSError:  # without /proc; without the folder
        return False
    filesystems = (mounted[parent] for parent in (path, *_list_parents(path)) if parent in mounted)
    return next(filesystems, None) in _SYNCFS_FILESYSTEMS


def _list_parents(path: str) -> list[str]:
    """Return the folders above a file, up to the root: any of them may be new."""
    return [os.fspath(folder) for folder in PurePath(path).parents]


def _make_error(error: OSError | None) -> StoreError:
    """Return the StoreError for a failure of forcing."""
    if error is not None and error.errno in DISK_FULL:
        return StoreError.no_space(str(error.filename))
    problem = f"What was written could not be forced to the disk ({error})."
    return StoreError(problem, "Look after the disk; the same command goes on.")


def _fsync(path: str) -> None:
    """Force a file or folder to the disk, unless it was deleted; raises OSError."""
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
    """Force the names in a folder to the disk, where the system can; raises OSError."""
    if sys.platform == "win32":
        return
    try:
        _fsync(path)
    except OSError as error:
        if error.errno not in _UNSUPPORTED:
            raise
