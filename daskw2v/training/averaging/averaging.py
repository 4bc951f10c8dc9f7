"""Strategy `averaging`: replicas train apart for a round, then their models are merged (papers 001 and 000).

A round is a graph of pure tasks. Each replica's task takes all blocks of the common model, or the rows that its text
reaches where these are few (`pulling`), and returns what it changed; each block is merged by a small tree of tasks;
the next tasks depend on the merged blocks. So reduce-scatter and all-gather follow from the graph. Replicas are
numbers, not workers: Dask places their tasks, and repeats those of a lost worker.

A round has several steps (`round_schedule`). After each, the rows of the most frequent words are merged, those of rarer
ones less often, and all at the end of the round. Until then a replica's tables stay on its worker (`replica`). Few
replicas take what all of them changed and merge it themselves, each the same: that saves tasks in a row.
"""

import math
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from operator import itemgetter
from typing import Any

from distributed import Client, Future

from daskw2v.cluster import Trainers, gather
from daskw2v.cluster.shared_memory import share
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.errors import DamageError, counted
from daskw2v.models.attempts import finish_tables
from daskw2v.objectives.registry import find_objective
from daskw2v.progress import Listener, Progress
from daskw2v.sampling.run import Run
from daskw2v.store.storage import Store
from daskw2v.training.averaging.cost import run_cost, tried
from daskw2v.training.averaging.deltas import Delta, Deltas, add_deltas, join_deltas
from daskw2v.training.averaging.memory import run_memory, task_threads
from daskw2v.training.averaging.merge import (
    EXCHANGED,
    FAN_IN,
    MergedBlock,
    MergeRule,
    find_merge_rule,
    merge_block,
    merge_deltas,
    merged_block,
)
from daskw2v.training.averaging.pulling import pull, pulls, reach
from daskw2v.training.averaging.replica import ReplicaState
from daskw2v.training.averaging.replica_task import ReplicaStep, Trained, preload, train_replica
from daskw2v.training.averaging.round_schedule import AveragingRound, AveragingRounds, AveragingStep, levels
from daskw2v.training.blocks import TableBlock, cut_tables, initial_block, join_blocks, load_blocks, rename, save_blocks
from daskw2v.training.devices import Threads, find_device, threads_of, trainers_of
from daskw2v.training.devices.exercise import exercise_replica
from daskw2v.training.strategy import InputRows, RoundReport, Strategy
from daskw2v.training.totals import TaskTotals
from daskw2v.types import Float32Array

_HOGWILD = "{} train each replica without locks: fast, but not the same to the last bit (one thread of a CPU is)"
_PRELOADED = 4096  # positions
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
        step = find_device(run.device).replica_trainer.step
        self._rounds = AveragingRounds(run.params, length, run.vocabulary.size, step)
        self._levels = levels(run.params, run.vocabulary.size)
        self._rule = find_merge_rule(run.params.merge)
        self._session = f"{place.name}-{uuid.uuid4().hex[:8]}"  # keys of an earlier client's tasks must not be met
        self._preloaded: list[Future] | None = None
        self._blocks: dict[TableBlock, Future] = {}
        # `MergedBlock`; none before the first merge, and where a rule has no velocity
        self._merged: dict[TableBlock, Future] = {}
        self.threads, self.facts = threads.n, dict[str, Any]()

    def __len__(self) -> int:
        return len(self._rounds)

    def restore(self, number: int, checkpoint: Store | None, manifest: Mapping[str, Any]) -> None:
        """Load the blocks of a checkpoint, or make those of a model before training."""
        params, key = self._run.params, f"{self._session}-{number}"
        tables = find_objective(params.objective).tables(params, self._run.vocabulary.size)
        cuts = self._levels if params.n_replicas > 1 else ()
        blocks = cut_tables(tables, params.vector_size, cuts)
        if checkpoint is None:
            self._blocks, self._merged = _initial_blocks(self._client, self._run, blocks, key), {}
            return
        if manifest.get("rounds") != len(self):
            raise DamageError(
                f"{checkpoint.url} was written by an older daskw2v, whose rounds were others.",
                "The same command makes it again.",
                url=checkpoint.url,
            )
        self._blocks = load_blocks(self._client, checkpoint, blocks, key)
        self._merged = {}
        if manifest["velocity"]:
            velocity = load_blocks(self._client, checkpoint, rename(self._blocks, _VELOCITY), key)
            of_each = zip(self._blocks.items(), velocity.values(), strict=True)
            self._merged = {block: self._client.submit(MergedBlock, rows, faster) for (block, rows), faster in of_each}

    def can_stop(self, number: int) -> bool:
        """Tell that there is a model before each round."""
        return True

    def play(self, number: int) -> Iterator[RoundReport]:
        """Submit the training of all replicas and their merging; yield a report of each step when it is trained."""
        this, key = self._rounds[number], f"{self._session}-{number}"
        self._trainers = trainers_of(self._client, self._run.device)  # workers may have come or gone
        if self._preloaded is None:
            self._preloaded = self._preload(this, key)
        replicas = [_Submitted(i, reached) for i, reached in enumerate(self._reach(this, key))]
        exchanged = self._exchanged(this)
        given, trained, totals = tuple(range(len(self._blocks))), list[Future](), list[list[Future]]()
        for n, step in enumerate(this.steps):
            last, merged, name = step is this.steps[-1], self._merged_after(this, step), f"{key}-{n}"
            coming = [None] * this.n_replicas if last else this.steps[n + 1].works
            for replica in replicas:
                if n == 0:
                    replica.given = self._given(replica, given, exchanged, name)
                else:
                    replica.news.append(trained if exchanged else self._given(replica, given, (), name))
                returned = exchanged[replica.number :: this.n_replicas] if last else ()
                replica.steps.append(ReplicaStep(step.works[replica.number], merged, coming[replica.number], returned))
            trained = [self._train(replica, name, alone=not exchanged) for replica in replicas]
            # All of a step together, where a worker has fetched all for the next step anyway
            together = [trained] if exchanged and not last else [[future] for future in trained]
            totals.append([self._client.submit(_totals, *some, key=f"totals-{some[0].key}") for some in together])
            if last and this.n_replicas == 1:
                self._take_blocks(trained[0], name)
            elif last or not exchanged:
                self._merge_blocks(merged, trained, exchanged, name)
            given = merged
        rows = InputRows(join_blocks, [rows for block, rows in self._blocks.items() if block.table == "input"])
        return self._reports(this, totals, rows)

    def _preload(self, this: AveragingRound, key: str) -> list[Future]:
        """Let workers that wait for the warm-up preload; Dask would cancel that without the futures."""
        last = self._rounds[len(self) - 1]
        if this.n_replicas == last.n_replicas or pulls(self._run, last) or self._trainers.takes:
            return []
        work, rows = this.steps[0].works[0], dict(enumerate(self._blocks.values()))
        few = replace(work, stop=min(work.stop, work.start + _PRELOADED))
        slots = self._trainers.slots()
        homes = dict.fromkeys(self._home(slots, replica) for replica in range(self._run.params.n_replicas))
        return [
            self._client.submit(
                preload, self._run, self._threads, list(self._blocks), few, rows,
                key=f"preload-{key}-{n}", priority=-1, **self._trainers.preferring(home),
            )
            for n, home in enumerate(homes) if home not in ("", self._home(slots, 0))
        ]  # fmt: skip

    def _home(self, slots: Sequence[str], replica: int) -> str:
        """Return the worker that a replica prefers."""
        return slots[len(slots) * replica // self._run.params.n_replicas % len(slots)]

    def _merged_after(self, this: AveragingRound, step: AveragingStep) -> tuple[int, ...]:
        """Return the numbers of the blocks that are merged after a step; of none if there is one replica."""
        if this.n_replicas == 1:
            return ()
        end = math.inf if step.level is None else self._levels[step.level]
        return tuple(number for number, block in enumerate(self._blocks) if block.stop <= end)

    def _reach(self, this: AveragingRound, key: str) -> list[Future | None]:
        """Return what each replica reaches in a round; None where it takes whole blocks."""
        if not pulls(self._run, this):
            return [None] * this.n_replicas
        works = zip(*(step.works for step in this.steps), strict=True)
        blocks = list(self._blocks)
        return [
            self._client.submit(reach, self._run, of_replica, blocks, key=f"reach-{key}-{replica}", retries=2)
            for replica, of_replica in enumerate(works)
        ]

    def _exchanged(self, this: AveragingRound) -> tuple[int, ...]:
        """Return the numbers of the blocks that replicas merge themselves until a round ends: of none if they pull."""
        if this.n_replicas > EXCHANGED or pulls(self._run, this):
            return ()
        return tuple(sorted({number for step in this.steps[:-1] for number in self._merged_after(this, step)}))

    def _given(
        self, replica: "_Submitted", given: Sequence[int], exchanged: Collection[int], key: str
    ) -> dict[int, Future]:
        """Return the rows that a replica is given of some blocks, taken where the block is if it takes some.

        With the velocity of those that it merges itself.
        """
        blocks = list(self._blocks)
        found = {n: self._blocks[blocks[n]] for n in given}
        if replica.reached is None:
            return found | {n: self._merged[blocks[n]] for n in exchanged if blocks[n] in self._merged}
        name = f"pull-{key}-{replica.number}"
        return {n: self._client.submit(pull, rows, replica.reached, n, key=f"{name}-{n}") for n, rows in found.items()}

    def _train(self, replica: "_Submitted", key: str, *, alone: bool) -> Future:
        """Submit the training of a replica's next step; return its future.

        `alone` tells that the step after it is given nothing else of this one.
        """
        where = self._trainers.preferring(self._home(self._trainers.slots(), replica.number))
        trained = self._client.submit(
            train_replica,
            self._run,
            self._threads,
            list(self._blocks),
            list(replica.steps),
            replica.before,
            replica.reached,
            replica.given,
            list(replica.news),
            key=f"train-{key}-{replica.number}",
            retries=2,
            resources=self._trainers.takes,
            **where,
        )
        replica.before = trained
        if alone or not where:  # Dask runs the next step where the replica is, whose size only its state tells
            replica.before = self._client.submit(_state, trained, key=f"state-{trained.key}")
        return trained

    def _reports(self, this: AveragingRound, totals: list[list[Future]], rows: InputRows) -> Iterator[RoundReport]:
        for step, futures in zip(this.steps, totals, strict=True):
            done = gather(self._client, futures, f"Round {this.number}", self._trainers.takes)
            yield RoundReport(step.stop, step.works[0].alpha_stop, [*chain.from_iterable(done)], rows)

    def _take_blocks(self, trained: Future, key: str) -> None:
        """Replace all blocks by the rows of the only replica."""
        for number, block in enumerate(self._blocks):
            self._blocks[block] = self._client.submit(_nth_rows, trained, number, key=f"block-{key}-{number}")

    def _merge_blocks(
        self, merged: Sequence[int], trained: Sequence[Future], exchanged: Sequence[int], key: str
    ) -> None:
        """Replace some blocks by the merge of what replicas changed, in blocks that they merged before or in these."""
        blocks, before = list(self._blocks), {**self._blocks, **self._merged}
        for i, number in enumerate(exchanged):
            returned = trained[i % len(trained)]
            before[blocks[number]] = self._client.submit(_nth_merged, returned, number, key=f"merged-{key}-{number}")
        for number in merged:
            block = blocks[number]
            deltas = [self._client.submit(_nth_change, r, number, key=f"change-{r.key}-{number}") for r in trained]
            merge = _merge(self._client, self._rule, block.stop - block.start, before[block], deltas, f"{key}-{number}")
            self._blocks[block] = self._client.submit(itemgetter(0), merge, key=f"rows-{merge.key}")
            if self._rule.has_velocity:
                self._merged[block] = merge

    def save_checkpoint(self, checkpoint: Store) -> dict[str, Any]:
        """Write the blocks and their velocity."""
        velocity = {block: self._client.submit(itemgetter(1), merged) for block, merged in self._merged.items()}
        self._save(checkpoint, {**self._blocks, **rename(velocity, _VELOCITY)}, "a checkpoint")
        return {"velocity": bool(velocity), "rounds": len(self)}

    def save_model(self, model: Store) -> None:
        """Write the blocks."""
        self._save(model, self._blocks, "Writing the model")

    def _save(self, store: Store, blocks: Mapping[TableBlock, Future], what: str) -> None:
        writes = save_blocks(self._client, store, blocks, self._run.params.vector_size, uuid.uuid4().hex)
        finish_tables(store, gather(self._client, writes, what))


class _Submitted:
    """What was submitted of a replica in a round.

    Parameters
    ----------
    number
        Of the replica.
    reached
        Of the rows that it reaches; None where it takes whole blocks.
    """

    def __init__(self, number: int, reached: Future | None) -> None:
        self.number, self.reached = number, reached
        self.steps: list[ReplicaStep] = []
        self.given: Mapping[int, Future] = {}
        self.news: list[Mapping[int, Future] | Sequence[Future]] = []
        self.before: Future | None = None


def _start(
    client: Client, run: Run, place: Store, length: int, resources: Resources, listener: Listener
) -> AveragingRun:
    trainers = trainers_of(client, run.device)
    threads = threads_of(task_threads([n for _, n in trainers.homes()], run.params, resources), resources)
    if together := find_device(run.device).replica_trainer.trains_together(threads):
        listener(Progress("train", 0, 0, "", message=_HOGWILD.format(together)))
    return AveragingRun(client, run, place, length, trainers, threads)


def _initial_blocks(client: Client, run: Run, blocks: Sequence[TableBlock], key: str) -> dict[TableBlock, Future]:
    return {
        block: client.submit(initial_block, run, block, key=f"initial-{key}-{block.table}-{block.start}")
        for block in blocks
    }


def _state(trained: Trained) -> ReplicaState:
    return trained.state


def _totals(*trained: Trained) -> list[TaskTotals]:
    return [replica.state.totals for replica in trained]


def _nth_change(trained: Trained, number: int) -> Any:
    return trained.changes[number]


def _nth_merged(trained: Trained, number: int) -> Any:
    return trained.merged[number]


def _nth_rows(trained: Trained, number: int) -> Any:
    return trained.rows[number]


def _merge(client: Client, rule: MergeRule, length: int, before: Future, trained: list[Future], key: str) -> Future:
    """Return the future of a `MergedBlock`, by a tree whose shape depends on the number of replicas only."""
    if len(trained) <= FAN_IN:
        return client.submit(_merge_few, rule.name, before, *trained, key=f"merge-{key}")
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
    return client.submit(_merge_sum, rule.name, before, parts[0], key=f"merge-{key}")


def _add_some(length: int, *deltas: Delta) -> Deltas:
    return _shared(add_deltas(length, *deltas))


def _join(*parts: Deltas) -> Deltas:
    return _shared(join_deltas(*parts))


def _shared(deltas: Deltas) -> Deltas:
    return deltas._replace(total=share(deltas.total))


def _merge_few(rule: str, before: MergedBlock | Float32Array, *deltas: Delta) -> MergedBlock:
    return merge_deltas(find_merge_rule(rule), merged_block(before), deltas).shared()


def _merge_sum(rule: str, before: MergedBlock | Float32Array, deltas: Deltas) -> MergedBlock:
    def deltas_of(rows: slice) -> Deltas:
        return deltas._replace(total=deltas.total[rows], changed=deltas.changed[rows])

    return merge_block(find_merge_rule(rule), merged_block(before), deltas_of).shared()


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
    exercise=exercise_replica,
    cost=run_cost,
    tried=tried,
    check=_check,
    describe_run=_describe_run,
)
