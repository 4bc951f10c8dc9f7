"""CBOW with negative sampling (Mikolov et al. 2013a, 2013b)."""

from daskw2v.cuda import load
from daskw2v.objectives.base import Memory, Objective, Rate, Warps, initial_rows
from daskw2v.objectives.cbow_ns import cpu
from daskw2v.objectives.hidden import BATCH
from daskw2v.objectives.negatives import (
    RUN,
    Prepared,
    batch_scratch,
    negatives_of,
    prepare_noise,
    shared_tile_of,
    target_scratch,
    tile_of,
    word_tables,
)
from daskw2v.objectives.touched import touched_words
from daskw2v.objectives.windows import windows_of
from daskw2v.params import Params
from daskw2v.sampling.segments import Segment


def _train_cpu(
    segment: Segment, first: int, last: int, memory: Memory, rate: Rate, epoch: int, prepared: Prepared
) -> tuple[int, float]:
    params = prepared.params
    windows, negatives = windows_of(params, rate, epoch), negatives_of(prepared, epoch)
    if _shares(params):
        train, scratch, batch, tile = cpu.train, batch_scratch(params, memory), (0,) * BATCH, shared_tile_of(params)
    else:
        train, scratch, batch, tile = cpu.train_pairs, target_scratch(params, memory, RUN), (0,), tile_of(params)
    trained, loss = train(segment, first, last, *memory, scratch, windows, negatives, params.cbow_mean, batch, tile)
    return int(trained), float(loss)


def _train_cuda(
    segment: Segment, first: int, last: int, memory: Warps, rate: Rate, epoch: int, prepared: Prepared
) -> None:
    params, cuda = prepared.params, load("daskw2v.objectives.cbow_ns.cuda")
    windows, negatives, batches = windows_of(params, rate, epoch), negatives_of(prepared, epoch), _shares(params)
    cuda.train(segment, first, last, memory, windows, negatives, batches=batches, mean=params.cbow_mean)


def _shares(params: Params) -> bool:
    """Tell whether windows share their negatives."""
    return params.negative_sharing == "shared"


CBOW_NS = Objective(
    "cbow_ns", {"sgd": 0.05}, ("negative", "ns_exponent", "negative_sharing", "cbow_mean"), word_tables, initial_rows,
    prepare_noise, {"cpu": _train_cpu, "cuda": _train_cuda}, touched=touched_words,
)  # fmt: skip
