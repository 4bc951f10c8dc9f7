"""What is believed of an index's file: usearch follows its links unchecked, so they are checked before.

The file is usearch's own, of version 2: rows, columns and the matrix; a head; the graph. The graph is a head of five
numbers, each node's level, and the nodes: key, level, and for each level how many neighbours there are and which, in
as many places as there may be.
"""

import numpy as np
import numpy.typing as npt

from daskw2v.limits import refused

DTYPE = np.dtype("<f2")  # numbers in the matrix: candidates are found by it, and ranked by the model's own
_SHAPE = np.dtype("<u4")
_HEAD = np.dtype(
    [
        ("magic", "S7"), ("version", "<u2", 3), ("metric", "S1"), ("scalar", "u1"), ("key", "u1"), ("slot", "u1"),
        ("present", "<u8"), ("deleted", "<u8"), ("dimensions", "<u8"), ("multi", "u1"), ("reserved", "V22"),
    ]
)  # fmt: skip
_GRAPH = np.dtype([(name, "<u8") for name in ("size", "most_above", "most", "top", "entry")])
_LEVEL = np.dtype("<i2")
_NODE = 8 + _LEVEL.itemsize  # bytes of a node before its neighbours
_SLOT = np.dtype("<u4")
_BLOCK = 1 << 16  # nodes looked at together
MOST_LINKS = 1 << 10  # neighbours in one list
_KINDS = (b"usearch", 2, b"i", 12, 14, 15)  # inner products of half floats, by keys u64 and slots u32

Bytes = npt.NDArray[np.uint8]


def check_graph(content: Bytes, words: int, dimensions: int, place: str) -> None:
    """Refuse a file that is no index of so many words, or whose links lead anywhere else than to its nodes.

    Raises
    ------
    StoreError
        If it is not what usearch writes.
    """
    problem = _problem(content, words, dimensions)
    if problem:
        raise refused(place, problem)


def _problem(content: Bytes, words: int, dimensions: int) -> str:
    """Return what is wrong with a file; nothing where all is right."""
    matrix = 2 * _SHAPE.itemsize
    heads = matrix + words * dimensions * DTYPE.itemsize
    levels_at = heads + _HEAD.itemsize + _GRAPH.itemsize
    nodes_at = levels_at + words * _LEVEL.itemsize
    if len(content) < nodes_at:
        return f"has {len(content):,} bytes, too few for {words:,} words of {dimensions} dimensions"
    shape = content[:matrix].view(_SHAPE).tolist()
    head = content[heads:][: _HEAD.itemsize].view(_HEAD)[0]
    kinds = (head["magic"], head["version"][0], head["metric"], head["scalar"], head["key"], head["slot"])
    counts = (*shape, head["present"], head["deleted"], head["dimensions"], head["multi"])
    if kinds != _KINDS or counts != (words, dimensions * DTYPE.itemsize, words, 0, dimensions, 0):
        return f"is no index of {words:,} words of {dimensions} dimensions"
    size, most_above, most, top, entry = content[levels_at - _GRAPH.itemsize : levels_at].view(_GRAPH)[0].tolist()
    levels = content[levels_at:nodes_at].view(_LEVEL)
    if size != words or not 0 < most_above <= most <= MOST_LINKS or entry >= words or top != levels[entry]:
        return "has the head of another graph"
    if levels.min() < 0 or levels.max() != top:
        return "has nodes on levels that do not exist"
    return _nodes_problem(content[nodes_at:], levels.astype(np.int64), most, most_above)


def _nodes_problem(nodes: Bytes, levels: npt.NDArray[np.int64], most: int, most_above: int) -> str:
    base, above = _list_bytes(most), _list_bytes(most_above)
    ends = np.cumsum(_NODE + base + levels * above)
    if ends[-1] != len(nodes):
        return f"has {len(nodes):,} bytes of nodes, where its levels need {ends[-1]:,}"
    starts = np.concatenate([[0], ends[:-1]])
    for level in range(levels.max() + 1):
        chosen = np.flatnonzero(levels >= level)
        lists_at = starts[chosen] + _NODE + (level and base + (level - 1) * above)
        for first in range(0, len(chosen), _BLOCK):
            part = slice(first, first + _BLOCK)
            if level == 0 and not _are_heads(_gather(nodes, starts[part], _NODE), levels[part], len(levels)):
                return "has nodes with the keys or levels of others"
            lists = _gather(nodes, lists_at[part], above if level else base).view(_SLOT)
            if not _are_lists(lists, levels, level):
                return "has links that lead out of it"
    return ""


def _list_bytes(most: int) -> int:
    return _SLOT.itemsize * (1 + most)


def _gather(nodes: Bytes, starts: npt.NDArray[np.int64], n: int) -> Bytes:
    """Return n bytes from each place, shape (places, n)."""
    found: Bytes = nodes[starts[:, None] + np.arange(n)]
    return found


def _are_heads(heads: Bytes, levels: npt.NDArray[np.int64], words: int) -> bool:
    keys, own = heads[:, :8].copy().view("<u8")[:, 0], heads[:, 8:].copy().view(_LEVEL)[:, 0]
    return bool((keys < words).all() and (own == levels).all())


def _are_lists(lists: npt.NDArray[np.uint32], levels: npt.NDArray[np.int64], level: int) -> bool:
    """Tell whether lists of a level have no more neighbours than places, all of them nodes of this level."""
    counts, slots = lists[:, :1], lists[:, 1:]
    used = slots[np.arange(slots.shape[1]) < counts]
    return bool((counts <= slots.shape[1]).all() and (used < len(levels)).all() and (levels[used] >= level).all())
