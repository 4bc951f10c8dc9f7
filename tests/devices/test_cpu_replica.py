"""One replica on the CPU: blocks in, blocks out, and what threads may and may not change."""

import numpy as np
import pytest

from daskw2v.devices import find_device
from daskw2v.errors import ParameterError
from daskw2v.objectives import Rate, find_objective
from daskw2v.params import Params
from daskw2v.sampling.segments import Segment

PARAMS = Params(vector_size=10)
WORDS = 30


def make_replica(threads, blocks):
    objective = find_objective("sgns")
    prepared = objective.prepare(PARAMS, np.arange(WORDS, 0, -1))
    return find_device("cpu")(objective, PARAMS, prepared, blocks, threads)


def make_blocks():
    objective = find_objective("sgns")
    return {
        table: [objective.initial(PARAMS, table, a, b) for a, b in ((0, 7), (7, 8), (8, WORDS))]
        for table in ("input", "output")
    }


def test_replica__gives_its_blocks_back_as_they_came():
    blocks = make_blocks()
    taken = make_replica(1, blocks).take()
    assert list(taken) == list(blocks)
    for table, parts in blocks.items():
        for part, back in zip(parts, taken[table], strict=True):
            np.testing.assert_array_equal(part, back)
            assert back.flags.c_contiguous


def test_replica__trains_a_copy():
    blocks = make_blocks()
    for parts in blocks.values():
        for part in parts:
            part.flags.writeable = False
    before = blocks["input"][0].copy()
    rng = np.random.default_rng(0)
    n = 30_000
    segment = Segment(rng.integers(0, WORDS, n).astype(np.int32), np.arange(n), np.array([0, n]))
    losses = {}
    for threads in (1, 3):
        replica = make_replica(threads, blocks)
        pairs, losses[threads] = replica.train(segment, 0, n, Rate(0.05, 0.0, 0), 0)
        assert pairs > n
        trained = replica.take()["input"][0]
        assert np.abs(trained - before).max() > 0.1
    np.testing.assert_array_equal(blocks["input"][0], before)
    assert losses[3] == pytest.approx(losses[1], rel=0.05)


def test_find_device__names_what_exists():
    with pytest.raises(ParameterError, match=r"device='tpu' does not exist.*cpu"):
        find_device("tpu")
