"""Words/s of all objectives: the kernel alone, by the GPU's clock, and the whole task that a worker runs.

The task reads shards, subsamples, trains, and copies the model in and out. Drawn text is no file, and has no task.
"""

import os
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.cuda.bench import Bench, Corpus, has_gpu, modes_of
from benchmarks.cuda.launching import Launch, elapsed
from benchmarks.epochs import our_speed
from benchmarks.harness import LEFT_OUT
from benchmarks.tables import Spread
from daskw2v.config.params import Params
from daskw2v.kernels.cuda import load
from daskw2v.objectives.base import Rate
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.sampling.reader import OpenText, SegmentReader
from daskw2v.sampling.segments import SEGMENT, cut_range, keep_thresholds
from daskw2v.training.devices.gpu import CudaReplicaTrainer
from daskw2v.training.devices.gpu_text import DevicePiece, DeviceText

SAMPLES = (1e-4, 0)


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


def speed_of(bench: Bench, params: Params, corpus: Corpus) -> Speed:
    """Measure the kernel, and the task where the corpus is a file."""
    launch = Launch(params, corpus)
    runs: dict[str, Callable[[], float]] = {"kernel": lambda: 1 / launch.seconds()}
    if corpus.text:
        runs["task"] = our_speed(corpus.text, params, cores(), "cuda")
    found = bench.measure(runs)
    kernel = found["kernel"]
    return Speed(kernel.scaled(launch.raw), kernel.scaled(launch.trained), found.get("task"))


def speed(bench: Bench) -> None:
    """Print million words/s, for figures 6 and 7 of paper 004 and 1 and 2 of paper 001."""
    table = bench.table(
        "Speed: d=128, N=5, million words/s",
        ("kernel: before subsampling", "kernel: trained", f"task of {cores()} thread(s): before subsampling"),
        ".1f",
    )
    for corpus in bench.corpora:
        for mode, how in modes_of(5).items():
            for sample in SAMPLES:
                for objective in over_text():
                    params = Params(objective=objective, vector_size=128, sample=sample, **how)
                    found = speed_of(bench, params, corpus)
                    cells = [spread and spread.scaled(1e-6) for spread in found]
                    table.row(f"{objective}, {corpus.name}, {mode}, sample {sample:g}", *cells)


def in_flight_up_to(room: int, first: int) -> list[int]:
    """Return numbers of warps, each twice the one before, and as many as there is room for."""
    numbers = [first]
    while numbers[-1] < room:
        numbers.append(min(room, 2 * numbers[-1]))
    return numbers


def room_of(params: Params, corpus: Corpus) -> int:
    """Return how many warps the GPU has room for, of a kernel over text."""
    launch = Launch(params, corpus)
    launch.run()
    return launch.in_flight


def batching(bench: Bench) -> None:
    """Print how fast a core reads text: codes, which a GPU cuts itself, and subsampled; and how fast a GPU cuts it."""
    params, text = Params(sample=1e-4), bench.wiki
    reader, length = SegmentReader(text.work, text.corpus, text.vocabulary), text.corpus.n_tokens
    keep = keep_thresholds(text.vocabulary.load().counts, params.sample)
    stop, spans = min(2 * SEGMENT, length), list(reader.spans(0, length))

    def read_codes() -> float:
        began = time.perf_counter()
        n = sum(len(reader.unchecked_codes(span)) for span in spans)
        return n / (time.perf_counter() - began) / 1e6

    def read() -> float:
        began = time.perf_counter()
        reader.read(0, stop, params.window, keep, np.uint64(1))
        return stop / (time.perf_counter() - began) / 1e6

    runs = {"one core: codes that a GPU cuts": read_codes, "one core: subsampled, as a processor trains it": read}
    if has_gpu():
        runs |= cutting(OpenText(reader, length, keep), params.window)
    else:
        bench.note(f"{LEFT_OUT}cutting: there is no GPU")
    table = bench.table("Batching: text that is read and cut, million words/s", ("here",), ".1f")
    for name, found in bench.measure(runs).items():
        table.row(name, found)


def cutting(text: OpenText, window: int) -> dict[str, Callable[[], float]]:
    """Return what cuts text that lies on the GPU, in million words/s by its clock; and what gives it the work."""
    cuda, cutter, key = load("numba.cuda"), load("daskw2v.sampling.cuda").Cutter(), np.uint64(1)
    way, counts = cuda.stream(), cuda.to_device(np.zeros(2, np.int64))
    on_gpu, most = DeviceText(cuda, text, float("inf")), CudaReplicaTrainer.positions
    pieces = [(a, b, on_gpu.load(a, b, window, key)) for a, b in cut_range(0, text.length, most)]

    def cut_all() -> None:
        for a, b, spans in pieces:
            piece = DevicePiece(spans, a, b, Rate(0.0, 0.0, 0), 0, key)
            cutter.cut(piece.in_stream(way), a, b, on_gpu.keep, key, counts, way)

    def by_host() -> float:
        began = time.perf_counter()
        cut_all()
        took = time.perf_counter() - began
        way.synchronize()
        return text.length / took / 1e6

    return {
        f"GPU: cut in pieces of {most:,}": lambda: text.length / elapsed(cuda, way, cut_all) / 1e6,
        "one thread: gives the GPU this work": by_host,
    }
