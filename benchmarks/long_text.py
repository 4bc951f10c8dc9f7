"""Whole runs on text as long as users have it, on two workers of 3 GB: what each stage takes.

A text is drawn word by word. The most frequent ranks follow Zipf's law, all others a power law of such a slope that the
vocabulary grows by Heaps' law: 25 GB have more than 4 billion words, of which nearly 3 million occur five times or
more. Each run is the command `daskw2v train` in a process of its own, from plain files to a published version, one
epoch with the defaults; stages are told apart by its progress. The forecast of `estimate` stands beside.

Processor seconds are those of all processes of a run, memory that of the largest one, sampled. --killed runs a text
again, kills all processes once half of it is trained, and starts the same command once more.

    python -m benchmarks.long_text [--gigabytes 0.01 0.1 1 5 25] [--killed 1] [--workers 2] [--memory "3 GB"]
        [--size 100]

25 GB should take an hour and 50 GB of disk, in the folder for temporary files (TMPDIR): both are estimates.
"""

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import psutil

from benchmarks.harness import Benchmark, Session, Smoke
from benchmarks.texts import MB
from daskw2v import Params, Resources, estimate
from daskw2v.models.queries.vectors import Vectors

SENTENCE = 20  # words
BYTES_OF_WORD = 5.9  # with the space behind it: how many words of a text are drawn
FILE_WORDS = 1 << 24  # some 100 MB
FREQUENT, HEAPS = 20_000, 0.6  # ranks that follow Zipf's law; distinct words grow as words ** HEAPS
LETTERS = np.frombuffer(b"aeio", np.uint8)  # a word is its rank in base 4
WIDTH = 16  # letters of the longest word
STAGES = ("start", "encode", "vocabulary", "train")  # training ends with publishing
_LINE = re.compile(r"(\w+): (?:([\d.]+)([kMG]?)/([\d.]+)([kMG]?))?")
_UNITS = {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}
_EVERY = 0.5  # seconds between two samples of processes

Killed = Callable[[str, float], bool]  # whether to kill a run in a stage of which such a share is done


def draw(n: int, rng: np.random.Generator) -> npt.NDArray[np.uint32]:
    """Draw ranks of words, from 1 on."""
    slope = 1 / HEAPS - 1  # of the share of words beyond a rank
    head, tail = np.log(FREQUENT), 1 / slope  # relative masses of both laws, which meet at FREQUENT
    beyond = rng.random(n) < tail / (head + tail)
    ranks = np.exp(rng.random(n) * head)
    ranks[beyond] = FREQUENT * rng.random(beyond.sum()) ** (-1 / slope)
    return np.minimum(ranks, 4.0**WIDTH - 1).astype(np.uint32)


def spell(ranks: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint8]:
    """Return the text of words, a sentence a line."""
    text, kept = np.empty((len(ranks), WIDTH + 1), np.uint8), np.ones((len(ranks), WIDTH + 1), np.bool_)
    for place in range(WIDTH):
        rest = ranks >> np.uint32(2 * (WIDTH - 1 - place))
        text[:, place], kept[:, place] = LETTERS[rest & np.uint32(3)], rest > 0
    text[:, -1] = ord(" ")
    text[SENTENCE - 1 :: SENTENCE, -1] = ord("\n")
    return text[kept]


def write_file(path: Path, n_words: int, seed: int) -> None:
    """Write a file of the text, unless it is there."""
    if path.exists():
        return
    rng, part = np.random.default_rng(seed), path.with_suffix(".part")
    with part.open("wb") as out:
        for first in range(0, n_words, 1 << 21):
            out.write(spell(draw(min(1 << 21, n_words - first), rng)).tobytes())
    part.rename(path)


def write_text(folder: Path, gigabytes: float) -> list[Path]:
    """Write a text of so many GB, some 100 MB a file; a longer one begins with the files of a shorter one."""
    words = round(gigabytes * 1e9 / BYTES_OF_WORD)
    n_files = max(1, round(words / FILE_WORDS))
    paths = [folder / f"{i:04}.txt" for i in range(n_files)]
    if n_files == 1:
        paths = [folder / f"of-{words}-words.txt"]
    with ProcessPoolExecutor(2) as pool:
        list(pool.map(write_file, paths, [min(words, FILE_WORDS)] * n_files, range(n_files)))
    return paths


class Spent(NamedTuple):
    """What a stage took; `peak` is the bytes of the largest process."""

    seconds: float
    processor_seconds: float
    peak: int


class Processes:
    """All processes of a run, sampled: their processor seconds, and the memory of the largest."""

    def __init__(self, pid: int) -> None:
        self._parent, self._seconds, self._peak = psutil.Process(pid), dict[int, float](), 0

    def sample(self) -> None:
        with suppress(psutil.NoSuchProcess):
            for process in (self._parent, *self._parent.children(recursive=True)):
                with suppress(psutil.NoSuchProcess, psutil.AccessDenied):  # it has ended
                    times = process.cpu_times()
                    self._seconds[process.pid] = times.user + times.system
                    self._peak = max(self._peak, process.memory_info().rss)

    def spent(self) -> tuple[float, int]:
        """Return the processor seconds until now, and the largest memory since the last call."""
        self.sample()
        peak, self._peak = self._peak, 0
        return sum(self._seconds.values()), peak


def progress_of(line: str) -> tuple[str, float]:
    """Return the stage of a line of progress, "" for other lines, and the share of it that is done."""
    found = _LINE.match(line)
    if found is None:
        return "", 0.0
    stage, done, unit, total, total_unit = found.groups()
    share = 0.0 if total is None else float(done) * _UNITS[unit] / max(1e-9, float(total) * _UNITS[total_unit])
    return {"choose": "train"}.get(stage, stage), share


def run(command: Sequence[str], killed: Killed = lambda _, __: False) -> dict[str, Spent]:
    """Run a command to its end, or kill it with all processes; return what each stage took. Ends where it fails."""
    began, spent, said = time.perf_counter(), dict[str, Spent](), deque[str](maxlen=20)
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    processes, ended, stage = Processes(process.pid), threading.Event(), STAGES[0]

    def watch() -> None:
        while not ended.wait(_EVERY):
            processes.sample()

    def end_stage() -> Spent:
        before = total_of(spent) if spent else Spent(0, 0, 0)
        seconds, peak = processes.spent()
        return Spent(time.perf_counter() - began - before.seconds, seconds - before.processor_seconds, peak)

    watching = threading.Thread(target=watch)
    watching.start()
    assert process.stderr is not None
    for line in process.stderr:
        said.append(line)
        name, share = progress_of(line)
        if name in STAGES[STAGES.index(stage) + 1 :]:
            spent[stage], stage = end_stage(), name
        if killed(name, share):
            os.killpg(process.pid, signal.SIGKILL)
    code = process.wait()
    spent[stage] = end_stage()
    ended.set()
    watching.join()
    if code not in (0, -signal.SIGKILL):
        sys.exit(f"{' '.join(command)} ended with {code}: {''.join(said)}")
    return spent


def command_of(paths: Sequence[Path], work: Path, options: argparse.Namespace) -> list[str]:
    """Return what a user types."""
    given = {"work": work, "workers": options.workers, "threads": 1, "memory-limit": options.memory,
             "epochs": 1, "vector-size": options.size}  # fmt: skip
    flags = (part for name, value in given.items() for part in (f"--{name}", str(value)))
    return [sys.executable, "-m", "daskw2v", "train", *map(str, paths), *flags]


def measure(session: Session) -> None:
    """Run each text, the shortest first, and again those that are to be killed."""
    options, folder = session.options, session.fresh("text")
    sizes = sorted({*options.gigabytes, *options.killed})
    session.text = f"{', '.join(f'{size:g} GB' for size in sizes)} of words that are drawn; d={options.size}, one epoch"
    columns = ("million words", "million words kept", *(f"s of a billion words: {name}" for name in STAGES[1:]),
               "processor s", "s of the run", "s of training, forecast", "peak MB")  # fmt: skip
    table = session.table(f"Whole runs, {options.workers} workers of one thread and {options.memory}", columns, ",.4g")
    for size in sizes:
        paths, work = write_text(folder, size), session.fresh("work")
        stages = run(command_of(paths, work, options))
        words, kept = counted_in(work)
        shutil.rmtree(work)
        spent = total_of(stages)
        per_billion = [stages[name].seconds / words * 1e9 for name in STAGES[1:]]
        planned = forecast(paths, kept, options)
        table.row(f"{size:g} GB", words / 1e6, kept / 1e6, *per_billion, spent.processor_seconds / words * 1e9,
                  spent.seconds, planned, spent.peak / MB)  # fmt: skip
        if size in options.killed:
            work = session.fresh("work")
            command = command_of(paths, work, options)
            reached = list[float]()  # share of training at which the run was killed

            def has_half(stage: str, share: float, reached: list[float] = reached) -> bool:
                if stage != "train" or share <= 0.5 or reached:
                    return False
                reached.append(share)
                return True

            parts = run(command, has_half), run(command)
            shutil.rmtree(work)
            both = total_of({str(i): total_of(part) for i, part in enumerate(parts)})
            costs = f"killed at {reached[0]:.0%} of training, which costs {both.seconds - spent.seconds:+.0f} s"
            table.row(f"{size:g} GB, {costs}", *[None] * 6, both.seconds, None, both.peak / MB)
    shutil.rmtree(folder)


def total_of(stages: Mapping[str, Spent]) -> Spent:
    """Return what all stages took together."""
    seconds, processor_seconds, peaks = zip(*stages.values(), strict=True)
    return Spent(sum(seconds), sum(processor_seconds), max(peaks))


def counted_in(work: Path) -> tuple[int, int]:
    """Return the running words of the version in a work directory, and the words that its vocabulary keeps."""
    vectors = Vectors.open(work, in_memory=False)
    return int(vectors.metadata["corpus"]["tokens"]), len(vectors)


def forecast(paths: Sequence[Path], kept: int, options: argparse.Namespace) -> float | None:
    """Return the seconds of training that `estimate` forecasts for a run of so many words in the vocabulary."""
    planned = estimate(
        [str(path) for path in paths],
        params=Params(epochs=1, vector_size=options.size),
        resources=Resources(workers=options.workers, threads=1, memory_limit=options.memory),
        words=kept,
        listener=None,
    )
    found = planned.chosen.forecast
    return None if found is None else found.total


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--gigabytes", type=float, nargs="+", default=[0.01, 0.1, 1, 5, 25])
    parser.add_argument("--killed", type=float, nargs="*", default=[1], help="GB of texts whose run is killed, too")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--memory", default="3 GB", help="of a worker")
    parser.add_argument("--size", type=int, default=100, help="vector_size")


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v",),
    Smoke({"gigabytes": [0.002], "killed": [0.004], "size": 16}, ("0.002 GB", "killed at")),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
