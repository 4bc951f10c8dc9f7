"""One replica on the CPU: blocks in, blocks out, and what threads may and may not change."""

import itertools
import threading
from dataclasses import replace

import numpy as np
import pytest

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.errors import ParameterError
from daskw2v.objectives.base import Rate
from daskw2v.objectives.cbow_hs import CBOW_HS
from daskw2v.objectives.registry import OBJECTIVES, find_objective
from daskw2v.objectives.sg_hs import SG_HS
from daskw2v.sampling.segments import Segment
from daskw2v.training.devices import SomeRows, TextPiece, Threads, cpu, find_device
from daskw2v.training.devices.cpu import count_flush_words, count_hot_rows
from daskw2v.training.devices.settings import CPU, Cuda

ALL = sorted(name for name, objective in OBJECTIVES.items() if objective.trainers)
WORDS = 30
CUTS = (0, 7, 8, 20, WORDS)


def make_blocks(objective="sgns", words=WORDS):
    value, params = find_objective(objective), Params(objective=objective, vector_size=10)
    return {
        table: [value.initial(params, table, np.arange(a, min(b, n))) for a, b in itertools.pairwise(CUTS) if a < n]
        for table, n in value.tables(params, words).items()
    }


def make_replica(threads, blocks, objective="sgns", words=WORDS, **options):
    """Make a replica whose threads flush every seven centers."""
    value, params = find_objective(objective), Params(objective=objective, vector_size=10, **options)
    value = replace(value, flush_words=7 * threads.n)
    prepared = value.prepare(params, np.arange(words, 0, -1))
    return find_device("cpu").replica_trainer(value, params, prepared, dict, blocks, threads)


def make_segment(n, words=WORDS):
    """Pairs of neighbours, (0, 1), (2, 3)..., one for each sentence of ten words: there is something to learn."""
    rng = np.random.default_rng(0)
    topics = np.repeat(rng.integers(0, (words + 1) // 2, n // 10), 10)
    tokens = np.minimum(2 * topics + rng.integers(0, 2, n), words - 1).astype(np.int32)
    return Segment(tokens, np.arange(n), np.arange(0, n + 1, 10))


def loads(segment, cuts, epochs=1):
    for epoch in range(epochs):
        for a, b in itertools.pairwise(cuts):
            yield lambda a=a, b=b, epoch=epoch: TextPiece(segment, a, b, Rate(0.05, 0.0, 0), epoch)


def test_replica__gives_its_blocks_back_as_they_came():
    blocks = make_blocks()
    taken = make_replica(Threads(3, CPU(hot_rows=5)), blocks).take()
    assert list(taken) == list(blocks)
    for table, parts in blocks.items():
        for part, back in zip(parts, taken[table], strict=True):
            np.testing.assert_array_equal(part, back)
            assert back.flags.c_contiguous


def test_replica__has_merged_rows_at_their_indices():
    blocks, segment = make_blocks(), make_segment(1000, 10)  # the first ten words, and negatives from all
    some = {"input": [], "output": blocks["output"]}
    for a, part in zip(CUTS, blocks["input"], strict=False):
        rows = np.arange(max(0, min(len(part), 10 - a)), dtype=np.int32)
        some["input"].append(SomeRows(len(part), rows, part[rows]))
    taken = []
    for given in (blocks, some):
        replica = make_replica(Threads(1, CPU(hot_rows=0)), given)
        replica.train(loads(segment, (0, 1000)))
        taken.append(replica.take_by(lambda table, number, rows: rows.copy()))
    for whole, part, given in zip(taken[0]["input"], taken[1]["input"], some["input"], strict=True):
        np.testing.assert_array_equal(whole[given.rows], part)
    for whole, part in zip(taken[0]["output"], taken[1]["output"], strict=True):
        np.testing.assert_array_equal(whole, part)
    assert np.abs(taken[0]["output"][0]).max() > 0


def test_replica__trains_a_copy():
    blocks = make_blocks()
    for parts in blocks.values():
        for part in parts:
            part.flags.writeable = False
    before = [part.copy() for part in blocks["input"]]
    replica = make_replica(Threads(1, CPU(hot_rows=5)), blocks)
    replica.train(loads(make_segment(3000), (0, 3000)))
    assert np.abs(replica.take()["input"][0] - before[0]).max() > 0.1
    for part, kept in zip(blocks["input"], before, strict=True):
        np.testing.assert_array_equal(part, kept)


@pytest.mark.parametrize("objective", ALL)
@pytest.mark.parametrize("hot_rows", [0, 5, 4096])
def test_replica__several_threads_learn_what_one_learns(monkeypatch, objective, hot_rows):
    """4096 rows are more than the table has: all rows are hot then."""
    monkeypatch.setattr(cpu, "CHUNK", 500)
    segment, losses, vectors = make_segment(6000), {}, {}
    for threads in (1, 3):
        replica = make_replica(Threads(threads, CPU(hot_rows=hot_rows)), make_blocks(objective), objective)
        for epoch in range(3):
            n, loss, _ = replica.train(
                lambda a=a, epoch=epoch: TextPiece(segment, a, a + 2000, Rate(0.05, 0.0, 0), epoch)
                for a in (0, 2000, 4000)
            )
            assert n >= 6000
            losses.setdefault(threads, []).append(loss / n)
        vectors[threads] = np.concatenate(replica.take()["input"])
    assert losses[1][2] < losses[1][0]
    assert losses[3] == pytest.approx(losses[1], rel=0.1)
    for rows in vectors.values():  # a word is closest to the one of its sentences
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        closest = (rows @ rows.T - 2 * np.eye(WORDS)).argmax(axis=1)
        assert (closest == np.arange(WORDS) ^ 1).mean() > 0.6  # by chance 1 of 29; threads that wait long see old rows


@pytest.mark.sampled(1)
@pytest.mark.parametrize("objective", ALL)
def test_replica__one_thread_gives_the_same_bits_however_work_is_cut(monkeypatch, objective):
    """But for CBOW that shares negatives: its batches take windows from all of a range."""
    segment, results = make_segment(2000), []
    options = {"negative_sharing": "pair"} if objective == "cbow_ns" else {}
    for chunk, cuts, hot_rows in ((16384, (0, 2000), 0), (300, (0, 2000), 31), (300, (0, 1, 300, 301, 999, 2000), 31)):
        monkeypatch.setattr(cpu, "CHUNK", chunk)
        replica = make_replica(Threads(1, CPU(hot_rows=hot_rows)), make_blocks(objective), objective, **options)
        n, loss, _ = replica.train(loads(segment, cuts))
        results.append((n, loss, replica.take()))
    for n, loss, tables in results[1:]:
        assert n == results[0][0]
        assert loss == pytest.approx(results[0][1])
        for name, parts in tables.items():
            for part, expected in zip(parts, results[0][2][name], strict=True):
                np.testing.assert_array_equal(part, expected)


@pytest.mark.parametrize("objective", ALL)
@pytest.mark.parametrize("words", [1, 2])
@pytest.mark.parametrize("threads", [1, 2])
def test_replica__trains_the_smallest_vocabularies(objective, words, threads):
    """The output table of hierarchical softmax has no row at all for one word."""
    replica = make_replica(Threads(threads, CPU(hot_rows=31)), make_blocks(objective, words), objective, words)
    n, loss, _ = replica.train(loads(make_segment(100, words), (0, 50, 100)))
    assert n > 0
    assert loss >= 0
    tables = replica.take()
    assert {name: sum(map(len, parts)) for name, parts in tables.items()} == find_objective(objective).tables(
        Params(objective=objective, vector_size=10), words
    )
    assert all(np.isfinite(part).all() for parts in tables.values() for part in parts)


@pytest.mark.parametrize("threads", [1, 3])
def test_replica__no_text_is_no_work(threads):
    replica = make_replica(Threads(threads, CPU(hot_rows=5)), make_blocks())
    assert replica.train(iter(())) == (0, 0.0, 0)
    assert replica.train(loads(make_segment(0), (0, 0))) == (0, 0.0, 0)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("position", [0, 1, 3])
def test_replica__an_error_of_a_load_comes_out_and_leaves_nothing_running(threads, position):
    def fail():
        raise OSError("the shard is gone")

    work = [*loads(make_segment(400), (0, 100, 200, 400))]
    work.insert(position, fail)
    replica = make_replica(Threads(threads, CPU(hot_rows=5)), make_blocks())
    running = threading.active_count()
    with pytest.raises(OSError, match="the shard is gone"):
        replica.train(work)
    assert threading.active_count() == running
    assert replica.train(loads(make_segment(400), (0, 400)))[0] > 0, "all of its threads' memories are back"


def test_find_device__names_what_exists():
    with pytest.raises(ParameterError, match=r"device='tpu' does not exist.*cpu"):
        find_device("tpu")


def test_hot_rows__are_shared_out_where_their_number_is_open():
    """Copies that together know too much that the tables do not make a step too long: the model diverges."""
    for objective, total in ((SG_HS, 254), (CBOW_HS, 2048)):
        for n in range(2, 300):
            assert n * count_hot_rows(objective, Threads(n, Resources().device)) <= total
        assert count_hot_rows(objective, Threads(2, Resources().device)) == total // 2
        assert count_hot_rows(objective, Threads(16, Resources(hot_rows=31).device)) == 31
        assert count_hot_rows(objective, Threads(16, Resources(hot_rows=0).device)) == 0
        assert count_hot_rows(objective, Threads(1, Resources(hot_rows=31).device)) == 0, "nobody else writes"


def test_threads_of__says_what_resources_say():
    resources = Resources(hot_rows=31)
    assert Threads(16, resources.device) == Threads(16, CPU(hot_rows=31))
    assert Threads(2, Resources(device="cuda", max_in_flight=7).device) == Threads(2, Cuda(max_in_flight=7))


def test_flush__comes_after_as_many_centers_of_all_threads_together():
    for objective, total in ((SG_HS, 256), (CBOW_HS, 1024)):
        for n in (2, 16, 64):
            assert n * count_flush_words(objective, Threads(n, Resources().device)) == total
        assert count_flush_words(objective, Threads(4096, Resources().device)) == 1


@pytest.mark.parametrize("threads", [1, 3])
def test_replica__takes_what_is_written_to_its_blocks(threads):
    """Of blocks of which it has some rows, too; the others stay."""
    blocks = make_blocks()
    some = np.array([0, 2, 5], np.int32)
    given = {**blocks, "input": [SomeRows(7, some, blocks["input"][0][some]), *blocks["input"][1:]]}
    replica = make_replica(Threads(threads, CPU(hot_rows=0)), given)

    def write(table, number, rows):
        rows[:, :10] = 100 * number + np.arange(len(rows))[:, None]
        return table, number, len(rows)

    assert replica.visit([("input", 0), ("output", 3)], write, write=True) == [("input", 0, 3), ("output", 3, 10)]
    taken = replica.take()
    np.testing.assert_array_equal(taken["input"][0], np.repeat(np.arange(3.0)[:, None], 10, axis=1))
    np.testing.assert_array_equal(taken["output"][3], np.repeat(300 + np.arange(10.0)[:, None], 10, axis=1))
    for table, number in (("input", 1), ("input", 3), ("output", 0), ("output", 2)):
        np.testing.assert_array_equal(taken[table][number], blocks[table][number])
