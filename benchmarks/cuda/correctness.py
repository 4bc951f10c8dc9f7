"""Each kernel on one warp against its float64 reference."""

import numpy as np

from benchmarks.cuda.bench import Bench
from tests.support.cuda.cases import difference
from tests.support.cuda.compiling import KERNELS, Setting
from tests.support.cuda.trainings import case_of


def correctness(bench: Bench) -> None:
    """Print the largest difference of tables, and that of the loss."""
    n_tokens = bench.options.words
    table = bench.table(
        f"Correctness: one warp, {n_tokens:,} words, against float64; largest difference over the largest move, and of "
        "the loss",
        ("rows", "loss"),
        ".1e",
    )
    for name in KERNELS:
        for d in bench.options.dims:
            case = case_of(name, Setting(d), n_tokens)
            found, truth = case.on_gpu(), case.truth()
            lost = np.abs(found.totals - truth.totals).max() / np.abs(truth.totals).max()
            table.row(f"{name}, d={d}", difference(case.tables, found, truth), float(lost))
