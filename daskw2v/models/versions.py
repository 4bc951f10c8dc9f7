"""Versions of a model: immutable folders below `models/`, and a pointer `LATEST` to the served one.

The pointer is a small file, written atomically. Its first line names the served version; the next lines name those
served before, newest first, for rollbacks. A version is finished once its manifest exists and never changes after that.
So a reader always sees a complete version, old or new.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from daskw2v.errors import DamageError, StoreError, VocabularyError
from daskw2v.models.manifest import read_finished
from daskw2v.models.naming import VERSION, number_of, run_of
from daskw2v.models.store import finish, has_ids, read_ids, read_vocabulary
from daskw2v.models.verification import check_version, damage_of, damage_of_index
from daskw2v.store.lease import hold, hold_run
from daskw2v.store.limits import refused, shown
from daskw2v.store.retries import TIMEOUT
from daskw2v.store.storage import MANIFEST, Store
from daskw2v.store.urls import Location, as_url

T = TypeVar("T")
FOLDER = "models"
POINTER, _TAGS = "LATEST", "tags.json"
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SERVED = 100  # most lines of the pointer


class Version(NamedTuple):
    """A finished version: its name, manifest and tags, and whether it is served."""

    name: str
    manifest: dict[str, Any]
    tags: tuple[str, ...]
    served: bool

    @property
    def created(self) -> datetime:
        """Time at which it was finished.

        Raises
        ------
        StoreError
            If its manifest holds no time.
        """
        try:
            return datetime.fromisoformat(self.manifest["created"]).astimezone(UTC)
        except (LookupError, TypeError, ValueError, OverflowError):
            raise self._damaged("created") from None

    @property
    def words(self) -> int:
        """Number of its words; raises as `created` does."""
        match self.manifest["tables"]:
            case {"input": [int(words), int()]}:
                return words
        raise self._damaged("tables")

    def _damaged(self, entry: str) -> StoreError:
        return refused(f"The manifest of {self.name}", f"holds {entry}={shown(self.manifest.get(entry))}")


@dataclass(frozen=True)
class Versions:
    """The versions of a work directory's model.

    A lease makes changes exclusive; readers do not wait.

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
        """Return all finished versions whose manifests are whole, in order of their numbers."""
        served, tags, found = latest_version(self.models), self.tags(), list[Version]()
        for name in self._names():
            with suppress(DamageError):
                manifest = read_finished(self.models / name)
                if manifest is not None:
                    named = tuple(tag for tag, tagged in tags.items() if tagged == name)
                    found.append(Version(name, manifest, named, name == served))
        return found

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
        damage = {name: damage_of(self.models / name, full=full) for name in self._once_finished()}
        return {name: found for name, found in damage.items() if found}

    def _once_finished(self) -> list[str]:
        """Return the names of versions that were finished, whole or not, in order of their numbers."""
        known = {*_served(self.models), *self.tags().values()}  # even without a manifest
        return [
            name for name in self._names() if name in known or (self.models / name).read_bytes(MANIFEST) is not None
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
            The damage of each version, by the version's name; an empty list for a version that is whole.

        Raises
        ------
        StoreError
            If there is no such version, or the store fails.
        """
        names = self._once_finished()
        if name is not None:
            wanted = self.name_of(name)
            names = [wanted] if wanted in names else [self.find(name).name]
        places = {each: self.models / each for each in names}
        return {each: damage_of(place, full=True) + damage_of_index(place) for each, place in places.items()}

    def find(self, name: str) -> Version:
        """Return the version with this name or tag, or the served one for `LATEST`.

        Raises
        ------
        StoreError
            If there is no such version.
        DamageError
            If its manifest is damaged or missing.
        """
        every = self.all()
        for version in every:
            if name == version.name or name in version.tags or (name == POINTER and version.served):
                return version
        for damage in self.damaged().get(self.name_of(name) or "", ()):
            raise damage
        known = ", ".join(part for version in every for part in (version.name, *version.tags)) or "there is none"
        raise StoreError(f"{self.models.url} has no version {name!r}.", f"Give one of its versions or tags: {known}.")

    def name_of(self, name: str = POINTER) -> str | None:
        """Return the name of the version that `LATEST`, a tag or a name refers to, or None; reads one small file."""
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
        with self._held():
            found = self.find(name)
            check_version(self.models / found.name)
            point_to(self.models, found.name)
        return found._replace(served=True)

    def rollback(self) -> Version:
        """Serve the previously served version again; versions that are damaged are passed over.

        Raises
        ------
        StoreError
            If there is none.
        """
        with self._held():
            served = _served(self.models)
            damaged = self.damaged()
            finished = {version.name: version for version in self.all() if version.name not in damaged}
            earlier = [number for number, name in enumerate(served) if number and name in finished]
            if not earlier:
                raise StoreError(
                    f"No version was served in {self.models.url} before {served[0] if served else 'any'}.",
                    "Publish a version by its name.",
                )
            _serve(self.models, served[earlier[0] :])
        return finished[served[earlier[0]]]._replace(served=True)

    def tags(self) -> dict[str, str]:
        """Return the version of each tag.

        Raises
        ------
        StoreError
            If their file is damaged.
        """
        tags = (self.models.read_manifest(_TAGS) or {}).get("tags", {})
        if not isinstance(tags, dict) or not all(isinstance(version, str) for version in tags.values()):
            raise refused(f"{self.models.url}/{_TAGS}", f"holds tags={shown(tags)}")
        return tags

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
        with self._held():
            self._write_tags({**self.tags(), tag: self.find(name).name})
        return self.find(tag)

    def untag(self, tag: str) -> None:
        """Remove a tag; its version stays.

        Raises
        ------
        StoreError
            If there is no such tag.
        """
        with self._held():
            tags = self.tags()
            if tags.pop(tag, None) is None:
                raise StoreError(f"{self.models.url} has no tag {tag!r}.", f"Its tags: {', '.join(tags) or 'none'}.")
            self._write_tags(tags)

    def _write_tags(self, tags: Mapping[str, str]) -> None:
        self.models.write_manifest({"tags": dict(tags)}, _TAGS)

    def gc(self, keep: int = 3, min_age: float = 3600.0, *, damaged: bool = False) -> list[str]:
        """Delete old versions, and the remains of unfinished ones.

        The newest versions, the served one, the one that a rollback would serve, and tagged ones are kept. Versions of
        active runs are not touched. Damaged versions do not count as versions to keep; they stay, unless `damaged`.

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
        with self._held():
            broken, now = self.damaged(full=damaged), datetime.now(UTC)
            every = [version for version in self.all() if version.name not in broken]
            finished = {version.name for version in every}
            returned_to = [name for name in _served(self.models) if name in finished][:2]
            spared = {version.name for version in every[max(0, len(every) - max(1, keep)) :]} | set(returned_to)
            old = [
                version.name
                for version in every
                if not (version.name in spared or version.tags) and (now - version.created).total_seconds() >= min_age
            ]
            if damaged:
                tagged = set(self.tags().values())
                old += [name for name in broken if name not in tagged]
                self._serve_another(old, finished)
            for name in old:
                (self.models / name / MANIFEST).remove()  # from now on it cannot be opened
                (self.models / name).remove()
            return old + self._remove_unfinished({*finished, *broken})

    def _serve_another(self, removed: list[str], whole: set[str]) -> None:
        """Serve a whole version if the served one will be removed: the one served before it, or else the newest."""
        served = _served(self.models)
        left = [name for name in served if name in whole] or sorted(whole, key=number_of)[-1:]
        if left and served[:1] and served[0] in removed:
            _serve(self.models, left)

    def _remove_unfinished(self, finished: set[str]) -> list[str]:
        """Delete versions without a manifest, unless their runs are active; return their names."""
        removed = []
        for name in self._names():
            if name in finished:
                continue
            with suppress(StoreError), hold_run(self.work, run_of(name)):
                if read_finished(self.models / name) is None:
                    (self.models / name).remove()
                    removed.append(name)
        return removed

    @contextmanager
    def _held(self) -> Iterator[None]:
        with hold(self.work, FOLDER, f"the versions in {self.work.url}", waiting=lambda message: None):
            yield


def _has_whole_ids(version: Store) -> bool:
    try:
        return has_ids(version) and read_ids(version) is not None and read_vocabulary(version) is not None
    except (DamageError, VocabularyError):
        return False


def publish(models: Store, version: str, manifest: Mapping[str, Any]) -> None:
    """Finish a version, as `finish` does, and serve it."""
    finish(models / version, manifest)
    point_to(models, version)


def point_to(models: Store, version: str) -> None:
    """Serve a finished version, atomically."""
    served = _served(models)
    if served[:1] != [version]:
        _serve(models, [version, *served])


def _serve(models: Store, served: list[str]) -> None:
    models.write_bytes(POINTER, "\n".join(served[:_SERVED]).encode())


def _served(models: Store) -> list[str]:
    """Return the names of the served version and of those served before, newest first."""
    content = models.read_bytes(POINTER)
    if content is None:
        return []
    return [line.strip() for line in content.decode(errors="replace").splitlines()] or [""]


def was_served(models: Store) -> list[str]:
    """Return the names of the served version and of those served before, newest first."""
    return list(dict.fromkeys(filter(VERSION.fullmatch, _served(models))))


def latest_version(models: Store) -> str | None:
    """Return the name of the served version, or None before the first."""
    return next(iter(_served(models)), None)
