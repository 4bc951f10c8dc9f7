"""The whole way: text in, vectors out. Each stage writes its manifest last, and is skipped where that is there."""

import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, replace
from functools import partial
from typing import Any

from distributed import Client

from daskw2v.arguments import check_arguments
from daskw2v.cluster import Usage, check_cluster, connect, gather, scheduler_watched, usage, waits_for_workers
from daskw2v.compiling import compiling_said
from daskw2v.console import listening
from daskw2v.corpus.inputs import Inputs, names_of
from daskw2v.devices import check_device, check_workers
from daskw2v.errors import ParameterError
from daskw2v.estimate import check_encoding, check_training, known_text
from daskw2v.evaluation.during import Judge
from daskw2v.lease import hold_run
from daskw2v.locations import Location, as_url
from daskw2v.models.phrases import describe_phrases, write_phrases
from daskw2v.models.store import finish, write_sources, write_vocabulary
from daskw2v.models.vectors import Vectors
from daskw2v.models.versions import latest_version, next_version, point_to
from daskw2v.objectives import check_options, find_objective, settled
from daskw2v.params import Params, Resources, tokenizer_name
from daskw2v.phrases.build import build_phrases, check_joined
from daskw2v.phrases.score import check_phrases, with_threshold
from daskw2v.progress import Listener, Progress, Watching
from daskw2v.repair import mending
from daskw2v.sampling import context_matrix
from daskw2v.sampling.context_matrix import ContextMatrix
from daskw2v.sampling.run import Base, Run
from daskw2v.shards.encode import build_corpus
from daskw2v.shards.layout import Corpus, digest
from daskw2v.storage import Store
from daskw2v.strategies import check_strategy, find_strategy, word_losses
from daskw2v.strategies.base import Outcome, Share, check_pairs, words_per_second
from daskw2v.strategies.beginning import anchored, find_base, write_base
from daskw2v.strategies.rewriting import declare_like, rewrite
from daskw2v.vocabulary.count import StoredVocabulary, build_vocabulary


def train(
    inputs: Inputs,
    *,
    work: Location,
    params: Params | None = None,
    resources: Resources | None = None,
    client: Client | None = None,
    listener: Watching = "show",
) -> Vectors:
    """Train word vectors from text, on a Dask cluster.

    The same call on the same work directory goes on where an earlier one stopped, and returns at once where it
    had finished.

    Parameters
    ----------
    inputs
        fsspec URLs, globs or paths of text, JSONL or Parquet files, compressed or not, or of folders of them: one, or a
        list.
    work
        URL of the directory for everything that is made; client and workers must share it.
    params
        What changes the vectors.
    resources
        What does not.
    client
        The cluster; by default the one at `resources.scheduler`, or a local one for the time of the call.
    listener
        Called with `Progress` as the stages go on, in any thread. By default bars on a terminal and in a notebook,
        lines elsewhere, on stderr; None for silence.

    Returns
    -------
    vectors
        The published model.

    Raises
    ------
    ParameterError
        If a parameter is out of range or names what does not exist.
    InputError
        If the text cannot be found, read or decoded, or holds no token.
    VocabularyError
        If no word is left.
    ClusterError
        If the cluster cannot do the work.
    MissingExtraError
        If a worker lacks what the device needs.
    TrainingError
        If the model diverges, no pair of words is left to train, or tasks keep killing their workers.
    DamageError
        If what was written is damaged and cannot be made again, or is damaged time and again.
    StoreError
        If the store fails, or another process trains the same model there.
    """
    params = Params() if params is None else params
    resources = Resources() if resources is None else resources
    check_arguments(params=params, resources=resources, **({} if client is None else {"client": client}))
    check_choices(params, resources)
    names_of(inputs)  # what is no name is refused before a cluster is started
    store = Store(as_url(work, "work"), dict(resources.storage_options), resources.store_timeout)
    if params.base_model is not None:
        find_base(store, params)

    def make(cluster: Client, listen: Listener) -> Vectors:
        corpus, vocabulary = read_text(inputs, store, params, resources, cluster, listen)
        return train_model(corpus, vocabulary, store, params, resources, cluster, listen)

    with listening(listener) as listen, ready_cluster(client, store, resources, listen) as cluster:
        return mending(store, listen, partial(make, cluster, listen))


@contextmanager
def ready_cluster(client: Client | None, store: Store, resources: Resources, listener: Listener) -> Iterator[Client]:
    """Give the caller's cluster, or one of `resources`, that has what a run needs; raises as `train` does."""
    connected = nullcontext(client) if client is not None else connect(resources)
    with waits_for_workers(resources, listener), connected as cluster, scheduler_watched():
        listener(Progress("cluster", 0, 0, "workers", message=f"dashboard at {cluster.dashboard_link}"))
        check_cluster(cluster, store)
        check_workers(cluster, resources.device)
        with compiling_said(cluster, listener):
            yield cluster


def read_text(
    inputs: Inputs, store: Store, params: Params, resources: Resources, client: Client, listener: Listener
) -> tuple[Corpus, StoredVocabulary]:
    """Return the text, encoded, with its phrases joined, and its words; raises as `train` does."""
    check_encoding(client, inputs, store, params, resources)
    corpus = build_corpus(inputs, store, params, resources, client, listener)
    corpus = build_phrases(corpus, store, params, resources, client, listener)
    return corpus, build_vocabulary(corpus, store, params, resources, client, listener)


def train_model(
    corpus: Corpus,
    vocabulary: StoredVocabulary,
    store: Store,
    params: Params,
    resources: Resources,
    client: Client,
    listener: Watching = "show",
) -> Vectors:
    """Train on an encoded corpus and publish the model: the last stage of `train`, which says more."""
    check_arguments(store=store, params=params, resources=resources, client=client)
    check_choices(params, resources)
    check_joined(corpus, params)
    params = settled_params(params)
    run_id = run_identity(corpus, vocabulary, params)
    with (
        listening(listener, client) as heard,
        hold_run(store, run_id) as lease,
        waits_for_workers(resources, lease.guarding(heard)),
    ):
        listen, models = lease.guarding(heard), store / "models"
        version = next_version(models, run_id)
        write_version(models / version, corpus, vocabulary, store, params, resources, client, listen)
        if latest_version(models) != version:  # trained before, or killed before it was published
            point_to(models, version)
        run_folder(store, run_id).remove()  # checkpoints, and pairs
        vectors = Vectors.open((models / version).url, resources.storage_options, store_timeout=resources.store_timeout)
        listen(Progress("publish", 1, 1, "model", message=vectors.url or ""))
        return vectors


def write_version(
    home: Store,
    corpus: Corpus,
    vocabulary: StoredVocabulary,
    store: Store,
    params: Params,
    resources: Resources,
    client: Client,
    listener: Listener,
) -> None:
    """Train into a folder, unless a finished model lies there; whoever calls holds the run's lease.

    `params` are settled, as `train_model` has them. What else was made for it stays in `run_folder`.
    """
    if home.read_manifest() is not None:
        _check_losses(home, resources)
        return
    check_training(client, params, resources, known_text(corpus, vocabulary, params))
    place = run_folder(store, run_identity(corpus, vocabulary, params))
    run = _based(_run(corpus, vocabulary, store, params, resources), place, client)
    before, began = usage(client), time.monotonic()
    judge = _judge(client, vocabulary, corpus.n_tokens * params.epochs, resources, listener)
    outcome = find_strategy(params.strategy).train(client, run, place, corpus.n_tokens, resources, listener, judge)
    check_pairs(outcome.history, vocabulary.size, params)
    judge.finish()
    trained = place / "trained" if params.anchor else home
    outcome.save(trained)
    if params.anchor:
        declare_like(trained, home)
        rewrite(client, "anchor", partial(anchored, run), trained, home)
    write_vocabulary(home, vocabulary)
    write_phrases(home, store, corpus)
    write_sources(home, corpus.sources)
    workers = _workers(outcome, before, usage(client))
    manifest = _manifest(corpus, vocabulary, run, outcome, workers, time.monotonic() - began)
    finish_there(client, home, manifest)


def finish_there(client: Client, home: Store, manifest: Mapping[str, Any]) -> None:
    """Finish a version on a worker: all tables are read once more, and need not come here for that."""
    gather(client, [client.submit(finish, home, manifest, key=f"publish-{uuid.uuid4().hex}")], "Publishing")


def run_folder(store: Store, run_id: str) -> Store:
    """Return where a run keeps what it needs until it is done."""
    return store / "runs" / run_id


def build_matrix(
    corpus: Corpus,
    vocabulary: StoredVocabulary,
    store: Store,
    params: Params,
    resources: Resources,
    client: Client,
    listener: Watching = "show",
) -> ContextMatrix:
    """Sample the matrix that `train_model` then finds; `sampling.context_matrix.build_matrix` says more."""
    check_arguments(store=store, params=params, resources=resources, client=client)
    with listening(listener, client) as listen, waits_for_workers(resources, listen):
        return context_matrix.build_matrix(client, _run(corpus, vocabulary, store, params, resources), listen)


def _run(corpus: Corpus, vocabulary: StoredVocabulary, store: Store, params: Params, resources: Resources) -> Run:
    # Tasks need no tokenizer: by its name, they need not carry the function
    named = params.replace(tokenizer=tokenizer_name(params.tokenizer))
    return Run(store, corpus.name, vocabulary, named, resources.device)


def _based(run: Run, place: Store, client: Client) -> Run:
    """Return the run with its base, where it has one, ready to be read."""
    if run.params.base_model is None:
        return run
    base = Base(find_base(run.work, run.params), place / "base")
    key = f"base-{uuid.uuid4().hex}"
    gather(client, [client.submit(write_base, base, run.vocabulary, key=key)], "Finding words in the base model")
    return replace(run, base=base)


def settled_params(params: Params) -> Params:
    """Return Params with what they leave open as it will be."""
    return with_threshold(settled(params))


def run_identity(corpus: Corpus, vocabulary: StoredVocabulary, params: Params) -> str:
    """Return the name of an experiment: equal for equal text, words and Params, however the text was cut."""
    return digest([corpus.identity, vocabulary.identity, params.as_dict()])[:12]


def _check_losses(model: Store, resources: Resources) -> None:
    """Refuse to return a model without the losses that were asked for."""
    if resources.word_losses and not (model / word_losses.FOLDER).exists():
        raise ParameterError(
            f"word_losses=True, but {model.url} was trained without.",
            "Delete that version to train it again, or give another seed.",
        )


def check_choices(params: Params, resources: Resources) -> None:
    """Refuse what does not exist before any text is read."""
    check_options(params)
    _check_anchor(params, resources)
    check_phrases(params)
    check_strategy(params, resources)
    check_device(resources)
    if resources.eval_every is not None and not any(resources.eval_sets.values()):
        raise ParameterError(
            f"eval_every={resources.eval_every} has nothing to evaluate on.",
            "Give eval_similarity, eval_analogy or eval_categorization too, or leave eval_every out.",
        )


def _check_anchor(params: Params, resources: Resources) -> None:
    if params.anchor and params.base_model is None:
        raise ParameterError(
            f"anchor={params.anchor} changes nothing without base_model.", "Name a base_model, or leave anchor out."
        )
    if params.anchor and find_objective(params.objective).follows:
        raise ParameterError(
            f"anchor={params.anchor} cannot hold rows of objective={params.objective!r}, which its network makes.",
            "Leave anchor out.",
        )
    if params.anchor and resources.word_losses:
        raise ParameterError(
            f"word_losses=True: rows that anchor={params.anchor} leads back are not those whose losses are kept.",
            "Leave one of the two out.",
        )


def _judge(client: Client, vocabulary: StoredVocabulary, total: int, resources: Resources, listener: Listener) -> Judge:
    sets = {kind: urls for kind, urls in resources.eval_sets.items() if urls}
    return Judge(client, vocabulary, sets, resources.eval_every, total, listener, resources.storage_options)


def _manifest(
    corpus: Corpus,
    vocabulary: StoredVocabulary,
    run: Run,
    outcome: Outcome,
    workers: list[dict[str, Any]],
    seconds: float,
) -> dict[str, Any]:
    """Return what is to be known of a model; training took `seconds` here, with what was written."""
    words, spent, pairs, loss = (
        sum(entry[name] for entry in outcome.history) for name in ("words", "seconds", "pairs", "loss")
    )
    compiling = sum(entry.get("compiling", 0.0) for entry in outcome.history)
    joining = {"phrases": sum(found.seconds for found in corpus.passes)} if corpus.passes else {}
    stages = {"encode": corpus.seconds, **joining, "vocabulary": vocabulary.seconds, "train": seconds}
    return {
        "params": run.params.as_dict(),
        "resources": {"device": run.device, "threads": outcome.threads},
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
            "words_per_second": round(words_per_second(outcome.history)),
            "pairs": pairs,
            "loss": loss / pairs if pairs else None,
            "history": outcome.history,
            "stages": [{"stage": name, "seconds": round(value, 3)} for name, value in stages.items()],
            "workers": workers,
            "evaluations": [
                {"progress": entry["progress"], "scores": entry["scores"]}
                for entry in outcome.history
                if "scores" in entry
            ],
        },
        **outcome.facts,
    }


def _workers(outcome: Outcome, before: dict[str, Usage], after: dict[str, Usage]) -> list[dict[str, Any]]:
    """Return what each worker did since this call began: words by its share of the pairs, memory, and traffic.

    Of a worker that is gone only its work is known; another that came has all its traffic.
    """
    words, pairs = (sum(entry[name] for entry in outcome.history) for name in ("words", "pairs"))
    rows = []
    for number, address in enumerate(sorted({*after, *(name for name in outcome.shares if name)})):
        share, now, then = outcome.shares.get(address, Share()), after.get(address), before.get(address)
        rate = words * share.pairs / pairs / share.seconds if pairs and share.seconds else 0.0
        row: dict[str, Any] = {
            "worker": str(number),
            "words_per_second": round(rate),
            "seconds": round(share.seconds, 3),
        }
        if now is not None:
            sent = now.sent - (then.sent if then is not None else 0)
            row |= {"threads": now.threads, "peak_memory": now.peak_memory, "sent": sent}
        rows.append(row)
    return rows
