"""Strategy `rotation`: partitions of the model meet two by two, and no row is ever in two hands.

Input partitions stay on their workers, output partitions travel (paper 003 moves two vectors for each pair instead).
In a round each input partition meets one output partition, and they train the bucket of pairs that needs no other row;
after p rounds, a pass, all have met (`rotations`). What a meeting does depends on its two partitions and its bucket
only: so any number of workers, alive or lost, gives the same bits, and those are as good as one worker's.

Where the cluster's memory holds the model, partitions travel from worker to worker (`travelling`); where not, they go
through the work directory (`stored`). The bits are the same.
"""

import time
import uuid
from collections.abc import Iterator, Sequence

from distributed import Client

from daskw2v.cluster import await_worker, gather, shared_memory, total_threads
from daskw2v.errors import ParameterError
from daskw2v.models.store import create_model
from daskw2v.objectives import find_bucket_trainer
from daskw2v.params import Params, Resources
from daskw2v.progress import Listener, Progress
from daskw2v.sampling.run import Run
from daskw2v.sampling.skipgrams import Dealer, Stretch, build_skipgrams
from daskw2v.sampling.weights import partition_counts
from daskw2v.storage import Store
from daskw2v.strategies import checkpoint, stored, travelling
from daskw2v.strategies.base import Judge, Outcome, Shares, Strategy, Totals, check_finite, entry_of, progress_of
from daskw2v.strategies.blocks import rows_per_block
from daskw2v.strategies.meeting import INPUT, OUTPUT, Origin, Parts, State, join_parts, save_part, state_at
from daskw2v.strategies.rotations import Pass, Rotations
from daskw2v.vocabulary.partition import Partitions

_SHARE = 0.3  # of the cluster's memory that a model may take: meetings, and what Dask keeps, need the rest


def _train(
    client: Client, run: Run, place: Store, length: int, resources: Resources, listener: Listener, judge: Judge
) -> Outcome:
    """Train a run to its end, or go on with it from its last checkpoint.

    Raises
    ------
    ParameterError
        If there are more partitions than words.
    TrainingError
        If the model is no longer finite, or a task keeps killing its workers.
    """
    params, n = run.params, run.params.n_partitions
    partitions = Partitions(run.vocabulary.size, n)
    counts = partition_counts(client, run.vocabulary, partitions, params.ns_exponent, place / "weights")
    dealer = Dealer(run, counts.weights)
    parts = Parts(run, partitions, counts, resources.max_in_flight)
    passes = Rotations(params, length)
    state = _restore(place, n)
    (place / stored.FOLDER).remove()  # of a run that was cut short: a checkpoint needs none of it
    session = f"{place.name}-{uuid.uuid4().hex[:8]}"  # keys of an earlier client's tasks must not be met
    saved, shares = time.monotonic(), Shares()
    await_worker(client)  # what memory there is, workers have
    fits = fits_memory(partitions.n_words, params.vector_size, shared_memory(client))
    for message in _advice(client, n, fits):
        listener(Progress("train", 0, 0, "", message=message))
    for this in map(passes.__getitem__, range(state.next_pass, len(passes))):
        began = time.monotonic()
        grams = build_skipgrams(client, dealer, _home(place, params, this), _stretch(params, this))
        dealt, done = time.monotonic() - began, list[Totals]()
        how = (client, parts, state, this, passes.turns(this.number), grams)
        played = travelling.play(*how, f"{session}-{this.number}") if fits else stored.play(*how, place)
        for turn, totals in enumerate(played, 1):
            done += totals
            shares.add(totals)
            share = turn / passes.n_turns
            alpha = passes.alpha(this.number, share)
            check_finite(f"A partition in pass {this.number}", totals, alpha, place)
            progress = this.epoch * length + this.start + int((this.stop - this.start) * share)
            words = Totals(0, 0.0, True, int(grams.words * share))
            entry = entry_of(this.number, progress, [*done, words], alpha, time.monotonic() - began)
            listener(progress_of(entry, length * params.epochs))
        state.history.append({**entry, "deal_seconds": round(dealt, 4)})
        state.next_pass += 1
        judge(state.history[-1], join_parts, [parts, *state.input] if fits else None)
        if time.monotonic() - saved >= resources.checkpoint_seconds and state.next_pass < len(passes):
            state = _checkpoint(client, parts, place, state)
            _remove_trained(place, params, [passes[number] for number in range(state.next_pass, len(passes))])
            (place / stored.FOLDER).remove()
            saved = time.monotonic()
    return Outcome(state.history, 1, shares, lambda store: _save(client, parts, store, state))


def fits_memory(n_words: int, vector_size: int, memory: float) -> bool:
    """Tell whether a cluster that holds so many bytes holds both tables; if not, they go through the work directory."""
    return 2 * 4 * n_words * vector_size <= _SHARE * memory


def _advice(client: Client, n: int, fits: bool) -> Iterator[str]:
    """Yield what a user may want to know before a run."""
    if total_threads(client) > n:
        yield f"{n} of {total_threads(client)} threads have work: n_partitions={n} meet at a time"
    if not fits:
        yield "the cluster's memory does not hold the model: its partitions go through the work directory"


def _stretch(params: Params, this: Pass) -> Stretch:
    """Return what is dealt for a pass: `pair_epochs` epochs share the draws of the first."""
    return Stretch(this.epoch // params.pair_epochs * params.pair_epochs, this.start, this.stop)


def _home(place: Store, params: Params, this: Pass) -> Store:
    stretch = _stretch(params, this)
    return place / "skipgrams" / f"{stretch.epoch}-{stretch.start}-{stretch.stop}"


def _remove_trained(place: Store, params: Params, coming: Sequence[Pass]) -> None:
    """Delete the pairs that neither coming passes read, nor tasks that a lost worker's would need again."""
    needed = {_home(place, params, this).name for this in coming}
    for name in (place / "skipgrams").children():
        if name not in needed:
            (place / "skipgrams" / name).remove()


def _save(client: Client, parts: Parts, store: Store, state: State) -> None:
    """Write all partitions, each by the worker that holds it."""
    vocabulary, width = parts.run.vocabulary, parts.run.params.vector_size
    tables = {INPUT: state.input, OUTPUT: state.output}
    shapes = dict.fromkeys(tables, (vocabulary.size, width))
    create_model(store, shapes, rows_per_block(width), parts.partitions.n)
    attempt = uuid.uuid4().hex
    writes = [
        client.submit(save_part, store, name, k, held, parts, key=f"save-{attempt}-{name}-{k}", retries=2)
        for name, partitions in tables.items()
        for k, held in enumerate(partitions)
    ]
    gather(client, writes, "Writing the model")


def _checkpoint(client: Client, parts: Parts, place: Store, state: State) -> State:
    """Write a checkpoint; return the state that reads from it, so that nothing before it need be done again."""
    store = checkpoint.folder(place, state.next_pass)
    _save(client, parts, store, state)
    checkpoint.finish(place, store, {"next_pass": state.next_pass, "history": state.history})
    return state_at(Origin(store), parts.partitions.n, state.next_pass, state.history)


def _restore(place: Store, n: int) -> State:
    """Return the state of the newest finished checkpoint, or that before the first pass."""
    found = checkpoint.newest(place)
    if found is None:
        return state_at(Origin(), n, 0, [])
    store, manifest = found
    return state_at(Origin(store), n, int(manifest["next_pass"]), list(manifest["history"]))


def _check(params: Params) -> None:
    if params.n_partitions % (params.n_groups or 1):
        raise ParameterError(
            f"n_groups={params.n_groups} does not divide n_partitions={params.n_partitions}.",
            "Give groups of equal size: n_partitions as a multiple of n_groups.",
        )
    if params.negative_sharing != "shared":
        raise ParameterError(
            f"negative_sharing={params.negative_sharing!r} has no kernel for strategy='rotation'.",
            "Leave negative_sharing out (pairs of a bucket share negatives by four), or choose strategy='averaging'.",
        )


ROTATION = Strategy(
    "rotation",
    ("n_partitions", "n_groups", "passes_per_epoch", "negative_rule", "pair_epochs"),
    ("max_in_flight",),
    find_bucket_trainer,
    _check,
    _train,
)
