"""Vectors trained on the GPU, by warps in flight, beside those of the processor: the scores of paper 004's table 7."""

import statistics
from typing import Any

from benchmarks.cuda.bench import Bench, drawn
from benchmarks.cuda.speed import in_flight_up_to, room_of
from benchmarks.papers.full_w2v import SCORES, by_both_offsets
from benchmarks.quality import Place, score
from benchmarks.tables import Spread
from benchmarks.texts import name_of
from daskw2v.config.params import Params
from daskw2v.objectives.registry import settle_params
from daskw2v.store.storage import Store


def quality(bench: Bench) -> None:
    """Print the mean of the scores over seeds, and their extremes."""
    options, params = bench.options, settle_params(Params(vector_size=128, epochs=bench.options.epochs))
    room = room_of(params, drawn(min(options.vocabularies, default=1000), options.tokens))
    cache = Store(str(options.cache or bench.folder / "cache"))
    table = bench.table(
        f"Quality: sgns, d=128, {options.epochs} epochs on {name_of(options.parts)}", [*SCORES, "seconds"], ".4f"
    )
    ways: dict[str, dict[str, Any]] = {}
    for n in reversed(in_flight_up_to(room, min(room, options.fewest))):  # what wants a GPU, and most warps, first
        ways[f"cuda, max_in_flight={n:,}"] = {"device": "cuda", "max_in_flight": n}
    ways["cpu"] = {}
    for name, how in ways.items():
        place = Place(bench.wiki.path, bench.fresh("models"), cache, 1, judge=by_both_offsets, **how)
        results = [score("daskw2v", params.replace(seed=seed), place) for seed in options.seeds]
        keys = (*SCORES.values(), "seconds")
        table.row(name, *(Spread.of((result[key] for result in results), statistics.mean) for key in keys))
