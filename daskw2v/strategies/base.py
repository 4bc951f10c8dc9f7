"""What a strategy is: a value that says how workers meet; and what all strategies share."""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from distributed import Client

from daskw2v import compiling
from daskw2v.errors import TrainingError
from daskw2v.objectives.base import FloatArray, Objective
from daskw2v.params import Params, Resources
from daskw2v.progress import Listener, Progress
from daskw2v.sampling.run import Run
from daskw2v.storage import Store
from daskw2v.wording import counted


class Totals(NamedTuple):
    """What a training task did: pairs, their summed loss, whether all is finite; corpus words, if it read any.

    And where, how long it took, and how much of that kernels were compiled there.
    """

    pairs: int
    loss: float
    finite: bool
    words: int = 0
    worker: str = ""
    seconds: float = 0.0
    compiling: float = 0.0


class Clock:
    """Measures a task: its seconds, and how many of them its process compiled kernels."""

    def __init__(self) -> None:
        self._began, self._compiled = time.perf_counter(), compiling.here.seconds

    def read(self) -> tuple[float, float]:
        """Return both, as `Totals` ends with them."""
        return time.perf_counter() - self._began, compiling.here.seconds - self._compiled


class Share(NamedTuple):
    """What one worker did: pairs, and seconds of its tasks."""

    pairs: int = 0
    seconds: float = 0.0


class Shares(dict[str, Share]):
    """What each worker did since this client began, by its address."""

    def add(self, totals: Iterable[Totals]) -> None:
        """Count what tasks did."""
        for t in totals:
            pairs, seconds = self.get(t.worker, Share())
            self[t.worker] = Share(pairs + t.pairs, seconds + t.seconds)


class Outcome(NamedTuple):
    """A trained run.

    Parameters
    ----------
    history
        An entry for each round or pass: progress, words, pairs, loss, alpha, seconds, and those of them in which
        kernels were compiled.
    threads
        Threads of a training task.
    shares
        What each worker did.
    save
        Writes the tables to a store, from the workers that hold them.
    facts
        What else the model's manifest shall tell, as JSON types.
    """

    history: list[dict[str, Any]]
    threads: int
    shares: Shares
    save: Callable[[Store], None]
    facts: dict[str, Any] = {}  # noqa: RUF012 (never changed)


# (entry of the history, what joins the parts to the input table, parts, or None where no worker could hold all): may
# evaluate that, without being waited for
Judge = Callable[[dict[str, Any], Callable[..., FloatArray], Sequence[Any] | None], None]
# (client, run, place, positions of an epoch, resources, listener, judge)
Train = Callable[[Client, Run, Store, int, Resources, Listener, Judge], Outcome]


@dataclass(frozen=True)
class Strategy:
    """One way for workers to meet.

    Parameters
    ----------
    name
        As in Params.
    options, resource_options
        The fields of Params and of Resources that this strategy reads and others may not.
    find_kernel
        Returns the kernel that it runs, for an objective and a device, or raises a ParameterError.
    check
        Refuses other Params that the strategy has no way to train, before any text is read.
    train
        Trains a run to its end, or goes on with it from its last checkpoint.
    """

    name: str
    options: tuple[str, ...]
    resource_options: tuple[str, ...]
    find_kernel: Callable[[Objective, str], Any]
    check: Callable[[Params], None]
    train: Train


def check_finite(what: str, totals: Iterable[Totals], alpha: float, place: Store) -> None:
    """Refuse what diverged.

    Raises
    ------
    TrainingError
        If one of the trained holds NaN or infinity, or its loss is none.
    """
    if not all(total.finite and math.isfinite(total.loss) for total in totals):
        raise TrainingError(
            f"{what} holds NaN or infinity (alpha={alpha:.4g}); nothing is published.",
            f"Train with a lower alpha; {place.url} keeps the last good checkpoint.",
        )


def check_pairs(history: Iterable[Mapping[str, Any]], words: int, params: Params) -> None:
    """Refuse what learned nothing, since no word stood beside another one.

    Parameters
    ----------
    history
        As in `Outcome`.
    words
        Words of the vocabulary.
    params
        What it was trained with.

    Raises
    ------
    TrainingError
        If no pair was trained in the whole run.
    """
    if any(entry["pairs"] for entry in history):
        return
    raise TrainingError(
        f"No pair of words was left to train, of a vocabulary of {counted(words, 'word')}: none stood within "
        f"window={params.window} of another in its sentence, among words that occur min_count={params.min_count} times "
        f"and that sample={params.sample:g} left; nothing is published.",
        "Give sentences of several words, a line each; or lower min_count, raise sample (0 keeps all words), or give a "
        "longer window.",
    )


def entry_of(number: int, progress: int, totals: Iterable[Totals], alpha: float, seconds: float) -> dict[str, Any]:
    """Return the history's entry of a round or pass, which ended at `progress` corpus positions over all epochs."""
    done = list(totals)
    return {
        "round": number,
        "progress": progress,
        "words": sum(t.words for t in done),
        "pairs": sum(t.pairs for t in done),
        "loss": sum(t.loss for t in done),
        "alpha": alpha,
        "seconds": round(seconds, 4),
        "compiling": round(min(max((t.compiling for t in done), default=0.0), seconds), 4),
    }


def words_per_second(history: Sequence[Mapping[str, Any]]) -> float:
    """Return the words of entries by their seconds, less those in which kernels were compiled."""
    seconds = sum(entry["seconds"] - entry.get("compiling", 0.0) for entry in history)  # earlier checkpoints have none
    return float(sum(entry["words"] for entry in history) / max(seconds, 1e-3))


def progress_of(entry: dict[str, Any], total: int) -> Progress:
    """Return what a listener is told of an entry; `total` is all corpus positions over all epochs."""
    return Progress(
        "train",
        entry["progress"],
        total,
        "tokens",
        words_per_second=words_per_second([entry]),
        loss=entry["loss"] / entry["pairs"] if entry["pairs"] else None,
    )
