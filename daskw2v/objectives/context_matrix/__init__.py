"""Skip-gram with negative sampling over the word-context matrix: W2V-CL (Li et al. 2019).

A column pairs each word with one of its contexts, and all words have as many columns. One table is trained while the
other stays, then they change roles: no row of a batch as large as the vocabulary is updated twice, or read meanwhile.
"""

from daskw2v.kernels.cuda import load
from daskw2v.objectives.base import Columns, Objective, PartTables, initial_rows
from daskw2v.objectives.context_matrix import cpu
from daskw2v.objectives.noise import PreparedNoise, noise_bytes, prepare_noise, word_tables
from daskw2v.objectives.sgns import SGNS
from daskw2v.types import Float32Array

__all__ = ["CONTEXT_MATRIX"]


def _train_cpu(
    columns: Columns, first: int, last: int, tables: PartTables, prepared: PreparedNoise, losses: Float32Array
) -> None:
    cpu.train(columns, first, last, tables, prepared.params.negative, prepared.noise, losses)


def _train_cuda(
    columns: Columns, first: int, last: int, tables: PartTables, prepared: PreparedNoise, losses: Float32Array
) -> None:
    cuda = load("daskw2v.objectives.context_matrix.cuda")
    cuda.train(columns, first, last, tables, prepared.params.negative, prepared.noise, losses)


CONTEXT_MATRIX = Objective(
    name="context_matrix",
    title="skip-gram with negative sampling over the word-context matrix",
    alphas={"sgd": 0.05, "adam": 0.005},
    tables=word_tables,
    initial=initial_rows,
    prepare=prepare_noise,
    prepared_bytes=noise_bytes,
    column_trainers={"cpu": _train_cpu, "cuda": _train_cuda},
    measured_by=SGNS,
)
