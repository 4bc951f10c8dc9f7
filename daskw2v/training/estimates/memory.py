"""The memory of a run, stage by stage: at their peak, in a worker process, its GPU and the client.

Training and publishing are computed from the strategy's `Work`. The stages before are the same for all strategies:
reading text, joining its phrases, and counting its words.
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
from daskw2v.training.sizes.text import Text
from daskw2v.training.sizes.workers import Workers
from daskw2v.training.strategies import work_of
from daskw2v.vocabulary.buckets import choose_n_buckets
from daskw2v.vocabulary.order import PIECE_TYPES

_PROCESS = 250 << 20  # bytes of a worker that has imported all, and loaded compiled kernels from the cache
_COMPILED = 110 << 20  # that compiling leaves, where the cache on disk lacks the kernels: of all stages up to training
_CLIENT = 250 << 20  # of a process with a Dask client
_SHARD = 4 << 10  # facts of a shard that the client holds
LETTERS = 8  # bytes of a distinct word
_COMPILED_BEFORE = 50 << 20  # that compiling the kernels of the stages before training leaves
_WRITING = 8 << 20  # chunks that a task compresses at a time
_ORDER = 56  # bytes a word that sorting takes: counts, groups, prefixes, and the arrays of lexsort
_DISTINCT = 0.4  # of a shard's bigrams; .26 were in 64 MB of Wikipedia
_SPEC = LETTERS + 2 * LONG  # bytes of a word with its offset and its count


@dataclass(frozen=True)
class StageMemory:
    """The memory of a stage at its peak.

    Parameters
    ----------
    name
        The stage.
    worker
        The content of the most loaded worker process.
    gpu
        The content of the GPU of such a worker.
    """

    name: str
    worker: Mapping[str, int]
    gpu: Mapping[str, int]

    @classmethod
    def of(cls, name: str, moments: Iterable[Moment], compiled: int = _COMPILED) -> Self:
        """Return the memory of a stage, of which moments may be the peak; compiling leaves bytes of kernels."""
        workers, devices = (max(sizes, key=lambda of: sum(of.values())) for sizes in zip(*moments, strict=True))
        return cls(name, _rounded({"process": _PROCESS, "compiled kernels": compiled, **workers}), _rounded(devices))

    @property
    def bytes(self) -> int:
        """Bytes of the worker process."""
        return sum(self.worker.values())

    @property
    def gpu_bytes(self) -> int:
        """Bytes of its GPU."""
        return sum(self.gpu.values())

    def fits_into(self, workers: Workers) -> bool:
        """Return whether a worker and a GPU of this kind have the memory."""
        fits_device = workers.device_limit is None or self.gpu_bytes <= workers.device_limit
        return self.bytes <= workers.limit and fits_device


def shown(sizes: Sizes) -> str:
    """Return parts as text, the largest first."""
    return ", ".join(f"{name} {format_bytes(size)}" for name, size in sorted(sizes.items(), key=lambda part: -part[1]))


def _rounded(sizes: Sizes) -> dict[str, int]:
    """Return the parts that are not empty, in whole bytes."""
    return {name: math.ceil(size) for name, size in sizes.items() if size}


@dataclass(frozen=True)
class Estimate:
    """The memory of a run.

    Parameters
    ----------
    stages
        Encoding, vocabulary, training, publishing.
    client
        The content of the calling process.
    notes
        Assumptions, and effects of the run's size on its course.
    """

    stages: tuple[StageMemory, ...]
    client: Mapping[str, int]
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> StageMemory:
        """Return the stage of that name."""
        return next(stage for stage in self.stages if stage.name == name)

    @property
    def bytes(self) -> int:
        """Bytes of the most loaded worker process in the largest stage, which its memory limit must allow."""
        return max(stage.bytes for stage in self.stages)

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Yield the rows of a table: stage and process, bytes, and their parts."""
        for stage in self.stages:
            yield f"{stage.name}, a worker", format_bytes(stage.bytes), shown(stage.worker)
            if stage.gpu:
                yield f"{stage.name}, a GPU", format_bytes(stage.gpu_bytes), shown(stage.gpu)
        yield "client", format_bytes(sum(self.client.values())), shown(self.client)

    def __str__(self) -> str:
        return "\n".join(["  ".join(row) for row in self.rows()] + [f"Note: {note}" for note in self.notes])


def estimate(params: Params, resources: Resources, text: Text, workers: Workers) -> Estimate:
    """Return the estimate of a run.

    Parameters
    ----------
    params, resources
        The run.
    text
        Its text, known or guessed.
    workers
        Its workers.
    """
    work = work_of(params, resources, text, workers)
    joined = [phrases_memory(text, workers)] if params.phrases else []
    before = (encoding_memory(text, workers), *joined, vocabulary_memory(text, workers))
    vectors = text.vocabulary * (FLOAT * params.vector_size + LETTERS + 2 * LONG)
    client = {"process": _CLIENT, "shards": _SHARD * text.shards, "vectors it returns": vectors}
    stages = (*before, training_memory(work), StageMemory.of("publish", work.publish()))
    return Estimate(stages, _rounded(client), tuple(work.notes))


def training_memory(work: Work) -> StageMemory:
    """Return the memory of training, with that of a device which has its own memory."""
    has_memory = work.device.free_memory is not None
    return StageMemory.of("train", (moment if has_memory else Moment(moment.worker) for moment in work.train()))


def encoding_memory(text: Text, workers: Workers) -> StageMemory:
    """Return the memory of reading text: each thread has a block, and of it a shard."""
    slots, types, words = capacity_for(text.shard_types), text.shard_types, text.shard_words
    growing = {"dictionary": _growing(slots), "codes": 2 * words}  # half of them are read
    writing = {
        "dictionary": _table(slots, types),
        "codes": 2 * INT * words,  # as they came, and in one piece
        "words in order": types * (LETTERS + 5 * LONG),
        "compression": _WRITING,
    }
    tasks = min(workers.threads, text.blocks)
    return _stage("encode", _times(tasks, growing), _times(tasks, writing))


def phrases_memory(text: Text, workers: Workers) -> StageMemory:
    """Return the memory of joining phrases: each thread counts a shard's bigrams, or a bucket's, or joins a shard's."""
    words, types = text.shard_words, text.shard_types
    distinct, merged = _DISTINCT * words, _DISTINCT * min(text.words, BUCKET_WORDS)
    counting = {"keys of bigrams": LONG * words, "bigrams": BIGRAM.itemsize * distinct, "runs": 2 * LONG * distinct}
    merging = {"bigrams": BIGRAM.itemsize * merged, "keys in order": 3 * LONG * merged, "counts": 2 * LONG * merged}
    joining = {
        "codes": 4 * INT * words,
        "dictionary": _table(capacity_for(types), types),
        "words": types * (2 * LETTERS + 6 * LONG),
        "phrases": 2 * INT * PIECE,
        "compression": _WRITING,
    }
    tasks, maps = min(workers.threads, text.shards), {"maps of shards": INT * CACHED_MAPS * types}
    return _stage("phrases", *({**maps, **_times(tasks, sizes)} for sizes in (counting, merging, joining)))


def vocabulary_memory(text: Text, workers: Workers) -> StageMemory:
    """Return the memory of merging dictionaries and putting words in order: each thread has a bucket, or a piece."""
    buckets = choose_n_buckets(text.entries)
    entries, types, read = (-(-n // buckets) for n in (text.entries, text.types, text.shard_types))
    slots, index = capacity_for(max(types, read)), {"index": INT * entries}
    shard = read * (_SPEC + LETTERS)
    growing = {"merged dictionary": _growing(slots), "a shard's words": shard, **index}
    # Words are there once more with padding, and codes
    merging = {"merged dictionary": _table(slots, types), "a shard's words": shard + INT * read, **index}
    tasks, pieces = min(workers.threads, buckets), min(workers.threads, -(-text.vocabulary // PIECE_TYPES))
    return _stage(
        "vocabulary",
        *(_times(tasks, sizes) for sizes in (merging, growing, {**_ordering(types), **index})),
        _times(pieces, _ordering(min(PIECE_TYPES, text.vocabulary))),
    )


def _stage(name: str, *moments: Sizes) -> StageMemory:
    return StageMemory.of(name, map(Moment, moments), _COMPILED_BEFORE)


def _ordering(types: int) -> Sizes:
    """Return the bytes of so many words that are put in order."""
    return {"words": types * _SPEC, "sorting": types * _ORDER}


def _table(slots: int, types: int) -> int:
    """Return the bytes of a dictionary: its table, and by code offsets, hashes and words."""
    return 2 * ENTRY_BYTES * slots + types * (2 * LONG + LETTERS)


def _growing(slots: int) -> int:
    """Return the bytes of a dictionary that has just grown to so many slots: the table half as large is still there."""
    return 2 * ENTRY_BYTES * (slots + slots // 2) + slots * (2 * LONG + LETTERS // 2)


def _times(n: int, sizes: Sizes) -> Sizes:
    return {name: n * size for name, size in sizes.items()}
