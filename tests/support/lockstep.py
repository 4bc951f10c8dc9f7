"""Threads in lock step, on one core: none sees what the others train until all of them have flushed their hot rows.

So do threads that have a core each. Threads that share cores take turns, and see more of each other: a test with more
threads than cores does not tell how far they go astray.
"""

from typing import Any

import numpy as np

from daskw2v.config.params import Params
from daskw2v.kernels.simd import huge_zeros, padded
from daskw2v.objectives.base import HotRows, Objective, Rate, Tables
from daskw2v.objectives.cpu.scratch import count_due_rows
from daskw2v.sampling.segments import Segment
from daskw2v.training.devices import Threads
from daskw2v.training.devices.cpu import flush_words_of, hot_rows_of
from daskw2v.types import Float32Array


def first_tables(objective: Objective, params: Params, n_words: int) -> tuple[Float32Array, Float32Array]:
    """Return both tables before training, flat, of padded rows."""
    width, tables = padded(params.vector_size), list[Float32Array]()
    for name, n in objective.tables(params, n_words).items():
        tables.append(huge_zeros(n * width))
        tables[-1].reshape(n, width)[:, : params.vector_size] = objective.initial(params, name, np.arange(n))
    source, output = tables
    return source, output


def train_in_step(
    objective: Objective,
    prepared: Any,
    tables: tuple[Float32Array, Float32Array],
    width: int,
    threads: Threads,
    segment: Segment,
    rate: Rate,
    epoch: int = 0,
) -> tuple[int, float]:
    """Train all centers of a segment, an equal part by each thread; return the examples and their summed loss.

    Parameters
    ----------
    objective, prepared
        What is trained.
    tables, width
        Both tables, flat, of rows of `width` floats; trained in place.
    threads
        As in `Threads`.
    segment, rate, epoch
        As a kernel takes them.
    """
    n, every = threads.n, flush_words_of(objective, threads)
    hot = HotRows(hot_rows_of(objective, threads), 0, 0, every)
    alone = Tables(*tables, width, HotRows(0, 0, 0, every))
    shared = [table[: hot.rows * width] for table in tables]
    common = [rows.copy() for rows in shared]  # as all threads knew them when they were last flushed
    own = [[rows.copy() for rows in shared] for _ in range(n)]
    bounds = np.linspace(0, len(segment.tokens), n + 1).astype(int)
    longest, total, loss = int(np.diff(bounds).max()), 0, 0.0
    for done in range(every, longest + every, every):
        for thread in range(n):
            for rows, copy in zip(shared, own[thread], strict=True):
                rows[:] = copy
            first, last = (min(bounds[thread] + at, bounds[thread + 1]) for at in (done - every, done))
            examples, lost = objective.trainers["cpu"](segment, first, last, alone, rate, epoch, prepared)
            total, loss = total + examples, loss + lost
            for rows, copy in zip(shared, own[thread], strict=True):
                copy[:] = rows
        due = width * (hot.rows if done >= longest else count_due_rows.py_func(hot, done, 1))
        for number, truth in enumerate(common):
            before = truth[:due].copy()
            for mine in own:
                truth[:due] += mine[number][:due] - before
            for mine in own:
                mine[number][:due] = truth[:due]
    for rows, truth in zip(shared, common, strict=True):
        rows[:] = truth
    return total, loss
