"""Versions of a model: immutable folders below `models/`, and a pointer `LATEST` to the served one.

The pointer is a small file, written atomically. Its first line names the served version; the next lines name those
served before, newest first, for rollbacks. A version is finished once its manifest exists and never changes after that.
So a reader always sees a complete version, old or new.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from daskw2v.errors import Daskw2vError, StoreError
from daskw2v.models.manifest import read_finished
from daskw2v.models.store import finish, has_ids
from daskw2v.store.lease import hold, hold_run
from daskw2v.store.limits import refused, shown
from daskw2v.store.retries import TIMEOUT
from daskw2v.store.storage import Store
from daskw2v.store.urls import Location, as_url

T = TypeVar("T")
_FOLDER = "models"
_POINTER, _TAGS = "LATEST", "tags.json"
_VERSION = re.compile(r"v(\d{4,})-([^/\\]+)")
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
        return self.work / _FOLDER

    def all(self) -> list[Version]:
        """Return all finished versions, in order of their numbers."""
        served, tags = latest_version(self.models), self.tags()
        names = sorted(filter(_VERSION.fullmatch, self.models.children()), key=number_of)
        manifests = ((name, read_finished(self.models / name)) for name in names)
        return [
            Version(name, manifest, tuple(tag for tag, tagged in tags.items() if tagged == name), name == served)
            for name, manifest in manifests
            if manifest is not None
        ]

    def find(self, name: str) -> Version:
        """Return the version with this name or tag, or the served one for `LATEST`.

        Raises
        ------
        StoreError
            If there is no such version.
        """
        every = self.all()
        for version in every:
            if name == version.name or name in version.tags or (name == _POINTER and version.served):
                return version
        known = ", ".join(part for version in every for part in (version.name, *version.tags)) or "there is none"
        raise StoreError(f"{self.models.url} has no version {name!r}.", f"Give one of its versions or tags: {known}.")

    def name_of(self, name: str = _POINTER) -> str | None:
        """Return the name of the version that `LATEST`, a tag or a name refers to, or None; reads one small file."""
        if name == _POINTER:
            return latest_version(self.models)
        return name if _VERSION.fullmatch(name) else self.tags().get(name)

    def newest_with_ids(self) -> Store | None:
        """Return the newest finished version with stable ids, which knows all ids that were assigned."""
        stores = (self.models / version.name for version in reversed(self.all()))
        return next(filter(has_ids, stores), None)

    def publish(self, name: str) -> Version:
        """Serve a version; raises as `find` does."""
        with self._held():
            found = self.find(name)
            point_to(self.models, found.name)
        return found._replace(served=True)

    def rollback(self) -> Version:
        """Serve the previously served version again.

        Raises
        ------
        StoreError
            If there is none.
        """
        with self._held():
            served = _served(self.models)
            finished = {version.name: version for version in self.all()}
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
        if not _TAG.fullmatch(tag) or _VERSION.fullmatch(tag) or tag == _POINTER:
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

    def gc(self, keep: int = 3, min_age: float = 3600.0) -> list[str]:
        """Delete old versions, and the remains of unfinished ones.

        The newest versions, the served one, the one that a rollback would serve, and tagged ones are kept. Versions of
        active runs are not touched.

        Parameters
        ----------
        keep
            Number of newest versions to keep.
        min_age
            Age in seconds below which versions are kept, as readers may still use them.

        Returns
        -------
        list of str
            Names of the deleted versions.
        """
        with self._held():
            every, now = self.all(), datetime.now(UTC)
            finished = {version.name for version in every}
            returned_to = [name for name in _served(self.models) if name in finished][:2]
            spared = {version.name for version in every[max(0, len(every) - max(1, keep)) :]} | set(returned_to)
            old = [
                version.name
                for version in every
                if not (version.name in spared or version.tags) and (now - version.created).total_seconds() >= min_age
            ]
            for name in old:
                (self.models / name / "manifest.json").remove()  # from now on it cannot be opened
                (self.models / name).remove()
            return old + self._remove_unfinished(finished)

    def _remove_unfinished(self, finished: set[str]) -> list[str]:
        """Delete versions without a manifest, unless their runs are active; return their names."""
        removed = []
        for name in self.models.children():
            match = _VERSION.fullmatch(name)
            if match is None or name in finished:
                continue
            with suppress(StoreError), hold_run(self.work, match[2]):
                if read_finished(self.models / name) is None:
                    (self.models / name).remove()
                    removed.append(name)
        return removed

    @contextmanager
    def _held(self) -> Iterator[None]:
        with hold(self.work, _FOLDER, f"the versions in {self.work.url}", waiting=lambda message: None):
            yield


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
    models.write_bytes(_POINTER, "\n".join(served[:_SERVED]).encode())


def _served(models: Store) -> list[str]:
    """Return the names of the served version and of those served before, newest first."""
    content = models.read_bytes(_POINTER)
    if content is None:
        return []
    return [line.strip() for line in content.decode(errors="replace").splitlines()] or [""]


def latest_version(models: Store) -> str | None:
    """Return the name of the served version, or None before the first."""
    return next(iter(_served(models)), None)


def next_version(models: Store, run_id: str) -> str:
    """Return the name of a run's version: the existing one, finished or not, or a new one with the next number."""
    numbers = [0]
    for name in models.children():
        match = _VERSION.fullmatch(name)
        if match and match[2] == run_id:
            return name
        if match:
            numbers.append(int(match[1]))
    return f"v{max(numbers) + 1:04}-{run_id}"


def number_of(version: str) -> int:
    """Return the number in a version's name."""
    match = _VERSION.fullmatch(version)
    assert match is not None
    return int(match[1])


def run_of(version: str) -> str:
    """Return the run in a version's name."""
    return version.partition("-")[2]


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
        versions = Versions(store)
        return versions.models / versions.find(version).name
    if read_finished(store) is not None:
        return store
    for models in (store, store / _FOLDER):
        served, finished = _served_model(models)
        if finished is None and served != latest_version(models):  # the pointer has moved meanwhile
            served, finished = _served_model(models)
        if finished is not None:
            return finished
        if served is not None:
            names = ", ".join(
                name for name in models.children() if _VERSION.fullmatch(name) and read_finished(models / name)
            )
            raise StoreError(
                f"{models.url}/{_POINTER} names {served!r}, which is not a finished model.",
                f"Give the URL of one of the versions: {names or 'there is none'}.",
            )
    if (store / _FOLDER).exists():
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

    The first one may have been deleted meanwhile.
    """
    store = resolve(url, storage_options, store_timeout, version)
    try:
        return read(store)
    except Daskw2vError:
        again = resolve(url, storage_options, store_timeout, version)
        if again == store:
            raise
    return read(again)


def _served_model(models: Store) -> tuple[str | None, Store | None]:
    """Return the name of the served version, and its folder if it is finished."""
    served = latest_version(models)
    if served is None or not _VERSION.fullmatch(served) or read_finished(models / served) is None:
        return served, None
    return served, models / served
