"""The memory of workers, and the check that a run fits into it.

A run that cannot fit is refused before it starts, and not killed hours later. The workers are those of a cluster, or
those that a local one would have.
"""

import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import NamedTuple

from dask.system import CPU_COUNT
from dask.utils import format_bytes, parse_bytes
from distributed import Client
from distributed.worker_memory import parse_memory_limit

from daskw2v.cluster.gpus import VARIABLE
from daskw2v.cluster.workers import Trainers, ask_workers, usable_memory, workers_known
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.files import Source
from daskw2v.corpus.formats import TEXT
from daskw2v.errors import ClusterError
from daskw2v.shards.layout import Corpus, corpus_identity
from daskw2v.store.storage import Store
from daskw2v.training.devices import find_device, trainers_of
from daskw2v.training.estimates import stages
from daskw2v.training.sizes.memory import MemoryPart, StageMemory, Workers, shown
from daskw2v.training.sizes.text import Text, guess_text
from daskw2v.training.strategies import STRATEGIES, find_strategy, with_strategy

Kinds = Mapping[Workers, float]  # kinds of workers, and the least memory limit of each kind
Change = tuple[str, StageMemory]  # a change of settings, and the memory of the stage with it


class _Memory(NamedTuple):
    """A memory that stages take: how much of it, and how a message describes it."""

    bytes: Callable[[StageMemory], int]
    parts: Callable[[StageMemory], tuple[MemoryPart, ...]]
    where: str
    limit: str
    remedy: str


_HOST = _Memory(
    attrgetter("bytes"), attrgetter("worker"), "in a worker process", "memory_limit is {}",
    "Give workers a memory_limit of {}",
)  # fmt: skip
_GPU = _Memory(
    attrgetter("gpu_bytes"), attrgetter("gpu"), "in the memory of a GPU", "{} are free there",
    f"Give workers GPUs with {{}} that nothing else uses, by their numbers in {VARIABLE}",
)  # fmt: skip


def check_encoding(
    client: Client, sources: Sequence[Source], store: Store, params: Params, resources: Resources
) -> None:
    """Check that workers have the memory to read the text; how many distinct words it has is guessed.

    Nothing is checked of a corpus that is there already.

    Raises
    ------
    ClusterError
        If a worker's limit is below what it would take.
    """
    kinds = workers_of(client)
    most = max((kind.threads for kind in kinds), default=1)
    if _fits(_encode([Source("", most * resources.block_bytes, "", TEXT.name, None)], params, resources), kinds):
        return
    if Corpus.find(store, corpus_identity(sources, params), params.max_bad_blocks) is None:
        _check(
            "Reading the text", _HOST, _encode(sources, params, resources), kinds,
            _smaller_blocks(sources, params, resources),
        )  # fmt: skip


def check_training(client: Client, params: Params, resources: Resources, text: Text) -> None:
    """Check that workers, and their GPUs, have the memory to train; raises as `check_encoding` does."""

    def need(workers: Workers, params: Params = params, text: Text = text) -> StageMemory:
        return find_strategy(params.strategy.name).memory(params, resources, text, workers).train

    def changes(memory: _Memory, workers: Workers, limit: float) -> Iterator[Change]:
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
        kept = _most_words(text, limit, lambda text: memory.bytes(need(workers, text=text)))
        yield f"max_final_vocab={kept.vocabulary}", need(workers, text=kept)

    _check("Training", _HOST, need, workers_of(client, resources.device.name), changes)
    _check("Training", _GPU, need, gpus_of(client, resources.device.name), changes)


def fits(params: Params, resources: Resources, text: Text, kinds: Kinds, gpus: Kinds) -> bool:
    """Return whether workers, and their GPUs, have the memory to train."""
    memory = find_strategy(params.strategy.name).memory
    need = partial(memory, params, resources, text)
    return all(need(kind).train.bytes <= limit for kind, limit in kinds.items()) and all(
        need(kind).train.gpu_bytes <= limit for kind, limit in gpus.items()
    )


def _encode(sources: Sequence[Source], params: Params, resources: Resources) -> Callable[[Workers], StageMemory]:
    text = guess_text(sources, params, resources)
    return lambda workers: stages.encode(text, workers)


def _smaller_blocks(
    sources: Sequence[Source], params: Params, resources: Resources
) -> Callable[[_Memory, Workers, float], Iterator[Change]]:
    """Return the function that yields changes for a stage that reads text."""

    def changes(_: _Memory, workers: Workers, __: float) -> Iterator[Change]:
        size = max(1, resources.block_bytes // 4)
        smaller = _encode(sources, params, resources.replace(block_size=size))
        yield f"block_size={format_bytes(size)!r}", smaller(workers)
        yield from _one_thread(workers, _encode(sources, params, resources))

    return changes


def _one_thread(workers: Workers, need: Callable[[Workers], StageMemory]) -> Iterator[Change]:
    if workers.threads > 1:
        yield "1 thread a worker", need(Workers(workers.n * workers.threads, 1, workers.memory))


def _most_words(text: Text, limit: float, need: Callable[[Text], int]) -> Text:
    """Return the text with as many words kept as the limit allows, rounded down to one digit."""
    kept = text.vocabulary
    while kept > 1 and need(_kept(text, kept)) > limit:
        kept = kept * 9 // 10
    return _kept(text, kept - kept % 10 ** (len(str(kept)) - 1))


def _kept(text: Text, n_words: int) -> Text:
    return Text(**{**vars(text), "vocabulary": min(n_words, text.vocabulary)})


def _fits(need: Callable[[Workers], StageMemory], kinds: dict[Workers, float]) -> bool:
    return all(need(kind).bytes <= limit for kind, limit in kinds.items())


def _check(
    what: str,
    memory: _Memory,
    need: Callable[[Workers], StageMemory],
    kinds: dict[Workers, float],
    changes: Callable[[_Memory, Workers, float], Iterator[Change]],
) -> None:
    for kind, limit in kinds.items():
        stage = need(kind)
        size = memory.bytes(stage)
        if size <= limit:
            continue
        helping = [(name, less) for name, to in changes(memory, kind, limit) if (less := memory.bytes(to)) < size]
        written = "; or ".join(f"{name}, which takes {format_bytes(less)}" for name, less in helping)
        raise ClusterError(
            f"{what} takes about {format_bytes(size)} {memory.where} ({shown(memory.parts(stage))}), and "
            f"{memory.limit.format(format_bytes(int(limit)))}.",
            memory.remedy.format(format_bytes(size * 5 // 4)) + (f"; or {written}." if written else "."),
        )


def workers_of(client: Client, device: str | None = None) -> dict[Workers, float]:
    """Return the kinds of workers, each with the least limit among them; infinity for none.

    The kinds are those of the workers that train on a device, or of all workers where none is named. The call waits for
    one worker. Workers that an adaptive cluster may yet start are counted.
    """

    def limits(_trainers: Trainers) -> dict[str, float]:
        return {name: worker["memory_limit"] or math.inf for name, worker in workers_known(client).items()}

    return _kinds(client, device, limits)


def gpus_of(client: Client, device: str) -> dict[Workers, float]:
    """Return the kinds of workers that train, each with the least memory that is free on the device of one.

    The result is empty for a device that has no memory of its own.
    """
    free = find_device(device).free_memory
    if free is None:
        return {}
    return _kinds(client, device, lambda trainers: ask_workers(client, free, workers=trainers.threads))


def _kinds(
    client: Client, device: str | None, limits_of: Callable[[Trainers], Mapping[str, float]]
) -> dict[Workers, float]:
    found: dict[Workers, float] = {}
    while not found:  # again where all workers have left since they were counted
        trainers = trainers_of(client, device)
        limits = limits_of(trainers)
        n, memory = len(trainers.threads) + trainers.coming, usable_memory(client)
        for address, threads in trainers.threads.items():
            if address in limits:
                kind = Workers(n, threads, memory, trainers.devices.get(address, 1))
                found[kind] = min(found.get(kind, math.inf), limits[address])
    return found


def local_workers(resources: Resources, *, machines: bool = False) -> Mapping[Workers, float]:
    """Return the workers of a local cluster, as Dask makes them of these Resources.

    With `machines`, each worker is alone on a machine, which has the memory of `memory_limit`, or as much as this one.
    """
    threads = resources.threads or max(1, math.ceil(CPU_COUNT / resources.workers))
    if machines and resources.memory_limit != "auto":
        limit = parse_bytes(resources.memory_limit)
    else:
        limit = parse_memory_limit(resources.memory_limit, threads, logger=logging.getLogger(__name__))
    return {Workers(resources.workers, threads, resources.workers * limit): limit}
