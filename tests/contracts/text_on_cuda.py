"""Text cut on a GPU, or in Numba's simulator of one, is that of the processor: `test_cuda` runs this.

The same tokens at the same positions in the same sentences, whatever shards and chunks they lie in.
"""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from distributed import Client
from numba import cuda

from daskw2v import Params, Resources
from daskw2v.errors import DamageError
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.objectives.base import Rate
from daskw2v.sampling import reader as readers
from daskw2v.sampling.cuda import TILE, Cutter
from daskw2v.sampling.reader import OpenText, SegmentReader
from daskw2v.sampling.segments import keep_thresholds
from daskw2v.shards.encode import build_corpus
from daskw2v.stages import Store
from daskw2v.training.devices.gpu_text import DevicePiece, DeviceText
from daskw2v.vocabulary.count import build_vocabulary

WINDOW = 3
KEY = stream(1, Purpose.SUBSAMPLE, 2)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A corpus of several shards: sentences of one to sixty words, some of them longer than any margin."""
    folder, rng = tmp_path_factory.mktemp("text"), np.random.default_rng(0)
    lines = [rng.zipf(1.3, n) % 50 for n in [*rng.integers(1, 60, 60), 900, *rng.integers(1, 8, 40)]]
    (folder / "text.txt").write_text("".join(" ".join(f"w{word}" for word in line) + "\n" for line in lines))
    params, resources = Params(min_count=4), Resources(block_size=4096, threads=1)
    store = Store(str(folder / "work"))
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0") as client:
        corpus = build_corpus(str(folder / "text.txt"), store, params, resources, client)
        vocabulary = build_vocabulary(corpus, store, params, resources, client)
    assert len(corpus.shards) > 2
    return store, corpus, vocabulary


@pytest.fixture(params=[1 << 20, 300], ids=["whole chunks", "chunks of 300"])
def text(made, request, monkeypatch):
    """A run's text, with subsampling so strong that margins grow."""
    store, corpus, vocabulary = made
    reader = SegmentReader(store, corpus, vocabulary)
    if request.param < TILE:
        whole = readers.SegmentReader.spans
        monkeypatch.setattr(reader, "spans", lambda low, high: in_parts(whole(reader, low, high), request.param))
    keep = keep_thresholds(vocabulary.load().counts, 3e-2)
    return OpenText(reader, corpus.n_tokens, keep)


def in_parts(spans, most):
    """Cut spans, as smaller chunks would."""
    for span in spans:
        for a in range(0, span.n, most):
            n = min(most, span.n - a)
            yield span._replace(first=span.first + a, n=n, offset=span.offset + a, position=span.position + a)


def cut_on_gpu(text, on_gpu, cutter, start, stop):
    """Return tokens, positions, bounds, centers and counts."""
    way, counts = cuda.stream(), cuda.to_device(np.zeros(2, np.int64))
    piece = DevicePiece(on_gpu.load(start, stop, WINDOW, KEY), start, stop, Rate(0.1, 0.0, 0), 2, KEY)
    segment, first, last = cutter.cut(piece.in_stream(way), start, stop, on_gpu.keep, KEY, counts, way)
    way.synchronize()
    done = cuda.event()
    done.record(way)
    piece.release_at(done)
    bounds = segment.bounds.copy_to_host()
    tokens, positions = (array.copy_to_host()[: bounds[-1]] for array in segment[:2])
    return tokens, positions, bounds, (*first.copy_to_host(), *last.copy_to_host()), counts.copy_to_host()


RANGES = [(0, 1), (0, 10**6), (7, 8), (100, 1500), (1490, 1600), (1500, 10**6), (2000, 2001)]


@pytest.mark.parametrize("room", [0, 10**9], ids=["passing through", "staying"])
def test_text__is_cut_as_on_the_processor(text, room):
    on_gpu, cutter = DeviceText(cuda, text, room), Cutter()
    for start, stop in [*RANGES, *RANGES]:
        stop = min(stop, text.length)
        expected, known = text.reader.read(start, stop, WINDOW, text.keep, KEY)
        tokens, positions, bounds, centers, counts = cut_on_gpu(text, on_gpu, cutter, start, stop)
        np.testing.assert_array_equal(tokens, expected.tokens)
        np.testing.assert_array_equal(positions, expected.positions)
        np.testing.assert_array_equal(np.unique(bounds), np.unique(expected.bounds))
        assert (np.diff(bounds) >= 0).all()
        assert centers == expected.centers(start, stop)
        assert counts.tolist() == [known, 0]


def test_text__stays_as_long_as_there_is_room(text, monkeypatch):
    """Then nothing is read; and what passes through takes the memory of what was before."""
    read = []
    whole = text.reader.unchecked_codes
    monkeypatch.setattr(text.reader, "unchecked_codes", lambda span: read.append(span.chunk) or whole(span))
    chunks = {span.chunk for span in text.reader.spans(0, text.length)}
    for room in (10**9, 0):
        on_gpu, cutter = DeviceText(cuda, text, room), Cutter()
        read.clear()
        for _ in range(3):
            cut_on_gpu(text, on_gpu, cutter, 0, text.length)
        if room:
            assert sorted(read) == sorted(chunks)
        else:
            assert len(read) >= 3 * len(chunks)
        arrays = len(chunks) + 2 * len(text.reader._corpus.shards)
        assert len(on_gpu._free) <= (arrays if room == 0 else 0)
        assert len(on_gpu._kept) == (arrays if room else 0)


def test_codes__that_name_no_word_are_counted_and_refused(text, monkeypatch):
    """Nothing outside the map is read for them."""
    whole = text.reader.unchecked_codes

    def damaged(span):
        codes = whole(span).copy()
        codes[[0, 5]] = 10**6, -3
        return codes

    monkeypatch.setattr(text.reader, "unchecked_codes", damaged)
    on_gpu = DeviceText(cuda, text, 10**9)
    *_, counts = cut_on_gpu(text, on_gpu, Cutter(), 0, text.length)
    chunks = {span.chunk for span in text.reader.spans(0, text.length)}
    assert counts[1] == 2 * len(chunks)

    def refuse(chunk):
        raise DamageError.of("codes", "has numbers")

    monkeypatch.setattr(text.reader, "_read_codes", refuse)
    with pytest.raises(DamageError):
        on_gpu.check(text.reader.spans(0, text.length))


def test_text__is_brought_once_by_the_first_who_asks(text, monkeypatch):
    """Neighbouring pieces have chunks in common, and are loaded at the same time."""
    read, whole = [], text.reader.unchecked_codes

    def slow(span):
        read.append(span.chunk)
        time.sleep(0.05)
        return whole(span)

    monkeypatch.setattr(text.reader, "unchecked_codes", slow)
    on_gpu = DeviceText(cuda, text, 10**9)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: on_gpu.load(0, text.length, WINDOW, KEY), range(8)))
    assert len(read) == len(set(read))
    assert on_gpu._free_bytes == 10**9 - sum(loaded.array.nbytes for loaded in on_gpu._kept.values())
