"""CBOW with negative sampling (Mikolov et al. 2013a, 2013b)."""

from daskw2v.objectives.base import Memory, Objective, Rate, initial_rows
from daskw2v.objectives.cbow_ns import cpu
from daskw2v.objectives.negatives import (
    RUN,
    Prepared,
    negatives_of,
    prepare_noise,
    target_scratch,
    tile_of,
    word_tables,
)
from daskw2v.objectives.windows import windows_of
from daskw2v.sampling.segments import Segment


def _train_cpu(
    segment: Segment, first: int, last: int, memory: Memory, rate: Rate, epoch: int, prepared: Prepared
) -> tuple[int, float]:
    params = prepared.params
    trained, loss = cpu.train(
        segment, first, last, *memory, target_scratch(params, memory, RUN), windows_of(params, rate, epoch),
        negatives_of(prepared, epoch), params.cbow_mean, tile_of(params),
    )  # fmt: skip
    return int(trained), float(loss)


CBOW_NS = Objective(
    "cbow_ns", 0.05, ("negative", "ns_exponent", "cbow_mean"), word_tables, initial_rows, prepare_noise,
    {"cpu": _train_cpu},
)  # fmt: skip
