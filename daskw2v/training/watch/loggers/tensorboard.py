"""Logs a training as files that TensorBoard shows."""

import json
import time
from typing import Any

from daskw2v.extras import Extra
from daskw2v.store.urls import Location, as_url
from daskw2v.training.watch.callbacks import Callback, TrainingRecord, epoch_metrics_of, metrics_of

tensorboardX = Extra("tensorboardX", "tensorboard")


class TensorBoardLogger(Callback):
    """Writes a training into a folder of its own: Params, metrics of rounds and epochs, at the end the version's URL.

    The step of a metric is the number of the round; of an epoch's, the number of epochs. A training that is resumed
    writes a new file with all rounds, which replaces the earlier files.

    Parameters
    ----------
    folder
        Path, or a URL that tensorboardX can write; the folder of a training is named after its run.

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
        self._new = tensorboardX.SummaryWriter
        self._logged: str | None = None  # name of the training
        self._writer: Any = None

    def on_round(self, record: TrainingRecord) -> None:
        """Write the metrics of a round."""
        if self._logged != record.run:
            # Names of files have seconds, and TensorBoard reads them in the order of their names
            suffix = f".{time.time_ns()}"
            self._writer = self._new(f"{self._folder}/{record.run}", purge_step=0, filename_suffix=suffix)
            self._writer.add_text("params", _table(record.params.as_dict()), 0)
            self._logged = record.run
        for name, value in metrics_of(record).items():
            self._writer.add_scalar(name, value, record.round)

    def on_epoch(self, record: TrainingRecord) -> None:
        """Write the metrics of an epoch."""
        for name, value in epoch_metrics_of(record).items():
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
    """Return a table in Markdown, as TensorBoard shows it."""
    rows = [f"| {name} | {json.dumps(value)} |" for name, value in values.items()]
    return "\n".join(["| name | value |", "|---|---|", *rows])
