"""A stage builds a result once: one process at a time, however often it is interrupted.

A result lies in a folder named by its identity. Tasks and builds write to folders of their own below it, one for each
attempt, so that a retry never meets what an earlier one left. The manifest names the attempts that count. It is written
last, after everything else was deleted: without a manifest there is no result, and with it there is nothing else.
"""

import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeVar

from daskw2v.errors import DamageError, counted
from daskw2v.progress import Listener, Progress, saying, silent
from daskw2v.store.lease import hold
from daskw2v.store.storage import MANIFEST, Store
from daskw2v.store.threads import in_threads

_ASKED = 256  # files at a time
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
        """The folder of all results."""
        return self.damaged.partition("/")[0]

    def damaged_part(self, path: str) -> str | None:
        """Return the part to delete if the file at a path in the work directory is damaged; None for other stages."""
        return _beginning(path, self.damaged)

    def unused_part(self, path: str) -> str | None:
        """Return the part to delete if no run uses a path in the work directory; None for paths of other stages."""
        return _beginning(path, self.unused)


def _beginning(path: str, pattern: str) -> str | None:
    """Return as much of a path as a pattern describes, or None if it is another path."""
    names, wanted = path.split("/"), pattern.split("/")
    if len(names) < len(wanted) or any(w != n for w, n in zip(wanted, names, strict=False) if not w.startswith("<")):
        return None
    return "/".join(names[: len(wanted)])


def remove_damaged(work: Store, part: str) -> None:
    """Delete a damaged part of a layout; a manifest only if it still is damaged: others may have replaced it."""
    folder, _, name = part.rpartition("/")
    if name.endswith(".json"):
        with suppress(DamageError):
            (work / folder).read_manifest(name)
            return
    (work / part).remove()


@dataclass(frozen=True)
class Stage:
    """One result of a stage.

    Parameters
    ----------
    work
        The work directory.
    folder
        The folder of the result in it; its name is that of the lease.
    runner
        Returns a function that runs tasks. Called only if the result is to be built, and before the lease is taken:
        a cluster may be started there, and may check the work directory.
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
        """Return the result of `find`, or that of `build` if the former is None.

        `build` is called while this process holds the lease.

        Raises
        ------
        StoreError
            If another process takes over the lease meanwhile.
        """
        if (result := find()) is not None:
            return result
        run, waiting = self.runner(), saying(self.listener, self.name, self.unit)
        with hold(self.work, self.folder.name, self.folder.url, waiting=waiting) as lease:
            if (result := find()) is not None:  # another process may have finished while this one waited
                return result
            return build(OpenStage(lease.guard(self.folder), run, self.listener, self.name, self.unit, lease.check))


class OpenStage:
    """A result that is being built. Whoever has one holds a lease on its folder.

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
        self._done = self._total = 0.0

    def guard(self, store: Store) -> Store:
        """Return a store outside the folder that is guarded as the folder is."""
        return store.guarded(*self.folder.guards)

    def attempt(self) -> Store:
        """Return the folder of a new build; delete the folders of interrupted builds, which no manifest names."""
        manifest = self.folder.read_manifest() or {"build": ""}
        keep_only(self.folder, {"": (MANIFEST, manifest["build"])})
        return self.folder / new_attempt()

    def expect(self, total: float, done: float = 0.0, message: str = "") -> None:
        """Report how much there is to do, and how much of it is done."""
        self._total = total
        self.report(done, message)

    def report(self, done: float, message: str = "") -> None:
        """Report how much is done by now.

        Raises
        ------
        StoreError
            If the lease is lost.
        """
        self.check()
        self._done = done
        self.listener(Progress(self._name, done, self._total, self._unit, message=message))

    def map(
        self, step: str, function: Callable[..., Any], jobs: Sequence[tuple[Any, ...]], size: float | None = None
    ) -> list[Any]:
        """Run a function once for each job, and report progress.

        Parameters
        ----------
        step, function, jobs
            Name of the tasks, their function, and the arguments of each.
        size
            How much is done when all of them are; by default as much as there are jobs.

        Returns
        -------
        list
            Results in the order of the jobs.
        """
        results: list[Any] = [None] * len(jobs)
        start, size = self._done, len(jobs) if size is None else size
        for done, (number, result) in enumerate(self.run(step, function, dict(enumerate(jobs))), 1):
            results[number] = result
            self.report(start + size * done / len(jobs), f"{step}: {done} of {counted(len(jobs), 'task')}")
        return results

    def keep(self, names: Mapping[str, Collection[str]]) -> None:
        """Delete everything in some folders below that of the result, except the names that each of them keeps.

        Raises
        ------
        StoreError
            If the lease is lost.
        """
        keep_only(self.folder, names)

    def clean(self, kept: Iterable[str]) -> None:
        """Delete everything in the folder of the result, except its manifest and what lies at these paths."""
        names: dict[str, set[str]] = {"": {MANIFEST}}
        for path in kept:
            parts = path.split("/")
            for depth, name in enumerate(parts):
                names.setdefault("/".join(parts[:depth]), set()).add(name)
        self.keep(names)

    def finish(self, manifest: Mapping[str, Any], kept: Iterable[str], *, alone: bool = False) -> None:
        """Write the manifest, after everything was deleted that does not lie at the paths to keep.

        `alone` is that of `Store.write_bytes`: for files that were not forced, and whose loss their checksums show.

        Raises
        ------
        StoreError
            If the lease is lost.
        """
        self.clean(kept)
        self.folder.finish_manifest(dict(manifest), alone=alone)


def new_attempt() -> str:
    """Return a new name for the folder of one attempt."""
    return uuid.uuid4().hex[:8]


def run_once(
    folder: Store, find: Callable[[], dict[str, Any] | None], make: Callable[[Store], dict[str, Any]]
) -> dict[str, Any]:
    """Return the manifest of a task: the one that an earlier run left, or else that of this run.

    Parameters
    ----------
    folder
        The folder of the task's results, in which the manifest is written.
    find
        Returns the manifest of an earlier run if its results are there.
    make
        Writes the results to the folder of one attempt, and returns the manifest.
    """
    if (manifest := find()) is not None:
        return manifest
    made = make(folder / new_attempt())
    if (manifest := find()) is not None:  # another run of the task has finished meanwhile
        return manifest
    folder.finish_manifest(made)
    return made


def groups_exist(store: Store, paths: Iterable[str]) -> bool:
    """Return whether there are Zarr groups at all these paths below a store."""
    asked = [*set(paths)]  # as many as a manifest says: that of a stranger may name a million, and none is there

    def exists(path: str) -> bool:
        # Read, not listed: a listing may come from a cache that misses deletions of others
        return (store / path).read_bytes("zarr.json") is not None

    return all(all(in_threads(exists, asked[n : n + _ASKED])) for n in range(0, len(asked), _ASKED))


def keep_only(store: Store, kept: Mapping[str, Collection[str]]) -> None:
    """Delete everything in some folders below a store, except the names that each of them keeps."""

    def clean(folder: str) -> None:
        cleaned = store / folder if folder else store
        for name in cleaned.children():
            if name not in kept[folder]:
                (cleaned / name).remove()

    in_threads(clean, list(kept))
