"""CBOW with negative sampling (Mikolov et al. 2013a, 2013b)."""

from functools import partial

from daskw2v.config.params import Params
from daskw2v.kernels.cuda import call
from daskw2v.objectives.base import Objective
from daskw2v.objectives.cbow_ns import cpu
from daskw2v.objectives.cpu.centers import train_by
from daskw2v.objectives.curvature import curvature_of_windows
from daskw2v.objectives.noise import noise_bytes, prepare_noise, with_markets, word_table_rows
from daskw2v.objectives.settings import CBOW
from daskw2v.objectives.touched import contexts_of_window, mark_reached_words, touched_words

_COST = 0.5  # with the default negatives and window, d=100 (an Intel Xeon with AVX-512)


def _cost(params: Params) -> float | None:
    """Return the cost of the kernel that shares negatives: rows of contexts and of targets are read and written."""
    of = CBOW.of(params)
    if of.negative_sharing != "shared":
        return None
    return _COST * (1 + (1 + of.negative + of.market_negative) / contexts_of_window(params)) / 2


CBOW_NS = Objective(
    name="cbow_ns",
    settings=CBOW,
    title="CBOW with negative sampling",
    alphas={"sgd": 0.05},
    honours=("frozen_words", "maxn", "features"),
    tables=word_table_rows,
    prepare=prepare_noise,
    with_markets=with_markets,
    prepared_bytes=noise_bytes,
    trainers={"cpu": partial(train_by, cpu.find_trainer), "cuda": partial(call, f"{__name__}.cuda", "train")},
    touched=touched_words,
    curvature=curvature_of_windows,
    reached=mark_reached_words,
    cost=_cost,
    max_replicas=64,
    positions_per_merge=1 << 18,  # with 64 merges an epoch, 16 replicas lose 3 % of the analogies on 300 MB
)
