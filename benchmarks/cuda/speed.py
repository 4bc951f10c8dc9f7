"""Words/s of all objectives: the kernel alone, by the GPU's clock, and the whole task that a worker runs.

The task reads shards, subsamples, trains, and copies the model in and out. Words are those of the vocabulary, before
subsampling, and those that are left of them, which are trained. A drawn text is no file, so that it has no task.
"""

import os
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.cuda.bench import Bench, Corpus, modes_of
from benchmarks.cuda.launching import Launch, elapsed
from benchmarks.epochs import our_speed
from benchmarks.papers.figures import Figures
from benchmarks.tables import Spread
from daskw2v.config.params import Params
from daskw2v.kernels.cuda import load
from daskw2v.objectives.base import Rate
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.sampling.reader import SegmentReader
from daskw2v.sampling.segments import SEGMENT, cut, keep_thresholds
from daskw2v.sampling.text import RunText
from daskw2v.training.devices.gpu import CudaReplicaTrainer
from daskw2v.training.devices.gpu_text import DevicePiece, DeviceText

SAMPLES = (1e-4, 0)
BATCHING = Figures("paper 004, table 1", {"text8": 210.340633, "One Billion Words": 265.212834})


class Speed(NamedTuple):
    """Words/s: of the kernel alone, before subsampling and after; and of the task, before."""

    raw: Spread
    trained: Spread
    task: Spread | None


def over_text() -> list[str]:
    """Return the objectives whose kernels go over text: sgns first, so that it is known whatever else fails."""
    names = (name for name, objective in OBJECTIVES.items() if "cuda" in objective.trainers)
    return sorted(names, key=lambda name: (name != "sgns", name))


def cores() -> int:
    return os.cpu_count() or 1


def speed_of(bench: Bench, params: Params, corpus: Corpus, *, task: bool) -> Speed:
    """Measure the kernel, and the task where it is asked for and the corpus is a file."""
    launch = Launch(params, corpus)
    runs: dict[str, Callable[[], float]] = {"kernel": lambda: 1 / launch.seconds()}
    if task:
        runs["task"] = our_speed(bench.text, params, cores(), "cuda")
    found = bench.measure(runs)
    kernel = found["kernel"]
    return Speed(kernel.scaled(launch.raw), kernel.scaled(launch.trained), found.get("task"))


def settings(bench: Bench) -> Iterator[tuple[str, Params, Corpus]]:
    """Yield what is measured, with its name."""
    for corpus in bench.corpora:
        for mode, how in modes_of(5).items():
            for sample in SAMPLES:
                for objective in over_text():
                    params = Params(objective=objective, vector_size=128, sample=sample, **how)
                    yield f"{objective}, {corpus.name}, {mode}, sample {sample:g}", params, corpus


def speed(bench: Bench) -> None:
    """Print million words/s, for figures 6 and 7 of paper 004 and 1 and 2 of paper 001."""
    table = bench.table(
        "speed",
        "d=128, N=5, million words/s",
        ("kernel: before subsampling", "kernel: trained", f"task of {cores()} thread(s): before subsampling"),
    )
    for name, params, corpus in settings(bench):
        found = speed_of(bench, params, corpus, task=corpus.name == "Wikipedia")
        cells = [None if spread is None else spread.scaled(1e-6) for spread in found]
        table.row(name, *cells)


def _run_text(bench: Bench, params: Params) -> RunText:
    text = bench.text
    reader = SegmentReader(text.work, text.corpus, text.vocabulary)
    return RunText(reader, text.corpus.n_tokens, keep_thresholds(text.vocabulary.load().counts, params.sample))


def batching(bench: Bench) -> None:
    """Print how fast a core reads text: codes, which a GPU cuts itself, and subsampled; beside paper 004's table 1."""
    params = Params(sample=1e-4)
    reader, length, keep = _run_text(bench, params)
    stop, key, spans = min(2 * SEGMENT, length), np.uint64(1), list(reader.spans(0, length))

    def read() -> float:
        began = time.perf_counter()
        reader.read(0, stop, params.window, keep, key)
        return stop / (time.perf_counter() - began) / 1e6

    def read_codes() -> float:
        began = time.perf_counter()
        n = sum(len(reader.unchecked_codes(span)) for span in spans)
        return n / (time.perf_counter() - began) / 1e6

    found = bench.measure({"codes": read_codes, "segments": read})
    table = bench.table("batching", "reading text, million words/s", ("text8", "One Billion Words", "here"))
    table.row(f"FULL-W2V ({BATCHING.source})", *BATCHING.values.values(), None)
    table.row("daskw2v, one core: codes that a GPU cuts, in the first epoch", None, None, found["codes"])
    table.row("daskw2v, one core: subsampled, as a processor trains it", None, None, found["segments"])


def cutting(bench: Bench) -> None:
    """Print how fast the GPU cuts text that lies there, and how fast one thread gives it the work, million words/s."""
    cuda, cutter, params = load("numba.cuda"), load("daskw2v.sampling.cuda").Cutter(), Params(sample=1e-4)
    text, way, counts = _run_text(bench, params), cuda.stream(), cuda.to_device(np.zeros(2, np.int64))
    on_gpu, most = DeviceText(cuda, text, float("inf")), CudaReplicaTrainer.positions
    pieces = [(a, b, on_gpu.load(a, b, params.window, np.uint64(1))) for a, b in cut(0, text.length, most)]

    def cut_all() -> None:
        for a, b, spans in pieces:
            piece = DevicePiece(spans, a, b, Rate(0.0, 0.0, 0), 0, np.uint64(1))
            cutter.cut(piece.on(way), a, b, on_gpu.keep, piece.key, counts, way)

    def by_host() -> float:
        began = time.perf_counter()
        cut_all()
        took = time.perf_counter() - began
        way.synchronize()
        return took

    found = bench.measure({"GPU": lambda: elapsed(cuda, way, cut_all), "host": by_host})
    table = bench.table("cutting", "subsampling and sentences, million words/s", ("GPU's clock", "one thread's"))
    table.row(f"Wikipedia, pieces of {most:,}", *(of.inverse().scaled(text.length / 1e6) for of in found.values()))
