"""Tasks that number the nodes of an edge list: every block is read once, and its edges are stored as codes.

    blocks/<key>/<attempt>/<i>/   a piece of a block: its sorted nodes, `names-<k>.parquet`; `codes` (n, 2) int32, the
                                  indices of source and target among them; `weights` (n, 1) float64
    names/<attempt>/              the sorted nodes of several pieces; finally, of all

A node's number is its rank among all sorted nodes, so it does not depend on how files are cut.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from daskw2v.corpus.files import TextBlock
from daskw2v.extras import Extra
from daskw2v.sequences.edges import EdgeList, read_edges
from daskw2v.sequences.lists import read_column, write_columns
from daskw2v.store.partfile import read_part, write_parts
from daskw2v.store.stage import new_attempt, run_once
from daskw2v.store.storage import Store

pa, pc = Extra("pyarrow", "arrow"), Extra("pyarrow.compute", "arrow")

PIECE = 1 << 21  # edges in a piece, about: 200 MB in a task's memory
_NAMES = 1 << 21  # names in a file
_COLUMN = "name"


class Names(NamedTuple):
    """Files of distinct, sorted nodes.

    Parameters
    ----------
    path
        Folder, below that of the graph.
    size
        Number of nodes.
    """

    path: str
    size: int


class EdgePiece(NamedTuple):
    """A piece of a block's edges, stored in the folder of its names."""

    names: Names
    edges: int
    weighted: bool


def encode_block(block: TextBlock, home: Store, edges: EdgeList) -> dict[str, Any]:
    """Task: read a block and write its edges in pieces, unless that was done before.

    Returns
    -------
    dict
        Manifest: pieces (path, names, edges), and whether nodes are strings.
    """
    task = home / "blocks" / block.key
    return run_once(task, task.read_manifest, partial(_encode, block, home, edges))


def _encode(block: TextBlock, home: Store, edges: EdgeList, place: Store) -> dict[str, Any]:
    pieces, held, n_held, strings = list[dict[str, Any]](), list[list[Any]](), 0, False

    def finish() -> None:
        path = f"blocks/{block.key}/{place.name}/{len(pieces)}"
        columns = [pa.concat_arrays(parts) for parts in zip(*held, strict=True)]
        pieces.append({"path": path, "names": _write_piece(home / path, columns), "edges": len(columns[0])})
        held.clear()

    for columns in read_edges(block, edges, home.options, home.timeout):
        strings = not pa.types.is_integer(columns[0].type)
        held.append(columns)
        n_held += len(columns[0])
        if n_held >= PIECE:
            finish()
            n_held = 0
    if n_held:
        finish()
    return {"pieces": pieces, "strings": strings}


def pieces_of(manifest: dict[str, Any], edges: EdgeList) -> list[EdgePiece]:
    """Return the pieces in a block's manifest."""
    weighted = edges.weight is not None
    return [EdgePiece(Names(p["path"], p["names"]), p["edges"], weighted) for p in manifest["pieces"]]


def _write_piece(place: Store, columns: list[Any]) -> int:
    """Write names, codes and weights; return the number of names."""
    encoded = pa.concat_arrays(columns[:2]).dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    rank = np.empty(len(order), np.int32)
    rank[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    codes = rank[encoded.indices.to_numpy()].reshape(2, -1).T
    write_parts(place, "codes", [0, len(codes)], codes, named=True)
    for weights in columns[2:]:
        write_parts(place, "weights", [0, len(weights)], weights.to_numpy()[:, None], named=True)
    _write_names(place, encoded.dictionary.take(order))
    return len(order)


def _write_names(place: Store, names: Any) -> None:
    for k, start in enumerate(range(0, len(names), _NAMES)):
        write_columns(place, f"names-{k}.parquet", {_COLUMN: names.slice(start, _NAMES)})


def read_names(home: Store, names: Names) -> Any:
    """Read sorted nodes as an Arrow array of int64 or large_string.

    Raises
    ------
    DamageError
        If a file is missing or damaged.
    """
    files = range(-(-names.size // _NAMES))
    return pa.concat_arrays([read_column(home / names.path, f"names-{k}.parquet", _COLUMN) for k in files])


def merge_names(home: Store, parts: Sequence[Names]) -> Names:
    """Task: write the distinct nodes of several parts, sorted."""
    distinct = pc.unique(pa.concat_arrays([read_names(home, part) for part in parts]))
    names = Names(f"names/{new_attempt()}", len(distinct))
    _write_names(home / names.path, distinct.take(pc.sort_indices(distinct)))
    return names


def read_piece(home: Store, piece: EdgePiece, nodes: Any) -> tuple[Any, Any]:
    """Return a piece's edges as numbers of nodes, shape (n, 2) int32, and their weights, shape (n,) float64."""
    place = home / piece.names.path
    numbers = pc.index_in(read_names(home, piece.names), value_set=nodes).to_numpy()
    pairs = numbers[read_part(place, "codes", 1, 0, np.int32, 2)]
    return pairs, read_part(place, "weights", 1, 0, np.float64, 1)[:, 0] if piece.weighted else np.ones(len(pairs))
