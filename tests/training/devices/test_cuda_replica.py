"""How text reaches a GPU: on a stand-in that does nothing before it must, as late as a GPU could.

So what is overwritten before it was copied or trained is seen. What kernels compute is for `tests/contracts`.
"""

import pickle
import threading
from collections import deque
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from dask.sizeof import sizeof

from daskw2v.config.params import Params
from daskw2v.objectives.base import Rate
from daskw2v.objectives.registry import OBJECTIVES
from daskw2v.sampling.reader import Chunk, OpenText, Span
from daskw2v.sampling.segments import Segment
from daskw2v.training.devices import Threads, gpu_text
from daskw2v.training.devices import gpu as device
from daskw2v.training.devices.gpu import CudaReplicaTrainer, GpuRows
from daskw2v.training.devices.settings import Cuda
from tests.support.gpu_memory import context_of

WORDS = 30

GPU = nullcontext()


class Stream:
    """Work in order, none of it done before somebody waits."""

    runs = threading.RLock()  # one piece of work at a time, whoever waits

    def __init__(self):
        self.waiting = deque()

    def put(self, work):
        self.waiting.append(work)

    def run_until(self, work):
        with Stream.runs:
            while work in self.waiting:
                self.waiting.popleft()()

    def synchronize(self):
        with Stream.runs:
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

    @property
    def nbytes(self):
        return self.values.nbytes

    def view(self, dtype):
        return Array(self.values.view(dtype))

    def copy_to_device(self, values, stream=None):
        values = values.values if isinstance(values, Array) else values
        if stream is None:  # the caller waits
            np.copyto(self.values, values)
        else:
            stream.put(lambda: np.copyto(self.values, values))

    def copy_to_host(self, to=None, stream=None):
        to = np.empty_like(self.values) if to is None else to
        if stream is None:
            np.copyto(to, self.values)
        else:
            stream.put(lambda: np.copyto(to, self.values))
        return to


class Reader:
    """A text in one shard of chunks of different lengths; all words are kept."""

    def __init__(self, n_chunks):
        rng = np.random.default_rng(0)
        self.bounds = np.cumsum([0, *rng.integers(1, 90, n_chunks)])
        self.stored = rng.integers(0, WORDS, self.bounds[-1]).astype(np.int32)
        self.map = rng.permutation(WORDS).astype(np.int32)
        self.sentences = np.arange(0, self.bounds[-1], 9)
        self.before_read = lambda: None

    def margins(self, start, stop, window, keep, key):
        return max(0, start - window), min(len(self.stored), stop + window)

    def spans(self, low, high):
        for a, b in pairwise(self.bounds):
            first, last = max(low, a), min(high, b)
            if first < last:
                yield Span(0, Chunk("shard", a, b), first - a, last - first, first, first)

    def unchecked_codes(self, span):
        self.before_read()
        return self.stored[span.chunk.start : span.chunk.stop]

    def ids(self, span):
        return self.map

    def starts(self, span):
        return self.sentences


class Cutter:
    """What cuts text, as late as a GPU: it reads then what lies there."""

    def cut(self, spans, start, stop, keep, key, counts, stream):
        n = sum(len(span.codes) for span in spans)
        segment = Segment(Array(np.zeros(n, np.int32)), Array(np.zeros(n, np.int64)), Array(np.zeros(2, np.int64)))
        first, last = (Array(np.zeros(1, np.int64)) for _ in range(2))

        def work():
            words = np.concatenate([span.ids.values[span.codes.values] for span in spans])
            positions = np.concatenate([span.position + np.arange(len(span.codes)) for span in spans])
            for array, values in zip(
                (*segment, first, last), (words, positions, [0, n], *edges(positions)), strict=True
            ):
                array.values[:] = values
            counts.values[0] += stop - start

        def edges(positions):
            return np.searchsorted(positions, [start, stop])

        stream.put(work)
        return segment, first, last


@pytest.fixture
def trained(monkeypatch):
    """What a stand-in kernel found on the stand-in: tokens and positions of each range, in order."""
    found = []

    def kernel(segment, first, last, memory, rate, epoch, prepared):
        def work():
            some = slice(first.values[0], last.values[0])
            tokens, positions, bounds = (array.values.copy() for array in segment)
            assert bounds[-1] == len(tokens) == len(positions)
            found.append((tokens[some].tolist(), positions[some].tolist(), rate.alpha, epoch))
            memory.totals.values += some.stop - some.start, 0.5
            memory.source.values += 1

        memory.stream.put(work)

    def add_squares(values, total):
        total.values += np.sum(values.values**2)

    modules = {
        "numba.cuda": SimpleNamespace(
            stream=Stream,
            event=Event,
            to_device=lambda values: Array(np.array(values)),
            pinned_array=np.empty,
            device_array=lambda n, dtype: Array(np.empty(n, dtype)),
        ),
        "daskw2v.objectives.cuda.pieces": SimpleNamespace(
            room=lambda most: min(most or 100, 100), damped_chances=lambda touched, most: touched[touched * most > 1]
        ),
        "daskw2v.sampling.cuda": SimpleNamespace(Cutter=Cutter),
        "daskw2v.kernels.cuda.finite": SimpleNamespace(add_squares=add_squares),
        "daskw2v.kernels.cuda.gpus": SimpleNamespace(gpu_at=lambda number: GPU),
    }
    monkeypatch.setattr(device, "load", modules.__getitem__)
    monkeypatch.setattr(gpu_text, "STAGE", 64)
    monkeypatch.setattr(gpu_text, "UNIT", 1)
    monkeypatch.setitem(OBJECTIVES, "sgns", replace(OBJECTIVES["sgns"], trainers={"cuda": kernel}))
    return found


def has_free(n_bytes):
    """Let the stand-in have so many free bytes."""
    device.load("numba.cuda").current_context = lambda: context_of(n_bytes)


PARAMS = Params(strategy="averaging", vector_size=10, window=2)


def make_replica(threads):
    objective = OBJECTIVES["sgns"]
    blocks = {
        table: [objective.initial(PARAMS, table, np.arange(*ends)) for ends in ((0, 7), (7, WORDS))]
        for table in ("input", "output")
    }
    touched = {"input": np.array([0.5, 0.001]), "output": np.array([0.9, 0.5, 0.2])}
    prepared = objective.prepare(PARAMS, np.arange(WORDS, 0, -1))
    return CudaReplicaTrainer(objective, PARAMS, prepared, lambda: touched, blocks, threads), blocks


@pytest.fixture(params=[0, 10**6], ids=["text passes through", "text stays"])
def loads_of(request, trained, monkeypatch):
    """Returns what loads n pieces of a text in two epochs, and the text."""
    has_free(2.0 * request.param)

    def loads(replica, n):
        reader = Reader(4 * n + 1)
        text, run = OpenText(reader, len(reader.stored), np.zeros(0, np.uint64)), SimpleNamespace(params=PARAMS)
        monkeypatch.setattr(device, "open_text", lambda _: text)
        cuts = np.linspace(0, text.length, n + 1).astype(int) if n else [0]
        works = [(epoch, a, b) for epoch in range(2) for a, b in pairwise(cuts)]
        rates = [Rate(0.1 * number, 0.0, 0) for number in range(len(works))]
        found = [partial(replica.load, run, *work, rate) for work, rate in zip(works, rates, strict=True)]
        return found, [(*work, rate.alpha) for work, rate in zip(works, rates, strict=True)], reader

    return loads


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("n", [0, 1, 2, 25])
def test_cuda_replica__trains_each_piece_once_and_in_order(trained, loads_of, threads, n):
    replica, blocks = make_replica(Threads(threads, Cuda()))
    loads, works, reader = loads_of(replica, n)
    totals = replica.train(loads)
    words = reader.map[reader.stored]
    assert trained == [(words[a:b].tolist(), list(range(a, b)), alpha, epoch) for epoch, a, b, alpha in works]
    assert totals == (2 * len(words) * (n > 0), n, 2 * len(words) * (n > 0))
    taken = replica.take()
    for before, after in zip(blocks["input"], taken["input"], strict=True):
        np.testing.assert_allclose(after, before + 2 * n, rtol=1e-6)
    np.testing.assert_array_equal(np.concatenate(taken["output"]), np.concatenate(blocks["output"]))


def test_cuda_replica__trains_what_is_begun_before_the_end_of_what_was_begun(trained, loads_of):
    """A GPU need not wait for the host between two rounds; each has totals of its own."""
    replica, _ = make_replica(Threads(2, Cuda()))
    loads, works, _ = loads_of(replica, 6)
    ends = [replica.begin(loads[a : a + 3]) for a in (0, 3, 6, 9)]
    assert len(trained) < 12, "nothing waits for the last of them"
    totals = [ended() for ended in ends]
    assert [len(tokens) for tokens, *_ in trained] == [b - a for _, a, b, _ in works]
    for number, found in enumerate(totals):
        n = sum(b - a for _, a, b, _ in works[3 * number : 3 * number + 3])
        assert found == (n, 1.5, n)
    assert replica.train(loads[:1]) == (works[0][2], 0.5, works[0][2]), "sums that are used again begin with zeros"


def test_cuda_replica__takes_what_is_written_to_its_blocks(trained):
    replica, blocks = make_replica(Threads(1, Cuda()))

    def write(table, number, rows):
        rows[:, :10] = 7.0

    replica.visit([("output", 1)], write, write=True)
    replica.visit([("input", 0)], write)  # not asked to be kept
    taken = replica.take()
    assert (taken["output"][1] == 7.0).all()
    np.testing.assert_array_equal(taken["output"][0], blocks["output"][0])
    for before, after in zip(blocks["input"], taken["input"], strict=True):
        np.testing.assert_array_equal(after, before)


def test_cuda_replica__leaves_its_rows_on_the_gpu(trained):
    """For the replica after it, which copies them there; elsewhere they are ordinary arrays."""
    replica, blocks = make_replica(Threads(1, Cuda()))
    left, finite = replica.results()
    assert finite
    assert all(isinstance(rows, GpuRows) for parts in left.values() for rows in parts)
    for table, parts in blocks.items():
        for before, after in zip(parts, left[table], strict=True):
            for rows in (np.asarray(after), pickle.loads(pickle.dumps(after)), np.concatenate([after])):
                np.testing.assert_array_equal(rows, before)
            assert (len(after), after.shape, sizeof(after)) == (len(before), before.shape, len(before) * 16 * 4)
    objective = OBJECTIVES["sgns"]
    next_one = CudaReplicaTrainer(objective, PARAMS, replica._prepared, replica._touched, left, Threads(1, Cuda()))
    next_one._tables["input"].values += 1
    for before, after in zip(blocks["input"], left["input"], strict=True):
        np.testing.assert_array_equal(np.asarray(after), before), "a result must not be changed"
    next_one._tables["output"].values[3] = np.inf
    assert not next_one.results()[1]


def test_cuda_replica__loads_some_pieces_ahead_and_no_more(trained, loads_of):
    """While the GPU is busy; else all text would stand in memory."""
    replica, _ = make_replica(Threads(2, Cuda()))
    ahead, most, lock = 0, 0, threading.Lock()

    def load(piece):
        nonlocal ahead, most
        with lock:
            ahead += 1
            most = max(most, ahead - started)
        return piece()

    started = 0

    def counted(*args):
        nonlocal started
        started += 1
        return kernel(*args)

    kernel, replica._train = replica._train, counted
    replica.train(partial(load, piece) for piece in loads_of(replica, 15)[0])
    assert len(trained) == 30
    assert 2 <= most <= 2 + device._N_AHEAD + 2


def test_cuda_replica__raises_what_a_load_raises(trained, loads_of):
    def fail():
        raise OSError("gone")

    replica, _ = make_replica(Threads(2, Cuda()))
    with pytest.raises(OSError, match="gone"):
        replica.train([*loads_of(replica, 2)[0], fail])


def test_cuda_replica__has_no_more_warps_than_there_is_room_for(trained, loads_of, monkeypatch):
    seen = []
    kernel = OBJECTIVES["sgns"].trainers["cuda"]
    monkeypatch.setitem(
        OBJECTIVES, "sgns", replace(OBJECTIVES["sgns"], trainers={"cuda": lambda *a: (seen.append(a[3]), kernel(*a))})
    )
    for most in (None, 7, 1000):
        replica, _ = make_replica(Threads(1, Cuda(hot_rows=None if most is None else 5, max_in_flight=most)))
        replica.train(loads_of(replica, 1)[0][:1])
    assert [(memory.max_in_flight, memory.hot_rows) for memory in seen] == [(100, 0), (7, 5), (100, 5)]
    assert [len(memory.source_touched.values) for memory in seen] == [1, 1, 1]
    assert [len(memory.output_touched.values) for memory in seen] == [3, 3, 3]


def test_text__waits_for_the_next_trainer(trained, monkeypatch):
    """Of the next round: some seconds, or until somebody asks how much memory is free."""
    reader, run, read = Reader(4), SimpleNamespace(params=PARAMS), []
    text = OpenText(reader, len(reader.stored), np.zeros(0, np.uint64))
    has_free(1e9)
    monkeypatch.setattr(device, "open_text", lambda _: text)
    reader.before_read = lambda: read.append(None)

    def train():
        replica, _ = make_replica(Threads(1, Cuda()))
        replica.train([partial(replica.load, run, 0, 0, text.length, Rate(0.1, 0.0, 0))])
        return len(read)

    assert train() == 4
    assert train() == 4
    gpu_text.release_waiting_text(nullcontext())
    assert train() == 4, "another GPU's"
    gpu_text.release_waiting_text(GPU)
    assert train() == 8
