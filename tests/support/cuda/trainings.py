"""A small training of each kernel that `compiling` names, with rows that are damped."""

from typing import Any

import numpy as np

from daskw2v.config.params import Params
from daskw2v.objectives.base import MatrixColumns
from daskw2v.objectives.registry import OBJECTIVES, settle_params
from daskw2v.sampling.hierarchy import make_word_table
from daskw2v.sampling.pairs import pack
from daskw2v.sampling.settings import NegativeSampling
from daskw2v.sampling.skipgrams import Bucket
from tests.support.cuda.cases import KEY, Matrix, Pairs, PathPairs, Windows, count_table_rows, likely
from tests.support.cuda.compiling import Setting
from tests.support.options import reads_field
from tests.support.zipf import zipf_counts, zipf_segment


def params_of(name: str, setting: Setting) -> Params:
    """Return the Params of a kernel of KERNELS."""
    objective, _, kind = name.partition(", ")
    how: dict[str, Any] = {"vector_size": setting.vector_size, "window": setting.window}
    if reads_field(OBJECTIVES[objective], "negative"):
        how["negative"] = setting.negative
    if setting.market_negative:
        how["market_negative"] = setting.market_negative
    if kind == "pair":
        how["negative_sharing"] = "pair"
    if kind == "buckets":
        how["strategy"] = "rotation"
    if objective == "context_matrix":
        how["optimizer"] = kind or "adam"
    return settle_params(Params(objective=objective, **how))


def case_of(name: str, setting: Setting, n_tokens: int, n_words: int = 300) -> Any:
    """Return a training of a kernel of KERNELS, with rows that are damped."""
    params, rng = params_of(name, setting), np.random.default_rng(1)
    counts, d = zipf_counts(n_words, 100 * n_words), setting.vector_size
    if name.startswith("context_matrix"):
        contexts = rng.integers(0, n_words, (6, max(1, n_tokens // 6))).astype(np.int32)
        n_tables = 3 if params.optimizer == "adam" else 1
        trained = [
            np.abs(table) if k == 2 else table for k, table in enumerate(count_table_rows([6] * n_tables, d, rng))
        ]
        (others,), prepared = count_table_rows([n_words], d, rng), OBJECTIVES["context_matrix"].prepare(params, counts)
        return Matrix(params, MatrixColumns(contexts, 0, 3, 0.05, KEY), trained, others, prepared)
    if name == "sg_hs, buckets":
        pairs = pack(np.sort(rng.integers(0, n_words, (2, n_tokens))), np.uint32)
        tables = count_table_rows([n_words] * 2, d, rng)
        return PathPairs(params, pairs, tables, counts, likely(tables, rng))
    if name == "sgns, buckets":
        items = [pack(rng.integers(0, n_words, (2, k)), np.uint32) for k in (n_tokens, 0)]
        tables = count_table_rows([n_words] * 2, d, rng)
        words = make_word_table(counts, NegativeSampling.of(params).ns_exponent)
        return Pairs(params, Bucket(*items), setting.negative, 0, tables, words, likely(tables, rng))
    return Windows.made(params, zipf_segment(counts, n_tokens, 0.0), counts, rng, hot_rows=3)
