"""CBOW with negative sampling (Mikolov et al. 2013a, 2013b)."""

from typing import Any

from daskw2v.config.params import Params
from daskw2v.kernels.cuda import load
from daskw2v.objectives.base import DeviceTables, Objective, Rate, Tables, initial_rows
from daskw2v.objectives.cbow_ns import cpu
from daskw2v.objectives.cpu.centers import RUN
from daskw2v.objectives.cpu.targets import batch_scratch, shared_tile_of, target_scratch, tile_of
from daskw2v.objectives.curvature import curvature_of_windows
from daskw2v.objectives.noise import (
    BATCH,
    PreparedNoise,
    negatives_of,
    noise_bytes,
    prepare_noise,
    with_markets,
    word_tables,
)
from daskw2v.objectives.settings import CBOW
from daskw2v.objectives.touched import reached_words, touched_words
from daskw2v.objectives.windows import windows_of
from daskw2v.sampling.segments import Segment


def _train_cpu(
    segment: Segment, first: int, last: int, tables: Tables, rate: Rate, epoch: int, prepared: PreparedNoise
) -> tuple[int, float]:
    params, mean = prepared.params, CBOW.of(prepared.params).cbow_mean
    windows, negatives = windows_of(params, rate, epoch), negatives_of(prepared, epoch)
    if _shares(params):
        scratch, tile = batch_scratch(params, tables), shared_tile_of(params)
        trained, loss = cpu.train(segment, first, last, tables, scratch, windows, negatives, mean, (0,) * BATCH, tile)
    else:
        train, scratch = cpu.compiled_apart(mean), target_scratch(params, tables, RUN)
        trained, loss = train(segment, first, last, tables, scratch, windows, negatives, tile_of(params))
    return int(trained), float(loss)


def _train_cuda(
    segment: Segment, first: Any, last: Any, tables: DeviceTables, rate: Rate, epoch: int, prepared: PreparedNoise
) -> int:
    params, cuda = prepared.params, load("daskw2v.objectives.cbow_ns.cuda")
    windows, negatives, batches = windows_of(params, rate, epoch), negatives_of(prepared, epoch), _shares(params)
    mean = CBOW.of(params).cbow_mean
    return int(cuda.train(segment, first, last, tables, windows, negatives, batches=batches, mean=mean))


def _shares(params: Params) -> bool:
    """Return whether windows share their negatives."""
    return CBOW.of(params).negative_sharing == "shared"


CBOW_NS = Objective(
    name="cbow_ns",
    settings=CBOW,
    title="CBOW with negative sampling",
    alphas={"sgd": 0.05},
    honours=("frozen_words", "maxn", "features"),
    tables=word_tables,
    initial=initial_rows,
    prepare=prepare_noise,
    with_markets=with_markets,
    prepared_bytes=noise_bytes,
    trainers={"cpu": _train_cpu, "cuda": _train_cuda},
    touched=touched_words,
    curvature=curvature_of_windows,
    reached=reached_words,
)
