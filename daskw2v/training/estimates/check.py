"""The memory of workers, and the check that a run fits into it.

A run that cannot fit is refused before it starts, and not killed hours later. Workers are a cluster's, or the workers
that a local cluster would have.
"""

import logging
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from dask.system import CPU_COUNT
from dask.utils import format_bytes, parse_bytes
from distributed import Client
from distributed.worker_memory import parse_memory_limit

from daskw2v.cluster.gpus import VARIABLE
from daskw2v.cluster.workers import ask_workers, usable_memory, workers_known
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.files import Source
from daskw2v.errors import ClusterError
from daskw2v.shards.layout import Corpus, corpus_identity
from daskw2v.store.storage import Store
from daskw2v.training.devices import find_device, find_device_trainers
from daskw2v.training.estimates.memory import StageMemory, describe_sizes, encoding_memory, training_memory
from daskw2v.training.sizes import Text, Workers, guess_text
from daskw2v.training.strategies import STRATEGIES, find_strategy, make_work, with_strategy

Need: TypeAlias = Callable[[Workers], StageMemory]  # the memory of a stage on these workers
Alternative: TypeAlias = tuple[str, StageMemory]  # a change of settings, and the memory of the stage after the change

# The location of memory, its limit, and the remedy: parts of a message
_HOST = "in a worker process", "memory_limit is {}", "Give workers a memory_limit of {}"
_GPU = (
    "in the memory of a GPU",
    "{} are free there",
    f"Give workers GPUs with {{}} that nothing else uses, by their numbers in {VARIABLE}",
)


def check_encoding(
    client: Client, sources: Sequence[Source], store: Store, params: Params, resources: Resources
) -> None:
    """Check that workers have the memory to read a text, of which the number of distinct words is guessed.

    A text that the store has encoded already passes.

    Raises
    ------
    ClusterError
        If a worker's memory limit is below its need.
    """

    def need(workers: Workers, resources: Resources = resources) -> StageMemory:
        return encoding_memory(guess_text(sources, params, resources), workers)

    def changes(workers: Workers) -> Iterator[Alternative]:
        size = max(1, resources.block_bytes // 4)
        yield f"block_size={format_bytes(size)!r}", need(workers, resources.replace(block_size=size))
        yield from _one_thread(workers, need)

    kinds = find_worker_kinds(client)
    fits = all(need(kind).fits_into(kind) for kind in kinds)
    if not fits and Corpus.find(store, corpus_identity(sources, params), params.max_bad_blocks) is None:
        _check("Reading the text", need, kinds, changes)


def check_training(client: Client, params: Params, resources: Resources, text: Text) -> None:
    """Raise a ClusterError if workers, or their GPUs, lack the memory to train `text` by the strategy of Params."""

    def need(workers: Workers, params: Params = params, text: Text = text) -> StageMemory:
        return training_memory(make_work(params, resources, text, workers))

    def changes(workers: Workers) -> Iterator[Alternative]:
        if lighter := find_strategy(params.strategy.name).lighter(params):
            settings = ", ".join(f"{name}={value}" for name, value in lighter.items() if value is not None)
            yield settings, need(workers, params.replace(**lighter))
        for name in STRATEGIES:
            other = with_strategy(params, name, resources)
            if name != params.strategy.name and other is not None:
                yield f"strategy={other.strategy.name!r}", need(workers, other)
        yield from _one_thread(workers, need)
        smaller = params.replace(vector_size=max(1, params.vector_size // 2))
        yield f"vector_size={smaller.vector_size}", need(workers, smaller)
        cut = _cut_vocabulary(text, lambda text: need(workers, text=text).fits_into(workers))
        yield f"max_final_vocab={cut.vocabulary}", need(workers, text=cut)

    _check("Training", need, find_worker_kinds(client, resources.device.name), changes)


def _one_thread(workers: Workers, need: Need) -> Iterator[Alternative]:
    """Yield the change to as many workers of one thread as there are threads, if workers have more than one each."""
    if workers.threads > 1:
        yield "1 thread a worker", need(Workers(workers.slots, 1, workers.memory))


def _cut_vocabulary(text: Text, fits: Callable[[Text], bool]) -> Text:
    """Return the text with its vocabulary cut by tenths until it fits, or to 1; then rounded down to one digit."""
    n_words = text.vocabulary
    while n_words > 1 and not fits(replace(text, vocabulary=n_words)):
        n_words = n_words * 9 // 10
    return replace(text, vocabulary=n_words - n_words % 10 ** (len(str(n_words)) - 1))


def _check(
    activity: str, need: Need, kinds: Sequence[Workers], changes: Callable[[Workers], Iterator[Alternative]]
) -> None:
    """Raise a ClusterError for the first kind of workers that lacks the memory that an activity needs.

    Parameters
    ----------
    activity
        The activity, as the message begins: "Training".
    need
        Function from a kind of workers to the memory of the stage.
    kinds
        The kinds of workers.
    changes
        Function from a kind to changes of settings that may need less memory; the message names the ones that do.
    """
    for kind in kinds:
        stage = need(kind)
        if stage.fits_into(kind):
            continue
        on_host = stage.bytes > kind.limit
        location, limited, remedy = _HOST if on_host else _GPU
        parts, limit = (stage.worker, kind.limit) if on_host else (stage.gpu, kind.device_limit or 0)
        size = sum(parts.values())
        sizes = ((change, less.bytes if on_host else less.gpu_bytes) for change, less in changes(kind))
        remedies = [f"{change}, which takes {format_bytes(less)}" for change, less in sizes if less < size]
        raise ClusterError(
            f"{activity} takes about {format_bytes(size)} {location} ({describe_sizes(parts)}), and "
            f"{limited.format(format_bytes(int(limit)))}.",
            "; or ".join([remedy.format(format_bytes(size * 5 // 4)), *remedies]) + ".",
        )


def find_worker_kinds(client: Client, device: str | None = None) -> list[Workers]:
    """Return the kinds of workers of a cluster, each with the smallest memory of its workers, and of their devices.

    Workers of a kind have equal numbers of threads and devices. The `n` of each kind counts the workers of all kinds,
    also workers that an adaptive cluster may yet start. Workers that train on the device of this name are considered;
    all workers for None. The call waits for one worker.
    """
    free_memory = None if device is None else find_device(device).free_memory
    kinds: dict[Workers, list[str]] = {}
    while not kinds:  # again where all workers have left since they were counted
        trainers = find_device_trainers(client, device)
        known = workers_known(client)
        free = {} if free_memory is None else ask_workers(client, free_memory, workers=trainers.threads)
        n, memory = len(trainers.threads) + trainers.n_coming, usable_memory(client)
        for address, threads in trainers.threads.items():
            if address in known and (free_memory is None or address in free):
                kind = Workers(n, threads, memory, trainers.devices.get(address, 1))
                kinds.setdefault(kind, []).append(address)
    return [
        replace(
            kind,
            limit=min(known[address]["memory_limit"] or math.inf for address in addresses),
            device_limit=min((free[address] for address in addresses if free), default=None),
        )
        for kind, addresses in kinds.items()
    ]


def local_workers(resources: Resources, *, machines: bool = False) -> Workers:
    """Return the workers of the local cluster that Dask would start with these Resources.

    With `machines`, each worker has a machine of its own, and `memory_limit` may exceed this machine's memory. For
    "auto" the limit is a worker's share of this machine's memory in either case.
    """
    threads = resources.threads or max(1, math.ceil(CPU_COUNT / resources.workers))
    if machines and resources.memory_limit != "auto":
        limit = parse_bytes(resources.memory_limit)
    else:
        limit = parse_memory_limit(resources.memory_limit, threads, logger=logging.getLogger(__name__))
    return Workers(resources.workers, threads, resources.workers * limit, limit=limit)
