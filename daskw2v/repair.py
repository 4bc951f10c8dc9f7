"""What is done about damage in a work directory: what can be made again is removed, and so made again.

Others may be at work there. What lies in a folder of one attempt is never written again: who still reads it misses it
then, and looks for what is there instead. All else is removed only while nobody can be writing it.
"""

from collections.abc import Callable
from typing import NoReturn, TypeVar

from daskw2v.errors import DamageError
from daskw2v.lease import hold_run
from daskw2v.models.versions import run_of
from daskw2v.progress import Listener, Progress
from daskw2v.storage import Store

T = TypeVar("T")
_REPAIRS = 5  # of damage, in one call


def mending(work: Store, listener: Listener, make: Callable[[], T]) -> T:
    """Return what a function makes, which goes on where it stopped; what it finds damaged is repaired first.

    Raises
    ------
    DamageError
        If something is damaged that cannot be made again, or time and again.
    Exception
        What the function raises.
    """
    for _ in range(_REPAIRS):
        try:
            return make()
        except DamageError as damage:
            removed = repair(work, damage)
            if removed is None:
                raise
            listener(Progress("repair", 0, 0, "files", message=f"{damage.problem} {removed} is made again."))
    return make()


def repair(work: Store, damage: DamageError) -> str | None:
    """Remove the smallest thing that was damaged and that a run makes again when it is missing.

    Returns
    -------
    str or None
        What was removed, below the work directory. None where nobody could make it again, as a published model.

    Raises
    ------
    DamageError
        If it is a finished word-context matrix, which may have grown from text that is gone.
    StoreError
        If somebody else is at work on the run that it belongs to.
    """
    inside = damage.url.removeprefix(f"{work.url}/")
    if inside == damage.url:
        return None
    match inside.split("/"):
        case ["corpora", _] | ["shards", _, _, "manifest.json"] | ["vocabulary", _, "manifest.json"]:
            return _remove_manifest(work, inside)
        case ["shards", _, _]:  # its manifest is gone: that is enough
            return inside
        case ["shards", encoding, block, attempt, *_]:
            return _remove(work, "shards", encoding, block, attempt)
        case ["vocabulary", key, build, *_]:
            return _remove(work, "vocabulary", key, build)
        case ["phrases", key, step, number, *_]:
            return _remove(work, "phrases", key, step, number)
        case ["matrices", name, build, _, *_] if not _is_finished(work / "matrices" / name, build):
            return _remove(work, "matrices", name, build)
        case ["matrices", name, *_]:
            _refuse(work / "matrices" / name, damage)
        case ["runs", run, "checkpoints", number, *_]:
            with hold_run(work, run):
                return _remove(work, "runs", run, "checkpoints", number)
        case ["runs", run, part, *_]:
            with hold_run(work, run):
                return _remove(work, "runs", run, part)
        case ["candidates", run, *_]:
            with hold_run(work, run):
                return _remove(work, "candidates", run)
        case ["models", version, _, *_]:
            with hold_run(work, run_of(version)):
                published = (work / "models" / version).read_manifest() is not None
                return None if published else _remove(work, "models", version)
    return None


def _remove(work: Store, *parts: str) -> str:
    name = "/".join(parts)
    (work / name).remove()
    return name


def _remove_manifest(work: Store, name: str) -> str:
    """Remove a manifest, unless somebody has written it again."""
    folder, _, file = name.rpartition("/")
    try:
        (work / folder).read_manifest(file)
    except DamageError:
        (work / name).remove()
    return name


def _is_finished(matrix: Store, build: str) -> bool:
    manifest = matrix.read_manifest()
    return manifest is not None and manifest["build"] == build


def _refuse(matrix: Store, damage: DamageError) -> NoReturn:
    raise DamageError(
        damage.problem,
        f"Take {matrix.url} from a copy. Or delete it: then the same command samples it again from the same text. If "
        "it is the base_matrix, build_matrix does so, with the text and the Params that it had. Look after the disk.",
        url=damage.url,
    ) from damage
