"""Forecasts of rotation: bytes that are sent, and who copies."""

import math

import pytest

from daskw2v.config.params import Params
from daskw2v.kernels.simd import padded
from daskw2v.training.rotation.cost import moves, rotation_cost, tried, waits
from daskw2v.training.rotation.memory import fits_memory, passes_ahead, together
from daskw2v.training.sizes.forecast import MACHINE_B, Hardware, zipf
from daskw2v.training.sizes.memory import Workers
from daskw2v.training.sizes.text import Text

D, TYPES = 100, 100_000
LOAD = zipf(1e9, TYPES, Params(vector_size=D))


def cost(nodes, threads, processes, p, groups, dtype):
    hardware = Hardware("", nodes, threads, processes, math.inf, 1e8)
    return rotation_cost(LOAD, p, 2, hardware, MACHINE_B, groups, dtype)


@pytest.mark.parametrize(("dtype", "size"), [("float32", 4), ("bfloat16", 2)])
def test_rotation_cost__counts_the_bytes_of_rows_that_are_sent(dtype, size):
    """Each with its entry in the table of negatives. A group has the four threads of a process."""
    found = cost(4, 4, 1, 16, 4, dtype)
    rows = moves(4, 2, 4) * TYPES * (size * padded(D) + 8)
    assert found.sent == pytest.approx(rows + 3 / 4 * MACHINE_B.pair_bytes * LOAD.pairs)
    pairs = max(0.0, found.sent - rows - 4 * found.seconds["train"] * 1e8 * 1448 / 1514)  # sent while others train
    assert found.seconds["travel"] == pytest.approx((rows + pairs) / 4 / (1e8 * 1448 / 1514))


def test_rotation_cost__of_pairs_that_memory_does_not_hold_is_that_of_their_files():
    """Three passes may take .15 of all memory, half of them twice."""

    def cost_in(passes):
        memory = 3 * 1.5 * MACHINE_B.pair_bytes * LOAD.pairs / 2 / 0.15 * passes
        hardware = Hardware("", 1, 8, 1, memory, 1e8, storage=1e8)
        return rotation_cost(LOAD, 16, 2, hardware, MACHINE_B, 4)

    held, filed = cost_in(1.01), cost_in(0.99)
    assert held.seconds["store"] == pytest.approx(4 * LOAD.words / 1e8)
    assert filed.seconds["store"] == pytest.approx((4 * LOAD.words + 2 * MACHINE_B.pair_bytes * LOAD.pairs) / 1e8)
    assert filed.disk == pytest.approx(held.disk + MACHINE_B.pair_bytes * LOAD.pairs / 2)
    assert filed.memory < held.memory
    assert filed.seconds["tasks"] < held.seconds["tasks"]


def test_rotation_cost__one_thread_of_a_task_copies():
    alone, together = (cost(1, n, 1, 8, 1, "float32").seconds for n in (1, 8))
    assert together["copies"] == alone["copies"]
    assert together["train"] < alone["train"]


def test_rotation_cost__beyond_the_clusters_memory_goes_through_files():
    """Tasks of one thread read and write all that they train; of bfloat16 the model is three quarters as large."""

    def cost_in(tables, dtype):
        hardware = Hardware("", 1, 8, 1, tables * LOAD.tables / 0.3, 1e8, storage=1e8)
        return rotation_cost(LOAD, 16, 2, hardware, MACHINE_B, 4, dtype)

    held, filed = cost_in(1.01, "float32"), cost_in(0.99, "float32")
    pairs = 2 * MACHINE_B.pair_bytes * LOAD.pairs + 4 * LOAD.words
    assert held.seconds["store"] == pytest.approx(pairs / 1e8)
    assert filed.seconds["store"] == pytest.approx((pairs + 2 * 2 * 4 * LOAD.tables) / 1e8)
    assert filed.seconds["train"] > held.seconds["train"]
    assert filed.memory < held.memory
    assert cost_in(0.76, "bfloat16").seconds["store"] == held.seconds["store"]
    assert held.seconds["store"] < cost_in(0.74, "bfloat16").seconds["store"] < filed.seconds["store"]


def test_rotation_cost__of_one_worker_for_all_groups_is_that_of_a_task_a_pass():
    """Eight partitions are two groups: two threads train both, one after the other has them twice."""
    tables = 2 * TYPES * 4 * D
    whole, rounded, alone = (
        cost(1, n, 1, 8, None, dtype) for n, dtype in ((2, "float32"), (2, "bfloat16"), (1, "float32"))
    )
    assert whole.seconds["copies"] == pytest.approx(2 * tables * MACHINE_B.copy)
    assert alone.seconds["copies"] == pytest.approx(2 * 2 * tables * MACHINE_B.copy)
    assert rounded.seconds["copies"] == pytest.approx(2 * 2 * tables * MACHINE_B.copy / 2), "by two tasks"
    assert whole.seconds["waiting"] < rounded.seconds["waiting"]


def test_waits__are_few_for_threads_that_wait_for_no_round():
    """Fourteen threads have work for as long as sixteen partitions do; of eight, only as many as there are."""
    assert waits(LOAD, 16, 16, 2) == 1.0
    assert 1.0 < waits(LOAD, 16, 16, 14) < 1.1
    assert waits(LOAD, 16, 16, 16) < 1.1
    assert waits(LOAD, 8, 8, 8) < 1.1
    assert waits(LOAD, 8, 8, 14) > 14 / 8


def test_together__is_what_threads_have_work_for_and_memory_holds():
    assert together(1 << 20, 1e6, 4, math.inf) == 4
    assert together(1 << 22, 1e6, 4, math.inf) == 1
    assert together(1 << 20, 1e6, 4, 3.1 * passes_ahead(1) * 1e6 / 0.15) == 3
    assert together(1 << 20, 1e6, 4, 1e6) == 1


@pytest.mark.parametrize(("workers", "expected"), [(Workers(1, 8), 8), (Workers(2, 8), 1), (Workers(1, 8, 1e6), 1)])
def test_fits_memory__lets_one_worker_that_holds_pairs_train_passes_together(workers, expected):
    text = Text(5 << 20, 30_000, 2 << 20, 30_000, 1, 1, 5 << 20, 30_000, 30_000)
    params = Params(strategy="rotation", passes_per_epoch=5)
    assert fits_memory(params, text, workers).together == expected


def test_tried__has_half_as_many_partitions_as_threads():
    params = Params(strategy="rotation")
    found = [changes["n_partitions"] for changes in tried(params, 100_000, Workers(1, 64))]
    assert found == [32, 64]
    assert next(tried(params, 100_000, Workers(1, 2))) == {"n_partitions": 8}
