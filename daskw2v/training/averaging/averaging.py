"""Strategy `averaging`: replicas train apart for a round, then their models are merged (papers 001 and 000).

A round is a graph of tasks. A task makes each replica of all blocks of the common model, or of the rows that its text
reaches where these are few (`pulling`). A round has several steps (`round_schedule`): a task trains a step of a replica
and returns its changes of the rows that are merged after the step, rows of the most frequent words after each, those of
rarer words less often, all rows at the end of the round. A small tree of tasks merges each block, and the tasks of the
next step depend on the merged blocks. So reduce-scatter and all-gather follow from the graph. Replicas are numbers, not
workers: Dask places their tasks, and repeats the tasks of a lost worker (`replica`).

One replica is a round whose steps merge no blocks; its last task returns the rows of all blocks.
"""

import math
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from typing import Any

from distributed import Client, Future

from daskw2v.cluster.waiting import gather
from daskw2v.cluster.workers import Trainers
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.errors import ParameterError, counted
from daskw2v.models.stored.store import finish_tables
from daskw2v.objectives.registry import find_objective
from daskw2v.progress import Listener, Progress
from daskw2v.sampling.run import Run
from daskw2v.store.storage import Store
from daskw2v.training.averaging.curvature import curvature_of, moments_of
from daskw2v.training.averaging.merge import find_merge_rule
from daskw2v.training.averaging.merge_tasks import BlockTraining, Curvatures, submit_merge
from daskw2v.training.averaging.pulling import pull, pulls, reach
from daskw2v.training.averaging.replica import ReplicaStep, make_replica, nth_rows, totals_of, train_replica
from daskw2v.training.averaging.round_schedule import AveragingRound, AveragingRounds, AveragingStep, levels
from daskw2v.training.averaging.settings import Averaging
from daskw2v.training.averaging.work import AveragingWork, task_threads, tried
from daskw2v.training.devices import Threads, find_device, threads_of, trainers_of
from daskw2v.training.devices.exercise import exercise_replica
from daskw2v.training.loop.strategy import ModelRows, RoundReport, Strategy, TableParts, check_rounds, up_to
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
        self._together = 1  # number of the rounds that were submitted last
        self._begun = dict[int, Iterator[RoundReport]]()  # reports of submitted rounds that are not played yet
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
        return len(self) + 1 if self._begun else self._together + 1

    def restore(self, number: int, checkpoint: Store | None, manifest: Mapping[str, Any]) -> None:
        """Load the blocks of a checkpoint, or make the blocks of a model before training."""
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
        """Return whether there is a model before a round: before the first of rounds that are submitted together."""
        return number not in self._begun

    def progress_after(self, number: int) -> int:
        """Return the progress after a round."""
        return self._rounds[number].stop

    def play(self, number: int, looked_at: Callable[[int], bool]) -> Iterator[RoundReport]:
        """Submit the training of all replicas and their merging; yield a report of each step when it is trained."""
        if number not in self._begun:
            together = up_to(looked_at, self._rounds.together(number))
            self._together = len(together)
            reports = self._submit([self._rounds[n] for n in together])
            rows = self._model_rows() if looked_at(together[-1]) else None
            for n in together:
                of_round = islice(reports, len(self._rounds[n].steps))
                self._begun[n] = _with_rows(of_round, rows if n == together[-1] else None)
        return self._begun.pop(number)

    def _submit(self, rounds: Sequence[AveragingRound]) -> Iterator[RoundReport]:
        """Submit rounds; yield a report of each step of theirs when it is trained.

        Each step of a round is a task of each replica. Several rounds, of one replica, are one task.
        """
        first, key = rounds[0], f"{self._session}-{rounds[0].number}"
        steps = [step for this in rounds for step in this.steps]
        tasks = [[step] for step in steps] if len(rounds) == 1 else [steps]
        self._trainers = trainers_of(self._client, self._run.device)  # workers may have come or gone
        replicas = self._replicas(first, key)
        numbers: tuple[int, ...] = ()  # of the blocks that were merged before a task
        totals = list[list[Future]]()
        merged_at = dict.fromkeys(range(len(self._blocks)), first.start)  # progress
        for n, of_task in enumerate(tasks):
            step, last, name = of_task[-1], n == len(tasks) - 1, f"{key}-{n}"
            merged = self._merged_after(step, first.n_replicas)
            trained = list[Future]()
            for replica in replicas:
                replica.merged += [self._rows_for(replica, numbers, name), *([{}] * (len(of_task) - 1))]
                coming = None if last else tasks[n + 1][0].works[replica.number]
                replica.steps += [ReplicaStep(before.works[replica.number]) for before in of_task[:-1]]
                replica.steps.append(ReplicaStep(step.works[replica.number], merged, coming))
                trained.append(self._train(replica, len(of_task), name))
            totals.append([replica.totals for replica in replicas if replica.totals is not None])
            if merged:
                rates = {n: self._rounds.rate(merged_at[n], step.stop) / first.n_replicas for n in merged}
                self._merge_blocks(rates, trained, name)
                merged_at |= dict.fromkeys(merged, step.stop)
            elif last:
                self._left = trained[0]
            numbers = merged
        return self._reports(first.number, tasks, totals)

    def _replicas(self, this: AveragingRound, key: str) -> list["_SubmittedReplica"]:
        """Submit the making of all replicas, of the model before a round."""
        slots, numbers = self._trainers.slots(), range(len(self._blocks))
        replicas = list[_SubmittedReplica]()
        for number, reached in enumerate(self._reach(this, key)):
            where = self._trainers.preferring(slots[len(slots) * number // this.n_replicas % len(slots)])
            replica = _SubmittedReplica(
                number, reached, {"resources": self._trainers.task_resources, "retries": 2, **where}
            )
            replica.start = self._left or self._rows_for(replica, numbers, key)
            # Named as the tasks of its steps: Dask takes it for as long as these, and does not crowd one worker
            replica.future = self._client.submit(
                make_replica,
                self._run,
                self._threads,
                list(self._blocks),
                reached,
                replica.start,
                key=f"train-{key}-start-{number}",
                **replica.options,
            )
            replicas.append(replica)
        return replicas

    def _merged_after(self, step: AveragingStep, n_replicas: int) -> tuple[int, ...]:
        """Return the numbers of the blocks that are merged after a step; no number if there is one replica."""
        if n_replicas == 1:
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

    def _rows_for(self, replica: "_SubmittedReplica", numbers: Sequence[int], key: str) -> dict[int, Future]:
        """Return the rows that a replica takes of some blocks; tasks pick a part of a block on its worker."""
        blocks = list(self._blocks)
        whole = {n: self._blocks[blocks[n]] for n in numbers}
        if replica.reached is None:
            return whole
        name = f"pull-{key}-{replica.number}"
        return {n: self._client.submit(pull, rows, replica.reached, n, key=f"{name}-{n}") for n, rows in whole.items()}

    def _train(self, replica: "_SubmittedReplica", last: int, key: str) -> Future:
        """Submit the training of the last steps of a replica; return the future of the result."""
        trained = self._client.submit(
            train_replica,
            replica.future,
            list(replica.steps),
            replica.start,
            list(replica.merged),
            last,
            replica.totals,
            key=f"train-{key}-{replica.number}",
            **replica.options,
        )
        replica.totals = self._client.submit(totals_of, trained, key=f"totals-{trained.key}")
        return trained

    def _reports(
        self, number: int, tasks: Sequence[Sequence[AveragingStep]], totals: Sequence[Sequence[Future]]
    ) -> Iterator[RoundReport]:
        """Yield a report of each step of tasks, from the futures of the totals of each task's replicas.

        The steps of one task share the seconds that their reader waits for it.
        """
        for steps, futures in zip(tasks, totals, strict=True):
            began = time.monotonic()
            done = gather(self._client, futures, f"Round {number}", self._trainers.task_resources)
            waited = time.monotonic() - began
            total = sum(of_step.seconds for of_step in chain.from_iterable(done))
            for step, of_step in zip(steps, zip(*done, strict=True), strict=True):
                seconds = None if len(steps) == 1 else waited * of_step[0].seconds / total
                yield RoundReport(step.stop, step.works[0].alpha_stop, of_step, None, seconds=seconds)

    def _model_rows(self) -> ModelRows:
        """Return the tables, of the blocks that they are made of."""
        self._split()
        by_table = dict[str, list[TableBlock]]()
        for block in self._blocks:
            by_table.setdefault(block.table, []).append(block)
        return {
            table: TableParts([self._blocks[block] for block in blocks], partial(pick_block, blocks), join_blocks)
            for table, blocks in by_table.items()
        }

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
        key
            Part of the keys of the tasks.
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
        self._save(checkpoint, "a checkpoint")
        return {"rounds": len(self)}

    def save_model(self, model: Store) -> None:
        """Write the blocks."""
        self._save(model, "Writing the model")

    def _save(self, store: Store, what: str) -> None:
        self._split()
        writes = save_blocks(self._client, store, self._blocks, self._run.params.vector_size, uuid.uuid4().hex)
        finish_tables(store, gather(self._client, writes, what))


class _SubmittedReplica:
    """The submitted tasks of a replica in a round.

    Parameters
    ----------
    number
        Number of the replica.
    reached
        Future of the rows that it reaches; None where it takes whole blocks.
    options
        Options of `Client.submit` for its tasks.

    Attributes
    ----------
    start
        The rows that it is made of, as `make_replica` takes them.
    future
        Future of the replica.
    steps, merged
        The steps that were submitted, and the merged rows before each, as `train_replica` takes them.
    totals
        Future of the totals of the last task; None before the first.
    """

    def __init__(self, number: int, reached: Future | None, options: Mapping[str, Any]) -> None:
        self.number, self.reached, self.options = number, reached, options
        self.start: Mapping[int, Future] | Future = {}
        self.future: Future | None = None
        self.steps: list[ReplicaStep] = []
        self.merged: list[Mapping[int, Future]] = []
        self.totals: Future | None = None


def _with_rows(reports: Iterable[RoundReport], rows: ModelRows | None) -> Iterator[RoundReport]:
    """Yield the reports of a round, with the tables after it."""
    for report in reports:
        yield report._replace(rows=rows)


def _start(
    client: Client, run: Run, place: Store, length: int, resources: Resources, listener: Listener
) -> AveragingRun:
    trainers = trainers_of(client, run.device)
    threads = threads_of(task_threads(trainers.list_threads(), run.params, resources), resources)
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
    work=AveragingWork,
    exercise=exercise_replica,
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
