"""Strategy `columns`: each worker owns the rows of a part of the words in both tables, and updates only these.

In a step all words train the same `gather_every` columns of the word-context matrix: first the input rows, with the
output rows fixed, then the output rows. A row depends on no other row of its table, so nothing has to be merged, and
any number of workers gives the same bits. Between the two phases, each worker gathers the updated rows of all workers.
Li et al. (2019) sum gradients instead.

With one worker, a task trains both tables in all steps of a round (`step_schedule`). With several, a task trains one
table's rows of one part in one step. With a network, tasks first compute its gradients; they then make the input rows
anew.

Where Params say `centered`, tasks subtract the mean from the finished input rows. Dot products with negatives must be
below zero for all words alike, and the rows learn this first. About two thirds of their length are then a common
vector, which does not distinguish words. Without it, cosines compare what differs between words (compare Mu and
Viswanath 2018). Sums are taken by chunks of words, in order, so the mean has the same bits however words are cut into
parts.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import Any, Self, TypeAlias

import numpy as np
from distributed import Client, Future

from daskw2v.cluster.waiting import gather
from daskw2v.config.resources import Resources
from daskw2v.models.stored.store import finish_tables
from daskw2v.models.stored.tables import create_model
from daskw2v.objectives.base import INPUT, OUTPUT, TABLES
from daskw2v.objectives.registry import find_objective
from daskw2v.progress import Listener, Progress
from daskw2v.sampling.context_matrix import ContextMatrix, build_matrix
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import cut_range
from daskw2v.sampling.settings import SampledContexts
from daskw2v.store.storage import Store
from daskw2v.training.columns import parts, subwords
from daskw2v.training.columns.losses import WordLosses
from daskw2v.training.columns.parts import ColumnsCluster, TableOrigin, WordRange, unit_size
from daskw2v.training.columns.settings import Columns
from daskw2v.training.columns.step_schedule import ColumnRound, ColumnRounds, ColumnStep
from daskw2v.training.columns.work import ColumnsWork
from daskw2v.training.devices import find_device
from daskw2v.training.loop import checkpoint
from daskw2v.training.loop.strategy import ModelRows, RoundReport, Strategy, TableParts
from daskw2v.training.start.blocks import join_blocks
from daskw2v.types import Float32Array, Float64Array

HeldRows: TypeAlias = Future | TableOrigin
# The futures of all results of steps, and of the losses of input rows: by step, or of all steps together, then by part
SubmittedSteps: TypeAlias = tuple[list[Future], list[list[Future]]]


@dataclass
class ColumnsModel:
    """The model between two steps.

    Parameters
    ----------
    cluster
        The workers of its parts.
    rows, moments
        Each part's rows and moments, by table: futures, or the origin that they are read from. Rows that a network
        makes have no moments.
    network
        The network: a future, or the origin that it is read from; None without a network.
    """

    cluster: ColumnsCluster
    rows: dict[str, list[HeldRows]]
    moments: dict[str, list[HeldRows]]
    network: HeldRows | None

    @classmethod
    def from_origin(cls, origin: TableOrigin, cluster: ColumnsCluster) -> Self:
        """Return the model of which all rows, moments and the network are still at an origin."""
        follows = find_objective(cluster.context.run.params.objective.name).has_network
        learned = TABLES[1:] if follows else TABLES
        rows, moments = ({table: [origin for _ in cluster.workers] for table in tables} for tables in (TABLES, learned))
        return cls(cluster, rows, moments, origin if follows else None)

    def submit_round(self, current: ColumnRound, losses: WordLosses | None) -> list[Future]:
        """Submit a round, and hold its results as the model; return the futures of its `TaskTotals`."""
        submit = self._submit_rows if self.network is None else self._submit_network
        results, by_step = submit(current.steps, keep_losses=losses is not None)
        if losses is not None:
            losses.keep(current, by_step)
        return self._select("totals", results)

    def _submit_rows(self, steps: Sequence[ColumnStep], *, keep_losses: bool) -> SubmittedSteps:
        """Submit steps that train the rows of both tables; return the futures of their results and losses."""
        alone = len(self.cluster.workers) == 1
        jobs = [(steps, TABLES)] if alone else [([step], [table]) for step in steps for table in TABLES]
        results, losses = list[Future](), list[list[Future]]()
        for steps_of_job, tables in jobs:
            trained = self._train_rows(steps_of_job, tables, keep_losses=keep_losses)
            results += trained
            if keep_losses and INPUT in tables:
                losses.append(self._select("losses", trained))
        return results, losses

    def _submit_network(self, steps: Sequence[ColumnStep], *, keep_losses: bool) -> SubmittedSteps:
        """Submit steps of the network, each followed by a step of the output rows; return futures as `_submit_rows`."""
        submit, n_words = self.cluster.client.submit, self.cluster.context.run.vocabulary.size
        results, losses = list[Future](), list[list[Future]]()
        for step in steps:
            shares, gradients = self._train_network(step)
            results += gradients
            results += self._train_rows([step._replace(alpha=subwords.OUTPUT_RATE * step.alpha)], [OUTPUT])
            if keep_losses:
                block_losses, key = self._select("losses", gradients), f"lost-{self.cluster.session}-{step.number}"
                losses.append([submit(subwords.join_losses, n_words, shares, *block_losses, key=key)])
        return results, losses

    def _select(self, field: str, futures: Sequence[Future]) -> list[Future]:
        """Return the futures of one field of each result, so that it is sent without the other fields."""
        submit = self.cluster.client.submit
        return [submit(attrgetter(field), future, key=f"{field}-{future.key}", priority=1) for future in futures]

    def _train_network(self, step: ColumnStep) -> tuple[list[list[WordRange]], list[Future]]:
        """Submit the training of the network on a step's columns, and the making of new input rows.

        Returns
        -------
        shares, gradients
            The blocks of each task, and the futures of their `BlockGradients`.
        """
        submit, context, takes = self.cluster.client.submit, self.cluster.context, self.cluster.trainers.task_resources
        run, step_key, outputs = context.run, f"{self.cluster.session}-{step.number}", self.rows[OUTPUT]
        for part, held in enumerate(outputs):
            if isinstance(held, TableOrigin):  # read once, and not by each task
                outputs[part] = submit(context.rows, OUTPUT, part, held, key=f"load-{step_key}-{part}", retries=2)
        n_tasks = sum(find_device(run.device).tasks(worker.threads) for worker in self.cluster.workers)
        if isinstance(self.network, TableOrigin):
            self.network = submit(subwords.open_network, run, self.network, key=f"network-{step_key}", retries=2)
        (weights,) = self._select("weights", [self.network])
        all_shares, all_gradients = list[list[WordRange]](), list[Future]()
        for number, blocks in enumerate(subwords.minibatches(run.vocabulary.size)):
            shares = [blocks[k::n_tasks] for k in range(min(n_tasks, len(blocks)))]
            gradients = list[Future]()
            for k, share in enumerate(shares):
                job, key = (context, share, step, weights, outputs), f"gradients-{step_key}-{number}-{k}"
                gradients.append(submit(subwords.find_gradients, *job, key=key, retries=2, resources=takes))
            key = f"network-{step_key}-{number}"
            self.network = submit(subwords.update_network, step.alpha, shares, self.network, *gradients, key=key)
            (weights,) = self._select("weights", [self.network])
            all_shares += shares
            all_gradients += gradients
        self.rows[INPUT] = [
            submit(subwords.make_rows, context, part, weights, key=f"rows-{step_key}-{part}", resources=takes)
            for part in range(len(self.cluster.workers))
        ]
        return all_shares, all_gradients

    def _train_rows(
        self, steps: Sequence[ColumnStep], tables: Sequence[str], *, keep_losses: bool = False
    ) -> list[Future]:
        """Submit the training of the rows of all parts in `tables`; return the futures of `TrainedPart`.

        A table that is not trained is fixed.
        """
        submit, trainers, trained = self.cluster.client.submit, self.cluster.trainers, list[Future]()
        fixed = {table: [*self.rows[table]] for table in TABLES if table not in tables}
        job_key = f"train-{self.cluster.session}-{steps[0].number}-{'-'.join(tables)}"
        for part, worker in enumerate(self.cluster.workers):
            trained_rows = {table: (self.rows[table][part], self.moments[table][part]) for table in tables}
            # Preferred, not pinned; and a task that waits for no other prefers none: see `rotation.pass_tasks`
            is_first = not any(isinstance(rows, Future) for rows, _ in trained_rows.values())
            job = self.cluster.context, part, steps, trained_rows, fixed, worker.threads
            options = {"resources": trainers.task_resources, **trainers.preferring("" if is_first else worker.address)}
            key = f"{job_key}-{part}"
            trained.append(submit(parts.train_part, *job, keep_losses=keep_losses, key=key, retries=2, **options))
        for table in tables:
            self.moments[table] = self.rows[table] = [*trained]
            if self.cluster.context.moments:  # which no other worker needs; a result without moments is sent as it is
                self.rows[table] = [
                    submit(parts.take_rows, future, table, key=f"take-{table}-{future.key}", priority=1)
                    for future in trained
                ]
        return trained

    def centered(self) -> Self:
        """Return the model with the mean of the input rows subtracted from them, and from the network's output.

        The input rows must have been trained: they are futures.
        """
        submit, key = self.cluster.client.submit, f"{self.cluster.session}-{uuid.uuid4().hex[:8]}"
        context, chunk = self.cluster.context, unit_size(self.cluster.context.run.vocabulary.size)
        held = enumerate(self.rows[INPUT])
        rows = [(n, submit(context.rows, INPUT, n, part, key=f"rows-{key}-{n}")) for n, part in held]
        sums = [submit(_sum_chunks, part, chunk, key=f"sums-{key}-{number}") for number, part in rows]
        lengths = [submit(len, part, key=f"length-{key}-{number}") for number, part in rows]
        mean = submit(_mean, lengths, *sums, key=f"mean-{key}")
        centered = [submit(subtract, part, mean, key=f"centered-{key}-{number}") for number, part in rows]
        network = self.network
        if network is not None:
            network = submit(subwords.center_network, network, mean, key=f"centered-{key}")
        return replace(self, rows={**self.rows, INPUT: centered}, network=network)

    def save(self, store: Store, *, moments: bool = False) -> None:
        """Write the model to a folder, each part on the worker that holds it; with `moments`, for a checkpoint."""
        context, submit, attempt = self.cluster.context, self.cluster.client.submit, uuid.uuid4().hex
        shape = context.run.vocabulary.size, context.run.params.vector_size
        written = self.moments if moments else {}
        names = [*self.rows, *(parts.name_moment_table(name, table) for table in written for name in context.moments)]
        create_model(store, dict.fromkeys(names, shape), parts.row_block(*shape), subwords=self.network is not None)
        writes = list[Future]()
        for table, rows in self.rows.items():
            for part, held in enumerate(zip(rows, written.get(table, [None] * len(rows)), strict=True)):
                key = f"save-part-{attempt}-{table}-{part}"
                writes.append(submit(parts.save_part, store, context, part, table, *held, key=key, retries=2))
        if self.network is not None:
            job, key = (store, context.run, self.network, moments), f"save-network-{attempt}"
            writes.append(submit(subwords.save_network, *job, key=key, retries=2))
        finish_tables(store, gather(self.cluster.client, writes, "Writing the model"))


def subtract(rows: Float32Array, mean: Float32Array) -> Float32Array:
    """Task: return rows, shape (n, D), with the mean row, shape (D,), subtracted."""
    return rows - mean


def join_centered(chunk: int, *rows: Float32Array) -> Float32Array:
    """Return the table from the rows of its parts in order, with its mean row subtracted, summed by `chunk` rows."""
    sums = (_sum_chunks(part, chunk) for part in rows)
    return subtract(np.concatenate(rows), _mean([len(part) for part in rows], *sums))


def _sum_chunks(rows: Float32Array, chunk: int) -> Float64Array:
    """Task: return the sum of each chunk of `chunk` rows, shape (chunks, D) float64."""
    return np.array([rows[a:b].sum(axis=0, dtype=np.float64) for a, b in cut_range(0, len(rows), chunk)])


def _mean(lengths: Sequence[int], *sums: Float64Array) -> Float32Array:
    """Task: return the mean row, shape (D,) float32, from each part's number of rows and sums of chunks."""
    mean: Float32Array = (np.concatenate(sums).sum(axis=0) / sum(lengths)).astype(np.float32)
    return mean


class ColumnsRun:
    """A run of the strategy, a `strategy.StrategyRun`: it holds the rows of all parts.

    Parameters
    ----------
    cluster
        The cluster that tasks are submitted to, and the workers of the parts.
    total
        Corpus positions over all epochs.
    matrix
        The word-context matrix.
    losses
        Keeps each word's loss, where Resources ask for it; else None.
    """

    unit, trained, ahead = "round", "part", 2  # the next round begins while this client waits for the one before

    def __init__(self, cluster: ColumnsCluster, total: int, matrix: ContextMatrix, losses: WordLosses | None) -> None:
        self._cluster, self._total, self._matrix, self._losses = cluster, total, matrix, losses
        self._run = cluster.context.run
        self._rounds = ColumnRounds(self._run.params)
        self._model = ColumnsModel.from_origin(TableOrigin(), cluster)
        self.threads = max(worker.threads for worker in cluster.workers)
        names = ("name", "pairs", "text_words", "seconds")
        self.facts = {"matrix": {name: getattr(matrix, name) for name in names}}

    def __len__(self) -> int:
        return len(self._rounds)

    def restore(self, number: int, checkpoint: Store | None, manifest: Mapping[str, Any]) -> None:
        """Locate rows and moments in a checkpoint, or at the initial rows without one."""
        self._model = ColumnsModel.from_origin(TableOrigin(checkpoint), self._cluster)

    def can_stop(self, number: int) -> bool:
        """Return True: the model can be written before the round of any number."""
        return True

    def progress_after(self, number: int) -> int:
        """Return the corpus positions that correspond to the columns trained by the round's end, over all epochs."""
        return self._total * self._rounds[number].end // self._rounds.total

    def play(self, number: int, needs_rows: Callable[[int], bool]) -> Iterator[RoundReport]:
        """Submit the round of this number; return an iterator that waits for its report, which always has rows."""
        futures = self._model.submit_round(self._rounds[number], self._losses)
        return self._wait(self._rounds[number], futures, self._rows())

    def _wait(self, current: ColumnRound, futures: list[Future], rows: ModelRows) -> Iterator[RoundReport]:
        """Wait for a round, from the futures of its totals; yield its report with the rows after it."""
        totals = gather(self._cluster.client, futures, f"Round {current.number}", self._cluster.trainers.task_resources)
        words = self._matrix.text_words * len(current) // SampledContexts.of(self._run.params).context_size
        yield RoundReport(self.progress_after(current.number), current.steps[-1].alpha, totals, rows, words)

    def _rows(self) -> ModelRows:
        """Return both tables in parts; where Params say `centered`, `join` centers input rows, and `pick` does not."""
        context, unit = self._cluster.context, unit_size(self._run.vocabulary.size)
        centered = partial(join_centered, unit) if Columns.of(self._run.params).centered else join_blocks
        return {
            table: TableParts(
                [*self._model.rows[table]],
                partial(parts.pick_rows, context, table),
                partial(parts.join_rows, context, table, join),
            )
            for table, join in {INPUT: centered, OUTPUT: join_blocks}.items()
        }

    def save_checkpoint(self, checkpoint: Store) -> dict[str, Any]:
        """Write rows, moments and network to a checkpoint; return an empty mapping, as its manifest needs no value."""
        if self._losses is not None:
            self._losses.finish()
        self._model.save(checkpoint, moments=True)
        return {}

    def save_model(self, model: Store) -> None:
        """Write the rows to a model, the input rows centered if Params say so; and the losses, if they were kept."""
        trained = self._model.centered() if Columns.of(self._run.params).centered else self._model
        trained.save(model)
        if self._losses is not None:
            self._losses.publish(model)


def _start(
    client: Client, run: Run, folder: Store, length: int, resources: Resources, listener: Listener
) -> ColumnsRun:
    """Prepare a run, which `restore` starts or resumes; build its word-context matrix if the store has none.

    Arguments are as in `StartRun`. If losses are to be kept, and not all rounds before the newest checkpoint have them,
    all checkpoints are deleted.
    """
    matrix = build_matrix(client, run, listener)
    cluster = parts.assign_words(client, run, matrix, resources, f"{folder.name}-{uuid.uuid4().hex[:8]}")
    losses = None
    if resources.word_losses:
        losses = WordLosses(client, folder, ColumnRounds(run.params), run.vocabulary.size, cluster.session)
        newest = checkpoint.find_newest(folder)
        if newest is not None and not losses.has_rounds(int(newest[1]["next_round"])):
            message = "the checkpoint has no losses of the rounds before it: training starts again"
            listener(Progress("train", 0, 0, "", message=message))
            checkpoint.remove_all(folder)
    return ColumnsRun(cluster, length * run.params.epochs, matrix, losses)


COLUMNS = Strategy(
    name="columns",
    settings=Columns,
    title="each worker trains rows of its own on the word-context matrix",
    find_kernel=lambda objective, device: device.row_trainer.find_kernel(objective),
    start=_start,
    work=ColumnsWork,
    deterministic=True,
    honours=("word_losses",),
)
