"""Vectors trained on the GPU, by warps in flight, beside those of the processor: the scores of paper 004's table 7."""

import statistics
from typing import Any

from benchmarks.cuda.bench import Bench
from benchmarks.cuda.sweep import in_flight_up_to, room_of
from benchmarks.papers.full_w2v import SCORES, by_both_offsets
from benchmarks.quality import Place, score
from benchmarks.tables import Spread
from daskw2v.config.params import Params
from daskw2v.objectives.registry import settled
from daskw2v.store.storage import Store


def quality(bench: Bench) -> None:
    """Print the mean of the scores over seeds, and their extremes."""
    options, params = bench.options, settled(Params(vector_size=128, epochs=bench.options.epochs))
    room = room_of(params, bench.zipf(min(options.vocabularies, default=1000)))
    cache = Store(str(options.cache or bench.folder / "cache"))
    table = bench.table(
        "quality", f"sgns, d=128, {options.epochs} epochs on {10 * options.parts} MB of text", [*SCORES, "seconds"],
        ".4f",
    )  # fmt: skip
    ways: dict[str, dict[str, Any]] = {}
    for n in reversed(in_flight_up_to(room, min(room, options.fewest))):  # what wants a GPU, and most warps, first
        ways[f"cuda, max_in_flight={n:,}"] = {"device": "cuda", "max_in_flight": n}
    ways["cpu"] = {}
    for number, (name, how) in enumerate(ways.items()):
        place = Place(bench.text.path, bench.folder / f"models-{number}", cache, 1, judge=by_both_offsets, **how)
        results = [score("daskw2v", params.replace(seed=seed), place) for seed in options.seeds]
        spreads = (
            Spread.of((result[key] for result in results), statistics.mean) for key in (*SCORES.values(), "seconds")
        )
        table.row(name, *spreads)
