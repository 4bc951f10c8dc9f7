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
def open_for_reading(url: Location, storage_options: Mapping[str, Any] | None = None) -> Iterator[BinaryIO]:
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
        with fs.open(path, "rb") as f, _compressed(url, f, "rb") as unpacked:
            yield unpacked
    except (OSError, EOFError, zlib.error) as error:
        problem = f"{url} cannot be read: {error}."
        raise InputError(problem, "Check that the file exists, is complete and may be read.") from error


def _compressed(url: str, f: BinaryIO, mode: str) -> AbstractContextManager[BinaryIO]:
    """Return a file, or a view that (de)compresses it if its name ends in .gz; equal contents give equal bytes."""
    if not url.endswith(".gz"):
        return nullcontext(f)
    return gzip.GzipFile("", mode, fileobj=f, mtime=0)  # type: ignore[return-value]  # it has all that readers use


@contextmanager
def open_for_writing(url: str, storage_options: Mapping[str, Any] | None = None) -> Iterator[BinaryIO]:
    """Open a file for writing bytes, compressed if its name ends in .gz.

    The file appears when the block ends without error, and replaces an existing file.

    Raises
    ------
    StoreError
        If no space is left, or another process writes the file at the same time.
    OSError
        If writing fails otherwise (no permission). No partial file remains.
    """
    fs, path = filesystem(url, storage_options or {})
    with _report_full_disk(url):
        if "file" in fs.protocol:
            with _create_local_file(path) as f, _compressed(url, f, "wb") as packed:
                yield packed
        else:
            with fs.transaction, fs.open(path, "wb") as f, _compressed(url, f, "wb") as packed:
                yield packed


@contextmanager
def _report_full_disk(url: str) -> Iterator[None]:
    """Raise StoreError instead of an OSError for a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno in DISK_FULL:
            raise StoreError.no_space(url) from error
        raise


@contextmanager
def _create_local_file(path: str) -> Iterator[BinaryIO]:
    """Open a file that gets its name at the end. The next writer removes the temporary file of a killed process."""
    folder, name = os.path.split(path)
    os.makedirs(folder, exist_ok=True)
    temporary = os.path.join(folder, f".{name}.part")
    with suppress(FileNotFoundError):
        os.unlink(temporary)  # of a process that was killed
    f = open(temporary, "xb")  # noqa: SIM115  # closed before it is renamed: Windows moves and deletes no open file
    created = os.fstat(f.fileno())
    try:
        with f:
            yield f
            f.flush()
            os.fsync(f.fileno())
        _check_same(created, temporary, path)
        os.replace(temporary, path)
    except BaseException:
        if _is_same(created, temporary):
            os.unlink(temporary)
        raise
    force_name(path)


@contextmanager
def create_folder(url: str, storage_options: Mapping[str, Any] | None = None) -> Iterator[Store]:
    """Yield a folder to fill, which appears at the URL if the block ends without error.

    The folder may exist if it is empty. On an object store it is filled at its URL, and removed if the block ends with
    an error.

    Raises
    ------
    StoreError
        If there is something in the folder, no space is left, or another process makes the folder at the same time.
    """
    store = Store(url, dict(storage_options or {}))
    if store.children():
        raise StoreError(f"There is something at {store.url}, which is not replaced.", "Give a folder of its own.")
    with _report_full_disk(store.url):
        if (local := store.local_path) is not None:
            with _create_local_folder(os.path.realpath(local)) as folder:
                yield Store(folder)
            return
        try:
            yield store
        except BaseException:
            store.remove()
            raise


@contextmanager
def _create_local_folder(path: str) -> Iterator[str]:
    """Yield a temporary path, at which the block creates a folder; at the end the folder is moved to `path`."""
    parent, name = os.path.split(path)
    os.makedirs(parent, exist_ok=True)
    temporary = os.path.join(parent, f".{name}.part")
    remove_local(temporary, lambda: None)
    os.mkdir(temporary)
    created = os.stat(temporary)
    try:
        yield os.path.join(temporary, name)
        _check_same(created, temporary, path)
        os.rename(os.path.join(temporary, name), path)
        force_name(path)
    finally:
        if _is_same(created, temporary):
            remove_local(temporary, lambda: None)


def _is_same(created: os.stat_result, path: str) -> bool:
    """Return whether a path leads to the file or folder that this process has created, by its status."""
    try:
        return os.path.samestat(created, os.stat(path))
    except FileNotFoundError:
        return False


def _check_same(created: os.stat_result, temporary: str, path: str) -> None:
    """Raise StoreError if another process has replaced the temporary file or folder of this process."""
    if not _is_same(created, temporary):
        raise StoreError(f"Another process writes {path} at the same time.", "Let one of them go on.")
