"""Callbacks that log a training by the libraries of experiment trackers; Resources may ask for them."""

from collections.abc import Iterator

from daskw2v.config.resources import Resources
from daskw2v.training.watch.callbacks import Callback
from daskw2v.training.watch.loggers.mlflow import MLflowLogger
from daskw2v.training.watch.loggers.tensorboard import TensorBoardLogger


def loggers_of(resources: Resources) -> Iterator[Callback]:
    """Yield the loggers that Resources ask for; raises as these do."""
    if resources.mlflow is not None:
        yield MLflowLogger(resources.mlflow)
    if resources.tensorboard is not None:
        yield TensorBoardLogger(resources.tensorboard)
