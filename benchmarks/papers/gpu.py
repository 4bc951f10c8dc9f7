"""What tables of papers say of this machine's GPU: measured where there is one, open where there is none."""

from importlib import import_module
from importlib.util import find_spec

from benchmarks.cuda.bench import Bench, has_gpu, wikipedia
from benchmarks.cuda.speed import speed_of
from benchmarks.papers.session import Session
from benchmarks.tables import Cell, Spread
from daskw2v.config.params import Params

OPEN = "not measured yet: no GPU; python -m benchmarks.cuda on one prints it"
_LANES, _REGISTERS, _MOST = 32, 1 << 16, 64  # of a warp; of a multiprocessor; and its warps


def speed_on_gpu(session: Session, params: Params) -> tuple[Cell, Cell]:
    """Return million words/s before subsampling, of the kernel alone and of the whole task; or that both are open."""
    if not has_gpu():
        return OPEN, OPEN
    bench = Bench(session.options, session.folder, session.out)
    found = speed_of(bench, params, wikipedia(session.timed))
    task: Spread | None = found.task
    return found.raw.scaled(1e-6), None if task is None else task.scaled(1e-6)


def compiled_for_gpu(kernel: str, vector_size: int) -> tuple[Cell, Cell]:
    """Return instructions (PTX) of a trained word, and warps that a multiprocessor has registers for, of sm_90."""
    if find_spec("numba_cuda") is None:
        return ("needs daskw2v[cuda]",) * 2
    kernels, compiling = map(import_module, ("benchmarks.cuda.kernels", "tests.support.cuda.compiling"))
    setting = compiling.Setting(vector_size)
    registers = -(-compiling.compiled(kernel, setting).registers // 8) * 8  # they are given out by eights
    return kernels.instructions_of(kernel, setting), min(_MOST, _REGISTERS // (_LANES * registers))
