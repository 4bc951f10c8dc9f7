"""Small vectors: what they take, the neighbours that they find, and their scores.

Vectors of 128 dimensions are made smaller in four ways. Plainly cut: the first columns of a model that was trained as
usual. Matryoshka: those of one whose `prefix_sizes` they are. By themselves: models of so few dimensions. Codes: tables
of int8, signs and product quantization (`daskw2v index --kind`).

Recall is the share of the ten nearest words, by the float32 of all columns of the same model, that are found: by the
small vectors alone, and by 128 candidates of theirs that the whole vectors rank; signs tell little, so also by 512.
Models by themselves have no others to find. Scores of codes are those of the vectors that they stand for; once whole
vectors rank, scores are theirs. A query is the search for one word's neighbours, ranked where there is an index.
Figures are means over seeds.

    python -m benchmarks.small_vectors [--seeds 1 2 3] [--sizes 32 64] [--parts 10] [--epochs 5] [--objective sgns]
        [--threads 1] [--json]
"""

import argparse
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.common import print_rows, write_text
from benchmarks.options import Smoke, parsed
from benchmarks.quality import Place, judged, train_ours
from daskw2v.config.params import Params
from daskw2v.models import codebooks
from daskw2v.models.index.kinds import KINDS
from daskw2v.models.index.searcher import EFFORT
from daskw2v.models.index.table import quantized
from daskw2v.models.index.vectors import IndexedVectors
from daskw2v.models.vectors import Vectors
from daskw2v.store.storage import Store
from daskw2v.types import Float32Array, Int64Array

WHOLE, ALONE, CUT, MATRYOSHKA = "plain", "by itself", "plain, cut", "Matryoshka"
SIZE, TOPN, QUERIES, TIMES = 128, 10, 1000, 30
MORE = 4 * EFFORT  # candidates
SETS = ("ws353", "simlex999", "google_analogy")


class Row(NamedTuple):
    """Means over seeds; `low` and `high` are the extremes of the scores of the Google analogies."""

    variant: str
    columns: int
    bytes_a_word: float
    recall: float | None
    ranked: float | None
    ws353: float
    simlex999: float
    google: float
    low: float
    high: float
    query_ms: float


class Found(NamedTuple):
    """What one model of one seed has: the fields of `Row`."""

    bytes_a_word: float
    recall: float | None
    ranked: float | None
    scores: tuple[float, ...]
    query_ms: float


class Asked(NamedTuple):
    """Words whose neighbours are searched, and those of the whole vectors, shape (n, 10)."""

    ids: Int64Array
    nearest: Int64Array


def asked_of(model: Vectors) -> Asked:
    ids = np.sort(np.random.default_rng(0).choice(len(model), min(QUERIES, len(model)), replace=False))
    return Asked(ids, others(model.nearest(model.units(ids), TOPN + 1)[0], ids))


def others(found: Int64Array, own: Int64Array) -> Int64Array:
    """Return the first ten of the words found, without each query's own."""
    rows = [[word for word in row if word != one][:TOPN] for row, one in zip(found.tolist(), own.tolist(), strict=True)]
    return np.array(rows)


def recall(found: Int64Array, asked: Asked) -> float:
    pairs = zip(others(found, asked.ids).tolist(), asked.nearest.tolist(), strict=True)
    return statistics.mean(len({*some} & {*all_}) / max(1, len(all_)) for some, all_ in pairs)


def milliseconds(search: Callable[[Float32Array], object], units: Float32Array) -> float:
    """Return the median time of a query."""
    search(units[0])
    seconds = []
    for unit in units[:TIMES]:
        began = time.perf_counter()
        search(unit)
        seconds.append(time.perf_counter() - began)
    return 1000 * statistics.median(seconds)


def scores_of(model: Vectors) -> tuple[float, ...]:
    scores = judged(model)
    return tuple(scores[name] for name in SETS)


def columns_of(model: Vectors, whole: Vectors | None, asked: Asked | None) -> Found:
    """Return what the first columns of a model find; without `whole`, they are a model by themselves."""
    alone = ranked = None
    if whole is not None and asked is not None:
        found, _ = model.nearest(model.units(asked.ids), EFFORT)
        cosines = np.einsum("nd,nkd->nk", whole.units(asked.ids), whole.units(found.ravel()).reshape(*found.shape, -1))
        best = np.take_along_axis(found, np.argsort(-cosines, axis=1, kind="stable"), axis=1)
        alone, ranked = recall(found, asked), recall(best, asked)
    query = milliseconds(model.nearest, model.units(range(min(TIMES, len(model)))))
    return Found(4 * model.vector_size, alone, ranked, scores_of(model), query)


def codes_of(
    model: Vectors, kind: str, decoded: Float32Array, asked: Asked, effort: int = EFFORT, **options: int
) -> Found:
    """Return what a table of codes finds."""
    searcher = KINDS[kind].searcher(model.vectors.shape, effort, **options)
    searcher.add(0, model.units(range(len(model))), 0)
    indexed = IndexedVectors(model.vocabulary, np.asarray(model.vectors), searcher=searcher)
    units, scores = model.units(asked.ids), scores_of(Vectors(model.vocabulary, decoded))
    alone, ranked = searcher.candidates(units, TOPN + 1).ids, indexed.nearest(units, TOPN + 1)[0]
    small, query = len(searcher.content()) / len(model), milliseconds(indexed.nearest, units)
    return Found(small, recall(alone, asked), recall(ranked, asked), scores, query)


def from_int8(units: Float32Array) -> Float32Array:
    center = units.mean(axis=0)
    codes, steps, _ = quantized(units - center)
    return np.asarray(codes * steps[:, None] + center, np.float32)


def from_signs(units: Float32Array) -> Float32Array:
    return np.where(units > units.mean(axis=0), 1, -1).astype(np.float32)


def from_centroids(units: Float32Array, size: int) -> Float32Array:
    parts = codebooks.parts_of(units, size)
    books = codebooks.books_of(parts)
    return codebooks.decoded(codebooks.codes_of(parts, books), books, units.shape[1])


def all_codes(model: Vectors, asked: Asked) -> Iterator[tuple[str, Found]]:
    units = model.units(range(len(model)))
    yield "int8", codes_of(model, "int8", from_int8(units), asked)
    for size in (2, 4, 8):
        decoded = from_centroids(units, size)
        yield f"product, {size} a byte", codes_of(model, "product", decoded, asked, part_size=size)
    for effort in (EFFORT, MORE):
        name = "binary" if effort == EFFORT else f"binary, {effort} ranked"
        yield name, codes_of(model, "binary", from_signs(units), asked, effort)


def measured(params: Params, sizes: Sequence[int], place: Place) -> Iterator[tuple[tuple[str, int], Found]]:
    """Train all models of a seed, and yield what each of their small forms has."""
    plain = train_ours(params, place)
    asked = asked_of(plain)
    yield (WHOLE, SIZE), columns_of(plain, plain, asked)
    for name, found in all_codes(plain, asked):
        yield (name, SIZE), found
    for size in sizes:
        yield (CUT, size), columns_of(plain.prefix(size), plain, asked)
    for size in sizes:
        yield (ALONE, size), columns_of(train_ours(params.replace(vector_size=size), place), None, None)
    nested = train_ours(params.replace(prefix_sizes=tuple(sizes)), place)
    asked = asked_of(nested)
    for size in (*sizes, SIZE):
        yield (MATRYOSHKA, size), columns_of(nested.prefix(size), nested, asked)


def mean(values: Sequence[float | None]) -> float | None:
    return statistics.mean(value for value in values if value is not None) if None not in values else None


def compare(params: Params, seeds: Sequence[int], sizes: Sequence[int], place: Place) -> Iterator[Row]:
    by_variant: dict[tuple[str, int], list[Found]] = defaultdict(list)
    for seed in seeds:
        for variant, found in measured(params.replace(seed=seed), sizes, place):
            by_variant[variant].append(found)
    for (name, columns), all_ in by_variant.items():
        ws353, simlex999, google = zip(*(found.scores for found in all_), strict=True)
        yield Row(
            name, columns, statistics.mean(found.bytes_a_word for found in all_), mean([f.recall for f in all_]),
            mean([f.ranked for f in all_]), statistics.mean(ws353), statistics.mean(simlex999),
            statistics.mean(google), min(google), max(google), statistics.mean(found.query_ms for found in all_),
        )  # fmt: skip


def line(row: Row) -> str:
    found = " | ".join("" if value is None else f"{value:.3f}" for value in (row.recall, row.ranked))
    return (
        f"| {row.variant} | {row.columns} | {row.bytes_a_word:.0f} | {found} | {row.ws353:.3f} | {row.simlex999:.3f} | "
        f"{row.google:.3f} ({row.low:.3f}..{row.high:.3f}) | {row.query_ms:.2f} |"
    )


HEAD = (
    "| vectors | columns | bytes a word | recall@10 | ranked by float32 | WS353 | SimLex-999 | Google | ms a query |\n"
    "|---|---|---|---|---|---|---|---|---|"
)
SMOKE = Smoke({"seeds": [1], "parts": 0.05, "epochs": 1}, (WHOLE, ALONE, CUT, MATRYOSHKA, "int8", "binary", "product"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--sizes", type=int, nargs="+", default=[32, 64], help="of prefixes, multiples of 16 below 128")
    parser.add_argument("--parts", type=float, default=10, help="tenths of the 100 MB corpus")
    parser.add_argument("--epochs", type=int, default=Params.epochs)
    parser.add_argument("--objective", default=Params.objective)
    parser.add_argument("--threads", type=int, default=1, help="of a training")
    options = parsed(parser, SMOKE)
    params = Params(objective=options.objective, vector_size=SIZE, epochs=options.epochs, strategy="averaging")
    with tempfile.TemporaryDirectory() as name:
        text = write_text(Path(name) / "wiki.txt", options.parts)
        place = Place(text, Path(name) / "work", Store(f"{name}/cache"), options.threads)
        print_rows(HEAD, compare(params, options.seeds, options.sizes, place), line, as_json=options.json)


if __name__ == "__main__":
    main()
