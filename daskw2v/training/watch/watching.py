"""What looks at a run while it trains: evaluation sets, held-out text and callbacks."""

from collections.abc import Callable, Sequence

from daskw2v.progress import Listener
from daskw2v.training.loop.strategy import ModelRows, StrategyRun
from daskw2v.training.watch.evaluation import TrainingEvaluation
from daskw2v.training.watch.events import Callbacks, TrainedRun
from daskw2v.training.watch.held_out import HeldOutText
from daskw2v.training.watch.measurements import HistoryEntry, Measurements


class RunWatch:
    """Measures rounds, and tells callbacks of them when all that is measured of them is there.

    Training waits for that only after rounds after which a callback may stop it, and before a checkpoint is written,
    whose history then has all results.

    Parameters
    ----------
    run
        The run, as it is told.
    training
        The same, as it is trained.
    callbacks
        Who is told.
    measurements
        Results that are waited for.
    evaluation
        Evaluates rounds; None without evaluation sets.
    every
        It evaluates every n-th round, and the last one; None for the last one only.
    held_out
        Measures the loss there after each epoch; None if no text is held out.
    listener
        Is told what becomes of callbacks.
    rows_of
        Returns tables with the rows of words as they are looked at, given those that are trained.
    """

    def __init__(
        self,
        run: TrainedRun,
        training: StrategyRun,
        callbacks: Callbacks,
        measurements: Measurements,
        evaluation: TrainingEvaluation | None,
        every: int | None,
        held_out: HeldOutText | None,
        listener: Listener,
        rows_of: Callable[[ModelRows], ModelRows],
    ) -> None:
        self._run, self._training, self._callbacks, self._measurements = run, training, callbacks, measurements
        self._evaluation, self._every, self._held_out, self._listener = evaluation, every, held_out, listener
        self._rows_of = rows_of
        self._untold: list[HistoryEntry] = []
        self._last = -1  # round that ended

    @property
    def reason(self) -> str | None:
        """Why the run is to be stopped after the last round that ended."""
        return self._callbacks.reason_after(self._last)

    def restored(self, history: Sequence[HistoryEntry]) -> None:
        """Take note of the rounds that an earlier call trained."""
        self._callbacks.restored(self._run, history, self._listener)
        self._last = len(history) - 1

    def looks_at(self, number: int) -> bool:
        """Tell whether the model is needed after a round."""
        return self._evaluates(number) or self._holds_out(number) or self.may_stop(number)

    def may_stop(self, number: int) -> bool:
        """Tell whether the run may be stopped after a round: the next one cannot begin before."""
        return not self._is_last(number) and self._callbacks.may_stop(epoch_ends=self._ends_epoch(number))

    def ended(self, entry: HistoryEntry, rows: ModelRows | None) -> None:
        """Take note of the entry of a round, which results are added to, and of the model after it."""
        self._last = number = entry["round"]
        self._measurements.note()
        self._measure(entry, rows, scores=self._evaluates(number), loss=self._holds_out(number))
        self._untold.append(entry)
        if self.may_stop(number):
            self._measurements.finish()
        self._tell()
        if self.reason is not None:  # then this is the model that is published
            self._measure(entry, rows, scores="scores" not in entry, loss="held_out_loss" not in entry)

    def settle(self) -> None:
        """Wait for all that is measured, and tell of it."""
        self._measurements.finish()
        self._tell()

    def saved(self) -> None:
        """Tell of a checkpoint after the last round."""
        self._callbacks.checkpoint_written(self._listener)

    def _measure(self, entry: HistoryEntry, rows: ModelRows | None, *, scores: bool, loss: bool) -> None:
        needed = self._is_last(entry["round"]) or self.may_stop(entry["round"])
        if rows is not None and (scores or loss):
            rows = self._rows_of(rows)
        if self._evaluation is not None and scores:
            self._evaluation.measure(entry, rows, self._measurements, needed=needed)
        if self._held_out is not None and loss:
            self._held_out.measure(entry, rows, self._measurements)

    def _tell(self) -> None:
        while self._untold and self._measurements.knows(self._untold[0]):
            self._callbacks.round_ended(self._untold.pop(0), self._listener)

    def _evaluates(self, number: int) -> bool:
        if self._evaluation is None:
            return False
        asked = self._every is not None and (number + 1) % self._every == 0
        stops = self._run.params.early_stopping is not None and self.may_stop(number)
        return asked or stops or self._is_last(number)

    def _holds_out(self, number: int) -> bool:
        return self._held_out is not None and (self._is_last(number) or self._ends_epoch(number))

    def _is_last(self, number: int) -> bool:
        return number == len(self._training) - 1

    def _ends_epoch(self, number: int) -> bool:
        before = self._training.progress_after(number - 1) if number else 0
        return self._run.ends_epoch(before, self._training.progress_after(number))
