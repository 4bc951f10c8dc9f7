"""The model of a run of `columns`, held by workers, and the tasks of a round that train it.

With one worker, a task trains both tables in all steps of a round. With several, a task trains one table's rows of one
part in one step. With a network, tasks first compute its gradients; they then make the input rows anew.

Where Params say `centered`, tasks subtract the mean from the finished input rows. Dot products with negatives must be
below zero for all words alike, and the rows learn this first. About two thirds of their length are then a common
vector, which does not distinguish words. Without it, cosines compare what differs between words (compare Mu and
Viswanath 2018). Sums are taken by chunks of words, in order, so the mean has the same bits however words are cut into
parts.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Self, TypeAlias

import numpy as np
from distributed import Future

from daskw2v.cluster.waiting import gather
from daskw2v.models.stored.store import finish_tables
from daskw2v.models.stored.tables import create_model
from daskw2v.objectives.registry import find_objective
from daskw2v.sampling.segments import cut_range
from daskw2v.store.storage import Store
from daskw2v.training.columns.losses import WordLosses
from daskw2v.training.columns.parts import (
    INPUT,
    OUTPUT,
    TABLES,
    ColumnsCluster,
    TableOrigin,
    WordRange,
    get_table,
    name_moment_table,
    row_block,
    save_part,
    train_part,
    unit_size,
)
from daskw2v.training.columns.step_schedule import ColumnRound, ColumnStep
from daskw2v.training.columns.subwords import (
    OUTPUT_RATE,
    center_network,
    find_gradients,
    join_losses,
    make_rows,
    minibatches,
    save_network,
    update_network,
)
from daskw2v.training.devices import find_device
from daskw2v.types import Float32Array, Float64Array

HeldRows: TypeAlias = Future | TableOrigin
# The futures of all results of steps, and of the losses of input rows: by step, then by task
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
        """Submit steps of the network, each followed by a step of the output rows; return the futures, as above."""
        results, losses = list[Future](), list[list[Future]]()
        for step in steps:
            shares, gradients = self._train_network(step)
            results += gradients
            results += self._train_rows([step._replace(alpha=OUTPUT_RATE * step.alpha)], [OUTPUT])
            if keep_losses:
                n_words, key = self.cluster.context.run.vocabulary.size, f"lost-{self.cluster.session}-{step.number}"
                block_losses = self._select("losses", gradients)
                losses.append([self.cluster.client.submit(join_losses, n_words, shares, *block_losses, key=key)])
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
            if isinstance(held, TableOrigin):  # read once, and not by every task
                outputs[part] = submit(context.rows, OUTPUT, part, held, key=f"load-{step_key}-{part}", retries=2)
        n_tasks = sum(find_device(run.device).tasks(worker.threads) for worker in self.cluster.workers)
        all_shares, all_gradients = list[list[WordRange]](), list[Future]()
        for number, blocks in enumerate(minibatches(run.vocabulary.size)):
            shares = [blocks[k::n_tasks] for k in range(min(n_tasks, len(blocks)))]
            gradients = list[Future]()
            for k, share in enumerate(shares):
                job, key = (context, share, step, self.network, outputs), f"gradients-{step_key}-{number}-{k}"
                gradients.append(submit(find_gradients, *job, key=key, retries=2, resources=takes))
            key = f"network-{step_key}-{number}"
            self.network = submit(update_network, run, step.alpha, shares, self.network, *gradients, key=key)
            all_shares += shares
            all_gradients += gradients
        self.rows[INPUT] = [
            submit(make_rows, context, part, self.network, key=f"rows-{step_key}-{part}", resources=takes)
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
            trained.append(submit(train_part, *job, keep_losses=keep_losses, key=key, retries=2, **options))
        for table in tables:
            for field, held in (("rows", self.rows), ("moments", self.moments)):
                held[table] = [
                    submit(get_table, future, field, table, key=f"take_{field}-{table}-{future.key}", priority=1)
                    for future in trained
                ]
        return trained

    def centered(self) -> Self:
        """Return the model with the mean of the input rows subtracted from them, and from the network's output."""
        submit, key = self.cluster.client.submit, f"{self.cluster.session}-{uuid.uuid4().hex[:8]}"
        parts, chunk = list(enumerate(self.rows[INPUT])), unit_size(self.cluster.context.run.vocabulary.size)
        sums = [submit(_sum_chunks, part, chunk, key=f"sums-{key}-{number}") for number, part in parts]
        lengths = [submit(len, part, key=f"length-{key}-{number}") for number, part in parts]
        mean = submit(_mean, lengths, *sums, key=f"mean-{key}")
        centered = [submit(subtract, part, mean, key=f"centered-{key}-{number}") for number, part in parts]
        network = self.network
        if network is not None:
            network = submit(center_network, network, mean, key=f"centered-{key}")
        return replace(self, rows={**self.rows, INPUT: centered}, network=network)

    def save(self, store: Store, *, moments: bool = False) -> None:
        """Write the model to a folder, each part on the worker that holds it; with `moments`, for a checkpoint."""
        context, submit, attempt = self.cluster.context, self.cluster.client.submit, uuid.uuid4().hex
        shape = context.run.vocabulary.size, context.run.params.vector_size
        written = self.moments if moments else {}
        names = [*self.rows, *(name_moment_table(name, table) for table in written for name in context.moments)]
        create_model(store, dict.fromkeys(names, shape), row_block(*shape), subwords=self.network is not None)
        writes = list[Future]()
        for table, rows in self.rows.items():
            for part, held in enumerate(zip(rows, written.get(table, [None] * len(rows)), strict=True)):
                key = f"save-part-{attempt}-{table}-{part}"
                writes.append(submit(save_part, store, context, part, table, *held, key=key, retries=2))
        network_writes = list[Future]()
        if self.network is not None:
            key = f"save-network-{attempt}"
            network_writes.append(submit(save_network, store, context.run, self.network, moments, key=key, retries=2))
        checksums = gather(self.cluster.client, [*writes, *network_writes], "Writing the model")[: len(writes)]
        finish_tables(store, checksums)


def subtract(rows: Float32Array, mean: Float32Array) -> Float32Array:
    """Task: return rows, shape (n, D), with the mean row, shape (D,), subtracted."""
    return rows - mean


def join_centered(chunk: int, *rows: Float32Array) -> Float32Array:
    """Return the table from the rows of its parts in order, with its mean row subtracted, summed by `chunk` rows."""
    sums = (_sum_chunks(part, chunk) for part in rows)
    return subtract(np.concatenate(rows), _mean([len(part) for part in rows], *sums))


def _sum_chunks(rows: Float32Array, chunk: int) -> Float64Array:
    """Task: return the sum of each chunk of `chunk` rows, shape (chunks, D)."""
    return np.array([rows[a:b].sum(axis=0, dtype=np.float64) for a, b in cut_range(0, len(rows), chunk)])


def _mean(lengths: Sequence[int], *sums: Float64Array) -> Float32Array:
    """Task: return the mean row, shape (D,) float32, from each part's number of rows and sums of chunks."""
    mean: Float32Array = (np.concatenate(sums).sum(axis=0) / sum(lengths)).astype(np.float32)
    return mean
