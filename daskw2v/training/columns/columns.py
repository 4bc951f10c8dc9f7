"""Strategy `columns`: each worker owns rows of both tables and updates only those (paper 002 sums gradients instead).

In a step all words train the same few columns of the word-context matrix. First the input rows are updated, and the
output rows are constant; then the other way round. So a row depends on no other row of its table, nothing has to be
merged, and any number of workers gives the same bits. Between the two, each worker gathers the updated rows of the
others: every `gather_every` columns.

With one worker, a task does many steps; with several, a task is one table's rows of one part in one step.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

from distributed import Client, Future

from daskw2v.cluster import Trainers, gather
from daskw2v.config.resources import Resources
from daskw2v.models.attempts import finish_tables
from daskw2v.models.tables import create_model
from daskw2v.objectives.registry import find_objective
from daskw2v.progress import Listener, Progress
from daskw2v.sampling.context_matrix import ContextMatrix, build_matrix
from daskw2v.sampling.run import Run
from daskw2v.store.storage import Store
from daskw2v.training import checkpoint
from daskw2v.training.blocks import join_blocks, rows_per_block
from daskw2v.training.columns.centering import join_centered, submit_mean, subtract
from daskw2v.training.columns.losses import WordLosses
from daskw2v.training.columns.memory import run_memory
from daskw2v.training.columns.part_task import (
    INPUT,
    OUTPUT,
    TABLES,
    ColumnsContext,
    TableOrigin,
    WordRange,
    load_rows,
    moment_table,
    pick_rows,
    save_moments,
    save_rows,
    take_moments,
    take_rows,
    train_part,
)
from daskw2v.training.columns.step_schedule import ColumnRound, ColumnRounds, ColumnStep
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
from daskw2v.training.devices import find_device, trainers_of
from daskw2v.training.strategy import ModelRows, RoundReport, Strategy, TableParts

_UNITS = 256  # of words, at most: parts are made of them
_LEAST = 256  # words of a unit, at least

HeldRows: TypeAlias = Future | TableOrigin


class PartWorker(NamedTuple):
    """The worker that trains a part, and its threads."""

    address: str
    threads: int


@dataclass(frozen=True)
class ColumnsCluster:
    """Where a run's tasks are submitted.

    Parameters
    ----------
    client, trainers
        The cluster, and those of its workers that train.
    context
        What all tasks share.
    workers
        The worker of each part.
    session
        Tells the keys of this client's tasks from those of an earlier one.
    """

    client: Client
    trainers: Trainers
    context: ColumnsContext
    workers: tuple[PartWorker, ...]
    session: str


@dataclass
class ColumnsState:
    """The model between two steps.

    Parameters
    ----------
    rows, moments
        By table what holds each part's rows and moments; rows that a network makes have no moments.
    network
        What holds the network, or None without one.
    """

    rows: dict[str, list[HeldRows]]
    moments: dict[str, list[HeldRows]]
    network: HeldRows | None


class ColumnsRun:
    """A run as `strategy.StrategyRun` has it: the rows of all parts.

    Parameters
    ----------
    cluster
        Where tasks are submitted.
    total
        Corpus positions over all epochs.
    matrix
        The word-context matrix.
    losses
        Keeps each word's loss, where Resources ask for it.
    """

    unit, trained, ahead = "round", "part", 2  # the next round begins while this client looks at the one before

    def __init__(self, cluster: ColumnsCluster, total: int, matrix: ContextMatrix, losses: WordLosses | None) -> None:
        self._cluster, self._total, self._matrix, self._losses = cluster, total, matrix, losses
        self._run = cluster.context.run
        self._rounds = ColumnRounds(self._run.params)
        self._state = _state_at(TableOrigin(), cluster)
        self.threads = max(worker.threads for worker in cluster.workers)
        names = ("name", "pairs", "text_words", "seconds")
        self.facts = {"matrix": {name: getattr(matrix, name) for name in names}}

    def __len__(self) -> int:
        return len(self._rounds)

    def restore(self, number: int, checkpoint: Store | None, manifest: Mapping[str, Any]) -> None:
        """Read rows and moments from a checkpoint, or make them anew."""
        self._state = _state_at(TableOrigin(checkpoint), self._cluster)

    def can_stop(self, number: int) -> bool:
        """Tell that there is a model before each round."""
        return True

    def progress_after(self, number: int) -> int:
        """Return the progress after a round."""
        return self._total * self._rounds[number].done // self._rounds.total

    def play(self, number: int, looked_at: Callable[[int], bool]) -> Iterator[RoundReport]:
        """Submit a round; return the iterator that waits for it."""
        futures = _submit_round(self._cluster, self._state, self._rounds[number], self._losses)
        return self._wait(self._rounds[number], futures, self._rows())

    def _wait(self, this: ColumnRound, futures: list[Future], rows: ModelRows) -> Iterator[RoundReport]:
        totals = gather(self._cluster.client, futures, f"Round {this.number}", self._cluster.trainers.takes)
        words = self._matrix.text_words * len(this) // self._run.params.context_size
        yield RoundReport(self.progress_after(this.number), this.steps[-1].alpha, totals, rows, words)

    def _rows(self) -> ModelRows:
        """Return both tables now; joined, the input rows are less their mean if Params say so."""
        unit, pick = _unit(self._run.vocabulary.size), partial(pick_rows, self._cluster.context)
        centered = partial(join_centered, unit) if self._run.params.centered else join_blocks
        joins = {INPUT: centered, OUTPUT: join_blocks}
        return {
            table: TableParts([*held], partial(pick, table), joins[table]) for table, held in self._state.rows.items()
        }

    def save_checkpoint(self, checkpoint: Store) -> dict[str, Any]:
        """Write rows and moments."""
        if self._losses is not None:
            self._losses.finish()
        _save(self._cluster, checkpoint, self._state, moments=True)
        return {}

    def save_model(self, model: Store) -> None:
        """Write the rows, the input rows centered if Params say so; and the losses, if they were kept."""
        centered = self._run.params.centered
        _save(self._cluster, model, _centered(self._cluster, self._state) if centered else self._state)
        if self._losses is not None:
            self._losses.publish(model)


def _start(client: Client, run: Run, place: Store, length: int, resources: Resources, listener: Listener) -> ColumnsRun:
    matrix = build_matrix(client, run, listener)
    cluster = _cluster(client, run, matrix, resources, f"{place.name}-{uuid.uuid4().hex[:8]}")
    losses = None
    if resources.word_losses:
        losses = WordLosses(client, place, ColumnRounds(run.params), run.vocabulary.size, cluster.session)
        found = checkpoint.newest(place)
        if found is not None and not losses.has(int(found[1]["next_round"])):
            message = "the checkpoint has no losses of the rounds before it: training starts again"
            listener(Progress("train", 0, 0, "", message=message))
            checkpoint.forget(place)
    return ColumnsRun(cluster, length * run.params.epochs, matrix, losses)


def _cluster(client: Client, run: Run, matrix: ContextMatrix, resources: Resources, session: str) -> ColumnsCluster:
    """Share the words among the workers, by their threads, along units."""
    n_words, unit = run.vocabulary.size, _unit(run.vocabulary.size)
    n = -(-n_words // unit)
    trainers = trainers_of(client, run.device)
    workers = trainers.homes()[:n] or [("", 1)]
    homes = [PartWorker(address, min(resources.threads or threads, threads)) for address, threads in workers]
    weights = [worker.threads for worker in homes]
    ends = [n * sum(weights[:k]) // sum(weights) for k in range(len(homes) + 1)]
    words = [WordRange(a * unit, min(n_words, b * unit)) for a, b in pairwise(ends)]
    busy = [number for number, part in enumerate(words) if part.stop > part.start]
    context = ColumnsContext(run, matrix.place, tuple(words[number] for number in busy))
    return ColumnsCluster(client, trainers, context, tuple(homes[number] for number in busy), session)


def _unit(n_words: int) -> int:
    """Return the words of a unit, of which parts are made: whole blocks of batches."""
    return -(-max(_LEAST, -(-n_words // _UNITS)) // _LEAST) * _LEAST


def _row_block(n_words: int, width: int) -> int:
    """Return the rows of a table's chunk, which one task writes: a unit, or an even part of one where rows are long."""
    unit, most = _unit(n_words), rows_per_block(width)
    return next(n for n in range(min(unit, most), 0, -1) if unit % n == 0)


def _submit_round(
    cluster: ColumnsCluster, state: ColumnsState, this: ColumnRound, losses: WordLosses | None
) -> list[Future]:
    """Submit a round, whose results the state then holds; return the futures of its `TaskTotals`."""
    done, step_losses = list[Future](), list[list[Future]]()  # results; the losses of input rows, by step
    if state.network is not None:
        for step in this.steps:
            shares, gradients = _train_network(cluster, state, step)
            done += [
                *gradients,
                *_train_rows(cluster, state, [step._replace(alpha=OUTPUT_RATE * step.alpha)], [OUTPUT]),
            ]
            if losses is not None:
                args = cluster.context.run.vocabulary.size, shares, *_take(cluster, "losses", gradients)
                step_losses.append(
                    [cluster.client.submit(join_losses, *args, key=f"lost-{cluster.session}-{step.number}")]
                )
    else:
        alone = len(cluster.workers) == 1
        jobs = [(this.steps, TABLES)] if alone else [([step], [table]) for step in this.steps for table in TABLES]
        for steps, tables in jobs:
            trained = _train_rows(cluster, state, steps, tables, keep_losses=losses is not None)
            done += trained
            if losses is not None and INPUT in tables:
                step_losses.append(_take(cluster, "losses", trained))
    if losses is not None:
        losses.keep(this, step_losses)
    return _take(cluster, "totals", done)


def _take(cluster: ColumnsCluster, name: str, futures: Sequence[Future]) -> list[Future]:
    """Return the futures of one field of results: alone, it is sent without the others."""
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
        _submit(cluster, state, part, steps, tables, others, keep_losses) for part in range(len(cluster.workers))
    ]
    for table in tables:
        for held, take in ((state.rows, take_rows), (state.moments, take_moments)):
            held[table] = [
                cluster.client.submit(take, f, table, key=f"{take.__name__}-{table}-{f.key}", priority=1)
                for f in trained
            ]
    return trained


def _submit(
    cluster: ColumnsCluster, state: ColumnsState, part: int, steps: Sequence[ColumnStep], tables: Sequence[str],
    others: dict[str, list[HeldRows]], keep_losses: bool,
) -> Future:  # fmt: skip
    own = {table: (state.rows[table][part], state.moments[table][part]) for table in tables}
    # Preferred, not pinned; and a task that waits for no other prefers none: see `rotation.in_memory`
    first, worker = not any(isinstance(rows, Future) for rows, _ in own.values()), cluster.workers[part]
    return cluster.client.submit(
        train_part, cluster.context, part, steps, own, others, worker.threads,
        keep_losses=keep_losses, key=f"train-{cluster.session}-{steps[0].number}-{'-'.join(tables)}-{part}", retries=2,
        resources=cluster.trainers.takes, **cluster.trainers.preferring("" if first else worker.address),
    )  # fmt: skip


def _centered(cluster: ColumnsCluster, state: ColumnsState) -> ColumnsState:
    """Return the state whose input rows are less their mean, and the network that makes such rows."""
    client, key = cluster.client, f"{cluster.session}-{uuid.uuid4().hex[:8]}"
    rows = state.rows[INPUT]
    mean = submit_mean(client, rows, _unit(cluster.context.run.vocabulary.size), key)
    centered = [client.submit(subtract, part, mean, key=f"centered-{key}-{number}") for number, part in enumerate(rows)]
    network = state.network
    if network is not None:
        network = client.submit(center_network, network, mean, key=f"centered-{key}")
    return replace(state, rows={**state.rows, INPUT: centered}, network=network)


def _save(cluster: ColumnsCluster, store: Store, state: ColumnsState, *, moments: bool = False) -> None:
    """Write a model, or with moments a checkpoint: each part by the worker that holds it."""
    context, client, attempt = cluster.context, cluster.client, uuid.uuid4().hex
    shape = context.run.vocabulary.size, context.run.params.vector_size
    kept = state.moments if moments else {}
    names = [*state.rows, *(moment_table(name, table) for table in kept for name in context.moments)]
    create_model(store, dict.fromkeys(names, shape), _row_block(*shape), subwords=state.network is not None)
    writes = [
        client.submit(
            save, store, context, part, table, held, key=f"{save.__name__}-{attempt}-{table}-{part}", retries=2
        )
        for save, tables in ((save_rows, state.rows), (save_moments, kept))
        for table, of_table in tables.items()
        for part, held in enumerate(of_table)
    ]
    others = list[Future]()
    if state.network is not None:
        key = f"save-network-{attempt}"
        others.append(client.submit(save_network, store, context.run, state.network, moments, key=key, retries=2))
    finish_tables(store, gather(client, [*writes, *others], "Writing the model")[: len(writes)])


def _state_at(origin: TableOrigin, cluster: ColumnsCluster) -> ColumnsState:
    """Return the state whose rows are all at an origin."""
    follows = find_objective(cluster.context.run.params.objective).follows
    learned = TABLES[1:] if follows else TABLES
    rows, moments = ({table: [origin for _ in cluster.workers] for table in tables} for tables in (TABLES, learned))
    return ColumnsState(rows, moments, origin if follows else None)


COLUMNS = Strategy(
    name="columns",
    title="each worker trains rows of its own on the word-context matrix",
    find_kernel=lambda objective, device: device.row_trainer.find_kernel(objective),
    start=_start,
    memory=run_memory,
    deterministic=True,
)
