"""How buckets reach a GPU: on a stand-in that does nothing before it must, and cannot do what Numba's arrays cannot.

What kernels compute is for `tests/contracts`.
"""

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from daskw2v.config.params import Params
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.sampling.hierarchy import make_word_table
from daskw2v.sampling.skipgrams import Bucket
from daskw2v.training.devices import gpu as device
from daskw2v.training.devices.gpu import CudaPartitionTrainer, GpuRows
from daskw2v.training.devices.settings import Cuda
from tests.support.gpu_memory import context_of

PARAMS = Params(strategy="rotation", vector_size=10)


class Stream:
    def __init__(self):
        self.waiting = []

    def put(self, work):
        self.waiting.append(work)

    def synchronize(self):
        while self.waiting:
            self.waiting.pop(0)()


class Array:
    """What lies on the GPU: it can be copied back and nothing else, not even sliced."""

    def __init__(self, values):
        self.values = values.copy()

    def __len__(self):
        return len(self.values)

    @property
    def dtype(self):
        return self.values.dtype

    @property
    def nbytes(self):
        return self.values.nbytes

    def copy_to_device(self, other):
        np.copyto(self.values, other.values)

    def __getitem__(self, number):
        assert number == 0, "of one number"
        return self.values[0]

    def copy_to_host(self, to=None):
        to = np.empty_like(self.values) if to is None else to
        np.copyto(to, self.values)
        return to


@pytest.fixture
def seen(monkeypatch):
    """What a stand-in kernel was given; it fails at learning rate 0."""
    found = []

    def kernel(bucket, memory, alpha, params, words, key):
        def work():
            found.append(([items.tolist() for items in bucket], memory, words))
            memory.totals.values[1] += 2.5
            memory.source.values += 1
            memory.output.values -= 1

        memory.stream.put(work)
        if not alpha:
            raise OSError("gone")

    def add_squares(values, total):
        total.values += np.sum(values.values**2)

    cuda = SimpleNamespace(stream=Stream, to_device=Array, device_array=lambda n, dtype: Array(np.empty(n, dtype)))
    pieces = SimpleNamespace(
        room=lambda most: min(most or 100, 100),
        damped_chances=lambda touched, most: touched[touched * most > 4],
        gpu_at=lambda number: nullcontext(),
        add_squares=add_squares,
    )
    monkeypatch.setattr(device, "load", lambda name: cuda if name == "numba.cuda" else pieces)
    monkeypatch.setitem(OBJECTIVES, "sgns", replace(OBJECTIVES["sgns"], bucket_trainers={"cuda": kernel}))
    return found


def has_free(n_bytes):
    """Let the stand-in have so many free bytes."""
    device.load("numba.cuda").current_context = lambda: context_of(n_bytes)


def make_trainer(max_in_flight=None):
    rng = np.random.default_rng(0)
    tables = [rng.random((n, 10), np.float32) for n in (6, 8)]
    counts = {3: np.array([90, 30, 5, 3, 2, 1]), 4: np.array([80, 40, 9, 5, 3, 2, 1, 1])}
    trainer = CudaPartitionTrainer(
        OBJECTIVES["sgns"],
        PARAMS.replace(sample=0),
        {3: lambda: tables[0]},
        {4: lambda: tables[1]},
        counts.get,
        300,
        Cuda(max_in_flight=max_in_flight),
    )
    return trainer, tables, make_word_table(counts[4], 0.75)


@pytest.mark.parametrize("n_noise", [0, 7])
def test_cuda_partitions__trains_a_bucket_and_gives_partitions_back(seen, n_noise):
    trainer, tables, words = make_trainer()
    rng = np.random.default_rng(1)
    bucket = Bucket(*(rng.integers(0, 6, n).astype(np.uint32) for n in (20, n_noise)))
    assert trainer.train(3, 4, bucket, 0.1, words, np.uint64(7)) == (20, 2.5)
    ((there, memory, noise),) = seen
    assert there == [items.tolist() for items in bucket]
    np.testing.assert_array_equal(noise, words)
    assert (memory.max_in_flight, memory.hot_rows) == (100, 0)
    assert 0 < len(memory.source_touched) < 6, "rows that a hundred batches have at a time"
    np.testing.assert_allclose(trainer.take("input", 3)[:, :10], tables[0] + 1)
    np.testing.assert_allclose(trainer.take("output", 4)[:, :10], tables[1] - 1)


@pytest.mark.parametrize(("stays", "free", "left"), [(True, 2, True), (True, 1.9, False), (False, 9, False)])
def test_cuda_partitions__may_leave_rows_on_the_gpu_where_there_is_room(seen, stays, free, left):
    """For the next task, which copies them there; whoever else asks gets an array."""
    trainer, tables, words = make_trainer()
    has_free(free * (6 + 8) * 16 * 4)  # times both tables
    trainer.train(3, 4, Bucket(np.ones(3, np.uint32), np.empty(0, np.uint32)), 0.1, words, np.uint64(7))
    (inputs, good), (outputs, too) = trainer.leave("input", 3, stays=stays), trainer.leave("output", 4, stays=stays)
    assert good
    assert too
    assert [isinstance(rows, GpuRows) for rows in (inputs, outputs)] == [left, left]
    for rows, expected in ((inputs, tables[0] + 1), (outputs, tables[1] - 1)):
        np.testing.assert_allclose(np.asarray(rows)[:, :10], expected)
    again = CudaPartitionTrainer(
        OBJECTIVES["sgns"],
        PARAMS,
        {3: lambda: inputs},
        {4: lambda: outputs},
        {}.get,
        300,
        Cuda(),
    )
    for found, expected in ((again.take("input", 3), tables[0] + 1), (again.take("output", 4), tables[1] - 1)):
        np.testing.assert_allclose(found[:, :10], expected)


@pytest.mark.parametrize("stays", [True, False])
def test_cuda_partitions__report_rows_that_are_not_finite(seen, stays):
    has_free(np.inf)
    tables = np.ones((8, 10), np.float32), np.ones((8, 10), np.float32)
    tables[1][5, 2] = np.nan
    outputs = {k: lambda k=k: tables[k] for k in range(2)}
    trainer = CudaPartitionTrainer(OBJECTIVES["sgns"], PARAMS, {}, outputs, {}.get, 300, Cuda())
    assert [trainer.leave("output", k, stays=stays)[1] for k in range(2)] == [True, False]


def test_cuda_partitions__waits_for_the_gpu_when_something_fails(seen):
    """Otherwise what it reads would be released while it is trained."""
    trainer, _, words = make_trainer(max_in_flight=5)
    bucket = Bucket(np.ones(3, np.uint32), np.empty(0, np.uint32))
    with pytest.raises(OSError, match="gone"):
        trainer.train(3, 4, bucket, 0.0, words, np.uint64(7))
    assert [memory.max_in_flight for _, memory, _ in seen] == [5]
    assert not seen[0][1].stream.waiting
