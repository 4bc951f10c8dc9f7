"""The description of a strategy's work, from which memory and time of a run are computed."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple, TypeAlias

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.features.settings import FEATURES, has_features, max_feature_rows
from daskw2v.kernels.simd import padded
from daskw2v.objectives.registry import find_objective
from daskw2v.sampling.reader import CHUNK, CHUNKS, OPEN_SHARDS
from daskw2v.training.devices import find_device
from daskw2v.training.sizes import Load, Text, Workers, estimate_load

FLOAT, INT, LONG = 4, 4, 8  # bytes
BLOCK = 48 << 20  # bytes of rows that are being written or read, and checked

Sizes: TypeAlias = Mapping[str, float]  # bytes by the name of their content


class Moment(NamedTuple):
    """The memory at a moment of a stage: bytes by content, of the most loaded worker process and of its device."""

    worker: Sizes
    device: Mapping[str, float] = {}


class Phase(NamedTuple):
    """A phase of training: steps that threads share, and bytes that are stored or sent.

    Parameters
    ----------
    term
        The term of the forecast that its seconds belong to, one of `estimates.seconds.TERMS`.
    steps
        How often each step is executed in the run, by the name of its seconds (`estimates.seconds.MACHINE_B`).
    threads
        Number of threads that share the steps.
    slowest
        Share of the thread, or worker, with most to do, divided by an even share: the others wait for it.
    stored, sent
        Bytes, of all workers together, that are read from the store and written to it, while the steps are executed;
        and bytes that workers send each other.
    workers
        Number of workers that store and send these bytes; None for all.
    beside
        Terms of earlier phases during which the bytes are sent.
    """

    term: str
    steps: Mapping[str, float] = {}
    threads: float = 1
    slowest: float = 1.0
    stored: float = 0.0
    sent: float = 0.0
    workers: int | None = None
    beside: Sequence[str] = ()


class Work(ABC):
    """The work of a run. Each strategy derives a class, which describes workers' memory and the phases of training.

    Parameters
    ----------
    params, resources
        The settings of the run.
    text
        The sizes of its text.
    workers
        The workers that train.
    """

    notes: Sequence[str] = ()  # to the user, about a run of this size

    def __init__(self, params: Params, resources: Resources, text: Text, workers: Workers) -> None:
        self.params, self.resources, self.text, self.workers = params, resources, text, workers
        self.device, self.objective = find_device(resources.device.name), find_objective(params.objective.name)
        self.tasks = workers.devices if self.device.resource else workers.threads  # of a worker at a time
        # Bytes of the arrays that kernels of the objective read, by name
        self.prepared = self.objective.prepared_bytes(params, text.vocabulary)
        rows = dict(self.objective.tables(params, text.vocabulary))
        if has_features(params):
            rows[FEATURES] = max_feature_rows(params, text.vocabulary)
        d = params.vector_size
        # Bytes of the tables as Dask has them, and as kernels do: rows padded to complete cache lines; and their sums
        self.table_bytes = {name: FLOAT * n * d for name, n in rows.items()}
        self.padded_bytes = {name: FLOAT * n * padded(d) for name, n in rows.items()}
        self.tables, self.copies = sum(self.table_bytes.values()), sum(self.padded_bytes.values())

    @cached_property
    def load(self) -> Load:
        """The expected words and pairs of the text, and how often each word occurs."""
        return estimate_load(self.text, self.params)

    @abstractmethod
    def train(self) -> Iterator[Moment]:
        """Yield the moments of training that may take most memory."""

    def publish(self) -> Iterator[Moment]:
        """Yield the moment in which the model is written and checked, and the moment of its evaluation, if any."""
        rows = self.workers.threads * BLOCK
        yield Moment({"model": self.tables / self.workers.n, "rows written or checked": rows})
        if any(self.resources.eval_sets.values()):
            words = 4 * LONG * self.text.vocabulary
            rows = 2 * self.table_bytes["input"]
            yield Moment({"model": self.tables, "input rows in one piece": rows, "words": words})

    def phases(self) -> Iterator[Phase]:
        """Yield the phases of training, from which the seconds are computed; none if these are not known."""
        return iter(())

    def open_shard_bytes(self) -> int:
        """Return the bytes of the shards that one reader has open: ids by code, starts of sentences, chunks."""
        shard = INT * self.text.shard_types + self.text.shard_words // 2
        return min(OPEN_SHARDS, self.text.shards) * shard + INT * min(CHUNKS * CHUNK, self.text.words)
