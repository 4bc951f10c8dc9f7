"""Each kernel on one warp against its float64 reference."""

from typing import Any

import numpy as np

from benchmarks.cuda.bench import Bench
from benchmarks.cuda.cases import KEY, Matrix, Pairs, Windows, difference, likely, tables_of
from benchmarks.cuda.compiling import KERNELS
from benchmarks.cuda.kernels import Setting, params_of
from benchmarks.cuda.zipf import zipf_counts, zipf_segment
from daskw2v.objectives import OBJECTIVES
from daskw2v.objectives.base import Columns
from daskw2v.sampling.hierarchy import word_table
from daskw2v.sampling.skipgrams import Bucket


def case_of(name: str, setting: Setting, n_tokens: int, n_words: int = 300) -> Any:
    """Return a training of a kernel of KERNELS, with rows that are damped."""
    params, rng = params_of(name, setting), np.random.default_rng(1)
    counts, d = zipf_counts(n_words, 100 * n_words), setting.vector_size
    if name.startswith("context_matrix"):
        contexts = rng.integers(0, n_words, (6, max(1, n_tokens // 6))).astype(np.int32)
        n_tables = 3 if params.optimizer == "adam" else 1
        moving = [np.abs(table) if k == 2 else table for k, table in enumerate(tables_of([6] * n_tables, d, rng))]
        (others,), prepared = tables_of([n_words], d, rng), OBJECTIVES["context_matrix"].prepare(params, counts)
        return Matrix(params, Columns(contexts, 0, 3, 0.05, KEY), moving, others, prepared)
    if name.endswith("buckets"):
        pairs, noise = (tuple(rng.integers(0, n_words, k).astype(np.int32) for _ in range(2)) for k in (n_tokens, 0))
        tables = tables_of([n_words] * 2, d, rng)
        words = word_table(counts, params.ns_exponent)
        return Pairs(params, Bucket(pairs, noise), setting.negative, 0, tables, words, likely(tables, rng))
    return Windows.made(params, zipf_segment(counts, n_tokens, 0.0), counts, rng, hot_rows=3)


def correctness(bench: Bench) -> None:
    """Print the largest difference of tables, and that of the loss."""
    n_tokens = bench.options.words
    table = bench.table(
        "correctness",
        f"one warp, {n_tokens:,} words, against float64: largest difference over the largest move, and of the loss",
        ("rows", "loss"),
        ".1e",
    )
    for name in KERNELS:
        for d in bench.options.dims:
            case = case_of(name, Setting(d), n_tokens)
            found, truth = case.on_gpu(), case.truth()
            lost = np.abs(found.totals - truth.totals).max() / np.abs(truth.totals).max()
            table.row(f"{name}, d={d}", difference(case.tables, found, truth), float(lost))
