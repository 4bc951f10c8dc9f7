"""Versions of a model: immutable folders below `models/`, of which one is served.

A version is finished once its manifest exists and never changes after that. `served` says which one is served. So a
reader always sees a complete version, old or new.
"""

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from daskw2v.errors import BusyError, DamageError, FormatError, StoreError, VocabularyError
from daskw2v.models.manifest import read_finished
from daskw2v.models.naming import VERSION, number_of, run_of
from daskw2v.models.served import POINTER, Served, change_served, read_served
from daskw2v.models.store import finish, has_ids, read_ids, read_vocabulary
from daskw2v.models.verification import check_version, damage_of, damage_of_index, is_bound
from daskw2v.models.version import Problems, Version
from daskw2v.store.checksums import METADATA
from daskw2v.store.lease import hold, hold_run
from daskw2v.store.retries import TIMEOUT
from daskw2v.store.storage import MANIFEST, Store
from daskw2v.store.urls import Location, as_url

FOLDER = "models"
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@dataclass(frozen=True)
class Versions:
    """The versions of a work directory's model.

    A lease makes changes exclusive; readers do not wait. A process that loses the lease changes nothing any more.

    Parameters
    ----------
    work
        The work directory.
    """

    work: Store

    @classmethod
    def open(
        cls, work: Location, storage_options: Mapping[str, Any] | None = None, store_timeout: float = TIMEOUT
    ) -> "Versions":
        """Open the versions of a work directory.

        Raises
        ------
        StoreError
            If it has none.
        """
        found = cls(Store(as_url(work, "work"), dict(storage_options or {}), store_timeout))
        if not found.models.exists():
            raise StoreError(f"There is no model at {found.work.url}.", "Give a work directory that train has used.")
        return found

    @property
    def models(self) -> Store:
        """Folder of the versions."""
        return self.work / FOLDER

    def all(self) -> list[Version]:
        """Return all finished versions whose manifests are whole and of this daskw2v, in order of their numbers."""
        return self._all(read_served(self.models))

    def _all(self, served: Served) -> list[Version]:
        found = list[Version]()
        for name in self._names():
            with suppress(DamageError, FormatError):
                if name not in served.condemned and (version := self._version(name, served)) is not None:
                    found.append(version)
        return found

    def _version(self, name: str, served: Served) -> Version | None:
        """Return a version, or None where it is not finished; raises as `read_finished` and the version's fields do."""
        manifest = read_finished(self.models / name)
        if manifest is None:
            return None
        tags = tuple(tag for tag, tagged in served.tags.items() if tagged == name)
        version = Version(name, manifest, tags, name == served.name)
        version.created, version.words  # noqa: B018
        return version

    def _names(self) -> list[str]:
        """Return the names of all versions, finished or not, in order of their numbers."""
        return sorted(filter(VERSION.fullmatch, self.models.children()), key=number_of)

    def damaged(self, *, full: bool = False) -> dict[str, list[DamageError]]:
        """Return the damage of each version that was finished and is not whole.

        Parameters
        ----------
        full
            Whether to read all versions. By default only manifests and metadata are read, and sizes compared.
        """
        return self.problems(full=full).damaged

    def problems(self, *, full: bool = False) -> Problems:
        """Return what `damaged` does, and the versions that another daskw2v wrote, which are never changed."""
        served, found = read_served(self.models), Problems({}, {})
        for name in self._once_finished():
            try:
                damage = damage_of(self.models / name, full=full)
                if damage:
                    found.damaged[name] = damage
                else:
                    self._version(name, served)
            except FormatError as error:
                found.foreign[name] = error
        return found

    def _once_finished(self) -> list[str]:
        """Return the names of versions that were finished, whole or not, in order of their numbers."""
        served = read_served(self.models)
        known = {*served.names, *served.tags.values()}  # even without a manifest
        return [
            name
            for name in self._names()
            if name not in served.condemned and (name in known or (self.models / name).size(MANIFEST) is not None)
        ]

    def verify(self, name: str | None = None) -> dict[str, list[DamageError]]:
        """Read versions with their indexes, and compare them with their checksums.

        Parameters
        ----------
        name
            A version's name or tag, or LATEST; None for all versions.

        Returns
        -------
        dict
            The damage of each version, by the version's name; an empty list for a version that is whole. Of all
            versions, those that another daskw2v wrote are left out.

        Raises
        ------
        StoreError
            If there is no such version, or the store fails.
        """
        names = self._once_finished()
        if name is None:
            foreign = self.problems().foreign
            names = [each for each in names if each not in foreign]
        else:
            wanted = self.name_of(name)
            names = [wanted] if wanted in names else [self.find(name).name]
        places = {each: self.models / each for each in names}
        return {each: damage_of(place, full=True) + damage_of_index(place) for each, place in places.items()}

    def is_bound(self, name: str) -> bool:
        """Return whether the files of a whole version are bound to their places.

        Swapped files of a version that an older daskw2v wrote are not found by `verify`, nor when they are read.

        Raises
        ------
        DamageError
            If the version is damaged.
        """
        return is_bound(self.models / name)

    def find(self, name: str) -> Version:
        """Return the version with this name or tag, or the served one for `LATEST`.

        Raises
        ------
        StoreError
            If there is no such version.
        DamageError
            If its manifest is damaged or missing.
        FormatError
            If another daskw2v wrote it.
        """
        every = self.all()
        for version in every:
            if name == version.name or name in version.tags or (name == POINTER and version.served):
                return version
        damaged, foreign = self.problems()
        wanted = self.name_of(name) or ""
        for error in (*damaged.get(wanted, ()), *filter(None, (foreign.get(wanted),))):
            raise error
        known = ", ".join(part for version in every for part in (version.name, *version.tags)) or "there is none"
        raise StoreError(f"{self.models.url} has no version {name!r}.", f"Give one of its versions or tags: {known}.")

    def name_of(self, name: str = POINTER) -> str | None:
        """Return the name of the version that `LATEST`, a tag or a name refers to, or None; reads only the state."""
        if name == POINTER:
            return latest_version(self.models)
        return name if VERSION.fullmatch(name) else self.tags().get(name)

    def newest_with_ids(self) -> Store | None:
        """Return the newest finished version with stable ids, which knows all ids that were assigned.

        Versions whose ids or words are damaged are passed over.
        """
        stores = (self.models / version.name for version in reversed(self.all()))
        return next(filter(_has_whole_ids, stores), None)

    def publish(self, name: str) -> Version:
        """Serve a version; raises as `find` does, and if files of the version are damaged or missing."""
        with self._held() as held:
            found = held.find(name)
            check_version(held.models / found.name)
            change_served(held.models, lambda served: served.serving(found.name))
        return found._replace(served=True)

    def rollback(self) -> Version:
        """Serve the previously served version again; those that are damaged, or of another daskw2v, are passed over.

        Raises
        ------
        StoreError
            If there is none.
        """
        with self._held() as held:
            damaged, foreign = held.problems()
            others = {*damaged, *foreign}
            finished = {version.name: version for version in held.all() if version.name not in others}

            def back(served: Served) -> Served:
                whole = finished.keys() - served.condemned
                earlier = [number for number, name in enumerate(served.names) if number and name in whole]
                if not earlier:
                    raise StoreError(
                        f"No version was served in {self.models.url} before {served.name or 'any'}.",
                        "Publish a version by its name.",
                    )
                return replace(served, names=served.names[earlier[0] :])

            name = change_served(held.models, back).names[0]
        return finished[name]._replace(served=True)

    def tags(self) -> dict[str, str]:
        """Return the version of each tag.

        Raises
        ------
        StoreError
            If their file is damaged.
        """
        return dict(read_served(self.models).tags)

    def tag(self, name: str, tag: str) -> Version:
        """Give a version a tag, which moves if another version has it.

        Raises
        ------
        StoreError
            If there is no such version, or the tag is invalid or looks like a version's name.
        """
        if not _TAG.fullmatch(tag) or VERSION.fullmatch(tag) or tag == POINTER:
            raise StoreError(
                f"{tag!r} is not a valid tag.",
                "Give up to 100 letters, digits, '.', '_', '-' that do not look like a version's name.",
            )
        with self._held() as held:
            found = held.find(name)
            change_served(held.models, lambda served: served.tagging(tag, found.name))
        return self.find(tag)

    def untag(self, tag: str) -> None:
        """Remove a tag; its version stays.

        Raises
        ------
        StoreError
            If there is no such tag.
        """
        with self._held() as held:

            def without(served: Served) -> Served:
                if tag not in served.tags:
                    known = ", ".join(served.tags) or "none"
                    raise StoreError(f"{self.models.url} has no tag {tag!r}.", f"Its tags: {known}.")
                return replace(served, tags={other: of for other, of in served.tags.items() if other != tag})

            change_served(held.models, without)

    def gc(self, keep: int = 3, min_age: float = 3600.0, *, damaged: bool = False) -> list[str]:
        """Delete old versions, and the remains of unfinished ones.

        The newest versions, the served one, the one that a rollback would serve, and tagged ones are kept. Versions of
        active runs are not touched. Damaged versions do not count as versions to keep; they stay, unless `damaged`.
        Those of another daskw2v do not count, and stay.

        Parameters
        ----------
        keep
            Number of newest versions to keep.
        min_age
            Age in seconds below which versions are kept, as readers may still use them.
        damaged
            Whether to read all versions and delete those that are damaged, except tagged ones. If one was served,
            the version served before it is served again, or the newest if there is none.

        Returns
        -------
        list of str
            Names of the deleted versions.
        """
        with self._held() as held:
            (broken, foreign), now = held.problems(full=damaged), datetime.now(UTC)

            def condemn(served: Served) -> Served:
                every = [version for version in held._all(served) if version.name not in {*broken, *foreign}]
                finished = {version.name for version in every}
                returned_to = [name for name in served.names if name in finished][:2]
                spared = {version.name for version in every[max(0, len(every) - max(1, keep)) :]} | set(returned_to)
                others = [version for version in every if not (version.name in spared or version.tags)]
                old = [version.name for version in others if (now - version.created).total_seconds() >= min_age]
                if damaged:
                    old += [name for name in broken if name not in served.tags.values()]
                    served = _serving_another(served, old, finished)
                return replace(served, condemned=tuple(dict.fromkeys((*served.condemned, *old))))

            # Recorded before the deletion: from then on nobody serves or tags them, whenever they are deleted
            condemned = list(filter(VERSION.fullmatch, change_served(held.models, condemn).condemned))
            for name in condemned:
                (held.models / name / MANIFEST).remove()  # from now on it cannot be opened
                (held.models / name).remove()
            held.models.force_names()  # what came back after a power loss would no longer be known as condemned
            change_served(held.models, lambda served: replace(served, condemned=()))
            return [*condemned, *held._remove_unfinished()]

    def _remove_unfinished(self) -> list[str]:
        """Delete versions that were never finished, unless their runs are active; return their names."""
        removed, finished = [], set(self._once_finished())
        for name in self._names():
            if name in finished or not _is_begun(self.models / name):
                continue
            with suppress(BusyError), hold_run(self.work, run_of(name)) as lease:
                if name not in self._once_finished():  # it may have been finished meanwhile
                    (lease.guard(self.models) / name).remove()
                    removed.append(name)
        return removed

    @contextmanager
    def _held(self) -> Iterator["Versions"]:
        """Hold the lease; give these versions, in a work directory that is guarded by it."""
        what = f"the versions in {self.work.url}"
        with hold(self.work, FOLDER, what, waiting=lambda message: None) as lease:
            yield Versions(lease.guard(self.work))


def _serving_another(served: Served, removed: list[str], whole: set[str]) -> Served:
    """Serve a whole version if the served one will be removed: the one served before it, or else the newest."""
    left = [name for name in served.names if name in whole] or sorted(whole, key=number_of)[-1:]
    return replace(served, names=tuple(left)) if left and served.name in removed else served


def _has_whole_ids(version: Store) -> bool:
    try:
        return has_ids(version) and read_ids(version) is not None and read_vocabulary(version) is not None
    except (DamageError, FormatError, VocabularyError):
        return False


def _is_begun(version: Store) -> bool:
    """Tell whether a version was begun by daskw2v, and is no folder of others with a name like that."""
    names, local = version.children(), version.local_path
    is_link = local is not None and os.path.islink(local)  # perhaps to a disk that is not mounted now
    return METADATA in names or not (names or is_link)


def publish(models: Store, version: str, manifest: Mapping[str, Any]) -> None:
    """Finish a version, as `finish` does, and serve it."""
    finish(models / version, manifest)
    point_to(models, version)


def point_to(models: Store, version: str) -> None:
    """Serve a finished version, atomically."""
    change_served(models, lambda served: served.serving(version))


def was_served(models: Store) -> list[str]:
    """Return the names of the served version and of those served before, newest first."""
    return list(dict.fromkeys(filter(VERSION.fullmatch, read_served(models).names)))


def latest_version(models: Store) -> str | None:
    """Return the name of the served version, or None before the first."""
    return read_served(models).name
