"""How text reaches a GPU: on a stand-in that does nothing before it must, as late as a GPU could.

So what is overwritten before it was copied or trained is seen. What kernels compute is for `tests/contracts`.
"""

import threading
from collections import deque
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from daskw2v.config.params import Params
from daskw2v.objectives.base import Rate
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.sampling.segments import Segment
from daskw2v.training.devices import TextPiece, Threads
from daskw2v.training.devices import gpu as device
from daskw2v.training.devices.gpu import CudaReplicaTrainer

WORDS = 30


class Stream:
    """Work in order, none of it done before somebody waits."""

    def __init__(self):
        self.waiting = deque()

    def put(self, work):
        self.waiting.append(work)

    def run_until(self, work):
        while work in self.waiting:
            self.waiting.popleft()()

    def synchronize(self):
        while self.waiting:
            self.waiting.popleft()()


class Event:
    def __init__(self):
        self.stream, self.mark = None, None

    def record(self, stream):
        self.stream, self.mark = stream, lambda: None
        stream.put(self.mark)

    def synchronize(self):
        if self.stream is not None:
            self.stream.run_until(self.mark)

    def wait(self, stream):
        there, mark = self.stream, self.mark
        stream.put(lambda: there.run_until(mark))


class Array:
    """What lies on the GPU: to be read by work on streams, or by who waits for it."""

    def __init__(self, values):
        self.values = values

    def __getitem__(self, key):
        return Array(self.values[key])

    def __len__(self):
        return len(self.values)

    @property
    def dtype(self):
        return self.values.dtype

    def copy_to_device(self, values, stream=None):
        if stream is None:  # the caller waits
            np.copyto(self.values, values)
        else:
            stream.put(lambda: np.copyto(self.values, values))

    def copy_to_host(self, to=None):
        to = np.empty_like(self.values) if to is None else to
        np.copyto(to, self.values)
        return to


@pytest.fixture
def trained(monkeypatch):
    """What a stand-in kernel found on the stand-in: tokens and positions of each range, in order."""
    found = []

    def kernel(segment, first, last, memory, rate, epoch, prepared):
        def work():
            tokens, positions, bounds = (array.values.copy() for array in segment)
            assert bounds[-1] == len(tokens) == len(positions)
            found.append((tokens[first:last].tolist(), positions[first:last].tolist(), rate.alpha, epoch))
            memory.totals.values += last - first, 0.5
            memory.source.values += 1

        memory.stream.put(work)

    cuda = SimpleNamespace(
        stream=Stream, event=Event, to_device=lambda values: Array(np.array(values)),
        pinned_array=np.empty, device_array=lambda n, dtype: Array(np.empty(n, dtype)),
    )  # fmt: skip
    pieces = SimpleNamespace(
        room=lambda most: min(most or 100, 100), crowded=lambda touched, most: touched[touched * most > 1]
    )
    monkeypatch.setattr(device, "load", lambda name: cuda if name == "numba.cuda" else pieces)
    monkeypatch.setitem(OBJECTIVES, "sgns", replace(OBJECTIVES["sgns"], trainers={"cuda": kernel}))
    return found


def make_replica(threads):
    objective, params = OBJECTIVES["sgns"], Params(vector_size=10)
    blocks = {
        table: [objective.initial(params, table, np.arange(*ends)) for ends in ((0, 7), (7, WORDS))]
        for table in ("input", "output")
    }
    touched = {"input": np.array([0.5, 0.001]), "output": np.array([0.9, 0.5, 0.2])}
    prepared = objective.prepare(params, np.arange(WORDS, 0, -1))
    return CudaReplicaTrainer(objective, params, prepared, lambda: touched, blocks, threads), blocks


def make_pieces(n):
    """Segments of very different lengths, so that buffers must grow; and empty ones."""
    rng = np.random.default_rng(0)
    for number in range(n):
        length = int(rng.integers(0, 50) * rng.integers(0, 3) ** 4)
        tokens = rng.integers(0, WORDS, length).astype(np.int32)
        segment = Segment(tokens, 1000 * number + np.arange(length), np.array([0, length]))
        yield TextPiece(segment, length // 4, length, Rate(0.1 * number, 0.0, 0), number // 3)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n", [0, 1, 2, 3, 25])
def test_cuda_replica__trains_each_piece_once_and_in_order(trained, threads, n):
    replica, blocks = make_replica(Threads(threads))
    pieces = list(make_pieces(n))
    examples, loss = replica.train(lambda piece=piece: piece for piece in pieces)
    expected = []
    for segment, first, last, rate, epoch in pieces:
        tokens, positions = (values[first:last].tolist() for values in segment[:2])
        expected.append((tokens, positions, rate.alpha, epoch))
    assert trained == expected
    assert (examples, loss) == (sum(len(tokens) for tokens, *_ in expected), n / 2)
    taken = replica.take()
    for before, after in zip(blocks["input"], taken["input"], strict=True):
        np.testing.assert_allclose(after, before + n, rtol=1e-6)
    np.testing.assert_array_equal(np.concatenate(taken["output"]), np.concatenate(blocks["output"]))


def test_cuda_replica__takes_what_is_written_to_its_blocks(trained):
    replica, blocks = make_replica(Threads(1))

    def write(table, number, rows):
        rows[:, :10] = 7.0

    replica.visit([("output", 1)], write, write=True)
    replica.visit([("input", 0)], write)  # not asked to be kept
    taken = replica.take()
    assert (taken["output"][1] == 7.0).all()
    np.testing.assert_array_equal(taken["output"][0], blocks["output"][0])
    for before, after in zip(blocks["input"], taken["input"], strict=True):
        np.testing.assert_array_equal(after, before)


def test_cuda_replica__loads_some_pieces_ahead_and_no_more(trained):
    """While the GPU is busy; else all text would stand in memory."""
    replica, _ = make_replica(Threads(2))
    ahead, most, lock = 0, 0, threading.Lock()

    def load(piece):
        nonlocal ahead, most
        with lock:
            ahead += 1
            most = max(most, ahead - len(trained))
        return piece

    replica.train(lambda piece=piece: load(piece) for piece in make_pieces(30))
    assert len(trained) == 30
    assert 2 <= most <= 2 + device._AHEAD + device._BUFFERS + 1


def test_cuda_replica__raises_what_a_load_raises(trained):
    def fail():
        raise OSError("gone")

    replica, _ = make_replica(Threads(2))
    loads = [*(lambda piece=piece: piece for piece in make_pieces(4)), fail]
    with pytest.raises(OSError, match="gone"):
        replica.train(loads)


def test_cuda_replica__has_no_more_warps_than_there_is_room_for(trained, monkeypatch):
    seen = []
    kernel = OBJECTIVES["sgns"].trainers["cuda"]
    monkeypatch.setitem(
        OBJECTIVES, "sgns", replace(OBJECTIVES["sgns"], trainers={"cuda": lambda *a: (seen.append(a[3]), kernel(*a))})
    )
    for most in (None, 7, 1000):
        replica, _ = make_replica(Threads(1, hot_rows=None if most is None else 5, max_in_flight=most))
        replica.train(lambda piece=piece: piece for piece in make_pieces(1))
    assert [(memory.max_in_flight, memory.hot_rows) for memory in seen] == [(100, 0), (7, 5), (100, 5)]
    assert [len(memory.source_touched.values) for memory in seen] == [1, 1, 1]
    assert [len(memory.output_touched.values) for memory in seen] == [3, 3, 3]
