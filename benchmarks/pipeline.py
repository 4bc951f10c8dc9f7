"""Counting and encoding against gensim's scan: MB/s of text on one core, by format of the files, and peak memory.

gensim's scan only counts; ours counts, chooses the vocabulary and stores the text as ids. Each run is a process of
its own, so that its peak memory is its own. It does the work twice: the first time as a worker that just started, whose
compiled kernels are loaded then, the second time as one that has been running for a while. MB are those of the plain
text, whatever the format packs them to; `wc -w`, which only counts, stands for reading alone.

    python -m benchmarks.pipeline [--parts 10] [--times 5] [--formats text gz zst jsonl parquet]
"""

import argparse
import gzip
import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from benchmarks.harness import Benchmark, Session, Smoke, alternate
from benchmarks.processes import one_thread
from benchmarks.tables import Spread
from benchmarks.texts import MB, name_of, write_text
from daskw2v.cluster.workers import peak_memory
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.extras import needed
from daskw2v.shards.encode import build_corpus
from daskw2v.store.storage import Store
from daskw2v.vocabulary.count import build_vocabulary

OURS, GENSIM, WC = "daskw2v", "gensim", "wc -w"


class Took(NamedTuple):
    """Seconds of a process' second time, of its first, and of encoding alone; peak memory, 0 where nobody looked."""

    again: float
    first: float | None = None
    encoding: float | None = None
    peak: int = 0


def _parquet(text: bytes, path: Path) -> None:
    lines = pa.array(text.decode().splitlines(), pa.string())
    pq.write_table(pa.table({"text": lines}), path, row_group_size=1 << 16)


def _jsonl(text: bytes, path: Path) -> None:
    lines = text.decode().splitlines()
    path.write_text("".join(f"{json.dumps({'text': line}, ensure_ascii=False)}\n" for line in lines))


FORMATS: dict[str, tuple[str, Callable[[bytes, Path], object]]] = {
    "text": (".txt", lambda text, path: path.write_bytes(text)),
    "gz": (".txt.gz", lambda text, path: path.write_bytes(gzip.compress(text, 6))),
    "zst": (".txt.zst", lambda text, path: path.write_bytes(zstandard.compress(text, 3))),
    "jsonl": (".jsonl", _jsonl),
    "parquet": (".parquet", _parquet),
}


def run_ours(text: Path) -> Took:
    resources, seconds, encoding = Resources(threads=1), list[float](), 0.0
    with one_thread() as client, tempfile.TemporaryDirectory(dir=text.parent) as folder:
        for time_of in ("first", "again"):
            store, began = Store(f"{folder}/{time_of}"), time.perf_counter()
            corpus = build_corpus(text, store, Params(), resources, client, None)
            encoding = time.perf_counter() - began
            build_vocabulary(corpus, store, Params(), resources, client, None)
            seconds.append(time.perf_counter() - began)
    return Took(seconds[1], seconds[0], encoding, peak_memory())


def run_gensim(text: Path) -> Took:
    seconds, gensim = list[float](), needed("gensim.models", "bench")  # here: our processes do without
    for _ in range(2):
        began = time.perf_counter()
        gensim.Word2Vec(min_count=Params.min_count).build_vocab(corpus_file=str(text))
        seconds.append(time.perf_counter() - began)
    return Took(seconds[1], seconds[0], None, peak_memory())


def run_wc(text: Path) -> Took:
    began = time.perf_counter()
    subprocess.run(["wc", "-w", text], check=True, capture_output=True)
    return Took(time.perf_counter() - began)


def in_process(run: Callable[[Path], Took], text: Path) -> Took:
    """Run in a fresh process."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(run, text).result()


def measure(session: Session) -> None:
    options, runs = session.options, dict[str, Callable[[], Took]]()
    session.text = name_of(options.parts)
    session.peers = {GENSIM: "`build_vocab` from `corpus_file`, which only counts"}
    text = write_text(session.folder / "wiki.txt", options.parts)
    content = text.read_bytes()
    for name in options.formats:
        suffix, write = FORMATS[name]
        write(content, path := session.folder / f"packed{suffix}")
        runs[f"{OURS}, {name}"] = partial(in_process, run_ours, path)
    runs[GENSIM], runs[WC] = partial(in_process, run_gensim, text), partial(run_wc, text)
    found = alternate(runs, options.times)

    def speed(name: str, of: str) -> Spread | None:
        seconds = [getattr(took, of) for took in found[name]]
        return None if None in seconds else Spread.of(len(content) / MB / one for one in seconds)

    columns = ("MB/s", "encoding alone, MB/s", "the first time, MB/s", "peak MB")
    table = session.table("Counting and encoding", columns, ".1f")
    for name, took in found.items():
        peak = max(one.peak for one in took)
        speeds = (speed(name, of) for of in ("again", "encoding", "first"))
        table.row(name, *speeds, round(peak / MB) if peak else None)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", type=float, default=10, help="of 10 MB")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS))


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/shards", "daskw2v/corpus", "daskw2v/vocabulary"),
    Smoke({"parts": 0.03, "times": 1}, (OURS, GENSIM, WC, *FORMATS)),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
