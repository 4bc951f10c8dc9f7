"""What kernels are compiled to, and how many instructions a unit of work takes: no GPU is needed.

Registers, spills and shared memory are the linker's. Instructions are those of PTX, counted while NumPy emulates a warp
(`tests.support.cuda.emulated`) on a few words.
"""

import numpy as np

from benchmarks.cuda.bench import Bench
from daskw2v.objectives.noise import BATCH
from tests.support.cuda.cases import Matrix, Windows
from tests.support.cuda.compiling import Code, Setting, compiled
from tests.support.cuda.emulated import Kernel
from tests.support.cuda.occupancy import MULTIPROCESSORS
from tests.support.cuda.trainings import case_of

TOKENS, VOCABULARY = 160, 71_000
OTHERS = 1000  # distinct words of kernels that do not go over text


def instructions_of(name: str, setting: Setting) -> float:
    """Return the instructions of a word; of buckets those of a pair, of the matrix those of a column of a row."""
    code = compiled(name, setting)
    over_text = "buckets" not in name and "matrix" not in name
    case = case_of(name, setting, TOKENS, VOCABULARY if over_text else OTHERS)
    units = case.columns.contexts.size if isinstance(case, Matrix) else TOKENS
    if not isinstance(case, Matrix):
        case = case._replace(touched=[np.zeros(0, np.float32)] * 2)  # none is damped
    if isinstance(case, Windows):
        case = case._replace(hot_rows=0)
    _, done = case.emulated(Kernel(code.ptx, code.ring))
    return float(done.sum() / units)


def room_of(name: str, code: Code, capability: tuple[int, int]) -> int:
    """Return how many warps a multiprocessor has room for: those of a batch are a block, and all others one each."""
    warps = BATCH if name.startswith("context_matrix") else 1
    return MULTIPROCESSORS[capability].room(code.registers, code.shared, warps)


def kernels(bench: Bench) -> None:
    """Print a row for each kernel, row length and GPU."""
    plain = Setting(1)
    table = bench.table(
        f"Kernels, compiled for window {plain.window}, negative {plain.negative}; instructions of PTX a word (buckets: "
        "a pair, context_matrix: a column of a row)",
        ("registers", "spilled, bytes", "shared, bytes", "warps of a multiprocessor", "instructions"),
        ",.0f",
    )
    for name in bench.options.kernels:
        for vector_size in bench.options.dims:
            for capability in (divmod(number, 10) for number in bench.options.capabilities):
                setting = Setting(vector_size, capability)
                code = compiled(name, setting)
                table.row(
                    f"{name}, d={vector_size}, sm_{capability[0]}{capability[1]}",
                    code.registers,
                    code.spilled,
                    code.shared,
                    room_of(name, code, capability),
                    instructions_of(name, setting),
                )
