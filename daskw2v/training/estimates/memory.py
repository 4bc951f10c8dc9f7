"""The peak memory of a run, stage by stage, in a worker process, its GPU and the client.

The memory of training and publishing is computed from the strategy's `Work`. The stages before are the same for all
strategies: reading text, joining its phrases, and counting its words.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from dask.utils import format_bytes

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.phrases.bigrams import BIGRAM, BUCKET_WORDS
from daskw2v.phrases.tasks import CACHED_MAPS, PIECE
from daskw2v.shards.dictionary import ENTRY_BYTES, capacity_for
from daskw2v.training.loop.work import FLOAT, INT, LONG, Moment, Sizes, Work
from daskw2v.training.sizes import Text, Workers
from daskw2v.training.strategies import make_work
from daskw2v.vocabulary.buckets import max_bucket_types
from daskw2v.vocabulary.order import PIECE_TYPES

_PROCESS = 250 << 20  # bytes of a worker that has imported all, and loaded compiled kernels from the cache
# Bytes that remain allocated after compiling, where the cache on disk lacks the kernels: of the stages before training,
# and of these and training
_COMPILED_BEFORE, _COMPILED = 50 << 20, 110 << 20
_CLIENT = 250 << 20  # bytes of a process with a Dask client
_SHARD = 4 << 10  # bytes of a shard's facts, which the client holds
LETTERS = 8  # bytes of a distinct word
_WRITING = 32 << 20  # bytes of chunks that a task joins and compresses at a time
_ORDER = 56  # bytes a word that sorting takes: counts, groups, prefixes, and the arrays of lexsort
_DISTINCT = 0.4  # share of distinct bigrams in a shard's; .26 in 64 MB of Wikipedia
_SPEC = LETTERS + 2 * LONG  # bytes of a word with its offset and its count


@dataclass(frozen=True)
class StageMemory:
    """The peak memory of a stage.

    Parameters
    ----------
    name
        Name of the stage.
    worker
        Bytes by content of the most loaded worker process.
    gpu
        Bytes by content of the GPU of such a worker; empty where the stage takes none.
    """

    name: str
    worker: Mapping[str, int]
    gpu: Mapping[str, int]

    @classmethod
    def of(cls, name: str, moments: Iterable[Moment], compiled: int = _COMPILED) -> Self:
        """Return the largest memory of all moments, for worker and GPU separately; `compiled` are bytes of kernels."""
        workers, devices = (max(sizes, key=lambda each: sum(each.values())) for sizes in zip(*moments, strict=True))
        return cls(name, _round_up({"process": _PROCESS, "compiled kernels": compiled, **workers}), _round_up(devices))

    @property
    def bytes(self) -> int:
        """Bytes of the worker process."""
        return sum(self.worker.values())

    @property
    def gpu_bytes(self) -> int:
        """Bytes of the GPU."""
        return sum(self.gpu.values())

    def fits_into(self, workers: Workers) -> bool:
        """Return whether a worker of this kind, and its device, have the memory."""
        fits_device = workers.device_limit is None or self.gpu_bytes <= workers.device_limit
        return self.bytes <= workers.limit and fits_device


def describe_sizes(sizes: Sizes) -> str:
    """Return sizes as text, the largest first: "model 4.00 GiB, text 1.00 GiB"."""
    return ", ".join(f"{name} {format_bytes(size)}" for name, size in sorted(sizes.items(), key=lambda part: -part[1]))


def _round_up(sizes: Sizes) -> dict[str, int]:
    """Return the sizes that are not 0, rounded up to integers."""
    return {name: math.ceil(size) for name, size in sizes.items() if size}


@dataclass(frozen=True)
class Estimate:
    """The memory of a run.

    Parameters
    ----------
    stages
        The memory of "encode", "phrases" if Params join them, "vocabulary", "train" and "publish", in this order.
    client
        Bytes by content of the calling process.
    notes
        Sentences on assumptions, and on effects of the run's size on its course.
    """

    stages: tuple[StageMemory, ...]
    client: Mapping[str, int]
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> StageMemory:
        """Return the memory of the stage of this name."""
        return next(stage for stage in self.stages if stage.name == name)

    @property
    def bytes(self) -> int:
        """Bytes of the most loaded worker process in the largest stage, which a worker's memory limit must allow."""
        return max(stage.bytes for stage in self.stages)

    @property
    def gpu_bytes(self) -> int:
        """Bytes of the GPU of such a worker in the stage that takes most of it; 0 without a GPU."""
        return max(stage.gpu_bytes for stage in self.stages)

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Yield the rows of a table: stage and process, bytes, and bytes by content, as text."""
        for stage in self.stages:
            yield f"{stage.name}, a worker", format_bytes(stage.bytes), describe_sizes(stage.worker)
            if stage.gpu:
                yield f"{stage.name}, a GPU", format_bytes(stage.gpu_bytes), describe_sizes(stage.gpu)
        yield "client", format_bytes(sum(self.client.values())), describe_sizes(self.client)

    def __str__(self) -> str:
        return "\n".join(["  ".join(row) for row in self.rows()] + [f"Note: {note}" for note in self.notes])


def estimate(params: Params, resources: Resources, text: Text, workers: Workers) -> Estimate:
    """Return the estimated memory of a run.

    Parameters
    ----------
    params, resources
        The settings of the run.
    text
        The sizes of the text, known or guessed.
    workers
        The workers of the run, of one kind.
    """
    work = make_work(params, resources, text, workers)
    joined = [phrases_memory(text, workers)] if params.phrases else []
    before = (encoding_memory(text, workers), *joined, vocabulary_memory(text, workers))
    vectors = text.vocabulary * (FLOAT * params.vector_size + LETTERS + 2 * LONG)
    client = {"process": _CLIENT, "shards": _SHARD * text.shards, "vectors it returns": vectors}
    stages = (*before, training_memory(work), StageMemory.of("publish", work.publish()))
    return Estimate(stages, _round_up(client), tuple(work.notes))


def training_memory(work: Work) -> StageMemory:
    """Return the memory of training, of the device too if it has memory of its own."""
    has_memory = work.device.free_memory is not None
    return StageMemory.of("train", (moment if has_memory else Moment(moment.worker) for moment in work.train()))


def encoding_memory(text: Text, workers: Workers) -> StageMemory:
    """Return the memory of reading text, where each thread has a block and makes a shard of it."""
    slots, types, words = capacity_for(text.shard_types), text.shard_types, text.shard_words
    growing = {"dictionary": _growing_dictionary_bytes(slots), "codes": 2 * words}  # half of them are read
    writing = {
        "dictionary": _dictionary_bytes(slots, types),
        "codes": INT * words,
        "words in order": types * (LETTERS + 5 * LONG),
        "compression": _WRITING,
    }
    tasks = min(workers.threads, text.blocks)
    return _stage("encode", _multiply(tasks, growing), _multiply(tasks, writing))


def phrases_memory(text: Text, workers: Workers) -> StageMemory:
    """Return the memory of joining phrases: a thread counts bigrams, merges counts, or joins the phrases of a shard."""
    words, types = text.shard_words, text.shard_types
    distinct, merged = _DISTINCT * words, _DISTINCT * min(text.words, BUCKET_WORDS)
    counting = {"keys of bigrams": LONG * words, "bigrams": BIGRAM.itemsize * distinct, "runs": 2 * LONG * distinct}
    merging = {"bigrams": BIGRAM.itemsize * merged, "keys in order": 3 * LONG * merged, "counts": 2 * LONG * merged}
    joining = {
        "codes": 4 * INT * words,
        "dictionary": _dictionary_bytes(capacity_for(types), types),
        "words": types * (2 * LETTERS + 6 * LONG),
        "phrases": 2 * INT * PIECE,
        "compression": _WRITING,
    }
    tasks, maps = min(workers.threads, text.shards), {"maps of shards": INT * CACHED_MAPS * types}
    return _stage("phrases", *({**maps, **_multiply(tasks, sizes)} for sizes in (counting, merging, joining)))


def vocabulary_memory(text: Text, workers: Workers) -> StageMemory:
    """Return the memory of merging dictionaries and sorting words, where each thread has a bucket or a range.

    The buckets of a worker's threads take no more memory than one bucket with all of their words.
    """
    held = workers.threads * max_bucket_types(workers.limit / workers.threads)
    share = min(1.0, held / max(1, text.entries))
    entries, types, shard_types = (math.ceil(share * n) for n in (text.entries, text.types, text.shard_types))
    slots, index = capacity_for(max(types, shard_types)), {"index": INT * entries}
    shard = shard_types * (_SPEC + LETTERS)
    growing = {"merged dictionary": _growing_dictionary_bytes(slots), "a shard's words": shard, **index}
    # Words exist twice, once with padding, and codes
    merging = {"merged dictionary": _dictionary_bytes(slots, types), "a shard's words": shard + INT * shard_types}
    pieces = min(workers.threads, -(-text.vocabulary // PIECE_TYPES))
    return _stage(
        "vocabulary",
        *({**merging, **index}, growing, {**_sorting_sizes(types), **index}),
        _multiply(pieces, _sorting_sizes(min(PIECE_TYPES, text.vocabulary))),
    )


def _stage(name: str, *moments: Sizes) -> StageMemory:
    """Return the memory of a stage before training, from a worker's sizes at moments that may be its peak."""
    return StageMemory.of(name, map(Moment, moments), _COMPILED_BEFORE)


def _sorting_sizes(types: int) -> Sizes:
    """Return the bytes of sorting `types` words, by content."""
    return {"words": types * _SPEC, "sorting": types * _ORDER}


def _dictionary_bytes(slots: int, types: int) -> int:
    """Return the bytes of a dictionary of `types` words: `slots` of a hash table, offsets, hashes and letters."""
    return 2 * ENTRY_BYTES * slots + types * (2 * LONG + LETTERS)


def _growing_dictionary_bytes(slots: int) -> int:
    """Return the bytes of a dictionary that grows to `slots` slots, while the table of half as many still exists."""
    return 2 * ENTRY_BYTES * (slots + slots // 2) + slots * (2 * LONG + LETTERS // 2)


def _multiply(n: int, sizes: Sizes) -> Sizes:
    """Return sizes, each multiplied by `n`."""
    return {name: n * size for name, size in sizes.items()}
