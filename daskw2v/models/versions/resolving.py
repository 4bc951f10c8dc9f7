"""Finds the finished model that a URL refers to: a version, or the served version of a work directory."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from daskw2v.errors import DamageError, Daskw2vError, FormatError, StoreError
from daskw2v.models.stored.store import read_finished
from daskw2v.models.versions.finished import FOLDER, VERSION, FinishedVersions
from daskw2v.models.versions.state import POINTER, read_state
from daskw2v.store.retries import TIMEOUT
from daskw2v.store.storage import Store
from daskw2v.store.urls import Location, as_url

T = TypeVar("T")


def resolve(
    url: Location,
    storage_options: Mapping[str, Any] | None = None,
    store_timeout: float = TIMEOUT,
    version: str | None = None,
) -> Store:
    """Return the folder of the finished model that a URL refers to.

    Parameters
    ----------
    url
        A work directory or its `models` folder (for the served version), or one version.
    storage_options
        Options for fsspec.
    store_timeout
        Seconds that each call of the store may take.
    version
        Name or tag of a version of the work directory, instead of the served one.

    Raises
    ------
    StoreError
        If there is no finished model or no such version, its manifest is damaged, or a newer daskw2v wrote it.
    """
    store = Store(as_url(url, "model"), dict(storage_options or {}), store_timeout)
    if version is not None:
        versions = FinishedVersions(store)
        return versions.models / versions.find(version).name
    if read_finished(store) is not None:
        return store
    for models in (store, store / FOLDER):
        served, finished = _find_served_model(models)
        if finished is None and served is not None:  # another version is served now, or the store's answer was old
            served, finished = _find_served_model(models)
        if finished is not None:
            return finished
        if served is not None:
            names = ", ".join(name for name in models.children() if VERSION.fullmatch(name) and _opens(models / name))
            raise StoreError(
                f"{models.url}/{POINTER} names {served!r}, which is not a finished model.",
                f"Give the URL of one of the versions: {names or 'there is none'}.",
            )
    if (store / FOLDER).exists():
        raise StoreError(f"{url} holds no finished model yet.", "Run train again: it goes on where it stopped.")
    raise StoreError(
        f"There is no model at {url}.",
        "Give a work directory that train has finished, or one version below its models/.",
    )


def read_resolved(
    read: Callable[[Store], T],
    url: Location,
    storage_options: Mapping[str, Any] | None = None,
    store_timeout: float = TIMEOUT,
    version: str | None = None,
) -> T:
    """Return the result of `read` for the folder that `resolve` returns for the further arguments.

    If reading fails because another version is served by then, and the first one may have been deleted, `read` is
    called for the new one.
    """
    store = resolve(url, storage_options, store_timeout, version)
    try:
        return read(store)
    except Daskw2vError:
        newer = resolve(url, storage_options, store_timeout, version)
        if newer == store:
            raise
    return read(newer)


def _opens(version: Store) -> bool:
    """Return whether a version, by its folder, is finished and can be opened."""
    with suppress(DamageError, FormatError):
        return read_finished(version) is not None
    return False


def _find_served_model(models: Store) -> tuple[str | None, Store | None]:
    """Return the name of the served version, or None, and its folder, or None if the version is not finished."""
    served = read_state(models).name
    if served is None or not VERSION.fullmatch(served) or read_finished(models / served) is None:
        return served, None
    return served, models / served
