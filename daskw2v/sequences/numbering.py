"""Tasks that number the nodes of an edge list: every block is read once, and its edges kept as codes.

    blocks/<key>/<attempt>/<i>/   a piece of a block: its nodes in order, `names-<k>.parquet`; `codes` (n, 2) int32, the
                                  places of source and target among them; `weights` (n, 1) float64
    names/<attempt>/              nodes of several pieces in order; at last, of all

A node's number is its place among all nodes in order: it does not depend on how files are cut.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from daskw2v.corpus.sources import Block
from daskw2v.raw import read_part, write_parts
from daskw2v.sequences.edges import EdgeList, read_edges
from daskw2v.sequences.lists import read_column, write_columns
from daskw2v.shards.tasks import new_attempt
from daskw2v.storage import Store

try:
    import pyarrow as pa
    import pyarrow.compute as pc
except ImportError:  # find_sources has told the user
    pa = pc = None

PIECE = 1 << 21  # edges of a piece, about: a task holds some 200 MB of them
_NAMES = 1 << 21  # in a file
_COLUMN = "name"


class Names(NamedTuple):
    """Distinct nodes in order, as files.

    Parameters
    ----------
    path
        Where they lie, below the home of the graph.
    size
        How many there are.
    """

    path: str
    size: int


class Piece(NamedTuple):
    """Some edges of a block, in the place of their names."""

    names: Names
    edges: int
    weighted: bool


def encode_block(block: Block, home: Store, edges: EdgeList) -> dict[str, Any]:
    """Task: read a block and write its edges in pieces; one that was read before is not read again.

    Returns
    -------
    dict
        Its manifest: pieces (path, names, edges), and whether nodes are strings.
    """
    place = home / "blocks" / block.key
    known = place.read_manifest()
    if known is not None:
        return known
    attempt, pieces, held, n_held, strings = new_attempt(), list[dict[str, Any]](), list[list[Any]](), 0, False

    def finish() -> None:
        path = f"blocks/{block.key}/{attempt}/{len(pieces)}"
        columns = [pa.concat_arrays(parts) for parts in zip(*held, strict=True)]
        pieces.append({"path": path, "names": _write_piece(home / path, columns), "edges": len(columns[0])})
        held.clear()

    for columns in read_edges(block, edges, home.options, home.patience):
        strings = not pa.types.is_integer(columns[0].type)
        held.append(columns)
        n_held += len(columns[0])
        if n_held >= PIECE:
            finish()
            n_held = 0
    if n_held:
        finish()
    manifest = {"pieces": pieces, "strings": strings}
    place.write_manifest(manifest)
    return manifest


def pieces_of(manifest: dict[str, Any], edges: EdgeList) -> list[Piece]:
    """Return the pieces that a block's manifest names."""
    weighted = edges.weight is not None
    return [Piece(Names(p["path"], p["names"]), p["edges"], weighted) for p in manifest["pieces"]]


def _write_piece(place: Store, columns: list[Any]) -> int:
    """Write names, codes and weights; return the number of names."""
    encoded = pa.concat_arrays(columns[:2]).dictionary_encode()
    order = pc.sort_indices(encoded.dictionary)
    rank = np.empty(len(order), np.int32)
    rank[order.to_numpy()] = np.arange(len(order), dtype=np.int32)
    codes = rank[encoded.indices.to_numpy()].reshape(2, -1).T
    write_parts(place, "codes", [0, len(codes)], codes)
    for weights in columns[2:]:
        write_parts(place, "weights", [0, len(weights)], weights.to_numpy()[:, None])
    _write_names(place, encoded.dictionary.take(order))
    return len(order)


def _write_names(place: Store, names: Any) -> None:
    for k, start in enumerate(range(0, len(names), _NAMES)):
        write_columns(place, f"names-{k}.parquet", {_COLUMN: names.slice(start, _NAMES)})


def read_names(home: Store, names: Names) -> Any:
    """Read nodes in order, as an Arrow array of int64 or large_string.

    Raises
    ------
    DamageError
        If some of them are gone or damaged.
    """
    files = range(-(-names.size // _NAMES))
    return pa.concat_arrays([read_column(home / names.path, f"names-{k}.parquet", _COLUMN) for k in files])


def merge_names(home: Store, parts: Sequence[Names]) -> Names:
    """Task: write the nodes of several parts, in order and each once."""
    distinct = pc.unique(pa.concat_arrays([read_names(home, part) for part in parts]))
    names = Names(f"names/{new_attempt()}", len(distinct))
    _write_names(home / names.path, distinct.take(pc.sort_indices(distinct)))
    return names


def read_piece(home: Store, piece: Piece, nodes: Any) -> tuple[Any, Any]:
    """Return a piece's edges by numbers of their nodes, shape (n, 2) int32, and their weights, (n,) float64."""
    place = home / piece.names.path
    numbers = pc.index_in(read_names(home, piece.names), value_set=nodes).to_numpy()
    pairs = numbers[read_part(place, "codes", 1, 0, np.int32, 2)]
    return pairs, read_part(place, "weights", 1, 0, np.float64, 1)[:, 0] if piece.weighted else np.ones(len(pairs))
