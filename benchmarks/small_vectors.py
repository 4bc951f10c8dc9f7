"""Small vectors: what they take, the neighbours that they find, and their scores.

Vectors of 128 dimensions are made smaller in four ways. Plainly cut: the first columns of a model that was trained as
usual. Matryoshka: those of one whose `prefix_sizes` they are. By themselves: models of so few dimensions. Codes: tables
of int8, signs and product quantization (`daskw2v index --kind`).

Found is the share of the ten nearest words, by the float32 of all columns of the same model, that the small vectors
find alone; ranked, the share in 128 candidates of theirs that the whole vectors rank (signs tell little, so also in
512). Models by themselves have no others to find. Scores of codes are those of the vectors that they stand for. Figures
are means over seeds.

    python -m benchmarks.small_vectors [--seeds 1 2 3] [--sizes 32 64] [--parts 10] [--epochs 5] [--objective sgns]
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from benchmarks.harness import Benchmark, Session, Smoke
from benchmarks.quality import judged
from benchmarks.tables import mean_of
from benchmarks.texts import name_of, write_text
from benchmarks.whole_runs import SCORES
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.models.index.kinds import EFFORT, KINDS, quantize_vectors
from daskw2v.models.index.vectors import IndexedVectors
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored import quantization
from daskw2v.training.pipeline import train
from daskw2v.types import Float32Array, Int64Array

SIZE, TOPN, QUERIES = 128, 10, 1000
MORE = 4 * EFFORT  # candidates
PRODUCTS = (2, 4, 8)  # dimensions a byte
Found = tuple[float | None, ...]  # by COLUMNS
COLUMNS = ("bytes a word", "found", "ranked", *SCORES)


class Asked(NamedTuple):
    """Words whose neighbours are searched, and those of the whole vectors, shape (n, 10)."""

    whole: Vectors
    ids: Int64Array
    nearest: Int64Array

    @classmethod
    def of(cls, model: Vectors) -> "Asked":
        ids = np.sort(np.random.default_rng(0).choice(len(model), min(QUERIES, len(model)), replace=False))
        return cls(model, ids, others(model.nearest(model.units(ids), TOPN + 1)[0], ids))

    def recall(self, found: Int64Array) -> float:
        """Return the share of the neighbours that is among the first ten of what was found."""
        shared = [np.intersect1d(*pair).size for pair in zip(others(found, self.ids), self.nearest, strict=True)]
        return float(np.mean(shared)) / max(1, self.nearest.shape[1])


def others(found: Int64Array, own: Int64Array) -> Int64Array:
    """Return the first ten of the words found, without each query's own."""
    rows = [[word for word in row if word != one][:TOPN] for row, one in zip(found.tolist(), own.tolist(), strict=True)]
    return np.array(rows)


def scores_of(model: Vectors) -> Iterator[float]:
    scores = judged(model)
    return (scores[name] for name in SCORES)


def columns_of(model: Vectors, asked: Asked | None = None) -> Found:
    """Return what the first columns of a model find; where nobody asks, they are a model by themselves."""
    alone = ranked = None
    if asked is not None:
        found, _ = model.nearest(model.units(asked.ids), EFFORT)
        candidates = asked.whole.units(found.ravel()).reshape(*found.shape, -1)
        cosines = np.einsum("nd,nkd->nk", asked.whole.units(asked.ids), candidates)
        best = np.take_along_axis(found, np.argsort(-cosines, axis=1, kind="stable"), axis=1)
        alone, ranked = asked.recall(found), asked.recall(best)
    return 4 * model.vector_size, alone, ranked, *scores_of(model)


def codes_of(kind: str, decoded: Float32Array, asked: Asked, effort: int = EFFORT, **options: int) -> Found:
    """Return what a table of codes finds."""
    model = asked.whole
    searcher = KINDS[kind](model.vectors.shape, effort, **options)
    searcher.add(0, model.units(range(len(model))), 0)
    indexed = IndexedVectors(model.vocabulary, np.asarray(model.vectors), searcher=searcher)
    units, size = model.units(asked.ids), round(len(searcher.content()) / len(model))
    alone, ranked = searcher.candidates(units, TOPN + 1).ids, indexed.nearest(units, TOPN + 1)[0]
    return size, asked.recall(alone), asked.recall(ranked), *scores_of(Vectors(model.vocabulary, decoded))


def from_int8(units: Float32Array) -> Float32Array:
    center = units.mean(axis=0)
    codes, steps, _ = quantize_vectors(units - center)
    return np.asarray(codes * steps[:, None] + center, np.float32)


def from_signs(units: Float32Array) -> Float32Array:
    return np.where(units > units.mean(axis=0), 1, -1).astype(np.float32)


def from_centroids(units: Float32Array, size: int) -> Float32Array:
    parts = quantization.cut_vectors(units, size)
    books = quantization.make_books(parts)
    return quantization.decode_parts(quantization.encode_parts(parts, books), books, units.shape[1])


def measured(params: Params, session: Session) -> Iterator[tuple[str, Found]]:
    """Train all models of a seed, and yield what each of their small forms has."""
    sizes, resources = session.options.sizes, Resources(threads=1, workers=1)

    def trained(params: Params) -> Vectors:
        text, work = session.folder / "wiki.txt", session.folder / "work"
        return train(text, work=work, params=params, resources=resources, listener=None)

    plain = trained(params)
    asked, units = Asked.of(plain), plain.units(range(len(plain)))
    yield "plain", columns_of(plain, asked)
    yield "int8", codes_of("int8", from_int8(units), asked)
    for size in PRODUCTS:
        yield f"product, {size} a byte", codes_of("product", from_centroids(units, size), asked, part_size=size)
    yield "binary", codes_of("binary", from_signs(units), asked)
    yield f"binary, {MORE} ranked", codes_of("binary", from_signs(units), asked, MORE)
    for size in sizes:
        yield f"plain, cut to {size} columns", columns_of(plain.prefix(size), asked)
    for size in sizes:
        yield f"by itself, {size} columns", columns_of(trained(params.replace(vector_size=size)))
    nested = trained(params.replace(prefix_sizes=tuple(sizes)))
    asked = Asked.of(nested)
    for size in (*sizes, SIZE):
        yield f"Matryoshka, {size} columns", columns_of(nested.prefix(size), asked)


def measure(session: Session) -> None:
    options = session.options
    session.text = name_of(options.parts)
    write_text(session.folder / "wiki.txt", options.parts)
    params = Params(objective=options.objective, vector_size=SIZE, epochs=options.epochs, strategy="averaging")
    variants = defaultdict[str, list[Found]](list)
    for seed in options.seeds:
        for variant, found in measured(params.replace(seed=seed), session):
            variants[variant].append(found)
    table = session.table(f"Small vectors of {options.objective}, {options.epochs} epochs", COLUMNS)
    for variant, all_ in variants.items():
        sizes, *figures = zip(*all_, strict=True)
        table.row(variant, sizes[0], *map(mean_of, figures))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--sizes", type=int, nargs="+", default=[32, 64], help="of prefixes, multiples of 16 below 128")
    parser.add_argument("--parts", type=float, default=10, help="of 10 MB")
    parser.add_argument("--epochs", type=int, default=Params.epochs)
    parser.add_argument("--objective", default=Params.objective)


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/models", "daskw2v/objectives"),
    Smoke(
        {"seeds": [1], "parts": 0.05, "epochs": 1},
        ("plain", "by itself", "plain, cut", "Matryoshka", "int8", "binary", "product"),
    ),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
