"""Tokens and sentences of plain text, found in one pass, 64 bytes at a time.

A token is a run of bytes above 0x20; a newline ends a sentence. A mask has a bit for each separator among 64 bytes. A
token begins or ends where the mask changes. Hence the loop branches once for each token, not once for each byte (1 GB/s
on one core).
"""

from typing import Any

import numpy as np

from daskw2v.kernels.bytes import count_bits, lowest_bit, mask64
from daskw2v.kernels.jit import kernel
from daskw2v.types import Int64Array, UInt8Array

_NEWLINE, _SPACE = np.uint8(10), np.uint8(32)


@kernel
def _find_separators(data: UInt8Array, position: int) -> Any:
    """Return two masks of the 64 bytes from `position` on, uint64: bits of separators, and bits of newlines.

    Bits behind the end of the text are separators.
    """
    if position + 64 <= len(data):
        spaces = mask64(data, position, _SPACE)
        newlines = np.uint64(0)
        if mask64(data, position, _NEWLINE):  # of bytes up to 10; rare, and the exact test takes longer
            newlines = mask64(data, position, _NEWLINE) & ~mask64(data, position, np.uint8(9))
        return spaces, newlines
    spaces, newlines = ~np.uint64(0), np.uint64(0)
    for i in range(len(data) - position):
        bit = np.uint64(1) << np.uint64(i)
        if data[position + i] > _SPACE:
            spaces &= ~bit
        elif data[position + i] == _NEWLINE:
            newlines |= bit
    return spaces, newlines


@kernel
def split_tokens(
    data: UInt8Array, position: int, begins: Int64Array, ends: Int64Array, starts: Int64Array, last_start: int
) -> tuple[int, int, int]:
    """Find the tokens and sentences of a text from `position` on, until the text ends or the arrays are full.

    Parameters
    ----------
    data
        Text, shape (n,) uint8.
    position
        Index of the byte to start from: 0, or the position that the last call returned.
    begins, ends
        Filled with token i = data[begins[i] : ends[i]], shape (capacity,) int64, capacity >= 64.
    starts
        Filled with the indices of tokens that start a sentence, shape (capacity,) int64. The last index may be
        the number of tokens: then the next token starts a sentence.
    last_start
        The last start of a sentence that an earlier call listed, as an index relative to the first token that is found:
        0 if that token starts a sentence, so that it is not listed again; below 0 otherwise.

    Returns
    -------
    tuple
        Position for the next call (at least len(data) at the end of the text), number of tokens, number of starts.
    """
    n_begins, n_ends, n_starts = 0, 0, 0
    one = np.uint64(1)
    before = one  # whether the byte before is a separator
    while position < len(data) and n_begins + 64 <= len(begins):
        spaces, newlines = _find_separators(data, position)
        edges = spaces ^ ((spaces << one) | before)
        before = spaces >> np.uint64(63)
        while newlines:
            newline = lowest_bit(newlines)
            newlines &= newlines - one
            begun = edges & ~spaces & ((one << np.uint64(newline)) - one)
            start = n_begins + count_bits(begun)
            if start != last_start:
                starts[n_starts] = start
                n_starts += 1
                last_start = start
        begun, ended = edges & ~spaces, edges & spaces
        while begun:
            begins[n_begins] = position + lowest_bit(begun)
            begun &= begun - one
            n_begins += 1
        while ended:
            ends[n_ends] = position + lowest_bit(ended)
            ended &= ended - one
            n_ends += 1
        position += 64
    if n_begins > n_ends:  # the last token is incomplete
        if position < len(data):
            return begins[n_ends], n_ends, n_starts
        ends[n_ends] = len(data)
    return position, n_begins, n_starts
