"""Files at fsspec URLs: read with clear errors, written atomically; and folders that are new."""

import gzip
import os
import uuid
import zlib
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, BinaryIO

from daskw2v.errors import InputError, StoreError
from daskw2v.store.durability import force_name
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
        with fs.open(path, "rb") as f, _unpacked(url, f) as unpacked:
            yield unpacked
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"{url} cannot be read: {error}.", "Check that the file exists, is whole and may be read."
        ) from error


def _unpacked(url: str, f: BinaryIO) -> AbstractContextManager[BinaryIO]:
    return gzip.GzipFile(fileobj=f) if url.endswith(".gz") else nullcontext(f)  # type: ignore[return-value]


@contextmanager
def writing(url: str, storage_options: Mapping[str, Any] | None = None) -> Iterator[BinaryIO]:
    """Open a file for writing bytes, compressed if its name ends in .gz. It appears when the block ends without error.

    Raises
    ------
    OSError
        If writing fails (no space, no permission). No partial file remains.
    """
    fs, path = filesystem(url, storage_options or {})
    if "file" in fs.protocol:
        with _local_file(path) as f, _packed(url, f) as packed:
            yield packed
    else:
        with fs.transaction, fs.open(path, "wb") as f, _packed(url, f) as packed:
            yield packed


@contextmanager
def _packed(url: str, f: BinaryIO) -> Iterator[BinaryIO]:
    if not url.endswith(".gz"):
        yield f
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=f, mtime=0) as packed:  # equal vectors give equal bytes
        yield packed  # type: ignore[misc]  # GzipFile has all that writers use


@contextmanager
def _local_file(path: str) -> Iterator[BinaryIO]:
    folder, name = os.path.split(path)
    os.makedirs(folder, exist_ok=True)
    temporary = os.path.join(folder, f".{name}.{uuid.uuid4().hex}")
    try:
        with open(temporary, "wb") as f:
            yield f
            f.flush()
            os.fsync(f.fileno())
        os.replace(temporary, path)
        force_name(path)
    except BaseException:
        if os.path.exists(temporary):
            os.unlink(temporary)
        raise


@contextmanager
def new_folder(url: str, storage_options: Mapping[str, Any] | None = None) -> Iterator[Store]:
    """Give a folder to fill, which does not exist or is empty. It is removed if the block ends with an error.

    Raises
    ------
    StoreError
        If there is something in the folder.
    """
    store = Store(url, dict(storage_options or {}))
    if store.children():
        raise StoreError(f"There is something at {store.url}, which is not replaced.", "Give a folder of its own.")
    try:
        yield store
    except BaseException:
        store.remove()
        raise
