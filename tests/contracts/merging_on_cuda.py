"""Replicas merged on a GPU, or on Numba's simulator of one: what `test_cuda` runs in a process of its own.

Beside each stands a replica on the processor, in whose tables the same is written.
"""

import pickle
from contextlib import contextmanager
from dataclasses import replace

import numba
import numpy as np
import pytest
from distributed.protocol import deserialize, serialize

from daskw2v import Params
from daskw2v.objectives.registry import find_objective
from daskw2v.training.averaging import merge as merging
from daskw2v.training.averaging.common_model import HostModel, common_model
from daskw2v.training.averaging.cuda.model import CudaModel
from daskw2v.training.averaging.deltas import Delta
from daskw2v.training.averaging.device_delta import DeviceDelta
from daskw2v.training.averaging.merge import MERGE_RULES, MergedBlock
from daskw2v.training.devices import Threads, find_device

SIMULATED = numba.config.ENABLE_CUDASIM
D, LENGTHS = 37, (1, 5, 130)  # rows of a table's blocks
PARAMS = Params(vector_size=D, min_count=1, n_replicas=3)


class Replicas:
    """Replicas on a device: their trainers, and the common model of each."""

    def __init__(self, device, rows, params=PARAMS, velocity=None):
        objective, n_words = find_objective(params.objective), sum(LENGTHS)
        cuts = np.cumsum(LENGTHS)[:-1]
        prepared = objective.prepare(params, np.arange(n_words, 0, -1))
        touched = {table: np.zeros(n_words) for table in rows}
        blocks = {table: np.split(of, cuts) for table, of in rows.items()}
        self.places = [(table, number) for table in blocks for number in range(len(LENGTHS))]
        velocity = velocity or {}
        known = {n: MergedBlock(blocks[t][k], velocity.get(n)) for n, (t, k) in enumerate(self.places)}
        kind = find_device(device).replica_trainer
        self.trainers = [
            kind(objective, params, prepared, lambda: touched, blocks, Threads(1)) for _ in range(params.n_replicas)
        ]
        self.models = [common_model(params, trainer, self.places, known, None) for trainer in self.trainers]

    def train(self, seed):
        """Change the rows of each replica; a third of them stays as it is."""
        for number, trainer in enumerate(self.trainers):
            rng = np.random.default_rng((seed, number))

            def move(table, place, own, rng=rng):
                moved = rng.random((len(own), 1)) < 2 / 3
                own[:, :D] += moved * rng.normal(size=(len(own), D)).astype(np.float32)

            trainer.visit(self.places, move, write=True)

    def changes(self, numbers):
        return [model.changes(numbers) for model in self.models]

    def rows(self):
        return [trainer.visit(self.places, lambda *of: of[2].copy()) for trainer in self.trainers]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    return {table: rng.normal(size=(sum(LENGTHS), D)).astype(np.float32) for table in ("input", "output")}


@contextmanager
def compiler_left_out():
    """Let the processor compute by Python, too: a compiler makes one instruction of a product and a sum."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "_accelerate", merging._accelerate.py_func)
        yield


def assert_same(found, expected):
    """To the last bit where nothing is compiled; on a GPU to rounding."""
    if SIMULATED:
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", MERGE_RULES)
def test_replicas__are_merged_as_on_a_host(rows, name):
    """Step after step: some blocks often, the others seldom; each replica the same."""
    params = PARAMS.replace(merge=name)
    on_host, on_gpu = Replicas("cpu", rows, params), Replicas("cuda", rows, params)
    assert {type(model) for model in on_host.models} == {HostModel}
    assert {type(model) for model in on_gpu.models} == {CudaModel}
    with compiler_left_out():
        for step, numbers in enumerate([[0, 1, 3, 4], [0, 1, 3, 4], range(6), [1]]):
            for replicas in (on_host, on_gpu):
                replicas.train(step)
                changes = [found for found, finite in replicas.changes(numbers) if finite]
                assert len(changes) == params.n_replicas
                for model in replicas.models:
                    model.merge(changes)
            for found, expected in zip(on_gpu.rows(), on_host.rows(), strict=True):
                for mine, theirs in zip(found, expected, strict=True):
                    assert_same(mine, theirs)
                    assert (mine[:, D:] == 0).all()
    for model, truth in zip(on_gpu.models, on_host.models, strict=True):
        for found, expected in zip(model.merged(range(6)).values(), truth.merged(range(6)).values(), strict=True):
            assert_same(found.rows, expected.rows)
            assert (found.velocity is None) == (expected.velocity is None)
            if found.velocity is not None:
                assert_same(found.velocity, expected.velocity)


def test_velocity__goes_on_from_what_a_replica_was_given(rows):
    velocity = {4: np.random.default_rng(5).normal(size=(LENGTHS[1], D)).astype(np.float32)}
    found = []
    with compiler_left_out():
        for device in ("cpu", "cuda"):
            replicas = Replicas(device, rows, velocity=velocity)
            np.testing.assert_array_equal(replicas.models[0].merged([4])[4].velocity, velocity[4])
            replicas.train(0)
            changes = [of_replica for of_replica, _ in replicas.changes([1, 4])]
            replicas.models[0].merge(changes)
            found.append([block.velocity for block in replicas.models[0].merged([1, 4]).values()])
    for mine, theirs in zip(*found, strict=True):
        assert_same(mine, theirs)


@pytest.mark.parametrize(
    "special",
    [
        [0.0, -0.0, 1 + 2.0**-8, 1 + 3 * 2.0**-8, -1 - 2.0**-8, 1e18, -1e18, 2.0**-126, 1e-30],  # ties go to even ones
        [np.inf], [-np.inf], [np.nan],
    ],
    ids=str,
)  # fmt: skip
def test_changes__have_the_bits_of_the_host(rows, special):
    for of in rows.values():
        of[0] = 0.0
    found = []
    for device in ("cpu", "cuda"):
        replicas = Replicas(device, rows)
        replicas.train(0)

        def put(table, place, own):
            own[0, : len(special)] = special

        replicas.trainers[1].visit([("output", 1)], put, write=True)
        found.append(replicas.changes(range(6)))
    for (theirs, truth), (mine, told) in zip(*found, strict=True):
        assert told == truth
        for number in range(6):
            np.testing.assert_array_equal(mine[number].on_host().bits, theirs[number].bits)
            assert mine[number].on_host().rows is None
    assert [finite for _, finite in found[1]] == [True, np.square(np.float32(special)).max() < np.inf, True]


def test_delta__is_one_of_the_host_to_whoever_is_elsewhere(rows):
    """And may be merged together with those that stayed."""
    replicas, twins = Replicas("cuda", rows), Replicas("cuda", rows)
    for of in (replicas, twins):
        of.train(0)
    changes, others = ([found for found, _ in of.changes([1, 2])] for of in (replicas, twins))
    delta = changes[0][2]
    assert isinstance(delta, DeviceDelta)
    for sent in (pickle.loads(pickle.dumps(delta)), deserialize(*serialize(delta))):
        assert type(sent) is Delta
        np.testing.assert_array_equal(sent.bits, delta.on_host().bits)
    assert delta.__sizeof__() >= delta.on_host().bits.nbytes
    sent = {number: pickle.loads(pickle.dumps(of)) for number, of in others[1].items()}
    replicas.models[0].merge(changes)
    twins.models[0].merge([others[0], sent, others[2]])
    for mine, theirs in zip(replicas.rows()[0], twins.rows()[0], strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_give__replaces_rows_that_others_merged(rows):
    replicas, new = Replicas("cuda", rows), np.arange(LENGTHS[1] * D, dtype=np.float32).reshape(-1, D)
    replicas.train(0)
    replicas.models[0].give({1: new})
    np.testing.assert_array_equal(replicas.rows()[0][1][:, :D], new)
    changes, _ = replicas.models[0].changes([1])
    assert (changes[1].on_host().bits == 0).all()


def test_common_model__is_on_the_host_where_a_rule_has_no_formula_for_the_device(rows, monkeypatch):
    rule = MERGE_RULES.find("momentum")
    monkeypatch.setitem(MERGE_RULES, "ours", replace(rule, name="ours", on_devices={}))
    replicas = Replicas("cuda", rows, PARAMS.replace(merge="ours"))
    assert {type(model) for model in replicas.models} == {HostModel}
    alone = Replicas("cuda", rows, PARAMS.replace(n_replicas=1))
    assert {type(model) for model in alone.models} == {HostModel}, "nothing is merged, and nothing is kept for it"
