"""Checkpoints of a run: the folder `checkpoints/<number of the next round>`, finished when it has a manifest."""

from typing import Any

from daskw2v.models.stored.store import ATTEMPT, check_attempt, read_attempt
from daskw2v.store.stage import Layout, groups_exist
from daskw2v.store.storage import Store

LAYOUT = Layout("runs/<run>/checkpoints/<number>")
_KEPT = 2


def folder(run: Store, number: int) -> Store:
    """Return where the checkpoint before a round lies."""
    return run / "checkpoints" / f"{number:06}"


def finish(run: Store, checkpoint: Store, manifest: dict[str, Any]) -> None:
    """Finish a checkpoint whose tables are written; keep the one before it, in case this one is damaged."""
    if groups_exist(run / "checkpoints", [checkpoint.name]):  # plug-ins may write a folder that is no group
        manifest = manifest | {ATTEMPT: read_attempt(checkpoint)}
    checkpoint.finish_manifest(manifest)
    for name in _finished(run)[:-_KEPT]:
        (run / "checkpoints" / name).remove()


def forget(run: Store) -> None:
    """Remove all checkpoints: the run begins anew."""
    (run / "checkpoints").remove()


def newest(run: Store) -> tuple[Store, dict[str, Any]] | None:
    """Return the newest finished checkpoint and its manifest, or None where there is none.

    Raises
    ------
    DamageError
        If it is damaged, or its manifest is of another one.
    """
    for name in reversed((run / "checkpoints").children()):
        store = run / "checkpoints" / name
        manifest = store.read_manifest()  # once: a store may answer otherwise the next time
        if manifest is not None:
            if ATTEMPT in manifest:
                check_attempt(store, manifest)
            return store, manifest
    return None


def _finished(run: Store) -> list[str]:
    checkpoints = run / "checkpoints"
    return [name for name in checkpoints.children() if (checkpoints / name).read_manifest() is not None]
