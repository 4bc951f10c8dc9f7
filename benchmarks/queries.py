"""Queries of a large model: opening it, the first query, and queries of one word and of many, against gensim.

The model has random vectors, or those of a trained model. What a query of one word has to do at least is to read the
table once, so beside it stand the product of the table with a vector and the largest number of the table (which only
reads), in the same process. A batch is compared with the product of the two matrices. gensim's `most_similar` has the
same vectors, in memory, and all lengths computed before.

The same queries are asked of an index of kind int8, whose table has a quarter of the bytes: its recall, of the ten
nearest of 1,000 words, is measured against exact search, and so is the share of the batch's queries that it cannot
answer for sure, which are searched again without it.

    python -m benchmarks.queries [--model URL | --words 1000000 --size 300] [--times 7]
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np
from gensim.models import KeyedVectors

from benchmarks.harness import Benchmark, Session, Smoke
from benchmarks.tables import Spread
from benchmarks.texts import MB
from daskw2v import IndexedVectors, Vectors, build_index
from daskw2v.vocabulary.vocabulary import Vocabulary

BATCH = 256
OPEN, FIRST = "open", "first query"
ONE, PRODUCT, READ, GENSIM_ONE = "one word", "product with a vector", "largest number", "one word, gensim"
MANY, PRODUCTS, STORED = f"{BATCH} words", f"product with {BATCH} vectors", "one word, not in memory"
INT8, INT8_MANY, INT8_STORED = f"{ONE}, int8", f"{MANY}, int8", f"{STORED}, int8"
OPENING = (
    "import json, sys, time; from daskw2v import Vectors; Vectors.open; began = time.perf_counter();"
    "model = Vectors.open(sys.argv[1]); there = time.perf_counter(); model.most_similar(sys.argv[2]);"
    "print(json.dumps([there - began, time.perf_counter() - there]))"
)


def random_vectors(n_words: int, size: int) -> Vectors:
    """Return vectors of the words 0, 1, ..."""
    rows = np.random.default_rng(1).standard_normal((n_words, size), np.float32)
    return Vectors(Vocabulary.from_words([*map(str, range(n_words))], range(n_words, 0, -1)), rows)


def opened(url: str, word: str) -> list[float]:
    """Open a model in a new process, its files being in the system's cache; return the seconds of it and of a query."""
    command = [sys.executable, "-c", OPENING, url, word]
    return list(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def timed(run: Callable[[], object]) -> Callable[[], float]:
    def call() -> float:
        began = time.perf_counter()
        run()
        return time.perf_counter() - began

    return call


def measure(session: Session) -> None:
    """Measure all in turn."""
    options, url = session.options, str(session.folder / "model")
    (Vectors.open(options.model) if options.model else random_vectors(options.words, options.size)).save(url)
    session.text = "vectors of a trained model" if options.model else "random vectors"
    session.peers = {"gensim": "KeyedVectors of the same vectors, in memory, with lengths"}
    model, stored = Vectors.open(url, in_memory=True), Vectors.open(url, in_memory=False)
    summary = build_index(url, kind="int8")
    indexed, index_stored = IndexedVectors.open(url, in_memory=True), IndexedVectors.open(url, in_memory=False)
    all_words, table = model.index_to_key, np.asarray(Vectors.open(url).vectors)
    keyed = KeyedVectors(model.vector_size)
    keyed.add_vectors(all_words, table)
    keyed.fill_norms()
    words, word, vectors = all_words[:BATCH], all_words[9], table[:BATCH].copy()
    runs: dict[str, Callable[[], object]] = {
        ONE: lambda: model.most_similar(word),
        PRODUCT: lambda: table @ table[9],
        READ: lambda: table.reshape(-1).max(),
        GENSIM_ONE: lambda: keyed.most_similar(word),
        MANY: lambda: model.nearest(model[words]),
        PRODUCTS: lambda: table @ vectors.T,
        STORED: lambda: stored.most_similar(word),
        INT8: lambda: indexed.most_similar(word),
        INT8_MANY: lambda: indexed.nearest(model[words]),
        INT8_STORED: lambda: index_stored.most_similar(word),
    }
    for run in runs.values():
        run()
    seconds = session.measure({name: timed(run) for name, run in runs.items()})
    new = [opened(url, word) for _ in range(options.times)]
    seconds |= {name: Spread.of(values) for name, values in zip((OPEN, FIRST), zip(*new, strict=True), strict=True)}
    assert indexed.searcher is not None
    bounds = indexed.searcher.candidates(model.units(range(BATCH)), 11).bounds
    unsure = float(np.mean(bounds > model.nearest(model[words], 11)[1][:, -1]))
    columns = ("s", "of reading the table", "MB searched", "recall", "searched again")
    size = table.nbytes
    shown = session.table(f"{len(model):,} words x {model.vector_size}, {size / 1e9:.2g} GB", columns, ".4f")
    for name, spread in seconds.items():
        searched: tuple[float | None, ...] = (None, None, None)
        if name in (ONE, MANY, STORED):
            searched = (round(size / MB), None, None)
        elif name in (INT8, INT8_MANY, INT8_STORED):
            searched = (round(summary.size / MB), summary.recall, unsure)
        shown.row(name, spread, spread.middle / seconds[READ].middle, *searched)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--words", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=300, help="of a vector")
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--model", help="whose vectors are taken, instead of random ones")


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/models",),
    Smoke(
        {"words": 2000, "size": 16, "times": 1},
        (OPEN, FIRST, ONE, PRODUCT, READ, GENSIM_ONE, MANY, PRODUCTS, STORED, INT8, INT8_MANY, INT8_STORED),
    ),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
