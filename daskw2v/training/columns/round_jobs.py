"""The tasks of a round: they train the rows of all parts on the columns of its steps.

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
from typing import NamedTuple, TypeAlias

import numpy as np
from distributed import Client, Future

from daskw2v.objectives.registry import find_objective
from daskw2v.sampling.segments import cut
from daskw2v.training.columns.losses import WordLosses
from daskw2v.training.columns.parts import (
    INPUT,
    OUTPUT,
    TABLES,
    ColumnsCluster,
    TableOrigin,
    WordRange,
    load_rows,
    take_moments,
    take_rows,
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
    update_network,
)
from daskw2v.training.devices import find_device
from daskw2v.types import Float32Array, Float64Array

HeldRows: TypeAlias = Future | TableOrigin


@dataclass
class ColumnsState:
    """The model between two steps.

    Parameters
    ----------
    rows, moments
        Each part's rows and moments, by table: futures, or where they are read or drawn from. Rows that a network
        makes have no moments.
    network
        The network: a future, or where it is read or drawn from; None without one.
    """

    rows: dict[str, list[HeldRows]]
    moments: dict[str, list[HeldRows]]
    network: HeldRows | None


class SubmittedSteps(NamedTuple):
    """The futures of all results of some steps, and those of the losses of input rows: by step, then by task."""

    results: list[Future]
    losses: list[list[Future]]


def state_at(origin: TableOrigin, cluster: ColumnsCluster) -> ColumnsState:
    """Return the state whose rows are all at an origin."""
    follows = find_objective(cluster.context.run.params.objective.name).follows
    learned = TABLES[1:] if follows else TABLES
    rows, moments = ({table: [origin for _ in cluster.workers] for table in tables} for tables in (TABLES, learned))
    return ColumnsState(rows, moments, origin if follows else None)


def submit_round(
    cluster: ColumnsCluster, state: ColumnsState, current: ColumnRound, losses: WordLosses | None
) -> list[Future]:
    """Submit a round, whose results the state then holds; return the futures of its `TaskTotals`."""
    submit = _submit_rows if state.network is None else _submit_network
    submitted = submit(cluster, state, current.steps, keep_losses=losses is not None)
    if losses is not None:
        losses.keep(current, submitted.losses)
    return _take(cluster, "totals", submitted.results)


def _submit_rows(
    cluster: ColumnsCluster, state: ColumnsState, steps: Sequence[ColumnStep], *, keep_losses: bool
) -> SubmittedSteps:
    """Submit steps of both tables."""
    alone = len(cluster.workers) == 1
    jobs = [(steps, TABLES)] if alone else [([step], [table]) for step in steps for table in TABLES]
    submitted = SubmittedSteps([], [])
    for some, tables in jobs:
        trained = _train_rows(cluster, state, some, tables, keep_losses=keep_losses)
        submitted.results.extend(trained)
        if keep_losses and INPUT in tables:
            submitted.losses.append(_take(cluster, "losses", trained))
    return submitted


def _submit_network(
    cluster: ColumnsCluster, state: ColumnsState, steps: Sequence[ColumnStep], *, keep_losses: bool
) -> SubmittedSteps:
    """Submit steps of the network, each followed by one of the output rows."""
    submitted, n_words = SubmittedSteps([], []), cluster.context.run.vocabulary.size
    for step in steps:
        shares, gradients = _train_network(cluster, state, step)
        outputs = _train_rows(cluster, state, [step._replace(alpha=OUTPUT_RATE * step.alpha)], [OUTPUT])
        submitted.results.extend([*gradients, *outputs])
        if keep_losses:
            of_blocks, key = _take(cluster, "losses", gradients), f"lost-{cluster.session}-{step.number}"
            submitted.losses.append([cluster.client.submit(join_losses, n_words, shares, *of_blocks, key=key)])
    return submitted


def _take(cluster: ColumnsCluster, name: str, futures: Sequence[Future]) -> list[Future]:
    """Return the futures of one field of each result, so that it is sent without the others."""
    return [cluster.client.submit(attrgetter(name), f, key=f"{name}-{f.key}", priority=1) for f in futures]


def _train_network(
    cluster: ColumnsCluster, state: ColumnsState, step: ColumnStep
) -> tuple[list[list[WordRange]], list[Future]]:
    """Train the network on a step's columns, and make the input rows anew; return tasks' blocks and futures."""
    client, context, run = cluster.client, cluster.context, cluster.context.run
    for part, held in enumerate(state.rows[OUTPUT]):
        if isinstance(held, TableOrigin):  # read once, and not by every task
            key = f"load-{cluster.session}-{step.number}-{part}"
            state.rows[OUTPUT][part] = client.submit(load_rows, context, part, OUTPUT, held, key=key, retries=2)
    n_tasks = sum(find_device(run.device).tasks(worker.threads) for worker in cluster.workers)
    all_shares, all_gradients = list[list[WordRange]](), list[Future]()
    for number, blocks in enumerate(minibatches(run.vocabulary.size)):
        key = f"{cluster.session}-{step.number}-{number}"
        shares = [blocks[k::n_tasks] for k in range(min(n_tasks, len(blocks)))]
        gradients = [
            client.submit(
                find_gradients, context, share, step, state.network, state.rows[OUTPUT],
                key=f"gradients-{key}-{k}", retries=2, resources=cluster.trainers.takes,
            ) for k, share in enumerate(shares)
        ]  # fmt: skip
        state.network = client.submit(
            update_network, run, step.alpha, shares, state.network, *gradients, key=f"network-{key}"
        )
        all_shares += shares
        all_gradients += gradients
    state.rows[INPUT] = [
        client.submit(
            make_rows, context, part, state.network,
            key=f"rows-{cluster.session}-{step.number}-{part}", resources=cluster.trainers.takes,
        ) for part in range(len(cluster.workers))
    ]  # fmt: skip
    return all_shares, all_gradients


def _train_rows(
    cluster: ColumnsCluster,
    state: ColumnsState,
    steps: Sequence[ColumnStep],
    tables: Sequence[str],
    *,
    keep_losses: bool = False,
) -> list[Future]:
    """Train the rows of all parts in these tables, the others constant; return the futures of each part's result."""
    others = {table: [*state.rows[table]] for table in TABLES if table not in tables}
    trained = [
        _submit_part(cluster, state, part, steps, tables, others, keep_losses) for part in range(len(cluster.workers))
    ]
    for table in tables:
        for held, take in ((state.rows, take_rows), (state.moments, take_moments)):
            held[table] = [
                cluster.client.submit(take, f, table, key=f"{take.__name__}-{table}-{f.key}", priority=1)
                for f in trained
            ]
    return trained


def _submit_part(
    cluster: ColumnsCluster, state: ColumnsState, part: int, steps: Sequence[ColumnStep], tables: Sequence[str],
    others: dict[str, list[HeldRows]], keep_losses: bool,
) -> Future:  # fmt: skip
    """Submit the training of a part's rows; return the future of its `TrainedPart`."""
    own = {table: (state.rows[table][part], state.moments[table][part]) for table in tables}
    # Preferred, not pinned; and a task that waits for no other prefers none: see `rotation.pass_tasks`
    first, worker = not any(isinstance(rows, Future) for rows, _ in own.values()), cluster.workers[part]
    return cluster.client.submit(
        train_part, cluster.context, part, steps, own, others, worker.threads,
        keep_losses=keep_losses, key=f"train-{cluster.session}-{steps[0].number}-{'-'.join(tables)}-{part}", retries=2,
        resources=cluster.trainers.takes, **cluster.trainers.preferring("" if first else worker.address),
    )  # fmt: skip


def centered_state(cluster: ColumnsCluster, state: ColumnsState) -> ColumnsState:
    """Return the state with the mean of the input rows subtracted from them, and from what the network computes."""
    client, key = cluster.client, f"{cluster.session}-{uuid.uuid4().hex[:8]}"
    rows = state.rows[INPUT]
    mean = submit_mean(client, rows, unit_size(cluster.context.run.vocabulary.size), key)
    centered = [client.submit(subtract, part, mean, key=f"centered-{key}-{number}") for number, part in enumerate(rows)]
    network = state.network
    if network is not None:
        network = client.submit(center_network, network, mean, key=f"centered-{key}")
    return replace(state, rows={**state.rows, INPUT: centered}, network=network)


def submit_mean(client: Client, rows: Sequence[Future], chunk: int, key: str) -> Future:
    """Submit the mean row of all parts, and return its future; each part but the last has whole chunks."""
    sums = [client.submit(_sums, part, chunk, key=f"sums-{key}-{number}") for number, part in enumerate(rows)]
    lengths = [client.submit(len, part, key=f"length-{key}-{number}") for number, part in enumerate(rows)]
    return client.submit(_mean, lengths, *sums, key=f"mean-{key}")


def subtract(rows: Float32Array, mean: Float32Array) -> Float32Array:
    """Task: return rows, shape (n, D), with the mean subtracted."""
    return rows - mean


def join_centered(chunk: int, *rows: Float32Array) -> Float32Array:
    """Return the table of all parts, in their order, with its mean row subtracted."""
    return subtract(np.concatenate(rows), _mean([len(part) for part in rows], *(_sums(part, chunk) for part in rows)))


def _sums(rows: Float32Array, chunk: int) -> Float64Array:
    """Task: return the sum of each chunk's rows, shape (chunks, D)."""
    return np.array([rows[a:b].sum(axis=0, dtype=np.float64) for a, b in cut(0, len(rows), chunk)])


def _mean(lengths: Sequence[int], *sums: Float64Array) -> Float32Array:
    """Task: return the mean row, shape (D,) float32, from the parts' lengths and sums."""
    mean: Float32Array = (np.concatenate(sums).sum(axis=0) / sum(lengths)).astype(np.float32)
    return mean
