"""Skip-gram with negative sampling (Mikolov et al. 2013b)."""

from typing import Any

import numpy as np
import numpy.typing as npt

from daskw2v.cuda import load
from daskw2v.objectives.base import Memory, Objective, Rate, Warps, initial_rows
from daskw2v.objectives.negatives import (
    RUN,
    Prepared,
    negatives_of,
    prepare_noise,
    target_scratch,
    tile_of,
    word_tables,
)
from daskw2v.objectives.sgns import buckets, cpu
from daskw2v.objectives.touched import touched_words
from daskw2v.objectives.windows import windows_of
from daskw2v.params import Params
from daskw2v.sampling.hierarchy import RULES, split_negatives
from daskw2v.sampling.segments import Segment
from daskw2v.sampling.skipgrams import Bucket


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


def _train_cuda(
    segment: Segment, first: int, last: int, memory: Warps, rate: Rate, epoch: int, prepared: Prepared
) -> None:
    params, cuda = prepared.params, load("daskw2v.objectives.sgns.cuda.windows")
    windows, negatives = windows_of(params, rate, epoch), negatives_of(prepared, epoch)
    cuda.train(segment, first, last, memory, windows, negatives, each=params.negative_sharing == "pair")


def _train_bucket_cpu(
    bucket: Bucket, memory: Memory, alpha: float, params: Params, words: npt.NDArray[np.uint64], key: np.uint64
) -> tuple[int, float]:
    negative, each = split_negatives(RULES[params.negative_rule], params.negative)
    pairs, noise = ((contexts, centers) for contexts, centers in bucket)
    return buckets.train_bucket(pairs, noise, *memory[:3], alpha, negative, each, words, key)


def _train_bucket_cuda(
    bucket: Bucket, memory: Warps, alpha: float, params: Params, words: npt.NDArray[np.uint64], key: np.uint64
) -> None:
    negative, each = split_negatives(RULES[params.negative_rule], params.negative)
    cuda = load("daskw2v.objectives.sgns.cuda.buckets")
    cuda.train_bucket(bucket, memory, alpha, negative, each, words, key)


SGNS = Objective(
    "sgns", {"sgd": 0.035}, ("negative", "ns_exponent", "negative_sharing"), word_tables, initial_rows, prepare_noise,
    {"cpu": _train_cpu, "cuda": _train_cuda}, {"cpu": _train_bucket_cpu, "cuda": _train_bucket_cuda},
    touched=touched_words,
)  # fmt: skip
