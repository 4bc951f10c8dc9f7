"""Calls of filesystems that treat names literally: of fsspec, of Zarr on fsspec, and deletion on this machine.

The name of a folder may contain `[`, `?` and `*`. Calls of fsspec for many files (`rm`, `cat`, `get`, `put`, `copy`,
`mv`) treat such names as patterns, and would affect other folders. Calls for one file or folder do not.
"""

import asyncio
import errno
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from fsspec.core import has_magic
from zarr.storage import FsspecStore

from daskw2v.errors import StoreError
from daskw2v.store.threads import in_threads

_DELETIONS = 3  # deletions of a path in one try: other processes may create or delete files in it


def check_literal(fs: Any, path: str) -> None:
    """Refuse a path that a filesystem reads as a version of another path, such as `w?versionId=1` on S3.

    `fs` is a filesystem of fsspec.

    Raises
    ------
    StoreError
        If the filesystem does so.
    """
    split = getattr(fs, "split_path", None)
    base_path = path if split is None else "/".join(filter(None, split(path)[:2]))
    if len(base_path) < len(path.rstrip("/")) and path.startswith(base_path):
        problem = f"The store takes {path!r} for a version of {base_path!r}."
        raise StoreError(problem, "Give a URL without such an end of a name.")


def remove(fs: Any, path: str) -> None:
    """Delete a file or folder, and everything below it, if it exists; `fs` is a filesystem of fsspec.

    Raises
    ------
    OSError
        If it exists after several deletions.
    """
    for _ in range(_DELETIONS):
        if not fs.exists(path):
            return
        with suppress(FileNotFoundError):  # another process deletes it, too
            if has_magic(path):
                _remove_each(fs, path)
            else:
                fs.rm(path, recursive=True)  # many files with one request
    if fs.exists(path):
        raise OSError("it is still there after it was deleted")


def _remove_each(fs: Any, path: str) -> None:
    """Delete the files and folders below a path one by one."""
    entries = fs.find(path, withdirs=True, detail=True)
    folders = [name for name, info in entries.items() if info.get("type") == "directory"]
    in_threads(partial(_remove_file, fs), sorted(entries.keys() - folders))
    for folder in sorted(folders, reverse=True):
        with suppress(FileNotFoundError):  # object stores have none
            fs.rmdir(folder)


def _remove_file(fs: Any, path: str) -> None:
    """Delete a file, if it exists."""
    with suppress(FileNotFoundError):
        fs.rm_file(path)


def read_range(fs: Any, file: str, start: int, stop: int) -> bytes:
    """Return the bytes start..stop-1 of a file, fewer if the file ends before; `fs` is a filesystem of fsspec."""
    try:
        return bytes(fs.cat_file(file, start=start, end=stop))
    except Exception:  # several stores refuse a range behind the end, each with another error
        if fs.size(file) > start:
            raise
        return b""


def remove_local(path: str, check: Callable[[], None]) -> None:
    """Delete a file or a folder of this machine, if it exists. It is renamed first, so that it vanishes as a whole.

    If `check` raises an error after the renaming, the file or folder is renamed back, and the error is raised.
    """
    folder, name = os.path.split(path)
    aside = f"{folder}/.{name}.deleted"
    _remove_tree(aside)  # of an interrupted deletion
    while True:
        try:
            os.rename(path, aside)
            break
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:  # another process deletes, too
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            _remove_tree(aside)
    try:
        check()
    except Exception:
        with suppress(OSError):  # another process has created the path again
            (os.rename if os.path.isdir(aside) else os.link)(aside, path)
        if os.path.isfile(aside):
            os.unlink(aside)
        raise
    _remove_tree(aside)


def _remove_tree(path: str) -> None:
    """Delete a file or folder of this machine until it does not exist; other processes may delete it, too."""
    while os.path.lexists(path):
        with suppress(FileNotFoundError):  # another process deletes it, too
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)


class LiteralStore(FsspecStore):
    """A Zarr store on a filesystem of fsspec, whose deletions treat names literally."""

    async def delete(self, key: str) -> None:
        """Delete a value, if it exists."""
        self._check_writable()
        with suppress(FileNotFoundError):
            await self.fs._rm_file(f"{self.path}/{key}")

    async def delete_dir(self, prefix: str) -> None:
        """Delete all values below a prefix."""
        files = await self.fs._find(f"{self.path}/{prefix}".rstrip("/"))
        await asyncio.gather(*(self.delete(file[len(self.path) + 1 :]) for file in files))

    async def clear(self) -> None:
        """Delete all values."""
        await self.delete_dir("")
