"""Strategy `averaging`: replicas train apart for a round, then their models are merged (Gupta and Khare 2017).

A round is a graph of tasks. A task makes each replica from all blocks of the common model, or from the rows that the
replica's text reaches where these are few (`pulling`). A round has several steps (`round_schedule`): a task trains a
step of a replica and returns the replica's changes of the rows that are merged after the step: rows of the most
frequent words after each step, rows of rarer words less often, all rows at the end of the round. A small tree of tasks
merges each block (a range of rows of a table), and the tasks of the next step depend on the merged blocks:
reduce-scatter and all-gather follow from the graph. Replicas are numbers, not workers: Dask assigns their tasks to
workers, and repeats the tasks of a lost worker (`replica`).

A round of one replica merges no blocks; its last task returns the rows of all blocks.
"""

import math
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, islice
from operator import attrgetter
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
from daskw2v.training.averaging.curvature import compute_curvatures, compute_moments
from daskw2v.training.averaging.merge import BlockTraining, Curvatures, find_merge_rule, submit_merge
from daskw2v.training.averaging.pulling import find_reached_rows, pull_rows, pulls_rows
from daskw2v.training.averaging.replica import ReplicaStep, get_block_rows, make_replica, train_replica
from daskw2v.training.averaging.round_schedule import AveragingRound, AveragingRounds, AveragingStep, level_ends
from daskw2v.training.averaging.settings import Averaging
from daskw2v.training.averaging.work import AveragingWork, advice, candidate_settings, task_threads
from daskw2v.training.devices import Threads, find_device, find_device_trainers
from daskw2v.training.devices.exercise import exercise_replica
from daskw2v.training.loop.strategy import ModelRows, RoundReport, Strategy, TableParts, check_rounds, until_needed
from daskw2v.training.start.blocks import TableBlock, cut_tables, join_blocks, pick_block, save_blocks, submit_blocks
from daskw2v.training.start.features import count_table_rows

_HOGWILD = "{} train each replica without locks: fast, but not reproducible to the last bit (one thread of a CPU is)"


class AveragingRun:
    """A run of the strategy, a `strategy.StrategyRun`: it holds the model's blocks.

    Parameters
    ----------
    client, run, folder, length
        As in `strategy.StartRun`.
    trainers, threads
        The workers that train, and the threads of a task.
    """

    unit, trained = "round", "replica"

    def __init__(
        self, client: Client, run: Run, folder: Store, length: int, trainers: Trainers, threads: Threads
    ) -> None:
        self._client, self._run, self._trainers, self._threads = client, run, trainers, threads
        trainer = find_device(run.device).replica_trainer
        self._rounds = AveragingRounds(run.params, length, run.vocabulary.size, trainer.step, trainer.task)
        self._n_submitted = 1  # rounds that were submitted together last
        self._submitted = dict[int, Iterator[RoundReport]]()  # reports of submitted rounds that are not played yet
        self._level_ends = level_ends(run.params, run.vocabulary.size)
        self._session = f"{folder.name}-{uuid.uuid4().hex[:8]}"  # unlike the keys of an earlier client's tasks
        self._blocks: dict[TableBlock, Future] = {}
        self._final: Future | None = None  # result of the only replica of the last round, with the rows of all blocks
        self._moments: dict[int, Future] = {}  # `Moments` of blocks, by number, where they are known
        self.threads, self.facts = threads.n, dict[str, Any]()

    def __len__(self) -> int:
        return len(self._rounds)

    @property
    def ahead(self) -> int:
        """Number of rounds that may be under way: all rounds of the last task, and the first of the next task."""
        return len(self) + 1 if self._submitted else self._n_submitted + 1

    def restore(self, number: int, checkpoint: Store | None, manifest: Mapping[str, Any]) -> None:
        """Submit tasks that load the model's blocks from a checkpoint; without one, that make the initial blocks.

        Raises a DamageError if the checkpoint is of a run with another number of rounds.
        """
        params, key = self._run.params, f"{self._session}-{number}"
        tables = count_table_rows(self._run)
        cuts = self._level_ends if Averaging.of(params).replicas > 1 else ()
        blocks, self._final, self._moments = cut_tables(tables, params.vector_size, cuts), None, {}
        if checkpoint is not None:
            check_rounds(checkpoint, manifest, len(self))
        self._blocks = submit_blocks(self._client, self._run, checkpoint, blocks, key)

    def can_stop(self, number: int) -> bool:
        """Return whether a model exists before the round of this number: it does before the first round of a task."""
        return number not in self._submitted

    def progress_after(self, number: int) -> int:
        """Return the corpus positions trained after the round of this number, over all epochs."""
        return self._rounds[number].stop

    def play(self, number: int, needs_rows: Callable[[int], bool]) -> Iterator[RoundReport]:
        """Submit the round of this number, unless an earlier call did; return an iterator over a report of each step.

        Rounds that one task trains are submitted together. The iterator waits for each report.
        """
        if number not in self._submitted:
            together = until_needed(needs_rows, self._rounds.rounds_of_task(number))
            self._n_submitted = len(together)
            reports = self._submit([self._rounds[n] for n in together])
            rows = self._model_rows() if needs_rows(together[-1]) else None
            for n in together:
                round_reports = islice(reports, len(self._rounds[n].steps))
                self._submitted[n] = _add_rows(round_reports, rows if n == together[-1] else None)
        return self._submitted.pop(number)

    def _submit(self, rounds: Sequence[AveragingRound]) -> Iterator[RoundReport]:
        """Submit rounds; return an iterator that waits for a report of each of their steps.

        Each step of a round is a task of each replica. Several rounds, of one replica, are one task.
        """
        first, key = rounds[0], f"{self._session}-{rounds[0].number}"
        steps = [step for each in rounds for step in each.steps]
        tasks = [[step] for step in steps] if len(rounds) == 1 else [steps]
        self._trainers = find_device_trainers(self._client, self._run.device)  # workers may have come or gone
        replicas = self._submit_replicas(first, key)
        merged_before: tuple[int, ...] = ()  # numbers of the blocks that were merged before a task
        totals = list[list[Future]]()
        merged_at = dict.fromkeys(range(len(self._blocks)), first.start)  # progress at the last merge of each block
        for n, task_steps in enumerate(tasks):
            step, is_last, name = task_steps[-1], n == len(tasks) - 1, f"{key}-{n}"
            merged = self._merged_after(step, first.n_replicas)
            trained = list[Future]()
            for replica in replicas:
                rows = self._rows_for(replica, merged_before, name)
                replica.merged += [rows, *([{}] * (len(task_steps) - 1))]
                coming = None if is_last else tasks[n + 1][0].works[replica.number]
                replica.steps += [ReplicaStep(before.works[replica.number]) for before in task_steps[:-1]]
                replica.steps.append(ReplicaStep(step.works[replica.number], merged, coming))
                trained.append(self._train(replica, len(task_steps), name))
            totals.append([replica.totals for replica in replicas if replica.totals is not None])
            if merged:
                rates = {n: self._rounds.sum_rates(merged_at[n], step.stop) / first.n_replicas for n in merged}
                self._merge_blocks(rates, trained, name)
                merged_at |= dict.fromkeys(merged, step.stop)
            elif is_last:
                self._final = trained[0]
            merged_before = merged
        return self._reports(first.number, tasks, totals)

    def _submit_replicas(self, current: AveragingRound, key: str) -> list["_SubmittedReplica"]:
        """Submit the tasks that make all replicas of a round from the model before it; `key` is part of their keys."""
        slots, numbers = self._trainers.slots(), range(len(self._blocks))
        replicas = list[_SubmittedReplica]()
        for number, reached in enumerate(self._find_reached(current, key)):
            preference = self._trainers.preferring(slots[len(slots) * number // current.n_replicas % len(slots)])
            options = {"resources": self._trainers.task_resources, "retries": 2, **preference}
            replica = _SubmittedReplica(number, reached, options)
            replica.start = self._final or self._rows_for(replica, numbers, key)
            # Named as the tasks of its steps, so that Dask expects it to take as long, and does not crowd one worker
            job = self._run, self._threads, list(self._blocks), reached, replica.start
            replica.future = self._client.submit(make_replica, *job, key=f"train-{key}-start-{number}", **options)
            replicas.append(replica)
        return replicas

    def _merged_after(self, step: AveragingStep, n_replicas: int) -> tuple[int, ...]:
        """Return the numbers of the blocks that are merged after a step; none if there is one replica."""
        if n_replicas == 1:
            return ()
        end = math.inf if step.level is None else self._level_ends[step.level]
        return tuple(number for number, block in enumerate(self._blocks) if block.stop <= end)

    def _find_reached(self, current: AveragingRound, key: str) -> list[Future | None]:
        """Return, for each replica of a round, the future of `ReachedRows`, or None where it gets all rows."""
        if not pulls_rows(self._run, current):
            return [None] * current.n_replicas
        works = zip(*(step.works for step in current.steps), strict=True)
        submit, job = self._client.submit, (find_reached_rows, self._run)
        return [
            submit(*job, replica_works, list(self._blocks), key=f"reach-{key}-{replica}", retries=2)
            for replica, replica_works in enumerate(works)
        ]

    def _rows_for(self, replica: "_SubmittedReplica", numbers: Sequence[int], key: str) -> dict[int, Future]:
        """Return the futures of a replica's rows of the blocks of these numbers, by number.

        They are the blocks' own futures; where the replica pulls rows, futures of tasks that select the rows.
        """
        blocks = list(self._blocks)
        all_rows = {n: self._blocks[blocks[n]] for n in numbers}
        if replica.reached is None:
            return all_rows
        name, submit = f"pull-{key}-{replica.number}", self._client.submit
        return {n: submit(pull_rows, rows, replica.reached, n, key=f"{name}-{n}") for n, rows in all_rows.items()}

    def _train(self, replica: "_SubmittedReplica", n_last: int, key: str) -> Future:
        """Submit the training of the last `n_last` steps of a replica; return the future of `ReplicaResult`."""
        job = replica.future, list(replica.steps), replica.start, list(replica.merged), n_last, replica.totals
        key = f"train-{key}-{replica.number}"
        trained = self._client.submit(train_replica, *job, key=key, **replica.options)
        replica.totals = self._client.submit(attrgetter("totals"), trained, key=f"totals-{trained.key}")
        return trained

    def _reports(
        self, number: int, tasks: Sequence[Sequence[AveragingStep]], totals: Sequence[Sequence[Future]]
    ) -> Iterator[RoundReport]:
        """Yield a report of each step, when it is trained. The steps of one task share the seconds of waiting for it.

        Parameters
        ----------
        number
            Number of the first round, for errors.
        tasks
            The steps of each task.
        totals
            Futures of the totals of each task's replicas.
        """
        for steps, futures in zip(tasks, totals, strict=True):
            began = time.monotonic()
            replica_totals = gather(self._client, futures, f"Round {number}", self._trainers.task_resources)
            waited = time.monotonic() - began
            total = sum(step_totals.seconds for step_totals in chain.from_iterable(replica_totals))
            for step, step_totals in zip(steps, zip(*replica_totals, strict=True), strict=True):
                seconds = None if len(steps) == 1 else waited * step_totals[0].seconds / total
                yield RoundReport(step.stop, step.works[0].alpha_stop, step_totals, None, seconds=seconds)

    def _model_rows(self) -> ModelRows:
        """Return each table in parts: the futures of its blocks."""
        self._split_final_rows()
        by_table = dict[str, list[TableBlock]]()
        for block in self._blocks:
            by_table.setdefault(block.table, []).append(block)
        return {
            table: TableParts([self._blocks[block] for block in blocks], partial(pick_block, blocks), join_blocks)
            for table, blocks in by_table.items()
        }

    def _split_final_rows(self) -> None:
        """Replace all blocks by parts of the last round's result; do nothing where several replicas trained it."""
        if self._final is not None:
            for number, block in enumerate(self._blocks):
                key = f"block-{self._final.key}-{number}"
                self._blocks[block] = self._client.submit(get_block_rows, self._final, number, key=key)
            self._final = None

    def _merge_blocks(self, rates: Mapping[int, float], trained: Sequence[Future], key: str) -> None:
        """Submit the merging of blocks with the changes of all replicas; replace the futures of the blocks.

        Parameters
        ----------
        rates
            By the number of a block, the sum of the learning rates over the positions that a replica trained since the
            block was merged last.
        trained
            Futures of each replica's `ReplicaResult`.
        key
            Part of the keys of the tasks.
        """
        blocks, curvatures = list(self._blocks), self._submit_curvatures(key)
        for number, rate in rates.items():
            block = blocks[number]
            block_training, name = BlockTraining(self._run, block, rate), f"{key}-{number}"
            self._blocks[block] = submit_merge(
                self._client, block_training, curvatures, self._blocks[block], number, trained, name
            )
            self._moments.pop(number, None)

    def _submit_curvatures(self, key: str) -> Future | Curvatures:
        """Return the future of `Curvatures`, or an empty mapping where the merge rule does not need them."""
        if find_merge_rule(Averaging.of(self._run.params).merge).fade is None:
            return {}
        for number, (block, rows) in enumerate(self._blocks.items()):
            if number not in self._moments:
                name = f"moments-{key}-{number}"
                self._moments[number] = self._client.submit(compute_moments, self._run, block, rows, key=name)
        moments = [self._moments[number] for number in range(len(self._blocks))]
        return self._client.submit(compute_curvatures, self._run, list(self._blocks), moments, key=f"curvature-{key}")

    def save_checkpoint(self, checkpoint: Store) -> dict[str, Any]:
        """Write all blocks; return the number of rounds, for the manifest."""
        self._save(checkpoint, "a checkpoint")
        return {"rounds": len(self)}

    def save_model(self, model: Store) -> None:
        """Write all blocks to a model's folder."""
        self._save(model, "Writing the model")

    def _save(self, store: Store, activity: str) -> None:
        """Write all blocks to a folder; `activity` names the tasks in errors."""
        self._split_final_rows()
        writes = save_blocks(self._client, store, self._blocks, self._run.params.vector_size, uuid.uuid4().hex)
        finish_tables(store, gather(self._client, writes, activity))


class _SubmittedReplica:
    """The submitted tasks of a replica in a round, or in several rounds that one task trains.

    Parameters
    ----------
    number
        Number of the replica.
    reached
        Future of `ReachedRows`; None where the replica gets all rows.
    options
        Options of `Client.submit` for the replica's tasks.

    Attributes
    ----------
    start
        The rows that it is made from: `start` of `make_replica`.
    future
        Future of the `Replica`.
    steps, merged
        The submitted steps, and the merged rows before each: `steps` and `merged` of `train_replica`.
    totals
        Future of the totals of the last task; None before the first task.
    """

    def __init__(self, number: int, reached: Future | None, options: Mapping[str, Any]) -> None:
        self.number, self.reached, self.options = number, reached, options
        self.start: Mapping[int, Future] | Future = {}
        self.future: Future | None = None
        self.steps: list[ReplicaStep] = []
        self.merged: list[Mapping[int, Future]] = []
        self.totals: Future | None = None


def _add_rows(reports: Iterable[RoundReport], rows: ModelRows | None) -> Iterator[RoundReport]:
    """Yield the reports of a round, each with `rows`: the tables after the round, or None."""
    for report in reports:
        yield report._replace(rows=rows)


def _start(
    client: Client, run: Run, folder: Store, length: int, resources: Resources, listener: Listener
) -> AveragingRun:
    """Prepare a run, which `restore` starts or resumes; arguments as in `StartRun`.

    The listener receives a message if training uses no locks, or may lose quality.
    """
    for message in advice(run.params):
        listener(Progress("train", 0, 0, "", message=message))
    trainers = find_device_trainers(client, run.device)
    threads = Threads(task_threads(trainers.list_threads(), run.params, resources), resources.device)
    if sharing := find_device(run.device).replica_trainer.trains_together(threads):
        listener(Progress("train", 0, 0, "", message=_HOGWILD.format(sharing)))
    return AveragingRun(client, run, folder, length, trainers, threads)


def _check(params: Params) -> None:
    """Raise a ParameterError if a merge rule needs `Objective.touched`, which the objective lacks."""
    rule, objective = find_merge_rule(Averaging.of(params).merge), find_objective(params.objective.name)
    if Averaging.of(params).replicas > 1 and rule.fade is not None and objective.touched is None:
        raise ParameterError(
            f"merge={rule.name!r} needs to know how often {objective.name} touches each row (Objective.touched).",
            "Give merge='mean', or one replica.",
        )


def _describe_run(params: Mapping[str, Any], rounds: int) -> Iterator[str]:
    """Yield the number of replicas, if it is known, and of rounds, as text; rounds of several replicas are "merges"."""
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
    tried=candidate_settings,
    check=_check,
    describe_run=_describe_run,
    honours=("frozen_words", "maxn", "features", "prefix_sizes", "market_negative", "hot_rows", "max_in_flight"),
)
