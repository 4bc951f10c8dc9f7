"""Tasks that number the nodes of an edge list: every block is read once, and its edges are stored as codes.

    blocks/<key>/<attempt>/<i>/   a piece of a block: its sorted nodes, `names-<k>.parquet`, with their types, if any;
                                  `codes` (n, 2) int32, the indices of source and target among them; `weights` (n, 1)
                                  float64
    names/<r>/<attempt>/          a range of all sorted nodes; `ranks` (n, 1) int32, the indices in it of each piece's
                                  nodes, in parts by piece; `types` (n, 1) uint8, if any

A node's number is its rank among all sorted nodes, so it does not depend on how files are cut. Nodes between two
splitters are sorted by one task (a sample sort): no task holds all of them.

A type of nodes is stored as its code, the index among all types, sorted.
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

PIECE = 1 << 21  # edges in a piece, about: 200 MB in a task's memory, 300 MB with types
FILE_NAMES = 1 << 16  # names in a file; the first of each is a sample, of which splitters are drawn
RANGE_NAMES = 1 << 22  # names of all pieces between two splitters, about: 300 MB in a task's memory
_COLUMN, _TYPE = "name", "type"
Name = int | str
MOST_TYPES = 64  # of nodes; each takes 8 bytes for each node of a graph in memory
_SHOWN = 3  # most types that a message names


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
    """A piece of a block's edges: its folder, and the number of its nodes.

    `first` is the first node of each file; `types` are the types of its nodes, if any.
    """

    path: str
    size: int
    first: list[Name]
    edges: int
    types: list[str]


class NameRange(NamedTuple):
    """Names from `low` on and below `high`, where None is no limit.

    `files` are the folder of each piece, and the numbers of its files that may hold such names.
    """

    low: Name | None
    high: Name | None
    files: list[tuple[str, range]]


def encode_block(block: TextBlock, folder: Store, edges: EdgeList, kind: str) -> dict[str, Any]:
    """Task: read a block and write its edges in pieces, unless that was done before; `kind` is the kind of the nodes.

    Returns
    -------
    dict
        Manifest: pieces (path, number of names, first name of each file, edges, types).
    """
    task = folder / "blocks" / block.key
    return run_once(task, task.read_manifest, partial(_encode, block, folder, edges, kind))


def _encode(block: TextBlock, folder: Store, edges: EdgeList, kind: str, attempt: Store) -> dict[str, Any]:
    pieces = list[dict[str, Any]]()
    batches = (columns for columns in read_edges(block, edges, kind, folder.options, folder.timeout) if len(columns[0]))
    for held in batched(batches, lambda columns: len(columns[0]), PIECE):
        path = f"blocks/{block.key}/{attempt.name}/{len(pieces)}"
        columns = dict(zip(edges.roles, map(pa.concat_arrays, zip(*held, strict=True)), strict=True))
        names, types = _write_piece(folder / path, columns)
        first, n_edges = names[::FILE_NAMES].to_pylist(), len(columns["source"])
        pieces.append({"path": path, "names": len(names), "first": first, "edges": n_edges, "types": types})
    return {"pieces": pieces}


def pieces_of(manifest: Mapping[str, Any]) -> list[EdgePiece]:
    """Return the pieces in a block's manifest."""
    return [EdgePiece(p["path"], p["names"], p["first"], p["edges"], p.get("types", [])) for p in manifest["pieces"]]


def _write_piece(folder: Store, columns: dict[str, Any]) -> tuple[Any, list[str]]:
    """Write names, codes and weights; return the names, and the nodes' types."""
    names, codes = _sorted_codes(pa.concat_arrays([columns["source"], columns["target"]]))
    pairs = codes.reshape(2, -1).T
    write_parts(folder, "codes", [0, len(pairs)], pairs, named=True)
    if (weights := columns.get("weight")) is not None:
        write_parts(folder, "weights", [0, len(weights)], weights.to_numpy()[:, None], named=True)
    stored, types = {_COLUMN: names}, list[str]()
    if "source_type" in columns:
        of_nodes = pa.concat_arrays([columns["source_type"], columns["target_type"]])
        types = sorted_types(of_nodes.unique().to_pylist())
        stored[_TYPE] = pa.array(types).take(pa.array(one_each(names, codes, codes_of(of_nodes, types), types)))
    table = pa.table(stored)
    for k, start in enumerate(range(0, len(names), FILE_NAMES)):
        write_table(folder, _file(k), table.slice(start, FILE_NAMES))
    return names, types


def _sorted_codes(nodes: Any) -> tuple[Any, Int32Array]:
    """Return the distinct nodes, sorted, and the index of each node among them."""
    encoded = nodes.dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    rank = np.empty(len(order), np.int32)
    rank[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    return encoded.dictionary.take(order), rank[encoded.indices.to_numpy()]


def _file(number: int) -> str:
    return f"names-{number}.parquet"


def ranges_of(pieces: Sequence[EdgePiece]) -> list[NameRange]:
    """Divide all names at splitters; a range has about as many names of all pieces as another."""
    firsts = ((piece, k, name) for piece in pieces for k, name in enumerate(piece.first))
    # The first names of files, sorted, and how many names are in these
    sizes = sorted((name, min(FILE_NAMES, piece.size - k * FILE_NAMES)) for piece, k, name in firsts)
    before = [0, *accumulate(size for _, size in sizes)]
    splitters = [
        name
        for (name, _), (at, after) in zip(sizes, pairwise(before), strict=True)
        if at // RANGE_NAMES < after // RANGE_NAMES
    ]
    limits: list[Name | None] = [None, *sorted(set(splitters) - {sizes[0][0]}), None]  # no range is empty
    return [
        NameRange(low, high, [(piece.path, _files_between(piece.first, low, high)) for piece in pieces])
        for low, high in pairwise(limits)
    ]


def _files_between(first: list[Any], low: Name | None, high: Name | None) -> range:
    """Return the numbers of the files that may hold names between limits; `first` is the first name of each."""
    begin = 0 if low is None else max(0, bisect_right(first, low) - 1)
    return range(begin, len(first) if high is None else bisect_left(first, high))


class Merged(NamedTuple):
    """The nodes of a range: their files, the bytes of their names, and the number of nodes of each type."""

    names: Names
    size: int
    of_types: list[int]


def merge_range(folder: Store, number: int, names: NameRange, types: Sequence[str]) -> Merged:
    """Task: write the distinct nodes of a range, sorted, with the codes of their types, and the ranks of each piece's.

    Raises
    ------
    InputError
        If a node has two types.
    """
    parts = [[_between(folder / path, k, names, types) for k in numbers] for path, numbers in names.files]
    files = [file for part in parts for file in part]
    distinct, ranks = _sorted_codes(pa.concat_arrays([nodes for nodes, _ in files]))
    path = f"names/{number}/{new_attempt()}"
    edges = np.cumsum([0, *(sum(len(nodes) for nodes, _ in part) for part in parts)])
    write_parts(folder / path, "ranks", edges, ranks[:, None], named=True)
    write_table(folder / path, _file(0), pa.table({_COLUMN: distinct}))
    of_types = list[int]()
    if types:
        codes = one_each(distinct, ranks, np.concatenate([codes for _, codes in files]), types)
        write_parts(folder / path, "types", [0, len(codes)], codes[:, None], named=True)
        of_types = np.bincount(codes, minlength=len(types)).tolist()
    return Merged(Names(path, len(distinct)), distinct.nbytes, of_types)


def _between(folder: Store, number: int, limits: NameRange, types: Sequence[str]) -> tuple[Any, UInt8Array]:
    """Return the names of a file that are in a range, and the codes of their types, if any."""
    table = read_table(folder, _file(number), [_COLUMN, _TYPE] if types else [_COLUMN])
    names = table.column(_COLUMN).combine_chunks()
    codes = codes_of(table.column(_TYPE).combine_chunks(), types) if types else np.empty(0, np.uint8)
    begin = 0 if limits.low is None else _below(names, limits.low)
    end = len(names) if limits.high is None else _below(names, limits.high)
    return names.slice(begin, end - begin), codes[begin:end]


def _below(names: Any, limit: Name) -> int:
    """Return how many names are below a limit."""
    return int(pc.sum(pc.less(names, pa.scalar(limit, names.type))).as_py() or 0)


def read_names(folder: Store, names: Sequence[Names]) -> Any:
    """Read sorted nodes as an Arrow array of int64 or large_string.

    Raises
    ------
    DamageError
        If a file is missing or damaged.
    """
    return pa.concat_arrays(list(each_range(folder, names)))


def each_range(folder: Store, names: Sequence[Names]) -> Iterator[Any]:
    """Read the nodes of one range after the other; raises as `read_names` does."""
    for part in names:
        yield read_column(folder / part.path, _file(0), _COLUMN)


def each_types(folder: Store, names: Sequence[Names]) -> Iterator[UInt8Array]:
    """Read the codes of the types of the nodes of one range after the other; raises as `read_names` does."""
    for part in names:
        yield read_part(folder / part.path, "types", 1, 0, np.uint8, 1)[:, 0]


def read_types(folder: Store, names: Sequence[Names]) -> UInt8Array:
    """Task: read the codes of the types of all nodes; workers of one host share them. Raises as `read_names` does."""
    return share(np.concatenate(list(each_types(folder, names))))


class GraphLayout(NamedTuple):
    """Arguments shared by all tasks of a graph: its folder, numbers of nodes and parts, and the kind of edges.

    `types` are the types of nodes, if any.
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
    """Return the edges of the piece `number`, as numbers of nodes.

    Returns
    -------
    pairs
        Source and target, shape (n, 2).
    types
        Codes of their types, shape (n, 2), or (n, 0) without types.
    weights
        Shape (n,).
    """
    folder, numbers, base = layout.folder / piece.path, [], 0
    for part in ranges:
        numbers.append(base + read_part(layout.folder / part.path, "ranks", n_pieces, number, np.int32, 1)[:, 0])
        base += part.size
    codes = read_part(folder, "codes", 1, 0, np.int32, 2)
    weights = read_part(folder, "weights", 1, 0, np.float64, 1)[:, 0] if layout.weighted else np.ones(len(codes))
    types = np.empty((len(codes), 0), np.uint8)
    if layout.types:
        files = (read_column(folder, _file(k), _TYPE) for k in range(len(piece.first)))
        types = np.concatenate([codes_of(file, layout.types) for file in files])[codes]
    return np.concatenate(numbers)[codes], types, weights


def sorted_types(types: Iterable[str]) -> list[str]:
    """Return distinct types, sorted.

    Raises
    ------
    InputError
        If there are more than `MOST_TYPES`.
    """
    distinct = sorted({*types})
    if len(distinct) > MOST_TYPES:
        raise InputError(
            f"Nodes have {len(distinct):,} types ({', '.join(distinct[:_SHOWN])}, ...); at most {MOST_TYPES} are "
            "supported.",
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
        Indices of nodes, each at least once, and the codes of their types, shape (n,).
    types
        All types.

    Raises
    ------
    InputError
        If a node has two types.
    """
    code_of = np.empty(len(names), np.uint8)
    code_of[nodes] = codes
    other = np.flatnonzero(code_of[nodes] != codes)
    if len(other):
        node, code = nodes[other[0]], codes[other[0]]
        both = " and ".join(sorted([types[code], types[code_of[node]]]))
        raise InputError(f"The node {names[node].as_py()!r} has two types, {both}.", "Give it the same one everywhere.")
    return code_of
