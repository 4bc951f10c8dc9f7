"""What memory gives: copies, rows read at random as kernels read them, and rows added, at random or all to one."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numba import cuda, float32

from benchmarks.cuda.bench import Bench
from benchmarks.cuda.launching import elapsed
from daskw2v.kernels.cuda.launching import room
from daskw2v.kernels.cuda.rows import chunks_of, reading, writing
from daskw2v.kernels.cuda.warp import FLOATS, LANES, kernel, load4, load4_fresh, store4
from daskw2v.kernels.rng import below, draw
from daskw2v.objectives.cuda.access import adds_four, row_adder

_AT_ONCE = 4  # rows that a warp has under way


def copying(width: int) -> Any:
    read, write, floats = reading(width, load4), writing(width, store4), chunks_of(width) * FLOATS

    @kernel
    def run(source: Any, there: Any, n: Any, key: Any) -> None:
        rows, lane = cuda.local.array((_AT_ONCE, floats), float32), cuda.threadIdx.x
        for i in range(cuda.blockIdx.x * _AT_ONCE, n, cuda.gridDim.x * _AT_ONCE):
            for t in range(_AT_ONCE):
                read(source, np.int64(i + t) * width, lane, rows, t)
            for t in range(_AT_ONCE):
                write(there, np.int64(i + t) * width, lane, rows, t)

    return run


def reading_at_random(width: int) -> Any:
    read, write, floats = reading(width, load4_fresh), writing(width, store4), chunks_of(width) * FLOATS

    @kernel
    def run(table: Any, there: Any, n: Any, key: Any) -> None:
        rows, lane = cuda.local.array((_AT_ONCE, floats), float32), cuda.threadIdx.x
        total = cuda.local.array((1, floats), float32)
        for k in range(floats):
            total[0, k] = float32(0.0)
        size = table.size // width
        for i in range(cuda.blockIdx.x * _AT_ONCE, n, cuda.gridDim.x * _AT_ONCE):
            for t in range(_AT_ONCE):
                row = np.int64(below(np.uint64(draw(key, i + t)), size))
                read(table, row * width, lane, rows, t)
            for t in range(_AT_ONCE):
                for k in range(floats):
                    total[0, k] += rows[t, k]
        write(there, np.int64(cuda.blockIdx.x) * width, lane, total, 0)  # or nothing would be read

    return run


def adding(width: int, rows_met: int) -> Any:
    """Return the kernel that adds to one of the first `rows_met` rows; all of them for 0."""
    add, floats = row_adder(width, adds_four()), chunks_of(width) * FLOATS

    @kernel
    def run(table: Any, there: Any, n: Any, key: Any) -> None:
        rows, lane = cuda.local.array((1, floats), float32), cuda.threadIdx.x
        for k in range(floats):
            rows[0, k] = float32(1e-6)
        size = rows_met if rows_met > 0 else table.size // width
        for i in range(cuda.blockIdx.x, n, cuda.gridDim.x):
            add(table, np.int64(below(np.uint64(draw(key, i)), size)) * width, lane, rows, 0)

    return run


def ceilings(bench: Bench, width: int = 128, warps: int | None = None) -> None:
    """Print GB/s of rows of `width` floats, by `warps` in flight."""
    warps = warps or room()
    n = warps * bench.options.rows_a_warp
    table = bench.table(
        "ceilings", f"GB/s of rows of {4 * width} bytes, {warps:,} warps; a copy counts what it reads and writes",
        ("table, MB", "GB/s"),
    )  # fmt: skip
    stream = cuda.stream()
    for n_rows in bench.options.vocabularies:
        flat = cuda.to_device(np.zeros(n_rows * width, np.float32))
        there = cuda.to_device(np.zeros(max(n_rows, warps) * width, np.float32))
        copied = n_rows // _AT_ONCE * _AT_ONCE
        kinds: dict[str, tuple[Any, int, int]] = {
            "copy": (copying(width), copied, 2),
            "read at random": (reading_at_random(width), n, 1),
            "add at random": (adding(width, 0), n, 1),
            "add to 1,000 rows": (adding(width, min(1000, n_rows)), n, 1),
            "add to one row": (adding(width, 1), n, 1),
        }
        runs: dict[str, Callable[[], float]] = {
            name: partial(_speed, run, flat, there, rows, moves * 4 * width, warps, stream)
            for name, (run, rows, moves) in kinds.items()
        }
        for name, speed in bench.measure(runs).items():
            table.row(f"{name}", 4 * width * n_rows / 1e6, speed.scaled(1e-9))


def _speed(run: Any, flat: Any, there: Any, n: int, bytes_a_row: int, warps: int, stream: Any) -> float:
    def launch() -> None:
        run[warps, LANES, stream](flat, there, n, np.uint64(1))

    return n * bytes_a_row / elapsed(cuda, stream, launch)
