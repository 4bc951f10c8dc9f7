"""Checkpoints of a run: the model's blocks, the merge rule's state, and how far the run has come."""

from dataclasses import dataclass, field
from typing import Any

from distributed import Client, Future

from daskw2v.cluster import gather
from daskw2v.storage import Store
from daskw2v.strategies.blocks import Block, load_blocks, rename, save_blocks

_VELOCITY = "velocity-"
_KEPT = 2


@dataclass
class State:
    """A run between two rounds.

    Parameters
    ----------
    next_round
        Number of the round to do next.
    blocks
        The model's rows.
    velocity
        The merge rule's state for the same rows; empty before the first merge, and where a rule has none.
    history
        One entry a round: progress, words, pairs, loss, alpha, seconds.
    """

    next_round: int
    blocks: dict[Block, Future]
    velocity: dict[Block, Future] = field(default_factory=dict)
    history: list[dict[str, Any]] = field(default_factory=list)


def save(client: Client, run: Store, state: State, vector_size: int, key: str) -> State:
    """Write a checkpoint, manifest last; return the state reading from it.

    What goes on from the written blocks has no history on the scheduler: a worker that is lost later costs the
    rounds since this checkpoint, never the run.
    """
    store = folder(run, state.next_round)
    everything = {**state.blocks, **rename(state.velocity, _VELOCITY)}
    gather(client, save_blocks(client, store, everything, vector_size, key), "a checkpoint")
    finish(run, store, {"next_round": state.next_round, "velocity": bool(state.velocity), "history": state.history})
    return _load(client, store, state, list(state.blocks), bool(state.velocity), key)


def restore(client: Client, run: Store, blocks: list[Block], key: str) -> State | None:
    """Return the state of the newest finished checkpoint, or None where there is none."""
    found = newest(run)
    if found is None:
        return None
    store, manifest = found
    state = State(int(manifest["next_round"]), {}, history=list(manifest["history"]))
    return _load(client, store, state, blocks, bool(manifest["velocity"]), key)


def folder(run: Store, number: int) -> Store:
    """Return where the checkpoint before a round lies."""
    return run / "checkpoints" / f"{number:06}"


def finish(run: Store, checkpoint: Store, manifest: dict[str, Any]) -> None:
    """Make a checkpoint count whose tables are written; keep the one before it, in case this one is damaged."""
    checkpoint.write_manifest(manifest)
    for name in _finished(run)[:-_KEPT]:
        (run / "checkpoints" / name).remove()


def forget(run: Store) -> None:
    """Remove all checkpoints: the run begins anew."""
    (run / "checkpoints").remove()


def newest(run: Store) -> tuple[Store, dict[str, Any]] | None:
    """Return the newest finished checkpoint and its manifest, or None where there is none."""
    names = _finished(run)
    if not names:
        return None
    store = run / "checkpoints" / names[-1]
    return store, store.read_manifest() or {}


def _finished(run: Store) -> list[str]:
    checkpoints = run / "checkpoints"
    return [name for name in checkpoints.children() if (checkpoints / name).read_manifest() is not None]


def _load(client: Client, store: Store, state: State, blocks: list[Block], velocity: bool, key: str) -> State:
    rows = load_blocks(client, store, blocks, key)
    moving = load_blocks(client, store, rename(rows, _VELOCITY), key).values() if velocity else []
    return State(state.next_round, rows, dict(zip(blocks, moving, strict=False)), state.history)
