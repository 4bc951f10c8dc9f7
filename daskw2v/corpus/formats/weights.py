"""Weights of rows: how often a row's text counts, as an integer in another column."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from daskw2v.errors import InputError
from daskw2v.extras import Extra
from daskw2v.types import Int64Array

pa, pc = Extra("pyarrow", "arrow"), Extra("pyarrow.compute", "arrow")

MOST = 1 << 20
_ROWS, _BYTES = 1 << 12, 1 << 20  # that are made at once, at most, about
_RULE = f"A weight is an integer in 0..{MOST:,}: the times that the row counts."


def is_weight(value: Any) -> bool:
    """Tell whether a value counts a row; true and false do not."""
    return type(value) is int and 0 <= value <= MOST


def weights_of(array: Any, column: str, place: str) -> Int64Array:
    """Return a column of weights, shape (n,) int64; null, and what is empty in CSV, is 0.

    Raises
    ------
    InputError
        If one is no integer, or out of range.
    """
    kind = array.type
    if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_null(kind)):
        raise InputError(f"{column!r} of {place} is of type {kind}.", _RULE)
    if pa.types.is_string(kind):  # of CSV
        array = pc.if_else(pc.equal(array, ""), pa.scalar(None, kind), array)
    try:
        values: Int64Array = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid as error:
        raise InputError(f"{column!r} of {place} holds what is no weight ({error}).", _RULE) from None
    wrong = np.flatnonzero((values < 0) | (values > MOST))
    if len(wrong):
        raise InputError(f"{column!r} of {place} is {values[wrong[0]]}, which is no weight.", _RULE)
    return values


def _largest(array: Any) -> int:
    """Return about how many bytes the largest row of text, or of a list, takes."""
    if not len(array):
        return 1
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return int(pc.max(pc.binary_length(array)).as_py() or 1)
    return max(int(array.slice(row, 1).nbytes) for row in range(len(array)))


def repeated(array: Any, weights: Int64Array) -> Iterator[Any]:
    """Yield an array whose rows stand as often as their weights say, in parts of bounded size."""
    ends = np.cumsum(weights)
    step = max(1, min(_ROWS, _BYTES // _largest(array)))
    for start in range(0, int(ends[-1]) if len(ends) else 0, step):
        numbers = np.arange(start, min(start + step, int(ends[-1])))
        yield array.take(pa.array(np.searchsorted(ends, numbers, side="right")))
