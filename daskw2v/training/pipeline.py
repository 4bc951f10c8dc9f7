"""From text to vectors. Each stage writes its manifest last, and is skipped where a manifest is there."""

from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Any

from distributed import Client

from daskw2v.cluster import check_here, lazily_connected, opened_once, starts_cluster, waits_for_workers
from daskw2v.cluster.console import listening
from daskw2v.collections.kinds import TextInputs, check_texts, default_params
from daskw2v.collections.parts import found_texts
from daskw2v.config.arguments import check_arguments
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.models.naming import next_version
from daskw2v.models.vectors import Vectors
from daskw2v.models.verification import check_version
from daskw2v.models.versions import Versions, latest_version
from daskw2v.phrases.build import check_joined
from daskw2v.progress import Listener, Progress, Watching
from daskw2v.sampling import context_matrix
from daskw2v.sampling.context_matrix import ContextMatrix
from daskw2v.shards.layout import Corpus
from daskw2v.store.lease import hold_run
from daskw2v.store.storage import Store
from daskw2v.store.urls import Location, as_url
from daskw2v.training.callbacks import Callback
from daskw2v.training.choice import choose_strategy, find_choice
from daskw2v.training.compile_ahead import CompileAhead
from daskw2v.training.events import Callbacks
from daskw2v.training.initial_rows import find_base
from daskw2v.training.keywords import with_keywords
from daskw2v.training.markets import check_markets
from daskw2v.training.repair import check_folders, mending
from daskw2v.training.setup import check_choices, open_callbacks, read_text, ready_cluster, with_contents
from daskw2v.training.temporary import in_temporary_folder
from daskw2v.training.version import (
    check_losses,
    make_run,
    run_folder,
    settled_params,
    told_run,
    write_version,
)
from daskw2v.vocabulary.count import StoredVocabulary

_SHARED = "Give work, the URL of a directory that client and workers share, such as work='s3://bucket/words'."


def train(
    inputs: TextInputs,
    *,
    work: Location | None = None,
    params: Params | None = None,
    resources: Resources | None = None,
    client: Client | None = None,
    listener: Watching = "show",
    callbacks: Sequence[Callback] = (),
    **settings: Any,
) -> Vectors:
    """Train word vectors from text, on a Dask cluster.

    The same call on the same work directory goes on where an earlier one stopped, and returns at once where it
    had finished.

    Parameters
    ----------
    inputs
        fsspec URLs, globs or paths of text, JSONL or Parquet files, compressed or not, or of folders of them: one, or a
        list. Or text that is in no file, which is written to the work directory first: a bag, DataFrame or Series of
        Dask, or a list of its Delayed objects or futures; a table of pandas, polars or Arrow; a dataset of Hugging
        Face; an iterable of texts, of lists of tokens, or of records. `column` names the column, or key of records.
    work
        URL of the directory for everything that is made; client and workers must share it. By default a folder for
        temporary files of this machine, which is removed with the vectors that are returned; `vectors.save` keeps them.
    params
        What changes the vectors.
    resources
        What does not.
    client
        The cluster. By default the one at `resources.scheduler`; or Dask's current client, in a task that of its
        cluster; or a local cluster for the time of the call. The first line says which. `resources` that describe a
        local cluster (`workers`, `processes`, `memory_limit`, `host`) start one.
    listener
        Called with `Progress` as the stages go on, in any thread. By default bars on a terminal and in a notebook,
        lines elsewhere, on stderr; None for silence.
    callbacks
        Objects that are told of rounds, epochs and the end, and may stop training early (`Callback`). The run is then
        another one than without those that may: its version says in `metadata["stopped"]` where it was stopped.
    **settings
        Fields of `Params` and `Resources`, which change `params` and `resources`: `vector_size=50`, `workers=2`.

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

    Examples
    --------
    >>> vectors = daskw2v.train("text.txt", vector_size=8, min_count=1, epochs=1, listener=None)
    >>> vectors["king"].shape
    (8,)
    """
    params = default_params(inputs) if params is None else params
    params, resources = with_keywords("train", params, resources, settings)
    check_arguments(client=client)
    if work is None:
        check_here(client, resources, "work is not given, and a temporary folder is on this machine alone", _SHARED)
        return in_temporary_folder(
            lambda folder: train(
                inputs, work=folder, params=params, resources=resources, client=client, listener=listener,
                callbacks=callbacks,
            )
        )  # fmt: skip
    starts = starts_cluster(client, resources)
    check_choices(params, resources)
    check_texts(inputs, params, resources)  # before a cluster is started
    check_markets(params, inputs)
    told = open_callbacks(callbacks, params, resources)
    store = Store(as_url(work, "work"), dict(resources.storage_options), resources.store_timeout)
    check_folders(store)
    if params.base_model is not None:
        find_base(store, params)

    with listening(listener) as listen, CompileAhead(params, resources) as kernel, ExitStack() as opened:

        def settled() -> Params:
            return with_contents(params, store, resources, listen)

        settled()  # before a cluster is started

        ready = partial(ready_cluster, client, store, params, resources, listen)
        cluster = opened.enter_context(opened_once(ready))

        def reading() -> Client:
            if starts:
                kernel.start()
            return cluster()

        find = opened.enter_context(found_texts(inputs, store, params, resources, cluster, listen))

        def make(damaged: Collection[str]) -> Vectors:
            based = settled()
            corpus, vocabulary = read_text(find(), store, based, resources, reading, listen)
            kernel.wait()
            return _train(corpus, vocabulary, store, based, resources, cluster, listen, told, damaged)

        return mending(store, listen, make, cluster)


def train_model(
    corpus: Corpus,
    vocabulary: StoredVocabulary,
    store: Store,
    params: Params,
    resources: Resources,
    client: Client | None = None,
    listener: Watching = "show",
    *,
    callbacks: Sequence[Callback] = (),
    damaged: Collection[str] = (),
) -> Vectors:
    """Train on an encoded corpus and publish the model: the last stage of `train`, which says more.

    Versions that are `damaged` are not returned: a new one is trained, with another number.

    Examples
    --------
    >>> from daskw2v.stages import Store, build_corpus, build_vocabulary, train_model
    >>> store, params = Store("stages"), daskw2v.Params(min_count=1)
    >>> how = {"params": params, "resources": daskw2v.Resources(), "listener": None}
    >>> corpus = build_corpus("text.txt", store, **how)
    >>> vocabulary = build_vocabulary(corpus, store, **how)
    >>> train_model(corpus, vocabulary, store, **how)["king"].shape
    (100,)
    """
    check_arguments(store=store, params=params, resources=resources, client=client)
    check_choices(params, resources)
    told = open_callbacks(callbacks, params, resources)
    with (
        listening(listener) as heard,
        opened_once(partial(ready_cluster, client, store, params, resources, heard)) as cluster,
    ):
        named = with_contents(params, store, resources, heard)
        return _train(corpus, vocabulary, store, named, resources, cluster, heard, told, damaged)


def _train(
    corpus: Corpus,
    vocabulary: StoredVocabulary,
    store: Store,
    params: Params,
    resources: Resources,
    client: Callable[[], Client],
    heard: Listener,
    callbacks: Callbacks,
    damaged: Collection[str],
) -> Vectors:
    """Do what `train_model` does; the cluster is asked for where there is something to do."""
    check_joined(corpus, params)
    params = settled_params(params)
    rules = callbacks.rules
    found = find_choice(corpus, vocabulary, store, params, heard, rules)
    if found is None:
        found = choose_strategy(corpus, vocabulary, store, params, resources, client(), heard, rules)
    params, choice = found
    run = told_run(corpus, vocabulary, store, params, callbacks)
    run_id = run.name
    if (store / "models" / next_version(store / "models", run_id, damaged)).read_manifest() is None:
        client()  # before the lease is taken, as it may be waited for
    with hold_run(store, run_id) as lease, waits_for_workers(resources, lease.guarding(heard)):
        listen, store = lease.guarding(heard), lease.guard(store)
        models = store / "models"
        version = next_version(models, run_id, damaged)
        if (models / version).read_manifest() is not None:
            check_version(models / version)
            check_losses(models / version, resources)
        else:
            write_version(
                models / version, corpus, vocabulary, store, params, resources, client(), listen, choice, callbacks
            )
        if latest_version(models) != version:  # trained before, or killed before it was published
            Versions(store).publish(version)
        run_folder(store, run_id).remove()  # checkpoints, and pairs
        vectors = Vectors.open((models / version).url, resources.storage_options, store_timeout=resources.store_timeout)
        listen(Progress("publish", 1, 1, "model", message=vectors.url or ""))
        callbacks.published(run, vectors, listen)
        return vectors


def build_matrix(
    corpus: Corpus,
    vocabulary: StoredVocabulary,
    store: Store,
    params: Params,
    resources: Resources,
    client: Client | None = None,
    listener: Watching = "show",
) -> ContextMatrix:
    """Sample the matrix that `train_model` then finds; `sampling.context_matrix.build_matrix` says more.

    Examples
    --------
    >>> from daskw2v.stages import Store, build_corpus, build_matrix, build_vocabulary
    >>> store, params = Store("stages"), daskw2v.Params(objective="context_matrix", min_count=1)
    >>> how = {"params": params, "resources": daskw2v.Resources(), "listener": None}
    >>> corpus = build_corpus("text.txt", store, **how)
    >>> vocabulary = build_vocabulary(corpus, store, **how)
    >>> build_matrix(corpus, vocabulary, store, **how).words
    8
    """
    check_arguments(store=store, params=params, resources=resources, client=client)
    run = make_run(corpus, vocabulary, store, params, resources)
    with lazily_connected(client, store, resources, listener) as (cluster, listen):
        return context_matrix.build_matrix(cluster(), run, listen)
