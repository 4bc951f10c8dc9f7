"""Count and encode against gensim's scan: MB/s of plain text on one core, and peak memory.

gensim's scan only counts; ours counts, chooses the vocabulary and stores the text as ids. Each run is a process of
its own, so that its peak memory is its own; it does the work twice, and the second time counts, as on a worker that
has been running for a while.

    python -m benchmarks.pipeline [--parts 10] [--times 5] [--json]
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from gensim.models import Word2Vec

from benchmarks.common import alternate, finish, one_thread, spread, write_text
from benchmarks.options import Smoke, parsed
from daskw2v.cluster import peak_memory
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.shards.encode import build_corpus
from daskw2v.store.storage import Store
from daskw2v.vocabulary.count import build_vocabulary


@dataclass(frozen=True)
class Row:
    """The median of a tool's runs, and its largest peak of memory."""

    tool: str
    mb_per_second: float
    spread: str
    peak_mb: float


def run_ours(text: Path, folder: Path) -> float:
    resources = Resources(threads=1)
    with one_thread() as client:
        seconds = 0.0
        for _ in range(2):
            store = Store(tempfile.mkdtemp(dir=folder))
            began = time.perf_counter()
            corpus = build_corpus(text, store, Params(), resources, client)
            build_vocabulary(corpus, store, Params(), resources, client)
            seconds = time.perf_counter() - began
    return seconds


def run_gensim(text: Path, folder: Path) -> float:
    seconds = 0.0
    for _ in range(2):
        began = time.perf_counter()
        Word2Vec(min_count=5).build_vocab(corpus_file=str(text))
        seconds = time.perf_counter() - began
    return seconds


RUNS = {"daskw2v": run_ours, "gensim": run_gensim}


SMOKE = Smoke({"parts": 0.1, "times": 1}, tuple(RUNS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=float, default=10, help="tenths of the 100 MB corpus")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--child", nargs=3, metavar=("TOOL", "TEXT", "FOLDER"), help=argparse.SUPPRESS)
    options = parsed(parser, SMOKE)
    if options.child:
        tool, text, folder = options.child
        seconds = RUNS[tool](Path(text), Path(folder))
        print(json.dumps({"seconds": seconds, "peak": peak_memory()}))
        return
    with tempfile.TemporaryDirectory() as folder:
        text = write_text(Path(folder) / "wiki.txt", options.parts)
        size = text.stat().st_size / 1e6
        peaks = dict.fromkeys(RUNS, 0.0)

        def measure(tool: str) -> float:
            command = [sys.executable, "-m", "benchmarks.pipeline", "--child", tool, str(text), folder]
            answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            peaks[tool] = max(peaks[tool], answer["peak"] / 1e6)
            return size / answer["seconds"]

        results = alternate({tool: partial(measure, tool) for tool in RUNS}, options.times)
    rows = [Row(tool, statistics.median(found), spread(found), peaks[tool]) for tool, found in results.items()]
    out = sys.stderr if options.json else sys.stdout
    for row in rows:
        print(f"{row.tool}: {row.mb_per_second:.0f} MB/s ({row.spread}), peak {row.peak_mb:.0f} MB", file=out)
    ours, theirs = (row.mb_per_second for row in rows)
    print(f"ratio {ours / theirs:.1f}x", file=out)
    finish(rows, out, as_json=options.json)


if __name__ == "__main__":
    main()
