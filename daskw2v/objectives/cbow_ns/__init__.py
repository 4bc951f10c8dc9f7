"""CBOW with negative sampling (Mikolov et al. 2013a, 2013b)."""

from functools import partial

from daskw2v.kernels.cuda import call
from daskw2v.objectives.base import Objective
from daskw2v.objectives.cbow_ns import cpu
from daskw2v.objectives.cpu.centers import train_by
from daskw2v.objectives.curvature import curvature_of_windows
from daskw2v.objectives.noise import noise_bytes, prepare_noise, with_markets, word_table_rows
from daskw2v.objectives.settings import CBOW
from daskw2v.objectives.touched import mark_reached_words, touched_words

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
)
