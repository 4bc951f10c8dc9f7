"""Rows of a table in the registers of a warp: each lane has four floats of every 128, in all functions below.

A lane's part of several rows is a local array of shape (rows, floats). Loops have a known length, so that the compiler
makes registers of it.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from daskw2v.kernels.cuda.warp import FLOATS, LANES, device

_CHUNK = LANES * FLOATS  # floats of a row that a warp loads at once
_NONE = np.float32(0.0)


def chunks_of(width: int) -> int:
    """Return how many floats a lane has of a row of `width`, in units of FLOATS."""
    return -(-width // _CHUNK)


def _inside(width: int) -> Callable[..., Any]:
    """Return what tells whether the four floats at `column`, a lane's in `chunk`, belong to a row of `width`."""
    whole = width // _CHUNK  # chunks that no row ends in

    @device
    def is_inside(chunk: Any, column: Any) -> Any:
        return chunk < whole or column < width  # the first is known when the kernel is compiled

    return is_inside


def reading(width: int, load: Callable[..., Any]) -> Callable[..., Any]:
    """Return what reads a row of `width` floats with `load`, as row t; behind its end a lane has zeros."""
    chunks, is_inside = chunks_of(width), _inside(width)

    @device
    def read(table: Any, start: Any, lane: Any, rows: Any, t: Any) -> None:
        for chunk in range(chunks):
            column, k = chunk * _CHUNK + lane * FLOATS, chunk * FLOATS
            if is_inside(chunk, column):
                rows[t, k], rows[t, k + 1], rows[t, k + 2], rows[t, k + 3] = load(table, start + column)
            else:
                rows[t, k], rows[t, k + 1], rows[t, k + 2], rows[t, k + 3] = _NONE, _NONE, _NONE, _NONE

    return read


def writing(width: int, store: Callable[..., Any]) -> Callable[..., Any]:
    """Return what writes row t to a row of `width` floats with `store`, or adds it with `warp.add4`."""
    chunks, is_inside = chunks_of(width), _inside(width)

    @device
    def write(table: Any, start: Any, lane: Any, rows: Any, t: Any) -> None:
        for chunk in range(chunks):
            column, k = chunk * _CHUNK + lane * FLOATS, chunk * FLOATS
            if is_inside(chunk, column):
                store(table, start + column, rows[t, k], rows[t, k + 1], rows[t, k + 2], rows[t, k + 3])

    return write
