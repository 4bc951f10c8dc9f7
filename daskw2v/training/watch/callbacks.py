"""Callbacks: objects that follow a training and may stop it; and the record of an event, which they get."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar, Literal

from daskw2v.config.params import Params

StopsAfter = Literal["round", "epoch"]


@dataclass(frozen=True, kw_only=True)
class TrainingRecord:
    """The state of a training at an event. Sums and means are of the round, of the epoch, or of all rounds.

    Parameters
    ----------
    run
        Name of the run: equal for equal text, words and Params. A version's name ends with it.
    work
        URL of the work directory.
    params
        Its Params, with all that was chosen for it.
    plan
        Its plan: strategy and why, forecast seconds, memory of a worker, as `Vectors.metadata["plan"]`; empty
        for a version of an earlier release.
    round, epoch
        Number of the last round (a pass of `rotation`), counted from 0, and of epochs that are done.
    progress
        Share of all epochs that is done, 0 to 1.
    words
        Corpus words read, before subsampling.
    pairs
        Pairs trained.
    loss
        Mean loss of a pair; None if there was none.
    alpha
        Learning rate at the end.
    seconds
        Duration, without the time that callbacks take.
    held_out_loss
        Mean loss of a pair of the held-out text after the last round; None if that was not measured.
    scores
        Scores of the evaluation sets after the last round, by kind and name, such as similarity/ws353; empty if they
        were not evaluated.
    restored
        Whether an earlier call trained the last round.
    version
        At the end, URL of the published version; None before, and where a gate of `retrain` refused it.
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

    Methods are called in the process of the caller, in order. Each call of `train` reports all rounds of the run to an
    object, each once: first, with `restored`, the rounds that earlier calls trained, whether the run is resumed or had
    finished. A round is reported when all its measurements are known. Training does not wait for that, unless the
    object may stop it.

    Where an object that may stop the training raises an error, the call raises it, and the same call resumes. An error
    of another object is reported as progress, and the object is not called again: an object that only watches cannot
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
    """After what it may stop the training, by returning the reason from that method: "round" lets `on_round` and
    `on_epoch` do so, "epoch" `on_epoch`. Training waits there. None, the default, is for objects that only watch."""

    @property
    def rule(self) -> str:
        """The rule by which the object stops a run, as text; it is part of the run's name, if the object may stop it.

        A run that may be stopped by one rule is not the run that may be stopped by another one, or by none. By default
        this is the import path of the class, and the fields that a dataclass is made with and shows. It is asked for
        once in a call, before training: a field that is state has `init=False`.
        """
        shown: Any = fields(self) if is_dataclass(self) else ()
        values = ", ".join(f"{one.name}={getattr(self, one.name)!r}" for one in shown if one.init and one.repr)
        return f"{type(self).__module__}:{type(self).__qualname__}({values})"

    def on_round(self, record: TrainingRecord) -> str | None:
        """Receive the record of a finished round, also of one that an earlier call trained.

        Return None, or a reason to stop the training, which needs `stops = "round"` and counts for a new round alone.
        """
        return None

    def on_epoch(self, record: TrainingRecord) -> str | None:
        """Receive the record of the round that ended an epoch, or several at once.

        Return None, or a reason to stop the training, which needs `stops` of "round" or "epoch".
        """
        return None

    def on_checkpoint(self, record: TrainingRecord) -> None:
        """Take note of a checkpoint that this call wrote after a round; it is reported after the round."""

    def on_end(self, record: TrainingRecord) -> None:
        """Take note of the published version, which may be of an earlier call."""


def metrics_of(record: TrainingRecord) -> dict[str, float]:
    """Return the numbers of a round; unknown or undefined numbers are left out."""
    metrics = {
        "loss": record.loss,
        "held_out_loss": record.held_out_loss,
        "alpha": record.alpha,
        "progress": record.progress,
        "words_per_second": record.words / record.seconds if record.seconds else None,
        **{f"score/{name}": score for name, score in record.scores.items()},
    }
    return {name: float(value) for name, value in metrics.items() if value is not None}


def epoch_metrics_of(record: TrainingRecord) -> dict[str, float]:
    """Return the numbers of an epoch."""
    metrics = {"epoch/loss": record.loss, "epoch/held_out_loss": record.held_out_loss}
    return {name: float(value) for name, value in metrics.items() if value is not None}
