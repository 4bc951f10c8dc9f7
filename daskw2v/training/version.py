"""Training a version: encoded text is trained on, and the model is written with its manifest."""

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from distributed import Client

from daskw2v.cluster.local import trim_heap
from daskw2v.cluster.waiting import gather
from daskw2v.cluster.workers import Usage, usage
from daskw2v.config.resources import Resources
from daskw2v.errors import ParameterError
from daskw2v.features.settings import has_features
from daskw2v.models.stored.store import finish, write_features, write_sources, write_tokenizer, write_vocabulary
from daskw2v.models.versions.phrases import describe_phrases, write_phrases
from daskw2v.objectives.noise import has_markets
from daskw2v.progress import Listener
from daskw2v.sampling.run import Base, Run
from daskw2v.store.durability import force_files
from daskw2v.store.storage import Store
from daskw2v.training.columns import losses
from daskw2v.training.estimates.check import check_training
from daskw2v.training.loop import checkpoint
from daskw2v.training.loop.strategy import StrategyRun, WorkerShare
from daskw2v.training.preparation.choice import tell_faster
from daskw2v.training.preparation.plan import plan_run
from daskw2v.training.preparation.planned import PlannedRun
from daskw2v.training.rounds import TrainingResult, check_pairs, train_rounds, words_per_second
from daskw2v.training.start.base_settings import get_anchor, get_frozen_words
from daskw2v.training.start.blocks import declare_like, rewrite
from daskw2v.training.start.features import compose_model_rows, composed_rows, find_features, load_feature_keys
from daskw2v.training.start.initial_rows import anchor_rows, base_tables, find_base, write_base
from daskw2v.training.start.markets import write_markets
from daskw2v.training.strategies import find_strategy
from daskw2v.training.watch.events import RunWatch, TrainedRun
from daskw2v.training.watch.held_out import HeldOutText
from daskw2v.training.watch.measurements import Measurements, TrainingEvaluation
from daskw2v.types import Float32Array, RowIds


def write_version(model: Store, run: PlannedRun, client: Client, listener: Listener) -> None:
    """Train a run and write its model to the folder of a version, unless it is finished; the caller holds the lease.

    All other files of the run stay in `run.folder`. The run's callbacks are called for all events but the end.
    """
    params, resources, folder = run.params, run.resources, run.folder
    if model.read_manifest() is not None:
        check_losses(model, resources)
        return
    check_training(client, params, resources, run.sizes)
    if run.choice is None and checkpoint.find_newest(folder) is None:
        tell_faster(run, client, listener)
    shared = _prepare_run(run, client, listener)
    before, began, length = usage(client), time.monotonic(), run.text.trained.n_tokens
    training = find_strategy(params.strategy.name).start(client, shared, folder, length, resources, listener)
    facts = plan_run(run, client).facts()
    trained = run.trained._replace(plan=facts)
    watch = _make_watch(trained, training, shared, run, client, listener)
    result = train_rounds(training, folder, trained.total, resources.checkpoint_seconds, listener, watch)
    check_pairs(result.history, run.vocabulary.size, params)
    if get_anchor(params) or shared.features is not None:
        rows = folder / "trained"
        training.save_model(rows)
        declare_like(rows, model)
        rewrite(client, "finish", partial(_finish_rows, shared, rows), rows, model)
    else:
        training.save_model(model)
    if shared.features is not None:
        write_features(model, load_feature_keys(shared))
    write_vocabulary(model, run.vocabulary)
    write_phrases(model, run.store, run.corpus)
    write_tokenizer(model, run.store, params)
    write_sources(model, run.corpus.sources)
    workers = _worker_facts(result, before, usage(client))
    manifest = _make_manifest(run, shared, result, workers, time.monotonic() - began)
    manifest |= {"plan": facts} | _held_out_facts(run, result) | _stop_facts(trained, result)
    finish_version(client, model, manifest)


def finish_version(client: Client, model: Store, manifest: Mapping[str, Any]) -> None:
    """Check a version and write its manifest, as `stored.store.finish` does, in a task: this process gets no table."""
    force_files()  # files of this process; workers have forced theirs
    trim_heap()  # of a worker in this process
    _call_on_worker(client, "publish", "Publishing", finish, model, manifest)


def _call_on_worker(client: Client, name: str, activity: str, task: Callable[..., Any], *arguments: Any) -> None:
    """Call a function in a task whose key begins with `name`, and wait; `activity` names the task in errors."""
    gather(client, [client.submit(task, *arguments, key=f"{name}-{uuid.uuid4().hex}")], activity)


def _prepare_run(run: PlannedRun, client: Client, listener: Listener) -> Run:
    """Write indices of base rows, markets and features of the words to the run's folder; return the run for tasks."""
    shared, folder, resources = run.for_tasks(), run.folder, run.resources
    params, vocabulary = shared.params, shared.vocabulary
    if params.start is not None:
        model = find_base(shared.work, params)
        base, frozen = Base(model, folder / "base", base_tables(model, params)), get_frozen_words(params)
        activity = "Finding words in the base model"
        _call_on_worker(client, "base", activity, write_base, base, vocabulary, frozen, resources)
        shared = replace(shared, base=base)
    if has_markets(params):
        markets = folder / "markets"
        _call_on_worker(client, "markets", "Finding the markets of words", write_markets, markets, shared, resources)
        shared = replace(shared, markets=markets)
    if has_features(params):
        features = find_features(client, folder / "features", shared, resources, listener)
        shared = replace(shared, features=features)
    return shared


def _finish_rows(run: Run, trained: Store, table: str, ids: RowIds, rows: Float32Array) -> Float32Array:
    """Return rows of a table for the version, shape (n, D): composed with features, and anchored, if the run has these.

    `rows` are the table's rows of these `ids`; `trained` is the folder of all trained tables.
    """
    rows = rows if run.features is None else composed_rows(run, trained, table, ids, rows)
    return anchor_rows(run, table, ids, rows) if get_anchor(run.params) else rows


def check_losses(model: Store, resources: Resources) -> None:
    """Raise a ParameterError if a finished model lacks the losses that Resources ask for."""
    if resources.word_losses and not (model / losses.FOLDER).exists():
        raise ParameterError(
            f"word_losses=True, but {model.url} was trained without.",
            "Delete that version to train it again, or give another seed.",
        )


def _make_watch(
    trained: TrainedRun, training: StrategyRun, shared: Run, run: PlannedRun, client: Client, listener: Listener
) -> RunWatch:
    """Return the watch that measures a run's rounds and calls its callbacks.

    Parameters
    ----------
    trained
        The facts of the run for callbacks.
    training
        The run as its strategy trains it.
    shared, run
        The run that is sent with tasks, and the run as it was planned.
    client, listener
        The cluster, and the function that is called with progress.
    """
    resources, sample = run.resources, run.text.held_out
    sets = {kind: urls for kind, urls in resources.eval_sets.items() if urls}
    evaluation = TrainingEvaluation(client, run.vocabulary, sets, resources.storage_options) if sets else None
    held_out = None if sample is None else HeldOutText(client, shared, sample)
    measured = Measurements(client, listener), evaluation, resources.eval_every, held_out
    return RunWatch(trained, training, run.callbacks, *measured, listener, partial(compose_model_rows, client, shared))


def _make_manifest(
    run: PlannedRun, shared: Run, result: TrainingResult, workers: list[dict[str, Any]], seconds: float
) -> dict[str, Any]:
    """Return the manifest of a model; `seconds` is the time of training in this call, with writing."""
    names = ("words", "seconds", "pairs", "loss")
    words, trained_seconds, pairs, loss = (sum(entry[name] for entry in result.history) for name in names)
    compiling = sum(entry.get("compiling", 0.0) for entry in result.history)
    corpus, vocabulary = run.corpus, run.vocabulary
    report, bad_blocks = corpus.report.as_dict(), [asdict(block) for block in corpus.bad_blocks]
    counts = {name: getattr(vocabulary, name) for name in ("total", "raw_words", "raw_types", "missing")}
    scored = [entry for entry in result.history if "scores" in entry]
    joining = {"phrases": sum(joined.seconds for joined in corpus.passes)} if corpus.passes else {}
    stages = {"encode": corpus.seconds, **joining, "vocabulary": vocabulary.seconds, "train": seconds}
    return {
        "params": shared.params.as_dict(),
        "resources": {"device": shared.device, "threads": result.threads},
        "corpus": {"identity": corpus.identity, "tokens": corpus.n_tokens, "report": report, "bad_blocks": bad_blocks},
        "phrases": describe_phrases(corpus),
        "vocabulary": {"words": vocabulary.size, **counts, "missing_words": list(vocabulary.missing_words)},
        "metrics": {
            "words": words,
            "seconds": round(trained_seconds, 3),
            "compiling_seconds": round(compiling, 3),
            "words_per_second": round(words_per_second(result.history)),
            "pairs": pairs,
            "loss": loss / pairs if pairs else None,
            "history": result.history,
            "stages": [{"stage": name, "seconds": round(value, 3)} for name, value in stages.items()],
            "workers": workers,
            "evaluations": [{name: entry[name] for name in ("progress", "scores")} for entry in scored],
        },
        **result.facts,
    }


def _held_out_facts(run: PlannedRun, result: TrainingResult) -> dict[str, Any]:
    """Return the manifest's facts of held-out text; empty without such text."""
    text = run.text
    if text.held_out is None:
        return {}
    tokens = run.corpus.n_tokens - text.trained.n_tokens
    loss = result.history[-1].get("held_out_loss")
    return {"held_out": {"tokens": tokens, "measured": text.held_out.n_tokens, "loss": loss}}


def _stop_facts(run: TrainedRun, result: TrainingResult) -> dict[str, Any]:
    """Return the manifest's facts of the end of a run that was stopped early; empty for other runs."""
    if result.stopped is None:
        return {}
    last = result.history[-1]
    end = {"round": last["round"], "epochs": run.epochs_after(last["progress"]), "progress": last["progress"]}
    return {"stopped": {**end, "of": run.total, "reason": result.stopped}}


def _worker_facts(result: TrainingResult, before: dict[str, Usage], after: dict[str, Usage]) -> list[dict[str, Any]]:
    """Return the manifest's facts of each worker, by number, since this call began: speed, seconds, bytes sent.

    The peak of memory is since the worker's start. Words are shared among workers in proportion to their pairs. Memory
    and traffic of a worker that is gone are not known; all traffic of a worker that came later counts.

    Parameters
    ----------
    result
        The result of training.
    before, after
        The usage of each worker, by address, before training and now.
    """
    words, pairs = (sum(entry[name] for entry in result.history) for name in ("words", "pairs"))
    rows = list[dict[str, Any]]()
    for number, address in enumerate(sorted({*after, *(name for name in result.shares if name)})):
        share, last = result.shares.get(address, WorkerShare()), after.get(address)
        first = before.get(address, Usage(0, 0, 0, 0.0))
        rate = words * share.pairs / pairs / share.seconds if pairs and share.seconds else 0.0
        speed = {"words_per_second": round(rate), "seconds": round(share.seconds, 3)}
        row: dict[str, Any] = {"worker": str(number), **speed}
        if last is not None:
            row |= {"threads": last.threads, "peak_memory": last.peak_memory, "sent": last.sent - first.sent}
            row["processor_seconds"] = round(last.processor_seconds - first.processor_seconds, 3)
        rows.append(row)
    return rows
