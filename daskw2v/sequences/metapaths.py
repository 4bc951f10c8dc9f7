"""Metapaths: which row of a node each step of a walk reads.

A node has a row for each type of targets. A step to a node of some type is a step by weights alone in the row of that
type (metapath2vec, Dong, Chawla and Swami 2017, section 3.2). Without types a node has one row, which all steps read.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from daskw2v.errors import ParameterError
from daskw2v.kernels.jit import inline
from daskw2v.sequences.kinds import Walks
from daskw2v.types import UInt8Array


class Metapath(NamedTuple):
    """Types of the nodes of a walk.

    Parameters
    ----------
    types
        Code of the type of each node, shape (nodes of the longest walk,); 0 without types.
    n_types
        Number of types, and of rows of a node.
    """

    types: UInt8Array
    n_types: int


def metapath_of(walks: Walks, types: Mapping[str, int]) -> Metapath:
    """Return the metapath of walks on a graph whose types these are; without one, that of nodes without types.

    Raises
    ------
    ParameterError
        If it names a type that no node has.
    """
    codes = {name: code for code, name in enumerate(types)}
    if unknown := [name for name in walks.metapath if name not in codes]:
        raise ParameterError(
            f"metapath={walks.metapath}, but no node has the type {unknown[0]!r}.",
            f"The types of nodes are: {', '.join(types)}.",
        )
    path = [codes[name] for name in walks.metapath[:-1]] or [0]
    cycle = np.resize(np.array(path, np.uint8), walks.length)
    return Metapath(cycle, max(1, len(types)))


@inline
def row_of(path: Any, node: Any, index: Any) -> Any:
    """Return the row of a node whose targets are of the type of node `index` of a walk."""
    return node * path.n_types + path.types[index]
