"""Count and encode against gensim's scan: MB/s of text on one core, by format of the files, and peak memory.

gensim's scan only counts; ours counts, chooses the vocabulary and stores the text as ids. Each run is a process of
its own, so that its peak memory is its own. It does the work twice: the first time as a worker that just started, whose
kernels are compiled (they are loaded then), the second time as one that has been running for a while. MB are those of
the plain text, whatever the format packs them to; `wc -w`, which only counts, stands for reading alone.

    python -m benchmarks.pipeline [--parts 10] [--times 5] [--formats text gz zst jsonl parquet] [--json]
"""

import argparse
import gzip
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from benchmarks.common import alternate, finish, one_thread, spread, write_text
from benchmarks.options import Smoke, parsed
from daskw2v.cluster import peak_memory
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.extras import needed
from daskw2v.shards.encode import build_corpus
from daskw2v.store.storage import Store
from daskw2v.vocabulary.count import build_vocabulary

GENSIM, WC = "gensim", "wc -w"


class Took(NamedTuple):
    """Seconds of a process' first and second time, of which encoding took; peak memory in MB."""

    first: float
    again: float
    encoding: float
    peak: float


@dataclass(frozen=True)
class Row:
    """The median of a tool's runs on files of a format, and its largest peak of memory; `wc` has none.

    Speeds are those of the second time, of its encoding alone, and of the first time.
    """

    tool: str
    format: str
    mb_per_second: float
    spread: str
    encoding_mb_per_second: float
    first_mb_per_second: float
    peak_mb: float


def _parquet(text: bytes, path: Path) -> None:
    lines = pa.array(text.decode().splitlines(), pa.string())
    pq.write_table(pa.table({"text": lines}), path, row_group_size=1 << 16)


def _jsonl(text: bytes, path: Path) -> None:
    path.write_text(
        "".join(f"{json.dumps({'text': line}, ensure_ascii=False)}\n" for line in text.decode().splitlines())
    )


FORMATS: dict[str, tuple[str, Callable[[bytes, Path], object]]] = {
    "text": (".txt", lambda text, path: path.write_bytes(text)),
    "gz": (".txt.gz", lambda text, path: path.write_bytes(gzip.compress(text, 6))),
    "zst": (".txt.zst", lambda text, path: path.write_bytes(zstandard.compress(text, 3))),
    "jsonl": (".jsonl", _jsonl),
    "parquet": (".parquet", _parquet),
}


def run_ours(text: Path, folder: Path) -> list[float]:
    """Return the seconds of the first time, of the second, and of its encoding."""
    resources, seconds, encoding = Resources(threads=1), list[float](), 0.0
    with one_thread() as client:
        for _ in range(2):
            store = Store(tempfile.mkdtemp(dir=folder))
            began = time.perf_counter()
            corpus = build_corpus(text, store, Params(), resources, client)
            encoding = time.perf_counter() - began
            build_vocabulary(corpus, store, Params(), resources, client)
            seconds.append(time.perf_counter() - began)
    return [*seconds, encoding]


def run_gensim(text: Path, folder: Path) -> list[float]:
    seconds, gensim = list[float](), needed("gensim.models", "bench")  # here: our processes do without
    for _ in range(2):
        began = time.perf_counter()
        gensim.Word2Vec(min_count=5).build_vocab(corpus_file=str(text))
        seconds.append(time.perf_counter() - began)
    return [*seconds, seconds[-1]]


RUNS = {"daskw2v": run_ours, GENSIM: run_gensim}


def measure(tool: str, text: Path, folder: str) -> Took:
    """Run a tool in a process of its own."""
    if tool == WC:
        began = time.perf_counter()
        subprocess.run(["wc", "-w", str(text)], check=True, capture_output=True)
        seconds = time.perf_counter() - began
        return Took(seconds, seconds, seconds, 0.0)
    command = [sys.executable, "-m", "benchmarks.pipeline", "--child", tool, str(text), folder]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    first, again, encoding = answer["seconds"]
    return Took(first, again, encoding, answer["peak"] / 1e6)


def compare(text: Path, formats: Sequence[str], times: int, folder: str) -> list[Row]:
    """Measure all tools in turn."""
    size, content, runs = text.stat().st_size / 1e6, text.read_bytes(), dict[tuple[str, str], Path]()
    for name in formats:
        suffix, write = FORMATS[name]
        path = Path(folder) / f"packed{suffix}"
        write(content, path)
        runs["daskw2v", name] = path
    runs |= {(tool, "text"): text for tool in (GENSIM, WC)}
    names = {f"{tool}, {format}": (tool, format) for tool, format in runs}
    found = alternate({name: partial(measure, of[0], runs[of], folder) for name, of in names.items()}, times)
    return [
        Row(
            *names[name],
            statistics.median(size / took.again for took in results),
            spread([size / took.again for took in results]),
            statistics.median(size / took.encoding for took in results),
            statistics.median(size / took.first for took in results),
            max(took.peak for took in results),
        )
        for name, results in found.items()
    ]


SMOKE = Smoke({"parts": 0.03, "times": 1}, (*RUNS, WC, *FORMATS))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=float, default=10, help="tenths of the 100 MB corpus")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS))
    parser.add_argument("--child", nargs=3, metavar=("TOOL", "TEXT", "FOLDER"), help=argparse.SUPPRESS)
    options = parsed(parser, SMOKE)
    if options.child:
        tool, text, folder = options.child
        seconds = RUNS[tool](Path(text), Path(folder))
        print(json.dumps({"seconds": seconds, "peak": peak_memory()}))
        return
    with tempfile.TemporaryDirectory() as folder:
        rows = compare(write_text(Path(folder) / "wiki.txt", options.parts), options.formats, options.times, folder)
    out = sys.stderr if options.json else sys.stdout
    for row in rows:
        print(
            f"{row.tool}, {row.format}: {row.mb_per_second:.0f} MB/s ({row.spread}), encoding alone "
            f"{row.encoding_mb_per_second:.0f}, all of it the first time {row.first_mb_per_second:.0f}, "
            f"peak {row.peak_mb:.0f} MB",
            file=out,
        )
    speeds = {(row.tool, row.format): row.mb_per_second for row in rows}
    if ("daskw2v", "text") in speeds:
        print(f"ratio to gensim {speeds['daskw2v', 'text'] / speeds[GENSIM, 'text']:.1f}x", file=out)
    finish(rows, out, as_json=options.json)


if __name__ == "__main__":
    main()
