"""The interface of a strategy: it starts runs, which `training.rounds` drives round by round.

A round (a pass of `rotation`) is a part of the training that ends with one common model. Strategies also share the
totals that their tasks report, the learning rate of their schedules, and threads in the background.
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
from daskw2v.training.sizes import Text, Workers
from daskw2v.types import Float32Array, Int64Array

T = TypeVar("T")


class TaskTotals(NamedTuple):
    """The totals of one training task.

    Parameters
    ----------
    pairs, loss
        Number of pairs trained, and the sum of their losses.
    finite
        Whether all trained rows are finite.
    words
        Corpus words read, 0 for a task that reads no text.
    worker
        The worker's address; "" if it is not known.
    seconds, compiling
        Duration of the task, and the seconds of it in which the process compiled kernels.
    """

    pairs: int
    loss: float
    finite: bool
    words: int = 0
    worker: str = ""
    seconds: float = 0.0
    compiling: float = 0.0

    def with_end(self, finite: bool, seconds: float, compiling: float) -> "TaskTotals":
        """Return the totals with `finite` of the end of the task, and with the seconds since these totals added."""
        return self._replace(finite=finite, seconds=self.seconds + seconds, compiling=self.compiling + compiling)


class TaskClock:
    """Measures the seconds of a task, and the seconds in which its process compiled kernels."""

    def __init__(self) -> None:
        self._last = self._measure()

    def read(self) -> tuple[float, float]:
        """Return the seconds, and the seconds of compilation, since the last call or since the clock was made."""
        before, self._last = self._last, self._measure()
        return self._last[0] - before[0], self._last[1] - before[1]

    @staticmethod
    def _measure() -> tuple[float, float]:
        """Return the time in seconds, and this process's seconds of compilation until now."""
        return time.perf_counter(), compilation.clock.seconds


class WorkerShare(NamedTuple):
    """One worker's share of the training: the number of pairs it trained, and the seconds of its tasks."""

    pairs: int = 0
    seconds: float = 0.0


class WorkerShares(dict[str, WorkerShare]):
    """The share of each worker by its address, in the rounds that this call trained."""

    def add(self, totals: Iterable[TaskTotals]) -> None:
        """Add the totals of tasks to the shares of their workers."""
        for task in totals:
            pairs, seconds = self.get(task.worker, WorkerShare())
            self[task.worker] = WorkerShare(pairs + task.pairs, seconds + task.seconds)


class TableParts(NamedTuple):
    """A table after a round, in parts; the functions are importable on the workers.

    Parameters
    ----------
    parts
        The parts in their order, or futures of them.
    pick
        Function from a part, the number of the part, and the indices of wanted rows in the table, ascending int64, to
        the indices, among the wanted rows, of those that the part has, int64, and their rows, shape (n, D) float32.
    join
        Function that takes all parts, in their order, as arguments, and returns the table; None where no worker can
        hold the table.
    """

    parts: Sequence[Any]
    pick: Callable[[Any, int, Int64Array], tuple[Int64Array, Float32Array]]
    join: Callable[..., Float32Array] | None


ModelRows: TypeAlias = Mapping[str, TableParts]  # "input" and "output"


class RoundReport(NamedTuple):
    """A report of a round that is trained, or of a part of it.

    Parameters
    ----------
    progress
        Corpus positions trained until this report, over all epochs.
    alpha
        Learning rate at this report.
    totals
        Totals of the tasks that ended since the report before.
    rows
        All tables of the model; None where they are not available, as a task goes on with them.
    words
        Corpus words trained in this round until this report, besides the words that the totals of tasks count.
    facts
        More values for the history's entry of the round, of its last report.
    seconds
        Seconds of the work since the report before; None where the reader of the reports measures them, as it waits for
        each. Rounds that one task trains share the seconds of the task.
    """

    progress: int
    alpha: float
    totals: Sequence[TaskTotals]
    rows: ModelRows | None
    words: int = 0
    facts: Mapping[str, Any] = {}
    seconds: float | None = None


def until_needed(needs_rows: Callable[[int], bool], rounds: range) -> range:
    """Return the rounds up to the first whose rows are needed, with it; all rounds where none is.

    Parameters
    ----------
    needs_rows
        Function from the number of a round to whether the model's rows are needed after it.
    rounds
        Numbers of rounds.
    """
    return range(rounds.start, next((number + 1 for number in rounds if needs_rows(number)), rounds.stop))


class StrategyRun(Protocol):
    """A run that a strategy has started. It holds the model as futures, which never pass through the client.

    Parameters
    ----------
    unit
        The strategy's word for a round: "round" or "pass".
    trained
        The strategy's word for what one task trains, for errors: "replica", "partition", "part".
    threads
        Number of threads of a training task.
    facts
        Other facts for the model's manifest, as JSON types.
    ahead
        Maximum number of rounds that are submitted before the first of them is waited for.
    """

    unit: str
    trained: str
    threads: int
    facts: dict[str, Any]

    @property
    def ahead(self) -> int: ...  # noqa: D102 (above)

    def __len__(self) -> int:
        """Return the number of rounds."""

    def restore(self, number: int, checkpoint: Store | None, manifest: Mapping[str, Any]) -> None:
        """Restore the model before the round of this number from a checkpoint; without one, make the initial model.

        `manifest` is the checkpoint's, with the values that `save_checkpoint` returned; empty without a checkpoint.
        """

    def can_stop(self, number: int) -> bool:
        """Return whether a checkpoint can be written before the round of this number, when all rounds before ended."""

    def progress_after(self, number: int) -> int:
        """Return the corpus positions trained after the round of this number, as its last report has them."""

    def play(self, number: int, needs_rows: Callable[[int], bool]) -> Iterator[RoundReport]:
        """Submit the round of this number; return an iterator that waits for each of its reports.

        Where `needs_rows` returns True for a round's number, the last report of the round has rows, and no task trains
        the next round together with it. Where `ahead` is 1, the round may be submitted when the first report is asked
        for.
        """

    def save_checkpoint(self, checkpoint: Store) -> dict[str, Any]:
        """Write the tables of the checkpoint that `restore` reads; return the values for the checkpoint's manifest."""

    def save_model(self, model: Store) -> None:
        """Write the trained tables to a model's folder, from the workers that hold them."""


class StartRun(Protocol):
    """Starts a run; `StrategyRun.restore` then makes its initial model, or resumes it."""

    def __call__(
        self, client: Client, run: Run, folder: Store, length: int, resources: Resources, listener: Listener
    ) -> StrategyRun:
        """Return the run of the strategy, ready for `restore`.

        Parameters
        ----------
        client, resources, listener
            The cluster, the settings that do not change the vectors, and the function that is called with progress.
        run
            The text, the words and the settings.
        folder
            The run's folder, which may have its checkpoints.
        length
            Number of corpus positions of an epoch.
        """


def _no_changes(params: Params, text: Text, workers: Workers) -> Iterator[Mapping[str, Any]]:
    """Yield no settings: "auto" compares the strategy with its defaults alone."""
    yield {}


def _describe_rounds(params: Mapping[str, Any], rounds: int) -> Iterator[str]:
    """Yield the number of rounds as text, unless it is 0."""
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
        The class of its settings, whose `name` is the same.
    title
        Short description for `--help`.
    find_kernel
        Function from an objective and a device to the kernel that the strategy runs; raises a ParameterError where
        there is none.
    start
        Starts a run.
    work
        Function from Params, Resources, the text and the workers that train to the description of a run's work, from
        which memory and time are computed; "auto" compares the time.
    exercise
        Calls the training kernel of a run with these Params on tiny input, on the processor, so that it is compiled;
        None where it compiles quickly.
    exercise_text
        Calls the kernels that read text, of a run with these Params, on tiny input; None where there are few.
    tried
        Function from Params, the text and the workers to values of the strategy's settings that "auto"
        compares: the plainest first, none where the strategy cannot train so few words.
    check
        Raises a ParameterError for Params that the strategy cannot train, before any text is read.
    lighter
        Function from Params to values of the strategy's settings that need less memory; empty where there are none.
    describe_run
        Function from the Params in the model's manifest and the number of rounds to what a report shows beside the
        strategy's name, such as the number of replicas and merges.
    deterministic
        Whether any number of threads of a processor gives the same bits.
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
    tried: Callable[[Params, Text, Workers], Iterator[Mapping[str, Any]]] = _no_changes
    check: Callable[[Params], None] = field(default=lambda _: None)
    lighter: Callable[[Params], Mapping[str, Any]] = field(default=lambda _: {})
    describe_run: Callable[[Mapping[str, Any], int], Iterator[str]] = _describe_rounds
    deterministic: bool = False
    honours: tuple[str, ...] = ()


def check_rounds(checkpoint: Store, manifest: Mapping[str, Any], n_rounds: int) -> None:
    """Raise a DamageError if the run of a checkpoint was cut into another number of rounds than `n_rounds`."""
    if manifest.get("rounds") != n_rounds:
        raise DamageError(
            f"{checkpoint.url} was written by an older daskw2v, which cut runs into other rounds.",
            "The same command makes it again.",
            url=checkpoint.url,
        )


def alpha_at(params: Params, share: float) -> float:
    """Return the learning rate after a share of a run, 0 to 1: it falls linearly from alpha to min_alpha."""
    alpha = start_alpha(params)
    return alpha + (params.min_alpha - alpha) * share


def even_part(start: int, stop: int, i: int, n: int) -> tuple[int, int]:
    """Return the start and the exclusive stop of part i, from 0, of n even parts of the range start..stop-1."""
    return start + (stop - start) * i // n, start + (stop - start) * (i + 1) // n


def run_in_background(function: Callable[..., T], *args: Any) -> "Future[T]":
    """Call a function in a daemon thread, which ends with this process; return the future of its result."""
    future = Future[T]()

    def call() -> None:
        try:
            future.set_result(function(*args))
        except BaseException as error:  # raised by the future's `result`
            future.set_exception(error)

    Thread(target=call, name="daskw2v-background", daemon=True).start()
    return future
