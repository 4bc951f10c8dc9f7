"""The state of a work directory's models: the served version, tags, holds, versions in deletion; and its history.

States are numbered. Each is an entry of the log `models/state/` (`NumberedLog`), and names the user who changed the
state before it, the time and the reason. A process that changes the state creates the entry after the one that it has
read. If that exists already, the process reads again. So the history is a line, and a process that was paused never
replaces a newer state by an older one. A process that takes over the lease of another process creates an entry without
a change (`fence`): if the other process was paused right before its write, the entry that it would create exists.

`LATEST` and `tags.json` are copies for people, and for earlier releases. They are read only where there is no state
yet: in work directories of earlier releases. The first line of `LATEST` names the served version; the next lines name
the versions served before, newest first. The copies also replace a damaged state.
"""

import getpass
import logging
import os
import platform
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any

from daskw2v.errors import DamageError, FrozenError, StoreError
from daskw2v.safe_text import escaped
from daskw2v.store.limits import refused, shown
from daskw2v.store.numbered import NumberedLog
from daskw2v.store.storage import Store

POINTER, TAGS = "LATEST", "tags.json"
_MAX_POINTER = 1 << 20  # bytes that are read of LATEST; those that daskw2v writes have about thousands
_STATE = "state"
_LINE = re.compile(r"v\d{4,}-[^/\\\x00-\x1f]+")  # each line of an undamaged copy
_log = logging.getLogger(__name__)
_KEPT = 128  # newest states that are kept
_MAX_REQUESTS = 100  # whose answers a state keeps
_MAX_SERVED = 100  # names of served versions that a state keeps


@dataclass(frozen=True)
class Change:
    """A change of the state.

    Parameters
    ----------
    action
        The action, such as `publish v0002-b`.
    user
        The user, as `user@host`.
    time
        Time of the change, UTC in ISO format.
    reason
        The reason, in the user's words.
    request
        Id of the caller's request, or ""; a second request with this id changes nothing.
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
        The reason, in the user's words.
    until
        Time at which the hold expires, UTC in ISO format; empty if it never does.
    """

    version: str
    reason: str = ""
    until: str = ""

    def expired(self, now: datetime) -> bool:
        """Return whether the hold has expired; a hold whose time cannot be read never expires."""
        with suppress(ValueError):
            return bool(self.until) and datetime.fromisoformat(self.until).astimezone(UTC) <= now
        return False


@dataclass(frozen=True)
class Answer:
    """The answer to a request, kept so that the request is done once.

    Parameters
    ----------
    action
        As in `Change`.
    served
        The version that was served then; empty if none was.
    """

    action: str
    served: str


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
        Reason why no version may be published, or ""; None if versions may be published.
    requests
        The answers to the last 100 requests, by their ids, oldest first.
    number
        Number of the state; 0 before the first change.
    change
        The change by which the state was made of the state before.
    """

    names: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    condemned: tuple[str, ...] = ()
    holds: Mapping[str, Hold] = field(default_factory=dict)
    frozen: str | None = None
    requests: Mapping[str, Answer] = field(default_factory=dict, compare=False)
    number: int = field(default=0, compare=False)
    change: Change = field(default=Change(), compare=False)

    @property
    def name(self) -> str | None:
        """Name of the served version; None before the first."""
        return next(iter(self.names), None)

    def serving(self, version: str) -> "State":
        """Return the state in which a version is served; this state if it is served already.

        Raises
        ------
        FrozenError
            If another version is served, and none may be published.
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
        return replace(self, names=(version, *self.names)[:_MAX_SERVED])

    def without_holds(self, key: str, version: str = "") -> "State":
        """Return the state without the hold of that key, and without all holds of a version unless it is ""."""
        holds = {k: hold for k, hold in self.holds.items() if k != key and hold.version != version}
        return replace(self, holds=holds)

    def check(self, version: str) -> None:
        """Check that a version is not being deleted; raises a StoreError if it is."""
        if version in self.condemned:
            raise StoreError(f"{version} is being deleted.", "Give another version.")


def read_state(models: Store) -> State:
    """Return the newest state of the models, from the folder `models/`.

    If the state's file is damaged, the state is made of the copies `LATEST` and `tags.json` and of the state before.
    Then a warning is logged, until the next change.

    Raises
    ------
    StoreError
        If entries have wrong types, or a newer daskw2v wrote them.
    """
    log = _open_log(models)
    while True:
        number = log.newest_number()
        if not number:
            return State(_read_pointer(models), _parse_tags(models, models.read_manifest(TAGS) or {"tags": {}}, TAGS))
        try:
            values = log.read(number)
        except DamageError as damage:
            state = _recover(models, number)
            _log.warning("%s %s is served.", escaped(damage.problem), escaped(state.name or "Nothing"))
            return state
        if values is not None:
            return _parse_state(models, number, values)


def read_history(models: Store) -> Iterator[State]:
    """Yield the states that are kept, newest first; damaged states are passed over."""
    log = _open_log(models)
    for number in sorted(log.list_numbers(), reverse=True):
        with suppress(DamageError):
            values = log.read(number)
            if values is not None:
                yield _parse_state(models, number, values)


def change_state(
    models: Store, change: Callable[[State], State], action: str, *, reason: str = "", request: str = ""
) -> State:
    """Change the state of the models, and return the new state.

    Parameters
    ----------
    models
        The folder `models/`, guarded by the caller's lease.
    change
        Returns the new state for the present one. Called again if another process has changed the state meanwhile.
        An unchanged state is written only for a request.
    action, reason, request
        As in `Change`. If the request, an id of the caller's, was answered before, nothing is changed, and the newest
        state is returned; its `requests` has the answer.

    Raises
    ------
    StoreError
        If the lease is lost, or the request was answered for another action.
    Exception
        The error of `change`.
    """
    while True:
        old = read_state(models)
        if (answer := old.requests.get(request)) is not None:
            if answer.action != action:
                raise StoreError(
                    f"The request {request} was {answer.action!r}, and is {action!r} now.",
                    "Give each request its own id.",
                )
            new = old
            break
        new = change(old)
        if new == old and not request:
            break
        change_made = Change(action, _describe_user(), _format_now(), reason, request)
        requests = {**old.requests, **({request: Answer(action, new.name or "")} if request else {})}
        kept = dict(list(requests.items())[-_MAX_REQUESTS:])
        new = replace(new, number=old.number + 1, change=change_made, requests=kept)
        if _append(models, new):
            break
        models.check()  # raises if the lease is lost
    try:
        _write_copies(models, new)
    except StoreError as error:  # the state is made, whatever becomes of its copies
        _log.warning("%s The copies in %s are old.", escaped(str(error)), escaped(models.url))
    return new


def fence(models: Store, action: str) -> None:
    """Append the newest state again, without a change, so that a paused process cannot create its entry any more."""
    while True:
        state = read_state(models)
        change = Change(action, _describe_user(), _format_now())
        if _append(models, replace(state, number=state.number + 1, change=change)):
            return


def _append(models: Store, state: State) -> str | None:
    """Create the entry of the log for a state; return its identity, None if it exists already."""
    values = {
        "served": list(state.names),
        "tags": dict(state.tags),
        "condemned": list(state.condemned),
        "holds": {key: asdict(hold) for key, hold in state.holds.items()},
        "frozen": state.frozen,
        "requests": {key: asdict(answer) for key, answer in state.requests.items()},
        "change": asdict(state.change),
    }
    return _open_log(models).append(state.number, values)


def _describe_user() -> str:
    """Return the user of this process, as `user@host`."""
    try:
        name = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container's user without a name
        name = str(getattr(os, "getuid", str)())
    return f"{name}@{platform.node()}"


def _format_now() -> str:
    """Return the present time, UTC in ISO format."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _recover(models: Store, damaged: int) -> State:
    """Return a state that replaces a damaged one: from the copies, or else from the newest undamaged entry before."""
    earlier = next((state for state in read_history(models) if state.number < damaged), State())
    names, tags = _read_pointer(models), _read_tags_copy(models)
    is_intact = bool(names) and all(map(_LINE.fullmatch, names))
    return replace(
        earlier,
        names=names if is_intact else earlier.names,
        tags=earlier.tags if tags is None else tags,
        number=damaged,
        change=Change(),
    )


def _parse_state(models: Store, number: int, values: Mapping[str, Any]) -> State:
    """Return the state in the values of an entry; raises StoreError if a value has a wrong type."""
    name = f"{_STATE}/{number:08}.json"

    def check(entry: str, is_valid: bool) -> None:
        if not is_valid:
            raise refused(f"{models.url}/{name}", f"holds {entry}={shown(values.get(entry))}")

    def strings(entry: str) -> tuple[str, ...]:
        texts = values.get(entry)
        check(entry, isinstance(texts, list) and all(isinstance(text, str) for text in texts))
        return tuple(texts or ())

    holds, frozen, change = values.get("holds", {}), values.get("frozen"), values.get("change", {})
    requests = values.get("requests", {})
    check("frozen", frozen is None or isinstance(frozen, str))
    check("change", _is_record(change, Change))
    check("holds", isinstance(holds, dict) and all(_is_record(hold, Hold) for hold in holds.values()))
    check("requests", isinstance(requests, dict) and all(_is_record(answer, Answer) for answer in requests.values()))
    return State(
        strings("served"),
        _parse_tags(models, values, name),
        strings("condemned"),
        {key: Hold(**hold) for key, hold in holds.items()},
        frozen,
        {key: Answer(**answer) for key, answer in requests.items()},
        number,
        Change(**change),
    )


def _is_record(values: Any, cls: type[Change | Hold | Answer]) -> bool:
    """Return whether values are a dictionary of texts from which a class can be made."""
    required = {f.name for f in fields(cls) if f.default is MISSING}
    if not isinstance(values, dict) or not required <= values.keys() <= cls.__dataclass_fields__.keys():
        return False
    return all(isinstance(value, str) for value in values.values())


def _read_pointer(models: Store) -> tuple[str, ...]:
    """Return the names in the copy `LATEST`, the served one first; () if it does not exist."""
    content = models.read_bytes(POINTER, _MAX_POINTER)
    if content is None:
        return ()
    return tuple(line.strip() for line in content.decode(errors="replace").splitlines()) or ("",)


def _parse_tags(models: Store, values: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return the tags in values of the file `name`; raises StoreError if they have wrong types."""
    tags = values.get("tags", {})
    if not isinstance(tags, dict) or not all(isinstance(version, str) for version in tags.values()):
        raise refused(f"{models.url}/{name}", f"holds tags={shown(tags)}")
    return tags


def _write_copies(models: Store, state: State) -> None:
    """Copy a state, and then the newest one, to `LATEST` and `tags.json`.

    Copying changes no state, so it needs no lease: a process that was paused may copy a state that is not the newest
    any more, but then it copies the newest.
    """
    models = replace(models, guards=())
    copied = -1
    while state.number != copied:
        copied = state.number
        if state.names and state.names != _read_pointer(models):
            models.write_bytes(POINTER, "\n".join(state.names).encode())
        if state.tags != (_read_tags_copy(models) or {}):
            models.write_manifest({"tags": dict(state.tags)}, TAGS)
        state = read_state(models)


def _read_tags_copy(models: Store) -> dict[str, str] | None:
    """Return the tags in the copy `tags.json`; None if it does not exist or is damaged."""
    with suppress(StoreError):
        values = models.read_manifest(TAGS)
        return None if values is None else _parse_tags(models, values, TAGS)
    return None


def _open_log(models: Store) -> NumberedLog:
    """Return the log of the states."""
    return NumberedLog(models / _STATE, _KEPT)
