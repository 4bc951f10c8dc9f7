"""Tasks that number the nodes of an edge list: every block is read once, and its edges are stored as codes.

    blocks/<key>/<attempt>/<i>/   a piece of a block: its sorted nodes, `names-<k>.parquet`, with their types, if any;
                                  `codes` (n, 2) int32, the indices of source and target among them; `weights` (n, 1)
                                  float64, if any
    names/<r>/<attempt>/          a range of all sorted nodes; `ranks` (n, 1) int32, the indices in it of each piece's
                                  nodes, in parts by piece; `types` (n, 1) uint8, if any

A node's number is its rank among all sorted nodes, so it does not depend on how files are cut. Nodes between two
splitters are sorted by one task (a sample sort): no task holds all of them.

A type of nodes is text in `blocks`, and its code in `names`: the index among the types of all nodes, sorted.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from daskw2v.cluster.shared_memory import share
from daskw2v.corpus.files import TextBlock
from daskw2v.corpus.streams import batched
from daskw2v.errors import InputError
from daskw2v.extras import Extra
from daskw2v.sequences.edges import read_edges
from daskw2v.sequences.files import read_column, read_table, write_table
from daskw2v.sequences.settings import EdgeList
from daskw2v.store.partfile import read_part, write_parts
from daskw2v.store.stage import new_attempt, run_once
from daskw2v.store.storage import Store
from daskw2v.types import Float64Array, Int32Array, UInt8Array

pa, pc = Extra("pyarrow", "arrow"), Extra("pyarrow.compute", "arrow")

PIECE = 1 << 21  # number of edges in a piece, about: 200 MB in a task's memory, 300 MB with types
FILE_NAMES = 1 << 16  # names in a file; the first of each is a sample, of which splitters are drawn
RANGE_NAMES = 1 << 22  # names of all pieces between two splitters, about: 300 MB in a task's memory
_COLUMN, _TYPE = "name", "type"
Name = int | str
MAX_TYPES = 64  # of nodes; each takes 8 bytes for each node of a graph in memory
_TYPES_SHOWN = 3  # most types that a message names


class Names(NamedTuple):
    """The file of a range of all nodes, distinct and sorted.

    Parameters
    ----------
    path
        Folder of the range, below that of the graph.
    size
        Number of nodes.
    """

    path: str
    size: int


class EdgePiece(NamedTuple):
    """A piece of a block's edges.

    Parameters
    ----------
    path
        Folder of the piece, below that of the graph.
    size
        Number of distinct nodes.
    first
        The first node of each file of names.
    edges
        Number of edges.
    types
        Types of the nodes, sorted; empty without types.
    """

    path: str
    size: int
    first: list[Name]
    edges: int
    types: list[str]


class NameRange(NamedTuple):
    """The range of nodes that are at least `low` and below `high`; None is no limit.

    `files` has for each piece its folder, and the numbers of its files that may hold nodes of the range.
    """

    low: Name | None
    high: Name | None
    files: list[tuple[str, range]]


def encode_block(block: TextBlock, folder: Store, edges: EdgeList, kind: str) -> dict[str, Any]:
    """Task: read a block of an edge list and write its edges in pieces, unless an earlier run wrote them.

    Parameters
    ----------
    block
        The range of the file.
    folder
        Folder of the graph.
    edges
        Layout of the edges.
    kind
        Kind of the nodes, as `find_node_kind` returns it.

    Returns
    -------
    dict
        Manifest of the block, which `parse_pieces` reads.

    Raises
    ------
    InputError
        As `read_edges`, or if nodes have too many types, or a node has two.
    """
    task = folder / "blocks" / block.key
    return run_once(task, task.read_manifest, partial(_encode, block, folder, edges, kind))


def _encode(block: TextBlock, folder: Store, edges: EdgeList, kind: str, attempt: Store) -> dict[str, Any]:
    """Write the edges of a block in pieces to the folder of an attempt; return the block's manifest."""
    pieces = list[dict[str, Any]]()
    batches = (columns for columns in read_edges(block, edges, kind, folder.options, folder.timeout) if len(columns[0]))
    for batch in batched(batches, lambda columns: len(columns[0]), PIECE):
        path = f"blocks/{block.key}/{attempt.name}/{len(pieces)}"
        columns = dict(zip(edges.roles, map(pa.concat_arrays, zip(*batch, strict=True)), strict=True))
        names, types = _write_piece(folder / path, columns)
        first, n_edges = names[::FILE_NAMES].to_pylist(), len(columns["source"])
        pieces.append({"path": path, "names": len(names), "first": first, "edges": n_edges, "types": types})
    return {"pieces": pieces}


def parse_pieces(manifest: Mapping[str, Any]) -> list[EdgePiece]:
    """Return the pieces of edges that a manifest of `encode_block` describes."""
    return [EdgePiece(p["path"], p["names"], p["first"], p["edges"], p.get("types", [])) for p in manifest["pieces"]]


def _write_piece(folder: Store, columns: dict[str, Any]) -> tuple[Any, list[str]]:
    """Write a piece of edges: its nodes, the codes of edges, and weights.

    Parameters
    ----------
    folder
        Folder of the piece.
    columns
        Arrow arrays by role, as `read_edges` yields them.

    Returns
    -------
    names
        Distinct nodes, sorted, an Arrow array.
    types
        Distinct types of the nodes, sorted; empty without types.
    """
    names, codes = _sort_nodes(pa.concat_arrays([columns["source"], columns["target"]]))
    pairs = codes.reshape(2, -1).T
    write_parts(folder, "codes", [0, len(pairs)], pairs, named=True)
    if (weights := columns.get("weight")) is not None:
        write_parts(folder, "weights", [0, len(weights)], weights.to_numpy()[:, None], named=True)
    stored, types = {_COLUMN: names}, list[str]()
    if "source_type" in columns:
        node_types = pa.concat_arrays([columns["source_type"], columns["target_type"]])
        types = sort_types(node_types.unique().to_pylist())
        type_codes = find_node_types(names, codes, encode_types(node_types, types), types)
        stored[_TYPE] = pa.array(types).take(pa.array(type_codes))
    table = pa.table(stored)
    for k, start in enumerate(range(0, len(names), FILE_NAMES)):
        write_table(folder, _file_name(k), table.slice(start, FILE_NAMES))
    return names, types


def _sort_nodes(nodes: Any) -> tuple[Any, Int32Array]:
    """Return the distinct nodes of an Arrow array, sorted, and the index of each node among these, shape (nodes,)."""
    encoded = nodes.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    rank = np.empty(len(order), np.int32)
    rank[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    return encoded.dictionary.take(order), rank[encoded.indices.to_numpy()]


def _file_name(number: int) -> str:
    """Return the name of a file of nodes by its number."""
    return f"names-{number}.parquet"


def divide_names(pieces: Sequence[EdgePiece]) -> list[NameRange]:
    """Divide the nodes of all pieces into ranges with about `RANGE_NAMES` nodes each, counted once for each piece."""
    firsts = ((piece, k, name) for piece in pieces for k, name in enumerate(piece.first))
    # The first node of each file, sorted, and the number of nodes in the file
    sizes = sorted((name, min(FILE_NAMES, piece.size - k * FILE_NAMES)) for piece, k, name in firsts)
    starts = [0, *accumulate(size for _, size in sizes)]
    splitters = [
        name
        for (name, _), (start, stop) in zip(sizes, pairwise(starts), strict=True)
        if start // RANGE_NAMES < stop // RANGE_NAMES
    ]
    limits: list[Name | None] = [None, *sorted(set(splitters) - {sizes[0][0]}), None]  # no range is empty
    return [
        NameRange(low, high, [(piece.path, _find_files(piece.first, low, high)) for piece in pieces])
        for low, high in pairwise(limits)
    ]


def _find_files(first: list[Any], low: Name | None, high: Name | None) -> range:
    """Return the numbers of the files that may hold nodes from `low` on and below `high`, where None is no limit.

    `first` is the first node of each file, ascending.
    """
    begin = 0 if low is None else max(0, bisect_right(first, low) - 1)
    return range(begin, len(first) if high is None else bisect_left(first, high))


class MergedRange(NamedTuple):
    """The distinct nodes of a range: their file, the bytes of their names in memory, and their number by code of type.

    `type_counts` is empty without types.
    """

    names: Names
    size: int
    type_counts: list[int]


def merge_range(folder: Store, number: int, limits: NameRange, types: Sequence[str]) -> MergedRange:
    """Task: write the distinct nodes of a range, sorted, the codes of their types, and the ranks of each piece's nodes.

    Parameters
    ----------
    folder
        Folder of the graph.
    number
        Number of the range.
    limits
        The range.
    types
        Types of all nodes, sorted; empty without types.

    Raises
    ------
    InputError
        If a node has two types.
    """
    parts = [[_read_between(folder / path, k, limits, types) for k in numbers] for path, numbers in limits.files]
    files = [file for part in parts for file in part]
    distinct, ranks = _sort_nodes(pa.concat_arrays([nodes for nodes, _ in files]))
    path = f"names/{number}/{new_attempt()}"
    offsets = np.cumsum([0, *(sum(len(nodes) for nodes, _ in part) for part in parts)])
    write_parts(folder / path, "ranks", offsets, ranks[:, None], named=True)
    write_table(folder / path, _file_name(0), pa.table({_COLUMN: distinct}))
    type_counts = list[int]()
    if types:
        codes = find_node_types(distinct, ranks, np.concatenate([codes for _, codes in files]), types)
        write_parts(folder / path, "types", [0, len(codes)], codes[:, None], named=True)
        type_counts = np.bincount(codes, minlength=len(types)).tolist()
    return MergedRange(Names(path, len(distinct)), distinct.nbytes, type_counts)


def _read_between(folder: Store, number: int, limits: NameRange, types: Sequence[str]) -> tuple[Any, UInt8Array]:
    """Return the nodes of a piece's file `number` that are within `limits`, and the codes of their types.

    `folder` is the folder of the piece. The nodes are an Arrow array; the codes have the shape (nodes,), or (0,)
    without types.
    """
    table = read_table(folder, _file_name(number), [_COLUMN, _TYPE] if types else [_COLUMN])
    names = table.column(_COLUMN).combine_chunks()
    codes = encode_types(table.column(_TYPE).combine_chunks(), types) if types else np.empty(0, np.uint8)
    begin = 0 if limits.low is None else _count_below(names, limits.low)
    end = len(names) if limits.high is None else _count_below(names, limits.high)
    return names.slice(begin, end - begin), codes[begin:end]


def _count_below(names: Any, limit: Name) -> int:
    """Return how many nodes of an Arrow array are less than a limit."""
    return int(pc.sum(pc.less(names, pa.scalar(limit, names.type))).as_py() or 0)


def read_names(folder: Store, names: Sequence[Names]) -> Any:
    """Return all nodes of a graph, sorted, as an Arrow array of int64, uint64 or large_string.

    `folder` is the graph's; `names` are its ranges of nodes.

    Raises
    ------
    DamageError
        If a file is missing or damaged.
    """
    return pa.concat_arrays(list(read_name_ranges(folder, names)))


def read_name_ranges(folder: Store, names: Sequence[Names]) -> Iterator[Any]:
    """Yield the nodes of each range as an Arrow array; arguments and errors are as for `read_names`."""
    for part in names:
        yield read_column(folder / part.path, _file_name(0), _COLUMN)


def read_type_ranges(folder: Store, names: Sequence[Names]) -> Iterator[UInt8Array]:
    """Yield the codes of the types of the nodes of each range, shape (nodes,); arguments and errors as `read_names`."""
    for part in names:
        yield read_part(folder / part.path, "types", 1, 0, np.uint8, 1)[:, 0]


def read_types(folder: Store, names: Sequence[Names]) -> UInt8Array:
    """Task: return the codes of the types of all nodes, shape (nodes,), in memory that workers of one host share.

    Arguments and errors are as for `read_names`.
    """
    return share(np.concatenate(list(read_type_ranges(folder, names))))


class GraphLayout(NamedTuple):
    """Facts of a graph that all its tasks share.

    Parameters
    ----------
    folder
        Folder of the graph.
    n_nodes, n_parts
        Number of nodes, and of parts into which its rows are divided.
    directed, weighted
        Whether edges lead only from source to target; whether they have weights.
    types
        Types of nodes, sorted; empty without types.
    """

    folder: Store
    n_nodes: int
    n_parts: int
    directed: bool
    weighted: bool
    types: tuple[str, ...]


def read_piece(
    layout: GraphLayout, number: int, piece: EdgePiece, n_pieces: int, ranges: Sequence[Names]
) -> tuple[Int32Array, UInt8Array, Float64Array]:
    """Return the edges of a piece, as numbers of nodes.

    Parameters
    ----------
    layout
        The graph.
    number, piece, n_pieces
        Index of the piece among all pieces of the graph, the piece, and how many there are.
    ranges
        The ranges of the graph's nodes.

    Returns
    -------
    pairs
        Source and target, shape (n, 2).
    types
        Codes of the types of source and target, shape (n, 2), or (n, 0) without types.
    weights
        Weight of each edge, shape (n,); 1 without weights.
    """
    piece_folder, numbers, base = layout.folder / piece.path, [], 0
    for part in ranges:
        numbers.append(base + read_part(layout.folder / part.path, "ranks", n_pieces, number, np.int32, 1)[:, 0])
        base += part.size
    codes = read_part(piece_folder, "codes", 1, 0, np.int32, 2)
    weights = read_part(piece_folder, "weights", 1, 0, np.float64, 1)[:, 0] if layout.weighted else np.ones(len(codes))
    types = np.empty((len(codes), 0), np.uint8)
    if layout.types:
        files = (read_column(piece_folder, _file_name(k), _TYPE) for k in range(len(piece.first)))
        types = np.concatenate([encode_types(file, layout.types) for file in files])[codes]
    return np.concatenate(numbers)[codes], types, weights


def sort_types(types: Iterable[str]) -> list[str]:
    """Return the distinct types of nodes, sorted.

    Raises
    ------
    InputError
        If there are more than `MAX_TYPES`.
    """
    distinct = sorted({*types})
    if len(distinct) > MAX_TYPES:
        raise InputError(
            f"Nodes have {len(distinct):,} types ({', '.join(distinct[:_TYPES_SHOWN])}, ...); at most {MAX_TYPES} are "
            "supported.",
            "Check the columns of types, or join types that walks need not tell apart.",
        )
    return distinct


def encode_types(names: Any, types: Sequence[str]) -> UInt8Array:
    """Return the code of each type in the Arrow array `names`: its index in `types`, shape (names,)."""
    codes = pc.index_in(names, value_set=pa.array(types, names.type))
    return np.asarray(codes.to_numpy(), np.uint8)


def find_node_types(names: Any, nodes: Int32Array, codes: UInt8Array, types: Sequence[str]) -> UInt8Array:
    """Return the code of each node's type, shape (names,).

    Parameters
    ----------
    names
        Names of the nodes, an Arrow array.
    nodes, codes
        Indices in `names`, each of them once or more, and the code of the type of each, both of shape (n,).
    types
        Names of all types by their codes.

    Raises
    ------
    InputError
        If a node has two types.
    """
    code_by_node = np.empty(len(names), np.uint8)
    code_by_node[nodes] = codes
    conflicts = np.flatnonzero(code_by_node[nodes] != codes)
    if len(conflicts):
        node, code = nodes[conflicts[0]], codes[conflicts[0]]
        type_names = " and ".join(sorted([types[code], types[code_by_node[node]]]))
        name = names[node].as_py()
        raise InputError(f"The node {name!r} has two types, {type_names}.", "Give it the same one everywhere.")
    return code_by_node
