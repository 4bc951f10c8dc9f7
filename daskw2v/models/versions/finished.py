"""The finished versions of a model: their names, manifests, tags and damage.

The name of a version is a number and the name of the run that wrote it, as in v0002-3f2a.
"""

import re
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from daskw2v.errors import DamageError, FormatError, StoreError, VocabularyError
from daskw2v.models.stored.index_files import FOLDER as INDEX
from daskw2v.models.stored.index_files import read_file, read_summary
from daskw2v.models.stored.store import (
    check_attempt,
    has_ids,
    open_tables,
    read_attempt,
    read_features,
    read_finished,
    read_ids,
    read_sources,
    read_subwords,
    read_vocabulary,
)
from daskw2v.models.versions.state import POINTER, State, read_state
from daskw2v.store.checksums import METADATA
from daskw2v.store.limits import refused, shown
from daskw2v.store.storage import MANIFEST, Store
from daskw2v.store.verification import find_damage

VERSION = re.compile(r"v(\d{4,})-([^/\\]+)")
RUN = re.compile("[0-9a-f]{12}")
FOLDER = "models"


class Version(NamedTuple):
    """A finished version: its name, manifest and tags, and whether it is served."""

    name: str
    manifest: dict[str, Any]
    tags: tuple[str, ...] = ()
    served: bool = False

    def in_state(self, state: State) -> "Version":
        """Return the version with its tags in a state, and whether it is served."""
        tags = tuple(tag for tag, tagged in state.tags.items() if tagged == self.name)
        return self._replace(tags=tags, served=self.name == state.name)

    @property
    def created(self) -> datetime:
        """Time at which the version was finished.

        Raises
        ------
        FormatError
            If the manifest lacks the time.
        """
        try:
            return datetime.fromisoformat(self.manifest["created"]).astimezone(UTC)
        except (LookupError, TypeError, ValueError, OverflowError):
            raise self._make_error("created") from None

    @property
    def words(self) -> int:
        """Number of words; raises a FormatError if the manifest lacks it."""
        match self.manifest.get("tables"):
            case {"input": [int(words), int()]}:
                return words
        raise self._make_error("tables")

    def _make_error(self, entry: str) -> FormatError:
        """Return the error for a wrong value of an entry of the manifest, which it names."""
        return refused(f"The manifest of {self.name}", f"holds {entry}={shown(self.manifest.get(entry))}")


class Problems(NamedTuple):
    """Problems of versions by the versions' names: damage of files, or the error for a version of another daskw2v."""

    damaged: dict[str, list[DamageError]]
    foreign: dict[str, FormatError]


@dataclass(frozen=True)
class FinishedVersions:
    """The finished versions of a work directory's model: the methods of `Versions` that change nothing.

    Parameters
    ----------
    work
        The work directory.
    """

    work: Store

    @property
    def models(self) -> Store:
        """Folder of the versions."""
        return self.work / FOLDER

    def all(self) -> list[Version]:
        """Return the finished versions with undamaged manifests of this daskw2v, in order of their numbers.

        Examples
        --------
        >>> import daskw2v
        >>> [(version.name, version.served) for version in daskw2v.Versions.open("work").all()]
        [('v0001-a', False), ('v0002-b', True)]
        """
        return self._read_all(read_state(self.models))

    def _read_all(self, state: State) -> list[Version]:
        """Return the finished versions with their tags in a state, without versions that are being deleted."""
        versions = list[Version]()
        for name in self._list_names():
            with suppress(DamageError, FormatError):
                if name not in state.condemned and (version := self._read_version(name, state)) is not None:
                    versions.append(version)
        return versions

    def _read_version(self, name: str, state: State) -> Version | None:
        """Return a version; None if it is not finished; raises as `read_finished` and the version's fields do."""
        manifest = read_finished(self.models / name)
        if manifest is None:
            return None
        version = Version(name, manifest).in_state(state)
        version.created, version.words  # noqa: B018
        return version

    def _list_names(self) -> list[str]:
        """Return the names of all versions, finished or not, in order of their numbers."""
        return sorted(filter(VERSION.fullmatch, self.models.children()), key=parse_number)

    def damaged(self, *, full: bool = False) -> dict[str, list[DamageError]]:
        """Return the damage of each damaged version, among those that were finished, by the version's name.

        Parameters
        ----------
        full
            Whether to read all versions. By default only manifests and metadata are read, and sizes compared.

        Examples
        --------
        >>> import daskw2v
        >>> daskw2v.Versions.open("work").damaged(full=True)
        {}
        """
        return self.problems(full=full).damaged

    def problems(self, *, full: bool = False) -> Problems:
        """Return damaged versions, as `damaged` does, and versions of another daskw2v, which this one never changes.

        Examples
        --------
        >>> import daskw2v
        >>> daskw2v.Versions.open("work").problems().foreign
        {}
        """
        state, problems = read_state(self.models), Problems({}, {})
        for name in self._list_finished():
            try:
                damage = find_version_damage(self.models / name, full=full)
                if damage:
                    problems.damaged[name] = damage
                else:
                    self._read_version(name, state)
            except FormatError as error:
                problems.foreign[name] = error
        return problems

    def _list_finished(self) -> list[str]:
        """Return the names of versions that were finished, damaged or not, in order of their numbers."""
        state = read_state(self.models)
        known = {*state.names, *state.tags.values()}  # even without a manifest
        return [
            name
            for name in self._list_names()
            if name not in state.condemned and (name in known or (self.models / name).size(MANIFEST) is not None)
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
            The damage of each version, by the version's name; an empty list for an undamaged version. If all versions
            are read, versions that another daskw2v wrote are left out.

        Raises
        ------
        StoreError
            If there is no such version, or the store fails.

        Examples
        --------
        >>> import daskw2v
        >>> daskw2v.Versions.open("work").verify()
        {'v0001-a': [], 'v0002-b': []}
        """
        names = self._list_finished()
        if name is None:
            foreign = self.problems().foreign
            names = [version_name for version_name in names if version_name not in foreign]
        else:
            found_name = self.name_of(name)
            names = [found_name] if found_name in names else [self.find(name).name]
        folders = {version_name: self.models / version_name for version_name in names}
        return {
            version_name: find_version_damage(folder, full=True) + _find_index_damage(folder)
            for version_name, folder in folders.items()
        }

    def is_bound(self, name: str) -> bool:
        """Return whether the files of an undamaged version are bound to their locations in the version.

        `name` is not a tag. Neither `verify` nor reading detects swapped files of a version of an older daskw2v.

        Raises
        ------
        DamageError
            If the version is damaged.

        Examples
        --------
        >>> import daskw2v
        >>> daskw2v.Versions.open("work").is_bound("v0002-b")
        True
        """
        return bool(read_attempt(self.models / name))

    def find(self, name: str) -> Version:
        """Return the version with this name or tag, or the served one for `LATEST`.

        Raises
        ------
        StoreError
            If there is no such version.
        DamageError
            If the version's manifest is damaged or missing.
        FormatError
            If another daskw2v wrote the version.

        Examples
        --------
        >>> import daskw2v
        >>> version = daskw2v.Versions.open("work").find("v0001-a")
        >>> version.words, version.manifest["corpus"]["tokens"]
        (60, 9)
        """
        versions = self.all()
        for version in versions:
            if name == version.name or name in version.tags or (name == POINTER and version.served):
                return version
        damaged, foreign = self.problems()
        version_name = self.name_of(name) or ""
        for error in (*damaged.get(version_name, ()), *filter(None, (foreign.get(version_name),))):
            raise error
        known = ", ".join(part for version in versions for part in (version.name, *version.tags)) or "there is none"
        raise StoreError(f"{self.models.url} has no version {name!r}.", f"Give one of its versions or tags: {known}.")

    def name_of(self, name: str = POINTER) -> str | None:
        """Return the name of the version that `LATEST` or a tag refers to, or None.

        The name of a version is returned unchanged, even if there is no such version: only the state is read.

        Examples
        --------
        >>> import daskw2v
        >>> versions = daskw2v.Versions.open("work")
        >>> versions.name_of("LATEST"), versions.name_of("no-tag")
        ('v0002-b', None)
        """
        if name == POINTER:
            return read_state(self.models).name
        return name if VERSION.fullmatch(name) else self.tags().get(name)

    def newest_with_ids(self) -> Store | None:
        """Return the folder of the newest finished version with stable ids, which has all ids ever assigned; or None.

        Versions whose ids or words are damaged are passed over.
        """
        stores = (self.models / version.name for version in reversed(self.all()))
        return next(filter(_has_intact_ids, stores), None)

    def tags(self) -> dict[str, str]:
        """Return the name of the version of each tag.

        Raises
        ------
        StoreError
            If the state of the versions cannot be read.

        Examples
        --------
        >>> import daskw2v
        >>> versions = daskw2v.Versions.open("work")
        >>> _ = versions.tag("v0001-a", "paper")
        >>> versions.tags()
        {'paper': 'v0001-a'}
        """
        return dict(read_state(self.models).tags)


def find_version_damage(version: Store, *, full: bool = False) -> list[DamageError]:
    """Return the damage of a version, without its index.

    Parameters
    ----------
    version
        Folder of a version that was finished.
    full
        Whether to read all files. By default only manifests and metadata are read, and sizes compared.

    Returns
    -------
    list of DamageError
        One for each damaged or missing file; empty if the version is undamaged.

    Raises
    ------
    FormatError
        If another daskw2v wrote the version.
    StoreError
        If the store fails.
    """
    damage = find_damage(version, full=full, skip=INDEX)
    if version.read_bytes(MANIFEST) is None:
        damage.append(DamageError.of(f"{version.url}/{MANIFEST}", "is missing"))
    return damage or _find_contradictions(version, full=full)


def check_version(version: Store) -> None:
    """Check the manifests and metadata of a version, and the sizes of its files.

    Raises
    ------
    DamageError
        If a file is damaged or missing.
    StoreError
        As `find_version_damage` does.
    """
    for damage in find_version_damage(version):
        raise damage


def _find_contradictions(version: Store, *, full: bool) -> list[DamageError]:
    """Return the damage of a version whose files are each undamaged: parts are missing, or contradict each other.

    Words, network, features and ids are read only with `full`.
    """
    try:
        tables = open_tables(version)
        for table in tables.values():
            if read_attempt(version) and not table.array.is_finished:
                raise DamageError.of(f"{table.array.url}/{METADATA}", "lacks the checksums of its chunks")
        check_attempt(version, read_finished(version) or {})
        read_sources(version)
        if full:
            for read in (read_vocabulary, read_subwords, read_features, read_ids):
                read(version)
    except DamageError as damage:
        return [damage]
    except VocabularyError as error:
        return [DamageError(error.problem, error.remedy, version.url)]
    return []


def _find_index_damage(version: Store) -> list[DamageError]:
    """Return the damage of a version's index, which can be built again; raises as `find_version_damage` does."""
    try:
        if (version / INDEX).read_manifest() is not None:
            summary = read_summary(version)
            read_file(version, summary, (summary.words, summary.dimensions))
    except DamageError as damage:
        return [damage]
    return []


def next_version(models: Store, run_id: str, damaged: Collection[str] = ()) -> str:
    """Return the name of a run's version: the existing one, finished or not, or a new one with the next number.

    Parameters
    ----------
    models
        Folder of the versions.
    run_id
        Name of the run.
    damaged
        Names of versions that do not count as existing; nor do versions in deletion and versions of another daskw2v.
    """
    condemned = read_state(models).condemned
    numbers = [0]
    for name in (*models.children(), *condemned):
        match = VERSION.fullmatch(name)
        if match and match[2] == run_id and name not in (*damaged, *condemned) and not _is_foreign(models / name):
            return name
        if match:
            numbers.append(int(match[1]))
    return f"v{max(numbers) + 1:04}-{run_id}"


def parse_number(version: str) -> int:
    """Return the number in a version's name."""
    match = VERSION.fullmatch(version)
    assert match is not None
    return int(match[1])


def parse_run_id(version: str) -> str:
    """Return the name of the run in a version's name."""
    return version.partition("-")[2]


def _is_foreign(version: Store) -> bool:
    """Return whether a version, by its folder, is of another daskw2v."""
    try:
        version.read_manifest()
    except FormatError:
        return True
    except DamageError:  # raised again where it is read
        pass
    return False


def _has_intact_ids(version: Store) -> bool:
    """Return whether a version, by its folder, has stable ids, and ids and words are undamaged."""
    try:
        return has_ids(version) and read_ids(version) is not None and read_vocabulary(version) is not None
    except (DamageError, FormatError, VocabularyError):
        return False
