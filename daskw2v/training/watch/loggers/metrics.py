"""What loggers log of a record, by name."""

from daskw2v.training.watch.callbacks import TrainingRecord


def metrics_of(record: TrainingRecord) -> dict[str, float]:
    """Return the numbers of a round; those that are not known, or undefined, are left out."""
    found = {
        "loss": record.loss,
        "held_out_loss": record.held_out_loss,
        "alpha": record.alpha,
        "progress": record.progress,
        "words_per_second": record.words / record.seconds if record.seconds else None,
        **{f"score/{name}": score for name, score in record.scores.items()},
    }
    return {name: float(value) for name, value in found.items() if value is not None}


def epoch_metrics_of(record: TrainingRecord) -> dict[str, float]:
    """Return the numbers of an epoch."""
    found = {"epoch/loss": record.loss, "epoch/held_out_loss": record.held_out_loss}
    return {name: float(value) for name, value in found.items() if value is not None}
