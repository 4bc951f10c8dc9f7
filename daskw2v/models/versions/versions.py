"""Versions of a model: immutable folders below `models/`, of which one is served.

A version is finished once its manifest exists, and never changes after that. The state (`state.py`) names the served
one. So a reader always sees a complete version, old or new.
"""

import os
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, TypeVar

from daskw2v.errors import BusyError, ParameterError, StoreError, SupersededError
from daskw2v.models.stored.store import finish
from daskw2v.models.versions.finished import (
    FOLDER,
    VERSION,
    FinishedVersions,
    Version,
    check_version,
    parse_number,
    parse_run_id,
)
from daskw2v.models.versions.state import POINTER, Hold, State, change_state, fence, read_history, read_state
from daskw2v.store.checksums import METADATA
from daskw2v.store.lease import hold, hold_run
from daskw2v.store.retries import TIMEOUT
from daskw2v.store.storage import MANIFEST, Store
from daskw2v.store.urls import Location, as_url

_MAX_HOURS = 876_000  # a hundred years
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

    def publish(self, name: str, *, expected: str | None = "", reason: str = "", request: str = "") -> Version:
        """Serve a version, and return it; `served` is false if the request was answered before, and another is served.

        Parameters
        ----------
        name
            Name or tag of the version.
        expected
            Name or tag of the version that must be served until now, None for no version; by default any. If `name` is
            served already, any value is accepted.
        reason
            Why, for the history.
        request
            An id of this request. A second call with the same id changes nothing, and returns the version as it is now.

        Raises
        ------
        SupersededError
            If another version than `expected` is served.
        FrozenError
            If the versions are frozen.
        StoreError
            If there is no such version, it is being deleted, or `request` was of another change.
        DamageError
            If files of the version are damaged or missing.

        Examples
        --------
        >>> import daskw2v
        >>> versions = daskw2v.Versions.open("work")
        >>> versions.publish("v0001-a", expected="v0002-b", reason="v0002-b lacks names").served
        True
        >>> versions.name_of("LATEST")
        'v0001-a'
        """
        with self._locked() as locked:
            version = locked.find(name)
            check_version(locked.models / version.name)
            before = (locked.name_of(expected) or expected) if expected else expected

            def serve(state: State) -> State:
                if before != "" and state.name not in (before, version.name):
                    raise SupersededError(
                        f"{version.name} was to be served instead of {before or 'no version'}, but "
                        f"{state.name or 'no version'} is served.",
                        "Look at `daskw2v versions log`; publish it by its name if it is to be served all the same.",
                    )
                return state.serving(version.name)

            state = change_state(locked.models, serve, f"publish {version.name}", reason=reason, request=request)
        return version.in_state(state)

    def rollback(self, to: str | None = None, *, reason: str = "", request: str = "") -> Version:
        """Serve a version again that was served before.

        Parameters
        ----------
        to
            Name or tag of the version; by default the last one served before the present one that is neither damaged
            nor written by another release of daskw2v.
        reason
            Why, for the history.
        request
            An id of this request. A second call with the same id changes nothing. Each call without `to` and `request`
            goes back one version more.

        Returns
        -------
        Version
            The version that is served now; for a repeated request, the one that was served after the first call.

        Raises
        ------
        SupersededError
            If another process changes what is served meanwhile, and `to` is None.
        StoreError
            If no such version was served before, or `request` was of another change.
        DamageError
            If files of the version `to` are damaged or missing.

        Examples
        --------
        >>> import daskw2v
        >>> versions = daskw2v.Versions.open("work")
        >>> versions.rollback(request="ticket-7").name, versions.rollback(request="ticket-7").name
        ('v0001-a', 'v0001-a')
        """
        first_state = read_state(self.models)
        with self._locked() as locked:
            damaged, foreign = locked.problems()
            finished = {version.name: version for version in locked.all() if version.name not in {*damaged, *foreign}}
            target = None if to is None else locked.find(to).name
            if target is not None:
                check_version(locked.models / target)

            def restore(state: State) -> State:
                if to is None and state.name != first_state.name:
                    raise SupersededError(
                        f"{first_state.name or 'No version'} was to be rolled back, but {state.name} is served.",
                        "Roll back again if that is to end, too; or give the version: rollback --to VERSION.",
                    )
                candidates = finished.keys() - state.condemned if target is None else {target}
                first = 0 if target == state.name else 1
                earlier = [index for index, name in enumerate(state.names) if index >= first and name in candidates]
                if not earlier:
                    raise StoreError(
                        f"{target or 'No version'} was {'not ' if target else ''}served in {self.models.url} before "
                        f"{state.name or 'any'}.",
                        "Publish a version by its name.",
                    )
                if target is not None:
                    state.check(target)
                return replace(state, names=state.names[earlier[0] :])

            action = "rollback" if target is None else f"rollback to {target}"
            state = change_state(locked.models, restore, action, reason=reason, request=request)
            answer = state.requests.get(request)
            name = state.names[0] if answer is None else answer.served
            return finished[name].in_state(state) if name in finished else locked.find(name)

    def log(self) -> list[State]:
        """Return the last 128 states of the versions, oldest first, without damaged ones.

        Examples
        --------
        >>> import daskw2v
        >>> versions = daskw2v.Versions.open("work")
        >>> _ = versions.rollback(reason="bad neighbours of king")
        >>> last = versions.log()[-1]
        >>> last.name, last.change.action, last.change.reason
        ('v0001-a', 'rollback', 'bad neighbours of king')
        """
        return list(read_history(self.models))[::-1]

    def tag(self, name: str, tag: str, *, reason: str = "") -> Version:
        """Give a version a tag, which is moved if another version has it.

        Parameters
        ----------
        name
            Name or other tag of the version, or LATEST.
        tag
            The tag: up to 100 letters, digits, '.', '_', '-'.
        reason
            Why, for the history.

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

            def add_tag(state: State) -> State:
                state.check(version.name)
                return replace(state, tags={**state.tags, tag: version.name})

            return version.in_state(change_state(locked.models, add_tag, f"tag {version.name} {tag}", reason=reason))

    def untag(self, tag: str, *, reason: str = "") -> None:
        """Remove a tag; its version stays, and the history keeps `reason`.

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

        def remove_tag(state: State) -> State:
            if tag not in state.tags:
                known = ", ".join(state.tags) or "none"
                raise StoreError(f"{self.models.url} has no tag {tag!r}.", f"Its tags: {known}.")
            return replace(state, tags={other: version for other, version in state.tags.items() if other != tag})

        with self._locked() as locked:
            change_state(locked.models, remove_tag, f"untag {tag}", reason=reason)

    def freeze(self, reason: str = "") -> None:
        """Serve no other version until `unfreeze`; only `rollback`, and `gc` of damaged ones, change what is served.

        Trainings and retrainings go on, and finish versions that are not served.

        Examples
        --------
        >>> import daskw2v
        >>> versions = daskw2v.Versions.open("work")
        >>> versions.freeze("audit until Monday")
        >>> versions.log()[-1].frozen
        'audit until Monday'
        >>> versions.unfreeze()
        """
        with self._locked() as locked:
            change_state(locked.models, lambda state: replace(state, frozen=reason), "freeze", reason=reason)

    def unfreeze(self) -> None:
        """End `freeze`.

        Examples
        --------
        >>> import daskw2v
        >>> versions = daskw2v.Versions.open("work")
        >>> versions.freeze()
        >>> versions.unfreeze()
        >>> versions.publish("v0001-a").served
        True
        """
        with self._locked() as locked:
            change_state(locked.models, lambda state: replace(state, frozen=None), "unfreeze")

    def hold(self, name: str, reason: str = "", hours: float | None = None) -> str:
        """Keep a version from deletion by `gc`, and return the id of this hold.

        Parameters
        ----------
        name
            Name or tag of the version, or LATEST.
        reason
            Why, for the history.
        hours
            Hours after which the hold expires, above 0 and at most 876,000; None for never. The clock of the process
            that calls `gc` decides.

        Raises
        ------
        ParameterError
            If `hours` is out of range.
        StoreError
            If there is no such version, or it is being deleted.

        Examples
        --------
        >>> import daskw2v
        >>> versions = daskw2v.Versions.open("work")
        >>> key = versions.hold("v0001-a", reason="a batch job reads it", hours=12)
        >>> versions.log()[-1].holds[key].version
        'v0001-a'
        >>> versions.release(key)
        """
        return self._hold(name, reason, hours)[0]

    def _hold(self, name: str, reason: str, hours: float | None) -> tuple[str, Version]:
        """Keep a version from deletion, as `hold` describes; return the id of the hold, and the version."""
        if hours is not None and not 0 < hours <= _MAX_HOURS:
            raise ParameterError(
                f"hours={hours!r} is not above 0 and at most {_MAX_HOURS:,}.", "Give hours, such as 12."
            )
        key = uuid.uuid4().hex[:8]
        until = "" if hours is None else (datetime.now(UTC) + timedelta(hours=hours)).isoformat(timespec="seconds")
        with self._locked() as locked:
            version = locked.find(name)

            def add_hold(state: State) -> State:
                state.check(version.name)
                return replace(state, holds={**state.holds, key: Hold(version.name, reason, until)})

            change_state(locked.models, add_hold, f"hold {version.name}", reason=reason)
        return key, version

    def release(self, name: str) -> None:
        """End a hold, by its id, or all holds of a version, by its name or tag, or LATEST.

        Raises
        ------
        StoreError
            If there is no such hold.

        Examples
        --------
        >>> import daskw2v
        >>> versions = daskw2v.Versions.open("work")
        >>> _ = versions.hold("v0001-a")
        >>> versions.release("v0001-a")
        >>> versions.log()[-1].holds
        {}
        """

        def remove_holds(state: State) -> State:
            version = state.name or "" if name == POINTER else state.tags.get(name, name)
            after = state.without_holds(name, version)
            if after == state:
                known = ", ".join(f"{key} of {hold.version}" for key, hold in state.holds.items()) or "none"
                raise StoreError(f"{self.models.url} has no hold {name!r}.", f"Its holds: {known}.")
            return after

        with self._locked() as locked:
            change_state(locked.models, remove_holds, f"release {name}")

    @contextmanager
    def holding(self, name: str = POINTER, *, hours: float = 24.0) -> Iterator[Version]:
        """Keep a version from deletion while a block reads it; yield the version.

        Parameters
        ----------
        name
            Name or tag of the version; by default the served one.
        hours
            Hours after which the hold expires, whether the block has ended or not, as in `hold`.

        Examples
        --------
        >>> import daskw2v
        >>> versions = daskw2v.Versions.open("work")
        >>> with versions.holding() as version:
        ...     daskw2v.open("work", version=version.name)["king"].shape
        (8,)
        """
        key, version = self._hold(name, "a reader", hours)
        try:
            yield version
        finally:
            with self._locked() as locked:
                change_state(locked.models, lambda state: state.without_holds(key), f"release {key}")

    def gc(self, keep: int = 3, min_age: float = 3600.0, *, damaged: bool = False) -> list[str]:
        """Delete old versions, and folders of versions that interrupted runs did not finish.

        The newest versions, the served one, the one that a rollback would serve, tagged ones and those on hold are
        kept. Versions of active runs are not touched. Damaged versions do not count as versions to keep; they stay,
        unless `damaged`. A version in a format of another daskw2v release does not count, and stays.

        Parameters
        ----------
        keep
            Number of newest versions to keep, at least 1.
        min_age
            Age in seconds below which undamaged versions are kept, as readers may still use them.
        damaged
            Whether to read all versions and delete damaged ones that are neither tagged nor on hold. If such a version
            was served, the version served before it is served again, or the newest if there is none.

        Returns
        -------
        list of str
            Names of the deleted versions, unfinished ones included.

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

            def condemn(state: State) -> State:
                holds = {key: hold for key, hold in state.holds.items() if not hold.expired(now)}
                on_hold = {hold.version for hold in holds.values()}
                unusable = {*damaged_names, *foreign}
                versions = [version for version in locked._read_all(state) if version.name not in unusable]
                finished = [version.name for version in versions]
                kept = {*finished[-max(1, keep) :], *[name for name in state.names if name in finished][:2]}
                candidates = [version for version in versions if not (version.name in kept | on_hold or version.tags)]
                old = [version.name for version in candidates if (now - version.created).total_seconds() >= min_age]
                if damaged:
                    old += [name for name in damaged_names if name not in {*state.tags.values(), *on_hold}]
                    state = _serve_another(state, old, {*finished})
                return replace(state, condemned=tuple(dict.fromkeys((*state.condemned, *old))), holds=holds)

            # The names are recorded before the deletion: from then on no process serves or tags these versions
            condemned = list(filter(VERSION.fullmatch, change_state(locked.models, condemn, "gc").condemned))
            for name in condemned:
                (locked.models / name / MANIFEST).remove()  # from now on the version cannot be opened
                (locked.models / name).remove()
            locked.models.force_names()  # or a power loss could bring a version back that is no longer condemned
            deleted = f"gc: deleted {', '.join(condemned)}"
            change_state(locked.models, lambda state: replace(state, condemned=()), deleted)
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
        subject, fenced = f"the versions in {self.work.url}", partial(fence_versions, self.work)
        with hold(self.work, FOLDER, subject, waiting=lambda message: None, taken_over=fenced) as lease:
            yield Versions(lease.guard(self.work))


def fence_versions(work: Store, holder: str) -> None:
    """Create the state that a former holder of a lease may be about to create, without a change; for `lease.hold`.

    `holder` is the name of the former holder.
    """
    fence(work / FOLDER, f"take over from {holder}")


def publish(models: Store, version: str, manifest: Mapping[str, Any]) -> None:
    """Write the manifest of a version, as `finish` does, and serve the version."""
    finish(models / version, manifest)
    serve_version(models, version)


def serve_version(models: Store, version: str) -> None:
    """Serve a finished version, atomically; raises as `State.serving` does."""
    change_state(models, lambda state: state.serving(version), f"publish {version}")


def list_served(models: Store) -> list[str]:
    """Return the names of the served version and of the versions served before, newest first."""
    return list(dict.fromkeys(filter(VERSION.fullmatch, read_state(models).names)))


def latest_version(models: Store) -> str | None:
    """Return the name of the served version; None before the first."""
    return read_state(models).name


def _serve_another(state: State, removed: list[str], intact: set[str]) -> State:
    """Return a state that serves an undamaged version if the served one is removed.

    It is the version that was served before, or else the newest. `intact` are the names of undamaged versions.
    """
    names = [name for name in state.names if name in intact] or sorted(intact, key=parse_number)[-1:]
    return replace(state, names=tuple(names)) if names and state.name in removed else state


def _is_begun(version: Store) -> bool:
    """Return whether a folder is a version that daskw2v began to write, and not another folder with such a name."""
    names, local = version.children(), version.local_path
    is_link = local is not None and os.path.islink(local)  # perhaps a link to a disk that is not mounted now
    return METADATA in names or not (names or is_link)
