"""A stage builds a result once: one process at a time, however often it is interrupted.

A result lies in a folder named by its identity. Each attempt of a task or a build writes to its own folder below it, so
a retry never meets files of an earlier attempt. The manifest names the valid attempts. It is written last, after
everything else was deleted: without a manifest there is no result, and with it there is nothing else.
"""

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from daskw2v.errors import DamageError, counted
from daskw2v.progress import Listener, Progress, message_sender, silent
from daskw2v.store.lease import hold
from daskw2v.store.storage import MANIFEST, Store
from daskw2v.store.threads import in_threads

_FILES_AT_ONCE = 256
T = TypeVar("T")
# Called with a step's name, a function, and its arguments by the jobs' names; yields names and results as jobs finish
RunTasks = Callable[..., Iterator[tuple[Any, Any]]]


@dataclass(frozen=True)
class Layout:
    """Paths of a stage's results in a work directory, and which of them are deleted together.

    Parts of a path in angle brackets stand for any name.

    Parameters
    ----------
    damaged
        Path of the part that is deleted, and so built again, if a file in it is damaged, such as
        "vocabulary/<key>/<build>". A file at this path is a manifest.
    unused
        Path of the part that is deleted once no run uses it; none by default.
    remedy
        Remedy of the error for a damaged finished result, which is then never deleted. By default it is deleted.
    """

    damaged: str
    unused: str = ""
    remedy: str = ""

    @property
    def folder(self) -> str:
        """Name of the folder of all results in the work directory."""
        return self.damaged.partition("/")[0]

    def damaged_part(self, path: str) -> str | None:
        """Return the part to delete if the file at a path in the work directory is damaged; None for other stages."""
        return _match_beginning(path, self.damaged)

    def unused_part(self, path: str) -> str | None:
        """Return the part to delete if no run uses a path in the work directory; None for paths of other stages."""
        return _match_beginning(path, self.unused)


def _match_beginning(path: str, pattern: str) -> str | None:
    """Return the beginning of a path that a pattern describes; None if the path does not match the pattern."""
    names, parts = path.split("/"), pattern.split("/")
    if len(names) < len(parts) or any(w != n for w, n in zip(parts, names, strict=False) if not w.startswith("<")):
        return None
    return "/".join(names[: len(parts)])


def remove_damaged(work: Store, part: str) -> None:
    """Delete a damaged part of a layout, at a path in the work directory.

    A manifest is deleted only if it still is damaged: another process may have replaced it.
    """
    folder, _, name = part.rpartition("/")
    if name.endswith(".json"):
        with suppress(DamageError):
            (work / folder).read_manifest(name)
            return
    (work / part).remove()


@dataclass(frozen=True)
class Stage:
    """A stage that returns or builds one result.

    Parameters
    ----------
    work
        The work directory.
    folder
        The folder of the result in the work directory; its name is also the lease's.
    runner
        Returns a function that runs tasks. Called only if the result is to be built, before the lease is acquired: it
        may start a cluster, and check the work directory.
    listener
        Called with the progress.
    name, unit
        The stage and its unit, as reported in progress.
    """

    work: Store
    folder: Store
    runner: Callable[[], RunTasks]
    listener: Listener
    name: str
    unit: str = "tasks"

    def make(self, find: Callable[[], T | None], build: Callable[["OpenStage"], T]) -> T:
        """Return the result of `find`, or the result of `build` if `find` returns None.

        `build` is called while this process holds the lease.

        Raises
        ------
        StoreError
            If another process takes over the lease meanwhile.
        """
        if (result := find()) is not None:
            return result
        run, waiting = self.runner(), message_sender(self.listener, self.name, self.unit)
        with hold(self.work, self.folder.name, self.folder.url, waiting=waiting) as lease:
            if (result := find()) is not None:  # another process may have finished while this one waited
                return result
            return build(OpenStage(lease.guard(self.folder), run, self.listener, self.name, self.unit, lease.check))


class OpenStage:
    """A result that is being built, by a process that holds the lease of its folder.

    Parameters
    ----------
    folder
        The folder of the result. Nothing is written or deleted in it once the lease is lost: `Lease.guard`.
    run
        Runs tasks.
    listener, name, unit
        As in `Stage`.
    check
        Called with each progress; raises an error if the lease is known to be lost.
    """

    def __init__(
        self,
        folder: Store,
        run: RunTasks,
        listener: Listener = silent,
        name: str = "",
        unit: str = "tasks",
        check: Callable[[], None] = lambda: None,
    ) -> None:
        self.folder, self.run, self.listener, self.check = folder, run, listener, check
        self._name, self._unit = name, unit
        self._n_done = self._n_total = 0.0

    def guard(self, store: Store) -> Store:
        """Return a store, outside the folder of the result, with the guards of that folder."""
        return store.guarded(*self.folder.guards)

    def attempt(self) -> Store:
        """Return the folder of a new build; delete the folders of interrupted builds, which no manifest names."""
        manifest = self.folder.read_manifest() or {"build": ""}
        keep_only(self.folder, {"": (MANIFEST, manifest["build"])})
        return self.folder / new_attempt()

    def expect(self, total: float, n_done: float = 0.0, message: str = "") -> None:
        """Report to the listener how many units of work there are and how many are done, with a message."""
        self._n_total = total
        self.report(n_done, message)

    def report(self, n_done: float, message: str = "") -> None:
        """Report how many units are done until now.

        Raises
        ------
        StoreError
            If the lease is known to be lost.
        """
        self.check()
        self._n_done = n_done
        self.listener(Progress(self._name, n_done, self._n_total, self._unit, message=message))

    def map(
        self, step: str, function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], size: float | None = None
    ) -> list[Any]:
        """Run a function once for each job, and report progress.

        Parameters
        ----------
        step, function, jobs
            Name of the tasks, their function, and the arguments of each.
        size
            Units of progress of all jobs together; None for the number of jobs.

        Returns
        -------
        list
            Results in the order of the jobs.
        """
        results: list[Any] = [None] * len(jobs)
        start, size = self._n_done, len(jobs) if size is None else size
        for n_done, (number, result) in enumerate(self.run(step, function, dict(enumerate(jobs))), 1):
            results[number] = result
            self.report(start + size * n_done / len(jobs), f"{step}: {n_done} of {counted(len(jobs), 'task')}")
        return results

    def keep_only(self, names: Mapping[str, Collection[str]]) -> None:
        """Delete everything in folders below the result's folder, except the names to keep in each of them.

        `names` are names of files and folders by the path of their folder; "" is the result's folder itself.

        Raises
        ------
        StoreError
            If the lease is lost.
        """
        keep_only(self.folder, names)

    def clean(self, kept: Iterable[str]) -> None:
        """Delete everything in the folder of the result, except its manifest and the files and folders `kept`."""
        names: dict[str, set[str]] = {"": {MANIFEST}}
        for path in kept:
            parts = path.split("/")
            for depth, name in enumerate(parts):
                names.setdefault("/".join(parts[:depth]), set()).add(name)
        self.keep_only(names)

    def finish(self, manifest: Mapping[str, Any], kept: Iterable[str], *, alone: bool = False) -> None:
        """Delete everything in the folder except the paths `kept`, then write the manifest.

        `alone` is as in `Store.write_bytes`: for files that were not forced to disk, and whose loss their checksums
        show.

        Raises
        ------
        StoreError
            If the lease is lost.
        """
        self.clean(kept)
        self.folder.finish_manifest(dict(manifest), alone=alone)


def new_attempt() -> str:
    """Return a new random name for the folder of an attempt, 8 hexadecimal digits."""
    return uuid.uuid4().hex[:8]


def run_once(
    folder: Store, find: Callable[[], dict[str, Any] | None], make: Callable[[Store], dict[str, Any]]
) -> dict[str, Any]:
    """Run a task unless an earlier run has finished it; return the manifest of the finished task.

    Parameters
    ----------
    folder
        The folder of the task's results, in which the manifest is written.
    find
        Returns the manifest of an earlier run, or None if there is none or its results are missing.
    make
        Writes the results to the folder of an attempt, its argument, and returns the manifest.
    """
    if (manifest := find()) is not None:
        return manifest
    written = make(folder / new_attempt())
    if (manifest := find()) is not None:  # another run of the task has finished meanwhile
        return manifest
    folder.finish_manifest(written)
    return written


def groups_exist(store: Store, paths: Iterable[str]) -> bool:
    """Return whether there is a Zarr group at each of these paths below a store."""
    unique = [*set(paths)]  # a stranger's manifest may name a million paths, of which none exists

    def exists(path: str) -> bool:
        # Read, not listed: a cached listing may miss what another process deleted
        return (store / path).read_bytes("zarr.json") is not None

    return all(all(in_threads(exists, unique[n : n + _FILES_AT_ONCE])) for n in range(0, len(unique), _FILES_AT_ONCE))


def keep_only(store: Store, kept: Mapping[str, Collection[str]]) -> None:
    """Delete everything in folders below a store, except the names to keep in each; "" is the store itself."""

    def clean(folder: str) -> None:
        cleaned = store / folder if folder else store
        for name in cleaned.children():
            if name not in kept[folder]:
                (cleaned / name).remove()

    in_threads(clean, list(kept))
