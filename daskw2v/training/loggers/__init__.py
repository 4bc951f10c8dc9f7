"""Callbacks that log a training by the libraries of experiment trackers; Resources may ask for them."""

from collections.abc import Iterator

from daskw2v.config.resources import Resources
from daskw2v.config.settings import default_of
from daskw2v.errors import ParameterError
from daskw2v.training.callbacks import Callback
from daskw2v.training.loggers.mlflow import MLflowLogger
from daskw2v.training.loggers.tensorboard import TensorBoardLogger


def loggers_of(resources: Resources) -> Iterator[Callback]:
    """Yield the loggers that Resources ask for; raises as these do."""
    if resources.mlflow is not None:
        yield MLflowLogger(resources.mlflow, resources.mlflow_experiment)
    if resources.tensorboard is not None:
        yield TensorBoardLogger(resources.tensorboard)


def check_loggers(resources: Resources) -> None:
    """Refuse options of loggers that are not asked for.

    Raises
    ------
    ParameterError
        If there are such.
    """
    experiment, default = resources.mlflow_experiment, default_of(Resources.__dataclass_fields__["mlflow_experiment"])
    if resources.mlflow is None and experiment != default:
        raise ParameterError(
            f"mlflow_experiment={experiment!r} changes nothing without mlflow.",
            "Give mlflow, the tracking server's address, or leave mlflow_experiment out.",
        )
