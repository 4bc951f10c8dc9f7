"""From text to vectors: the functions that train.

Each stage writes its manifest last, and is skipped where its manifest exists. A call without a work directory has a
temporary one, which exists as long as the vectors.
"""

import os
import shutil
import weakref
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from tempfile import mkdtemp
from typing import Any

from distributed import Client

from daskw2v.cluster.connecting import lazily_connected, opening_once, refuse_remote_workers, starts_cluster
from daskw2v.cluster.console import listening
from daskw2v.cluster.waiting import waits_for_workers
from daskw2v.collections.kinds import TextInputs
from daskw2v.collections.parts import text_finder
from daskw2v.config.arguments import check_arguments
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.inputs import Inputs
from daskw2v.errors import FrozenError
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.versions.finished import check_version, next_version
from daskw2v.models.versions.versions import Versions, fence_versions, latest_version
from daskw2v.phrases.build import check_joined
from daskw2v.progress import Listener, Progress, Watching
from daskw2v.sampling import context_matrix
from daskw2v.sampling.context_matrix import ContextMatrix
from daskw2v.sequences.settings import EdgeList, Sessions, Walks
from daskw2v.sequences.sources import Events, Graph
from daskw2v.shards.layout import Corpus
from daskw2v.store.lease import hold_run
from daskw2v.store.storage import Store
from daskw2v.store.urls import Location
from daskw2v.training.compile_ahead import CompileAhead
from daskw2v.training.preparation.choice import choose_strategy, find_choice
from daskw2v.training.preparation.plan import Plan
from daskw2v.training.preparation.planned import PlannedRun, settled_params
from daskw2v.training.preparation.repair import repair_and_retry
from daskw2v.training.preparation.request import (
    Request,
    check_choices,
    make_callbacks,
    open_cluster,
    read_text,
    with_contents,
)
from daskw2v.training.start.base_settings import BaseModel
from daskw2v.training.start.initial_rows import find_base
from daskw2v.training.version import check_losses, write_version
from daskw2v.training.watch.callbacks import Callback
from daskw2v.vocabulary.count import StoredVocabulary

_NOT_SHARED = "work is not given, and a temporary folder is on this machine alone"
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
        Or a `Plan` of files, which is then carried out with its settings.
    work
        URL of the directory for everything that is made; client and workers must share it. By default a folder for
        temporary files of this machine, which is removed with the vectors that are returned; `vectors.save` keeps them.
    params
        Settings that change the vectors.
    resources
        Settings that do not change the vectors.
    client
        The cluster. By default the one at `resources.scheduler`; or Dask's current client, in a task the client of its
        cluster; or a local cluster for the time of the call. The first line says which. `resources` that describe a
        local cluster (`workers`, `processes`, `memory_limit`, `host`) start one.
    listener
        Called with `Progress` as the stages go on, in any thread. By default bars on a terminal and in a notebook,
        lines elsewhere, on stderr; None for silence.
    callbacks
        Objects that are called after each round (a part of the training), after epochs and at the end, and may stop
        training early (`Callback`). A run that callbacks may stop has another name than a run without them. The version
        of a stopped run says in `metadata["stopped"]` where it was stopped.
    **settings
        Fields of `Params` and `Resources`, which change `params` and `resources`: `vector_size=50`, `workers=2`.

    Returns
    -------
    vectors
        The finished model; its version is served, unless `stage` is set or the versions are frozen.

    Raises
    ------
    ParameterError
        If a parameter is out of range or names what does not exist.
    InputError
        If the text cannot be found, read or decoded, holds no token, or is not what was planned.
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
    if isinstance(inputs, Plan):
        request = Request.from_plan(inputs, client, callbacks, params=params, resources=resources, **settings)
    else:
        request = Request.from_call("train", inputs, params, resources, client, callbacks, settings)
    return _carry_out(request, work, listener)


def _carry_out(request: Request, work: Location | None, listener: Watching) -> Vectors:
    """Train vectors as requested, in a work directory, or in a temporary folder for None.

    The temporary folder is removed with the vectors, or when the process ends; at once if training fails.
    """
    if work is not None:
        return _train_in_folder(work, request, listener)
    refuse_remote_workers(request.client, request.resources, _NOT_SHARED, _SHARED)
    folder, process = mkdtemp(prefix="daskw2v-"), os.getpid()
    try:
        vectors = _train_in_folder(folder, request, listener)
    except BaseException:
        _remove(folder, process)
        raise
    weakref.finalize(vectors, _remove, folder, process)
    return vectors


def _remove(folder: str, process: int) -> None:
    """Delete a temporary folder, if this is the process with this id."""
    if os.getpid() == process:  # a forked process does not delete its parent's folder
        shutil.rmtree(folder, ignore_errors=True)


def _train_in_folder(work: Location, request: Request, listener: Watching) -> Vectors:
    """Train vectors as requested, in a work directory."""
    params, resources, store = request.params, request.resources, request.open_store(work)
    if BaseModel.find(params) is not None:
        find_base(store, params)
    starts = starts_cluster(request.client, resources)
    with listening(listener) as listen, CompileAhead(params, resources) as kernel, ExitStack() as opened:
        request.settled(store, listen)  # before a cluster is started
        cluster = opened.enter_context(opening_once(request.open_cluster(store, listen)))

        def open_for_reading() -> Client:
            if starts:
                kernel.start()
            return cluster()

        find_sources = opened.enter_context(text_finder(request.inputs, store, params, resources, cluster, listen))

        def make(damaged: Collection[str]) -> Vectors:
            settled, sources = request.settled(store, listen), find_sources()
            if request.plan is not None:
                request.plan.check_sources(sources)
            corpus, vocabulary = read_text(sources, store, settled, resources, open_for_reading, listen)
            kernel.wait()
            run = PlannedRun(corpus, vocabulary, store, settled_params(settled), resources, request.callbacks)
            return _train(replace(run, choice=request.choice), cluster, listen, damaged)

        return repair_and_retry(store, listen, make, cluster)


def items(
    inputs: Inputs,
    *,
    work: Location | None = None,
    sessions: Sessions | None = None,
    params: Params | None = None,
    resources: Resources | None = None,
    client: Client | None = None,
    listener: Watching = "show",
    callbacks: Sequence[Callback] = (),
    **settings: Any,
) -> Vectors:
    """Train vectors of items from events, whose sessions are the text (item2vec, Barkan and Koenigstein 2016).

    The same as `train(Events(inputs, sessions), ...)`.

    Parameters
    ----------
    inputs
        URLs, paths, folders or patterns of Parquet or CSV files; each row is an event.
    work, resources, client, listener, callbacks, **settings
        As in `train`.
    sessions
        Columns of the events, and how sessions are cut.
    params
        As in `train`; by default `Events.params`, for which all items of a session are contexts of each other.

    Returns
    -------
    vectors
        As in `train`.

    Raises
    ------
    Daskw2vError
        As `train` and `write_sessions` do.

    Examples
    --------
    >>> vectors = daskw2v.items("events.csv", vector_size=8, min_count=1, epochs=1, listener=None)
    >>> len(vectors)
    5
    """
    events = Events(inputs, Sessions() if sessions is None else sessions)
    request = Request.from_call("items", events, params, resources, client, callbacks, settings)
    return _carry_out(request, work, listener)


def walks(
    inputs: Inputs,
    *,
    work: Location | None = None,
    edges: EdgeList | None = None,
    walks: Walks | None = None,
    params: Params | None = None,
    resources: Resources | None = None,
    client: Client | None = None,
    listener: Watching = "show",
    callbacks: Sequence[Callback] = (),
    **settings: Any,
) -> Vectors:
    """Train vectors of a graph's nodes on random walks.

    The walks are those of DeepWalk (Perozzi et al. 2014), node2vec (Grover and Leskovec 2016) or, along a metapath,
    metapath2vec (Dong, Chawla and Swami 2017). The same as `train(Graph(inputs, edges, walks), ...)`.

    Parameters
    ----------
    inputs
        URLs, paths, folders or patterns of edge lists: Parquet, CSV, or text with columns separated by blanks.
    work, resources, client, listener, callbacks, **settings
        As in `train`.
    edges
        Columns of the edges and of types of nodes, and whether edges are directed.
    walks
        Number and kind of walks.
    params
        As in `train`; by default `Graph.params`, for which every node has a vector.

    Returns
    -------
    vectors
        As in `train`.

    Raises
    ------
    Daskw2vError
        As `train` and `write_walks` do.

    Examples
    --------
    >>> vectors = daskw2v.walks("edges.txt", vector_size=8, epochs=1, listener=None)
    >>> len(vectors)
    9
    """
    graph = Graph(inputs, EdgeList() if edges is None else edges, Walks() if walks is None else walks)
    return _carry_out(Request.from_call("walks", graph, params, resources, client, callbacks, settings), work, listener)


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
    """Train on an encoded corpus and publish the model: the last stage of `train`, where parameters are explained.

    `store` is the work directory. `damaged` has the names of versions that are not returned: a new version is trained,
    with another number.

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
    all_callbacks = make_callbacks(callbacks, params, resources)
    with (
        listening(listener) as listen,
        opening_once(partial(open_cluster, client, store, params, resources, listen)) as cluster,
    ):
        settled = settled_params(with_contents(params, store, resources, listen))
        run = PlannedRun(corpus, vocabulary, store, settled, resources, all_callbacks)
        return _train(run, cluster, listen, damaged)


def _train(run: PlannedRun, client: Callable[[], Client], listener: Listener, damaged: Collection[str]) -> Vectors:
    """Train a run unless its version is finished; publish the version, unless it is served, and return its vectors.

    `client` is called only to choose a strategy or to train. `damaged` has the names of versions that are not returned.
    """
    check_joined(run.corpus, run.params)
    run = find_choice(run, listener) or choose_strategy(run, client(), listener)
    models = run.store / "models"
    if (models / next_version(models, run.name, damaged)).read_manifest() is None:
        client()  # before the lease is taken, as it may be waited for
    resources = run.resources
    with (
        hold_run(run.store, run.name, partial(fence_versions, run.store)) as lease,
        waits_for_workers(resources, lease.guarding(listener)),
    ):
        listen, run = lease.guarding(listener), run.guarded(lease)
        models = run.store / "models"
        version = next_version(models, run.name, damaged)
        model = models / version
        if model.read_manifest() is not None:
            check_version(model)
            check_losses(model, resources)
        else:
            write_version(model, run, client(), listen)
        if latest_version(models) != version:  # it is new, or was finished before it was to be served
            unserved = f"{version} is finished, and not served"
            try:
                if not resources.stage:
                    Versions(run.store).publish(version, reason="train")
                    unserved = ""
            except FrozenError as frozen:
                unserved = str(frozen)
            if unserved:
                listen(Progress("publish", 0, 0, "model", message=unserved))
        run.folder.remove()  # checkpoints, and pairs
        vectors = Vectors.open(model.url, resources.storage_options, store_timeout=resources.store_timeout)
        listen(Progress("publish", 1, 1, "model", message=vectors.url or ""))
        run.callbacks.published(run.trained, vectors, listen)
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
    """Build the word-context matrix of an encoded corpus, unless the store has it; `train_model` then reads it.

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
    run = PlannedRun(corpus, vocabulary, store, params, resources)
    with lazily_connected(client, store, resources, listener) as (cluster, listen):
        return context_matrix.build_matrix(cluster(), run.for_tasks(), listen)
