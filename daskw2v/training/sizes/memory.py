"""Estimates of memory: stages and their parts, and the parts that all strategies share."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple, Self

from dask.utils import format_bytes

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.features.settings import FEATURES, has_features, most_rows
from daskw2v.kernels.simd import padded
from daskw2v.objectives.registry import find_objective
from daskw2v.sampling.reader import CHUNK, CHUNKS, OPEN_SHARDS
from daskw2v.training.sizes.text import Text

FLOAT, INT, LONG = 4, 4, 8  # bytes
PROCESS = 250 << 20  # of a worker that has imported all, and loaded compiled kernels from the cache
COMPILED = 110 << 20  # that compiling leaves, where the cache on disk lacks the kernels: of all stages up to training
BLOCK = 48 << 20  # rows that are being written or read, and checked

Sizes = dict[str, float]


class MemoryPart(NamedTuple):
    """Some bytes, and the name of their content."""

    name: str
    bytes: int


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
    worker: tuple[MemoryPart, ...]
    gpu: tuple[MemoryPart, ...] = ()

    @classmethod
    def of(
        cls,
        name: str,
        *moments: Mapping[str, float],
        gpu: Mapping[str, float] | None = None,
        compiled: int = COMPILED,
    ) -> Self:
        """Return the stage whose peak is the largest of some moments, which are parts besides the process itself.

        `compiled` is the number of bytes that compiling kernels leaves, of this stage and earlier ones.
        """
        peak = max(moments, key=lambda parts: sum(parts.values()))
        process = {"process": PROCESS, "compiled kernels": compiled}
        return cls(name, _parts({**process, **peak}), _parts(gpu or {}))

    @property
    def bytes(self) -> int:
        """Bytes of the worker process."""
        return sum(part.bytes for part in self.worker)

    @property
    def gpu_bytes(self) -> int:
        """Bytes of its GPU."""
        return sum(part.bytes for part in self.gpu)


def _parts(sizes: Mapping[str, float]) -> tuple[MemoryPart, ...]:
    return tuple(MemoryPart(name, math.ceil(size)) for name, size in sizes.items() if size)


def shown(parts: tuple[MemoryPart, ...]) -> str:
    """Return parts as text, the largest first."""
    return ", ".join(f"{name} {format_bytes(size)}" for name, size in sorted(parts, key=lambda part: -part.bytes))


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
    client: tuple[MemoryPart, ...]
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> StageMemory:
        """Return the stage of that name."""
        return next(stage for stage in self.stages if stage.name == name)

    @property
    def bytes(self) -> int:
        """Bytes of the most loaded worker process in the largest stage: what its memory limit must allow."""
        return max(stage.bytes for stage in self.stages)

    def rows(self) -> Iterator[tuple[str, str, str]]:
        """Yield the rows of a table: stage and process, bytes, and their parts."""
        for stage in self.stages:
            yield f"{stage.name}, a worker", format_bytes(stage.bytes), shown(stage.worker)
            if stage.gpu:
                yield f"{stage.name}, a GPU", format_bytes(stage.gpu_bytes), shown(stage.gpu)
        yield "client", format_bytes(sum(part.bytes for part in self.client)), shown(self.client)

    def __str__(self) -> str:
        return "\n".join(["  ".join(row) for row in self.rows()] + [f"Note: {note}" for note in self.notes])


@dataclass(frozen=True)
class RunMemory:
    """The memory of a strategy's stages.

    Parameters
    ----------
    train, publish
        Training, and writing the model.
    notes
        Notes to the user about a run of this size.
    """

    train: StageMemory
    publish: StageMemory
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Workers:
    """The workers of a cluster.

    Parameters
    ----------
    n
        How many there are.
    threads
        Threads of the one that is looked at.
    memory
        Bytes that all of them hold together (`cluster.shared_memory`); infinity where none has a limit.
    devices
        Devices of the one that is looked at; each has its share of the threads.
    """

    n: int = 1
    threads: int = 1
    memory: float = math.inf
    devices: int = 1

    @property
    def homes(self) -> list[int]:
        """The threads of each device of all workers, were all like this one."""
        return [max(1, self.threads // self.devices)] * (self.n * self.devices)

    def tasks(self, resource: str | None) -> int:
        """Return how many tasks a worker trains at a time: one a device, if a task takes one, else one a thread."""
        return self.devices if resource else self.threads


def table_bytes(params: Params, n_words: int) -> tuple[dict[str, int], dict[str, int]]:
    """Return the bytes of each table as Dask has it, and as kernels do: rows padded to whole cache lines."""
    rows = find_objective(params.objective.name).tables(params, n_words)
    rows |= {FEATURES: most_rows(params, n_words)} if has_features(params) else {}
    width = params.vector_size
    return ({name: FLOAT * n * width for name, n in rows.items()},
            {name: FLOAT * n * padded(width) for name, n in rows.items()})  # fmt: skip


def open_shards(text: Text) -> int:
    """Return the bytes of the shards that a reader has open: words' ids by their codes, starts of sentences, chunks."""
    shard = INT * text.shard_types + text.shard_words // 2
    return min(OPEN_SHARDS, text.shards) * shard + INT * min(CHUNKS * CHUNK, text.words)


def publish(params: Params, resources: Resources, text: Text, workers: Workers, checked: int = BLOCK) -> StageMemory:
    """Return the memory of writing and checking a model that workers still hold, and of its evaluation.

    `checked` is the number of bytes that are checked at a time.
    """
    held, _ = table_bytes(params, text.vocabulary)
    rows = max(checked, workers.threads * BLOCK)
    writing = {"model": sum(held.values()) / workers.n, "rows written or checked": rows}
    evaluating: Sizes = {}
    if any(resources.eval_sets.values()):
        words = 4 * LONG * text.vocabulary
        evaluating = {"model": sum(held.values()), "input rows in one piece": 2 * held["input"], "words": words}
    return StageMemory.of("publish", writing, evaluating)
