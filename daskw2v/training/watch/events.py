"""The events of a run while it trains: rounds are measured, and callbacks are called for each round."""

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
    """The facts of a run for callbacks.

    Parameters
    ----------
    name
        Name of the run, from its identity.
    work
        URL of the work directory.
    params
        The run's Params.
    total
        Corpus positions over all epochs.
    plan
        The run's plan, as in the manifest; empty before training begins.
    """

    name: str
    work: str
    params: Params
    total: int
    plan: Mapping[str, Any] = _EMPTY

    def epochs_after(self, progress: int) -> int:
        """Return the number of epochs that are complete after `progress` corpus positions."""
        return progress * self.params.epochs // max(1, self.total)

    def ends_epoch(self, before: int, after: int) -> bool:
        """Return whether an epoch ends between two points of progress, in corpus positions."""
        return self.epochs_after(before) < self.epochs_after(after)


class Callbacks:
    """The callbacks of one call of `train`, `retrain` or `train_model`, and what was reported to them.

    Parameters
    ----------
    callbacks
        The callbacks that the user passed.
    loggers
        The loggers that Resources ask for.
    monitored
        Digest of the evaluation set that may stop the run (`early_stopping.monitored_content`), if there is one.

    Raises
    ------
    ParameterError
        If an object is no callback, or may stop a run and its rule does not identify it.

    Attributes
    ----------
    rules
        The rules by which the run may be stopped, read before training, with `monitored` first.
    """

    def __init__(
        self, callbacks: Sequence[Callback] = (), loggers: Sequence[Callback] = (), monitored: Sequence[str] = ()
    ) -> None:
        if not isinstance(callbacks, list | tuple):
            raise ParameterError(f"callbacks is a {type(callbacks).__name__}, not a list.", "Give a list of callbacks.")
        for callback in callbacks:
            if not isinstance(callback, Callback):
                raise ParameterError(
                    f"callbacks has a {type(callback).__name__}, which is no daskw2v.Callback.",
                    "Give an object of a class that is derived from daskw2v.Callback.",
                )
            if callback.stops not in (None, "round", "epoch"):
                raise ParameterError(
                    f"{_class_name(callback)}.stops is {callback.stops!r}.",
                    'Give "round" or "epoch"; or None if it only watches.',
                )
        self._callbacks = [*callbacks, *loggers]
        stopping = (callback for callback in self._callbacks if callback.stops is not None)
        self.rules = (*monitored, *sorted(map(_find_rule, stopping)))
        self._stoppers: list[Callback] = []  # by Params, anew for each run
        self._run: TrainedRun | None = None
        self._reported: list[HistoryEntry] = []
        self._ended = self._restored = False
        self._stop: tuple[int, str] | None = None  # the round after which the run stops, and why

    def reason_after(self, number: int) -> str | None:
        """Return why the run is to be stopped after the round of this number, or an earlier one; None to go on."""
        return self._stop[1] if self._stop is not None and self._stop[0] <= number else None

    def may_stop(self, *, epoch_ends: bool) -> bool:
        """Return whether a callback may stop a run after a round; `epoch_ends` says whether the round ends an epoch."""
        stopping = ("round", "epoch") if epoch_ends else ("round",)
        return any(callback.stops in stopping for callback in (*self._stoppers, *self._callbacks))

    def restored(self, run: TrainedRun, history: Sequence[HistoryEntry], listener: Listener) -> None:
        """Report the rounds of a run that earlier calls trained, except rounds that this call reported before."""
        if self._run is None or self._run.name != run.name:
            self._run, self._reported, self._ended, self._stop = run, [], False, None
            settings = EarlyStopping.find(run.params)
            self._stoppers = [] if settings is None else [EarlyStopper(settings)]
        for entry in history:
            self.round_ended(entry, listener, restored=True)

    def round_ended(self, entry: HistoryEntry, listener: Listener, *, restored: bool = False) -> None:
        """Report a round, once, and the epoch that it ends; callbacks may stop the run, unless `restored` is true."""
        assert self._run is not None
        if entry["round"] < len(self._reported):
            return
        before = self._reported[-1]["progress"] if self._reported else 0
        self._reported.append(entry)
        self._restored = restored
        reasons = [self._call_each("on_round", self._make_record([entry]), listener, ("round",))]
        if self._run.ends_epoch(before, entry["progress"]):
            record = self._make_record(self._rounds_of_epoch(before))
            reasons.append(self._call_each("on_epoch", record, listener, ("round", "epoch")))
        reason = next(filter(None, reasons), None)
        if reason is not None and not restored:
            self._stop = entry["round"], reason

    def checkpoint_written(self, listener: Listener) -> None:
        """Report a checkpoint that was written after the last reported round."""
        self._call_each("on_checkpoint", self._make_record(self._reported[-1:]), listener)

    def published(self, run: TrainedRun, vectors: Vectors, listener: Listener) -> None:
        """Report the rounds of a published version that were not reported yet, and the end of the run."""
        run = run._replace(plan=MappingProxyType(dict(vectors.metadata.get("plan", {}))))
        self.restored(run, vectors.metadata["metrics"]["history"], listener)
        self.ended(listener, version=vectors.url, metadata=MappingProxyType(dict(vectors.metadata)))

    def ended(self, listener: Listener, **version_facts: Any) -> None:
        """Report the end of a run, once, with the `version` and `metadata` of its record where it was published."""
        if self._reported and not self._ended:
            self._ended = True
            self._call_each("on_end", self._make_record(self._reported, **version_facts), listener)

    def _rounds_of_epoch(self, before: int) -> list[HistoryEntry]:
        """Return the rounds since the last end of an epoch; `before` is the progress before the last round."""
        assert self._run is not None
        n_epochs = self._run.epochs_after(before)
        epochs_after = self._run.epochs_after
        last = next(n for n, entry in enumerate(self._reported) if epochs_after(entry["progress"]) >= n_epochs)
        return self._reported[last + 1 if n_epochs else 0 :]

    def _make_record(self, entries: Sequence[HistoryEntry], **more: Any) -> TrainingRecord:
        """Return the record of an event, from the history's entries of its rounds, and with `more` fields."""
        assert self._run is not None
        run, last = self._run, entries[-1]
        words, pairs, loss, seconds = (sum(e[name] for e in entries) for name in ("words", "pairs", "loss", "seconds"))
        return TrainingRecord(
            run=run.name,
            work=run.work,
            params=run.params,
            plan=run.plan,
            round=last["round"],
            epoch=run.epochs_after(last["progress"]),
            progress=last["progress"] / max(1, run.total),
            words=words,
            pairs=pairs,
            loss=loss / pairs if pairs else None,
            alpha=last["alpha"],
            seconds=seconds,
            held_out_loss=last.get("held_out_loss"),
            scores=MappingProxyType(dict(last.get("scores", {}))),
            restored=self._restored,
            **{"metadata": _EMPTY, **more},
        )

    def _call_each(
        self, method: str, record: TrainingRecord, listener: Listener, stopping: Sequence[str] = ()
    ) -> str | None:
        """Call the method of this name of all callbacks with a record; return the first reason to stop, or None.

        Callbacks whose `stops` is in `stopping` may return a reason.
        """
        reasons: list[str] = []
        for callback in (*self._stoppers, *self._callbacks):
            try:
                reason = getattr(callback, method)(record)
            except Exception as error:
                if callback.stops is not None:
                    raise
                self._callbacks = [other for other in self._callbacks if other is not callback]
                message = f"{_class_name(callback)} failed in {method} and is not called again"
                message = f"{message}: {type(error).__name__}: {error}"
                listener(Progress("callbacks", 0, 0, "", message=message))
                continue
            if reason is not None:
                _check_reason(callback, method, reason, stopping)
                reasons.append(reason)
        return reasons[0] if reasons else None


def _find_rule(callback: Callback) -> str:
    """Return the rule of a callback that may stop a run; raise a ParameterError if it does not identify the callback.

    The rule has to name all attributes, and to be equal in the next process.
    """
    name = _class_name(callback)
    has_rule = "__dataclass_fields__" in vars(type(callback)) or type(callback).rule is not Callback.rule
    unknown = vars(callback).keys() - getattr(callback, "__dataclass_fields__", {}).keys()
    if unknown and not has_rule:
        raise ParameterError(
            f"{name} may stop a run and has {', '.join(sorted(unknown))}, which its rule does not name.",
            "Make the class a dataclass, whose fields are in the rule, or override the property rule.",
        )
    if " at 0x" in callback.rule:
        raise ParameterError(
            f"{name}.rule holds an address, so the run would not be found again: {callback.rule}.",
            "Leave the field out by field(repr=False), give it a repr that says its value, or override the property "
            "rule.",
        )
    return callback.rule


def _check_reason(callback: Callback, method: str, reason: object, stopping: Sequence[str]) -> None:
    """Raise a ParameterError if a callback's method returned a value that cannot stop a run.

    Callbacks whose `stops` is in `stopping` may return text.
    """
    name = _class_name(callback)
    if not isinstance(reason, str) or not reason:
        raise ParameterError(
            f"{name}.{method} returned a {type(reason).__name__}: {reason!r}.",
            "Return the reason to stop, as text, or None.",
        )
    if callback.stops not in stopping:
        raise ParameterError(
            f"{name}.{method} returned a reason to stop, {reason!r}, but {name}.stops is {callback.stops!r}.",
            'Set stops = "round" to stop from on_round, or stops = "epoch" to stop from on_epoch alone.',
        )


def _class_name(callback: Callback) -> str:
    return type(callback).__qualname__


@dataclass
class RunWatch:
    """Measures rounds, and reports each to callbacks when all its measurements are known.

    Training waits for them only after rounds after which a callback may stop it, and before a checkpoint is written,
    so that the checkpoint's history has all results.

    Parameters
    ----------
    run
        The facts of the run for callbacks.
    training
        The run as its strategy trains it.
    callbacks
        The callbacks to call.
    measurements
        The pending results.
    evaluation
        Evaluates rounds; None without evaluation sets.
    interval
        Each n-th round is evaluated, and the last round; None for the last round only.
    held_out
        Measures the loss on held-out text after each epoch; None if no text is held out.
    listener
        Called with the progress of callbacks.
    compose_rows
        Function from the trained tables to the tables that are measured, in which input rows are composed.
    """

    run: TrainedRun
    training: StrategyRun
    callbacks: Callbacks
    measurements: Measurements
    evaluation: TrainingEvaluation | None
    interval: int | None
    held_out: HeldOutText | None
    listener: Listener
    compose_rows: Callable[[ModelRows], ModelRows]
    _waiting: list[HistoryEntry] = field(default_factory=list, init=False)
    _last: int = field(default=-1, init=False)  # number of the last round that ended

    @property
    def reason(self) -> str | None:
        """Why the run is to be stopped after the last round that ended; None where it goes on."""
        return self.callbacks.reason_after(self._last)

    def rounds_restored(self, history: Sequence[HistoryEntry]) -> None:
        """Report to the callbacks the rounds that earlier calls trained."""
        self.callbacks.restored(self.run, history, self.listener)
        self._last = len(history) - 1

    def needs_rows(self, number: int) -> bool:
        """Return whether `round_ended` needs the model's rows after the round of this number."""
        return self._evaluates(number) or self._measures_loss(number) or self.may_stop(number)

    def may_stop(self, number: int) -> bool:
        """Return whether the run may be stopped after the round of this number: the next round waits for that."""
        return not self._is_last(number) and self.callbacks.may_stop(epoch_ends=self._ends_epoch(number))

    def round_ended(self, entry: HistoryEntry, rows: ModelRows | None) -> None:
        """Measure the model after a round, and report measured rounds; results are added to `entry` in the history.

        `rows` are the tables after the round; None where the strategy has none.
        """
        self._last = number = entry["round"]
        self.measurements.write_known()
        self._measure(entry, rows, scores=self._evaluates(number), loss=self._measures_loss(number))
        self._waiting.append(entry)
        if self.may_stop(number):
            self.measurements.write_all()
        self._report()
        if self.reason is not None:  # then this is the model that is published
            self._measure(entry, rows, scores="scores" not in entry, loss="held_out_loss" not in entry)

    def await_results(self) -> None:
        """Wait for all measurements, and report the measured rounds to the callbacks."""
        self.measurements.write_all()
        self._report()

    def checkpoint_written(self) -> None:
        """Report to the callbacks a checkpoint that was written after the last round."""
        self.callbacks.checkpoint_written(self.listener)

    def _measure(self, entry: HistoryEntry, rows: ModelRows | None, *, scores: bool, loss: bool) -> None:
        """Submit the measurements of a round: evaluation `scores`, and the `loss` on held-out text."""
        needed = self._is_last(entry["round"]) or self.may_stop(entry["round"])
        if rows is not None and (scores or loss):
            rows = self.compose_rows(rows)
        if self.evaluation is not None and scores:
            self.evaluation.measure(entry, rows, self.measurements, needed=needed)
        if self.held_out is not None and loss:
            self.held_out.measure(entry, rows, self.measurements)

    def _report(self) -> None:
        """Report the measured rounds to the callbacks, in order, up to the first that is not measured."""
        while self._waiting and self.measurements.is_complete(self._waiting[0]):
            self.callbacks.round_ended(self._waiting.pop(0), self.listener)

    def _evaluates(self, number: int) -> bool:
        """Return whether the evaluation sets are evaluated after the round of this number."""
        if self.evaluation is None:
            return False
        is_nth = self.interval is not None and (number + 1) % self.interval == 0
        stops = self.run.params.early_stopping is not None and self.may_stop(number)
        return is_nth or stops or self._is_last(number)

    def _measures_loss(self, number: int) -> bool:
        """Return whether the loss on held-out text is measured after the round of this number."""
        return self.held_out is not None and (self._is_last(number) or self._ends_epoch(number))

    def _is_last(self, number: int) -> bool:
        return number == len(self.training) - 1

    def _ends_epoch(self, number: int) -> bool:
        before = self.training.progress_after(number - 1) if number else 0
        return self.run.ends_epoch(before, self.training.progress_after(number))
