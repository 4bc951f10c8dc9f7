"""Skip-gram with negative sampling (Mikolov et al. 2013b)."""

from typing import Any

from daskw2v.objectives.base import Memory, Objective, Rate, initial_rows
from daskw2v.objectives.negatives import (
    RUN,
    Prepared,
    negatives_of,
    prepare_noise,
    target_scratch,
    tile_of,
    word_tables,
)
from daskw2v.objectives.sgns import cpu
from daskw2v.objectives.windows import windows_of
from daskw2v.sampling.segments import Segment


def _train_cpu(
    segment: Segment, first: int, last: int, memory: Memory, rate: Rate, epoch: int, prepared: Prepared
) -> tuple[int, float]:
    params = prepared.params
    shared = params.negative_sharing == "shared"
    train: Any = cpu.train if shared else cpu.train_pairs
    scratch = target_scratch(params, memory, RUN if shared else 2 * params.window + 1)
    pairs, loss = train(
        segment, first, last, *memory, scratch, windows_of(params, rate, epoch), negatives_of(prepared, epoch),
        tile_of(params),
    )  # fmt: skip
    return int(pairs), float(loss)


SGNS = Objective(
    "sgns", 0.035, ("negative", "ns_exponent", "negative_sharing"), word_tables, initial_rows, prepare_noise,
    {"cpu": _train_cpu},
)  # fmt: skip
