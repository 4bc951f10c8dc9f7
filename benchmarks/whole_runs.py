"""Whole runs as a user has them: from a text file to vectors on disk, against gensim and fastText.

Each run is a process of its own, in an empty folder: it starts Python, reads one plain file (which the system has in
memory), counts words, trains, and writes its vectors. daskw2v is its command line, with its defaults, on so many
threads: one replica on one, rotation on several. It runs warm, with compiled kernels as every run but a machine's first
finds them, and cold, without.
gensim reads by `corpus_file`, its fastest way, and saves its KeyedVectors; fastText has no subwords, and saves
its model.
All have the same vector_size, window, negative, sample, min_count, alpha and epochs, and run in turn.

Processor seconds are those of all processes of a run. Peak memory is the most that all of them had together, sampled;
what several share counts once. Each time has a seed of its own (fastText has one only); scores are means over them.

    python -m benchmarks.whole_runs [--parts 1 10 30] [--times 3] [--threads 2] [--epochs 5]
        [--tools "daskw2v, cold" "daskw2v, warm" gensim fasttext] [--json]
"""

import argparse
import compileall
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, TextIO

import fasttext
import numpy as np
import psutil
from gensim.models import KeyedVectors, Word2Vec

import daskw2v
from benchmarks.common import alternate, finish, spread, wiki_parts, write_text
from benchmarks.options import Smoke, parsed
from benchmarks.peers import ZEROED, fasttext_arguments, gensim_arguments
from benchmarks.quality import judged
from daskw2v.config.params import Params
from daskw2v.models.keyed_vectors import from_gensim
from daskw2v.models.vectors import Vectors
from daskw2v.objectives.registry import settled
from daskw2v.training.warm_up import warm_up
from daskw2v.vocabulary.vocabulary import Vocabulary

SETTING = ("vector_size", "window", "negative", "sample", "min_count", "alpha", "epochs", "seed")
SCORES = ("ws353", "simlex999", "google_analogy")
MB = 10**6
EVERY = 0.2  # seconds between looks at memory


@dataclass(frozen=True)
class Row:
    """Medians, and means of the scores."""

    megabytes: float
    tool: str
    seconds: float
    spread: str
    processor_seconds: float
    peak_megabytes: float
    scores: dict[str, float]


class Run(NamedTuple):
    """What a run took, and how good its vectors are."""

    seconds: float
    processor_seconds: float
    peak: int
    scores: dict[str, float]


def train_gensim(text: str, output: str, params: Params, threads: int) -> None:
    model = Word2Vec(**gensim_arguments(params, threads), corpus_file=text)
    model.wv.save(output)


def train_fasttext(text: str, output: str, params: Params, threads: int) -> None:
    arguments = fasttext_arguments(Path(text), params, threads)
    fasttext.train_unsupervised(**arguments, epoch=params.epochs).save_model(output)


def _fasttext_vectors(path: Path) -> Vectors:
    model = fasttext.load_model(str(path))
    words, counts = model.get_words(include_freq=True)
    known = [(word, int(count)) for word, count in zip(words, counts, strict=True) if word != "</s>"]
    rows = np.array([model.get_word_vector(word) for word, _ in known], np.float32)
    return Vectors(Vocabulary.from_words(*zip(*known, strict=True)), rows)


PEERS: dict[str, Callable[[str, str, Params, int], None]] = {"gensim": train_gensim, "fasttext": train_fasttext}
READ: dict[str, Callable[[Path], Vectors]] = {
    "gensim": lambda path: from_gensim(KeyedVectors.load(str(path))),
    "fasttext": _fasttext_vectors,
}
COLD, WARM = "daskw2v, cold", "daskw2v, warm"
TOOLS = (COLD, WARM, *PEERS)


def command_of(tool: str, text: Path, output: Path, params: Params, threads: int) -> list[str]:
    """Return what a user types, or for tools without a command line the same in Python."""
    if tool in PEERS:
        setting = json.dumps({name: getattr(params, name) for name in SETTING})
        return [sys.executable, "-m", "benchmarks.whole_runs", "--child", tool, str(text), str(output), setting,
                str(threads)]  # fmt: skip
    options = [part for name in SETTING for part in (f"--{name.replace('_', '-')}", str(getattr(params, name)))]
    return [sys.executable, "-m", "daskw2v", "train", str(text), "--work", str(output), "--threads", str(threads),
            "--workers", "1", *options]  # fmt: skip


def memory_of(pid: int) -> int:
    """Return the bytes that a process and all below it have; of what several share, each has its part."""
    total = 0
    try:
        processes = [parent := psutil.Process(pid), *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return 0
    for process in processes:
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):  # it has ended
            total += process.memory_full_info().pss
    return total


def measure(command: Sequence[str], environment: Mapping[str, str], *, memory: bool = True) -> tuple[float, float, int]:
    """Run a command; return its seconds, the processor seconds of all its processes, and their peak memory.

    Without `memory` that is 0: whoever looks at it takes a processor's time, and holds up those who ask for memory.
    """
    began, peak, ended = time.perf_counter(), 0, threading.Event()
    process = subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )  # fmt: skip

    def watch() -> None:
        nonlocal peak
        while not ended.wait(EVERY):
            peak = max(peak, memory_of(process.pid))

    assert process.stderr is not None
    with ThreadPoolExecutor(2) as pool:
        said, watching = pool.submit(process.stderr.read), pool.submit(watch) if memory else None
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        ended.set()
        if watching is not None:
            watching.result()
        if code := os.waitstatus_to_exitcode(status):
            sys.exit(f"{' '.join(command)} ended with {code}: {said.result().decode()}")
    return seconds, usage.ru_utime + usage.ru_stime, peak


def run(tool: str, text: Path, folder: Path, params: Params, threads: int, seeds: list[int]) -> Run:
    """Train with the next seed, and judge the vectors."""
    params = params.replace(seed=seeds.pop(0))
    with tempfile.TemporaryDirectory(dir=folder) as name:
        output = Path(name, "vectors")
        environment = {COLD: {"NUMBA_CACHE_DIR": name}, "fasttext": ZEROED}.get(tool, {})
        took = measure(command_of(tool, text, output, params, threads), environment)
        vectors = READ[tool](output) if tool in READ else Vectors.open(output)
        scores = judged(vectors)
    return Run(*took, {name: scores[name] for name in SCORES})


def text_of(folder: Path, parts: float) -> Path:
    """Write tenths of the 100 MB; more than ten begin it again."""
    path, n = folder / f"text-{parts}.txt", len(wiki_parts())
    with path.open("wb") as out:
        while parts > 0:
            out.write(write_text(folder / "piece.txt", min(n, parts)).read_bytes())
            parts -= n
    return path


def compare(text: Path, folder: Path, params: Params, options: argparse.Namespace) -> list[Row]:
    """Run all tools in turn."""
    seeds = {tool: list(range(1, options.times + 1)) for tool in options.tools}
    runs = {tool: partial(run, tool, text, folder, params, options.threads, seeds[tool]) for tool in options.tools}
    rows = []
    for tool, found in alternate(runs, options.times).items():
        seconds = [one.seconds for one in found]
        rows.append(
            Row(
                round(text.stat().st_size / MB, 1),
                tool,
                statistics.median(seconds),
                spread(seconds),
                statistics.median(one.processor_seconds for one in found),
                statistics.median(one.peak for one in found) / MB,
                {name: statistics.mean(one.scores[name] for one in found) for name in SCORES},
            )
        )
    return rows


def report(rows: Sequence[Row], options: argparse.Namespace, out: TextIO) -> None:
    """Print a line for each tool."""
    columns = "s | processor s | peak MB | WS353 | SimLex-999 | Google"
    print(f"| {options.threads} threads, {options.epochs} epochs | {columns} |", file=out)
    print("|---|---|---|---|---|---|---|", file=out)
    for row in rows:
        scores = " | ".join(f"{row.scores[name]:.3f}" for name in SCORES)
        print(
            f"| {row.megabytes:g} MB, {row.tool} | {row.seconds:.1f} ({row.spread}) | {row.processor_seconds:.1f} | "
            f"{row.peak_megabytes:,.0f} | {scores} |",
            file=out, flush=True,
        )  # fmt: skip


SMOKE = Smoke({"parts": [0.1], "times": 1, "epochs": 1}, TOOLS)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=float, nargs="+", default=[1, 10, 30], help="tenths of the 100 MB corpus")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))
    parser.add_argument(
        "--child", nargs=5, metavar=("TOOL", "TEXT", "OUTPUT", "PARAMS", "THREADS"), help=argparse.SUPPRESS
    )
    return parsed(parser, SMOKE)


def main() -> None:
    options = parse()
    if options.child:
        tool, text, output, setting, threads = options.child
        PEERS[tool](text, output, Params(**json.loads(setting)), int(threads))
        return
    out, rows = sys.stderr if options.json else sys.stdout, []
    params = settled(Params(epochs=options.epochs))
    compileall.compile_dir(Path(daskw2v.__file__).parent, quiet=1)  # as pip does with what it installs
    if WARM in options.tools:
        warm_up()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for parts in options.parts:
            found = compare(text_of(folder, parts), folder, params, options)
            report(found, options, out)
            rows += found
    finish(rows, out, as_json=options.json)


if __name__ == "__main__":
    main()
