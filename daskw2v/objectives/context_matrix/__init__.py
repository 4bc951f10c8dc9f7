"""Skip-gram with negative sampling over the word-context matrix: W2V-CL (Li et al. 2019).

A column pairs each word with one of its contexts, and all words have as many columns. One table is trained while the
other stays, then they change roles: no row of a batch as large as the vocabulary is updated twice, or read meanwhile.
"""

from functools import partial

from daskw2v.config.params import Params
from daskw2v.kernels.cuda import call
from daskw2v.objectives.base import Objective
from daskw2v.objectives.context_matrix import cpu
from daskw2v.objectives.noise import PreparedNoise, noise_bytes, word_table_rows
from daskw2v.objectives.settings import WordContextMatrix
from daskw2v.objectives.sgns import SGNS
from daskw2v.sampling.hierarchy import make_word_table
from daskw2v.sampling.segments import keep_shares
from daskw2v.sampling.settings import SampledContexts
from daskw2v.types import Int64Array

__all__ = ["CONTEXT_MATRIX"]

NS_EXPONENT = 1.0  # where Params leave it open


def prepare(params: Params, counts: Int64Array) -> PreparedNoise:
    """Return Params and the table that negatives are drawn from: words as often as they are contexts of the matrix.

    With such negatives alone both tables have the same optimum. Where q is the share of a word among the negatives, the
    dot product of x and y is best at log P(y | x) / q(y) for the input row of x, and at log P(x | y) / q(x) for the
    output row of y, less a constant. The two are equal where q is the share of a word among the contexts. With counts
    ** 0.75 they differ by a quarter of log P(y) / P(x): rows of frequent and of rare words are pulled to and fro.
    """
    settings = SampledContexts.of(params)
    expected_counts = counts * keep_shares(counts, params.sample) * keep_shares(counts, settings.context_sample)
    exponent = NS_EXPONENT if settings.ns_exponent is None else settings.ns_exponent
    return PreparedNoise(params, make_word_table(expected_counts, exponent))


CONTEXT_MATRIX = Objective(
    name="context_matrix",
    settings=WordContextMatrix,
    title="skip-gram with negative sampling over the word-context matrix",
    alphas={"sgd": 0.05, "adam": 0.005},
    tables=word_table_rows,
    prepare=prepare,
    prepared_bytes=noise_bytes,
    column_trainers={"cpu": cpu.train, "cuda": partial(call, f"{__name__}.cuda", "train")},
    measured_by=SGNS,
)
