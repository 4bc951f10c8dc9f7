"""Walks that travel through the partitions of a graph, in rounds.

    partitions/<n>/<p>/<attempt>/            rows of partition p of n, in files that are read fast: `starts` int64,
                                             `targets` int32, `weights` float64, empty if all are 1, and `types` uint8
                                             of its nodes if they have types
    rounds/<n>/<number>/<round>/<p>/<attempt>/   of the walkers that were in partition p: `trail/<k>` (steps, 3) int32,
                                             their steps, in parts by group of files; `walkers/<k>` (walkers, ...)
                                             int32, in parts by the partition they go to; `rows/<k>` (n, 2) int32,
                                             nodes and degrees of rows that they bring, and `targets/<k>` (edges, 1)

A walker is the state of a walk (see `steps`). In a round each partition is read by one task, which lets the walkers
there step until they leave, a number of walkers at a time. The next round reads their files. Walkers are deleted after
the next round, trails after they were written as walks, in the order of walks, with the names of nodes. A group is the
files of walks that one task writes. A finished task is not run again.
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
from daskw2v.sequences.files import make_list_table, write_table
from daskw2v.sequences.graph import StoredGraph
from daskw2v.sequences.numbering import read_name_ranges, read_type_ranges
from daskw2v.sequences.rows import GraphRows, as_readonly, load_rows
from daskw2v.sequences.settings import Walks
from daskw2v.sequences.steps import BroughtRows, Partition, StepRule
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
    """The Parquet files of walks.

    Walks have numbers: from each node one walk of each number in 0..walks.number-1.

    Parameters
    ----------
    folder
        Folder of the files.
    graph, walks
        The graph, and the number and kind of walks on it.
    column
        Name of the column of lists.
    n
        Number of files into which the walks of one number are divided.
    numbers
        How many consecutive numbers share a file; more than one only if `n` is one.
    """

    folder: Store
    graph: StoredGraph
    walks: Walks
    column: str
    n: int
    numbers: int

    def rule(self, number: int) -> StepRule:
        """Return the rule by which the steps of the walks of a number are drawn."""
        path = steps.encode_metapath(self.walks, self.graph.types)
        return StepRule(stream(self.walks.seed, Purpose.WALK, number), 1.0 / self.walks.p, 1.0 / self.walks.q, path)

    @property
    def keys(self) -> list[tuple[int, int]]:
        """For each file, in order: the first number of its walks, and the part of their first nodes, in 0..n-1."""
        return [(number, part) for number in range(0, self.walks.number, self.numbers) for part in range(self.n)]

    def numbers_from(self, number: int) -> range:
        """Return the numbers whose walks are in the file that begins with the walks of `number`."""
        return range(number, min(number + self.numbers, self.walks.number))

    def name(self, number: int, part: int) -> str:
        """Return the name of the file of a pair in `keys`: the first number of its walks, and the part of the nodes."""
        return f"part-{number // self.numbers * self.n + part:06d}.parquet"

    def start(self, number: int) -> np.uint64:
        """Return the key of the random order of the walks of a number."""
        return stream(self.walks.seed, Purpose.START, number)


class StoredPartition(NamedTuple):
    """A partition of a graph in the store: its path below the folder of the walks, and whether all weights are 1."""

    path: str
    even: bool


class NumberedWalks(NamedTuple):
    """The walks of one number, one from each node where walks begin, through the partitions of a graph."""

    files: WalkFiles
    number: int
    parts: tuple[StoredPartition, ...]

    @property
    def n(self) -> int:
        """Number of partitions."""
        return len(self.parts)

    @property
    def folder(self) -> Store:
        """Folder of the rounds, which depends on the number of partitions."""
        return self.files.folder / "rounds" / str(self.n) / str(self.number)

    @property
    def groups(self) -> list[range]:
        """Groups of files that one task writes, as ranges of the files' numbers."""
        return [range(begin, min(begin + TASK_FILES, self.files.n)) for begin in range(0, self.files.n, TASK_FILES)]

    @property
    def columns(self) -> int:
        """Number of int32 columns of a walker."""
        return steps.NARROW if self.files.walks.p == self.files.walks.q == 1.0 else steps.WIDE


class RoundOutput(NamedTuple):
    """The output of a task of a round. The fields are keys of its manifest.

    Parameters
    ----------
    path
        Path of its files below `NumberedWalks.folder`.
    walkers, trails
        Number of files of walkers, and of trails.
    with_rows
        Numbers of the files of walkers that have files of rows and targets.
    under_way
        Number of walkers whose walks have not ended.
    """

    path: str
    walkers: int
    trails: int
    with_rows: tuple[int, ...]
    under_way: int


def divide_graph(stage: OpenStage, graph: StoredGraph, n: int) -> tuple[StoredPartition, ...]:
    """Write the `n` partitions of a graph to the folder of a stage, unless they are there; return them."""
    return tuple(stage.map("divide graph", _divide, [(stage.folder, graph, number, n) for number in range(n)], 0))


def _divide(folder: Store, graph: StoredGraph, number: int, n: int) -> StoredPartition:
    """Task: write partition `number` of `n` of a graph, unless an earlier run wrote it."""

    def make(attempt: Store) -> dict[str, Any]:
        nodes = range(number, graph.n_nodes, n)
        rows = load_rows(graph.folder, len(nodes), graph.n_nodes, graph.rows[number::n], graph.n_types)
        arrays = {**rows._asdict(), **({"types": _read_types(graph, nodes)} if graph.types else {})}
        for name, array in arrays.items():
            write_parts(attempt, name, [0, len(array)], array[:, None], named=True)
        return {"path": attempt.name, "even": not len(rows.weights)}

    return _run_once(StoredPartition, folder, f"partitions/{n}/{number}", make)


def _read_types(graph: StoredGraph, nodes: range) -> UInt8Array:
    """Return the codes of the types of `nodes`, shape (nodes,); one range of the graph's nodes is read at a time."""
    codes, base = [], 0
    for types in read_type_ranges(graph.folder, graph.names):
        codes.append(types[(nodes.start - base) % nodes.step :: nodes.step])
        base += len(types)
    return np.concatenate(codes)


def _run_once(output_class: type[T], folder: Store, path: str, write: Callable[[Store], dict[str, Any]]) -> T:
    """Return the output of a task: that of an earlier run, or else what `write` writes.

    Parameters
    ----------
    output_class
        Named tuple whose fields are keys of the manifest, of which `path` is the output's path below `folder`.
    folder, path
        The task's files lie in folders of attempts in `folder` / `path`.
    write
        Writes to the folder of an attempt, and returns the manifest, with the name of that folder as `path`.
    """
    task = folder / path
    manifest = run_once(task, task.read_manifest, write)
    fields = {name: value for name, value in manifest.items() if name != "format_version"}
    return typed(output_class, {**fields, "path": f"{path}/{manifest['path']}"}, task.url)


def run_rounds(stage: OpenStage, journey: NumberedWalks) -> list[RoundOutput]:
    """Run rounds until all walks of a number have ended; return the outputs of the tasks of all rounds."""
    outputs, previous = list[RoundOutput](), list[RoundOutput]()
    for round_number in count():
        jobs = [(journey, round_number, part, previous) for part in range(journey.n)]
        current = stage.map(f"walk {journey.number}, round {round_number}", _move_walkers, jobs, 0)
        for output in previous:
            for files in ("walkers", "rows", "targets"):
                (journey.folder / output.path / files).remove()
        outputs += current
        previous = [output for output in current if output.under_way]
        if not previous:
            break
    return outputs


def _move_walkers(journey: NumberedWalks, round_number: int, part: int, previous: Sequence[RoundOutput]) -> RoundOutput:
    """Task: let the walkers in partition `part` step, unless an earlier run did.

    `previous` are the outputs of the last round; without them walkers start at the partition's nodes.
    """
    step = partial(_step_part, journey, part, previous)
    return _run_once(RoundOutput, journey.folder, f"{round_number}/{part}", step)


def _step_part(journey: NumberedWalks, number: int, previous: Sequence[RoundOutput], folder: Store) -> dict[str, Any]:
    """Let the walkers in partition `number` step until they leave; write them and their trails; return the manifest."""
    files, rule = journey.files, journey.files.rule(journey.number)
    trail = np.empty((max(TASK_STEPS, files.walks.length), 3), np.int32)
    part, under_way, n_trails, n_walker_files, with_rows = _load_partition(journey, number), 0, 0, 0, list[int]()
    for walkers, brought in _read_arrivals(journey, number, previous) if previous else _start_walkers(journey, number):
        start = 0
        while start < len(walkers):
            start, n_steps = steps.advance(part, brought, rule, walkers, start, trail)
            file_groups = steps.find_parts(trail[:n_steps, 0], files.start(journey.number), files.n) // TASK_FILES
            _write_grouped(folder / "trail", str(n_trails), file_groups, trail[:n_steps], len(journey.groups))
            n_trails += 1
        leaving = walkers[walkers[:, steps.NODE] >= 0]
        destinations = steps.find_partitions(leaving, journey.n)
        _write_grouped(folder / "walkers", str(n_walker_files), destinations, leaving, journey.n)
        if _write_brought(folder, str(n_walker_files), part, leaving, destinations):
            with_rows.append(n_walker_files)
        under_way += len(leaving)
        n_walker_files += 1
    counts = {"walkers": n_walker_files, "trails": n_trails, "with_rows": with_rows, "under_way": under_way}
    return {"path": folder.name, **counts}


def _load_partition(journey: NumberedWalks, number: int) -> Partition:
    """Read a partition of the graph into memory."""
    read = partial(_read_array, journey, number)
    weights = np.empty(0) if journey.parts[number].even else read("weights", np.float64)
    rows = as_readonly(GraphRows(read("starts", np.int64), read("targets", np.int32), weights))
    return Partition(rows, number, journey.n)


def _read_array(journey: NumberedWalks, number: int, name: str, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Return the array `name` of partition `number`, of one dimension."""
    return read_part(journey.files.folder / journey.parts[number].path, name, 1, 0, dtype, 1)[:, 0]


def _start_walkers(journey: NumberedWalks, number: int) -> Iterator[tuple[Int32Array, BroughtRows]]:
    """Yield new walkers at the nodes of partition `number` where walks begin, and no rows with them."""
    files, no_rows = journey.files, _index_rows(np.empty((0, 2), np.int32), np.empty((0, 1), np.int32))
    nodes = range(number, files.graph.n_nodes, journey.n)
    types = _read_array(journey, number, "types", np.uint8) if files.graph.types else None
    for begin in range(0, len(nodes), TASK_WALKERS):
        first = np.asarray(nodes[begin : begin + TASK_WALKERS], np.int32)
        if types is not None:
            first = first[types[begin : begin + TASK_WALKERS] == files.rule(0).path.types[0]]
        walkers = np.zeros((len(first), journey.columns), np.int32)
        walkers[:, steps.FIRST], walkers[:, steps.LENGTH], walkers[:, steps.NODE] = first, 1, first
        walkers[:, steps.PREVIOUS : steps.PREVIOUS + 1] = -1
        yield walkers, no_rows


def _read_arrivals(
    journey: NumberedWalks, number: int, previous: Sequence[RoundOutput]
) -> Iterator[tuple[Int32Array, BroughtRows]]:
    """Yield walkers that arrive at partition `number`, with the rows that they bring.

    `previous` are the outputs of the last round.
    """

    def read(output: RoundOutput, k: int, kind: str, columns: int) -> Int32Array:
        if kind != "walkers" and k not in output.with_rows:
            return np.empty((0, columns), np.int32)
        return read_part(journey.folder / output.path / kind, str(k), journey.n, number, np.int32, columns)

    arrived = (
        (read(output, k, "walkers", journey.columns), read(output, k, "rows", 2), read(output, k, "targets", 1))
        for output in previous
        for k in range(output.walkers)
    )
    for group in batched(arrived, lambda arrays: len(arrays[0]), TASK_WALKERS):
        walkers, rows, targets = map(np.concatenate, zip(*group, strict=True))
        yield walkers, _index_rows(rows, targets)


def _index_rows(rows: Int32Array, targets: Int32Array) -> BroughtRows:
    """Index rows that walkers bring by their nodes.

    `rows` are nodes and degrees, shape (n, 2); `targets` are the targets of all rows, shape (edges, 1).
    """
    nodes, degrees = rows.T
    order = np.argsort(nodes, kind="stable")
    starts = np.append(0, np.cumsum(degrees, dtype=np.int64))
    return BroughtRows(nodes[order], order, as_readonly(GraphRows(starts, targets[:, 0], np.empty(0))))


def _write_grouped(folder: Store, name: str, keys: Int64Array, items: Int32Array, n: int) -> None:
    """Write a file of items in `n` parts: an item is in the part of its key. `keys` has the shape (items,)."""
    keys = keys.astype(np.min_scalar_type(n))  # NumPy sorts 16 bits by counting
    order = np.argsort(keys, kind="stable")
    write_parts(folder, name, np.searchsorted(keys[order], np.arange(n + 1)), items[order], named=True)


def _write_brought(folder: Store, name: str, part: Partition, leaving: Int32Array, destinations: Int64Array) -> bool:
    """Write the rows that walkers bring along, each once for a partition; return whether there are any.

    Parameters
    ----------
    folder, name
        Rows and targets are written to files of this name in `folder`/rows and `folder`/targets.
    part
        The partition that has the rows.
    leaving, destinations
        The walkers, and the partition that each goes to, shape (walkers,).
    """
    if leaving.shape[1] == steps.NARROW or not (brings := leaving[:, steps.STATE] == steps.BRINGS).any():
        return False
    keys = distinct(destinations[brings].astype(np.int64) << _HALF | leaving[brings, steps.PREVIOUS])
    nodes, edges = keys & (1 << _HALF) - 1, np.searchsorted(keys >> _HALF, np.arange(part.n + 1))
    starts, rows = part.graph.starts, nodes // part.n
    degrees = starts[rows + 1] - starts[rows]
    ends = np.append(0, np.cumsum(degrees))
    targets = part.graph.targets[np.arange(ends[-1]) + np.repeat(starts[rows] - ends[:-1], degrees)]
    write_parts(folder / "rows", name, edges, np.stack([nodes, degrees], 1).astype(np.int32), named=True)
    write_parts(folder / "targets", name, ends[edges], targets[:, None], named=True)
    return True


def write_group(journeys: Sequence[tuple[NumberedWalks, Sequence[RoundOutput]]], group: int) -> None:
    """Task: write the Parquet files of the group with the number `group`.

    `journeys` are walks, with the outputs of their rounds: of one number, or of several numbers that share a file.
    """
    first = journeys[0][0]
    lists = [_read_lists(journey, group, outputs) for journey, outputs in journeys]
    for number, lists_of_file in zip(first.groups[group], zip(*lists, strict=True), strict=True):
        nodes, lengths = (pa.concat_arrays(parts) for parts in zip(*lists_of_file, strict=True))
        table = make_list_table(first.files.column, nodes, np.append(0, np.cumsum(lengths)))
        write_table(first.files.folder, first.files.name(first.number, number), table)


def _read_lists(journey: NumberedWalks, group: int, outputs: Sequence[RoundOutput]) -> list[tuple[Any, Any]]:
    """Return for each file of a group two Arrow arrays: the nodes' names of all its walks, and the lengths of walks."""
    files, numbers = journey.files, journey.groups[group]
    n_nodes, start = files.graph.n_nodes, files.start(journey.number)
    first = _select_first_nodes(files, [steps.shuffle_part(n_nodes, start, number, files.n) for number in numbers])
    walks = _join_walks(journey, group, outputs, np.concatenate(first))
    present = walks >= 0
    nodes, codes = np.unique(walks[present], return_inverse=True)
    ranges, lengths = read_name_ranges(files.graph.folder, files.graph.names), present.sum(1)
    names = pa.concat_arrays(list(_take_items(ranges, nodes)))
    by_file = np.split(lengths, np.cumsum([len(nodes) for nodes in first])[:-1])
    codes_by_file = np.split(codes, np.cumsum([in_file.sum() for in_file in by_file])[:-1])
    return [(names.take(pa.array(k)), pa.array(in_file)) for k, in_file in zip(codes_by_file, by_file, strict=True)]


def _join_walks(journey: NumberedWalks, group: int, outputs: Sequence[RoundOutput], first: Int32Array) -> Int32Array:
    """Return the nodes of the walks that begin at `first`, shape (walks, length); -1 after the end of a walk."""
    walks = np.full((len(first), journey.files.walks.length), -1, np.int32)
    walks[:, 0] = first
    order = np.argsort(first)
    ordered = first[order]
    for output in outputs:
        for k in range(output.trails):
            trail = read_part(journey.folder / output.path / "trail", str(k), len(journey.groups), group, np.int32, 3)
            walks[order[np.searchsorted(ordered, trail[:, 0])], trail[:, 1]] = trail[:, 2]
    return walks


def _select_first_nodes(files: WalkFiles, nodes: Sequence[Int32Array]) -> list[Int32Array]:
    """Return the nodes of each file where walks begin: all nodes, or with a metapath the nodes of its first type.

    `nodes` are all nodes of each file.
    """
    graph = files.graph
    if not graph.types:
        return list(nodes)
    ascending = np.sort(np.concatenate(nodes))
    types = np.concatenate(list(_take_items(read_type_ranges(graph.folder, graph.names), ascending)))
    first = ascending[types == files.rule(0).path.types[0]]
    return [nodes_of_file[np.isin(nodes_of_file, first)] for nodes_of_file in nodes]


def _take_items(ranges: Iterator[Any], nodes: Int32Array) -> Iterator[Any]:
    """Yield the items of `nodes`, range by range; only one range is in memory at a time.

    `ranges` yields arrays of an item for each node of a range, of NumPy or Arrow; `nodes` are ascending numbers.
    """
    base = 0
    for items in ranges:
        begin, end = np.searchsorted(nodes, [base, base + len(items)])
        yield items.take(nodes[begin:end] - base)
        base += len(items)
