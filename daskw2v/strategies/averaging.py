"""Strategy `averaging`: replicas train apart for a round, and their models become one (papers 001 and 000).

A round is a graph of pure tasks: each replica's task takes all blocks of the common model and returns its own;
each block is then merged by its own small tree, and the next round's tasks depend on the merged blocks. That is
reduce-scatter and all-gather out of the graph itself. Replicas are numbers, not workers: Dask places them, and
does again what a lost worker had done.
"""

import math
import time
import uuid
from operator import itemgetter
from typing import Any

from distributed import Client, Future

from daskw2v.cluster import gather
from daskw2v.errors import TrainingError
from daskw2v.objectives.base import FloatArray
from daskw2v.params import Params
from daskw2v.progress import Listener, Progress
from daskw2v.storage import Store
from daskw2v.strategies import checkpoint
from daskw2v.strategies.blocks import Block, initial_block
from daskw2v.strategies.checkpoint import State
from daskw2v.strategies.merge import MergeRule, Moves, add_moves, find_merge_rule, join_moves
from daskw2v.strategies.replica import Run, Totals, train_replica
from daskw2v.strategies.schedule import AveragingRounds, Round

_FAN_IN = 4  # replicas, or sums of them, that one task adds up


def train_averaging(
    client: Client,
    run: Run,
    place: Store,
    blocks: list[Block],
    length: int,
    checkpoint_seconds: float,
    listener: Listener,
) -> State:
    """Train a run to its end, or go on with it from its last checkpoint.

    Parameters
    ----------
    client
        The cluster.
    run
        What all tasks share.
    place
        Where the run keeps its checkpoints.
    blocks
        The model's row blocks, table after table.
    length
        Corpus positions of an epoch.
    checkpoint_seconds
        Time between checkpoints; 0 writes one after each round.
    listener
        Told after each round.

    Raises
    ------
    TrainingError
        If the model is no longer finite, or a task keeps killing its workers.
    """
    params = run.params
    rule = find_merge_rule(params.merge)
    rounds = AveragingRounds(params, length)
    session = f"{place.name}-{uuid.uuid4().hex[:8]}"  # keys of an earlier client's tasks must not be met
    state = checkpoint.restore(client, place, blocks, session)
    if state is None:
        state = State(0, _initial(client, params, blocks, session))
    saved = time.monotonic()
    for this in map(rounds.__getitem__, range(state.next_round, len(rounds))):
        began = time.monotonic()
        key = f"{session}-{this.number}"
        state, totals = _play(client, run, this, state, rule, key)
        _guard(this, totals, place)
        seconds = time.monotonic() - began
        state.history.append(_entry(this, totals, seconds))
        listener(_progress(this, length * params.epochs, state.history[-1]))
        if time.monotonic() - saved >= checkpoint_seconds and this.number + 1 < len(rounds):
            state = checkpoint.save(client, place, state, params.vector_size, key)
            saved = time.monotonic()
    return state


def _initial(client: Client, params: Params, blocks: list[Block], session: str) -> dict[Block, Future]:
    return {
        block: client.submit(initial_block, params, block, key=f"initial-{session}-{block.table}-{block.start}")
        for block in blocks
    }


def _play(client: Client, run: Run, this: Round, state: State, rule: MergeRule, key: str) -> tuple[State, list[Totals]]:
    """Do one round; return the state after it and what each replica did."""
    blocks = list(state.blocks)
    replicas = [
        client.submit(
            train_replica,
            run,
            work,
            blocks,
            *state.blocks.values(),
            key=f"train-{key}-{work.replica}",
            retries=2,
        )
        for work in this.works
    ]
    totals = [client.submit(itemgetter(1), replica, key=f"totals-{replica.key}") for replica in replicas]
    new_blocks, new_velocity = {}, dict(state.velocity)
    for number, block in enumerate(blocks):
        trained = [
            client.submit(_nth_block, replica, number, key=f"block-{replica.key}-{number}") for replica in replicas
        ]
        if len(trained) == 1:
            new_blocks[block] = trained[0]
            continue
        merged = _merge(client, rule, state.blocks[block], state.velocity.get(block), trained, f"{key}-{number}")
        new_blocks[block] = client.submit(itemgetter(0), merged, key=f"rows-{merged.key}")
        if rule.has_velocity:
            new_velocity[block] = client.submit(itemgetter(1), merged, key=f"velocity-{merged.key}")
    done = gather(client, totals, f"Round {this.number}")
    return State(this.number + 1, new_blocks, new_velocity, state.history), done


def _nth_block(trained: tuple[list[FloatArray], Totals], number: int) -> FloatArray:
    return trained[0][number]


def _merge(
    client: Client, rule: MergeRule, base: Future, velocity: Future | None, trained: list[Future], key: str
) -> Future:
    """Return the future of a block's `Merged`, by a tree whose shape depends on the number of replicas only."""
    parts = [
        client.submit(add_moves, base, *trained[i : i + _FAN_IN], key=f"moves-{key}-{i}")
        for i in range(0, len(trained), _FAN_IN)
    ]
    level = 0
    while len(parts) > 1:
        parts = [
            client.submit(join_moves, *parts[i : i + _FAN_IN], key=f"join-{key}-{level}-{i}")
            for i in range(0, len(parts), _FAN_IN)
        ]
        level += 1
    return client.submit(_finish, rule.name, base, velocity, parts[0], key=f"merge-{key}")


def _finish(rule: str, base: FloatArray, velocity: FloatArray | None, moves: Moves) -> tuple[Any, Any]:
    return find_merge_rule(rule).finish(base, velocity, moves)


def _guard(this: Round, totals: list[Totals], place: Store) -> None:
    for work, total in zip(this.works, totals, strict=True):
        if not (total.finite and math.isfinite(total.loss)):
            raise TrainingError(
                f"Replica {work.replica} of round {this.number} holds NaN or infinity "
                f"(alpha={work.alpha_start:.4g}); nothing is published.",
                f"Train with a lower alpha; {place.url} keeps the last good checkpoint.",
            )


def _entry(this: Round, totals: list[Totals], seconds: float) -> dict[str, Any]:
    words, pairs = sum(t.words for t in totals), sum(t.pairs for t in totals)
    return {
        "round": this.number,
        "progress": this.stop,
        "words": words,
        "pairs": pairs,
        "loss": sum(t.loss for t in totals),
        "alpha": this.works[0].alpha_stop,
        "seconds": round(seconds, 4),
    }


def _progress(this: Round, total: int, entry: dict[str, Any]) -> Progress:
    return Progress(
        "train",
        this.stop,
        total,
        "tokens",
        words_per_second=entry["words"] / max(entry["seconds"], 1e-9),
        loss=entry["loss"] / entry["pairs"] if entry["pairs"] else None,
    )
