"""Threads' copies of hot rows: each change reaches the table, once."""

import numpy as np
import pytest

from daskw2v.kernels.jit import kernel
from daskw2v.kernels.simd import aligned_zeros
from daskw2v.objectives.base import HotRows, Tables
from daskw2v.objectives.cpu.scratch import count_due_rows, fetch_hot, flush_hot, make_scratch

WORDS, NODES, HOT, WIDTH = 9, 8, 3, 16


@pytest.fixture
def threads():
    """Two threads' views of one pair of tables, whose numbers are small integers: sums are exact."""
    rng = np.random.default_rng(0)
    tables = []
    for n in (WORDS, NODES):
        table = aligned_zeros((n + 2 * HOT) * WIDTH)
        table[: n * WIDTH] = rng.integers(-9, 9, n * WIDTH)
        tables.append(table)
    memories = [Tables(*tables, WIDTH, HotRows(HOT, WORDS + i * HOT, NODES + i * HOT, 1)) for i in range(2)]
    return [(memory, make_scratch(memory, 5, 1, 1, 1, 8)) for memory in memories]


def hot_rows(thread, copies):
    """Return views of the thread's copies, or of the hot rows themselves, in both tables."""
    source, output, width, hot = thread[0][:4]
    starts = (hot.source, hot.output) if copies else (0, 0)
    return [
        table.reshape(-1, width)[start : start + HOT] for table, start in zip((source, output), starts, strict=True)
    ]


def test_hot_rows__of_two_threads_add_up_all_changes(threads):
    rng = np.random.default_rng(1)
    expected = [rows.copy() for rows in hot_rows(threads[0], copies=False)]
    rest = [table[HOT * WIDTH : n * WIDTH].copy() for table, n in zip(threads[0][0][:2], (WORDS, NODES), strict=True)]
    for thread in threads:
        fetch_hot(*thread)
    for _ in range(5):
        for thread in threads:
            for copies, truth in zip(hot_rows(thread, copies=True), expected, strict=True):
                change = rng.integers(-5, 5, copies.shape)
                copies += change
                truth += change
        for thread in threads:
            flush_hot(*thread, HOT)
        for rows, truth in zip(hot_rows(threads[0], copies=False), expected, strict=True):
            np.testing.assert_array_equal(rows, truth)
        for copies, truth in zip(hot_rows(threads[1], copies=True), expected, strict=True):
            np.testing.assert_array_equal(copies, truth, "the last thread to flush has all changes")
    for table, n, before in zip(threads[0][0][:2], (WORDS, NODES), rest, strict=True):
        np.testing.assert_array_equal(table[HOT * WIDTH : n * WIDTH], before, "other rows do not change")


def test_hot_rows__flushed_twice_change_nothing_more(threads):
    fetch_hot(*threads[0])
    hot_rows(threads[0], copies=True)[0][:] += 1
    flush_hot(*threads[0], HOT)
    once = threads[0][0].source.copy()
    flush_hot(*threads[0], HOT)
    np.testing.assert_array_equal(threads[0][0].source, once)


def test_hot_rows__of_size_0_change_nothing():
    memory = Tables(aligned_zeros(WIDTH), aligned_zeros(0), WIDTH, HotRows(0, 1, 0, 1))
    scratch = make_scratch(memory, 5, 1, 1, 1, 8)
    fetch_hot(memory, scratch)
    flush_hot(memory, scratch, 0)
    assert not memory.source.any()


@kernel
def flush_due(tables, scratch, n_trained, step):
    """Flush as the kernels do."""
    due = count_due_rows(tables.hot, n_trained, step)
    if due:
        flush_hot(tables, scratch, due)


@pytest.mark.parametrize("step", [1, 4])
def test_count_due_rows__has_the_hottest_rows_each_time_and_other_rows_less_often(step):
    """16 rows at each flush, 32 at every second one, and so on up to all."""
    hot, flush = 100, 12
    memory = Tables(
        aligned_zeros(2 * hot * WIDTH), aligned_zeros(2 * hot * WIDTH), WIDTH, HotRows(hot, hot, hot, flush)
    )
    scratch = make_scratch(memory, 5, 1, 1, 1, 8)
    fetch_hot(memory, scratch)
    flushed = {}
    for n_trained in range(step, 16 * flush + 1, step):
        copies = [table.reshape(2, hot, WIDTH)[1] for table in (memory.source, memory.output)]
        for rows in copies:
            rows += 1
        before = memory.source.reshape(2, hot, WIDTH)[0].copy()
        flush_due(memory, scratch, n_trained, step)
        changed = [(table.reshape(2, hot, WIDTH)[0] != before).all(axis=1) for table in (memory.source, memory.output)]
        np.testing.assert_array_equal(*changed)
        n = int(changed[0].sum())
        assert changed[0][:n].all()
        if n:
            flushed[n_trained] = n
    assert flushed == {flush * (i + 1): n for i, n in enumerate([16, 32, 16, 64, 16, 32, 16, 100] * 2)}
