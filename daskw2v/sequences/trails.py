"""Tasks that write what walkers left behind as walks, in the order of walks, with the names of nodes."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from daskw2v.extras import Extra
from daskw2v.kernels.jit import exact
from daskw2v.sequences.lists import write_lists
from daskw2v.sequences.numbering import each_range, each_types
from daskw2v.sequences.rounds import Journey, Sent, WalkFiles
from daskw2v.sequences.steps import nodes_of_part
from daskw2v.store.partfile import read_part
from daskw2v.types import Int32Array, Int64Array

pa = Extra("pyarrow", "arrow")


def write_group(journey: Journey, group: int, sent: Sequence[Sent]) -> None:
    """Task: write the files of a group."""
    files, numbers = journey.files, journey.groups[group]
    n_nodes, start = files.graph.n_nodes, files.start(journey.number)
    first = _beginning(files, [nodes_of_part(n_nodes, start, number, files.n) for number in numbers])
    walks = _walks(journey, group, sent, np.concatenate(first))
    there = walks >= 0
    distinct, codes = np.unique(walks[there], return_inverse=True)
    ranges, lengths = each_range(files.graph.home, files.graph.names), there.sum(1)
    names = pa.concat_arrays(list(_taken(ranges, distinct)))
    walk = node = 0
    for number, part in zip(numbers, first, strict=True):
        edges = np.append(0, np.cumsum(lengths[walk : walk + len(part)]))
        nodes = names.take(pa.array(codes[node : node + edges[-1]]))
        write_lists(files.home, files.name(journey.number, number), files.column, nodes, edges)
        walk, node = walk + len(part), node + edges[-1]


def _walks(journey: Journey, group: int, sent: Sequence[Sent], first: Int32Array) -> Int32Array:
    """Return the nodes of walks, given their first, shape (walks, length); -1 after the end of a walk."""
    walks = np.full((len(first), journey.files.walks.length), -1, np.int32)
    walks[:, 0] = first
    order = np.argsort(first)
    ordered = first[order]
    for one in sent:
        for k in range(one.trails):
            steps = read_part(journey.place / one.path / "trail", str(k), len(journey.groups), group, np.int32, 3)
            _place(steps, ordered, order, walks)
    return walks


@exact
def _place(steps: Int32Array, first: Int32Array, order: Int64Array, walks: Int32Array) -> None:
    """Write steps (first node, index, node) to their walks: that of first[i] is walks[order[i]]."""
    for i in range(len(steps)):
        walks[order[np.searchsorted(first, steps[i, 0])], steps[i, 1]] = steps[i, 2]


def _beginning(files: WalkFiles, nodes: Sequence[Int32Array]) -> list[Int32Array]:
    """Return those of the nodes of some files where walks begin."""
    graph = files.graph
    if not graph.types:
        return list(nodes)
    ascending = np.sort(np.concatenate(nodes))
    types = np.concatenate(list(_taken(each_types(graph.home, graph.names), ascending)))
    first = ascending[types == files.path.types[0]]
    return [of_file[np.isin(of_file, first)] for of_file in nodes]


def _taken(ranges: Iterator[Any], nodes: Int32Array) -> Iterator[Any]:
    """Yield what ranges hold of ascending nodes; only one range is read at a time."""
    base = 0
    for items in ranges:
        begin, end = np.searchsorted(nodes, [base, base + len(items)])
        yield items.take(nodes[begin:end] - base)
        base += len(items)
