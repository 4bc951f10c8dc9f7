"""Checkpoints of a run: the folder `checkpoints/<number of the next round>`, finished when it has a manifest."""

from typing import Any

from daskw2v.models.stored.store import ATTEMPT, check_attempt, read_attempt
from daskw2v.store.stage import Layout, groups_exist
from daskw2v.store.storage import Store

LAYOUT = Layout("runs/<run>/checkpoints/<number>")
_N_KEPT = 2


def folder(run: Store, number: int) -> Store:
    """Return the folder, in a run's folder, of the checkpoint that is written before the round of this number."""
    return run / "checkpoints" / f"{number:06}"


def finish(run: Store, checkpoint: Store, manifest: dict[str, Any]) -> None:
    """Write the manifest of a checkpoint whose tables are written; keep the newest two finished ones of the run.

    The older one is kept in case the newest is damaged.
    """
    if groups_exist(run / "checkpoints", [checkpoint.name]):  # plug-ins may write a folder that is no group
        manifest = manifest | {ATTEMPT: read_attempt(checkpoint)}
    checkpoint.finish_manifest(manifest)
    checkpoints = run / "checkpoints"
    finished = [name for name in checkpoints.children() if (checkpoints / name).read_manifest() is not None]
    for name in finished[:-_N_KEPT]:
        (checkpoints / name).remove()


def remove_all(run: Store) -> None:
    """Delete all checkpoints below a run's folder, so that the run begins anew."""
    (run / "checkpoints").remove()


def find_newest(run: Store) -> tuple[Store, dict[str, Any]] | None:
    """Return the folder and the manifest of a run's newest finished checkpoint, or None where the run has none.

    Raises
    ------
    DamageError
        If the checkpoint is damaged, or its manifest belongs to another checkpoint.
    """
    for name in reversed((run / "checkpoints").children()):
        store = run / "checkpoints" / name
        manifest = store.read_manifest()  # once: a store may answer otherwise the next time
        if manifest is not None:
            if ATTEMPT in manifest:
                check_attempt(store, manifest)
            return store, manifest
    return None
