"""Versions of a model: immutable folders below `models/`, of which one is served.

A version is finished once its manifest exists, and never changes after that. `served` has the name of the served one.
So a reader always sees a complete version, old or new. `resolve` finds the version that a URL refers to.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from daskw2v.errors import BusyError, DamageError, Daskw2vError, FormatError, StoreError
from daskw2v.models.stored.store import finish, read_finished
from daskw2v.models.versions.finished import (
    FOLDER,
    VERSION,
    FinishedVersions,
    Version,
    check_version,
    parse_number,
    parse_run_id,
)
from daskw2v.models.versions.served import POINTER, Served, change_served, read_served
from daskw2v.store.checksums import METADATA
from daskw2v.store.lease import hold, hold_run
from daskw2v.store.retries import TIMEOUT
from daskw2v.store.storage import MANIFEST, Store
from daskw2v.store.urls import Location, as_url

_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
T = TypeVar("T")


@dataclass(frozen=True)
class Versions(FinishedVersions):
    """The versions of a work directory's model.

    Changes are exclusive by a lease; readers do not wait. A process that has lost the lease changes nothing.

    Parameters
    ----------
    work
        The work directory.

    Examples
    --------
    >>> import daskw2v
    >>> versions = daskw2v.Versions.open("work")
    >>> versions.find("LATEST").served
    True
    """

    @classmethod
    def open(
        cls, work: Location, storage_options: Mapping[str, Any] | None = None, store_timeout: float = TIMEOUT
    ) -> "Versions":
        """Return the versions of a work directory.

        Raises
        ------
        StoreError
            If the work directory has no versions.

        Examples
        --------
        >>> import daskw2v
        >>> daskw2v.Versions.open("work").find("LATEST").words
        60
        """
        versions = cls(Store(as_url(work, "work"), dict(storage_options or {}), store_timeout))
        if not versions.models.exists():
            raise StoreError(f"There is no model at {versions.work.url}.", "Give a work directory that train has used.")
        return versions

    def publish(self, name: str) -> Version:
        """Serve a version; raises as `find` does, and if files of the version are damaged or missing.

        Examples
        --------
        >>> import daskw2v
        >>> versions = daskw2v.Versions.open("work")
        >>> versions.publish("v0001-a").served, versions.name_of("LATEST")
        (True, 'v0001-a')
        """
        with self._locked() as locked:
            version = locked.find(name)
            check_version(locked.models / version.name)
            change_served(locked.models, lambda served: served.serving(version.name))
        return version._replace(served=True)

    def rollback(self) -> Version:
        """Serve the previously served version again; versions that are damaged or of another daskw2v are passed over.

        Raises
        ------
        StoreError
            If there is no such version.

        Examples
        --------
        >>> import daskw2v
        >>> versions = daskw2v.Versions.open("work")
        >>> versions.rollback().name
        'v0001-a'
        """
        with self._locked() as locked:
            damaged, foreign = locked.problems()
            unusable = {*damaged, *foreign}
            finished = {version.name: version for version in locked.all() if version.name not in unusable}

            def restore_previous(served: Served) -> Served:
                usable = finished.keys() - served.condemned
                earlier = [number for number, name in enumerate(served.names) if number and name in usable]
                if not earlier:
                    raise StoreError(
                        f"No version was served in {self.models.url} before {served.name or 'any'}.",
                        "Publish a version by its name.",
                    )
                return replace(served, names=served.names[earlier[0] :])

            name = change_served(locked.models, restore_previous).names[0]
        return finished[name]._replace(served=True)

    def tag(self, name: str, tag: str) -> Version:
        """Give a version a tag, which is moved if another version has it.

        Raises
        ------
        StoreError
            If there is no such version, or the tag is invalid or looks like a version's name.

        Examples
        --------
        >>> import daskw2v
        >>> versions = daskw2v.Versions.open("work")
        >>> versions.tag("v0001-a", "paper").tags
        ('paper',)
        >>> daskw2v.open("work", version="paper").url.endswith("v0001-a")
        True
        """
        if not _TAG.fullmatch(tag) or VERSION.fullmatch(tag) or tag == POINTER:
            raise StoreError(
                f"{tag!r} is not a valid tag.",
                "Give up to 100 letters, digits, '.', '_', '-' that do not look like a version's name.",
            )
        with self._locked() as locked:
            version = locked.find(name)
            change_served(locked.models, lambda served: served.tagging(tag, version.name))
        return self.find(tag)

    def untag(self, tag: str) -> None:
        """Remove a tag; its version stays.

        Raises
        ------
        StoreError
            If there is no such tag.

        Examples
        --------
        >>> import daskw2v
        >>> versions = daskw2v.Versions.open("work")
        >>> _ = versions.tag("v0001-a", "paper")
        >>> versions.untag("paper")
        >>> versions.tags()
        {}
        """
        with self._locked() as locked:

            def remove_tag(served: Served) -> Served:
                if tag not in served.tags:
                    known = ", ".join(served.tags) or "none"
                    raise StoreError(f"{self.models.url} has no tag {tag!r}.", f"Its tags: {known}.")
                return replace(served, tags={other: version for other, version in served.tags.items() if other != tag})

            change_served(locked.models, remove_tag)

    def gc(self, keep: int = 3, min_age: float = 3600.0, *, damaged: bool = False) -> list[str]:
        """Delete old versions, and folders of versions that interrupted runs did not finish.

        The newest versions, the served one, the one that a rollback would serve, and tagged ones are kept. Versions of
        active runs are not touched. Damaged versions do not count as versions to keep; they stay, unless `damaged`.
        A version in a format of another daskw2v release does not count, and stays.

        Parameters
        ----------
        keep
            Number of newest versions to keep.
        min_age
            Age in seconds below which undamaged versions are kept, as readers may still use them.
        damaged
            Whether to read all versions and delete the damaged ones, except tagged ones. If a damaged version was
            served, the version served before it is served again, or the newest if there is none.

        Returns
        -------
        list of str
            Names of the deleted versions.

        Examples
        --------
        >>> import daskw2v
        >>> versions = daskw2v.Versions.open("work")
        >>> _ = versions.tag("v0001-a", "paper")
        >>> versions.gc(keep=1, min_age=0)
        []
        """
        with self._locked() as locked:
            (damaged_names, foreign), now = locked.problems(full=damaged), datetime.now(UTC)

            def condemn(served: Served) -> Served:
                unusable = {*damaged_names, *foreign}
                versions = [version for version in locked._read_all(served) if version.name not in unusable]
                finished = {version.name for version in versions}
                kept = {version.name for version in versions[max(0, len(versions) - max(1, keep)) :]}
                kept |= set([name for name in served.names if name in finished][:2])
                candidates = [version for version in versions if not (version.name in kept or version.tags)]
                old = [version.name for version in candidates if (now - version.created).total_seconds() >= min_age]
                if damaged:
                    old += [name for name in damaged_names if name not in served.tags.values()]
                    served = _serving_another(served, old, finished)
                return replace(served, condemned=tuple(dict.fromkeys((*served.condemned, *old))))

            # The names are recorded before the deletion: from then on no process serves or tags these versions
            condemned = list(filter(VERSION.fullmatch, change_served(locked.models, condemn).condemned))
            for name in condemned:
                (locked.models / name / MANIFEST).remove()  # from now on the version cannot be opened
                (locked.models / name).remove()
            locked.models.force_names()  # or a power loss could bring a version back that is no longer condemned
            change_served(locked.models, lambda served: replace(served, condemned=()))
            return [*condemned, *locked._remove_unfinished()]

    def _remove_unfinished(self) -> list[str]:
        """Delete versions that were never finished, unless their runs are active; return their names."""
        removed, finished = [], set(self._list_finished())
        for name in self._list_names():
            if name in finished or not _is_begun(self.models / name):
                continue
            with suppress(BusyError), hold_run(self.work, parse_run_id(name)) as lease:
                if name not in self._list_finished():  # it may have been finished meanwhile
                    (lease.guard(self.models) / name).remove()
                    removed.append(name)
        return removed

    @contextmanager
    def _locked(self) -> Iterator["Versions"]:
        """Hold the lease of the versions during a `with` block; yield the versions, guarded by the lease."""
        subject = f"the versions in {self.work.url}"
        with hold(self.work, FOLDER, subject, waiting=lambda message: None) as lease:
            yield Versions(lease.guard(self.work))


def publish(models: Store, version: str, manifest: Mapping[str, Any]) -> None:
    """Write the manifest of a version, as `finish` does, and serve the version."""
    finish(models / version, manifest)
    serve_version(models, version)


def serve_version(models: Store, version: str) -> None:
    """Serve a finished version, atomically."""
    change_served(models, lambda served: served.serving(version))


def list_served(models: Store) -> list[str]:
    """Return the names of the served version and of the versions served before, newest first."""
    return list(dict.fromkeys(filter(VERSION.fullmatch, read_served(models).names)))


def latest_version(models: Store) -> str | None:
    """Return the name of the served version; None before the first."""
    return read_served(models).name


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
        If there is no finished model, or a newer daskw2v wrote it.
    """
    store = Store(as_url(url, "model"), dict(storage_options or {}), store_timeout)
    if version is not None:
        versions = Versions(store)
        return versions.models / versions.find(version).name
    if read_finished(store) is not None:
        return store
    for models in (store, store / FOLDER):
        served, finished = _served_model(models)
        if finished is None and served != latest_version(models):  # the pointer has moved meanwhile
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


def _serving_another(served: Served, removed: list[str], intact: set[str]) -> Served:
    """Return a state that serves an undamaged version if the served one is removed.

    It is the version that was served before, or else the newest. `intact` are the names of undamaged versions.
    """
    names = [name for name in served.names if name in intact] or sorted(intact, key=parse_number)[-1:]
    return replace(served, names=tuple(names)) if names and served.name in removed else served


def _is_begun(version: Store) -> bool:
    """Return whether a folder is a version that daskw2v began to write, and not another folder with such a name."""
    names, local = version.children(), version.local_path
    is_link = local is not None and os.path.islink(local)  # perhaps a link to a disk that is not mounted now
    return METADATA in names or not (names or is_link)


def _opens(version: Store) -> bool:
    """Return whether a version, by its folder, is finished and can be opened."""
    with suppress(DamageError, FormatError):
        return read_finished(version) is not None
    return False


def _served_model(models: Store) -> tuple[str | None, Store | None]:
    """Return the name of the served version, and its folder; None for a folder that is not finished."""
    served = latest_version(models)
    if served is None or not VERSION.fullmatch(served) or read_finished(models / served) is None:
        return served, None
    return served, models / served
