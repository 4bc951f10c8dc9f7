"""Trains what is compared on one worker of one thread: what it costs, how it is judged, and what is kept of that.

Cost is processor time of the worker, so that others who use the machine do not count; kernels are compiled before.
"""

import inspect
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from distributed import Client

from benchmarks.cache import CODE, Scores, kept, means
from benchmarks.context_matrix import vanilla, vanilla_kernels, vanilla_network
from benchmarks.context_matrix.vanilla import Vanilla, center, train_vanilla
from benchmarks.epochs import train_anew
from benchmarks.judges import Judge
from benchmarks.papers.session import Session, params_of
from benchmarks.processes import cluster_of
from benchmarks.tables import Spread
from benchmarks.texts import Text
from daskw2v.config.params import Params
from daskw2v.models.queries.vectors import Vectors
from daskw2v.sampling.context_matrix import ContextMatrix, build_matrix
from daskw2v.sampling.run import Run
from daskw2v.shards.layout import digest

MIN_COUNT = 50  # section 5.1
# Sections 2, 3 and 5.1
AS_PAPER: dict[str, Any] = {"optimizer": "adam", "alpha": 0.001, "gather_every": 1, "ns_exponent": 0.75}
MATRIX, TRAINING = "core-s of the matrix", "core-s of training"
ADAM = "W2V-Vanilla, Adam 0.001"
PEERS = {
    "W2V-Vanilla": "our own code (`context_matrix.vanilla`): minibatches of pairs with Adam as in Chainer's example, "
    "the same words, windows and number of negatives; lazy Adam moves no row that a batch does not meet"
}  # for records
_SOURCES = digest([inspect.getsource(module) for module in (vanilla, vanilla_kernels, vanilla_network)])

T = TypeVar("T")
Kind = Params | Vanilla


@dataclass(frozen=True)
class Setting:
    """What all tables are made with."""

    judge: Judge  # of figure 15's sets
    vector_size: int = 500
    epochs: int = 1  # over the matrix or the text
    min_count: int = MIN_COUNT
    seeds: Sequence[int] = (1,)
    sample: float = 0.0
    as_paper: bool = False  # whether the matrix is trained by AS_PAPER, where a table does not say how
    context_size: int = 4096  # columns of the matrix
    context_sizes: Sequence[int] = (256, 512, 1024, 2048, 4096, 8192)  # of figure 14
    alphas: Sequence[float] = (0.0025, 0.005)  # of its lazy Adam
    gathers: Sequence[int] = (4, 16, 64, 256)  # values of `gather_every`, of figure 18
    time_columns: int = 512  # where time is taken
    subword_columns: int = 4096  # of words made of their characters
    subword_size: int = 100
    network_parts: float = 1.0  # of 10 MB, where networks are compared

    def params(self, objective: str = "context_matrix", **changes: Any) -> Params:
        """Return the paper's settings (section 5.1) of an objective that trains the matrix, or text."""
        matrix = {"strategy": "columns", "context_size": self.context_size, **(AS_PAPER if self.as_paper else {})}
        of_objective = {"strategy": "averaging"} if objective == "sgns" else matrix
        base = {
            "min_count": self.min_count,
            "window": 2,
            "shrink_windows": False,
            "negative": 5,
            "sample": self.sample,
            "vector_size": self.vector_size,
            "epochs": self.epochs,
        }
        return params_of(objective, **{**base, **of_objective, **changes})

    def vanilla(self, **changes: Any) -> Vanilla:
        """Return the same of W2V-Vanilla: by default batches of 1,024, and Adam as Chainer has it."""
        own = {"vector_size": self.vector_size, "sample": self.sample, "epochs": self.epochs}
        return Vanilla(**{**own, **changes})

    def vanillas(self) -> dict[str, Vanilla]:
        """Return all ways to train W2V-Vanilla that are compared."""
        lazy = {f"W2V-Vanilla, lazy Adam {alpha:g}": self.vanilla(alpha=alpha, lazy=True) for alpha in self.alphas}
        return {ADAM: self.vanilla(), **lazy}


class Made(NamedTuple):
    """Vectors; processor seconds of the matrix, 0 without any, and of training."""

    vectors: Vectors
    matrix: float
    training: float


def matrix_of(client: Client, text: Text, params: Params) -> ContextMatrix:
    """Return the matrix that params train, which is built once."""
    return build_matrix(client, Run(text.work, text.corpus.name, text.vocabulary, params, "cpu"))


class Lab:
    """One worker of one thread, and a text of the words that the paper would know."""

    def __init__(self, client: Client, session: Session, parts: float, min_count: int = MIN_COUNT) -> None:
        self.client, self.text, self._small = client, session.encoded(parts, min_count), session.small
        self._cache, self._warm, self._matrices = session.cache, set[str](), dict[str, float]()
        self._vanillas = dict[Vanilla, Made]()

    def make(self, kind: Kind) -> Made:
        """Train, with kernels that are compiled; centered vectors of W2V-Vanilla are made of the plain ones."""
        if isinstance(kind, Vanilla) and kind.centered:
            plain = self.make(replace(kind, centered=False))
            return plain._replace(vectors=center(plain.vectors))
        if isinstance(kind, Vanilla) and kind in self._vanillas:
            return self._vanillas[kind]
        name = kind.objective.name if isinstance(kind, Params) else f"{kind.lazy}, {kind.of_characters}"
        if name not in self._warm:  # compiles
            few = (
                kind.replace(context_size=16) if isinstance(kind, Params) and kind.strategy.name == "columns" else kind
            )
            self._train(self._small, few)
            self._warm.add(name)
        made = self._train(self.text, kind)
        if isinstance(kind, Vanilla):
            self._vanillas[kind] = made
        return made

    def scores(self, kind: Kind, judge: Judge) -> Scores:
        """Train and judge, unless that was done before; what it costs is among the scores."""

        def make() -> Scores:
            made = self.make(kind)
            return {**judge(made.vectors), MATRIX: made.matrix, TRAINING: made.training}

        about = kind.as_dict() if isinstance(kind, Params) else {**asdict(kind), "code": _SOURCES}
        made = digest([self.text.path.stat().st_size, CODE, about, judge.__name__])
        return kept(self._cache, f"one-worker-{type(kind).__name__.lower()}-{made}.json", about, make)

    def spreads(self, kind: Kind, judge: Judge, seeds: Sequence[int]) -> dict[str, Spread]:
        """Return mean and extremes of each score over seeds."""
        return means([self.scores(replace(kind, seed=seed), judge) for seed in seeds])

    def _train(self, text: Text, kind: Kind) -> Made:
        if not isinstance(kind, Params):
            future = partial(self.client.submit, train_vanilla, text, kind, pure=False)
            (vectors, _), seconds = self._spent(lambda: future().result())
            return Made(vectors, 0.0, seconds)
        matrix = 0.0
        if kind.strategy.name == "columns":
            built, seconds = self._spent(lambda: matrix_of(self.client, text, kind))
            matrix = self._matrices.setdefault(built.folder.url, seconds)
        vectors, seconds = self._spent(lambda: train_anew(self.client, text, kind))
        return Made(vectors, matrix, seconds)

    def _spent(self, run: Callable[[], T]) -> tuple[T, float]:
        """Return a result, and the processor seconds that the worker spent on it."""
        before = self._used()
        result = run()
        return result, self._used() - before

    def _used(self) -> float:
        return float(sum(self.client.run(time.process_time).values()))


@contextmanager
def lab_of(session: Session, parts: float, min_count: int = MIN_COUNT) -> Iterator[Lab]:
    """Give a lab for as long as the block lasts."""
    with cluster_of(1) as client:
        yield Lab(client, session, parts, min_count)
