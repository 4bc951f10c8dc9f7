"""The finished model that a URL means: a version, or the served one of a work directory."""

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
    """Find the finished model at a URL.

    Parameters
    ----------
    url
        A work directory or its `models` folder (for the served version), or one version.
    storage_options
        Options for fsspec.
    store_timeout
        Seconds to wait for each answer of the store.
    version
        Name or tag of a version of the work directory, instead of the served one.

    Raises
    ------
    StoreError
        If there is no finished model, or a newer daskw2v wrote it.
    """
    store = Store(as_url(url, "model"), dict(storage_options or {}), store_timeout)
    if version is not None:
        versions = FinishedVersions(store)
        return versions.models / versions.find(version).name
    if read_finished(store) is not None:
        return store
    for models in (store, store / FOLDER):
        served, finished = _served_model(models)
        if finished is None and served != read_state(models).name:  # the pointer has moved meanwhile
            served, finished = _served_model(models)
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
    """Read the model that `resolve` finds; if reading fails and another version is served by then, read that one.

    The first version may have been deleted meanwhile.
    """
    store = resolve(url, storage_options, store_timeout, version)
    try:
        return read(store)
    except Daskw2vError:
        again = resolve(url, storage_options, store_timeout, version)
        if again == store:
            raise
    return read(again)


def _opens(version: Store) -> bool:
    with suppress(DamageError, FormatError):
        return read_finished(version) is not None
    return False


def _served_model(models: Store) -> tuple[str | None, Store | None]:
    """Return the name of the served version, and its folder if it is finished."""
    served = read_state(models).name
    if served is None or not VERSION.fullmatch(served) or read_finished(models / served) is None:
        return served, None
    return served, models / served
