"""The training loop of all strategies: rounds, the check for divergence, history, progress, evaluation, checkpoints."""

import math
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from daskw2v.config.params import Params
from daskw2v.errors import TrainingError, counted
from daskw2v.progress import Listener, Progress
from daskw2v.store.storage import Store
from daskw2v.training.loop import checkpoint
from daskw2v.training.loop.strategy import ModelRows, RoundReport, StrategyRun, TaskTotals, WorkerShares


class TrainingResult(NamedTuple):
    """The result of a run that is trained to its end.

    Parameters
    ----------
    history
        An entry for each round: progress, words, pairs, loss, alpha, seconds, and those of them in which kernels were
        compiled.
    shares
        The share of each worker since this client began.
    threads, facts
        As in `strategy.StrategyRun`.
    stopped
        Why the run was stopped before its last round; None where it was not.
    """

    history: list[dict[str, Any]]
    shares: WorkerShares
    threads: int
    facts: Mapping[str, Any]
    stopped: str | None = None


class Watch(Protocol):
    """Watches a run while it trains; `events.RunWatch` says more."""

    @property
    def reason(self) -> str | None:
        """Why the run is to be stopped after the last round that ended."""

    def restored(self, history: Sequence[dict[str, Any]]) -> None:
        """Take note of the rounds that an earlier call trained."""

    def looks_at(self, number: int) -> bool:
        """Return whether the model is needed after a round."""

    def may_stop(self, number: int) -> bool:
        """Return whether the run may be stopped after a round: the next one cannot begin before."""

    def ended(self, entry: dict[str, Any], rows: ModelRows | None) -> None:
        """Take note of a round's entry of the history, which results may be added to, and of the model after it."""

    def settle(self) -> None:
        """Wait for results."""

    def saved(self) -> None:
        """Take note of a checkpoint after the last round."""


def train_rounds(
    run: StrategyRun,
    place: Store,
    total: int,
    checkpoint_seconds: float,
    listener: Listener,
    watch: Watch,
) -> TrainingResult:
    """Train a run to its end, from its last checkpoint if there is one; or until it is stopped.

    A checkpoint is written between two rounds, when none is under way. Training then goes on from the checkpoint: the
    scheduler keeps no history of it, and a worker that is lost costs the rounds since then, never the run.

    Parameters
    ----------
    run
        The run.
    place
        Its folder.
    total
        Corpus positions over all epochs.
    checkpoint_seconds
        As in Resources.
    listener
        Called with the progress of each report.
    watch
        Called after each round; it may stop the run.

    Raises
    ------
    TrainingError
        If the model is no longer finite, or a task keeps killing its workers.
    """
    history, shares = _restore(run, place), WorkerShares()
    watch.restored(history)
    coming = len(history)
    waiting: deque[tuple[int, Iterator[RoundReport]]] = deque()
    saved = began = time.monotonic()

    def due() -> bool:
        return time.monotonic() - saved >= checkpoint_seconds

    def ahead() -> int:
        """Return how many rounds may be under way together with the coming one."""
        return 1 if due() or (waiting and watch.may_stop(coming - 1)) else run.ahead

    while waiting or (coming < len(run) and watch.reason is None):
        if coming < len(run) and watch.reason is None and len(waiting) < ahead():
            waiting.append((coming, run.play(coming, watch.looks_at)))
            coming += 1
            continue
        number, reports = waiting.popleft()
        totals, seconds = list[TaskTotals](), 0.0
        for report in reports:
            check_finite(f"A {run.trained} in {run.unit} {number}", report.totals, report.alpha, place)
            shares.add(report.totals)
            totals += report.totals
            seconds = time.monotonic() - began if report.seconds is None else seconds + report.seconds
            entry = entry_of(number, report, totals, seconds)
            listener(progress_of(entry, total))
        history.append({**entry, **report.facts})
        watch.ended(history[-1], report.rows)
        del report  # which holds the rows of a round that the next one replaces
        if due() and not waiting and coming < len(run) and run.can_stop(coming) and watch.reason is None:
            watch.settle()
            _save(run, place, coming, history)
            watch.saved()
            saved = time.monotonic()
        began = time.monotonic()
    watch.settle()
    return TrainingResult(history, shares, run.threads, run.facts, watch.reason if coming < len(run) else None)


def _restore(run: StrategyRun, place: Store) -> list[dict[str, Any]]:
    """Restore a run; return the history of the rounds that are done."""
    found = checkpoint.newest(place)
    if found is None:
        run.restore(0, None, {})
        return []
    store, manifest = found
    run.restore(int(manifest[f"next_{run.unit}"]), store, manifest)
    return list(manifest["history"])


def _save(run: StrategyRun, place: Store, number: int, history: list[dict[str, Any]]) -> None:
    """Write the checkpoint before a round, manifest last; let the run go on from it."""
    store = checkpoint.folder(place, number)
    facts = run.save_checkpoint(store)
    checkpoint.finish(place, store, {f"next_{run.unit}": number, **facts, "history": history})
    run.restore(number, store, facts)


def check_finite(what: str, totals: Iterable[TaskTotals], alpha: float, place: Store) -> None:
    """Refuse a model that diverged.

    Raises
    ------
    TrainingError
        If a task's rows or loss are not finite.
    """
    if not all(total.finite and math.isfinite(total.loss) for total in totals):
        raise TrainingError(
            f"{what} holds NaN or infinity (alpha={alpha:.4g}); nothing is published.",
            f"Train with a lower alpha; {place.url} keeps the last good checkpoint.",
        )


def check_pairs(history: Iterable[Mapping[str, Any]], words: int, params: Params) -> None:
    """Refuse a model that learned nothing, since no word stood beside another one.

    Parameters
    ----------
    history
        As in `TrainingResult`.
    words
        Words of the vocabulary.
    params
        The settings of the run.

    Raises
    ------
    TrainingError
        If no pair was trained in the whole run.
    """
    if any(entry["pairs"] for entry in history):
        return
    all_kept = "sample=0, which keeps all words, " if params.sample else ""
    raise TrainingError(
        f"No pair of words was left to train, of a vocabulary of {counted(words, 'word')}: none stood within "
        f"window={params.window} of another in its sentence, among words that occur min_count={params.min_count} times "
        f"and that sample={params.sample:g} left; nothing is published.",
        f"Give sentences of several words, a line each; or {all_kept}a lower min_count, or a longer window.",
    )


def entry_of(number: int, report: RoundReport, totals: Iterable[TaskTotals], seconds: float) -> dict[str, Any]:
    """Return the history's entry of a round, from its last report and the totals of all its tasks."""
    done = list(totals)
    return {
        "round": number,
        "progress": report.progress,
        "words": sum(t.words for t in done) + report.words,
        "pairs": sum(t.pairs for t in done),
        "loss": sum(t.loss for t in done),
        "alpha": report.alpha,
        "seconds": round(seconds, 4),
        "compiling": round(min(max((t.compiling for t in done), default=0.0), seconds), 4),
    }


def words_per_second(history: Sequence[Mapping[str, Any]]) -> float:
    """Return the words of entries by their seconds, less those in which kernels were compiled."""
    seconds = sum(entry["seconds"] - entry.get("compiling", 0.0) for entry in history)  # earlier checkpoints have none
    return float(sum(entry["words"] for entry in history) / max(seconds, 1e-3))


def progress_of(entry: Mapping[str, Any], total: int) -> Progress:
    """Return the progress of an entry, for a listener; `total` is all corpus positions over all epochs."""
    return Progress(
        "train",
        entry["progress"],
        total,
        "tokens",
        words_per_second=words_per_second([entry]),
        loss=entry["loss"] / entry["pairs"] if entry["pairs"] else None,
    )
