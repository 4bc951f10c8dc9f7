"""Skip-gram with negative sampling (Mikolov et al. 2013b)."""

from functools import partial

import numpy as np

from daskw2v.config.params import Params
from daskw2v.kernels.cuda import call
from daskw2v.objectives import settings
from daskw2v.objectives.base import DeviceTables, Objective, Tables
from daskw2v.objectives.cpu.centers import train_by
from daskw2v.objectives.noise import noise_bytes, prepare_noise, with_markets, word_table_rows
from daskw2v.objectives.sgns import cpu
from daskw2v.objectives.sgns.buckets import cpu as buckets
from daskw2v.objectives.touched import count_negatives, mark_reached_words, touched_words, words_in_partition
from daskw2v.sampling.skipgrams import Bucket
from daskw2v.types import UInt64Array


def _train_bucket_cpu(
    bucket: Bucket, tables: Tables, alpha: float, params: Params, words: UInt64Array, key: np.uint64
) -> tuple[int, float]:
    """Train a bucket on the CPU, as `BucketTrainer` does."""
    return buckets.train_bucket(bucket.pairs, bucket.noise, *tables[:3], alpha, *count_negatives(params), words, key)


def _train_bucket_cuda(
    bucket: Bucket, tables: DeviceTables, alpha: float, params: Params, words: UInt64Array, key: np.uint64
) -> None:
    """Train a bucket on a GPU, as `BucketTrainer` does."""
    work = bucket, tables, alpha, *count_negatives(params), words, key
    call(f"{__name__}.buckets.cuda", "train_bucket", *work)


def _cost(params: Params) -> float | None:
    """Return the cost of the kernels that share negatives, which is that of a pair and each of its negatives."""
    of = settings.SGNS.of(params)
    return (1 + of.negative + of.market_negative) / 6 if of.negative_sharing == "shared" else None


SGNS = Objective(
    name="sgns",
    settings=settings.SGNS,
    title="skip-gram with negative sampling",
    alphas={"sgd": 0.035},
    honours=("frozen_words", "maxn", "features"),
    tables=word_table_rows,
    prepare=prepare_noise,
    with_markets=with_markets,
    prepared_bytes=noise_bytes,
    trainers={"cpu": partial(train_by, cpu.find_trainer), "cuda": partial(call, f"{__name__}.cuda", "train")},
    bucket_trainers={"cpu": _train_bucket_cpu, "cuda": _train_bucket_cuda},
    touched=touched_words,
    targets_in_partition=words_in_partition,
    reached=mark_reached_words,
    cost=_cost,
    max_replicas=64,
)
