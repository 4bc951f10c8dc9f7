"""Strategy `averaging`: replicas train apart for a round, and their models become one (papers 001 and 000).

A round is a graph of pure tasks: each replica's task takes all blocks of the common model and returns its own;
each block is then merged by its own small tree, and the next round's tasks depend on the merged blocks. That is
reduce-scatter and all-gather out of the graph itself. Replicas are numbers, not workers: Dask places them, and
does again what a lost worker had done.
"""

import time
import uuid
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from distributed import Client, Future

from daskw2v.cluster import Trainers, gather
from daskw2v.devices import Threads, threads_of, trainers_of
from daskw2v.objectives import find_objective, find_trainer
from daskw2v.objectives.base import FloatArray
from daskw2v.params import Params, Resources
from daskw2v.progress import Listener, Progress
from daskw2v.sampling.run import Run
from daskw2v.shared import share
from daskw2v.storage import Store
from daskw2v.strategies import checkpoint
from daskw2v.strategies.base import Judge, Outcome, Shares, Strategy, Totals, check_finite, entry_of, progress_of
from daskw2v.strategies.blocks import Block, cut_tables, initial_block, join_blocks, save_blocks
from daskw2v.strategies.checkpoint import State
from daskw2v.strategies.merge import Merged, MergeRule, Moves, add_moves, find_merge_rule, join_moves
from daskw2v.strategies.replica import train_replica
from daskw2v.strategies.schedule import AveragingRounds, Round

_HOGWILD = "{} threads train each replica without locks: fast, but not the same to the last bit (threads=1 is)"
_FAN_IN = 4  # replicas, or sums of them, that one task adds up


def _train(
    client: Client, run: Run, place: Store, length: int, resources: Resources, listener: Listener, judge: Judge
) -> Outcome:
    """Train a run to its end, or go on with it from its last checkpoint.

    Raises
    ------
    TrainingError
        If the model is no longer finite, or a task keeps killing its workers.
    """
    params = run.params
    trainers = trainers_of(client, run.device)
    threads = threads_of(task_threads([n for _, n in trainers.homes()], params, resources), resources)
    if threads.n > 1:
        listener(Progress("train", 0, 0, "", message=_HOGWILD.format(threads.n)))
    blocks = cut_tables(find_objective(params.objective).tables(params, run.vocabulary.size), params.vector_size)
    rule = find_merge_rule(params.merge)
    rounds = AveragingRounds(params, length)
    session = f"{place.name}-{uuid.uuid4().hex[:8]}"  # keys of an earlier client's tasks must not be met
    state = checkpoint.restore(client, place, blocks, session)
    if state is None:
        state = State(0, _initial(client, run, blocks, session))
    saved, shares = time.monotonic(), Shares()
    for this in map(rounds.__getitem__, range(state.next_round, len(rounds))):
        began = time.monotonic()
        key = f"{session}-{this.number}"
        state, totals = _play(client, run, trainers, threads, this, state, rule, key)
        for work, total in zip(this.works, totals, strict=True):
            check_finite(f"Replica {work.replica} of round {this.number}", [total], work.alpha_start, place)
        shares.add(totals)
        seconds = time.monotonic() - began
        state.history.append(entry_of(this.number, this.stop, totals, this.works[0].alpha_stop, seconds))
        listener(progress_of(state.history[-1], length * params.epochs))
        judge(state.history[-1], join_blocks, [rows for block, rows in state.blocks.items() if block.table == "input"])
        if time.monotonic() - saved >= resources.checkpoint_seconds and this.number + 1 < len(rounds):
            state = checkpoint.save(client, place, state, params.vector_size, key)
            saved = time.monotonic()

    def save(store: Store) -> None:
        writes = save_blocks(client, store, state.blocks, params.vector_size, uuid.uuid4().hex)
        gather(client, writes, "Writing the model")

    return Outcome(state.history, threads.n, shares, save)


def task_threads(threads: Sequence[int], params: Params, resources: Resources) -> int:
    """Return the threads of a training task: replicas share the workers', and a task stays on one worker."""
    largest = max(threads, default=1)
    most = min(resources.threads or largest, largest)
    return max(1, min(most, sum(threads) // params.n_replicas))


def _initial(client: Client, run: Run, blocks: list[Block], session: str) -> dict[Block, Future]:
    return {
        block: client.submit(initial_block, run, block, key=f"initial-{session}-{block.table}-{block.start}")
        for block in blocks
    }


def _play(
    client: Client, run: Run, trainers: Trainers, threads: Threads, this: Round, state: State, rule: MergeRule, key: str
) -> tuple[State, list[Totals]]:
    """Do one round; return the state after it and what each replica did."""
    blocks = list(state.blocks)
    replicas = [
        client.submit(
            train_replica,
            run,
            threads,
            work,
            blocks,
            *state.blocks.values(),
            key=f"train-{key}-{work.replica}",
            retries=2,
            resources=trainers.takes,
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
    done = gather(client, totals, f"Round {this.number}", trainers.takes)
    return State(this.number + 1, new_blocks, new_velocity, state.history), done


def _nth_block(trained: tuple[list[FloatArray], Totals], number: int) -> FloatArray:
    return trained[0][number]


def _merge(
    client: Client, rule: MergeRule, base: Future, velocity: Future | None, trained: list[Future], key: str
) -> Future:
    """Return the future of a block's `Merged`, by a tree whose shape depends on the number of replicas only."""
    parts = [
        client.submit(_add, add_moves, base, *trained[i : i + _FAN_IN], key=f"moves-{key}-{i}")
        for i in range(0, len(trained), _FAN_IN)
    ]
    level = 0
    while len(parts) > 1:
        parts = [
            client.submit(_add, join_moves, *parts[i : i + _FAN_IN], key=f"join-{key}-{level}-{i}")
            for i in range(0, len(parts), _FAN_IN)
        ]
        level += 1
    return client.submit(_finish, rule.name, base, velocity, parts[0], key=f"merge-{key}")


def _add(add: Callable[..., Moves], *parts: Any) -> Moves:
    moves = add(*parts)
    return moves._replace(total=share(moves.total))


def _finish(rule: str, base: FloatArray, velocity: FloatArray | None, moves: Moves) -> Merged:
    rows, faster = find_merge_rule(rule).finish(base, velocity, moves)
    return Merged(share(rows), faster if faster is None else share(faster))


def _check(params: Params) -> None:
    find_merge_rule(params.merge)


AVERAGING = Strategy(
    "averaging",
    ("n_replicas", "rounds_per_epoch", "merge", "warmup"),
    ("hot_rows", "flush_words", "max_in_flight"),
    find_trainer,
    _check,
    _train,
)
