"""Whole trainings on a GPU: one replica, several that are merged, rotation, columns; and what the host does for them.

    python -m benchmarks.gpu.trainings [--parts 10] [--times 3] [--epochs 5] [--size 128] [--ways averaging ...]

Where there are several GPUs, each way is also run on all of them. Text is encoded before, and kernels are compiled.
"""

import argparse
import time
import traceback
from typing import Any

from distributed import Client

from benchmarks.epochs import task_of, train_anew
from benchmarks.harness import Benchmark, Session, Smoke
from benchmarks.stopwatch import stopwatch
from benchmarks.tables import Spread
from benchmarks.texts import Text, encode, name_of
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.kernels.cuda import load
from daskw2v.training.averaging.replica import make_replica
from daskw2v.training.devices import Threads
from daskw2v.training.devices.gpu import CudaReplicaTrainer
from daskw2v.training.devices.settings import Cuda

WAYS: dict[str, dict[str, Any]] = {
    "averaging": {"strategy": "averaging"},
    "averaging, 8 rounds an epoch": {"strategy": "averaging", "rounds_per_epoch": 8},
    "averaging, 2 replicas": {"strategy": "averaging", "n_replicas": 2},
    "averaging, 4 replicas": {"strategy": "averaging", "n_replicas": 4},
    "rotation": {"strategy": "rotation"},
    "rotation, sg_hs": {"strategy": "rotation", "objective": "sg_hs"},
    "columns": {"strategy": "columns", "objective": "context_matrix"},
    "averaging, negatives a pair": {"strategy": "averaging", "negative_sharing": "pair"},
    "averaging, sg_hs": {"strategy": "averaging", "objective": "sg_hs"},
    "averaging, cbow_ns": {"strategy": "averaging", "objective": "cbow_ns"},
    "averaging, cbow_hs": {"strategy": "averaging", "objective": "cbow_hs"},
}
COLUMNS = "million words/s", "million pairs/s", "training, s", "all, s", "processor, s"
THREADS = 4  # that feed a GPU
POSITIONS = 1 << 22, 1 << 24  # of a piece


def trained(client: Client, text: Text, params: Params) -> tuple[float, ...]:
    """Train once; return the cells of COLUMNS."""
    took = stopwatch()
    metrics = train_anew(client, text, params, Resources(device="cuda", threads=THREADS)).metadata["metrics"]
    seconds = metrics["seconds"] - metrics["compiling_seconds"]
    return *(metrics[of] / seconds / 1e6 for of in ("words", "pairs")), seconds, *took()


def trainings(session: Session, text: Text) -> None:
    """Print how fast each way trains, in this process, on one GPU and on all."""
    options = session.options
    table = session.table(f"Trainings: d={options.size}, {options.epochs} epochs of {session.text}", COLUMNS, ".3g")
    for n in sorted({1, len(load("numba.cuda").gpus)}):
        with Client(
            processes=False, n_workers=1, threads_per_worker=THREADS * n, dashboard_address=":0", resources={"GPU": n}
        ) as client:
            for way in options.ways:
                params = Params(vector_size=options.size, epochs=options.epochs, **WAYS[way])
                try:  # what fails takes no other way down
                    found = [trained(client, text, params) for _ in range(1 + options.times)]
                except Exception:
                    session.wrong(f"{way}, {n} GPU(s):\n{traceback.format_exc()}")
                else:
                    table.row(f"{way}, {n} GPU(s)", *map(Spread.of, zip(*(found[1:] or found), strict=True)))


def host(session: Session, text: Text) -> None:
    """Print the milliseconds of a piece of text that lies on the GPU, and those of the thread that launches it."""
    table = session.table("A piece of text, ms", ("thread that launches", "until it is trained", "pieces"), ".2f")
    default = CudaReplicaTrainer.positions
    for positions in POSITIONS:
        CudaReplicaTrainer.positions = positions
        run, blocks, rows, work = task_of(text, Params(vector_size=session.options.size), "cuda")
        replica, pieces, found = (
            make_replica(run, Threads(THREADS, Cuda()), blocks, None, rows),
            -(-work.stop // positions),
            [],
        )
        for _ in range(1 + session.options.times):
            began, busy = time.perf_counter(), time.thread_time()
            await_totals = replica.begin_step(work)
            busy = time.thread_time() - busy
            await_totals()
            found.append([1e3 * seconds / pieces for seconds in (busy, time.perf_counter() - began)])
        table.row(f"pieces of {positions:,}", *map(Spread.of, zip(*found[1:], strict=True)), pieces)
    CudaReplicaTrainer.positions = default


def measure(session: Session) -> None:
    session.text = name_of(session.options.parts)
    text = encode(session.fresh("wiki"), session.options.parts)
    if session.options.times:
        host(session, text)
    trainings(session, text)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--parts", type=float, default=10, help="of 10 MB")
    parser.add_argument("--times", type=int, default=3, help="runs of each, after one that compiles; 0: that one alone")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--size", type=int, default=128, help="of vectors")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))


BENCHMARK = Benchmark(__doc__, ("daskw2v/training", "daskw2v/kernels/cuda"), Smoke({}, ()), add_arguments, measure)

if __name__ == "__main__":
    BENCHMARK.main()
