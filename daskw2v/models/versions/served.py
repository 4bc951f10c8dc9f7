"""The state of a work directory's models: the served version and the versions before it, tags, versions in deletion.

The state is the newest entry of the log `models/state/` (`NumberedLog`). A process that changes the state creates the
entry after the one that it has read. If that exists already, the process reads again. So a process that was paused
never replaces a newer state by an older one.

`LATEST` and `tags.json` are copies for people, and for earlier releases. They are read only where there is no state
yet: in work directories of earlier releases. The first line of `LATEST` names the served version; the next lines name
the versions served before, newest first. The copies also replace a damaged state.
"""

import logging
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from daskw2v.errors import DamageError, StoreError
from daskw2v.safe_text import escaped
from daskw2v.store.limits import refused, shown
from daskw2v.store.numbered import NumberedLog
from daskw2v.store.storage import Store

POINTER, TAGS = "LATEST", "tags.json"
_MAX_POINTER = 1 << 20  # bytes that are read of LATEST; those that daskw2v writes have some thousands
_STATE = "state"
_LINE = re.compile(r"v\d{4,}-[^/\\\x00-\x1f]+")  # each line of an undamaged copy
_log = logging.getLogger(__name__)
_KEPT = 8  # newest states that are kept, for people
_MAX_SERVED = 100  # names of served versions that a state keeps


@dataclass(frozen=True)
class Served:
    """The state of a work directory's models.

    Parameters
    ----------
    names
        The served version, and the versions served before, newest first.
    tags
        The version of each tag.
    condemned
        Versions that are being deleted. They cannot be served or tagged again.
    """

    names: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    condemned: tuple[str, ...] = ()

    @property
    def name(self) -> str | None:
        """Name of the served version; None before the first."""
        return next(iter(self.names), None)

    def serving(self, version: str) -> "Served":
        """Return the state in which a version is served; raises a StoreError if it is being deleted."""
        self._check(version)
        return self if version == self.name else replace(self, names=(version, *self.names)[:_MAX_SERVED])

    def tagging(self, tag: str, version: str) -> "Served":
        """Return the state in which a version has a tag; raises as `serving` does."""
        self._check(version)
        return replace(self, tags={**self.tags, tag: version})

    def _check(self, version: str) -> None:
        """Raise a StoreError if a version is being deleted."""
        if version in self.condemned:
            raise StoreError(f"{version} is being deleted.", "Give another version.")


def read_served(models: Store) -> Served:
    """Return the state of the models, from the folder `models/`.

    If the state's file is damaged, the state is made of the copies `LATEST` and `tags.json` and of the entry before.
    Then a warning is logged, until the next change.

    Raises
    ------
    StoreError
        If entries have wrong types, or a newer daskw2v wrote them.
    """
    return _read_newest(models)[1]


def change_served(models: Store, change: Callable[[Served], Served]) -> Served:
    """Change the state of the models, and return the new state.

    Parameters
    ----------
    models
        The folder `models/`, guarded by the caller's lease.
    change
        Returns the new state for the present one. Called again if another process has changed the state meanwhile.

    Raises
    ------
    StoreError
        If the lease is lost.
    Exception
        The error of `change`.
    """
    while True:
        number, old = _read_newest(models)
        new = change(old)
        if new == old:
            break
        values = {"served": list(new.names), "tags": dict(new.tags), "condemned": list(new.condemned)}
        if _open_log(models).append(number + 1, values):
            break
        models.check()  # raises if the lease is lost
    _write_copies(models)
    return new


def _read_newest(models: Store) -> tuple[int, Served]:
    """Return the number of the newest state, and the state; 0 and the state of the copies if there is none yet."""
    states = _open_log(models)
    while True:
        number = states.newest_number()
        if not number:
            return 0, Served(
                _read_pointer(models), _parse_tags(models, models.read_manifest(TAGS) or {"tags": {}}, TAGS)
            )
        try:
            values = states.read(number)
        except DamageError as damage:
            served = _recover(models, number)
            _log.warning("%s %s is served.", escaped(damage.problem), escaped(served.name or "Nothing"))
            return number, served
        if values is not None:
            return number, _parse_state(models, number, values)


def _recover(models: Store, damaged: int) -> Served:
    """Return a state that replaces a damaged one: from the copies, or else from the newest undamaged entry before."""
    earlier = Served()
    for number in range(damaged - 1, max(0, damaged - _KEPT), -1):
        with suppress(DamageError):
            values = _open_log(models).read(number)
            if values is not None:
                earlier = _parse_state(models, number, values)
                break
    names, tags = _read_pointer(models), _read_tags_copy(models)
    is_intact = bool(names) and all(map(_LINE.fullmatch, names))
    return replace(earlier, names=names if is_intact else earlier.names, tags=earlier.tags if tags is None else tags)


def _parse_state(models: Store, number: int, values: Mapping[str, Any]) -> Served:
    """Return the state in an entry's values; raises StoreError if they have wrong types."""
    name = f"{_STATE}/{number:08}.json"
    names, condemned = (_parse_texts(models, values, entry, name) for entry in ("served", "condemned"))
    return Served(names, _parse_tags(models, values, name), condemned)


def _read_pointer(models: Store) -> tuple[str, ...]:
    """Return the names in the copy `LATEST`, none if it does not exist."""
    content = models.read_bytes(POINTER, _MAX_POINTER)
    if content is None:
        return ()
    return tuple(line.strip() for line in content.decode(errors="replace").splitlines()) or ("",)


def _parse_texts(models: Store, values: Mapping[str, Any], entry: str, name: str) -> tuple[str, ...]:
    """Return an entry of values that is a list of texts; `name` is the file, for the error."""
    match values.get(entry):
        case [*texts] if all(isinstance(text, str) for text in texts):
            return tuple(texts)
    raise refused(f"{models.url}/{name}", f"holds {entry}={shown(values.get(entry))}")


def _parse_tags(models: Store, values: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return the tags in values of the file `name`; raises StoreError if they have wrong types."""
    tags = values.get("tags", {})
    if not isinstance(tags, dict) or not all(isinstance(version, str) for version in tags.values()):
        raise refused(f"{models.url}/{name}", f"holds tags={shown(tags)}")
    return tags


def _write_copies(models: Store) -> None:
    """Copy the newest state to `LATEST` and `tags.json`.

    Copying changes no state, so it needs no lease: a process that was paused may copy a state that is not the newest
    any more, but it reads again, and copies the newest.
    """
    models = replace(models, guards=())
    copied = None
    while (newest := _read_newest(models)) != copied:
        copied = number, served = newest
        if not number:
            return
        if served.names and served.names != _read_pointer(models):
            models.write_bytes(POINTER, "\n".join(served.names).encode())
        if served.tags != (_read_tags_copy(models) or {}):
            models.write_manifest({"tags": dict(served.tags)}, TAGS)


def _read_tags_copy(models: Store) -> dict[str, str] | None:
    """Return the tags in the copy `tags.json`; None if it does not exist or is damaged."""
    with suppress(StoreError):
        values = models.read_manifest(TAGS)
        return None if values is None else _parse_tags(models, values, TAGS)
    return None


def _open_log(models: Store) -> NumberedLog:
    """Return the log of the states."""
    return NumberedLog(models / _STATE, _KEPT)
