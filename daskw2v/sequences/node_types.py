"""Types of nodes, as codes: their indices among all types, sorted."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from daskw2v.errors import InputError
from daskw2v.extras import Extra
from daskw2v.types import Int32Array, UInt8Array

pa, pc = Extra("pyarrow", "arrow"), Extra("pyarrow.compute", "arrow")

MOST = 64  # each takes 8 bytes for each node of a graph in memory
_SHOWN = 3


def sorted_types(types: Iterable[str]) -> list[str]:
    """Return distinct types, sorted.

    Raises
    ------
    InputError
        If there are more than `MOST`.
    """
    distinct = sorted({*types})
    if len(distinct) > MOST:
        raise InputError(
            f"Nodes have {len(distinct):,} types ({', '.join(distinct[:_SHOWN])}, ...); at most {MOST} are supported.",
            "Check the columns of types, or join types that walks need not tell apart.",
        )
    return distinct


def codes_of(names: Any, types: Sequence[str]) -> UInt8Array:
    """Return the codes of an Arrow array of names of types, shape (names,)."""
    codes = pc.index_in(names, value_set=pa.array(types, names.type))
    return np.asarray(codes.to_numpy(), np.uint8)


def one_each(names: Any, nodes: Int32Array, codes: UInt8Array, types: Sequence[str]) -> UInt8Array:
    """Return the code of each node's type.

    Parameters
    ----------
    names
        Names of the nodes, an Arrow array.
    nodes, codes
        Indices of nodes, each at least once, and the codes of their types there, shape (n,).
    types
        All types.

    Raises
    ------
    InputError
        If a node has two types.
    """
    found = np.empty(len(names), np.uint8)
    found[nodes] = codes
    other = np.flatnonzero(found[nodes] != codes)
    if len(other):
        node, code = nodes[other[0]], codes[other[0]]
        both = " and ".join(sorted([types[code], types[found[node]]]))
        raise InputError(f"The node {names[node].as_py()!r} has two types, {both}.", "Give it the same one everywhere.")
    return found
