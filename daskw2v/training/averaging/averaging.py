"""Strategy `averaging`: replicas train apart for a round, then their models are merged (papers 001 and 000).

A round is a graph of pure tasks. Each replica's task takes all blocks of the common model, or the rows that its text
reaches where these are few (`pulling`), and returns what it changed; each block is merged by a small tree of tasks;
the next tasks depend on the merged blocks. So reduce-scatter and all-gather follow from the graph. Replicas are
numbers, not workers: Dask places their tasks, and repeats those of a lost worker.

A round has several steps (`round_schedule`). After each, the rows of the most frequent words are merged, those of rarer
ones less often, and all at the end of the round. Until then a replica's tables stay on its worker (`replica`).
"""

import math
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import chain
from typing import Any

import numpy as np
from distributed import Client, Future

from daskw2v.cluster import Trainers, gather
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.errors import ParameterError, counted
from daskw2v.models.stored.store import finish_tables
from daskw2v.objectives.registry import find_objective
from daskw2v.progress import Listener, Progress
from daskw2v.sampling.run import Run
from daskw2v.store.storage import Store
from daskw2v.training.averaging.cost import run_cost, tried
from daskw2v.training.averaging.curvature import curvature_of, moments_of
from daskw2v.training.averaging.memory import run_memory, task_threads
from daskw2v.training.averaging.merge import find_merge_rule
from daskw2v.training.averaging.merge_tasks import BlockTraining, Curvatures, submit_merge
from daskw2v.training.averaging.pulling import pull, pulls, reach
from daskw2v.training.averaging.replica import (
    ReplicaStep,
    Trained,
    nth_rows,
    state_of,
    totals_of,
    train_replica,
)
from daskw2v.training.averaging.round_schedule import AveragingRound, AveragingRounds, AveragingStep, levels
from daskw2v.training.averaging.settings import Averaging
from daskw2v.training.devices import Threads, find_device, threads_of, trainers_of
from daskw2v.training.devices.exercise import exercise_replica
from daskw2v.training.loop.strategy import ModelRows, RoundReport, Strategy, TableParts, TaskTotals, check_rounds, up_to
from daskw2v.training.start.blocks import (
    TableBlock,
    cut_tables,
    initial_block,
    join_blocks,
    load_blocks,
    pick_block,
    save_blocks,
)
from daskw2v.training.start.features import tables_of
from daskw2v.types import Float32Array, Int64Array

_HOGWILD = "{} train each replica without locks: fast, but not the same to the last bit (one thread of a CPU is)"


class AveragingRun:
    """A run of the strategy, a `strategy.StrategyRun`: it holds the model's blocks.

    Parameters
    ----------
    client, run, place, length
        As in `strategy.StartRun`.
    trainers, threads
        The workers that train, and the threads of a task.
    """

    unit, trained = "round", "replica"

    def __init__(
        self, client: Client, run: Run, place: Store, length: int, trainers: Trainers, threads: Threads
    ) -> None:
        self._client, self._run, self._trainers, self._threads = client, run, trainers, threads
        trainer = find_device(run.device).replica_trainer
        self._rounds = AveragingRounds(run.params, length, run.vocabulary.size, trainer.step, trainer.task)
        # Of the task that was submitted last: how many rounds it trains, and those that are not played yet
        self._size, self._begun = 1, dict[int, Iterator[RoundReport]]()
        self._levels = levels(run.params, run.vocabulary.size)
        self._session = f"{place.name}-{uuid.uuid4().hex[:8]}"  # keys of an earlier client's tasks must not be met
        self._blocks: dict[TableBlock, Future] = {}
        self._left: Future | None = None  # result of the only replica of the last round, with the rows of all blocks
        self._moments: dict[int, Future] = {}  # `Moments` of blocks, by number, where they are known
        self.threads, self.facts = threads.n, dict[str, Any]()

    def __len__(self) -> int:
        return len(self._rounds)

    @property
    def ahead(self) -> int:
        """Rounds of two tasks: workers need not wait for the client."""
        return len(self) + 1 if self._begun else self._size + 1

    def restore(self, number: int, checkpoint: Store | None, manifest: Mapping[str, Any]) -> None:
        """Load the blocks of a checkpoint, or make those of a model before training."""
        params, key = self._run.params, f"{self._session}-{number}"
        tables = tables_of(self._run)
        cuts = self._levels if Averaging.of(params).n_replicas > 1 else ()
        blocks, self._left, self._moments = cut_tables(tables, params.vector_size, cuts), None, {}
        if checkpoint is None:
            self._blocks = _initial_blocks(self._client, self._run, blocks, key)
            return
        check_rounds(checkpoint, manifest, len(self))
        self._blocks = load_blocks(self._client, checkpoint, blocks, key)

    def can_stop(self, number: int) -> bool:
        """Return whether there is a model before a round: before each that begins a task."""
        return number not in self._begun

    def progress_after(self, number: int) -> int:
        """Return the progress after a round."""
        return self._rounds[number].stop

    def play(self, number: int, looked_at: Callable[[int], bool]) -> Iterator[RoundReport]:
        """Submit the training of all replicas and their merging; yield a report of each step when it is trained."""
        if number not in self._begun:
            together = up_to(looked_at, self._rounds.together(number))
            self._size = len(together)
            if self._size > 1:
                reports = self._play_together([self._rounds[n] for n in together], looked_at(together[-1]))
                self._begun = dict(zip(together, reports, strict=True))
        if number in self._begun:
            return self._begun.pop(number)
        this, key = self._rounds[number], f"{self._session}-{number}"
        self._trainers = trainers_of(self._client, self._run.device)  # workers may have come or gone
        replicas = [_Submitted(i, reached) for i, reached in enumerate(self._reach(this, key))]
        numbers, totals = tuple(range(len(self._blocks))), list[list[Future]]()
        merged_at = dict.fromkeys(numbers, this.start)  # progress
        for n, step in enumerate(this.steps):
            last, merged, name = step is this.steps[-1], self._merged_after(this, step), f"{key}-{n}"
            coming = [None] * this.n_replicas if last else this.steps[n + 1].works
            for replica in replicas:
                if n == 0:
                    replica.blocks = self._left or self._rows_for(replica, numbers, name)
                else:
                    replica.news.append(self._rows_for(replica, numbers, name))
                replica.steps.append(ReplicaStep(step.works[replica.number], merged, coming[replica.number]))
            trained = [self._train(replica, name) for replica in replicas]
            totals.append([self._client.submit(totals_of, some, key=f"totals-{some.key}") for some in trained])
            if this.n_replicas > 1:
                rates = {n: self._rounds.rate(merged_at[n], step.stop) / this.n_replicas for n in merged}
                self._merge_blocks(rates, trained, name)
                merged_at |= dict.fromkeys(merged, step.stop)
            elif last:
                self._left = trained[0]
            numbers = merged
        return self._reports(this, totals, self._model_rows(looked_at(number)))

    def _play_together(self, rounds: Sequence[AveragingRound], looked_at: bool) -> list[Iterator[RoundReport]]:
        """Submit a task that trains rounds of one replica; return, for each, an iterator over its steps."""
        key = f"{self._session}-{rounds[0].number}"
        self._trainers = trainers_of(self._client, self._run.device)
        replica = _Submitted(0, None)
        replica.blocks = self._left or self._rows_for(replica, range(len(self._blocks)), key)
        replica.steps = [ReplicaStep(step.works[0], (), None) for this in rounds for step in this.steps]
        replica.news = [{}] * (len(replica.steps) - 1)
        self._left = self._train(replica, key, last=len(replica.steps))
        totals = self._client.submit(totals_of, self._left, key=f"totals-{self._left.key}")
        task = RoundsTask(self._client, rounds, totals, self._trainers.takes, self._model_rows(looked_at))
        return [task.reports(number) for number in range(len(rounds))]

    def _model_rows(self, looked_at: bool) -> ModelRows | None:
        """Return both tables now; None where a replica holds them that are not looked at: they may fill a device."""
        return model_rows(self._blocks, self._left) if looked_at or self._left is None else None

    def _preferred_worker(self, slots: Sequence[str], replica: int) -> str:
        """Return the worker that a replica prefers."""
        return slots[len(slots) * replica // Averaging.of(self._run.params).n_replicas % len(slots)]

    def _merged_after(self, this: AveragingRound, step: AveragingStep) -> tuple[int, ...]:
        """Return the numbers of the blocks that are merged after a step; no number if there is one replica."""
        if this.n_replicas == 1:
            return ()
        end = math.inf if step.level is None else self._levels[step.level]
        return tuple(number for number, block in enumerate(self._blocks) if block.stop <= end)

    def _reach(self, this: AveragingRound, key: str) -> list[Future | None]:
        """Return the future of the rows that each replica reaches in a round; None where it takes whole blocks."""
        if not pulls(self._run, this):
            return [None] * this.n_replicas
        works = zip(*(step.works for step in this.steps), strict=True)
        blocks = list(self._blocks)
        return [
            self._client.submit(reach, self._run, of_replica, blocks, key=f"reach-{key}-{replica}", retries=2)
            for replica, of_replica in enumerate(works)
        ]

    def _rows_for(self, replica: "_Submitted", numbers: Sequence[int], key: str) -> dict[int, Future]:
        """Return the rows that a replica takes of some blocks; tasks pick a part of a block on its worker."""
        blocks = list(self._blocks)
        whole = {n: self._blocks[blocks[n]] for n in numbers}
        if replica.reached is None:
            return whole
        name = f"pull-{key}-{replica.number}"
        return {n: self._client.submit(pull, rows, replica.reached, n, key=f"{name}-{n}") for n, rows in whole.items()}

    def _train(self, replica: "_Submitted", key: str, *, last: int = 1) -> Future:
        """Submit the training of a replica's next step, or of the last steps; return its future."""
        where = self._trainers.preferring(self._preferred_worker(self._trainers.slots(), replica.number))
        trained = self._client.submit(
            train_replica,
            self._run,
            self._threads,
            list(self._blocks),
            list(replica.steps),
            replica.before,
            replica.reached,
            replica.blocks,
            list(replica.news),
            last,
            key=f"train-{key}-{replica.number}",
            retries=2,
            resources=self._trainers.takes,
            **where,
        )
        # Dask runs the next step on the worker of the replica, whose size its state alone has
        replica.before = self._client.submit(state_of, trained, key=f"state-{trained.key}")
        return trained

    def _reports(
        self, this: AveragingRound, totals: list[list[Future]], rows: ModelRows | None
    ) -> Iterator[RoundReport]:
        for step, futures in zip(this.steps, totals, strict=True):
            done = gather(self._client, futures, f"Round {this.number}", self._trainers.takes)
            yield RoundReport(step.stop, step.works[0].alpha_stop, [*chain.from_iterable(done)], rows)

    def _split(self) -> None:
        """Replace all blocks by the rows that the only replica of the last round left, if it left any."""
        if self._left is not None:
            for number, block in enumerate(self._blocks):
                key = f"block-{self._left.key}-{number}"
                self._blocks[block] = self._client.submit(nth_rows, self._left, number, key=key)
            self._left = None

    def _merge_blocks(self, rates: Mapping[int, float], trained: Sequence[Future], key: str) -> None:
        """Replace blocks by their merge with the changes of the replicas.

        Parameters
        ----------
        rates
            By the number of a block, the sum of the learning rates over the positions that a replica trained since the
            block was merged last.
        trained
            Futures of each replica's result.
        """
        blocks, curvatures = list(self._blocks), self._curvatures(key)
        for number, rate in rates.items():
            block = blocks[number]
            how, name = BlockTraining(self._run, block, rate), f"{key}-{number}"
            self._blocks[block] = submit_merge(
                self._client, how, curvatures, self._blocks[block], number, trained, name
            )
            self._moments.pop(number, None)

    def _curvatures(self, key: str) -> Future | Curvatures:
        """Return the future of the curvature of each table, by name; none where the merge rule does not need it."""
        if find_merge_rule(Averaging.of(self._run.params).merge).project is None:
            return {}
        for number, (block, rows) in enumerate(self._blocks.items()):
            if number not in self._moments:
                name = f"moments-{key}-{number}"
                self._moments[number] = self._client.submit(moments_of, self._run, block, rows, key=name)
        moments = [self._moments[number] for number in range(len(self._blocks))]
        return self._client.submit(curvature_of, self._run, list(self._blocks), moments, key=f"curvature-{key}")

    def save_checkpoint(self, checkpoint: Store) -> dict[str, Any]:
        """Write the blocks."""
        self._split()
        self._save(checkpoint, self._blocks, "a checkpoint")
        return {"rounds": len(self)}

    def save_model(self, model: Store) -> None:
        """Write the blocks."""
        self._split()
        self._save(model, self._blocks, "Writing the model")

    def _save(self, store: Store, blocks: Mapping[TableBlock, Future], what: str) -> None:
        writes = save_blocks(self._client, store, blocks, self._run.params.vector_size, uuid.uuid4().hex)
        finish_tables(store, gather(self._client, writes, what))


class RoundsTask:
    """A task that trains several rounds of one replica.

    Parameters
    ----------
    client
        The cluster that does it.
    rounds
        Its rounds, one after the other.
    totals
        The future of the totals of all of their steps.
    takes
        As in `Trainers`.
    rows
        Both tables after the last round.
    """

    def __init__(
        self,
        client: Client,
        rounds: Sequence[AveragingRound],
        totals: Future,
        takes: Mapping[str, int] | None,
        rows: ModelRows | None,
    ) -> None:
        self._client, self._rounds, self._totals, self._takes, self._rows = client, rounds, totals, takes, rows

    def reports(self, number: int) -> Iterator[RoundReport]:
        """Wait for the task, unless that was done; yield the steps of one of its rounds."""
        done, seconds = self._done
        longer = seconds / sum(totals.seconds for totals in done)  # than the task took its worker
        this, first = self._rounds[number], sum(len(before.steps) for before in self._rounds[:number])
        rows = self._rows if number == len(self._rounds) - 1 else None
        for step, totals in zip(this.steps, done[first:], strict=False):
            yield RoundReport(step.stop, step.works[0].alpha_stop, [totals], rows, seconds=longer * totals.seconds)

    @cached_property
    def _done(self) -> tuple[list[TaskTotals], float]:
        """The totals of all steps, and the seconds that their reader waited for them."""
        began, what = time.monotonic(), f"Round {self._rounds[0].number}"
        (found,) = gather(self._client, [self._totals], what, self._takes)
        return found, time.monotonic() - began


def model_rows(blocks: Mapping[TableBlock, Future], left: Future | None) -> ModelRows:
    """Return the tables that blocks make; or those of `Trained`, if the only replica left it, with the same blocks."""
    numbered = dict[str, dict[int, TableBlock]]()
    for number, block in enumerate(blocks):
        numbered.setdefault(block.table, {})[number] = block
    if left is None:
        return {
            table: TableParts([blocks[b] for b in own.values()], partial(pick_block, [*own.values()]), join_blocks)
            for table, own in numbered.items()
        }
    return {
        table: TableParts([left], partial(_pick_left, own), partial(_join_left, [*own]))
        for table, own in numbered.items()
    }


def _join_left(numbers: Sequence[int], trained: Trained) -> Float32Array:
    """Return the table that some blocks of the only replica make, in this machine's memory."""
    return join_blocks(*(trained.rows[number] for number in numbers))


def _pick_left(
    blocks: Mapping[int, TableBlock], trained: Trained, _: int, wanted: Int64Array
) -> tuple[Int64Array, Float32Array]:
    """Return some rows of a table from the blocks that the only replica left, as `TableParts.pick` does."""
    own = [*blocks.values()]
    found = [pick_block(own, trained.rows[number], n, wanted) for n, number in enumerate(blocks)]
    return np.concatenate([which for which, _ in found]), np.concatenate([rows for _, rows in found])


class _Submitted:
    """The submitted steps of a replica in a round.

    Parameters
    ----------
    number
        Number of the replica.
    reached
        Future of the rows that it reaches; None where it takes whole blocks.
    """

    def __init__(self, number: int, reached: Future | None) -> None:
        self.number, self.reached = number, reached
        self.steps: list[ReplicaStep] = []
        self.blocks: Mapping[int, Future] | Future = {}
        self.news: list[Mapping[int, Future]] = []
        self.before: Future | None = None


def _start(
    client: Client, run: Run, place: Store, length: int, resources: Resources, listener: Listener
) -> AveragingRun:
    trainers = trainers_of(client, run.device)
    threads = threads_of(task_threads(trainers.threads_of_workers(), run.params, resources), resources)
    if together := find_device(run.device).replica_trainer.trains_together(threads):
        listener(Progress("train", 0, 0, "", message=_HOGWILD.format(together)))
    return AveragingRun(client, run, place, length, trainers, threads)


def _initial_blocks(client: Client, run: Run, blocks: Sequence[TableBlock], key: str) -> dict[TableBlock, Future]:
    return {
        block: client.submit(initial_block, run, block, key=f"initial-{key}-{block.table}-{block.start}")
        for block in blocks
    }


def _check(params: Params) -> None:
    rule, objective = find_merge_rule(Averaging.of(params).merge), find_objective(params.objective.name)
    if Averaging.of(params).n_replicas > 1 and rule.project is not None and objective.touched is None:
        raise ParameterError(
            f"merge={rule.name!r} needs to know how often {objective.name} touches each row (Objective.touched).",
            "Give merge='mean', or one replica.",
        )


def _describe_run(params: Mapping[str, Any], rounds: int) -> Iterator[str]:
    n = params.get("n_replicas")
    if n is not None:
        yield counted(n, "replica")
    if rounds:
        yield counted(rounds, "round" if n == 1 else "merge")


AVERAGING = Strategy(
    name="averaging",
    settings=Averaging,
    title="replicas are merged",
    find_kernel=lambda objective, device: device.replica_trainer.find_kernel(objective),
    start=_start,
    memory=run_memory,
    exercise=exercise_replica,
    cost=run_cost,
    tried=tried,
    check=_check,
    describe_run=_describe_run,
    honours=(
        "frozen_words",
        "maxn",
        "features",
        "prefix_sizes",
        "market_negative",
        "hot_rows",
        "max_in_flight",
    ),
)
