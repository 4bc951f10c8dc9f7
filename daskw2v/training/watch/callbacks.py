"""Callbacks: objects that follow a training and may stop it; and the record of an event, which they receive."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, Literal

from daskw2v.config.params import Params

StopsAfter = Literal["round", "epoch"]


@dataclass(frozen=True, kw_only=True)
class TrainingRecord:
    """The state of a training at an event.

    Words, pairs, loss and seconds are of the last round (`on_round`, `on_checkpoint`), of all rounds since the last end
    of an epoch (`on_epoch`), or of all rounds of the run (`on_end`).

    Parameters
    ----------
    run
        Name of the run: equal for equal text, words and Params. A version's name ends with it.
    work
        URL of the work directory.
    params
        The run's Params, with all that was chosen for the run.
    plan
        The run's plan: strategy and why, forecast seconds, memory of a worker, as `Vectors.metadata["plan"]`; empty
        for a version of an earlier release.
    round, epoch
        Number of the last round (a pass of `rotation`), counted from 0, and number of completed epochs.
    progress
        Completed share of all epochs, 0 to 1.
    words
        Number of corpus words read, before subsampling.
    pairs
        Number of pairs trained.
    loss
        Mean loss of a pair; None if no pair was trained.
    alpha
        Learning rate at the end of the last round.
    seconds
        Duration in seconds, without the time that callbacks take.
    held_out_loss
        Mean loss of a pair of the held-out text after the last round; None if it was not measured.
    scores
        Scores of the evaluation sets after the last round, by the name of the set, such as ws353, or by kind/name if
        sets of two kinds share it. An undefined score is None. Empty if the sets were not evaluated.
    restored
        Whether an earlier call trained the last round.
    version
        At the end, URL of the finished version; None before, and where a gate (a check of `retrain`) refused it.
    metadata
        At the end, the version's metadata, as `Vectors.metadata`; empty before.

    Examples
    --------
    >>> class Show(daskw2v.Callback):
    ...     def on_epoch(self, record):
    ...         print(f"epoch {record.epoch}: {record.progress:.0%}, a loss: {record.loss > 0}")
    >>> settings = {"vector_size": 8, "min_count": 1, "epochs": 2, "listener": None}
    >>> _ = daskw2v.train("text.txt", strategy="averaging", callbacks=[Show()], **settings)
    epoch 1: 50%, a loss: True
    epoch 2: 100%, a loss: True
    """

    run: str
    work: str
    params: Params
    plan: Mapping[str, Any]
    round: int
    epoch: int
    progress: float
    words: int
    pairs: int
    loss: float | None
    alpha: float
    seconds: float
    held_out_loss: float | None = None
    scores: Mapping[str, float | None]
    restored: bool = False
    version: str | None = None
    metadata: Mapping[str, Any]


class Callback:
    """Base class of callbacks for `train`, `retrain` and `train_model`; override the methods of interest.

    Methods are called in the process of the caller, in order. Each call of `train` reports each round of the run to a
    callback once: first, with `restored`, the rounds that earlier calls trained, whether the run is resumed or had
    finished. A round is reported when all its measurements are known. Training does not wait for them, unless the
    callback may stop it.

    An error of a callback that may stop the training is raised by the call, and the same call resumes. An error of
    another callback is reported as progress, and the callback is not called again: a callback that only watches cannot
    end a training.

    Examples
    --------
    >>> class StopsAfterTwo(daskw2v.Callback):
    ...     stops = "epoch"
    ...
    ...     def on_epoch(self, record):
    ...         return "two are enough" if record.epoch == 2 else None
    >>> settings = {"vector_size": 8, "min_count": 1, "epochs": 5, "listener": None}
    >>> vectors = daskw2v.train("text.txt", strategy="averaging", callbacks=[StopsAfterTwo()], **settings)
    >>> vectors.metadata["stopped"]["epochs"], vectors.metadata["stopped"]["reason"]
    (2, 'two are enough')
    """

    stops: ClassVar[StopsAfter | None] = None
    """When the callback may stop the training: "round" lets `on_round` and `on_epoch` return a reason to stop, "epoch"
    lets `on_epoch` do so. Training waits for them. None, the default, is for callbacks that only watch."""

    @property
    def rule(self) -> str:
        """The rule by which the callback stops a run, as text; part of the run's name if the callback may stop it.

        Runs that may be stopped by different rules are different runs. By default the rule is the import path of the
        class, and the fields of a dataclass with `init` and `repr`. It is read once in a call, before training: a field
        that is state has `init=False`.
        """
        shown: Any = fields(self) if is_dataclass(self) else ()
        values = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in shown if one.init and one.repr)
        return f"{type(self).__module__}:{type(self).__qualname__}({values})"

    def on_round(self, record: TrainingRecord) -> str | None:
        """Receive the record of a finished round, a part of the training; if a run is resumed, also of earlier rounds.

        Return None, or a reason to stop the training, which needs `stops = "round"` and is ignored for an earlier
        call's round.
        """
        return None

    def on_epoch(self, record: TrainingRecord) -> str | None:
        """Receive the record of an epoch, or of several epochs that ended in one round, after `on_round` of the round.

        Return None, or a reason to stop the training, which needs `stops` of "round" or "epoch" and is ignored for an
        earlier call's round.
        """
        return None

    def on_checkpoint(self, record: TrainingRecord) -> None:
        """Receive the record of the round after which this call wrote a checkpoint, after `on_round` and `on_epoch`."""

    def on_end(self, record: TrainingRecord) -> None:
        """Receive the record of the finished run, with its version, which an earlier call may have made."""


def round_metrics(record: TrainingRecord) -> dict[str, float]:
    """Return the metrics of a round for loggers, by name, such as "score/ws353", without unknown or undefined ones."""
    metrics = {
        "loss": record.loss,
        "held_out_loss": record.held_out_loss,
        "alpha": record.alpha,
        "progress": record.progress,
        "words_per_second": record.words / record.seconds if record.seconds else None,
        **{f"score/{name}": score for name, score in record.scores.items()},
    }
    return {name: float(value) for name, value in metrics.items() if value is not None}


def epoch_metrics(record: TrainingRecord) -> dict[str, float]:
    """Return the metrics of an epoch for loggers, by name, without unknown ones."""
    metrics = {"epoch/loss": record.loss, "epoch/held_out_loss": record.held_out_loss}
    return {name: float(value) for name, value in metrics.items() if value is not None}
