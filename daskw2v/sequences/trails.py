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


def write_group(journeys: Sequence[tuple[Journey, Sequence[Sent]]], group: int) -> None:
    """Task: write the files of a group, of walks of one number, or of several that share a file."""
    first = journeys[0][0]
    found = [_lists(journey, group, sent) for journey, sent in journeys]
    for number, of_file in zip(first.groups[group], zip(*found, strict=True), strict=True):
        nodes, lengths = (pa.concat_arrays(parts) for parts in zip(*of_file, strict=True))
        edges = np.append(0, np.cumsum(lengths))
        write_lists(first.files.home, first.files.name(first.number, number), first.files.column, nodes, edges)


def _lists(journey: Journey, group: int, sent: Sequence[Sent]) -> list[tuple[Any, Any]]:
    """Return the names of nodes and the lengths of the walks of each file of a group, as arrays of Arrow."""
    files, numbers = journey.files, journey.groups[group]
    n_nodes, start = files.graph.n_nodes, files.start(journey.number)
    first = _beginning(files, [nodes_of_part(n_nodes, start, number, files.n) for number in numbers])
    walks = _walks(journey, group, sent, np.concatenate(first))
    there = walks >= 0
    distinct, codes = np.unique(walks[there], return_inverse=True)
    ranges, lengths = each_range(files.graph.home, files.graph.names), there.sum(1)
    names = pa.concat_arrays(list(_taken(ranges, distinct)))
    found, walk, node = list[tuple[Any, Any]](), 0, 0
    for part in first:
        of_file = lengths[walk : walk + len(part)]
        n = of_file.sum()
        found.append((names.take(pa.array(codes[node : node + n])), pa.array(of_file)))
        walk, node = walk + len(part), node + n
    return found


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
