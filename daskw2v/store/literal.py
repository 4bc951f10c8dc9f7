"""Calls of filesystems that take names as they are: of fsspec, of Zarr on fsspec, and deletion on this machine.

`[`, `?` and `*` may stand in the name of any folder. Calls of fsspec for many files (`rm`, `cat`, `get`, `put`, `copy`,
`mv`) take them for patterns, and would reach other folders. Calls for one file or folder do not.
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

_DELETIONS = 3  # of one path, in one try: others may create or delete files there


def check_literal(fs: Any, path: str) -> None:
    """Refuse a path that a filesystem takes for a version of another one, such as `w?versionId=1` of S3.

    Raises
    ------
    StoreError
        If it does.
    """
    split = getattr(fs, "split_path", None)
    taken = path if split is None else "/".join(filter(None, split(path)[:2]))
    if len(taken) < len(path.rstrip("/")) and path.startswith(taken):
        raise StoreError(
            f"The store takes {path!r} for a version of {taken!r}.", "Give a URL without such an end of a name."
        )


def remove(fs: Any, path: str) -> None:
    """Delete a file or folder and all below it, if it is there.

    Raises
    ------
    OSError
        If it is still there.
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
    entries = fs.find(path, withdirs=True, detail=True)
    folders = [name for name, info in entries.items() if info.get("type") == "directory"]
    in_threads(partial(_remove_file, fs), sorted(entries.keys() - folders))
    for folder in sorted(folders, reverse=True):
        with suppress(FileNotFoundError):  # object stores have none
            fs.rmdir(folder)


def _remove_file(fs: Any, path: str) -> None:
    with suppress(FileNotFoundError):
        fs.rm_file(path)


def read_range(fs: Any, file: str, start: int, stop: int) -> bytes:
    """Return the bytes start..stop-1 of a file, as far as it has them."""
    try:
        return bytes(fs.cat_file(file, start=start, end=stop))
    except Exception:  # several stores refuse a range behind the end, each with an error of its own
        if fs.size(file) > start:
            raise
        return b""


def remove_local(path: str, check: Callable[[], None]) -> None:
    """Delete a file or a folder of this machine; if a check raises an error after it was renamed, rename it back."""
    folder, name = os.path.split(path)
    aside = f"{folder}/.{name}.deleted"
    _remove_tree(aside)  # left by an interrupted deletion
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
        with suppress(OSError):  # another process has created it again
            (os.rename if os.path.isdir(aside) else os.link)(aside, path)
        if os.path.isfile(aside):
            os.unlink(aside)
        raise
    _remove_tree(aside)


def _remove_tree(path: str) -> None:
    while os.path.lexists(path):
        with suppress(FileNotFoundError):  # another process deletes it, too
            if os.path.isdir(path) and not os.path.islink(path):
                shutil.rmtree(path)
            else:
                os.unlink(path)


class LiteralStore(FsspecStore):
    """A Zarr store on a filesystem of fsspec that deletes only the named files."""

    async def delete(self, key: str) -> None:
        """Delete a value, if it is there."""
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
