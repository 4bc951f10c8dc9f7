"""Vectors and their operations, compiled and compared with NumPy."""

import mmap

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import njit, types
from numba.extending import intrinsic

from daskw2v.kernels import simd


def on_vectors(operation):
    """Compile `operation(builder, vectors of LANES) -> vector of SLOTS` on 16 rows of LANES floats."""

    @intrinsic
    def run(typingctx, rows, out):
        def codegen(context, builder, sig, args):
            source, target = (
                context.make_array(t)(context, builder, a).data for t, a in zip(sig.args, args, strict=True)
            )
            index = context.get_value_type(types.intp)
            vectors = [simd.load(builder, builder.gep(source, [index(i * simd.LANES)]), simd.LANES) for i in range(16)]
            simd.store(builder, target, operation(builder, vectors))
            return context.get_dummy_value()

        return types.void(rows, out), codegen

    @njit
    def compiled(rows, out):
        run(rows, out)

    def call(rows):
        out = np.full(simd.SLOTS, np.nan, np.float32)
        compiled(rows.reshape(-1), out)
        return out

    return call


@pytest.mark.parametrize("n", [1, 2, 3, 6, 8, 12, 16])
def test_sums__are_in_order_and_the_rest_is_zero(n):
    def operation(builder, vectors):
        return simd.sums(builder, vectors[:n])

    rows = np.random.default_rng(n).normal(size=(16, simd.LANES)).astype(np.float32)
    expected = np.where(np.arange(16) < n, rows.sum(axis=1, dtype=np.float64), 0)
    np.testing.assert_allclose(on_vectors(operation)(rows), expected, rtol=1e-5, atol=1e-5)


def test_sums__leave_out_empty_slots():
    def operation(builder, vectors):
        return simd.sums(builder, [*vectors[:3], *[None] * 5, *vectors[3:6]])

    rows = np.random.default_rng(0).normal(size=(16, simd.LANES)).astype(np.float32)
    sums = rows.sum(axis=1)
    expected = np.concatenate([sums[:3], np.zeros(5), sums[3:6], np.zeros(5)])
    np.testing.assert_allclose(on_vectors(operation)(rows), expected, rtol=1e-5, atol=1e-5)


@pytest.fixture(scope="module")
def exp():
    return on_vectors(lambda builder, vectors: simd.exp(builder, simd.sums(builder, vectors)))


@given(values=st.lists(st.floats(-80, 80, width=32), min_size=16, max_size=16))
def test_exp__is_that_of_numpy(exp, values):
    rows = np.zeros((16, simd.LANES), np.float32)
    rows[:, 0] = values  # a row's sum is its first value
    np.testing.assert_allclose(exp(rows), np.exp(np.array(values, np.float64)), rtol=5e-7)


def test_padded__ends_on_a_cache_line():
    assert [simd.padded(n) for n in (1, 16, 17, 100, 300)] == [16, 16, 32, 112, 304]
    table = simd.aligned_zeros(48)
    assert table.ctypes.data % 64 == 0
    assert table.shape == (48,)


@pytest.mark.parametrize("n", [0, 1, 3, 4096, 1_000_001])
def test_huge_zeros__are_zeros_from_the_start_of_a_page(n):
    table = simd.huge_zeros(n)
    assert table.dtype == np.float32
    assert table.shape == (n,)
    assert not table.any()
    assert n == 0 or table.ctypes.data % mmap.PAGESIZE == 0
    table[:] = 1.0
    assert table.sum() == n


@pytest.mark.parametrize(
    ("features", "number", "lanes"),
    [
        ("", 16, 4),
        ("+sse2,-avx", 16, 4),
        ("+fp-armv8,+neon", 32, 4),
        ("+avx,+avx2,-avx512f", 16, 8),
        ("+avx,+avx512f,+avx512vl", 32, 16),
    ],
)
def test_registers__are_those_of_the_processor_that_numba_compiles_for(monkeypatch, features, number, lanes):
    monkeypatch.setattr(numba.config, "CPU_FEATURES", features)
    assert simd._find_registers() == (number, lanes)


def test_registers__are_this_hosts_by_default(monkeypatch):
    monkeypatch.setattr(numba.config, "CPU_FEATURES", None)
    assert simd._find_registers() in ((16, 4), (32, 4), (16, 8), (32, 16))
