"""Queries of a large model: opening it, the first query, and queries of one word and of many.

The model has random vectors, or those of a trained model. What a query of one word has to do at least is to read the
table once, so beside it stand the product of the table with a vector and the largest number of the table (which only
reads), in the same process. A batch is compared with the product of the two matrices. gensim's `most_similar` has the
same vectors, in memory, and all lengths computed before.

The same queries are asked of an index of kind int8, whose table has a quarter of the bytes: its recall, of the ten
nearest of 1,000 words, is measured against exact search, and so is the share of the batch's queries that it cannot
answer for sure, which are searched again without it.

    python -m benchmarks.queries [--model URL | --words 1000000 --size 300] [--times 7] [--json]
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gensim.models import KeyedVectors

from benchmarks.common import alternate, finish, spread
from benchmarks.options import Smoke, parsed
from daskw2v import IndexedVectors, Vectors, build_index
from daskw2v.models.store import write_vocabulary
from daskw2v.models.tables import create_model, write_table_rows
from daskw2v.models.versions import publish
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary

_BLOCK = 1 << 25  # bytes of rows written at once
BATCH = 256
OPEN, FIRST = "open", "first query"
ONE, PRODUCT, READ, GENSIM_ONE = "one word", "product with a vector", "largest number", "one word, gensim"
MANY, PRODUCTS, STORED = f"{BATCH} words", f"product with {BATCH} vectors", "one word, not in memory"
INT8, INT8_MANY, INT8_STORED = f"{ONE}, int8", f"{MANY}, int8", f"{STORED}, int8"


@dataclass(frozen=True)
class Row:
    """The median of what was timed; of queries, the bytes that are searched, and of an index, recall and sureness.

    Parameters
    ----------
    recall
        Share of the ten nearest of 1,000 words that are found.
    unsure
        Share of a batch's queries that the index leaves to exact search.
    """

    what: str
    seconds: float
    spread: str
    searched: float | None = None
    recall: float | None = None
    unsure: float | None = None

    def __str__(self) -> str:
        more = f", {self.searched / 1e6:,.0f} MB" if self.searched else ""
        more += "" if self.recall is None else f", recall {self.recall:.4f}, {self.unsure:.2%} searched again"
        return f"{self.what}: {self.seconds:.4f} s ({self.spread}){more}"


def random_rows(n_words: int, size: int) -> Iterable[np.ndarray]:
    """Make random vectors block by block."""
    random, rows = np.random.default_rng(1), _rows(size)
    for start in range(0, n_words, rows):
        yield random.standard_normal((min(rows, n_words - start), size), np.float32)


def trained_rows(model: Vectors) -> Iterable[np.ndarray]:
    """Read a model's vectors block by block."""
    rows = _rows(model.vector_size)
    for start in range(0, len(model), rows):
        yield model.rows(slice(start, start + rows))


def _rows(size: int) -> int:
    return max(1, _BLOCK // (4 * size))


def write_model(work: Store, n_words: int, size: int, blocks: Iterable[np.ndarray]) -> None:
    """Write and publish a model of these vectors, whose words are numbers."""
    store, start = work / "models" / "v0001-copy", 0
    create_model(store, {"input": (n_words, size)}, _rows(size))
    for block in blocks:
        write_table_rows(store, "input", start, block)
        start += len(block)
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
    table = np.asarray(Vectors.open(url).vectors)
    summary = build_index(url, kind="int8")
    indexed, index_stored = IndexedVectors.open(url, in_memory=True), IndexedVectors.open(url, in_memory=False)
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
        INT8: lambda: indexed.most_similar("9"),
        INT8_MANY: lambda: indexed.nearest(model[words]),
        INT8_STORED: lambda: index_stored.most_similar("9"),
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
    assert indexed.searcher is not None
    others = indexed.searcher.candidates(model.units(range(BATCH)), 11).others
    unsure = float(np.mean(others > model.nearest(model[words], 11)[1][:, -1]))
    searched: dict[str, tuple[float, ...]] = dict.fromkeys((ONE, MANY, STORED), (table.nbytes,))
    searched |= dict.fromkeys((INT8, INT8_MANY, INT8_STORED), (summary.size, summary.recall, unsure))
    return [Row(name, statistics.median(all_), spread(all_), *searched.get(name, ())) for name, all_ in found.items()]


SMOKE = Smoke(
    {"words": 2000, "size": 16, "times": 1},
    (OPEN, FIRST, ONE, PRODUCT, READ, GENSIM_ONE, MANY, PRODUCTS, STORED, INT8, INT8_MANY, INT8_STORED),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=1_000_000)
    parser.add_argument("--size", type=int, default=300, help="of a vector")
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--model", help="whose vectors are taken, instead of random ones")
    options = parsed(parser, SMOKE)
    out = sys.stderr if options.json else sys.stdout
    with tempfile.TemporaryDirectory() as folder:
        work, shape = Store(str(Path(folder) / "work")), (options.words, options.size)
        blocks = random_rows(*shape)
        if options.model:
            model = Vectors.open(options.model)
            shape, blocks = (len(model), model.vector_size), trained_rows(model)
        write_model(work, *shape, blocks)
        rows = compare(work.url, options.times)
    seconds = {row.what: row.seconds for row in rows}
    print(f"{shape[0]:,} words x {shape[1]}, {4e-9 * shape[0] * shape[1]:.2g} GB", file=out)
    for row in rows:
        print(row, file=out)
    print(
        f"one word takes {seconds[ONE] / seconds[READ]:.1f} times reading, {seconds[ONE] / seconds[PRODUCT]:.1f} times "
        f"the product, {seconds[ONE] / seconds[GENSIM_ONE]:.1f} times gensim; {BATCH} words take "
        f"{seconds[MANY] / seconds[PRODUCTS]:.1f} times their product; with an index of int8, one word is "
        f"{seconds[ONE] / seconds[INT8]:.1f} times as fast, and {BATCH} words {seconds[MANY] / seconds[INT8_MANY]:.1f}",
        file=out,
    )
    finish(rows, out, as_json=options.json)


if __name__ == "__main__":
    main()
