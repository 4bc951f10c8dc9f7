"""Queries of a large model: opening it, the first query, and queries of one word and of many.

The model has random vectors. What a query of one word has to do at least is to read the table once, so beside it stand
the product of the table with a vector and the largest number of the table (which only reads), in the same process. A
batch is compared with the product of the two matrices. gensim's `most_similar` has the same vectors, in memory, and
all lengths computed before.

    python -m benchmarks.queries [--words 1000000] [--size 300] [--times 7] [--json]
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gensim.models import KeyedVectors

from benchmarks.common import alternate, finish, spread
from benchmarks.options import Smoke, parsed
from daskw2v import Vectors
from daskw2v.models.store import create_model, write_table_rows, write_vocabulary
from daskw2v.models.versions import publish
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary

_BLOCK = 1 << 25  # bytes of rows written at once
BATCH = 256
OPEN, FIRST = "open", "first query"
ONE, PRODUCT, READ, GENSIM_ONE = "one word", "product with a vector", "largest number", "one word, gensim"
MANY, PRODUCTS, STORED = f"{BATCH} words", f"product with {BATCH} vectors", "one word, not in memory"


@dataclass(frozen=True)
class Row:
    """The median of what was timed."""

    what: str
    seconds: float
    spread: str


def write_model(work: Store, n_words: int, size: int) -> None:
    """Write and publish a model of random vectors."""
    store, rows, random = work / "models" / "v0001-random", max(1, _BLOCK // (4 * size)), np.random.default_rng(1)
    create_model(store, {"input": (n_words, size)}, rows)
    for start in range(0, n_words, rows):
        n = min(rows, n_words - start)
        write_table_rows(store, "input", start, random.standard_normal((n, size), np.float32))
    write_vocabulary(store, Vocabulary.from_words([*map(str, range(n_words))], range(n_words, 0, -1)))
    publish(work / "models", store.name, {})


def opened(url: str) -> list[float]:
    """Open a model in a new process, its files being in the system's cache; return the seconds of it and of a query."""
    code = (
        "import json, sys, time; from daskw2v import Vectors; Vectors.open; began = time.perf_counter();"
        "model = Vectors.open(sys.argv[1]); there = time.perf_counter(); model.most_similar('7');"
        "print(json.dumps([there - began, time.perf_counter() - there]))"
    )
    answer = subprocess.run([sys.executable, "-c", code, url], check=True, capture_output=True, text=True).stdout
    return list(json.loads(answer))


def compare(url: str, times: int) -> list[Row]:
    """Measure all in turn."""
    model, stored = Vectors.open(url, in_memory=True), Vectors.open(url, in_memory=False)
    table = np.asarray(model.vectors)
    keyed = KeyedVectors(model.vector_size)
    keyed.add_vectors([*map(str, range(len(model)))], table)
    keyed.fill_norms()
    words, vectors = [*map(str, range(BATCH))], table[:BATCH].copy()
    runs: dict[str, Callable[[], object]] = {
        ONE: lambda: model.most_similar("9"),
        PRODUCT: lambda: table @ table[9],
        READ: lambda: table.reshape(-1).max(),
        GENSIM_ONE: lambda: keyed.most_similar("9"),
        MANY: lambda: model.nearest(model[words]),
        PRODUCTS: lambda: table @ vectors.T,
        STORED: lambda: stored.most_similar("9"),
    }

    def timed(run: Callable[[], object]) -> float:
        began = time.perf_counter()
        run()
        return time.perf_counter() - began

    for run in runs.values():
        run()
    found = alternate({name: lambda run=run: timed(run) for name, run in runs.items()}, times)  # type: ignore[misc]
    first = [opened(url) for _ in range(times)]
    found |= {OPEN: [seconds for seconds, _ in first], FIRST: [seconds for _, seconds in first]}
    return [Row(name, statistics.median(seconds), spread(seconds)) for name, seconds in found.items()]


SMOKE = Smoke(
    {"words": 2000, "size": 16, "times": 1}, (OPEN, FIRST, ONE, PRODUCT, READ, GENSIM_ONE, MANY, PRODUCTS, STORED)
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=300, help="of a vector")
    parser.add_argument("--times", type=int, default=7)
    options = parsed(parser, SMOKE)
    out = sys.stderr if options.json else sys.stdout
    with tempfile.TemporaryDirectory() as folder:
        work = Store(str(Path(folder) / "work"))
        write_model(work, options.words, options.size)
        rows = compare(work.url, options.times)
    seconds = {row.what: row.seconds for row in rows}
    size = 4e-9 * options.words * options.size
    print(f"{options.words:,} words x {options.size}, {size:.2g} GB", file=out)
    for row in rows:
        print(f"{row.what}: {row.seconds:.4f} s ({row.spread})", file=out)
    print(
        f"one word takes {seconds[ONE] / seconds[READ]:.1f} times reading, {seconds[ONE] / seconds[PRODUCT]:.1f} times "
        f"the product, {seconds[ONE] / seconds[GENSIM_ONE]:.1f} times gensim; {BATCH} words take "
        f"{seconds[MANY] / seconds[PRODUCTS]:.1f} times their product",
        file=out,
    )
    finish(rows, out, as_json=options.json)


if __name__ == "__main__":
    main()
