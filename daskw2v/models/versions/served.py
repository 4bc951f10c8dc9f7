"""The state of a work directory's models: the served version and the versions before it, tags, versions in deletion.

The state is the newest entry of the log `models/state/` (`NumberedLog`). A process that changes it creates the entry
after the one that it has read. If there is one already, the entry is refused and the process reads again, so a process
that was paused never replaces a newer state by an older one.

`LATEST` and `tags.json` are copies for people, and for earlier releases. They are read only where there is no state
yet: in work directories of earlier releases. The first line of `LATEST` names the served version; the next lines name
the versions served before, newest first. The copies also stand in for a state that is damaged.
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
_POINTER_BYTES = 1 << 20  # most bytes that are read of LATEST; daskw2v's own have some thousands
_STATE = "state"
_LINE = re.compile(r"v\d{4,}-[^/\\\x00-\x1f]+")  # each line of an undamaged copy
_log = logging.getLogger(__name__)
_KEPT = 8  # newest states, for people
_SERVED = 100  # most versions that were served before


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
        """The served version; None before the first."""
        return next(iter(self.names), None)

    def serving(self, version: str) -> "Served":
        """Return the state in which a version is served; raises a StoreError if it is being deleted."""
        self._check(version)
        return self if version == self.name else replace(self, names=(version, *self.names)[:_SERVED])

    def tagging(self, tag: str, version: str) -> "Served":
        """Return the state in which a version has a tag; raises as `serving` does."""
        self._check(version)
        return replace(self, tags={**self.tags, tag: version})

    def _check(self, version: str) -> None:
        if version in self.condemned:
            raise StoreError(f"{version} is being deleted.", "Give another version.")


def read_served(models: Store) -> Served:
    """Read the state of the folder `models/`.

    If its file is damaged, the copies `LATEST` and `tags.json` stand in for it, and the state before; a line of the log
    says so, until the next change.

    Raises
    ------
    StoreError
        If entries have wrong types, or a newer daskw2v wrote them.
    """
    return _read(models)[1]


def change_served(models: Store, change: Callable[[Served], Served]) -> Served:
    """Change the state, and return the new one.

    Parameters
    ----------
    models
        The folder `models/`, guarded by the caller's lease.
    change
        Returns the new state. It is called again if another process has changed the state meanwhile.

    Raises
    ------
    StoreError
        If the lease is lost.
    Exception
        What `change` raises.
    """
    while True:
        number, before = _read(models)
        after = change(before)
        if after == before:
            break
        values = {"served": list(after.names), "tags": dict(after.tags), "condemned": list(after.condemned)}
        if _states(models).append(number + 1, values):
            break
        models.check()  # raises if the lease is lost
    _copy(models)
    return after


def _read(models: Store) -> tuple[int, Served]:
    """Return the newest state and its number; number 0 if there is none yet."""
    states = _states(models)
    while True:
        number = states.newest_number()
        if not number:
            return 0, Served(_names_of(models), _tags_of(models, models.read_manifest(TAGS) or {"tags": {}}, TAGS))
        try:
            values = states.read(number)
        except DamageError as damage:
            served = _without(models, number)
            _log.warning("%s %s is served.", escaped(damage.problem), escaped(served.name or "Nothing"))
            return number, served
        if values is not None:
            return number, _state_of(models, number, values)


def _without(models: Store, damaged: int) -> Served:
    """Return a state for a damaged one: of its copies, or else the state before."""
    before = Served()
    for number in range(damaged - 1, max(0, damaged - _KEPT), -1):
        with suppress(DamageError):
            values = _states(models).read(number)
            if values is not None:
                before = _state_of(models, number, values)
                break
    names, tags = _names_of(models), _written_tags(models)
    whole = bool(names) and all(map(_LINE.fullmatch, names))
    return replace(before, names=names if whole else before.names, tags=before.tags if tags is None else tags)


def _state_of(models: Store, number: int, values: Mapping[str, Any]) -> Served:
    name = f"{_STATE}/{number:08}.json"
    names, condemned = (_texts(models, values, entry, name) for entry in ("served", "condemned"))
    return Served(names, _tags_of(models, values, name), condemned)


def _names_of(models: Store) -> tuple[str, ...]:
    content = models.read_bytes(POINTER, _POINTER_BYTES)
    if content is None:
        return ()
    return tuple(line.strip() for line in content.decode(errors="replace").splitlines()) or ("",)


def _texts(models: Store, values: Mapping[str, Any], entry: str, name: str) -> tuple[str, ...]:
    match values.get(entry):
        case [*texts] if all(isinstance(text, str) for text in texts):
            return tuple(texts)
    raise refused(f"{models.url}/{name}", f"holds {entry}={shown(values.get(entry))}")


def _tags_of(models: Store, values: Mapping[str, Any], name: str) -> dict[str, str]:
    tags = values.get("tags", {})
    if not isinstance(tags, dict) or not all(isinstance(version, str) for version in tags.values()):
        raise refused(f"{models.url}/{name}", f"holds tags={shown(tags)}")
    return tags


def _copy(models: Store) -> None:
    """Copy the newest state to `LATEST` and `tags.json`.

    Copying changes no state, so it needs no lease: a process that is paused here copies a state that is not the newest
    any more, reads again, and copies the newest.
    """
    models = replace(models, guards=())
    copied = None
    while (newest := _read(models)) != copied:
        copied = number, served = newest
        if not number:
            return
        if served.names and served.names != _names_of(models):
            models.write_bytes(POINTER, "\n".join(served.names).encode())
        if served.tags != (_written_tags(models) or {}):
            models.write_manifest({"tags": dict(served.tags)}, TAGS)


def _written_tags(models: Store) -> dict[str, str] | None:
    """Return the tags of the copy; None if there is none, or it is damaged."""
    with suppress(StoreError):
        values = models.read_manifest(TAGS)
        return None if values is None else _tags_of(models, values, TAGS)
    return None


def _states(models: Store) -> NumberedLog:
    return NumberedLog(models / _STATE, _KEPT)
