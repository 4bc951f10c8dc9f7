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
    """Return the kernel that adds to one of the first `rows_met` rows."""
    add, floats = row_adder(width, adds_four()), chunks_of(width) * FLOATS

    @kernel
    def run(table: Any, there: Any, n: Any, key: Any) -> None:
        rows, lane = cuda.local.array((1, floats), float32), cuda.threadIdx.x
        for k in range(floats):
            rows[0, k] = float32(1e-6)
        for i in range(cuda.blockIdx.x, n, cuda.gridDim.x):
            add(table, np.int64(below(np.uint64(draw(key, i)), rows_met)) * width, lane, rows, 0)

    return run


def ceilings(bench: Bench, width: int = 128, warps: int | None = None) -> None:
    """Print GB/s of rows of `width` floats, by `warps` in flight."""
    warps, size = warps or room(), 4 * width
    n, stream = warps * bench.options.rows_a_warp, cuda.stream()
    table = bench.table(
        f"Ceilings: GB/s of rows of {size} bytes, {warps:,} warps; a copy counts what it reads and writes", ("GB/s",),
        ".1f",
    )  # fmt: skip
    for n_rows in bench.options.vocabularies:
        flat = cuda.to_device(np.zeros(n_rows * width, np.float32))
        there = cuda.to_device(np.zeros(max(n_rows, warps) * width, np.float32))
        met = {"at random": n_rows, "to 1,000 rows": min(1000, n_rows), "to one row": 1}
        kinds = {
            "copy": (copying(width), n_rows // _AT_ONCE * _AT_ONCE, 2 * size),
            "read at random": (reading_at_random(width), n, size),
            **{f"add {name}": (adding(width, rows), n, size) for name, rows in met.items()},
        }

        def speed(run: Any, rows: int, each: int, *arrays: Any) -> float:
            took = elapsed(cuda, stream, lambda: run[warps, LANES, stream](*arrays, rows, np.uint64(1)))
            return rows * each / took / 1e9

        runs: dict[str, Callable[[], float]] = {
            name: partial(speed, *kind, flat, there) for name, kind in kinds.items()
        }
        for name, found in bench.measure(runs).items():
            table.row(f"{name}, {size * n_rows / 1e6:,.1f} MB", found)
