"""The interface of a strategy: it starts runs, which `training.loop.rounds` drives round by round.

Strategies also share the totals that their tasks report, the learning rate of their schedules, and threads in the
background.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Thread
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from distributed import Client

from daskw2v.config.choice import Choice
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.errors import DamageError, counted
from daskw2v.kernels import compilation
from daskw2v.objectives.base import Objective
from daskw2v.objectives.registry import start_alpha
from daskw2v.progress import Listener
from daskw2v.sampling.run import Run
from daskw2v.store.storage import Store
from daskw2v.training.devices import Device
from daskw2v.training.loop.work import Work
from daskw2v.training.sizes.text import Text
from daskw2v.training.sizes.workers import Workers
from daskw2v.types import Float32Array, Int64Array

T = TypeVar("T")


class TaskTotals(NamedTuple):
    """The totals of one training task.

    Parameters
    ----------
    pairs, loss
        Pairs trained, and their summed loss.
    finite
        Whether all trained rows are finite.
    words
        Corpus words read, 0 for a task that reads no text.
    worker
        The worker's address.
    seconds, compiling
        Duration of the task, and how much of it the process compiled kernels.
    """

    pairs: int
    loss: float
    finite: bool
    words: int = 0
    worker: str = ""
    seconds: float = 0.0
    compiling: float = 0.0

    def ended(self, finite: bool, seconds: float, compiling: float) -> "TaskTotals":
        """Return the totals at the end of the task, after so many more seconds."""
        return self._replace(finite=finite, seconds=self.seconds + seconds, compiling=self.compiling + compiling)


class TaskClock:
    """Measures a task: its seconds, and those in which its process compiled kernels."""

    def __init__(self) -> None:
        self._read = self._now()

    def read(self) -> tuple[float, float]:
        """Return both times since the last call, or since the beginning: the last two fields of `TaskTotals`."""
        before, self._read = self._read, self._now()
        return self._read[0] - before[0], self._read[1] - before[1]

    @staticmethod
    def _now() -> tuple[float, float]:
        return time.perf_counter(), compilation.clock.seconds


class WorkerShare(NamedTuple):
    """One worker's share of the training: pairs, and seconds of its tasks."""

    pairs: int = 0
    seconds: float = 0.0


class WorkerShares(dict[str, WorkerShare]):
    """The share of each worker by its address, since this client began."""

    def add(self, totals: Iterable[TaskTotals]) -> None:
        """Add the totals of tasks."""
        for t in totals:
            pairs, seconds = self.get(t.worker, WorkerShare())
            self[t.worker] = WorkerShare(pairs + t.pairs, seconds + t.seconds)


class TableParts(NamedTuple):
    """A table after a round, in parts; the functions are importable on the workers.

    Parameters
    ----------
    parts
        Values, or futures of them.
    pick
        Function from a part, its number, and the numbers of wanted rows in the table, ascending int64, to the wanted
        rows that the part has: their indices among the wanted ones, and their values, float32.
    join
        Function from the parts in their order to the table; None where no worker could hold all of it.
    """

    parts: Sequence[Any]
    pick: Callable[[Any, int, Int64Array], tuple[Int64Array, Float32Array]]
    join: Callable[..., Float32Array] | None


ModelRows: TypeAlias = Mapping[str, TableParts]  # "input" and "output"


class RoundReport(NamedTuple):
    """A report of a round that is done, or of a part of it.

    Parameters
    ----------
    progress
        Corpus positions done by now, over all epochs.
    alpha
        Learning rate by now.
    totals
        Totals of the tasks that are done since the report before.
    rows
        Both tables; None where they are not available, as a task goes on with them.
    words
        Corpus words done in this round by now, besides those that tasks count.
    facts
        Other values of the history's entry.
    seconds
        Seconds of the work since the report before; None where its reader measures them, as it waits. Rounds of one
        task share its time.
    """

    progress: int
    alpha: float
    totals: Sequence[TaskTotals]
    rows: ModelRows | None
    words: int = 0
    facts: Mapping[str, Any] = {}
    seconds: float | None = None


def up_to(looked_at: Callable[[int], bool], rounds: range) -> range:
    """Return the first of some rounds, up to one that is looked at."""
    return range(rounds.start, next((number + 1 for number in rounds if looked_at(number)), rounds.stop))


class StrategyRun(Protocol):
    """A run that a strategy has started. It holds the model as futures, which never pass through the client.

    Parameters
    ----------
    unit
        The strategy's name for a round: "round" or "pass".
    trained
        The unit that one task trains, in the words of an error: "replica", "partition", "part".
    ahead
        Rounds that are submitted before the first of them is waited for.
    threads
        Threads of a training task.
    facts
        Other facts for the model's manifest, as JSON types.
    """

    @property
    def unit(self) -> str: ...  # noqa: D102 (above)

    @property
    def trained(self) -> str: ...  # noqa: D102

    @property
    def ahead(self) -> int: ...  # noqa: D102

    @property
    def threads(self) -> int: ...  # noqa: D102

    @property
    def facts(self) -> Mapping[str, Any]: ...  # noqa: D102

    def __len__(self) -> int:
        """Return the number of rounds."""

    def restore(self, number: int, checkpoint: Store | None, manifest: Mapping[str, Any]) -> None:
        """Take the model before a round from a checkpoint, or begin with first rows where there is none."""

    def can_stop(self, number: int) -> bool:
        """Return whether there is a model before a round, when the earlier ones are done, to write a checkpoint of."""

    def progress_after(self, number: int) -> int:
        """Return the progress after a round, as its last report has it."""

    def play(self, number: int, looked_at: Callable[[int], bool]) -> Iterator[RoundReport]:
        """Submit a round; return an iterator that waits for it, report by report.

        The last report of a round that is `looked_at` has rows, and no task trains the next one together with it.
        Where `ahead` is 1, the round may be submitted when the first report is asked for.
        """

    def save_checkpoint(self, checkpoint: Store) -> dict[str, Any]:
        """Write the checkpoint that `restore` reads; return the values that it finds in the manifest."""

    def save_model(self, model: Store) -> None:
        """Write the trained tables, from the workers that hold them."""


class StartRun(Protocol):
    """Starts or resumes a run."""

    def __call__(
        self, client: Client, run: Run, place: Store, length: int, resources: Resources, listener: Listener
    ) -> StrategyRun:
        """Prepare a run for its rounds.

        Parameters
        ----------
        client, resources, listener
            As in `train`.
        run
            The text, the words and the settings.
        place
            The run's folder.
        length
            Positions of an epoch.
        """


def _as_given(params: Params, words: int, workers: Workers) -> Iterator[Mapping[str, Any]]:
    yield {}


def _count_rounds(params: Mapping[str, Any], rounds: int) -> Iterator[str]:
    if rounds:
        yield counted(rounds, "round")


@dataclass(frozen=True, kw_only=True)
class Strategy:
    """One way to train on several workers.

    Parameters
    ----------
    name
        As in Params.
    settings
        The class of its settings, of the same name.
    title
        Short description for `--help`.
    find_kernel
        Returns the kernel that it runs, for an objective and a device, or raises a ParameterError.
    start
        Starts or resumes a run.
    work
        Function from Params, Resources, the text and the workers that train to the work of a run, of which memory and
        time are computed; "auto" compares the time.
    exercise
        Trains next to nothing on the processor, by the kernel of a run with such Params; None where it is quickly
        compiled.
    exercise_text
        Makes next to nothing of text, by the other kernels of a run with such Params; None where there are few.
    tried
        Function from Params, the number of words and the workers to values of the strategy's own settings that "auto"
        compares: the plainest first, none where it cannot train so few words, none of settings that are not as by
        default.
    check
        Refuses other Params that the strategy cannot train, before any text is read.
    lighter
        Returns changes of the strategy's own settings that need less memory, if there are any.
    describe_run
        Function from the Params in the model's manifest and the number of rounds to what a report shows beside the
        strategy's name, such as the number of replicas and merges.
    deterministic
        Whether any number of a processor's threads gives the same bits.
    honours
        Fields of Params and Resources that it reads and not all strategies do (`honoured_by`), besides its settings.
    """

    name: str
    settings: type[Choice]
    title: str
    find_kernel: Callable[[Objective, Device], Any]
    start: StartRun
    work: Callable[[Params, Resources, Text, Workers], Work]
    exercise: Callable[[Params], None] | None = None
    exercise_text: Callable[[Params], None] | None = None
    tried: Callable[[Params, int, Workers], Iterator[Mapping[str, Any]]] = _as_given
    check: Callable[[Params], None] = field(default=lambda _: None)
    lighter: Callable[[Params], Mapping[str, Any]] = field(default=lambda _: {})
    describe_run: Callable[[Mapping[str, Any], int], Iterator[str]] = _count_rounds
    deterministic: bool = False
    honours: tuple[str, ...] = ()


def check_rounds(checkpoint: Store, manifest: Mapping[str, Any], n_rounds: int) -> None:
    """Raise a DamageError if a checkpoint is of a run that was cut into another number of rounds."""
    if manifest.get("rounds") != n_rounds:
        raise DamageError(
            f"{checkpoint.url} was written by an older daskw2v, whose rounds were others.",
            "The same command makes it again.",
            url=checkpoint.url,
        )


def alpha_at(params: Params, share: float) -> float:
    """Return the learning rate where so much of a run is done, 0 to 1: it falls evenly from alpha to min_alpha."""
    alpha = start_alpha(params)
    return alpha + (params.min_alpha - alpha) * share


def share_of(start: int, stop: int, i: int, n: int) -> tuple[int, int]:
    """Return the i-th of n even parts of start..stop."""
    return start + (stop - start) * i // n, start + (stop - start) * (i + 1) // n


def in_background(function: Callable[..., T], *args: Any) -> "Future[T]":
    """Call a function in a thread of its own, which ends with this process."""
    future = Future[T]()

    def call() -> None:
        try:
            future.set_result(function(*args))
        except BaseException as error:  # raised where the result is asked for
            future.set_exception(error)

    Thread(target=call, name="daskw2v-background", daemon=True).start()
    return future
