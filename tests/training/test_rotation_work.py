"""The work of rotation: bytes that are sent and stored, who copies, and what memory holds."""

import math

import pytest

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.kernels.simd import padded
from daskw2v.training.estimates.memory import training_memory
from daskw2v.training.estimates.seconds import MACHINE_B, forecast
from daskw2v.training.rotation.work import (
    RotationWork,
    candidate_settings,
    count_moves,
    count_words_to_copy,
    max_passes_of_task,
    passes_ahead,
    waiting_factor,
)
from daskw2v.training.sizes import Text, Workers, estimate_load

D, TYPES = 100, 100_000
TEXT = Text(10**9, TYPES, 5 * 10**8, TYPES, 1, 1, 10**7, TYPES, TYPES)
LOAD = estimate_load(TEXT, Params(vector_size=D, epochs=1))
COPY, LINK, ENTRY = MACHINE_B["copy"].value_for(D), 1e8 * 1448 / 1514, 4  # seconds a byte; bytes/s; bytes of a pair
TABLES = 2 * TYPES * 4 * D


def work(workers, p, groups, dtype="float32", text=TEXT):
    params = Params(
        strategy="rotation",
        n_partitions=p,
        n_groups=groups,
        passes_per_epoch=2,
        epochs=1,
        sent_dtype=dtype,
        vector_size=D,
    )
    return RotationWork(params, Resources(), text, workers)


def cost(n, threads, p, groups, dtype):
    return forecast(work(Workers(n, threads, network=1e8), p, groups, dtype), MACHINE_B)


@pytest.mark.parametrize(("dtype", "size"), [("float32", 4), ("bfloat16", 2)])
def test_rotation_work__counts_the_bytes_of_rows_that_are_sent(dtype, size):
    """Each with its entry in the table of negatives. A group has the four threads of a process."""
    found = cost(4, 4, 16, 4, dtype)
    rows = count_moves(4, 2, 4) * TYPES * (size * padded(D) + 8)
    assert found.sent == pytest.approx(rows + 3 / 4 * ENTRY * LOAD.pairs)
    pairs = max(0.0, found.sent - rows - 4 * found.seconds["train"] * LINK)  # sent while others train
    assert found.seconds["travel"] == pytest.approx((rows + pairs) / 4 / LINK)


def test_rotation_work__of_pairs_that_memory_does_not_hold_is_that_of_their_files():
    """Three passes may take .15 of all memory, half of them twice."""

    def work_in(passes):
        memory = 3 * 1.5 * work(Workers(), 16, 4).pairs_of_pass / 0.15 * passes
        return work(Workers(1, 8, memory, storage=1e8), 16, 4)

    held, filed = work_in(1.01), work_in(0.99)
    inside, outside = (forecast(one, MACHINE_B).seconds for one in (held, filed))
    assert inside["store"] == pytest.approx(4 * LOAD.words / 1e8)
    assert outside["store"] == pytest.approx((4 * LOAD.words + 2 * ENTRY * LOAD.pairs) / 1e8)
    assert training_memory(filed).bytes < training_memory(held).bytes
    assert outside["tasks"] < inside["tasks"]


def test_rotation_work__one_thread_of_a_task_copies():
    alone, together = (cost(1, n, 8, 1, "float32").seconds for n in (1, 8))
    assert together["copies"] == alone["copies"]
    assert together["train"] < alone["train"]


def test_rotation_work__beyond_the_clusters_memory_goes_through_files():
    """Tasks of one thread read and write all that they train; of bfloat16 the model is three quarters as large."""

    def work_in(tables, dtype):
        return work(Workers(1, 8, tables * TABLES / 0.3, storage=1e8), 16, 4, dtype)

    def cost_in(tables, dtype):
        return forecast(work_in(tables, dtype), MACHINE_B)

    held, filed = cost_in(1.01, "float32"), cost_in(0.99, "float32")
    pairs = 2 * ENTRY * LOAD.pairs + 4 * LOAD.words
    assert held.seconds["store"] == pytest.approx(pairs / 1e8)
    assert filed.seconds["store"] == pytest.approx((pairs + 2 * 2 * 4 * TABLES) / 1e8)
    assert filed.seconds["train"] > held.seconds["train"]
    assert training_memory(work_in(0.99, "float32")).bytes < training_memory(work_in(1.01, "float32")).bytes
    assert cost_in(0.76, "bfloat16").seconds["store"] == held.seconds["store"]
    assert held.seconds["store"] < cost_in(0.74, "bfloat16").seconds["store"] < filed.seconds["store"]


def test_rotation_work__of_one_worker_for_all_groups_is_that_of_a_task_a_pass():
    """Eight partitions are two groups: two threads train both, one after the other has them twice."""
    whole, rounded, alone = (
        cost(1, n, 8, None, dtype) for n, dtype in ((2, "float32"), (2, "bfloat16"), (1, "float32"))
    )
    assert whole.seconds["copies"] == pytest.approx(2 * TABLES * COPY)
    assert alone.seconds["copies"] == pytest.approx(2 * 2 * TABLES * COPY)
    assert rounded.seconds["copies"] == pytest.approx(2 * 2 * TABLES * COPY / 2), "by two tasks"
    assert whole.seconds["waiting"] < rounded.seconds["waiting"]


def test_waits__are_few_for_threads_that_wait_for_no_round():
    """Fourteen threads have work for as long as sixteen partitions do; of eight, only as many as there are."""
    assert waiting_factor(LOAD, 16, 16, 2) == 1.0
    assert 1.0 < waiting_factor(LOAD, 16, 16, 14) < 1.1
    assert waiting_factor(LOAD, 16, 16, 16) < 1.1
    assert waiting_factor(LOAD, 8, 8, 8) < 1.1
    assert waiting_factor(LOAD, 8, 8, 14) > 14 / 8


def test_together__is_what_threads_have_work_for_and_memory_holds():
    assert max_passes_of_task(1 << 20, 1e6, 4, math.inf) == 4
    assert max_passes_of_task(1 << 22, 1e6, 4, math.inf) == 1
    assert max_passes_of_task(1 << 20, 1e6, 4, 3.1 * passes_ahead(1) * 1e6 / 0.15) == 3
    assert max_passes_of_task(1 << 20, 1e6, 4, 1e6) == 1


@pytest.mark.parametrize(("workers", "expected"), [(Workers(1, 8), 8), (Workers(2, 8), 1), (Workers(1, 8, 1e6), 1)])
def test_fits__lets_one_worker_that_holds_pairs_train_passes_together(workers, expected):
    text = Text(5 << 20, 30_000, 2 << 20, 30_000, 1, 1, 5 << 20, 30_000, 30_000)
    params = Params(strategy="rotation", passes_per_epoch=5)
    assert RotationWork(params, Resources(), text, workers).fits.passes_of_task == expected


@pytest.mark.parametrize(("n_words", "expected"), [(100_000, [8, 16, 32, 64]), (8_000, [8]), (7_999, [])])
def test_candidate_settings__have_partitions_of_a_thousand_words_at_least(n_words, expected):
    text = Text(10**9, n_words, 5 * 10**8, n_words, 1, 1, 10**7, n_words, n_words)
    tried = candidate_settings(Params(strategy="rotation"), text, Workers(1, 64))
    assert [changes["n_partitions"] for changes in tried] == expected


@pytest.mark.parametrize(
    ("words", "objective", "copied_words", "copies"),
    [(10**12, "sgns", None, True), (10**7, "sgns", None, False), (10**12, "sg_hs", None, False),
     (10**12, "sgns", 9, False)],
)  # fmt: skip
def test_candidate_settings__copy_words_of_which_each_partition_has_many(words, objective, copied_words, copies):
    text = Text(words, 10**7, words // 2, 10**7, 1, 1, 10**7, 10**7, 10**7)
    params = Params(strategy="rotation", objective=objective, copied_words=copied_words)
    tried = [changes for changes in candidate_settings(params, text, Workers(64, 16)) if "copied_words" in changes]
    assert bool(tried) == copies
    by_partitions = {changes["n_partitions"]: changes["copied_words"] for changes in tried}
    assert sorted(by_partitions.values()) == [by_partitions[p] for p in sorted(by_partitions)], "more need more copies"


def test_copied_words__let_no_thread_wait_for_the_partition_of_the_most_frequent_word():
    text, workers = Text(10**12, 10**7, 5 * 10**11, 10**7, 1, 1, 10**7, 10**7, 10**7), Workers(64, 16)
    params = Params(strategy="rotation", n_partitions=1024, n_groups=64)
    copied = params.replace(copied_words=count_words_to_copy(params, text))
    waiting, even = (
        next(phase for phase in RotationWork(each, Resources(), text, workers).phases() if phase.term == "train")
        for each in (params, copied)
    )
    assert waiting.slowest > 4
    assert even.slowest < 1.4


@pytest.mark.parametrize(("memory", "passes"), [(1e12, [24]), (3e9, [None])])
def test_candidate_settings__have_more_passes_only_where_workers_hold_their_pairs(memory, passes):
    text = Text(840_000_000, 8_000_000, 400_000_000, 1_000_000, 1, 1, 10**7, 10**6, 10**6)
    workers = Workers(2, 1, memory, limit=memory / 2)
    params = Params(strategy="rotation", epochs=1, n_groups=2)
    tried = [changes for changes in candidate_settings(params, text, workers) if changes["n_partitions"] == 32]
    assert [changes.get("passes_per_epoch") for changes in tried] == passes
    given = [*candidate_settings(params.replace(passes_per_epoch=4), text, workers)]
    assert not any("passes_per_epoch" in changes for changes in given)


@pytest.mark.parametrize(
    ("epochs", "passes"), [(1, {8: None, 16: 24, 64: 24}), (2, {8: None, 16: None, 64: 12}), (5, {64: None})]
)
def test_candidate_settings__have_passes_that_keep_quality_in_few_epochs(epochs, passes):
    text = Text(10**9, 10**5, 5 * 10**8, 10**5, 1, 1, 10**7, 10**5, 10**5)
    tried = [*candidate_settings(Params(strategy="rotation", epochs=epochs), text, Workers(1, 8))]
    by_partitions = {changes["n_partitions"]: changes.get("passes_per_epoch") for changes in tried}
    assert passes.items() <= by_partitions.items()
