"""Seconds of word similarity and analogies on one core, for random vectors of 70,000 words, the sets' among them.

python -m benchmarks.evaluation_speed [--words 70000] [--dimensions 100] [--methods 3cosadd lrcos] [--json]
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, get_args

import numpy as np

from benchmarks.common import ANALOGY, DATA, SIMILARITY, finish
from benchmarks.options import Smoke, parsed
from daskw2v.evaluation.analogy import Method, evaluate_analogy
from daskw2v.evaluation.pairs import read_pairs
from daskw2v.evaluation.relations import read_relations
from daskw2v.evaluation.similarity import evaluate_similarity
from daskw2v.models.vectors import Vectors
from daskw2v.vocabulary.vocabulary import Vocabulary

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
SETS = [*ANALOGY, DATA / "eval" / "bats"]


@dataclass(frozen=True)
class Row:
    """One evaluation: `asked` are pairs or questions."""

    set: str
    method: str
    asked: int
    seconds: float


def words_of_sets() -> Iterator[str]:
    for url in SIMILARITY:
        for first, second, _ in read_pairs(url):
            yield first.lower()
            yield second.lower()
    for url in SETS:
        for relation in read_relations(url):
            for source, targets in relation.pairs:
                yield from (word.lower() for word in (source, *targets))


def random_vectors(n_words: int, dimensions: int) -> Vectors:
    """Return vectors of the sets' words and of others, in random order."""
    rng = np.random.default_rng(1)
    known = dict.fromkeys(words_of_sets())
    words = [*known, *(f"word-{i}" for i in range(n_words - len(known)))]
    vocabulary = Vocabulary.from_words([words[i] for i in rng.permutation(len(words))], [1] * len(words))
    return Vectors(vocabulary, rng.standard_normal((len(words), dimensions), np.float32))


def timed(evaluate: Callable[[], Any]) -> tuple[Any, float]:
    began = time.perf_counter()
    return evaluate(), time.perf_counter() - began


def measure(vectors: Vectors, methods: list[Method]) -> Iterator[Row]:
    evaluate_similarity(vectors, SIMILARITY[0])  # makes the vocabulary's index, computes lengths
    for url in SIMILARITY:
        similarity, seconds = timed(partial(evaluate_similarity, vectors, url))
        yield Row(Path(url).stem, "spearman", similarity.pairs, seconds)
    for url in SETS:
        for method in methods:
            result, seconds = timed(partial(evaluate_analogy, vectors, url, method))
            yield Row(Path(url).stem, method, result.questions, seconds)


SMOKE = Smoke({"words": 1000, "dimensions": 16}, (*(path.stem for path in (*SIMILARITY, *SETS)), *get_args(Method)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--words", type=int, default=70_000)
    parser.add_argument("--dimensions", type=int, default=100)
    parser.add_argument("--methods", nargs="+", choices=get_args(Method), default=list(get_args(Method)))
    options = parsed(parser, SMOKE)
    if any(os.environ.get(name) != n for name, n in ONE_THREAD.items()):  # BLAS reads them when it is loaded
        os.execve(
            sys.executable,
            [sys.executable, "-m", "benchmarks.evaluation_speed", *sys.argv[1:]],
            os.environ | ONE_THREAD,
        )
    if missing := [str(path) for path in (*SIMILARITY, *SETS) if not path.exists()]:
        sys.exit(f"No {', '.join(missing)}: set DASKW2V_DATA to the folder of the evaluation data.")
    out, rows = sys.stderr if options.json else sys.stdout, []
    for row in measure(random_vectors(options.words, options.dimensions), options.methods):
        print(f"{row.set}, {row.method}: {row.asked:,} asked, {row.seconds:.2f} s", file=out, flush=True)
        rows.append(row)
    finish(rows, out, as_json=options.json)


if __name__ == "__main__":
    main()
