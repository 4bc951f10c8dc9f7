"""From text to vectors. Each stage writes its manifest last, and is skipped where a manifest is there."""

from collections.abc import Callable, Collection
from contextlib import ExitStack
from functools import cache

from distributed import Client

from daskw2v.cluster import waits_for_workers
from daskw2v.cluster.console import listening
from daskw2v.config.arguments import check_arguments
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.inputs import Inputs, names_of
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
from daskw2v.training.choice import choose_strategy, find_choice
from daskw2v.training.compile_ahead import CompileAhead
from daskw2v.training.initial_rows import find_base
from daskw2v.training.repair import mending
from daskw2v.training.setup import check_choices, read_text, ready_cluster
from daskw2v.training.version import (
    check_losses,
    make_run,
    run_folder,
    run_identity,
    settled_params,
    write_version,
)
from daskw2v.vocabulary.count import StoredVocabulary


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

    with listening(listener) as listen, CompileAhead(params, resources) as kernel, ExitStack() as opened:

        @cache
        def cluster() -> Client:
            return opened.enter_context(ready_cluster(client, store, params, resources, listen))

        def reading() -> Client:
            if client is None:
                kernel.start()
            return cluster()

        def make(damaged: Collection[str]) -> Vectors:
            corpus, vocabulary = read_text(inputs, store, params, resources, reading, listen)
            kernel.wait()
            return _train(corpus, vocabulary, store, params, resources, cluster, listen, damaged)

        return mending(store, listen, make, cluster)


def train_model(
    corpus: Corpus,
    vocabulary: StoredVocabulary,
    store: Store,
    params: Params,
    resources: Resources,
    client: Client,
    listener: Watching = "show",
    *,
    damaged: Collection[str] = (),
) -> Vectors:
    """Train on an encoded corpus and publish the model: the last stage of `train`, which says more.

    Versions that are `damaged` are not returned: a new one is trained, with another number.
    """
    check_arguments(store=store, params=params, resources=resources, client=client)
    check_choices(params, resources)
    with listening(listener, client) as heard:
        return _train(corpus, vocabulary, store, params, resources, lambda: client, heard, damaged)


def _train(
    corpus: Corpus,
    vocabulary: StoredVocabulary,
    store: Store,
    params: Params,
    resources: Resources,
    client: Callable[[], Client],
    heard: Listener,
    damaged: Collection[str],
) -> Vectors:
    """Do what `train_model` does; the cluster is asked for where there is something to do."""
    check_joined(corpus, params)
    params = settled_params(params)
    found = find_choice(corpus, vocabulary, store, params, heard)
    if found is None:
        found = choose_strategy(corpus, vocabulary, store, params, resources, client(), heard)
    params, choice = found
    run_id = run_identity(corpus, vocabulary, params)
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
            write_version(models / version, corpus, vocabulary, store, params, resources, client(), listen, choice)
        if latest_version(models) != version:  # trained before, or killed before it was published
            Versions(store).publish(version)
        run_folder(store, run_id).remove()  # checkpoints, and pairs
        vectors = Vectors.open((models / version).url, resources.storage_options, store_timeout=resources.store_timeout)
        listen(Progress("publish", 1, 1, "model", message=vectors.url or ""))
        return vectors


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
        return context_matrix.build_matrix(client, make_run(corpus, vocabulary, store, params, resources), listen)
