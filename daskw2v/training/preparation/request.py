"""The request of a call such as `train` or `retrain`: settings, text and cluster, checked before anything is read."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Self

from distributed import Client

from daskw2v.cluster.connecting import connected, starts_cluster
from daskw2v.collections.kinds import TextInputs, check_texts, default_params
from daskw2v.config.arguments import check_arguments
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.config.settings import Settings
from daskw2v.config.suggestions import suggest
from daskw2v.corpus.files import Source
from daskw2v.corpus.formats import check_formats
from daskw2v.corpus.tokenizer_files import with_tokenizer
from daskw2v.errors import ParameterError, UnknownParameterError
from daskw2v.objectives.registry import check_options
from daskw2v.phrases.build import join_phrases
from daskw2v.progress import Listener
from daskw2v.shards.encode import encode_sources
from daskw2v.shards.layout import Corpus
from daskw2v.store.storage import Store
from daskw2v.store.urls import Location, as_url
from daskw2v.training.axes import check_plug_ins
from daskw2v.training.devices import check_device, check_workers, find_device
from daskw2v.training.estimates.check import check_encoding
from daskw2v.training.preparation.plan import Plan
from daskw2v.training.preparation.repair import check_folders
from daskw2v.training.start.base_vectors import with_base_vectors
from daskw2v.training.start.features import with_feature_table
from daskw2v.training.start.initial_rows import check_base
from daskw2v.training.start.markets import check_markets, with_market_table
from daskw2v.training.strategies import check_strategy
from daskw2v.training.watch.callbacks import Callback
from daskw2v.training.watch.early_stopping import check_monitor, monitored_content
from daskw2v.training.watch.events import Callbacks
from daskw2v.training.watch.held_out import check_held_out
from daskw2v.training.watch.loggers import loggers_of
from daskw2v.vocabulary.count import StoredVocabulary, count_words


@dataclass(frozen=True)
class Request:
    """The request of a call, whose settings are checked: they exist and go together.

    Parameters
    ----------
    inputs, params, resources, client
        As in `train`.
    callbacks
        The callbacks of the call, and the loggers of `resources`.
    plan
        The plan that was passed as the inputs; None without one.
    """

    inputs: TextInputs
    params: Params
    resources: Resources
    client: Client | None
    callbacks: Callbacks
    plan: Plan | None = None

    @classmethod
    def from_call(
        cls,
        call: str,
        inputs: TextInputs,
        params: Params | None,
        resources: Resources | None,
        client: Client | None,
        callbacks: Sequence[Callback],
        settings: Mapping[str, Any],
    ) -> Self:
        """Return the request of a call with these arguments; `call` is the function's name, for errors.

        Raises
        ------
        ParameterError
            If an argument or a setting cannot be used, or changes nothing.
        InputError
            If there is no text, or the evaluation set that may stop the run cannot be read.
        """
        params = default_params(inputs) if params is None else params
        params, resources = apply_keywords(call, params, resources, settings)
        check_arguments(client=client)
        starts_cluster(client, resources)  # refuses a client that cannot be used
        check_choices(params, resources)
        check_texts(inputs, params, resources)
        check_markets(params, inputs)
        return cls(inputs, params, resources, client, make_callbacks(callbacks, params, resources))

    @classmethod
    def from_plan(cls, plan: Plan, client: Client | None, callbacks: Sequence[Callback], **settings: Any) -> Self:
        """Return the request of a `train` that carries out a plan; raise a ParameterError for settings beside it."""
        if names := [name for name, value in settings.items() if value is not None]:
            raise ParameterError(
                f"train() got {', '.join(names)} beside a plan, which has its settings.",
                f"Leave {', '.join(names)} out, or make another plan.",
            )
        request = cls.from_call("train", plan.inputs, plan.params, plan.resources, client, callbacks, {})
        return replace(request, plan=plan)

    @property
    def choice(self) -> Mapping[str, Any] | None:
        """The facts of the plan if "auto" chose its strategy; None if the strategy was named, or there is no plan."""
        return None if self.plan is None or self.plan.why is None else self.plan.facts()

    def open_store(self, work: Location) -> Store:
        """Return the work directory at a location; raise a StoreError if a folder that a run writes in it is a link."""
        store = Store(as_url(work, "work"), dict(self.resources.storage_options), self.resources.store_timeout)
        check_folders(store)
        return store

    def settled(self, store: Store, listener: Listener) -> Params:
        """Return the request's Params, which name files by their content; raises as `with_contents` does."""
        return with_contents(self.params, store, self.resources, listener)

    def open_cluster(self, store: Store, listener: Listener) -> Callable[[], Any]:
        """Return a function that returns a context manager, which yields the client of the request's cluster."""
        return partial(open_cluster, self.client, store, self.params, self.resources, listener)


def check_choices(params: Params, resources: Resources) -> None:
    """Raise a ParameterError for names that do not exist and settings that do not go together, before text is read."""
    check_options(params)
    if params.format is not None:
        check_formats([params.format], params)
    check_base(params, resources)
    check_strategy(params, resources)
    check_device(params, resources)
    check_held_out(params)
    check_monitor(params, resources)
    if resources.eval_every is not None and not any(resources.eval_sets.values()):
        raise ParameterError(
            f"eval_every={resources.eval_every} has nothing to evaluate on.",
            "Give eval_similarity, eval_analogy or eval_categorization too, or leave eval_every out.",
        )


def with_contents(params: Params, store: Store, resources: Resources, listener: Listener) -> Params:
    """Return Params that name files by their content: tokenizer, base vectors, frozen words, markets and features.

    Raises as `with_tokenizer`, `with_base_vectors`, `with_market_table` and `with_feature_table` do.
    """
    return with_table_contents(with_base_vectors(with_tokenizer(params, store), store, resources, listener), resources)


def with_table_contents(params: Params, resources: Resources) -> Params:
    """Return Params that name tables of markets and of features by their content."""
    return with_feature_table(with_market_table(params, resources), resources)


def make_callbacks(callbacks: Sequence[Callback], params: Params, resources: Resources) -> Callbacks:
    """Return the callbacks of a call together with the loggers of its Resources."""
    return Callbacks(callbacks, list(loggers_of(resources)), monitored_content(params, resources))


@contextmanager
def open_cluster(
    client: Client | None, store: Store, params: Params, resources: Resources, listener: Listener
) -> Iterator[Client]:
    """Open the cluster of a call, check that it has the plug-ins and devices of a run, and yield its client.

    Raises as `train` does.
    """
    if params.max_bad_blocks and resources.processes is None and starts_cluster(client, resources):
        resources = resources.replace(processes=True)  # a bad block may kill its worker, but not this process
    options = find_device(resources.device.name).local_cluster
    with connected(client, store, resources, listener, options) as cluster:
        check_plug_ins(cluster, params, resources)
        check_workers(cluster, resources.device.name, params.objective.name)
        yield cluster


def read_text(
    sources: list[Source],
    store: Store,
    params: Params,
    resources: Resources,
    client: Callable[[], Client],
    listener: Listener,
) -> tuple[Corpus, StoredVocabulary]:
    """Return the encoded text of files, with its phrases joined, and its words; raises as `train` does.

    `client` is called only if a result has to be built.
    """

    def with_memory() -> Client:
        check_encoding(client(), sources, store, params, resources)
        return client()

    corpus = encode_sources(sources, store, params, resources, with_memory, listener)
    joined = join_phrases(corpus, store, params, client, listener)
    return joined, count_words(joined, store, params, resources, client, listener)


def apply_keywords(
    call: str, params: Params, resources: Resources | None, settings: Mapping[str, Any]
) -> tuple[Params, Resources]:
    """Return Params and Resources with the values of a call's keywords.

    Parameters
    ----------
    call
        Name of the function, for errors.
    params, resources
        The settings that the keywords change; None as `resources` for the defaults.
    settings
        The keywords: fields of `Params`, settings of its choices, and fields of `Resources`.

    Raises
    ------
    ParameterError
        If `params` or `resources` are of other types, a keyword belongs to neither, or a value is out of range.
    """
    resources = Resources() if resources is None else resources
    check_arguments(params=params, resources=resources)
    for_params, for_resources = split_keywords(call, settings, Params, Resources)
    return params.replace(**for_params), resources.replace(**for_resources)


def split_keywords(call: str, settings: Mapping[str, Any], *classes: type[Settings]) -> list[dict[str, Any]]:
    """Return a call's keywords for each class, in order; a name that classes share belongs to the first of them.

    Raises
    ------
    UnknownParameterError
        If a keyword belongs to no class; the error suggests another.
    """
    parts: list[dict[str, Any]] = [{} for _ in classes]
    for name, value in settings.items():
        number = next((number for number, cls in enumerate(classes) if name in cls.names()), None)
        if number is None:
            raise unknown_keyword(call, name, [known for cls in classes for known in cls.names()])
        parts[number][name] = value
    return parts


def unknown_keyword(call: str, name: str, names: Sequence[str]) -> UnknownParameterError:
    """Return the error for a keyword that is not among a call's `names`; it suggests a name, or a class that has it."""
    remedy = suggest(name, {"": names}, lambda _, known: known) or Params.remedy(name)
    return UnknownParameterError(f"{call}() got an unexpected keyword argument {name!r}.", remedy)
