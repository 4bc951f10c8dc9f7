"""The whole way: text in, vectors out. Each stage writes its manifest last, and is skipped where that is there."""

import os
import uuid
from contextlib import nullcontext
from typing import Any

from distributed import Client

from daskw2v.cluster import check_cluster, connect, gather
from daskw2v.corpus.sources import Inputs
from daskw2v.devices import find_device
from daskw2v.models.store import latest_version, next_version, point_to, publish, write_vocabulary
from daskw2v.models.vectors import Vectors
from daskw2v.objectives import check_options, start_alpha
from daskw2v.params import Params, Resources, tokenizer_name
from daskw2v.progress import Listener, Progress, silent
from daskw2v.sampling.run import Run
from daskw2v.shards.encode import build_corpus
from daskw2v.shards.layout import Corpus, digest
from daskw2v.storage import Location, Store
from daskw2v.strategies import check_strategy, find_strategy
from daskw2v.strategies.base import Outcome
from daskw2v.vocabulary.count import StoredVocabulary, build_vocabulary


def train(
    inputs: Inputs,
    *,
    work: Location,
    params: Params | None = None,
    resources: Resources | None = None,
    client: Client | None = None,
    listener: Listener = silent,
) -> Vectors:
    """Train word vectors from text, on a Dask cluster.

    The same call on the same work directory goes on where an earlier one stopped, and returns at once where it
    had finished.

    Parameters
    ----------
    inputs
        fsspec URLs, globs or paths of text, JSONL or Parquet files, compressed or not.
    work
        URL of the directory for everything that is made; client and workers must share it.
    params
        What changes the vectors.
    resources
        What does not.
    client
        The cluster; by default the one at `resources.scheduler`, or a local one for the time of the call.
    listener
        Called with `Progress` as the stages go on.

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
    TrainingError
        If the model diverges, or tasks keep killing their workers.
    """
    params, resources = params or Params(), resources or Resources()
    _check_names(params, resources)
    store = Store(os.fspath(work), dict(resources.storage_options))
    with nullcontext(client) if client is not None else connect(resources) as cluster:
        listener(Progress("cluster", 0, 0, "workers", message=f"dashboard at {cluster.dashboard_link}"))
        check_cluster(cluster, store)
        corpus = build_corpus(inputs, store, params, resources, cluster, listener)
        vocabulary = build_vocabulary(corpus, store, params, resources, cluster, listener)
        return train_model(corpus, vocabulary, store, params, resources, cluster, listener)


def train_model(
    corpus: Corpus,
    vocabulary: StoredVocabulary,
    store: Store,
    params: Params,
    resources: Resources,
    client: Client,
    listener: Listener = silent,
) -> Vectors:
    """Train on an encoded corpus and publish the model: the last stage of `train`, which says more."""
    _check_names(params, resources)
    params = params.replace(alpha=start_alpha(params))
    run_id = run_identity(corpus, vocabulary, params)
    models, place = store / "models", store / "runs" / run_id
    version = next_version(models, run_id)
    if (models / version).read_manifest() is None:
        # Training needs no tokenizer: by its name, tasks need not carry the function
        named = params.replace(tokenizer=tokenizer_name(params.tokenizer))
        run = Run(store, corpus.name, vocabulary, named, resources.device)
        outcome = find_strategy(params.strategy).train(client, run, place, corpus.n_tokens, resources, listener)
        outcome.save(models / version)
        write_vocabulary(models / version, vocabulary)
        manifest = _manifest(corpus, vocabulary, run, outcome)
        # On a worker: all tables are read once more, and need not come here for that.
        key = f"publish-{uuid.uuid4().hex}"
        gather(client, [client.submit(publish, models, version, manifest, key=key)], "Publishing")
    if latest_version(models) != version:  # trained before, or killed before it was published
        point_to(models, version)
    place.remove()  # checkpoints, and pairs
    vectors = Vectors.open((models / version).url, resources.storage_options)
    listener(Progress("publish", 1, 1, "model", message=vectors.url or ""))
    return vectors


def run_identity(corpus: Corpus, vocabulary: StoredVocabulary, params: Params) -> str:
    """Return the name of an experiment: equal for equal text, words and Params, however the text was cut."""
    return digest([corpus.identity, vocabulary.identity, params.as_dict()])[:12]


def _check_names(params: Params, resources: Resources) -> None:
    """Refuse what does not exist before any text is read."""
    check_options(params)
    params.replace(alpha=start_alpha(params))  # min_alpha must not be above the objective's own either
    check_strategy(params, resources)
    find_device(resources.device)


def _manifest(corpus: Corpus, vocabulary: StoredVocabulary, run: Run, outcome: Outcome) -> dict[str, Any]:
    words, seconds, pairs, loss = (
        sum(entry[name] for entry in outcome.history) for name in ("words", "seconds", "pairs", "loss")
    )
    return {
        "params": run.params.as_dict(),
        "resources": {"device": run.device, "threads": outcome.threads},
        "corpus": {"identity": corpus.identity, "tokens": corpus.n_tokens, "report": corpus.report.as_dict()},
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
            "seconds": round(seconds, 3),
            "words_per_second": round(words / max(seconds, 1e-9)),
            "pairs": pairs,
            "loss": loss / pairs if pairs else None,
            "history": outcome.history,
        },
    }
