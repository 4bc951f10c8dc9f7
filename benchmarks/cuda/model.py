"""Words/s that GPUs are predicted to train, by `bounds`, and how far such predictions were from what was measured."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.cuda.bench import Bench
from benchmarks.cuda.bounds import Bounds, bounds_of, kept_share, profile_of, rows_of
from benchmarks.cuda.cards import CARDS
from benchmarks.cuda.kernels import text_counts
from benchmarks.cuda.measured import DRAM_BYTES, KEPT, L2_BYTES, LAUNCHED, SPEED, SWEEP, WINDOWS
from daskw2v.config.params import Params
from daskw2v.kernels.simd import padded
from daskw2v.objectives.registry import settled
from tests.support.zipf import zipf_counts

OVER_TEXT = ("sgns", "cbow_ns", "sg_hs", "cbow_hs")
D = 128


def model(bench: Bench) -> None:
    """Print predictions for all cards, and those of the H200 and the H100 beside what they measured."""
    names = [name for name in OVER_TEXT if name in bench.options.kernels]
    predict(bench, names)
    if D in bench.options.dims:
        compare(bench, names)
        compare_bytes(bench, names)


def predict(bench: Bench, names: Sequence[str]) -> None:
    """Print a row for each card, kernel, row length, vocabulary and sample."""
    table = bench.table(
        "model",
        "predicted, not measured: million words/s by the smallest of four bounds; as many warps as there is room for",
        ("trained", "before subsampling", "limit", *(f"by {name}" for name in Bounds._fields), "warps", "registers"),
        ",.0f",
    )
    for card, params, n_words in settings(bench, names):
        counts = zipf_counts(n_words, bench.options.tokens)
        profile = profile_of(params, CARDS[card].capability)
        bounds = bounds_of(CARDS[card], params, profile, rows_of(params, counts))
        cells = [f"{bound / 1e6:,.0f}" if math.isfinite(bound) else "none" for bound in bounds]
        words = min(bounds) / 1e6
        table.row(
            f"{card}, {params.objective}, d={params.vector_size}, {n_words:,} words, window {params.window}, "
            f"sample {params.sample:g}",
            words, words / kept_share(params, counts), bounds.limit, *cells, profile.room,
            profile.registers,
        )  # fmt: skip


def settings(bench: Bench, names: Sequence[str]) -> Iterator[tuple[str, Params, int]]:
    """Yield a card's name, Params, and the words of a vocabulary."""
    options = bench.options
    for objective in names:
        for vector_size in options.dims:
            for window in options.windows:
                for sample in options.samples:
                    params = params_of(objective, vector_size=vector_size, window=window, sample=sample)
                    for n_words in options.vocabularies:
                        for card in options.cards:
                            yield card, params, n_words


def params_of(objective: str, **how: Any) -> Params:
    return settled(Params(objective=objective, **how))


def compare(bench: Bench, names: Sequence[str]) -> None:
    """Print what an H200 measured beside what is predicted of it, launched as it was then."""
    table = bench.table(
        "model", f"an H200, d={D}, million trained words/s; predicted of a drawn text of as many distinct words",
        ("predicted", "limit", "measured", "error, %"),
    )  # fmt: skip
    card, counts = CARDS["H200"], text_counts()

    def row(name: str, params: Params, launched: int, measured: float) -> None:
        profile, rows = profile_of(params, card.capability), rows_of(params, counts)
        bounds = bounds_of(card, params, profile, rows, launched)
        words = min(bounds) / 1e6
        table.row(name, words, bounds.limit, measured, 100 * (words / measured - 1))

    for (window, sample), speed in SPEED.items():
        for name in names:
            params = params_of(name, vector_size=D, sample=sample, **WINDOWS[window])
            row(f"{name}, windows of {window}, sample {sample:g}", params, LAUNCHED, speed[name])
    if "sgns" in names:
        for launched, raw in SWEEP.items():
            row(f"sgns, {launched} warps a multiprocessor", params_of("sgns", vector_size=D), launched, KEPT * raw)


def compare_bytes(bench: Bench, names: Sequence[str]) -> None:
    """Print what Nsight Compute counted on an H100 beside what is predicted."""
    table = bench.table(
        "model", f"an H100, d={D}, sample 0, bytes of a trained word",
        ("L2, predicted", "L2, measured", "DRAM, predicted", "DRAM, measured"), ",.0f",
    )  # fmt: skip
    card, counts, length = CARDS["H100"], text_counts(), 4 * padded(D)
    for name in names:
        rows = rows_of(params_of(name, vector_size=D, sample=0), counts)
        moved = 2 * length * rows.absent(card, length)
        table.row(name, length * rows.through_l2(card), L2_BYTES[name], moved, DRAM_BYTES[name])
