"""An epoch as a worker's task, timed; and trainings on a cluster that never find the model of one before."""

import statistics
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from distributed import Client

from benchmarks.processes import one_thread
from benchmarks.stopwatch import stopwatch
from benchmarks.texts import Text
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.features.settings import has_features
from daskw2v.models.queries.vectors import Vectors
from daskw2v.objectives.registry import settle_params, start_alpha
from daskw2v.progress import silent
from daskw2v.sampling.reader import SegmentReader
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import SEGMENT, Segment, keep_thresholds
from daskw2v.training.averaging.replica import ReplicaStep, make_replica, train_replica
from daskw2v.training.averaging.round_schedule import ReplicaWork
from daskw2v.training.devices import Threads
from daskw2v.training.pipeline import train_model
from daskw2v.training.start.blocks import TableBlock, cut_tables, initial_block
from daskw2v.training.start.features import count_table_rows, find_features
from daskw2v.types import Float32Array

ONE = Resources(threads=1)


class Epoch(NamedTuple):
    """An epoch that was trained: raw words of the vocabulary, before subsampling, and the time that they took."""

    words: float
    seconds: float
    processor_seconds: float

    @property
    def speed(self) -> float:
        """Words/s."""
        return self.words / self.seconds

    @property
    def economy(self) -> float:
        """Words by a second of one processor; it says more than the speed where others use the machine."""
        return self.words / self.processor_seconds


def task_of(
    text: Text, params: Params, device: str
) -> tuple[Run, list[TableBlock], dict[int, Float32Array], ReplicaWork]:
    """Return what a worker is given to train an epoch: the run, the model's blocks and first rows, and its work."""
    params = settle_params(params.replace(strategy="averaging"))
    run = Run(text.work, text.corpus.name, text.vocabulary, params, device)
    if has_features(params):
        with one_thread() as client:
            found = find_features(client, text.work / f"features-{uuid.uuid4().hex[:8]}", run, Resources(), silent)
        run = replace(run, features=found)
    blocks = cut_tables(count_table_rows(run), params.vector_size)
    rows = {number: initial_block(run, block) for number, block in enumerate(blocks)}
    return run, blocks, rows, ReplicaWork(0, 0, text.corpus.n_tokens, start_alpha(params), params.min_alpha)


def our_epoch(text: Text, params: Params, width: Threads) -> Callable[[], Epoch]:
    """Return what trains an epoch; it has done so once, and is compiled."""
    run, blocks, rows, work = task_of(text, params, width.device.name)

    def measure() -> Epoch:
        took = stopwatch()
        train_replica(make_replica(run, width, blocks, None, rows), [ReplicaStep(work)], rows, [{}])
        return Epoch(text.vocabulary.total, *took())

    measure()  # compiles
    return measure


def our_speed(text: Text, params: Params, threads: int, device: str = "cpu") -> Callable[[], float]:
    """Return what trains an epoch, and returns words/s."""
    run = our_epoch(text, params, Threads(threads, Resources(device=device).device))
    return lambda: run().speed


class Training(NamedTuple):
    """Seconds of all rounds or passes of a training, and of dealing in them; bytes that workers sent; pairs."""

    seconds: float
    dealing: float
    sent: float


def train_anew(client: Client, text: Text, params: Params, resources: Resources = ONE) -> Vectors:
    """Train, also where the same model was trained before; other models are lost."""
    (text.work / "models").remove()
    return train_model(text.corpus, text.vocabulary, text.work, params, resources, client)


def training_of(client: Client, text: Text, params: Params) -> Training:
    """Train anew on workers of one thread, and see what it took."""

    def sent() -> int:
        return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())

    before = sent()
    metrics = train_anew(client, text, params).metadata["metrics"]
    dealing = sum(entry.get("deal_seconds", 0.0) for entry in metrics["history"])
    return Training(metrics["seconds"], dealing, sent() - before)


def segment_of(text: Text, params: Params, words: int = 2 * SEGMENT) -> tuple[Segment, float]:
    """Return the first words of the text, subsampled, and the seconds that a word takes."""
    keep, stop = keep_thresholds(text.vocabulary.load().counts, params.sample), min(words, text.corpus.n_tokens)
    reader = SegmentReader(text.work, text.corpus, text.vocabulary)

    def read() -> Segment:
        return reader.read(0, stop, params.window, keep, np.uint64(1))[0]

    return read(), timed(read) / stop


def timed(run: Callable[[], object], times: int = 3) -> float:
    """Return the median seconds of a run, after one that compiles."""
    seconds = []
    for _ in range(times + 1):
        began = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds[1:])
