"""The training loop of all strategies: rounds, the check for divergence, history, progress, evaluation, checkpoints."""

import math
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from daskw2v.config.params import Params
from daskw2v.errors import TrainingError, counted
from daskw2v.progress import Listener, Progress
from daskw2v.store.storage import Store
from daskw2v.training.loop import checkpoint
from daskw2v.training.loop.strategy import RoundReport, StrategyRun, TaskTotals, WorkerShares
from daskw2v.training.watch.events import RunWatch


class TrainingResult(NamedTuple):
    """The result of a run that was trained to its last round, or until it was stopped.

    Parameters
    ----------
    history
        An entry for each round, also of earlier calls: the values of `make_entry`, the strategy's facts, measurements.
    shares
        The share of each worker in the rounds that this call trained.
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


def train_rounds(
    run: StrategyRun,
    folder: Store,
    total: int,
    checkpoint_seconds: float,
    listener: Listener,
    watch: RunWatch,
) -> TrainingResult:
    """Train a run to its end, from its last checkpoint if there is one; or until it is stopped.

    A checkpoint is written between two rounds, when none is under way. Training then goes on from the checkpoint: the
    scheduler keeps no history of it, and a worker that is lost costs the rounds since then, never the run.

    Parameters
    ----------
    run
        The run, as its strategy trains it.
    folder
        The run's folder, which has its checkpoints.
    total
        Corpus positions over all epochs.
    checkpoint_seconds
        Seconds between two checkpoints, at least, as in Resources.
    listener
        Called with the progress of each report.
    watch
        Called after each round; it may stop the run.

    Raises
    ------
    TrainingError
        If the model is no longer finite, or a task keeps killing its workers.
    """
    history, shares = _restore(run, folder), WorkerShares()
    watch.rounds_restored(history)
    coming = len(history)  # number of the round that is submitted next
    waiting: deque[tuple[int, Iterator[RoundReport]]] = deque()
    saved_at = began = time.monotonic()

    def is_checkpoint_due() -> bool:
        return time.monotonic() - saved_at >= checkpoint_seconds

    def max_waiting() -> int:
        """Return the maximum number of rounds that are under way, the coming one included."""
        return 1 if is_checkpoint_due() or (waiting and watch.may_stop(coming - 1)) else run.ahead

    while waiting or (coming < len(run) and watch.reason is None):
        if coming < len(run) and watch.reason is None and len(waiting) < max_waiting():
            waiting.append((coming, run.play(coming, watch.needs_rows)))
            coming += 1
            continue
        number, reports = waiting.popleft()
        totals, seconds = list[TaskTotals](), 0.0
        for report in reports:
            check_finite(f"A {run.trained} in {run.unit} {number}", report.totals, report.alpha, folder)
            shares.add(report.totals)
            totals += report.totals
            seconds = time.monotonic() - began if report.seconds is None else seconds + report.seconds
            entry = make_entry(number, report, totals, seconds)
            listener(progress_from_entry(entry, total))
        history.append({**entry, **report.facts})
        watch.round_ended(history[-1], report.rows)
        del report  # which holds the rows of a round that the next one replaces
        if is_checkpoint_due() and not waiting and coming < len(run) and run.can_stop(coming) and watch.reason is None:
            watch.await_results()
            _save(run, folder, coming, history)
            watch.checkpoint_written()
            saved_at = time.monotonic()
        began = time.monotonic()
    watch.await_results()
    return TrainingResult(history, shares, run.threads, run.facts, watch.reason if coming < len(run) else None)


def _restore(run: StrategyRun, folder: Store) -> list[dict[str, Any]]:
    """Restore a run from the newest checkpoint in its folder; return the history's entries of the rounds before it."""
    newest = checkpoint.find_newest(folder)
    if newest is None:
        run.restore(0, None, {})
        return []
    store, manifest = newest
    run.restore(int(manifest[f"next_{run.unit}"]), store, manifest)
    return list(manifest["history"])


def _save(run: StrategyRun, folder: Store, number: int, history: list[dict[str, Any]]) -> None:
    """Write the checkpoint before the round of this number, manifest last, and let the run go on from it."""
    store = checkpoint.folder(folder, number)
    facts = run.save_checkpoint(store)
    checkpoint.finish(folder, store, {f"next_{run.unit}": number, **facts, "history": history})
    run.restore(number, store, facts)


def check_finite(subject: str, totals: Iterable[TaskTotals], alpha: float, folder: Store) -> None:
    """Check that the rows and the loss of tasks are finite: otherwise the model diverged.

    Parameters
    ----------
    subject
        What the tasks trained, as the message begins: "A replica in round 3".
    totals
        Totals of the tasks.
    alpha
        Learning rate, for the message.
    folder
        The run's folder, which has the last checkpoint.

    Raises
    ------
    TrainingError
        If a task's rows or loss are not finite.
    """
    if not all(total.finite and math.isfinite(total.loss) for total in totals):
        raise TrainingError(
            f"{subject} holds NaN or infinity (alpha={alpha:.4g}); nothing is published.",
            f"Train with a lower alpha; {folder.url} keeps the last good checkpoint.",
        )


def check_pairs(history: Iterable[Mapping[str, Any]], n_words: int, params: Params) -> None:
    """Check that a run trained a pair: it trains none if no word stands beside another one.

    Parameters
    ----------
    history
        As in `TrainingResult`.
    n_words
        Number of words of the vocabulary.
    params
        The settings of the run.

    Raises
    ------
    TrainingError
        If no pair was trained in the run.
    """
    if any(entry["pairs"] for entry in history):
        return
    all_kept = "sample=0, which keeps all words, " if params.sample else ""
    raise TrainingError(
        f"No pair of words was left to train, of a vocabulary of {counted(n_words, 'word')}: none stood within "
        f"window={params.window} of another in its sentence, among words that occur min_count={params.min_count} times "
        f"and that sample={params.sample:g} left; nothing is published.",
        f"Give sentences of several words, a line each; or {all_kept}a lower min_count, or a longer window.",
    )


def make_entry(number: int, report: RoundReport, totals: Iterable[TaskTotals], seconds: float) -> dict[str, Any]:
    """Return the history's entry of a round: words, pairs and loss are sums, progress counts positions of all epochs.

    Parameters
    ----------
    number
        Number of the round.
    report
        The round's last report until now.
    totals
        Totals of all tasks of the round that ended until now.
    seconds
        Seconds of the round until now.
    """
    tasks = list(totals)
    return {
        "round": number,
        "progress": report.progress,
        "words": sum(t.words for t in tasks) + report.words,
        "pairs": sum(t.pairs for t in tasks),
        "loss": sum(t.loss for t in tasks),
        "alpha": report.alpha,
        "seconds": round(seconds, 4),
        "compiling": round(min(max((t.compiling for t in tasks), default=0.0), seconds), 4),
    }


def words_per_second(history: Sequence[Mapping[str, Any]]) -> float:
    """Return the words by second of all entries together, without the seconds in which kernels were compiled."""
    # Entries of earlier releases' checkpoints have no seconds of compilation
    seconds = sum(entry["seconds"] - entry.get("compiling", 0.0) for entry in history)
    return float(sum(entry["words"] for entry in history) / max(seconds, 1e-3))


def progress_from_entry(entry: Mapping[str, Any], total: int) -> Progress:
    """Return the progress that a history's entry reports, of `total` corpus positions over all epochs."""
    speed, loss = words_per_second([entry]), entry["loss"] / entry["pairs"] if entry["pairs"] else None
    return Progress("train", entry["progress"], total, "tokens", words_per_second=speed, loss=loss)
