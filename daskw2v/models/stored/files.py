"""Files at fsspec URLs: read with clear errors, written atomically; and folders that are new."""

import gzip
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, BinaryIO

from daskw2v.errors import InputError, StoreError
from daskw2v.store.durability import DISK_FULL, force_name
from daskw2v.store.literal import remove_local
from daskw2v.store.storage import Store
from daskw2v.store.urls import Location, as_url, filesystem


@contextmanager
def reading(url: Location, storage_options: Mapping[str, Any] | None = None) -> Iterator[BinaryIO]:
    """Open a file for reading bytes, decompressed if its name ends in .gz.

    Raises
    ------
    ParameterError
        If the URL holds a secret.
    InputError
        If the file cannot be opened or read.
    """
    url = as_url(url, "file")
    fs, path = filesystem(url, storage_options or {})
    try:
        with fs.open(path, "rb") as f, _zipped(url, f, "rb") as unpacked:
            yield unpacked
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"{url} cannot be read: {error}.", "Check that the file exists, is whole and may be read."
        ) from error


def _zipped(url: str, f: BinaryIO, mode: str) -> AbstractContextManager[BinaryIO]:
    """Return a file that is decompressed or compressed if its name ends in .gz; equal content gives equal bytes."""
    if not url.endswith(".gz"):
        return nullcontext(f)
    return gzip.GzipFile("", mode, fileobj=f, mtime=0)  # type: ignore[return-value]  # it has all that readers use


@contextmanager
def writing(url: str, storage_options: Mapping[str, Any] | None = None) -> Iterator[BinaryIO]:
    """Open a file for writing bytes, compressed if its name ends in .gz. It appears when the block ends without error.

    Raises
    ------
    StoreError
        If no space is left, or another process writes the file at the same time.
    OSError
        If writing fails otherwise (no permission). No partial file remains.
    """
    fs, path = filesystem(url, storage_options or {})
    with _no_space_said(url):
        if "file" in fs.protocol:
            with _local_file(path) as f, _zipped(url, f, "wb") as packed:
                yield packed
        else:
            with fs.transaction, fs.open(path, "wb") as f, _zipped(url, f, "wb") as packed:
                yield packed


@contextmanager
def _no_space_said(url: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in DISK_FULL:
            raise StoreError.no_space(url) from error
        raise


@contextmanager
def _local_file(path: str) -> Iterator[BinaryIO]:
    """Open a file that gets its name at the end. Its temporary name is the same each time, so that no file is left."""
    folder, name = os.path.split(path)
    os.makedirs(folder, exist_ok=True)
    temporary = os.path.join(folder, f".{name}.part")
    with suppress(FileNotFoundError):
        os.unlink(temporary)  # the file of a process which was killed
    f = open(temporary, "xb")  # noqa: SIM115  # closed before it is renamed: Windows moves and deletes no open file
    made = os.fstat(f.fileno())
    try:
        with f:
            yield f
            f.flush()
            os.fsync(f.fileno())
        _check_is(made, temporary, path)
        os.replace(temporary, path)
    except BaseException:
        if _is(made, temporary):
            os.unlink(temporary)
        raise
    force_name(path)


@contextmanager
def new_folder(url: str, storage_options: Mapping[str, Any] | None = None) -> Iterator[Store]:
    """Yield a folder to fill. It gets the URL, where nothing or an empty folder is, if the block ends without error.

    On an object store the folder is filled at its URL, and removed if the block ends with an error.

    Raises
    ------
    StoreError
        If there is something in the folder, no space is left, or another process makes the folder at the same time.
    """
    store = Store(url, dict(storage_options or {}))
    if store.children():
        raise StoreError(f"There is something at {store.url}, which is not replaced.", "Give a folder of its own.")
    with _no_space_said(store.url):
        if (local := store.local_path) is not None:
            with _local_folder(os.path.realpath(local)) as folder:
                yield Store(folder)
            return
        try:
            yield store
        except BaseException:
            store.remove()
            raise


@contextmanager
def _local_folder(path: str) -> Iterator[str]:
    """Yield a folder that gets its path at the end, as the file of `_local_file` does."""
    parent, name = os.path.split(path)
    os.makedirs(parent, exist_ok=True)
    temporary = os.path.join(parent, f".{name}.part")
    remove_local(temporary, lambda: None)
    os.mkdir(temporary)
    made = os.stat(temporary)
    try:
        yield os.path.join(temporary, name)
        _check_is(made, temporary, path)
        os.rename(os.path.join(temporary, name), path)
        force_name(path)
    finally:
        if _is(made, temporary):
            remove_local(temporary, lambda: None)


def _is(created: os.stat_result, path: str) -> bool:
    """Return whether a path leads to the file or folder that this process has created there."""
    try:
        return os.path.samestat(created, os.stat(path))
    except FileNotFoundError:
        return False


def _check_is(made: os.stat_result, temporary: str, path: str) -> None:
    if not _is(made, temporary):
        raise StoreError(f"Another process writes {path} at the same time.", "Let one of them go on.")
