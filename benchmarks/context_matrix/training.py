"""Trains what is compared on one worker of one thread: what it costs, how it is judged, and what is kept of that.

Cost is processor time of the worker, so that others who use the machine do not count; kernels are compiled before.
"""

import inspect
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from types import ModuleType
from typing import Any, NamedTuple, TypeVar

from distributed import Client

from benchmarks import vanilla, vanilla_kernels
from benchmarks.cache import CODE, Scores, kept
from benchmarks.common import cluster_of
from benchmarks.context_matrix import vanilla_subwords
from benchmarks.context_matrix.vanilla_subwords import VanillaSubwords, train_vanilla_subwords
from benchmarks.judges import Judge
from benchmarks.papers.session import Session, params_of
from benchmarks.tables import Spread
from benchmarks.texts import Text
from benchmarks.vanilla import MIN_COUNT, Losses, Vanilla, train_vanilla
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.models.vectors import Vectors
from daskw2v.sampling.context_matrix import ContextMatrix, build_matrix
from daskw2v.sampling.run import Run
from daskw2v.shards.layout import digest
from daskw2v.training.pipeline import train_model

MATRIX, TRAINING = "core-s of the matrix", "core-s of training"
ONE = Resources(threads=1)
AS_PAPER = {"optimizer": "adam", "alpha": 0.001, "gather_every": 1, "ns_exponent": 0.75}  # sections 2, 3 and 5.1

T = TypeVar("T")
Kind = Params | Vanilla | VanillaSubwords


@dataclass(frozen=True)
class Setting:
    """What all tables are made with.

    Parameters
    ----------
    parts
        Tenths of the 100 MB corpus.
    vector_size, epochs, seeds, sample
        Of what is trained, where a table does not try several; epochs go over the matrix or the text.
    context_size, context_sizes
        Columns of the matrix; and those that figure 14 tries.
    as_paper
        Whether the matrix is trained by the paper's updates (AS_PAPER), where a table does not say how.
    samples
        Subsampling that figure 14 tries; the paper has none.
    batch, alphas
        Pairs of a batch of W2V-Vanilla; learning rates of its lazy Adam beside Chainer's dense one at 0.001.
    gathers, time_columns
        Values of `gather_every`; and columns of the matrix where time is taken.
    subword_columns, subword_gather, subword_size, subword_time_columns
        For words made of their characters: columns of the matrix, `gather_every` and vector size where they are judged,
        columns where time is taken.
    subword_pairs
        That W2V-Vanilla with subwords is trained on.
    held, imitation_epochs
        Words that are left out of the text; epochs of a network over rows that it imitates.
    judge
        Of figure 15's sets.
    """

    parts: float
    judge: Judge
    vector_size: int = 500
    epochs: int = 1
    seeds: Sequence[int] = (1,)
    sample: float = 0.0
    as_paper: bool = False
    context_size: int = 4096
    context_sizes: Sequence[int] = (256, 512, 1024, 2048, 4096, 8192)
    samples: Sequence[float] = (0.0, 1e-4)
    batch: int = 1024
    alphas: Sequence[float] = (0.0025, 0.005)
    gathers: Sequence[int] = (4, 16, 64, 256)
    time_columns: int = 1024
    subword_columns: int = 4096
    subword_gather: int = 256
    subword_size: int = 100
    subword_time_columns: int = 512
    subword_pairs: int = 5_000_000
    held: int = 2000
    imitation_epochs: Sequence[int] = (8, 32)

    def params(self, objective: str = "context_matrix", **changes: Any) -> Params:
        """Return the paper's settings (section 5.1) of an objective that trains the matrix, or text."""
        matrix = {"strategy": "columns", "context_size": self.context_size, **(AS_PAPER if self.as_paper else {})}
        of_objective = {"strategy": "averaging"} if objective == "sgns" else matrix
        base = {
            "min_count": MIN_COUNT, "window": 2, "shrink_windows": False, "negative": 5, "sample": self.sample,
            "vector_size": self.vector_size, "epochs": self.epochs,
        }  # fmt: skip
        return params_of(objective, **{**base, **of_objective, **changes})

    def vanilla(self, alpha: float = 0.001, *, lazy: bool = False, seed: int = 1) -> Vanilla:
        """Return the same of W2V-Vanilla: by default with Adam as Chainer has it."""
        return Vanilla(
            self.batch, alpha, lazy, vector_size=self.vector_size, sample=self.sample, epochs=self.epochs, seed=seed
        )

    def vanilla_subwords(self) -> VanillaSubwords:
        """Return the same of W2V-Vanilla with subwords."""
        return VanillaSubwords(self.subword_pairs, self.batch, vector_size=self.subword_size, sample=self.sample)

    def vanillas(self, seed: int = 1) -> dict[str, Vanilla]:
        """Return all ways to train W2V-Vanilla that are compared."""
        lazy = {f"W2V-Vanilla, lazy Adam {alpha}": self.vanilla(alpha, lazy=True, seed=seed) for alpha in self.alphas}
        return {"W2V-Vanilla, Adam 0.001": self.vanilla(seed=seed), **lazy}


class Made(NamedTuple):
    """Vectors; processor seconds of the matrix, 0 without any, and of training; losses that W2V-Vanilla kept."""

    vectors: Vectors
    matrix: float
    training: float
    losses: Losses | None = None


def matrix_of(client: Client, text: Text, params: Params) -> ContextMatrix:
    """Return the matrix that params train, which is built once."""
    return build_matrix(client, Run(text.work, text.corpus.name, text.vocabulary, params, "cpu"))


def train_anew(client: Client, text: Text, params: Params, resources: Resources = ONE) -> Vectors:
    """Train, also where the same model was trained before; other models are lost."""
    (text.work / "models").remove()
    return train_model(text.corpus, text.vocabulary, text.work, params, resources, client)


class Lab:
    """One worker of one thread, and a text of the words that the paper would know.

    Parameters
    ----------
    client
        Of the worker.
    session, parts
        Texts and kept scores; tenths of the corpus.
    """

    def __init__(self, client: Client, session: Session, parts: float) -> None:
        self.client, self.text, self._small = client, session.text(parts, MIN_COUNT), session.small
        self._cache, self._warm, self._matrices = session.cache, set[str](), dict[str, float]()
        self._last: tuple[Kind, dict[str, Any], Made] | None = None

    def make(self, kind: Kind, **how: Any) -> Made:
        """Train, unless it was done last; `how` are arguments of `train_vanilla`, `train_vanilla_subwords` or
        `train_anew`."""
        if self._last is not None and self._last[:2] == (kind, how):
            return self._last[2]
        name = kind.objective if isinstance(kind, Params) else f"{type(kind).__name__} {getattr(kind, 'lazy', None)}"
        if name not in self._warm:  # compiles
            few = kind
            if isinstance(kind, Params) and kind.strategy == "columns":
                few = kind.replace(context_size=16)
            self._train(self._small, few, {})
            self._warm.add(name)
        made = self._train(self.text, kind, how)
        self._last = kind, how, made
        return made

    def scores(self, kind: Kind, judge: Judge) -> Scores:
        """Train and judge, unless that was done before; what it costs is among the scores."""

        def make() -> Scores:
            made = self.make(kind)
            return {**judge(made.vectors), MATRIX: made.matrix, TRAINING: made.training}

        about = kind.as_dict() if isinstance(kind, Params) else {**asdict(kind), "code": _source_of(kind)}
        made = digest([self.text.path.stat().st_size, CODE, about, judge.__name__])
        return kept(self._cache, f"one-worker-{type(kind).__name__.lower()}-{made}.json", about, make)

    def spreads(self, kind: Kind, judge: Judge, seeds: Sequence[int]) -> dict[str, Spread]:
        """Return mean and extremes of each score over seeds."""
        results = [self.scores(replace(kind, seed=seed), judge) for seed in seeds]
        return {name: Spread.of((result[name] for result in results), statistics.mean) for name in results[0]}

    def _train(self, text: Text, kind: Kind, how: dict[str, Any]) -> Made:
        if isinstance(kind, VanillaSubwords):
            spelled, seconds = self._spent(lambda: self._of_text(train_vanilla_subwords, text, kind, how))
            return Made(spelled.vectors, 0.0, seconds)
        if isinstance(kind, Vanilla):
            found, seconds = self._spent(lambda: self._of_text(train_vanilla, text, kind, how))
            return Made(found.vectors, 0.0, seconds, found.losses)
        matrix = 0.0
        if kind.strategy == "columns":
            built, seconds = self._spent(lambda: matrix_of(self.client, text, kind))
            matrix = self._matrices.setdefault(built.home.url, seconds)
        vectors, seconds = self._spent(lambda: train_anew(self.client, text, kind, **how))
        return Made(vectors, matrix, seconds)

    def _of_text(self, train: Callable[..., T], text: Text, kind: Kind, how: dict[str, Any]) -> T:
        """Let the worker train on text, without a matrix."""
        future = self.client.submit(train, text.work, text.corpus, text.vocabulary, kind, **how, pure=False)
        found: T = future.result()
        return found

    def _spent(self, run: Callable[[], T]) -> tuple[T, float]:
        """Return a result, and the processor seconds that the worker spent on it."""
        before = self._used()
        result = run()
        return result, self._used() - before

    def _used(self) -> float:
        return float(sum(self.client.run(time.process_time).values()))


@contextmanager
def lab_of(session: Session, parts: float) -> Iterator[Lab]:
    """Give a lab for as long as the block lasts."""
    with cluster_of(1) as client:
        yield Lab(client, session, parts)


def _source_of(kind: Vanilla | VanillaSubwords) -> str:
    modules: tuple[ModuleType, ...] = (vanilla, vanilla_kernels) if isinstance(kind, Vanilla) else (vanilla_subwords,)
    return digest([inspect.getsource(module) for module in modules])
