"""Counter-based random numbers: each draw is a pure function of its key and its counter.

A key stands for a stream (seed, purpose, epoch), and a counter for a draw of the stream (such as a token's position in
the corpus). So a draw does not depend on the worker, thread, task or retry that computes it. The generator is
SplitMix64 (Steele, Lea and Flood 2014), whose state is a counter.
"""

from enum import IntEnum
from typing import Any

import numpy as np

from daskw2v.kernels.jit import inline
from daskw2v.types import Float32Array, Int64Array, UInt64Array

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_M1 = np.uint64(0xBF58476D1CE4E5B9)
_M2 = np.uint64(0x94D049BB133111EB)
_S1, _S2, _S3 = np.uint64(30), np.uint64(27), np.uint64(31)
_HALF, _FRACTION = np.uint64(32), np.uint64(40)


class Purpose(IntEnum):
    """The purposes of streams of draws; streams of different purposes are independent."""

    SUBSAMPLE = 1
    WINDOW = 2
    NEGATIVE = 3
    INITIAL = 4
    PARTITION = 5
    ORDER = 6
    MATRIX = 7
    GROWTH = 8
    REPEAT = 9
    NETWORK = 10
    WALK = 11
    START = 12
    EXCERPT = 13
    ROUNDING = 14
    HELD_OUT = 15
    PREFIX = 16
    FEATURE = 17
    COPY = 18


@inline
def mix(x: Any) -> Any:
    """Return 64 well-mixed bits of a uint64, or of each element of an array."""
    x = (x ^ (x >> _S1)) * _M1
    x = (x ^ (x >> _S2)) * _M2
    return x ^ (x >> _S3)


@inline
def draw(key: Any, counter: Any) -> Any:
    """Return the 64 random bits of `counter`, an integer >= 0, in the stream with the key `key`, uint64."""
    return mix(key + np.uint64(counter) * GOLDEN)


@inline
def below(bits: Any, n: Any) -> Any:
    """Return an integer in 0..n-1 from the upper half of 64 bits, uint64 (multiply and shift; n < 2**32)."""
    return ((bits >> _HALF) * np.uint64(n)) >> _HALF


@inline
def unit(bits: Any) -> Any:
    """Return a float32 in [0, 1) from the upper 24 of 64 bits, or of each element of an array."""
    return np.float32(bits >> _FRACTION) * np.float32(2.0**-24)


def stream(seed: int, purpose: Purpose, epoch: int = 0) -> np.uint64:
    """Return the key of a stream of draws, by seed, purpose and epoch (or another number), all >= 0."""
    key = np.zeros(1, np.uint64)
    for part in (seed, int(purpose), epoch):
        key = mix.py_func(key + np.uint64(part) + GOLDEN)
    return np.uint64(key[0])


def draws(key: np.uint64 | UInt64Array, counters: UInt64Array) -> UInt64Array:
    """Return the draw of each counter, uint64, shape of `counters`; `key` is one stream's, or has a key for each."""
    return np.asarray(mix.py_func(key + counters * GOLDEN))


def uniform(key: np.uint64, counters: Int64Array) -> Float32Array:
    """Return a random number in [0, 1) for each counter of the stream `key`, float32, shape of `counters`."""
    return np.asarray(unit.py_func(draws(key, counters.astype(np.uint64))))
