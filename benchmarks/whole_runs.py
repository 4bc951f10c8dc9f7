"""Whole runs as a user has them: from a text file to vectors on disk, against gensim and fastText.

Each run is a process of its own, in an empty folder: it starts Python, reads one plain file (which the system has in
memory), counts words, trains, and writes its vectors. daskw2v is its command line, with its defaults, on so many
threads: one replica on one, rotation on several. It runs warm, with compiled kernels as every run but a machine's first
finds them, and cold, without.
gensim reads by `corpus_file`, its fastest way, and saves its KeyedVectors; fastText has no subwords, and saves
its model.
All have the same vector_size, window, negative, sample, min_count, alpha and epochs, and run in turn.

Processor seconds are those of all processes of a run. Peak memory is the most that all of them had together, sampled;
what several share counts once. A run a seed (fastText has one only); scores are means over them.

    python -m benchmarks.whole_runs [--parts 1 10 30] [--seeds 1 2 3] [--threads 2] [--epochs 5]
        [--tools "daskw2v, cold" "daskw2v, warm" gensim fasttext]
"""

import argparse
import compileall
import json
import statistics
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import fasttext
import numpy as np
from gensim.models import KeyedVectors, Word2Vec

import daskw2v
from benchmarks.harness import Benchmark, Session, Smoke, alternate
from benchmarks.peers import ABOUT, ZEROED, fasttext_arguments, gensim_arguments
from benchmarks.processes import Usage, run_process
from benchmarks.quality import judged
from benchmarks.tables import Spread
from benchmarks.texts import MB, name_of, write_text
from daskw2v.config.params import Params
from daskw2v.models.formats.keyed_vectors import from_gensim
from daskw2v.models.queries.vectors import Vectors
from daskw2v.objectives.registry import settle_params
from daskw2v.training.warm_up import warm_up
from daskw2v.vocabulary.vocabulary import Vocabulary

SETTING = ("vector_size", "window", "negative", "sample", "min_count", "alpha", "epochs", "seed")
SCORES = ("ws353", "simlex999", "google_analogy")


class Run(NamedTuple):
    """What a run took, and how good its vectors are."""

    usage: Usage
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
        setting = json.dumps({name: params.flat()[name] for name in SETTING})
        return [sys.executable, "-m", "benchmarks.whole_runs", "--child", tool, str(text), str(output), setting,
                str(threads)]  # fmt: skip
    options = [part for name in SETTING for part in (f"--{name.replace('_', '-')}", str(params.flat()[name]))]
    return [sys.executable, "-m", "daskw2v", "train", str(text), "--work", str(output), "--threads", str(threads),
            "--workers", "1", *options]  # fmt: skip


def run(tool: str, text: Path, folder: Path, params: Params, threads: int, seeds: list[int]) -> Run:
    """Train with the next seed, and judge the vectors."""
    params = params.replace(seed=seeds.pop(0))
    with tempfile.TemporaryDirectory(dir=folder) as name:
        output = Path(name, "vectors")
        environment = {COLD: {"NUMBA_CACHE_DIR": name}, "fasttext": ZEROED}.get(tool, {})
        usage = run_process(command_of(tool, text, output, params, threads), environment)
        vectors = READ[tool](output) if tool in READ else Vectors.open(output)
        scores = judged(vectors)
    return Run(usage, {name: scores[name] for name in SCORES})


def measure(session: Session) -> None:
    """Run all tools in turn on each text, a seed each."""
    options = session.options
    params = settle_params(Params(epochs=options.epochs))
    session.text = ", ".join(map(name_of, options.parts))
    session.peers = {tool: ABOUT[tool] for tool in options.tools if tool in ABOUT}
    compileall.compile_dir(Path(daskw2v.__file__).parent, quiet=1)  # as pip does with what it installs
    if WARM in options.tools:
        warm_up()
    columns = ("s", "daskw2v, warm is so many times as fast", "processor s", "peak MB", *SCORES)
    table = session.table(f"Whole runs on {options.threads} threads, {options.epochs} epochs", columns)
    for parts in options.parts:
        text = write_text(session.folder / f"text-{parts}", parts)
        seeds = {tool: list(options.seeds) for tool in options.tools}
        runs = {
            tool: partial(run, tool, text, session.folder, params, options.threads, seeds[tool])
            for tool in options.tools
        }
        results = alternate(runs, len(options.seeds))
        seconds = {tool: Spread.of(one.usage.seconds for one in these) for tool, these in results.items()}
        for tool, these in results.items():
            table.row(
                f"{10 * parts:g} MB, {tool}",
                seconds[tool],
                seconds[tool].middle / seconds[WARM].middle if WARM in seconds and tool != WARM else None,
                Spread.of(one.usage.processor_seconds for one in these),
                round(statistics.median(one.usage.peak for one in these) / MB),
                *(Spread.of((one.scores[name] for one in these), statistics.mean) for name in SCORES),
            )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", type=float, nargs="+", default=[1, 10, 30], help="of 10 MB")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="a run each")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--tools", nargs="+", choices=TOOLS, default=list(TOOLS))


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v",),
    Smoke({"parts": [0.1], "seeds": [1], "epochs": 1}, TOOLS),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:  # a peer, in a process of its own
        peer, text, output, setting, n_threads = sys.argv[2:]
        PEERS[peer](text, output, Params(**json.loads(setting)), int(n_threads))
    else:
        BENCHMARK.main()
