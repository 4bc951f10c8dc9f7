"""Deletes what is damaged in a work directory, so that the next run builds it again.

Other processes may be at work there. What lies in the folder of one attempt is never written again: who still reads it
finds it missing, and looks for what is there instead. What belongs to a run is deleted only while nobody works on it.
"""

from collections.abc import Callable
from typing import TypeVar

from daskw2v.errors import DamageError
from daskw2v.models.versions import run_of
from daskw2v.phrases import build as phrases
from daskw2v.progress import Listener, Progress
from daskw2v.sampling import context_matrix
from daskw2v.shards import encode
from daskw2v.shards.layout import CORPORA
from daskw2v.store.lease import hold_run
from daskw2v.store.stage import Layout, remove_damaged
from daskw2v.store.storage import MANIFEST, Store
from daskw2v.training import checkpoint
from daskw2v.vocabulary import count

LAYOUTS = (CORPORA, encode.LAYOUT, count.LAYOUT, phrases.LAYOUT, context_matrix.LAYOUT)
_RUNS = (checkpoint.LAYOUT, Layout("runs/<run>/<part>"), Layout("candidates/<run>"))  # under the lease of the run
T = TypeVar("T")
_REPAIRS = 5  # in one call


def mending(work: Store, listener: Listener, make: Callable[[], T]) -> T:
    """Return what a function makes; if it finds damage, repair that and call it again: it goes on where it stopped.

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
    """Delete the smallest thing that holds the damaged file and that a run builds again if it is missing.

    Returns
    -------
    str or None
        What was deleted, below the work directory. None if nothing can build it again, such as a published model.

    Raises
    ------
    DamageError
        If it is a finished word-context matrix, which may have grown from text that is gone.
    StoreError
        If another process is at work on the run that it belongs to.
    """
    inside = damage.url.removeprefix(f"{work.url}/")
    if inside == damage.url:
        return None
    for layout in LAYOUTS:
        part = layout.damaged_part(inside)
        if part is not None:
            if layout.remedy and _is_finished(work, part):
                place = (work / part.rpartition("/")[0]).url
                raise DamageError(damage.problem, layout.remedy.format(url=place), url=damage.url) from damage
            remove_damaged(work, part)
            return part
    for layout in _RUNS:
        part = layout.damaged_part(inside)
        if part is not None:
            with hold_run(work, part.split("/")[1]):
                (work / part).remove()
            return part
    match inside.split("/"):
        case ["models", version, _, *_]:
            return _remove_unpublished(work, version)
    return None


def _remove_unpublished(work: Store, version: str) -> str | None:
    with hold_run(work, run_of(version)):
        place = work / "models" / version
        if place.read_manifest() is not None:
            return None
        place.remove()
    return f"models/{version}"


def _is_finished(work: Store, part: str) -> bool:
    """Tell whether a part is that of a finished result: its manifest, or what the manifest names."""
    folder, _, name = part.rpartition("/")
    if name == MANIFEST:
        return True
    manifest = (work / folder).read_manifest()
    return manifest is not None and bool(manifest["build"] == name)
