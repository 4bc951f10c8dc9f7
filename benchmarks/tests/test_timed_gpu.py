"""The stand-in for a GPU that takes time: its clocks, its memory, and a training on it."""

import time
from importlib.util import find_spec

import numba
import numpy as np
import pytest

from daskw2v import Params

busy, cards, timed, timed_kernels = (
    pytest.importorskip(f"benchmarks.cuda.{name}", reason="benchmarks need what daskw2v[bench] installs")
    for name in ("busy", "cards", "timed", "timed_kernels")
)
needs_cuda = pytest.mark.skipif(
    find_spec("numba_cuda") is None or numba.config.ENABLE_CUDASIM, reason="numba-cuda comes with daskw2v[cuda]"
)
LONG = 1000.0  # seconds that nobody waits for


def gpu_of(**kernels):
    return timed.Gpu(cards.CARDS["H200"], kernels)


def test_operations__of_a_stream_end_in_order_and_engines_work_side_by_side():
    gpu, one, other = gpu_of(), timed.Stream(), timed.Stream()
    began = time.perf_counter()
    gpu.put(timed.COMPUTE, LONG, one)
    gpu.put(timed.UP, 2 * LONG, other)
    assert one.last == pytest.approx(began + LONG, abs=1)
    assert other.last == pytest.approx(began + 2 * LONG, abs=1)
    gpu.put(timed.COMPUTE, LONG, other)
    assert other.last == pytest.approx(began + 3 * LONG, abs=1), "after the copy in its stream"
    gpu.put(timed.COMPUTE, LONG, one)
    assert one.last == pytest.approx(began + 4 * LONG, abs=1), "after the other stream's kernel"
    assert gpu.busy == {timed.COMPUTE: 3 * LONG, timed.UP: 2 * LONG, timed.DOWN: 0.0, timed.WITHIN: 0.0}


def test_event__makes_a_stream_wait_for_what_another_had_when_it_was_recorded():
    gpu, one, other, event = gpu_of(), timed.Stream(), timed.Stream(), timed.Event()
    gpu.put(timed.UP, LONG, one)
    event.record(one)
    gpu.put(timed.UP, LONG, one)
    assert not event.query()
    event.wait(other)
    gpu.put(timed.COMPUTE, LONG, other)
    assert other.last == pytest.approx(one.last, abs=1)


def test_default_stream__waits_for_all_others_and_they_for_it():
    gpu, stream = gpu_of(), timed.Stream()
    gpu.put(timed.COMPUTE, LONG, stream)
    default = gpu.put(timed.UP, LONG, None)
    assert default.last == pytest.approx(stream.last + LONG)
    later = gpu.put(timed.DOWN, LONG, timed.Stream())
    assert later.last == pytest.approx(default.last + LONG)


def test_stream__sleeps_until_its_last_operation_ends():
    gpu, stream = gpu_of(), timed.Stream()
    began = time.perf_counter()
    gpu.put(timed.COMPUTE, 0.05, stream)
    assert time.perf_counter() - began < 0.04
    stream.synchronize()
    assert 0.05 <= time.perf_counter() - began < 5


def test_pinned_memory__takes_the_bus_and_no_time_of_the_host():
    gpu, stream = gpu_of(), timed.Stream()
    pinned = np.empty(int(0.1 * timed.BUS), np.uint8).view(timed.Pinned)  # no memory is used of what nobody writes
    there = gpu.array(len(pinned) // 2, np.uint8)
    began = time.perf_counter()
    there.copy_to_device(pinned[: len(there)], stream)
    assert gpu.busy[timed.UP] == pytest.approx(0.05)
    assert time.perf_counter() - began < 0.04
    assert stream.last > began + 0.049


def test_other_memory__is_copied_in_real_time_once_the_stream_is_there():
    gpu, stream = gpu_of(), timed.Stream()
    gpu.put(timed.COMPUTE, 0.05, stream)
    began = time.perf_counter()
    large = gpu.array(timed.DRIVERS, np.float32).copy_to_host(stream=stream)
    assert time.perf_counter() - began > 0.045
    assert np.isfinite(large).all()
    assert large.std() > 0.01, "rows that come back are no zeros"
    assert 0 < gpu.busy[timed.DOWN] < time.perf_counter() - began


def test_small_arrays__keep_their_values_and_slices_share_them():
    gpu = gpu_of()
    there = gpu.to_device(np.arange(10.0))
    there[2:4].copy_to_device(np.array([7.0, 8.0]))
    there.values += 1
    assert there.copy_to_host().tolist() == [1, 2, 8, 9, 5, 6, 7, 8, 9, 10]
    assert (len(there[2:]), there.reshape(2, 5).shape, there.nbytes) == (8, (2, 5), 80)


@needs_cuda
def test_kernels__take_time_in_place_of_being_compiled():
    cuda, warp = pytest.importorskip("numba.cuda"), pytest.importorskip("daskw2v.kernels.cuda.warp")

    def body(total, n):
        raise AssertionError("nobody runs it")

    def leave(total, n):
        total.values += n

    gpu = gpu_of(**{body.__qualname__: timed.Kernel(lambda total, n: n * LONG, leave)})
    kernel, before = warp.kernel(body), cuda.stream
    with gpu.installed():
        assert cuda.get_current_device().compute_capability == (9, 0)
        stream, total = cuda.stream(), cuda.to_device(np.zeros(1))
        kernel[8, 32, stream](total, 3)
        assert stream.last > time.perf_counter() + 2 * LONG
        assert (gpu.busy[timed.COMPUTE], total.values[0]) == (3 * LONG, 3)
        assert [(name, spent.seconds) for name, spent in gpu.launches] == [(body.__qualname__, stream.last)]
        with pytest.raises(KeyError, match="<lambda>"):
            warp.kernel(lambda: None)[1, 32]()
    assert cuda.stream is before


@needs_cuda
def test_busy__is_the_time_of_kernels_in_a_whole_training(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("\n".join(" ".join(f"w{(i * k) % 31}" for k in range(10)) for i in range(200)))
    params = Params(vector_size=8, epochs=3, min_count=1, sample=0, strategy="averaging")
    case, card = busy.Case("text", [text], tmp_path / "work", params), cards.CARDS["H200"]
    found = busy.run(case, card, timed_kernels.kernels(card, 1e4, params, timed_kernels.Text(2000, 2000, 2000)))
    assert (found.counts.sum(), found.positions) == (2000, 2000)
    assert [(stretch.epochs, stretch.words) for stretch in (found.first, found.later)] == [(1, 2000), (2, 4000)]
    for stretch in (found.first, found.later):
        assert stretch.spent.kernels == pytest.approx(stretch.words / 1e4, rel=0.05), "cutting takes little"
        assert stretch.spent.seconds > stretch.spent.kernels, "it waited for the kernels"
        assert stretch.spent.processor > 0


@needs_cuda
def test_stand_in__knows_the_share_of_words_that_subsampling_leaves(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("a b c d\n" * 500)
    params = Params(vector_size=8, epochs=1, min_count=1, strategy="averaging")
    case, card = busy.Case("text", [text], tmp_path / "work", params), cards.CARDS["H200"]
    found = busy.run(case, card, timed_kernels.kernels(card, 1e4, params, timed_kernels.Text(2000, 1500, 500)))
    assert found.first.words == 1500
    assert found.first.spent.kernels == pytest.approx(500 / 1e4, rel=0.05)
