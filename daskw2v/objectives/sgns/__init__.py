"""Skip-gram with negative sampling (Mikolov et al. 2013b)."""

from typing import Any

import numpy as np

from daskw2v.config.params import Params
from daskw2v.kernels.cuda import load
from daskw2v.objectives import settings
from daskw2v.objectives.base import DeviceTables, Objective, Rate, Tables, initial_rows
from daskw2v.objectives.cpu.centers import RUN
from daskw2v.objectives.cpu.targets import target_scratch, tile_of
from daskw2v.objectives.noise import (
    PreparedNoise,
    negatives_of,
    noise_bytes,
    prepare_noise,
    with_markets,
    word_tables,
)
from daskw2v.objectives.sgns import cpu
from daskw2v.objectives.sgns.buckets import cpu as buckets
from daskw2v.objectives.touched import reached_words, touched_words, words_in_partition
from daskw2v.objectives.windows import windows_of
from daskw2v.sampling.hierarchy import RULES, split_negatives
from daskw2v.sampling.segments import Segment
from daskw2v.sampling.settings import Partitioned
from daskw2v.sampling.skipgrams import Bucket
from daskw2v.types import UInt64Array


def _train_cpu(
    segment: Segment, first: int, last: int, tables: Tables, rate: Rate, epoch: int, prepared: PreparedNoise
) -> tuple[int, float]:
    params = prepared.params
    shared = settings.SGNS.of(params).negative_sharing == "shared"
    train: Any = cpu.train if shared else cpu.train_pairs
    scratch = target_scratch(params, tables, RUN if shared else 2 * params.window + 1)
    pairs, loss = train(
        segment, first, last, tables, scratch, windows_of(params, rate, epoch), negatives_of(prepared, epoch),
        tile_of(params),
    )  # fmt: skip
    return int(pairs), float(loss)


def _train_cuda(
    segment: Segment, first: Any, last: Any, tables: DeviceTables, rate: Rate, epoch: int, prepared: PreparedNoise
) -> int:
    params, cuda = prepared.params, load("daskw2v.objectives.sgns.cuda")
    windows, negatives = windows_of(params, rate, epoch), negatives_of(prepared, epoch)
    each = settings.SGNS.of(params).negative_sharing == "pair"
    return int(cuda.train(segment, first, last, tables, windows, negatives, each=each))


def _train_bucket_cpu(
    bucket: Bucket, tables: Tables, alpha: float, params: Params, words: UInt64Array, key: np.uint64
) -> tuple[int, float]:
    negative, each = split_negatives(RULES[Partitioned.of(params).negative_rule], settings.SGNS.of(params).negative)
    return buckets.train_bucket(bucket.pairs, bucket.noise, *tables[:3], alpha, negative, each, words, key)


def _train_bucket_cuda(
    bucket: Bucket, tables: DeviceTables, alpha: float, params: Params, words: UInt64Array, key: np.uint64
) -> None:
    negative, each = split_negatives(RULES[Partitioned.of(params).negative_rule], settings.SGNS.of(params).negative)
    cuda = load("daskw2v.objectives.sgns.buckets.cuda")
    cuda.train_bucket(bucket, tables, alpha, negative, each, words, key)


SGNS = Objective(
    name="sgns",
    settings=settings.SGNS,
    title="skip-gram with negative sampling",
    alphas={"sgd": 0.035},
    honours=("frozen_words", "maxn", "features"),
    tables=word_tables,
    initial=initial_rows,
    prepare=prepare_noise,
    with_markets=with_markets,
    prepared_bytes=noise_bytes,
    trainers={"cpu": _train_cpu, "cuda": _train_cuda},
    bucket_trainers={"cpu": _train_bucket_cpu, "cuda": _train_bucket_cuda},
    touched=touched_words,
    targets_in_partition=words_in_partition,
    reached=reached_words,
)
