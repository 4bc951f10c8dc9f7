"""A version: encoded text is trained on, and the model is written with its manifest."""

import time
import uuid
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from distributed import Client

from daskw2v.cluster import Usage, gather, usage
from daskw2v.config.identity import identity_fields
from daskw2v.config.params import Params, tokenizer_name
from daskw2v.config.resources import Resources
from daskw2v.errors import ParameterError
from daskw2v.models.phrases import describe_phrases, write_phrases
from daskw2v.models.sources import write_sources
from daskw2v.models.store import finish, write_vocabulary
from daskw2v.objectives.registry import settled
from daskw2v.phrases.score import with_threshold
from daskw2v.progress import Listener
from daskw2v.sampling.run import Base, Run
from daskw2v.shards.layout import Corpus, digest
from daskw2v.store.durability import force
from daskw2v.store.storage import Store
from daskw2v.training.columns import losses
from daskw2v.training.evaluation import TrainingEvaluation
from daskw2v.training.initial_rows import anchored, find_base, write_base
from daskw2v.training.loop import TrainingResult, check_pairs, train_rounds, words_per_second
from daskw2v.training.memory.check import check_training
from daskw2v.training.memory.text import known_text
from daskw2v.training.rewriting import declare_like, rewrite
from daskw2v.training.strategies import find_strategy
from daskw2v.training.totals import WorkerShare
from daskw2v.vocabulary.count import StoredVocabulary


def write_version(
    home: Store,
    corpus: Corpus,
    vocabulary: StoredVocabulary,
    store: Store,
    params: Params,
    resources: Resources,
    client: Client,
    listener: Listener,
    choice: Mapping[str, Any] | None = None,
) -> None:
    """Train into a folder, unless a finished model lies there; whoever calls holds the run's lease.

    `params` are settled, as `train_model` has them; `choice` says why their strategy was chosen, if it was. What else
    was made for it stays in `run_folder`.
    """
    if home.read_manifest() is not None:
        check_losses(home, resources)
        return
    check_training(client, params, resources, known_text(corpus, vocabulary, params))
    place = run_folder(store, run_identity(corpus, vocabulary, params))
    run = _based(make_run(corpus, vocabulary, store, params, resources), place, client)
    before, began = usage(client), time.monotonic()
    total = corpus.n_tokens * params.epochs
    evaluation = _evaluation(client, vocabulary, total, resources, listener)
    training = find_strategy(params.strategy).start(client, run, place, corpus.n_tokens, resources, listener)
    result = train_rounds(training, place, total, resources.checkpoint_seconds, listener, evaluation)
    check_pairs(result.history, vocabulary.size, params)
    evaluation.finish()
    trained = place / "trained" if params.anchor else home
    training.save_model(trained)
    if params.anchor:
        declare_like(trained, home)
        rewrite(client, "anchor", partial(anchored, run), trained, home)
    write_vocabulary(home, vocabulary)
    write_phrases(home, store, corpus)
    write_sources(home, corpus.sources)
    workers = _workers(result, before, usage(client))
    manifest = _manifest(corpus, vocabulary, run, result, workers, time.monotonic() - began)
    finish_version(client, home, manifest if choice is None else {**manifest, "choice": choice})


def finish_version(client: Client, home: Store, manifest: Mapping[str, Any]) -> None:
    """Finish a version on a worker: all tables are read once more, and need not come here for that."""
    force()  # what this process wrote; workers have forced their own
    gather(client, [client.submit(finish, home, manifest, key=f"publish-{uuid.uuid4().hex}")], "Publishing")


def make_run(corpus: Corpus, vocabulary: StoredVocabulary, store: Store, params: Params, resources: Resources) -> Run:
    """Return the run that tasks are given."""
    # The tokenizer is given by its name: tasks do not call it, and would have to carry the function
    named = params.replace(tokenizer=tokenizer_name(params.tokenizer))
    return Run(store, corpus.name, vocabulary, named, resources.device)


def run_folder(store: Store, run_id: str) -> Store:
    """Return where a run keeps what it needs until it is done."""
    return store / "runs" / run_id


def settled_params(params: Params) -> Params:
    """Return Params with what they leave open as it will be."""
    return with_threshold(settled(params))


def run_identity(corpus: Corpus, vocabulary: StoredVocabulary, params: Params) -> str:
    """Return the name of an experiment: equal for equal text, words and Params, however the text was cut."""
    return digest([corpus.identity, vocabulary.identity, identity_fields(params)])[:12]


def _based(run: Run, place: Store, client: Client) -> Run:
    """Return the run with its base, where it has one, ready to be read."""
    if run.params.base_model is None:
        return run
    base = Base(find_base(run.work, run.params), place / "base")
    key = f"base-{uuid.uuid4().hex}"
    gather(client, [client.submit(write_base, base, run.vocabulary, key=key)], "Finding words in the base model")
    return replace(run, base=base)


def check_losses(model: Store, resources: Resources) -> None:
    """Refuse to return a model without the losses that were asked for."""
    if resources.word_losses and not (model / losses.FOLDER).exists():
        raise ParameterError(
            f"word_losses=True, but {model.url} was trained without.",
            "Delete that version to train it again, or give another seed.",
        )


def _evaluation(
    client: Client, vocabulary: StoredVocabulary, total: int, resources: Resources, listener: Listener
) -> TrainingEvaluation:
    sets = {kind: urls for kind, urls in resources.eval_sets.items() if urls}
    return TrainingEvaluation(
        client, vocabulary, sets, resources.eval_every, total, listener, resources.storage_options
    )


def _manifest(
    corpus: Corpus,
    vocabulary: StoredVocabulary,
    run: Run,
    result: TrainingResult,
    workers: list[dict[str, Any]],
    seconds: float,
) -> dict[str, Any]:
    """Return what is to be known of a model; training took `seconds` here, with what was written."""
    words, spent, pairs, loss = (
        sum(entry[name] for entry in result.history) for name in ("words", "seconds", "pairs", "loss")
    )
    compiling = sum(entry.get("compiling", 0.0) for entry in result.history)
    joining = {"phrases": sum(found.seconds for found in corpus.passes)} if corpus.passes else {}
    stages = {"encode": corpus.seconds, **joining, "vocabulary": vocabulary.seconds, "train": seconds}
    return {
        "params": run.params.as_dict(),
        "resources": {"device": run.device, "threads": result.threads},
        "corpus": {
            "identity": corpus.identity,
            "tokens": corpus.n_tokens,
            "report": corpus.report.as_dict(),
            "bad_blocks": [asdict(b) for b in corpus.bad_blocks],
        },
        "phrases": describe_phrases(corpus),
        "vocabulary": {
            "words": vocabulary.size,
            "total": vocabulary.total,
            "raw_words": vocabulary.raw_words,
            "raw_types": vocabulary.raw_types,
            "missing": vocabulary.missing,
            "missing_words": list(vocabulary.missing_words),
        },
        "metrics": {
            "words": words,
            "seconds": round(spent, 3),
            "compiling_seconds": round(compiling, 3),
            "words_per_second": round(words_per_second(result.history)),
            "pairs": pairs,
            "loss": loss / pairs if pairs else None,
            "history": result.history,
            "stages": [{"stage": name, "seconds": round(value, 3)} for name, value in stages.items()],
            "workers": workers,
            "evaluations": [
                {"progress": entry["progress"], "scores": entry["scores"]}
                for entry in result.history
                if "scores" in entry
            ],
        },
        **result.facts,
    }


def _workers(result: TrainingResult, before: dict[str, Usage], after: dict[str, Usage]) -> list[dict[str, Any]]:
    """Return what each worker did since this call began: words by its share of the pairs, memory, traffic, time.

    Of a worker that is gone only its work is known; another that came has all its traffic.
    """
    words, pairs = (sum(entry[name] for entry in result.history) for name in ("words", "pairs"))
    rows = []
    for number, address in enumerate(sorted({*after, *(name for name in result.shares if name)})):
        share, now, then = result.shares.get(address, WorkerShare()), after.get(address), before.get(address)
        rate = words * share.pairs / pairs / share.seconds if pairs and share.seconds else 0.0
        row: dict[str, Any] = {
            "worker": str(number),
            "words_per_second": round(rate),
            "seconds": round(share.seconds, 3),
        }
        if now is not None:
            sent, used = now.sent, now.processor_seconds
            if then is not None:
                sent, used = sent - then.sent, used - then.processor_seconds
            row |= {"threads": now.threads, "peak_memory": now.peak_memory, "sent": sent}
            row["processor_seconds"] = round(used, 3)
        rows.append(row)
    return rows
