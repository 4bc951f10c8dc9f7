"""Strategy `averaging`: replicas train apart for a round, then their models are merged (papers 001 and 000).

A round is a graph of pure tasks. Each replica's task takes all blocks of the common model, or the rows that its text
reaches where these are few (`pulling`), and returns what it changed; each block is merged by a small tree of tasks;
the next round's tasks depend on the merged blocks. So reduce-scatter and all-gather follow from the graph. Replicas are
numbers, not workers: Dask places their tasks, and repeats those of a lost worker.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Any

from distributed import Client, Future

from daskw2v.cluster import Trainers, gather
from daskw2v.cluster.shared_memory import share
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.errors import counted
from daskw2v.models.attempts import finish_tables
from daskw2v.objectives.registry import find_objective
from daskw2v.progress import Listener, Progress
from daskw2v.sampling.run import Run
from daskw2v.store.storage import Store
from daskw2v.training.averaging.cost import run_cost, tried
from daskw2v.training.averaging.deltas import Delta, Deltas, add_deltas, join_deltas
from daskw2v.training.averaging.memory import run_memory, task_threads
from daskw2v.training.averaging.merge import FAN_IN, MergedBlock, MergeRule, find_merge_rule, merge_block
from daskw2v.training.averaging.pulling import pull, pulls, reach
from daskw2v.training.averaging.replica_task import Trained, train_replica
from daskw2v.training.averaging.round_schedule import AveragingRound, AveragingRounds, ReplicaWork
from daskw2v.training.blocks import TableBlock, cut_tables, initial_block, join_blocks, load_blocks, rename, save_blocks
from daskw2v.training.devices import Threads, threads_of, trainers_of
from daskw2v.training.strategy import InputRows, RoundReport, Strategy
from daskw2v.training.totals import TaskTotals
from daskw2v.types import Float32Array

_HOGWILD = "{} threads train each replica without locks: fast, but not the same to the last bit (threads=1 is)"
_VELOCITY = "velocity-"  # before a table's name, in a checkpoint


class AveragingRun:
    """A run as `strategy.StrategyRun` has it: the model's blocks, and the velocity of the merge rule.

    Parameters
    ----------
    client, run, place, length
        As in `strategy.StartRun`.
    trainers, threads
        The workers that train, and the threads of a task.
    """

    # Two rounds are submitted: workers that have merged need not wait for the client
    unit, trained, ahead = "round", "replica", 2

    def __init__(
        self, client: Client, run: Run, place: Store, length: int, trainers: Trainers, threads: Threads
    ) -> None:
        self._client, self._run, self._trainers, self._threads = client, run, trainers, threads
        self._rounds, self._rule = AveragingRounds(run.params, length), find_merge_rule(run.params.merge)
        self._session = f"{place.name}-{uuid.uuid4().hex[:8]}"  # keys of an earlier client's tasks must not be met
        self._blocks: dict[TableBlock, Future] = {}
        self._velocity: dict[TableBlock, Future] = {}  # empty before the first merge, and where a rule has none
        self.threads, self.facts = threads.n, dict[str, Any]()

    def __len__(self) -> int:
        return len(self._rounds)

    def restore(self, number: int, checkpoint: Store | None, manifest: Mapping[str, Any]) -> None:
        """Load the blocks of a checkpoint, or make those of a model before training."""
        params, key = self._run.params, f"{self._session}-{number}"
        tables = find_objective(params.objective).tables(params, self._run.vocabulary.size)
        blocks = cut_tables(tables, params.vector_size)
        if checkpoint is None:
            self._blocks, self._velocity = _initial_blocks(self._client, self._run, blocks, key), {}
            return
        self._blocks = load_blocks(self._client, checkpoint, blocks, key)
        self._velocity = {}
        if manifest["velocity"]:
            velocity = load_blocks(self._client, checkpoint, rename(self._blocks, _VELOCITY), key)
            self._velocity = dict(zip(blocks, velocity.values(), strict=True))

    def play(self, number: int) -> Iterator[RoundReport]:
        """Submit the training of all replicas and their merging; yield the round's report when it is trained."""
        client, this, key = self._client, self._rounds[number], f"{self._session}-{number}"
        blocks, alone = list(self._blocks), len(this.works) == 1
        few = pulls(self._run, this)
        replicas = [
            client.submit(
                train_replica,
                self._run,
                self._threads,
                work,
                alone,
                blocks,
                *(self._pull(work, f"{key}-{work.replica}") if few else (None, *self._blocks.values())),
                key=f"train-{key}-{work.replica}",
                retries=2,
                resources=self._trainers.takes,
            )
            for work in this.works
        ]
        totals = [client.submit(attrgetter("totals"), replica, key=f"totals-{replica.key}") for replica in replicas]
        for n, block in enumerate(blocks):
            trained = [client.submit(_nth_block, replica, n, key=f"block-{replica.key}-{n}") for replica in replicas]
            self._merge(block, trained, f"{key}-{n}")
        rows = InputRows(join_blocks, [rows for block, rows in self._blocks.items() if block.table == "input"])
        return self._reports(this, totals, rows)

    def _pull(self, work: ReplicaWork, key: str) -> Iterator[Future]:
        """Yield what a replica reaches, and its rows of each block, taken where the block is."""
        reached = self._client.submit(reach, self._run, work, list(self._blocks), key=f"reach-{key}", retries=2)
        yield reached
        for n, rows in enumerate(self._blocks.values()):
            yield self._client.submit(pull, rows, reached, n, key=f"pull-{key}-{n}")

    def _reports(self, this: AveragingRound, totals: list[Future], rows: InputRows) -> Iterator[RoundReport]:
        done: list[TaskTotals] = gather(self._client, totals, f"Round {this.number}", self._trainers.takes)
        yield RoundReport(this.stop, this.works[0].alpha_stop, done, rows)

    def _merge(self, block: TableBlock, trained: list[Future], key: str) -> None:
        """Replace a block by the merge of what replicas trained."""
        if len(trained) == 1:
            self._blocks[block] = trained[0]
            return
        before, length = self._velocity.get(block), block.stop - block.start
        merged = _merge(self._client, self._rule, length, self._blocks[block], before, trained, key)
        self._blocks[block] = self._client.submit(itemgetter(0), merged, key=f"rows-{merged.key}")
        if self._rule.has_velocity:
            self._velocity[block] = self._client.submit(itemgetter(1), merged, key=f"velocity-{merged.key}")

    def save_checkpoint(self, checkpoint: Store) -> dict[str, Any]:
        """Write the blocks and their velocity."""
        self._save(checkpoint, {**self._blocks, **rename(self._velocity, _VELOCITY)}, "a checkpoint")
        return {"velocity": bool(self._velocity)}

    def save_model(self, model: Store) -> None:
        """Write the blocks."""
        self._save(model, self._blocks, "Writing the model")

    def _save(self, store: Store, blocks: Mapping[TableBlock, Future], what: str) -> None:
        writes = save_blocks(self._client, store, blocks, self._run.params.vector_size, uuid.uuid4().hex)
        finish_tables(store, gather(self._client, writes, what))


def _start(
    client: Client, run: Run, place: Store, length: int, resources: Resources, listener: Listener
) -> AveragingRun:
    trainers = trainers_of(client, run.device)
    threads = threads_of(task_threads([n for _, n in trainers.homes()], run.params, resources), resources)
    if threads.n > 1:
        listener(Progress("train", 0, 0, "", message=_HOGWILD.format(threads.n)))
    return AveragingRun(client, run, place, length, trainers, threads)


def _initial_blocks(client: Client, run: Run, blocks: Sequence[TableBlock], key: str) -> dict[TableBlock, Future]:
    return {
        block: client.submit(initial_block, run, block, key=f"initial-{key}-{block.table}-{block.start}")
        for block in blocks
    }


def _nth_block(trained: Trained, number: int) -> Any:
    return trained.blocks[number]


def _merge(
    client: Client,
    rule: MergeRule,
    length: int,
    base: Future,
    velocity: Future | None,
    trained: list[Future],
    key: str,
) -> Future:
    """Return the future of a block's `MergedBlock`, by a tree whose shape depends on the number of replicas only."""
    if len(trained) <= FAN_IN:
        return client.submit(_merge_few, rule.name, base, velocity, *trained, key=f"merge-{key}")
    parts = [
        client.submit(_add_some, length, *trained[i : i + FAN_IN], key=f"deltas-{key}-{i}")
        for i in range(0, len(trained), FAN_IN)
    ]
    level = 0
    while len(parts) > 1:
        parts = [
            client.submit(_join, *parts[i : i + FAN_IN], key=f"join-{key}-{level}-{i}")
            for i in range(0, len(parts), FAN_IN)
        ]
        level += 1
    return client.submit(_merge_sum, rule.name, base, velocity, parts[0], key=f"merge-{key}")


def _add_some(length: int, *deltas: Delta) -> Deltas:
    return _shared(add_deltas(length, *deltas))


def _join(*parts: Deltas) -> Deltas:
    return _shared(join_deltas(*parts))


def _shared(deltas: Deltas) -> Deltas:
    return deltas._replace(total=share(deltas.total))


def _merge_few(rule: str, base: Float32Array, velocity: Float32Array | None, *deltas: Delta) -> MergedBlock:
    def deltas_of(rows: slice) -> Deltas:
        return add_deltas(rows.stop - rows.start, *(delta.within(rows) for delta in deltas))

    return _finish(rule, base, velocity, deltas_of)


def _merge_sum(rule: str, base: Float32Array, velocity: Float32Array | None, deltas: Deltas) -> MergedBlock:
    return _finish(
        rule, base, velocity, lambda rows: deltas._replace(total=deltas.total[rows], changed=deltas.changed[rows])
    )


def _finish(
    rule: str, base: Float32Array, velocity: Float32Array | None, deltas_of: Callable[[slice], Deltas]
) -> MergedBlock:
    rows, faster = merge_block(find_merge_rule(rule), base, velocity, deltas_of)
    return MergedBlock(share(rows), faster if faster is None else share(faster))


def _check(params: Params) -> None:
    find_merge_rule(params.merge)


def _describe_run(params: Mapping[str, Any], rounds: int) -> Iterator[str]:
    n = params.get("n_replicas")
    if n is not None:
        yield counted(n, "replica")
    if rounds:
        yield counted(rounds, "round" if n == 1 else "merge")


AVERAGING = Strategy(
    name="averaging",
    title="replicas are merged",
    find_kernel=lambda objective, device: device.replica_trainer.find_kernel(objective),
    start=_start,
    memory=run_memory,
    cost=run_cost,
    tried=tried,
    check=_check,
    describe_run=_describe_run,
)
