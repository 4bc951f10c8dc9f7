"""Walks that travel through the partitions of a graph, in rounds.

    partitions/<n>/<p>/<attempt>/            rows of partition p of n, in files that are read fast: `starts` int64,
                                             `targets` int32, `weights` float64 if not all are 1, and `types` uint8 of
                                             its nodes if they have types
    rounds/<n>/<number>/<round>/<p>/<attempt>/   of the walkers that were in partition p: `trail/<k>` (steps, 3) int32,
                                             their steps, in parts by group of files; `walkers/<k>` (walkers, ...)
                                             int32, in parts by the partition they go to; `rows/<k>` (n, 2) int32,
                                             nodes and degrees of rows that they bring, and `targets/<k>` (edges, 1)

In a round each partition is read by one task, which lets the walkers there step until they leave, a group of them
after the other. The next round reads their files. Walkers are deleted after the next round; trails after they were
written as walks, in the order of walks, with the names of nodes. A finished task is not run again.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import count
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from daskw2v.corpus.streams import batched
from daskw2v.extras import Extra
from daskw2v.kernels.distinct import distinct
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.sequences import steps
from daskw2v.sequences.files import table_of_lists, write_table
from daskw2v.sequences.graph import StoredGraph
from daskw2v.sequences.numbering import each_range, each_types
from daskw2v.sequences.rows import GraphRows, load_rows, plain
from daskw2v.sequences.settings import Walks
from daskw2v.sequences.steps import Brought, Partition, StepRule
from daskw2v.store.limits import typed
from daskw2v.store.partfile import read_part, write_parts
from daskw2v.store.stage import OpenStage, run_once
from daskw2v.store.storage import Store
from daskw2v.types import Int32Array, Int64Array, UInt8Array

pa = Extra("pyarrow", "arrow")

TASK_FILES = 4  # files that a task writes
TASK_WALKERS = 1 << 20  # that a task moves at once, or twice as many
TASK_STEPS = 1 << 22  # steps that it holds
_HALF = 32  # bits
T = TypeVar("T")


class WalkFiles(NamedTuple):
    """Files of walks.

    Parameters
    ----------
    folder
        Their folder.
    graph, walks
        The graph, and the number and kind of walks on it.
    column
        Name of the column of lists.
    n
        Number of files with the walks of one number.
    numbers
        Number of numbers whose walks are in one file; more than one only if `n` is one.
    """

    folder: Store
    graph: StoredGraph
    walks: Walks
    column: str
    n: int
    numbers: int

    def rule(self, number: int) -> StepRule:
        """Return how the steps of the walks of a number are drawn."""
        path = steps.metapath_of(self.walks, self.graph.types)
        return StepRule(stream(self.walks.seed, Purpose.WALK, number), 1.0 / self.walks.p, 1.0 / self.walks.q, path)

    @property
    def keys(self) -> list[tuple[int, int]]:
        """First number, and part of the walks of each file, in order."""
        return [(number, part) for number in range(0, self.walks.number, self.numbers) for part in range(self.n)]

    def numbers_from(self, number: int) -> range:
        """Return the numbers of the walks in the file that begins with a number."""
        return range(number, min(number + self.numbers, self.walks.number))

    def name(self, number: int, part: int) -> str:
        """Return the name of the file of a part of the walks of a number, and of the next ones."""
        return f"part-{number // self.numbers * self.n + part:06d}.parquet"

    def start(self, number: int) -> np.uint64:
        """Return the key of the order of walks of a number."""
        return stream(self.walks.seed, Purpose.START, number)


class StoredPartition(NamedTuple):
    """A partition in files: its folder, and whether all weights are 1."""

    path: str
    even: bool


class Journey(NamedTuple):
    """Walks of one number, one from each node, through the partitions of a graph."""

    files: WalkFiles
    number: int
    parts: tuple[StoredPartition, ...]

    @property
    def n(self) -> int:
        """Number of partitions."""
        return len(self.parts)

    @property
    def folder(self) -> Store:
        """Folder of the rounds; another number of partitions has another one."""
        return self.files.folder / "rounds" / str(self.n) / str(self.number)

    @property
    def groups(self) -> list[range]:
        """Files that are written together, by their numbers."""
        return [range(begin, min(begin + TASK_FILES, self.files.n)) for begin in range(0, self.files.n, TASK_FILES)]

    @property
    def columns(self) -> int:
        """Columns of a walker."""
        return steps.NARROW if self.files.walks.p == self.files.walks.q == 1.0 else steps.WIDE


class Sent(NamedTuple):
    """Output of a task of a round: its folder, numbers of files, files of walkers with rows, and walkers under way."""

    path: str
    walkers: int
    trails: int
    with_rows: tuple[int, ...]
    under_way: int


def partitioned(stage: OpenStage, graph: StoredGraph, n: int) -> tuple[StoredPartition, ...]:
    """Divide a graph into `n` partitions."""
    return tuple(stage.map("divide graph", _divide, [(stage.folder, graph, number, n) for number in range(n)], 0))


def _divide(folder: Store, graph: StoredGraph, number: int, n: int) -> StoredPartition:
    """Task: write a partition, unless that was done before."""

    def make(attempt: Store) -> dict[str, Any]:
        nodes = range(number, graph.n_nodes, n)
        rows = load_rows(graph.folder, len(nodes), graph.n_nodes, graph.rows[number::n], graph.n_types)
        arrays = {**rows._asdict(), **({"types": _types_of(graph, nodes)} if graph.types else {})}
        for name, array in arrays.items():
            write_parts(attempt, name, [0, len(array)], array[:, None], named=True)
        return {"path": attempt.name, "even": not len(rows.weights)}

    return _run_once(StoredPartition, folder, f"partitions/{n}/{number}", make)


def _types_of(graph: StoredGraph, nodes: range) -> UInt8Array:
    """Return the codes of the types of a partition's nodes, of which only one range is read at a time."""
    codes, base = [], 0
    for types in each_types(graph.folder, graph.names):
        codes.append(types[(nodes.start - base) % nodes.step :: nodes.step])
        base += len(types)
    return np.concatenate(codes)


def _run_once(kind: type[T], folder: Store, path: str, make: Callable[[Store], dict[str, Any]]) -> T:
    """Return what a task writes below a path; its folder is named by the field `path`."""
    task = folder / path
    made = run_once(task, task.read_manifest, make)
    fields = {name: value for name, value in made.items() if name != "format_version"}
    return typed(kind, {**fields, "path": f"{path}/{made['path']}"}, task.url)


def travelled(stage: OpenStage, journey: Journey) -> list[Sent]:
    """Let all walkers go to the end of their walks; return what tasks wrote."""
    sent, before = list[Sent](), list[Sent]()
    for number in count():
        jobs = [(journey, number, part, before) for part in range(journey.n)]
        now = stage.map(f"walk {journey.number}, round {number}", _travel, jobs, 0)
        for earlier in before:
            for files in ("walkers", "rows", "targets"):
                (journey.folder / earlier.path / files).remove()
        sent += now
        before = [one for one in now if one.under_way]
        if not before:
            break
    return sent


def _travel(journey: Journey, number: int, part: int, before: Sequence[Sent]) -> Sent:
    """Task: let walkers step in a partition, unless that was done before; `before` is what the last round wrote."""
    return _run_once(Sent, journey.folder, f"{number}/{part}", partial(_moved, journey, part, before))


def _moved(journey: Journey, number: int, before: Sequence[Sent], folder: Store) -> dict[str, Any]:
    files, rule = journey.files, journey.files.rule(journey.number)
    trail = np.empty((max(TASK_STEPS, files.walks.length), 3), np.int32)
    part, under_way, trails, walkers, with_rows = _load(journey, number), 0, 0, 0, list[int]()
    for here, brought in _arrived(journey, number, before) if before else _starting(journey, number):
        at = 0
        while at < len(here):
            at, n = steps.advance(part, brought, rule, here, at, trail)
            groups = steps.parts_of(trail[:n, 0], files.start(journey.number), files.n) // TASK_FILES
            _write_by(folder / "trail", str(trails), groups, trail[:n], len(journey.groups))
            trails += 1
        leaving = here[here[:, steps.NODE] >= 0]
        to = steps.owners(leaving, journey.n)
        _write_by(folder / "walkers", str(walkers), to, leaving, journey.n)
        if _write_rows(folder, str(walkers), part, leaving, to):
            with_rows.append(walkers)
        under_way += len(leaving)
        walkers += 1
    made = {"walkers": walkers, "trails": trails, "with_rows": with_rows, "under_way": under_way}
    return {"path": folder.name, **made}


def _load(journey: Journey, number: int) -> Partition:
    read = partial(_read, journey, number)
    weights = np.empty(0) if journey.parts[number].even else read("weights", np.float64)
    rows = plain(GraphRows(read("starts", np.int64), read("targets", np.int32), weights))
    return Partition(rows, number, journey.n)


def _read(journey: Journey, number: int, name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Read an array of a partition."""
    return read_part(journey.files.folder / journey.parts[number].path, name, 1, 0, dtype, 1)[:, 0]


def _starting(journey: Journey, number: int) -> Iterator[tuple[Int32Array, Brought]]:
    """Yield new walkers of a partition."""
    files, none = journey.files, _brought(np.empty((0, 2), np.int32), np.empty((0, 1), np.int32))
    nodes = range(number, files.graph.n_nodes, journey.n)
    types = _read(journey, number, "types", np.uint8) if files.graph.types else None
    for begin in range(0, len(nodes), TASK_WALKERS):
        first = np.asarray(nodes[begin : begin + TASK_WALKERS], np.int32)
        if types is not None:
            first = first[types[begin : begin + TASK_WALKERS] == files.rule(0).path.types[0]]
        walkers = np.zeros((len(first), journey.columns), np.int32)
        walkers[:, steps.FIRST], walkers[:, steps.LENGTH], walkers[:, steps.NODE] = first, 1, first
        walkers[:, steps.PREVIOUS : steps.PREVIOUS + 1] = -1
        yield walkers, none


def _arrived(journey: Journey, number: int, before: Sequence[Sent]) -> Iterator[tuple[Int32Array, Brought]]:
    """Yield walkers that go to a partition, with what they bring."""

    def read(sent: Sent, k: int, kind: str, columns: int) -> Int32Array:
        if kind != "walkers" and k not in sent.with_rows:
            return np.empty((0, columns), np.int32)
        return read_part(journey.folder / sent.path / kind, str(k), journey.n, number, np.int32, columns)

    arrived = (
        (read(sent, k, "walkers", journey.columns), read(sent, k, "rows", 2), read(sent, k, "targets", 1))
        for sent in before
        for k in range(sent.walkers)
    )
    for held in batched(arrived, lambda arrays: len(arrays[0]), TASK_WALKERS):
        walkers, rows, targets = map(np.concatenate, zip(*held, strict=True))
        yield walkers, _brought(rows, targets)


def _brought(rows: Int32Array, targets: Int32Array) -> Brought:
    """Return rows by their nodes and degrees, shape (n, 2), and the targets of all of them, shape (edges, 1)."""
    nodes, degrees = rows.T
    order = np.argsort(nodes, kind="stable")
    starts = np.append(0, np.cumsum(degrees, dtype=np.int64))
    return Brought(nodes[order], order, plain(GraphRows(starts, targets[:, 0], np.empty(0))))


def _write_by(folder: Store, name: str, keys: Int64Array, items: Int32Array, n: int) -> None:
    """Write items in `n` parts by their keys."""
    keys = keys.astype(np.min_scalar_type(n))  # NumPy sorts 16 bits by counting
    order = np.argsort(keys, kind="stable")
    write_parts(folder, name, np.searchsorted(keys[order], np.arange(n + 1)), items[order], named=True)


def _write_rows(folder: Store, name: str, part: Partition, leaving: Int32Array, to: Int64Array) -> bool:
    """Write the rows that walkers bring along, each once for a partition; return whether there are any."""
    if leaving.shape[1] == steps.NARROW or not (bring := leaving[:, steps.STATE] == steps.BRINGS).any():
        return False
    keys = distinct(to[bring].astype(np.int64) << _HALF | leaving[bring, steps.PREVIOUS])
    nodes, edges = keys & (1 << _HALF) - 1, np.searchsorted(keys >> _HALF, np.arange(part.n + 1))
    starts, rows = part.graph.starts, nodes // part.n
    degrees = starts[rows + 1] - starts[rows]
    ends = np.append(0, np.cumsum(degrees))
    targets = part.graph.targets[np.arange(ends[-1]) + np.repeat(starts[rows] - ends[:-1], degrees)]
    write_parts(folder / "rows", name, edges, np.stack([nodes, degrees], 1).astype(np.int32), named=True)
    write_parts(folder / "targets", name, ends[edges], targets[:, None], named=True)
    return True


def write_group(journeys: Sequence[tuple[Journey, Sequence[Sent]]], group: int) -> None:
    """Task: write the files of a group, of walks of one number, or of several that share a file."""
    first = journeys[0][0]
    lists = [_lists(journey, group, sent) for journey, sent in journeys]
    for number, of_file in zip(first.groups[group], zip(*lists, strict=True), strict=True):
        nodes, lengths = (pa.concat_arrays(parts) for parts in zip(*of_file, strict=True))
        table = table_of_lists(first.files.column, nodes, np.append(0, np.cumsum(lengths)))
        write_table(first.files.folder, first.files.name(first.number, number), table)


def _lists(journey: Journey, group: int, sent: Sequence[Sent]) -> list[tuple[Any, Any]]:
    """Return the names of nodes and the lengths of the walks of each file of a group, as arrays of Arrow."""
    files, numbers = journey.files, journey.groups[group]
    n_nodes, start = files.graph.n_nodes, files.start(journey.number)
    first = _beginning(files, [steps.nodes_of_part(n_nodes, start, number, files.n) for number in numbers])
    walks = _walks(journey, group, sent, np.concatenate(first))
    present = walks >= 0
    distinct, codes = np.unique(walks[present], return_inverse=True)
    ranges, lengths = each_range(files.graph.folder, files.graph.names), present.sum(1)
    names = pa.concat_arrays(list(_taken(ranges, distinct)))
    by_file = np.split(lengths, np.cumsum([len(nodes) for nodes in first])[:-1])
    codes_by_file = np.split(codes, np.cumsum([of_file.sum() for of_file in by_file])[:-1])
    return [(names.take(pa.array(k)), pa.array(of_file)) for k, of_file in zip(codes_by_file, by_file, strict=True)]


def _walks(journey: Journey, group: int, sent: Sequence[Sent], first: Int32Array) -> Int32Array:
    """Return the nodes of walks from their first ones, shape (walks, length); -1 after the end of a walk."""
    walks = np.full((len(first), journey.files.walks.length), -1, np.int32)
    walks[:, 0] = first
    order = np.argsort(first)
    ordered = first[order]
    for output in sent:
        for k in range(output.trails):
            trail = read_part(journey.folder / output.path / "trail", str(k), len(journey.groups), group, np.int32, 3)
            walks[order[np.searchsorted(ordered, trail[:, 0])], trail[:, 1]] = trail[:, 2]
    return walks


def _beginning(files: WalkFiles, nodes: Sequence[Int32Array]) -> list[Int32Array]:
    """Return the nodes of each file where walks begin."""
    graph = files.graph
    if not graph.types:
        return list(nodes)
    ascending = np.sort(np.concatenate(nodes))
    types = np.concatenate(list(_taken(each_types(graph.folder, graph.names), ascending)))
    first = ascending[types == files.rule(0).path.types[0]]
    return [of_file[np.isin(of_file, first)] for of_file in nodes]


def _taken(ranges: Iterator[Any], nodes: Int32Array) -> Iterator[Any]:
    """Yield the items of ascending nodes, range by range; only one range is read at a time."""
    base = 0
    for items in ranges:
        begin, end = np.searchsorted(nodes, [base, base + len(items)])
        yield items.take(nodes[begin:end] - base)
        base += len(items)
