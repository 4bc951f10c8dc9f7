"""The functions `plan` and `estimate`, which plan a run without reading its text."""

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dask.system import CPU_COUNT
from distributed import Client

from daskw2v.cluster.connecting import connected, starts_cluster
from daskw2v.cluster.console import listening
from daskw2v.collections.kinds import are_names
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.config.settings import integer
from daskw2v.corpus.files import Source
from daskw2v.corpus.formats import check_formats
from daskw2v.corpus.inputs import Inputs
from daskw2v.corpus.sources import find_sources
from daskw2v.errors import ParameterError
from daskw2v.phrases.build import find_phrases
from daskw2v.progress import Listener, Watching
from daskw2v.shards.encode import find_corpus
from daskw2v.store.storage import Store
from daskw2v.store.urls import Location
from daskw2v.training.estimates.check import local_workers
from daskw2v.training.preparation.choice import find_choice, find_machines
from daskw2v.training.preparation.plan import Plan, alternatives, plan_memory
from daskw2v.training.preparation.planned import PlannedRun, settled_params
from daskw2v.training.preparation.request import Request, with_table_contents
from daskw2v.training.sizes import Workers, guess_text
from daskw2v.vocabulary.count import find_vocabulary

_RATE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT])(?:bps|bit/s)", re.IGNORECASE)
_COUNT = integer(1)


def plan(
    inputs: Inputs,
    *,
    work: Location | None = None,
    params: Params | None = None,
    resources: Resources | None = None,
    client: Client | None = None,
    listener: Watching = "show",
    **settings: Any,
) -> Plan:
    """Plan a run: make the decisions of `train` with the same arguments, and forecast memory and time.

    No text is read, and no cluster is started. Where the work directory holds the text and its words already, the plan
    has their numbers and the name of the run; otherwise it guesses from the sizes of the files, as `estimate` does.

    Parameters
    ----------
    inputs
        Files of text, as for `train`; no other inputs.
    work
        URL of the work directory, which may hold the text of an earlier run. A tokenizer and base vectors that workers
        could not read are stored in it.
    params, resources, client, listener, **settings
        As in `train`.

    Returns
    -------
    plan
        The plan, which `print` shows and `train(plan, work=...)` carries out.

    Raises
    ------
    Daskw2vError
        If `train` would refuse the files or the settings, or the cluster cannot be reached.

    Examples
    --------
    >>> plan = daskw2v.plan("text.txt", strategy="averaging", vector_size=8, min_count=1, epochs=1)
    >>> plan.params.alpha  # the objective's own
    0.035
    >>> vectors = daskw2v.train(plan, listener=None)
    >>> len(vectors["king"])
    8
    """
    request = Request.from_call("plan", inputs, params, resources, client, (), settings)
    store = None if work is None else request.open_store(work)
    with listening(listener) as listen:
        sources = _find_files(request, listen)
        kinds, machines = _find_workers(client, request.resources, listen)
        run = None if store is None else _find_run(request, store, sources, listen)
    if run is None:
        return _guess_plan(request, sources, kinds, machines)
    trainings, chosen, why = alternatives(run.params, run.resources, run.sizes, kinds)
    why = why if run.choice is None else run.choice["why"]
    memory, name = plan_memory(chosen, run.resources, run.sizes, kinds), replace(run, params=chosen).name
    described = inputs, chosen, run.resources, tuple(sources), run.sizes
    return Plan(*described, (), memory, trainings, why, machines, name)


def estimate(
    inputs: Inputs,
    *,
    params: Params | None = None,
    resources: Resources | None = None,
    client: Client | None = None,
    types: int | None = None,
    words: int | None = None,
    network: str | None = None,
    listener: Watching = "show",
) -> Plan:
    """Plan a run on text and machines that are only described: memory and time, from the sizes of files.

    The time is that of training alone, by each strategy that can train. Steps are assumed to be as fast as on the
    machine that they were measured on. No text is read, nothing is written, and no cluster is started.

    Parameters
    ----------
    inputs
        Files of text, as for `train`; no other inputs.
    params, resources, listener
        As in `train`.
    client
        The cluster whose workers the estimate is for. By default the cluster of `resources.scheduler`, or of Dask's
        current client, or else a local one.
    types, words
        Number of distinct words of the text, and of words in the vocabulary; estimated by default.
    network
        Rate of the link of each machine, such as "10Gbps": each worker then has a machine of its own. On a local
        cluster its memory is `resources.memory_limit`; for "auto", as much as a worker on this machine would have.

    Returns
    -------
    plan
        The memory of each stage, ways to train with their seconds, and the way that `train` would take; `print` shows
        it.

    Raises
    ------
    Daskw2vError
        If `train` would refuse the files or the settings, or the cluster cannot be reached.

    Examples
    --------
    >>> estimate = daskw2v.estimate("text.txt", resources=daskw2v.Resources(memory_limit="2 GiB"))
    >>> all(kind.fits for kind in estimate.workers)
    True
    >>> [stage.name for stage in estimate.workers[0].memory.stages]
    ['encode', 'vocabulary', 'train', 'publish']
    """
    request = Request.from_call("estimate", inputs, params, resources, client, (), {})
    for name, value in (("types", types), ("words", words)):
        if value is not None and not _COUNT.check(value):
            raise ParameterError(f"{name}={value!r} is not {_COUNT.bound}.", f"Give {name}=100_000, or leave it out.")
    rate = None if network is None else parse_rate(network)
    with listening(listener) as listen:
        sources = _find_files(request, listen)
        kinds, machines = _find_workers(client, request.resources, listen, rate)
    return _guess_plan(request, sources, kinds, machines, types, words)


def _guess_plan(
    request: Request,
    sources: Sequence[Source],
    kinds: Sequence[Workers],
    machines: int | None,
    types: int | None = None,
    words: int | None = None,
) -> Plan:
    """Return the plan for text of which only the sizes of its files are known.

    `types` and `words` are the numbers of distinct words and of words in the vocabulary, where they are known.
    """
    params, resources = settled_params(with_table_contents(request.params, request.resources)), request.resources
    text = guess_text(sources, params, resources, types, words)
    trainings, chosen, why = alternatives(params, resources, text, kinds)
    guessed = tuple(name for name, value in (("types", types), ("vocabulary", words)) if value is None)
    memory = plan_memory(chosen, resources, text, kinds)
    return Plan(request.inputs, chosen, resources, tuple(sources), text, guessed, memory, trainings, why, machines)


def _find_files(request: Request, listener: Listener) -> list[Source]:
    """Return the files of a request; raise a ParameterError for other inputs, or for fields that no format reads."""
    params, resources = request.params, request.resources
    if not are_names(request.inputs):
        raise ParameterError(
            f"The size of a {type(request.inputs).__name__} is not known before it is read.",
            "Give files; or call train, which plans when it has read the text.",
        )
    options, timeout = resources.storage_options, resources.store_timeout
    sources = find_sources(
        request.inputs, params.format, options, timeout, filters=params.filters, errors=params.errors, listener=listener
    )
    check_formats((source.format for source in sources), params)
    return sources


def _find_run(request: Request, store: Store, sources: list[Source], listener: Listener) -> PlannedRun | None:
    """Return the run on a text that the store has read and counted, with the strategy if it was chosen; or None."""
    resources, params = request.resources, settled_params(request.settled(store, listener))
    corpus = find_corpus(sources, store, params)
    joined = None if corpus is None else find_phrases(corpus, store, params)
    vocabulary = None if joined is None else find_vocabulary(joined, store, params, resources)
    if joined is None or vocabulary is None:
        return None
    run = PlannedRun(joined, vocabulary, store, params, resources)
    return find_choice(run, listener) or run


def parse_rate(text: str) -> float:
    """Return the bytes by second, above 0, of a link from text in bits by second, such as "10Gbps" or "100 Mbit/s".

    Raises
    ------
    ParameterError
        If the text is no such rate.
    """
    match = _RATE.fullmatch(text.strip())
    rate = float(match[1]) * 1e3 ** (1 + "KMGT".index(match[2].upper())) / 8 if match else 0.0
    if not rate:
        raise ParameterError(f"network={text!r} is no rate above 0.", "Write bits a second, such as 10Gbps or 100Mbps.")
    return rate


def _find_workers(
    client: Client | None, resources: Resources, listener: Listener, rate: float | None = None
) -> tuple[list[Workers], int | None]:
    """Return the kinds of workers, and the number of their machines; None if it is not known.

    With a `rate`, each worker is a machine of its own, with a link of `rate` bytes by second.
    """
    if starts_cluster(client, resources):
        kinds = [replace(local_workers(resources, machines=rate is not None), cores=CPU_COUNT)]
        machines = 1
    else:
        with connected(client, None, resources, listener) as cluster:
            kinds, machines = find_machines(cluster, resources), None
    if rate is None:
        return kinds, machines
    return [replace(kind, network=rate, cores=math.inf) for kind in kinds], kinds[0].n
