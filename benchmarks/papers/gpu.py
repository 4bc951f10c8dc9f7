"""What tables of papers say of this machine's GPU: measured where there is one, open where there is none."""

from benchmarks.cuda.bench import Bench, has_gpu, wikipedia
from benchmarks.cuda.speed import speed_of
from benchmarks.papers.session import Session
from benchmarks.tables import Cell, Spread
from daskw2v.config.params import Params

OPEN = "not measured yet: no GPU; python -m benchmarks.cuda on one prints it"


def speed_on_gpu(session: Session, params: Params) -> tuple[Cell, Cell]:
    """Return million words/s before subsampling, of the kernel alone and of the whole task; or that both are open."""
    if not has_gpu():
        return OPEN, OPEN
    bench = Bench(session.options, session.folder, session.out)
    found = speed_of(bench, params, wikipedia(session.timed))
    task: Spread | None = found.task
    return found.raw.scaled(1e-6), None if task is None else task.scaled(1e-6)
