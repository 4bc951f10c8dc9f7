"""Skip-gram with negative sampling over the word-context matrix: W2V-CL (Li et al. 2019).

Each word meets one of its contexts a column, and every word meets as many. One table moves while the other stays, then
they change roles: so no row of a batch as large as the vocabulary is moved twice, nor read while it moves.
"""

from daskw2v.cuda import load
from daskw2v.objectives.base import Columns, FloatArray, Objective, PartMemory, initial_rows
from daskw2v.objectives.context_matrix import cpu
from daskw2v.objectives.negatives import Prepared, prepare_noise, word_tables

__all__ = ["CONTEXT_MATRIX"]


def _train_cpu(
    columns: Columns, first: int, last: int, memory: PartMemory, prepared: Prepared, losses: FloatArray
) -> None:
    cpu.train(columns, first, last, memory, prepared.params.negative, prepared.noise, losses)


def _train_cuda(
    columns: Columns, first: int, last: int, memory: PartMemory, prepared: Prepared, losses: FloatArray
) -> None:
    cuda = load("daskw2v.objectives.context_matrix.cuda")
    cuda.train(columns, first, last, memory, prepared.params.negative, prepared.noise, losses)


CONTEXT_MATRIX = Objective(
    "context_matrix", {"sgd": 0.05, "adam": 0.005}, ("negative", "ns_exponent", "context_size", "base_matrix"),
    word_tables, initial_rows, prepare_noise, {}, column_trainers={"cpu": _train_cpu, "cuda": _train_cuda},
)  # fmt: skip
