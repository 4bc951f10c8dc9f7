"""Callbacks that log a training with experiment trackers; Resources may ask for them."""

import json
import os
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any

from daskw2v.config.resources import Resources
from daskw2v.errors import ParameterError
from daskw2v.extras import Extra
from daskw2v.store.urls import Location, as_url, refuse_secret
from daskw2v.training.watch.callbacks import Callback, TrainingRecord, epoch_metrics, round_metrics

_RUN, _WORK, _VERSION, _STOPPED = "daskw2v.run", "daskw2v.work", "daskw2v.version", "daskw2v.stopped"  # tags
_ROUND, _EPOCH = "progress", "epoch/loss"  # metrics that each round, and each epoch, has
_MAX_LENGTH = 6000  # characters of a parameter

mlflow, tensorboardX = Extra("mlflow", "mlflow"), Extra("tensorboardX", "tensorboard")


class MLflowLogger(Callback):
    """Logs a training as a run of MLflow: Params, metrics of rounds and epochs, and the version's URL and metadata.

    The step of a metric is the number of the round; of an epoch's, the number of epochs. A training that is resumed is
    the same run of MLflow, found by its tags `daskw2v.run` and `daskw2v.work`, and earlier metrics are not logged
    again. The run of MLflow is open until `on_end`; it fails if a gate (a check of `retrain`) refuses the version. A
    new training after that, or in another work directory, is another run of MLflow.

    Parameters
    ----------
    tracking_uri
        Tracking URI of MLflow; None for the URI that MLflow is configured to use.
    experiment
        Name of the experiment, which is created if it does not exist; None for the name in MLflow's environment
        variable `MLFLOW_EXPERIMENT_NAME`, or else "daskw2v".

    Raises
    ------
    MissingExtraError
        If mlflow is not installed.
    ParameterError
        If the URI holds a secret (MLflow reads secrets from the environment), or MLflow cannot be reached.

    Examples
    --------
    >>> from mlflow import MlflowClient
    >>> logger = daskw2v.MLflowLogger("mlruns", experiment="words")
    >>> vectors = daskw2v.train(
    ...     "text.txt", callbacks=[logger], vector_size=8, min_count=1, epochs=1, listener=None
    ... )
    >>> client = MlflowClient("mlruns")
    >>> [run] = client.search_runs([client.get_experiment_by_name("words").experiment_id])
    >>> run.info.status, run.data.params["vector_size"]
    ('FINISHED', '8')
    """

    def __init__(self, tracking_uri: str | None = None, experiment: str | None = None) -> None:
        refuse_secret("tracking_uri", tracking_uri)
        experiment = experiment or os.environ.get("MLFLOW_EXPERIMENT_NAME") or "daskw2v"
        client = mlflow.MlflowClient  # raises a MissingExtraError
        try:
            self._client = client(tracking_uri)
            known = self._client.get_experiment_by_name(experiment)
            self._experiment = self._client.create_experiment(experiment) if known is None else known.experiment_id
        except Exception as error:  # of the network, a database, or MLflow
            raise ParameterError(
                f"MLflow cannot be used at {tracking_uri!r} ({type(error).__name__}: {error}).",
                "Check the address, and the MLflow server there.",
            ) from error
        self._logged: tuple[str, str] | None = None  # work directory and name of the training, until it ends
        self._id, self._round, self._epoch = "", -1, 0  # of MLflow's run; the last logged round and epoch

    def on_round(self, record: TrainingRecord) -> None:
        """Log the metrics of a round."""
        self._open(record)
        if record.round > self._round:
            self._log(round_metrics(record), record.round)
            self._round = record.round

    def on_epoch(self, record: TrainingRecord) -> None:
        """Log the metrics of an epoch."""
        if record.epoch > self._epoch:
            self._log(epoch_metrics(record), record.epoch)
            self._epoch = record.epoch

    def on_end(self, record: TrainingRecord) -> None:
        """Log the version, and end the run of MLflow; as failed without a version."""
        self._logged = None
        if record.version is None:
            self._client.set_terminated(self._id, "FAILED")
            return
        self._client.set_tag(self._id, _VERSION, record.version)
        if stopped := record.metadata.get("stopped"):
            self._client.set_tag(self._id, _STOPPED, stopped["reason"])
        self._client.log_dict(self._id, dict(record.metadata), "metadata.json")
        self._client.set_terminated(self._id)

    def _open(self, record: TrainingRecord) -> None:
        """Find the run of MLflow for a training, or begin one."""
        training = record.work, record.run
        if self._logged == training:
            return
        run = self._find_run(record)
        goes_on = run is not None and (record.restored or run.info.status == "RUNNING")
        self._id = str(run.info.run_id) if goes_on else self._begin_run(record)
        self._logged = training
        self._round, self._epoch = self._last_step(_ROUND, -1), self._last_step(_EPOCH, 0)

    def _find_run(self, record: TrainingRecord) -> Any:
        """Return the last run of MLflow that a training was logged to; None if there is none."""
        runs = self._client.search_runs([self._experiment], f"tags.`{_RUN}` = '{record.run}'")  # the last one first
        return next((run for run in runs if run.data.tags.get(_WORK) == record.work), None)  # a URL may have quotes

    def _begin_run(self, record: TrainingRecord) -> str:
        """Begin a run of MLflow with the Params of a training; return the id of MLflow's run."""
        entities = mlflow.entities
        tags = {_RUN: record.run, _WORK: record.work}
        run = self._client.create_run(self._experiment, run_name=record.run, tags=tags)
        params = [entities.Param(name, str(value)[:_MAX_LENGTH]) for name, value in record.params.as_dict().items()]
        self._client.log_batch(run.info.run_id, params=params)
        return str(run.info.run_id)

    def _last_step(self, metric: str, default: int) -> int:
        """Return the last step that a metric was logged for, or `default` if it was not logged."""
        history: list[Any] = self._client.get_metric_history(self._id, metric)
        return max((int(logged.step) for logged in history), default=default)

    def _log(self, metrics: Mapping[str, float], step: int) -> None:
        """Log metrics, by name, for a step."""
        now, metric = int(1000 * time.time()), mlflow.entities.Metric
        values = [metric(_replace_characters(name), value, now, step) for name, value in metrics.items()]
        self._client.log_batch(self._id, metrics=values)


def _replace_characters(name: str) -> str:
    """Return the name of a metric with _ for each character that MLflow does not accept."""
    return re.sub(r"[^\w./ -]", "_", name, flags=re.ASCII)


class TensorBoardLogger(Callback):
    """Writes a training for TensorBoard: Params, metrics of rounds and epochs, and at the end the version's URL.

    The step of a metric is the number of the round; of an epoch's, the number of epochs. A training that is resumed
    writes a new file with all rounds, which replaces the earlier files.

    Parameters
    ----------
    folder
        Path, or a URL that tensorboardX can write; a training has a folder below it, named after its run.

    Raises
    ------
    MissingExtraError
        If tensorboardX is not installed.

    Examples
    --------
    >>> from pathlib import Path
    >>> logger = daskw2v.TensorBoardLogger("runs")
    >>> vectors = daskw2v.train(
    ...     "text.txt", callbacks=[logger], vector_size=8, min_count=1, epochs=1, listener=None
    ... )
    >>> len(list(Path("runs").glob("*/events.*")))
    1
    """

    def __init__(self, folder: Location) -> None:
        self._folder = as_url(folder, "tensorboard").removeprefix("file://").rstrip("/")
        self._make_writer = tensorboardX.SummaryWriter
        self._logged: str | None = None  # name of the training
        self._writer: Any = None

    def on_round(self, record: TrainingRecord) -> None:
        """Write the metrics of a round; before a run's first one, also its Params."""
        if self._logged != record.run:
            # Names of files have seconds, and TensorBoard reads them in the order of their names
            suffix = f".{time.time_ns()}"
            self._writer = self._make_writer(f"{self._folder}/{record.run}", purge_step=0, filename_suffix=suffix)
            self._writer.add_text("params", _table(record.params.as_dict()), 0)
            self._logged = record.run
        for name, value in round_metrics(record).items():
            self._writer.add_scalar(name, value, record.round)

    def on_epoch(self, record: TrainingRecord) -> None:
        """Write the metrics of an epoch."""
        for name, value in epoch_metrics(record).items():
            self._writer.add_scalar(name, value, record.epoch)
        self._writer.flush()

    def on_end(self, record: TrainingRecord) -> None:
        """Write the version, and close the file."""
        stopped = record.metadata.get("stopped")
        facts = {"version": record.version, **({"stopped": stopped["reason"]} if stopped else {})}
        self._writer.add_text("version", _table(facts), record.round)
        self._writer.close()
        self._logged = None


def _table(values: dict[str, Any]) -> str:
    """Return names and values as a table in Markdown, which TensorBoard shows."""
    rows = [f"| {name} | {json.dumps(value)} |" for name, value in values.items()]
    return "\n".join(["| name | value |", "|---|---|", *rows])


def loggers_of(resources: Resources) -> Iterator[Callback]:
    """Yield the loggers that Resources ask for; raises the errors of the loggers' classes."""
    if resources.mlflow is not None:
        yield MLflowLogger(resources.mlflow)
    if resources.tensorboard is not None:
        yield TensorBoardLogger(resources.tensorboard)
