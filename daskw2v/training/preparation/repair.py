"""Repair of a work directory: damaged files are deleted, so that the next run builds them again.

Other processes may use the work directory. The folder of one attempt is never written again: a process that still
reads it finds it missing, and looks for the attempt that replaced it. The files of a run are deleted only while no
process works on the run. A part is a path below the work directory that is deleted as a whole (`Layout`).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import TypeVar

from distributed import Client

from daskw2v.cluster.tasks import run_tasks
from daskw2v.collections import parts
from daskw2v.corpus import stored_tokenizers
from daskw2v.errors import DamageError
from daskw2v.models.versions.finished import parse_run_id
from daskw2v.models.versions.versions import list_served
from daskw2v.phrases import build as phrases
from daskw2v.progress import Listener, Progress
from daskw2v.sampling import context_matrix
from daskw2v.sequences import graph, walks
from daskw2v.sequences import parts as sessions
from daskw2v.shards import encode
from daskw2v.shards.layout import CORPORA
from daskw2v.store.lease import hold_run
from daskw2v.store.stage import Layout, remove_damaged
from daskw2v.store.storage import MANIFEST, Store
from daskw2v.store.verification import find_damage
from daskw2v.training.loop import checkpoint
from daskw2v.training.preparation import choice
from daskw2v.training.start import base_vectors
from daskw2v.vocabulary import count

_STAGES = parts, sessions, encode, count, phrases, context_matrix, choice, base_vectors, graph, walks, stored_tokenizers
LAYOUTS: tuple[Layout, ...] = (CORPORA, *(stage.LAYOUT for stage in _STAGES))
_RUNS = (checkpoint.LAYOUT, Layout("runs/<run>/<part>"), Layout("candidates/<run>"))  # under the lease of the run
_FOLDERS = sorted({layout.folder for layout in (*LAYOUTS, *_RUNS)} | {"leases", "models", "retraining"})
T = TypeVar("T")
_MAX_REPAIRS = 5  # of one result, in one call
_BLOCKS = 64  # blocks of text that a task checks


def check_folders(work: Store) -> None:
    """Raise the error of `Store.check_links` if a folder that a run will write is a link."""
    for folder in _FOLDERS:
        (work / folder).check_links("")


def repair_and_retry(
    work: Store, listener: Listener, make: Callable[[Collection[str]], T], client: Callable[[], Client]
) -> T:
    """Return the result of a function; if the function finds damage, repair it and call the function again.

    Parameters
    ----------
    work, listener
        The work directory, and the function that is called with a message of each repair.
    make
        The function, which goes on where it stopped. It is called with the names of finished versions that are damaged,
        none at first, instead of which it makes another one.
    client
        Returns the cluster's client, by which all blocks of a text are checked if one of them is damaged.

    Raises
    ------
    DamageError
        If a file is damaged that cannot be made again, or one result is damaged time and again.
    Exception
        Any other error of the function.
    """
    versions, repairs = set[str](), Counter[str]()
    while True:
        try:
            return make(versions)
        except DamageError as damage:
            removed = repair(work, damage)
            if removed is not None:
                blocks = [repair(work, block) for block in _find_damaged_blocks(client, work, damage)]
                more = len({removed, *blocks}) - 1
                message = f"{removed} {f'and {more:,} more are' if more else 'is'} made again."
                repairs[_find_result(removed)] += 1
                if repairs[_find_result(removed)] > _MAX_REPAIRS:
                    raise
            else:
                version = finished_version(work, damage)
                if version is None or version in versions:
                    raise
                versions.add(version)
                message = f"{version} is passed over."
            listener(Progress("repair", 0, 0, "files", message=f"{damage.problem} {message}"))


def _find_result(part: str) -> str:
    """Return the path of the result that a part belongs to, as a part has another name after each repair."""
    return next(filter(None, (layout.unused_part(part) for layout in LAYOUTS if layout.unused)), part)


def _find_damaged_blocks(client: Callable[[], Client], work: Store, damage: DamageError) -> Iterator[DamageError]:
    """Yield the damage of all blocks of the text, if `damage` is of one: a disk seldom damages one file alone."""
    part = encode.LAYOUT.damaged_part(damage.url.removeprefix(f"{work.url}/"))
    if part is not None:
        folder = work / "/".join(part.split("/")[:2])
        names = folder.children()
        jobs = {n: (folder, names[n : n + _BLOCKS]) for n in range(0, len(names), _BLOCKS)}
        for _, damages in run_tasks(client(), "check blocks", _check_blocks, jobs):
            yield from damages


def _check_blocks(folder: Store, names: Iterable[str]) -> list[DamageError]:
    """Task: return the damage of the finished blocks of these names; unfinished blocks are skipped."""
    damages = list[DamageError]()
    for name in names:
        try:
            manifest = (folder / name).read_manifest() or {"shards": []}
        except DamageError as damage:
            damages.append(damage)
            continue
        for shard in manifest["shards"]:
            damages += find_damage(folder / shard["path"], full=True)
    return damages


def repair(work: Store, damage: DamageError) -> str | None:
    """Delete the smallest part with the damaged file that a run builds again if it is missing.

    Returns
    -------
    str or None
        The deleted path, below the work directory; None if no run builds the file again, as in a finished version, or
        it is outside the work directory.

    Raises
    ------
    DamageError
        If the part is a finished word-context matrix, which may have grown from text that is gone.
    StoreError
        If another process works on the run that the file belongs to.
    """
    inside = damage.url.removeprefix(f"{work.url}/")
    if inside == damage.url:
        return None
    for layout in LAYOUTS:
        part = layout.damaged_part(inside)
        if part is not None:
            if layout.remedy and _is_finished(work, part):
                url = (work / part.rpartition("/")[0]).url
                raise DamageError(damage.problem, layout.remedy.format(url=url), url=damage.url) from damage
            remove_damaged(work, part)
            return part
    for layout in _RUNS:
        part = layout.damaged_part(inside)
        if part is not None:
            with hold_run(work, part.split("/")[1]) as lease:
                (lease.guard(work) / part).remove()
            return part
    match inside.split("/"):
        case ["models", version, _, *_] if finished_version(work, damage) is None:
            with hold_run(work, parse_run_id(version)) as lease:
                (lease.guard(work) / "models" / version).remove()
            return f"models/{version}"
    return None


def finished_version(work: Store, damage: DamageError) -> str | None:
    """Return the name of the finished or once served version that a damaged file belongs to; None for other files."""
    models = work / "models"
    match damage.url.removeprefix(f"{work.url}/").split("/"):
        case ["models", version, *_] if (models / version / MANIFEST).exists() or version in list_served(models):
            return version
    return None


def _is_finished(work: Store, part: str) -> bool:
    """Return whether a part of a result is its manifest, or the build that its manifest names."""
    folder, _, name = part.rpartition("/")
    if name == MANIFEST:
        return True
    manifest = (work / folder).read_manifest()
    return manifest is not None and bool(manifest["build"] == name)
