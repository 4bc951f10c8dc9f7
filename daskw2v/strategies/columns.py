"""Strategy `columns`: each worker owns rows of both tables and moves only those (paper 002 adds up gradients instead).

In a step all words meet the same few columns of the word-context matrix. First the input rows move, and the output rows
stay; then they change roles. So a row depends on no other row of its table, there is nothing to merge, and any number
of workers gives the same bits. In between each worker gathers the rows of the others, which have moved: every
`gather_every` columns.

Where there is one worker, a task does many steps; else a task is one table's rows of one part in one step.
"""

import time
import uuid
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from operator import attrgetter
from typing import Any, NamedTuple, TypeAlias

from distributed import Client, Future

from daskw2v.cluster import Trainers, gather
from daskw2v.devices import trainers_of
from daskw2v.models.store import create_model
from daskw2v.objectives import find_column_trainer, find_objective
from daskw2v.params import Params, Resources
from daskw2v.progress import Listener, Progress
from daskw2v.sampling.context_matrix import ContextMatrix, build_matrix
from daskw2v.sampling.run import Run
from daskw2v.storage import Store
from daskw2v.strategies import checkpoint
from daskw2v.strategies.base import Judge, Outcome, Shares, Strategy, Totals, check_finite, entry_of, progress_of
from daskw2v.strategies.blocks import join_blocks, rows_per_block
from daskw2v.strategies.centre import join_centred, less, submit_centre
from daskw2v.strategies.column_schedule import ColumnRound, ColumnRounds, Step
from daskw2v.strategies.following import (
    OUTPUT_RATE,
    check_workers,
    compose,
    follow,
    join_losses,
    learn,
    minibatches,
    save_network,
    shift,
)
from daskw2v.strategies.part import (
    INPUT,
    OUTPUT,
    TABLES,
    Parts,
    Start,
    Words,
    load_rows,
    moment_table,
    save_moments,
    save_rows,
    take_moments,
    take_rows,
    train_part,
)
from daskw2v.strategies.word_losses import WordLosses

_AHEAD = 2  # rounds given to the cluster: the next one begins while this client still looks at the last
_UNITS = 256  # of words, at most: parts are made of them
_LEAST = 256  # words of a unit, at least

Held: TypeAlias = Future | Start


class Home(NamedTuple):
    """A part's worker, and the threads that train it."""

    worker: str
    threads: int


@dataclass(frozen=True)
class Crew:
    """Who trains: the client, its workers, all parts, where each is at home, and what tells our tasks from others'."""

    client: Client
    trainers: Trainers
    parts: Parts
    homes: tuple[Home, ...]
    session: str


@dataclass
class State:
    """A run between two rounds.

    Parameters
    ----------
    next_round
        Number of the round to do next.
    rows, moments
        By table what holds each part's rows and moments; of rows that follow from a network there are no moments.
    network
        What holds this.
    history
        One entry a round.
    """

    next_round: int
    rows: dict[str, list[Held]]
    moments: dict[str, list[Held]]
    network: Held | None
    history: list[dict[str, Any]] = field(default_factory=list)


def _train(
    client: Client, run: Run, place: Store, length: int, resources: Resources, listener: Listener, judge: Judge
) -> Outcome:
    """Train a run to its end, or go on with it from its last checkpoint.

    Raises
    ------
    TrainingError
        If the model is no longer finite, or a task keeps killing its workers.
    """
    if find_objective(run.params.objective).follows:
        check_workers(client)
    matrix = build_matrix(client, run, listener)
    crew = _crew(client, run, matrix, resources, f"{place.name}-{uuid.uuid4().hex[:8]}")
    rounds, total = ColumnRounds(run.params), length * run.params.epochs
    state, shares = _restore(place, crew), Shares()
    join = partial(join_centred, _unit(run.vocabulary.size)) if run.params.centered else join_blocks
    losses = None
    if resources.word_losses:
        losses = WordLosses(client, place, rounds, run.vocabulary.size, crew.session)
        if not losses.has(state.next_round):
            listener(Progress("train", 0, 0, "", message="losses of rounds before the checkpoint lack: all anew"))
            checkpoint.forget(place)
            state = _state_at(Start(), crew, 0, [])
    waiting: deque[tuple[ColumnRound, list[Future], list[Held]]] = deque()
    saved = began = time.monotonic()
    while state.next_round < len(rounds) or waiting:
        due = time.monotonic() - saved >= resources.checkpoint_seconds
        if state.next_round < len(rounds) and len(waiting) < (1 if due else _AHEAD):
            this = rounds[state.next_round]
            waiting.append((this, _play(crew, state, this, losses), [*state.rows[INPUT]]))
            state.next_round += 1
            continue
        this, futures, rows = waiting.popleft()
        totals: list[Totals] = gather(client, futures, f"Round {this.number}", crew.trainers.takes)
        check_finite(f"A part in round {this.number}", totals, this.steps[-1].alpha, place)
        shares.add(totals)
        words = Totals(0, 0.0, True, matrix.text_words * len(this) // run.params.context_size)
        progress = total * this.done // rounds.total
        entry = entry_of(this.number, progress, [*totals, words], this.steps[-1].alpha, time.monotonic() - began)
        began = time.monotonic()
        state.history.append(entry)
        listener(progress_of(entry, total))
        judge(entry, join, rows)
        if due and not waiting and state.next_round < len(rounds):
            if losses is not None:
                losses.finish()
            state, saved = _checkpoint(crew, place, state), time.monotonic()

    def save(store: Store) -> None:
        _save(crew, store, _centred(crew, state) if run.params.centered else state)
        if losses is not None:
            losses.publish(store)

    facts = {"name": matrix.name, "pairs": matrix.pairs, "text_words": matrix.text_words, "seconds": matrix.seconds}
    return Outcome(state.history, max(home.threads for home in crew.homes), shares, save, {"matrix": facts})


def _crew(client: Client, run: Run, matrix: ContextMatrix, resources: Resources, session: str) -> Crew:
    """Share the words among the workers, by their threads, along units."""
    n_words, unit = run.vocabulary.size, _unit(run.vocabulary.size)
    n = -(-n_words // unit)
    trainers = trainers_of(client, run.device)
    workers = trainers.homes()[:n] or [("", 1)]
    homes = [Home(address, min(resources.threads or threads, threads)) for address, threads in workers]
    weights = [home.threads for home in homes]
    ends = [n * sum(weights[:k]) // sum(weights) for k in range(len(homes) + 1)]
    words = [Words(a * unit, min(n_words, b * unit)) for a, b in pairwise(ends)]
    busy = [number for number, part in enumerate(words) if part.stop > part.start]
    parts = Parts(run, matrix.place, tuple(words[number] for number in busy))
    return Crew(client, trainers, parts, tuple(homes[number] for number in busy), session)


def _unit(n_words: int) -> int:
    """Return the words of a unit, of which parts are made: whole blocks of batches."""
    return -(-max(_LEAST, -(-n_words // _UNITS)) // _LEAST) * _LEAST


def _row_block(n_words: int, width: int) -> int:
    """Return the rows of a table's chunk, which one task writes: a unit, or an even part of one where rows are long."""
    unit, most = _unit(n_words), rows_per_block(width)
    return next(n for n in range(min(unit, most), 0, -1) if unit % n == 0)


def _play(crew: Crew, state: State, this: ColumnRound, losses: WordLosses | None) -> list[Future]:
    """Give a round to the cluster; the state then holds what it will leave. Return the futures of its `Totals`."""
    done, turns = list[Future](), list[list[Future]]()  # what tasks leave; turn by turn, what input rows lost
    if state.network is not None:
        for step in this.steps:
            shares, followed = _follow(crew, state, step)
            done += [*followed, *_move(crew, state, [step._replace(alpha=OUTPUT_RATE * step.alpha)], [OUTPUT])]
            if losses is not None:
                args = crew.parts.run.vocabulary.size, shares, *_take(crew, "losses", followed)
                turns.append([crew.client.submit(join_losses, *args, key=f"lost-{crew.session}-{step.number}")])
    else:
        alone = len(crew.homes) == 1
        moves = [(this.steps, TABLES)] if alone else [([step], [table]) for step in this.steps for table in TABLES]
        for steps, tables in moves:
            moved = _move(crew, state, steps, tables, keep_losses=losses is not None)
            done += moved
            if losses is not None and INPUT in tables:
                turns.append(_take(crew, "losses", moved))
    if losses is not None:
        losses.keep(this, turns)
    return _take(crew, "totals", done)


def _take(crew: Crew, name: str, futures: Sequence[Future]) -> list[Future]:
    """Return the futures of one field of what tasks leave: by itself it does not bring the others along."""
    return [crew.client.submit(attrgetter(name), f, key=f"{name}-{f.key}", priority=1) for f in futures]


def _follow(crew: Crew, state: State, step: Step) -> tuple[list[list[Words]], list[Future]]:
    """Let the input rows move along a step's columns, and the network follow; return tasks' blocks and futures."""
    client, parts, run = crew.client, crew.parts, crew.parts.run
    for part, held in enumerate(state.rows[OUTPUT]):
        if isinstance(held, Start):  # read once, and not by every task
            key = f"load-{crew.session}-{step.number}-{part}"
            state.rows[OUTPUT][part] = client.submit(load_rows, parts, part, OUTPUT, held, key=key, retries=2)
    n_threads = sum(home.threads for home in crew.homes)
    all_shares, all_followed = list[list[Words]](), list[Future]()
    for number, blocks in enumerate(minibatches(run.vocabulary.size)):
        key = f"{crew.session}-{step.number}-{number}"
        shares = [blocks[k::n_threads] for k in range(min(n_threads, len(blocks)))]
        followed = [
            client.submit(
                follow, parts, share, step, state.network, state.rows[OUTPUT],
                key=f"follow-{key}-{k}", retries=2, resources=crew.trainers.takes,
            ) for k, share in enumerate(shares)
        ]  # fmt: skip
        state.network = client.submit(learn, run, step.alpha, shares, state.network, *followed, key=f"learn-{key}")
        all_shares += shares
        all_followed += followed
    state.rows[INPUT] = [
        client.submit(compose, parts, part, state.network, key=f"compose-{crew.session}-{step.number}-{part}")
        for part in range(len(crew.homes))
    ]
    return all_shares, all_followed


def _move(
    crew: Crew, state: State, steps: Sequence[Step], tables: Sequence[str], *, keep_losses: bool = False
) -> list[Future]:
    """Move the rows of all parts in these tables, the others stay; return the futures of what tasks leave, by part."""
    standing = {table: [*state.rows[table]] for table in TABLES if table not in tables}
    moved = [_submit(crew, state, part, steps, tables, standing, keep_losses) for part in range(len(crew.homes))]
    for table in tables:
        for held, take in ((state.rows, take_rows), (state.moments, take_moments)):
            held[table] = [
                crew.client.submit(take, f, table, key=f"{take.__name__}-{table}-{f.key}", priority=1) for f in moved
            ]
    return moved


def _submit(
    crew: Crew, state: State, part: int, steps: Sequence[Step], tables: Sequence[str],
    standing: dict[str, list[Held]], keep_losses: bool,
) -> Future:  # fmt: skip
    moving = {table: (state.rows[table][part], state.moments[table][part]) for table in tables}
    # Preferred, not pinned; and nothing is preferred that waits for no task: see `travelling`
    first, home = not any(isinstance(rows, Future) for rows, _ in moving.values()), crew.homes[part]
    return crew.client.submit(
        train_part, crew.parts, part, steps, moving, standing, home.threads,
        keep_losses=keep_losses, key=f"train-{crew.session}-{steps[0].number}-{'-'.join(tables)}-{part}", retries=2,
        resources=crew.trainers.takes, **crew.trainers.preferring("" if first else home.worker),
    )  # fmt: skip


def _centred(crew: Crew, state: State) -> State:
    """Return the state whose input rows are less their mean, and the network that makes such rows."""
    client, key = crew.client, f"{crew.session}-{uuid.uuid4().hex[:8]}"
    rows = state.rows[INPUT]
    centre = submit_centre(client, rows, _unit(crew.parts.run.vocabulary.size), key)
    less_centre = [client.submit(less, part, centre, key=f"less-{key}-{number}") for number, part in enumerate(rows)]
    network = state.network
    if network is not None:
        network = client.submit(shift, network, centre, key=f"shift-{key}")
    return replace(state, rows={**state.rows, INPUT: less_centre}, network=network)


def _save(crew: Crew, store: Store, state: State, *, moments: bool = False) -> None:
    """Write a model, or with moments a checkpoint: each part by the worker that holds it."""
    parts, client, attempt = crew.parts, crew.client, uuid.uuid4().hex
    shape = parts.run.vocabulary.size, parts.run.params.vector_size
    kept = state.moments if moments else {}
    names = [*state.rows, *(moment_table(name, table) for table in kept for name in parts.moments)]
    create_model(store, dict.fromkeys(names, shape), _row_block(*shape), subwords=state.network is not None)
    writes = [
        client.submit(save, store, parts, part, table, held, key=f"{save.__name__}-{attempt}-{table}-{part}", retries=2)
        for save, tables in ((save_rows, state.rows), (save_moments, kept))
        for table, of_table in tables.items()
        for part, held in enumerate(of_table)
    ]
    if state.network is not None:
        key = f"save-network-{attempt}"
        writes.append(client.submit(save_network, store, parts.run, state.network, moments, key=key, retries=2))
    gather(client, writes, "Writing the model")


def _checkpoint(crew: Crew, place: Store, state: State) -> State:
    """Write a checkpoint; return the state that reads from it, so that nothing before it need be done again."""
    store = checkpoint.folder(place, state.next_round)
    _save(crew, store, state, moments=True)
    checkpoint.finish(place, store, {"next_round": state.next_round, "history": state.history})
    return _state_at(Start(store), crew, state.next_round, state.history)


def _restore(place: Store, crew: Crew) -> State:
    """Return the state of the newest finished checkpoint, or that before the first round."""
    found = checkpoint.newest(place)
    if found is None:
        return _state_at(Start(), crew, 0, [])
    store, manifest = found
    return _state_at(Start(store), crew, int(manifest["next_round"]), list(manifest["history"]))


def _state_at(start: Start, crew: Crew, next_round: int, history: list[dict[str, Any]]) -> State:
    """Return the state of a run all of which lies at a start."""
    follows = find_objective(crew.parts.run.params.objective).follows
    learned = TABLES[1:] if follows else TABLES
    rows, moments = ({table: [start for _ in crew.homes] for table in tables} for tables in (TABLES, learned))
    return State(next_round, rows, moments, start if follows else None, history)


def _check(params: Params) -> None:
    """All Params go together."""


COLUMNS = Strategy("columns", ("gather_every", "centered"), ("word_losses",), find_column_trainer, _check, _train)
