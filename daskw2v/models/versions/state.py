"""The state of a work directory's models: the served version, tags, holds, versions in deletion; and its history.

States are numbered. Each is an entry of the log `models/state/` (`NumberedLog`), and says who changed the state before
it, when and why. A process that changes the state creates the entry after the one that it has read. If there is one
already, the entry is refused and the process reads again. So the history is a line, and a process that was paused never
replaces a newer state by an older one. A process that takes over the lease of another one creates an entry without a
change (`fence`): if the other one was paused right before its write, the number of its entry is taken.

`LATEST` and `tags.json` are copies for people, and for earlier releases. They are read only where there is no state
yet: in work directories of earlier releases. The first line of `LATEST` names the served version; the next lines name
the versions served before, newest first. The copies also stand in for a state that is damaged.
"""

import getpass
import logging
import os
import platform
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from daskw2v.errors import DamageError, FrozenError, StoreError
from daskw2v.safe_text import escaped
from daskw2v.store.limits import refused, shown
from daskw2v.store.numbered import NumberedLog
from daskw2v.store.storage import Store

POINTER, TAGS = "LATEST", "tags.json"
_POINTER_BYTES = 1 << 20  # most bytes that are read of LATEST; daskw2v's own have some thousands
_STATE = "state"
_LINE = re.compile(r"v\d{4,}-[^/\\\x00-\x1f]+")  # each line of an undamaged copy
_log = logging.getLogger(__name__)
_KEPT = 128  # newest states
_SERVED = 100  # most versions that were served before


@dataclass(frozen=True)
class Change:
    """A change of the state.

    Parameters
    ----------
    action
        What was done, such as `publish v0002-b`.
    user
        Who did it, as `user@host`.
    time
        When, in UTC, in ISO format.
    reason
        Why, in the user's words.
    request
        Id that the caller gave the request; a second request with this id changes nothing.
    """

    action: str = ""
    user: str = ""
    time: str = ""
    reason: str = ""
    request: str = ""


@dataclass(frozen=True)
class Hold:
    """A version that is not to be deleted.

    Parameters
    ----------
    version
        Name of the version.
    reason
        Why, in the user's words.
    until
        When the hold expires, in UTC, in ISO format; empty if never.
    """

    version: str
    reason: str = ""
    until: str = ""

    def expired(self, now: datetime) -> bool:
        """Return whether the hold has expired; a time that cannot be read never comes."""
        with suppress(ValueError):
            return bool(self.until) and datetime.fromisoformat(self.until).astimezone(UTC) <= now
        return False


@dataclass(frozen=True)
class State:
    """The state of a work directory's models.

    Parameters
    ----------
    names
        The served version, and the versions served before, newest first.
    tags
        The version of each tag.
    condemned
        Versions that are being deleted. They cannot be served or tagged again.
    holds
        Versions that are not to be deleted, by the ids of the holds.
    frozen
        Why no version may be published; None if versions may be.
    number
        Number of the state; 0 before the first change.
    change
        The change that made it from the state before.
    """

    names: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    condemned: tuple[str, ...] = ()
    holds: Mapping[str, Hold] = field(default_factory=dict)
    frozen: str | None = None
    number: int = field(default=0, compare=False)
    change: Change = field(default=Change(), compare=False)

    @property
    def name(self) -> str | None:
        """The served version; None before the first."""
        return next(iter(self.names), None)

    def serving(self, version: str) -> "State":
        """Return the state in which a version is served.

        Raises
        ------
        FrozenError
            If no version may be published.
        StoreError
            If the version is being deleted.
        """
        self.check(version)
        if version == self.name:
            return self
        if self.frozen is not None:
            raise FrozenError(
                f"{version} is not served: the versions are frozen{f' ({self.frozen})' if self.frozen else ''}.",
                "Unfreeze them first: daskw2v versions unfreeze.",
            )
        return replace(self, names=(version, *self.names)[:_SERVED])

    def without_holds(self, key: str, version: str = "") -> "State":
        """Return the state without the hold of that key and without all holds of a version."""
        holds = {k: hold for k, hold in self.holds.items() if k != key and hold.version != version}
        return replace(self, holds=holds)

    def check(self, version: str) -> None:
        """Check that a version is not being deleted; raises a StoreError if it is."""
        if version in self.condemned:
            raise StoreError(f"{version} is being deleted.", "Give another version.")


def read_state(models: Store) -> State:
    """Read the newest state of the folder `models/`.

    If its file is damaged, the copies `LATEST` and `tags.json` stand in for it, and the state before; a line of the log
    says so, until the next change.

    Raises
    ------
    StoreError
        If entries have wrong types, or a newer daskw2v wrote them.
    """
    log = _states(models)
    while True:
        number = log.newest_number()
        if not number:
            return State(_copied_names(models), _tags_in(models, models.read_manifest(TAGS) or {"tags": {}}, TAGS))
        try:
            values = log.read(number)
        except DamageError as damage:
            state = _stand_in(models, number)
            _log.warning("%s %s is served.", escaped(damage.problem), escaped(state.name or "Nothing"))
            return state
        if values is not None:
            return _parse(models, number, values)


def read_history(models: Store) -> Iterator[State]:
    """Yield the states that are kept, newest first; damaged ones are passed over."""
    log = _states(models)
    for number in range(log.newest_number(), 0, -1):
        with suppress(DamageError):
            values = log.read(number)
            if values is None:
                return
            yield _parse(models, number, values)


def change_state(
    models: Store, change: Callable[[State], State], action: str, *, reason: str = "", request: str = ""
) -> State:
    """Change the state, and return the new one.

    Parameters
    ----------
    models
        The folder `models/`, guarded by the caller's lease.
    change
        Returns the new state. It is called again if another process has changed the state meanwhile.
    action, reason, request
        As of `Change`. If a state of the history has this request, that state is returned, and nothing is changed.

    Raises
    ------
    StoreError
        If the lease is lost.
    Exception
        What `change` raises.
    """
    while True:
        for state in read_history(models) if request else ():
            if state.change.request == request:
                return state
        before = read_state(models)
        after = change(before)
        if after == before and not request:
            break
        if _append(models, before.number + 1, after, Change(action, _user(), _now(), reason, request)):
            break
        models.check()  # raises if the lease is lost
    _copy(models)
    return after


def fence(models: Store, action: str) -> None:
    """Append the state without a change: an entry that a paused process is about to create is refused from then on."""
    while True:
        state = read_state(models)
        if _append(models, state.number + 1, state, Change(action, _user(), _now())):
            return


def _append(models: Store, number: int, state: State, change: Change) -> str | None:
    values = {
        "served": list(state.names),
        "tags": dict(state.tags),
        "condemned": list(state.condemned),
        "holds": {key: asdict(hold) for key, hold in state.holds.items()},
        "frozen": state.frozen,
        "change": asdict(change),
    }
    return _states(models).append(number, values)


def _user() -> str:
    try:
        name = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container's user without a name
        name = str(getattr(os, "getuid", str)())
    return f"{name}@{platform.node()}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _stand_in(models: Store, damaged: int) -> State:
    """Return a state for a damaged one: of its copies, or else the state before."""
    before = next((state for state in read_history(models) if state.number < damaged), State())
    names, tags = _copied_names(models), _copied_tags(models)
    whole = bool(names) and all(map(_LINE.fullmatch, names))
    return replace(
        before,
        names=names if whole else before.names,
        tags=before.tags if tags is None else tags,
        number=damaged,
        change=Change(),
    )


def _parse(models: Store, number: int, values: Mapping[str, Any]) -> State:
    """Return the state that an entry of the log holds; a StoreError names an entry of a wrong type."""
    name = f"{_STATE}/{number:08}.json"

    def check(entry: str, is_valid: bool) -> None:
        if not is_valid:
            raise refused(f"{models.url}/{name}", f"holds {entry}={shown(values.get(entry))}")

    def strings(entry: str) -> tuple[str, ...]:
        texts = values.get(entry)
        check(entry, isinstance(texts, list) and all(isinstance(text, str) for text in texts))
        return tuple(texts or ())

    holds, frozen, change = values.get("holds", {}), values.get("frozen"), values.get("change", {})
    check("frozen", frozen is None or isinstance(frozen, str))
    check("change", _is_record(change, Change))
    check("holds", isinstance(holds, dict) and all(_is_record(hold, Hold) for hold in holds.values()))
    return State(
        strings("served"),
        _tags_in(models, values, name),
        strings("condemned"),
        {key: Hold(**hold) for key, hold in holds.items()},
        frozen,
        number,
        Change(**change),
    )


def _is_record(values: Any, cls: type[Change | Hold]) -> bool:
    """Return whether values are texts by the names of a class's fields."""
    if not isinstance(values, dict) or not values.keys() <= cls.__dataclass_fields__.keys():
        return False
    return all(isinstance(value, str) for value in values.values()) and (cls is Change or "version" in values)


def _copied_names(models: Store) -> tuple[str, ...]:
    content = models.read_bytes(POINTER, _POINTER_BYTES)
    if content is None:
        return ()
    return tuple(line.strip() for line in content.decode(errors="replace").splitlines()) or ("",)


def _tags_in(models: Store, values: Mapping[str, Any], name: str) -> dict[str, str]:
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
    copied = 0
    while (newest := read_state(models)).number != copied:
        copied = newest.number
        if newest.names and newest.names != _copied_names(models):
            models.write_bytes(POINTER, "\n".join(newest.names).encode())
        if newest.tags != (_copied_tags(models) or {}):
            models.write_manifest({"tags": dict(newest.tags)}, TAGS)


def _copied_tags(models: Store) -> dict[str, str] | None:
    """Return the tags of the copy; None if there is none, or it is damaged."""
    with suppress(StoreError):
        values = models.read_manifest(TAGS)
        return None if values is None else _tags_in(models, values, TAGS)
    return None


def _states(models: Store) -> NumberedLog:
    return NumberedLog(models / _STATE, _KEPT)
