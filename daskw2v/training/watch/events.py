"""The events of a run while it trains: its rounds are measured, and callbacks are called for each of them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from daskw2v.config.params import Params
from daskw2v.errors import ParameterError
from daskw2v.models.queries.vectors import Vectors
from daskw2v.progress import Listener, Progress
from daskw2v.training.loop.strategy import ModelRows, StrategyRun
from daskw2v.training.watch.callbacks import Callback, TrainingRecord
from daskw2v.training.watch.early_stopping import EarlyStopper
from daskw2v.training.watch.held_out import HeldOutText
from daskw2v.training.watch.measurements import HistoryEntry, Measurements, TrainingEvaluation
from daskw2v.training.watch.stopping_settings import EarlyStopping

_EMPTY: Mapping[str, Any] = MappingProxyType({})


class TrainedRun(NamedTuple):
    """A run, as callbacks know it.

    Parameters
    ----------
    name
        Its identity.
    work
        URL of its work directory.
    params
        Its Params.
    total
        Corpus positions over all epochs.
    plan
        Its plan, as in the manifest.
    """

    name: str
    work: str
    params: Params
    total: int
    plan: Mapping[str, Any] = _EMPTY

    def epochs_after(self, progress: int) -> int:
        """Return the number of epochs that are done at a progress."""
        return progress * self.params.epochs // max(1, self.total)

    def ends_epoch(self, before: int, after: int) -> bool:
        """Return whether an epoch ends in a round that begins and ends with this progress."""
        return self.epochs_after(before) < self.epochs_after(after)


class Callbacks:
    """The callbacks of one call of `train`, `retrain` or `train_model`.

    Parameters
    ----------
    callbacks
        The callbacks of the call.
    loggers
        The loggers that Resources ask for.
    monitored
        `early_stopping.monitored_content`.

    Raises
    ------
    ParameterError
        If an object is no callback, or may stop a run by a rule that does not distinguish it from others.

    Attributes
    ----------
    rules
        The rules by which the run may be stopped, besides early stopping by its Params, as they were before training.
    """

    def __init__(
        self, callbacks: Sequence[Callback] = (), loggers: Sequence[Callback] = (), monitored: Sequence[str] = ()
    ) -> None:
        if not isinstance(callbacks, list | tuple):
            raise ParameterError(f"callbacks is a {type(callbacks).__name__}, not a list.", "Give a list of callbacks.")
        for one in callbacks:
            if not isinstance(one, Callback):
                raise ParameterError(
                    f"callbacks has a {type(one).__name__}, which is no daskw2v.Callback.",
                    "Give an object of a class that is derived from daskw2v.Callback.",
                )
            if one.stops not in (None, "round", "epoch"):
                raise ParameterError(
                    f"{_named(one)}.stops is {one.stops!r}.", 'Give "round" or "epoch"; or None if it only watches.'
                )
        self._callbacks = [*callbacks, *loggers]
        self.rules = (*monitored, *sorted(_rule_of(one) for one in self._callbacks if one.stops is not None))
        self._stoppers: list[Callback] = []  # by Params, anew for each run
        self._run: TrainedRun | None = None
        self._reported: list[HistoryEntry] = []
        self._ended = self._restored = False
        self._stop: tuple[int, str] | None = None  # the round after which the run stops, and why

    def reason_after(self, number: int) -> str | None:
        """Return why the run is to be stopped, if it is to be after a round or was to be before."""
        return self._stop[1] if self._stop is not None and self._stop[0] <= number else None

    def may_stop(self, *, epoch_ends: bool) -> bool:
        """Return whether a callback may stop a run after a round, in which an epoch ends or not."""
        stopping = ("round", "epoch") if epoch_ends else ("round",)
        return any(one.stops in stopping for one in (*self._stoppers, *self._callbacks))

    def restored(self, run: TrainedRun, history: Sequence[HistoryEntry], listener: Listener) -> None:
        """Report the rounds of a run that are done, but for rounds that this call reported before."""
        if self._run is None or self._run.name != run.name:
            self._run, self._reported, self._ended, self._stop = run, [], False, None
            settings = EarlyStopping.find(run.params)
            self._stoppers = [] if settings is None else [EarlyStopper(settings)]
        for entry in history:
            self.round_ended(entry, listener, restored=True)

    def round_ended(self, entry: HistoryEntry, listener: Listener, *, restored: bool = False) -> None:
        """Report a round; callbacks may stop the run then, unless the round is restored."""
        assert self._run is not None
        if entry["round"] < len(self._reported):
            return
        before = self._reported[-1]["progress"] if self._reported else 0
        self._reported.append(entry)
        self._restored = restored
        ends = self._run.ends_epoch(before, entry["progress"])
        reasons = [self._each("on_round", self._record([entry]), listener, ("round",))]
        if ends:
            record = self._record(self._epoch(before))
            reasons.append(self._each("on_epoch", record, listener, ("round", "epoch")))
        reason = next(filter(None, reasons), None)
        if reason is not None and not restored:
            self._stop = entry["round"], reason

    def checkpoint_written(self, listener: Listener) -> None:
        """Report a checkpoint after the last round that was reported."""
        self._each("on_checkpoint", self._record(self._reported[-1:]), listener)

    def published(self, run: TrainedRun, vectors: Vectors, listener: Listener) -> None:
        """Report the published version of a run, and before that, all rounds that were not reported yet."""
        run = run._replace(plan=MappingProxyType(dict(vectors.metadata.get("plan", {}))))
        self.restored(run, vectors.metadata["metrics"]["history"], listener)
        self.ended(listener, version=vectors.url, metadata=MappingProxyType(dict(vectors.metadata)))

    def ended(self, listener: Listener, **known: Any) -> None:
        """Report the end of a run, with the facts of its version; none where no version was published."""
        if self._reported and not self._ended:
            self._ended = True
            self._each("on_end", self._record(self._reported, **known), listener)

    def _epoch(self, before: int) -> list[HistoryEntry]:
        """Return the rounds since the last end of an epoch; `before` is the progress before the last round."""
        assert self._run is not None
        done = self._run.epochs_after(before)
        first = next(n for n, entry in enumerate(self._reported) if self._run.epochs_after(entry["progress"]) >= done)
        starts = first + 1 if done else 0
        return self._reported[starts:]

    def _record(self, entries: Sequence[HistoryEntry], **more: Any) -> TrainingRecord:
        assert self._run is not None
        run, last = self._run, entries[-1]
        words, pairs, loss, seconds = (sum(e[name] for e in entries) for name in ("words", "pairs", "loss", "seconds"))
        return TrainingRecord(
            run=run.name, work=run.work, params=run.params, plan=run.plan, round=last["round"],
            epoch=run.epochs_after(last["progress"]), progress=last["progress"] / max(1, run.total),
            words=words, pairs=pairs, loss=loss / pairs if pairs else None, alpha=last["alpha"], seconds=seconds,
            held_out_loss=last.get("held_out_loss"), scores=MappingProxyType(dict(last.get("scores", {}))),
            restored=self._restored, **{"metadata": _EMPTY, **more},
        )  # fmt: skip

    def _each(
        self, method: str, record: TrainingRecord, listener: Listener, stopping: Sequence[str] = ()
    ) -> str | None:
        """Call a method of all callbacks; return the first reason to stop that one gives."""
        reasons: list[str] = []
        for one in (*self._stoppers, *self._callbacks):
            try:
                reason = getattr(one, method)(record)
            except Exception as error:
                if one.stops is not None:
                    raise
                self._callbacks = [other for other in self._callbacks if other is not one]
                message = f"{_named(one)} failed in {method} and is not called again: {type(error).__name__}: {error}"
                listener(Progress("callbacks", 0, 0, "", message=message))
                continue
            if reason is not None:
                _check_reason(one, method, reason, stopping)
                reasons.append(reason)
        return reasons[0] if reasons else None


def _rule_of(one: Callback) -> str:
    """Return the rule of a callback that may stop a run; it must be unique, and equal in the next process."""
    has_rule = "__dataclass_fields__" in vars(type(one)) or type(one).rule is not Callback.rule
    unknown = vars(one).keys() - getattr(one, "__dataclass_fields__", {}).keys()
    if unknown and not has_rule:
        raise ParameterError(
            f"{_named(one)} may stop a run and has {', '.join(sorted(unknown))}, which its rule does not name.",
            "Make the class a dataclass, whose fields are in the rule, or override the property rule.",
        )
    if " at 0x" in one.rule:
        raise ParameterError(
            f"{_named(one)}.rule holds an address, so the run would not be found again: {one.rule}.",
            "Leave the field out by field(repr=False), give it a repr that says its value, or override the property "
            "rule.",
        )
    return one.rule


def _check_reason(one: Callback, method: str, reason: object, stopping: Sequence[str]) -> None:
    """Refuse a return value that cannot stop a run, and would be ignored otherwise."""
    if not isinstance(reason, str) or not reason:
        raise ParameterError(
            f"{_named(one)}.{method} returned a {type(reason).__name__}: {reason!r}.",
            "Return the reason to stop, as text, or None.",
        )
    if one.stops not in stopping:
        raise ParameterError(
            f"{_named(one)}.{method} returned a reason to stop, {reason!r}, but {_named(one)}.stops is {one.stops!r}.",
            'Set stops = "round" to stop from on_round, or stops = "epoch" to stop from on_epoch alone.',
        )


def _named(one: Callback) -> str:
    return type(one).__qualname__


@dataclass
class RunWatch:
    """Measures rounds, and reports them to callbacks when all their measurements are there.

    Training waits for that only after rounds after which a callback may stop it, and before a checkpoint is written,
    whose history then has all results.

    Parameters
    ----------
    run
        The run as events name it.
    training
        The run as its strategy trains it.
    callbacks
        The callbacks to call.
    measurements
        The results to wait for.
    evaluation
        Evaluates rounds; None without evaluation sets.
    every
        It evaluates every n-th round, and the last one; None for the last one only.
    held_out
        Measures the loss there after each epoch; None if no text is held out.
    listener
        Called with the progress of callbacks.
    rows_of
        Function from the trained tables to tables with the rows of words that are measured.
    """

    run: TrainedRun
    training: StrategyRun
    callbacks: Callbacks
    measurements: Measurements
    evaluation: TrainingEvaluation | None
    every: int | None
    held_out: HeldOutText | None
    listener: Listener
    rows_of: Callable[[ModelRows], ModelRows]
    _waiting: list[HistoryEntry] = field(default_factory=list, init=False)
    _last: int = field(default=-1, init=False)  # round that ended

    @property
    def reason(self) -> str | None:
        """Why the run is to be stopped after the last round that ended."""
        return self.callbacks.reason_after(self._last)

    def rounds_restored(self, history: Sequence[HistoryEntry]) -> None:
        """Report the rounds that an earlier call trained to the callbacks."""
        self.callbacks.restored(self.run, history, self.listener)
        self._last = len(history) - 1

    def needs_rows(self, number: int) -> bool:
        """Return whether `round_ended` needs the model's rows after the round of this number."""
        return self._evaluates(number) or self._holds_out(number) or self.may_stop(number)

    def may_stop(self, number: int) -> bool:
        """Return whether the run may be stopped after the round of this number: the next round waits for that."""
        return not self._is_last(number) and self.callbacks.may_stop(epoch_ends=self._ends_epoch(number))

    def round_ended(self, entry: HistoryEntry, rows: ModelRows | None) -> None:
        """Measure the model after a round; results are added to the history's entry of the round."""
        self._last = number = entry["round"]
        self.measurements.note()
        self._measure(entry, rows, scores=self._evaluates(number), loss=self._holds_out(number))
        self._waiting.append(entry)
        if self.may_stop(number):
            self.measurements.finish()
        self._report()
        if self.reason is not None:  # then this is the model that is published
            self._measure(entry, rows, scores="scores" not in entry, loss="held_out_loss" not in entry)

    def await_results(self) -> None:
        """Wait for all measurements, and report the measured rounds to the callbacks."""
        self.measurements.finish()
        self._report()

    def checkpoint_written(self) -> None:
        """Report a checkpoint that was written after the last round to the callbacks."""
        self.callbacks.checkpoint_written(self.listener)

    def _measure(self, entry: HistoryEntry, rows: ModelRows | None, *, scores: bool, loss: bool) -> None:
        needed = self._is_last(entry["round"]) or self.may_stop(entry["round"])
        if rows is not None and (scores or loss):
            rows = self.rows_of(rows)
        if self.evaluation is not None and scores:
            self.evaluation.measure(entry, rows, self.measurements, needed=needed)
        if self.held_out is not None and loss:
            self.held_out.measure(entry, rows, self.measurements)

    def _report(self) -> None:
        while self._waiting and self.measurements.knows(self._waiting[0]):
            self.callbacks.round_ended(self._waiting.pop(0), self.listener)

    def _evaluates(self, number: int) -> bool:
        if self.evaluation is None:
            return False
        asked = self.every is not None and (number + 1) % self.every == 0
        stops = self.run.params.early_stopping is not None and self.may_stop(number)
        return asked or stops or self._is_last(number)

    def _holds_out(self, number: int) -> bool:
        return self.held_out is not None and (self._is_last(number) or self._ends_epoch(number))

    def _is_last(self, number: int) -> bool:
        return number == len(self.training) - 1

    def _ends_epoch(self, number: int) -> bool:
        before = self.training.progress_after(number - 1) if number else 0
        return self.run.ends_epoch(before, self.training.progress_after(number))
