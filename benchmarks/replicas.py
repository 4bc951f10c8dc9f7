"""Quality of averaged replicas, as many as one likes, in one process: one after the other trains its text of a step.

The schedule, the kernels, what replicas send and the merges are the package's, so vectors have the bits of a cluster
with so many replicas. Scores stand beside one replica's, with the megabytes of changes that a replica sends an epoch.

    python -m benchmarks.replicas [--replicas 1 2 8 64] [--objectives sgns cbow_ns] [--runs 10:5 30:1] [--seeds 1 2 3]
                                  [--rules sequential mean] [--merges N] [--frequent-rows N] [--cache DIR]
                                  [--rotation [PARTITIONS[:COPIED_WORDS[:PASSES]] ...]]

A run is a number of parts of 10 MB of Wikipedia and a number of epochs. `--merges` are those an epoch of the rows of
the most frequent words, `--frequent-rows`; the package's own numbers where they are left out. What --cache holds is not
trained again.
"""

import argparse
import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.cache import CODE, Scores, kept, means
from benchmarks.harness import Benchmark, Session, Smoke
from benchmarks.processes import one_thread
from benchmarks.quality import judged
from benchmarks.texts import name_of, write_text
from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.corpus.sources import find_sources
from daskw2v.errors import counted
from daskw2v.kernels.jit import kernel
from daskw2v.kernels.simd import padded
from daskw2v.models.queries.vectors import Vectors
from daskw2v.objectives.base import HotRows, Tables
from daskw2v.objectives.curvature import Moments
from daskw2v.objectives.registry import find_objective, find_trainer
from daskw2v.progress import silent
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import cut_range
from daskw2v.shards.layout import digest
from daskw2v.store.storage import Store
from daskw2v.training.averaging.curvature import Curvature, compute_curvatures, compute_moments
from daskw2v.training.averaging.merge import (
    FAN_IN,
    BlockTraining,
    Delta,
    add_changes,
    merge_block,
    subtract_rows,
)
from daskw2v.training.averaging.round_schedule import AveragingRounds, AveragingStep, level_ends
from daskw2v.training.averaging.settings import Averaging
from daskw2v.training.devices import read_piece
from daskw2v.training.pipeline import train
from daskw2v.training.preparation.planned import PlannedRun, settled_params
from daskw2v.training.preparation.request import read_text
from daskw2v.training.start.blocks import TableBlock, cut_tables
from daskw2v.training.start.initial_rows import get_prepared, make_initial_rows
from daskw2v.types import Float32Array, Int32Array

NAMES = ("ws353", "simlex999", "google_analogy")
_LONG = 1 << 40  # positions: more than any text has


class Replicas:
    """Replicas of a model in one process.

    Parameters
    ----------
    run, length
        What is trained, and the positions of its text.
    """

    def __init__(self, run: Run, length: int) -> None:
        self._run, self._params, self._length = run, run.params, length
        objective = find_objective(run.params.objective.name)
        self._train, self._prepared = find_trainer(objective, "cpu"), get_prepared(run)
        self._width, self._columns = padded(run.params.vector_size), run.params.vector_size
        self._mark = objective.reached
        tables, n_replicas = objective.tables(run.params, run.vocabulary.size), Averaging.of(run.params).replicas
        self.model = {table: self._first(table, rows) for table, rows in tables.items()}
        self._trained = {table: rows.copy() for table, rows in self.model.items()} if n_replicas > 1 else self.model
        self._marks = {table: np.zeros(rows, np.bool_) for table, rows in tables.items()}
        unchanged = np.zeros(0, np.int32), np.zeros((0, self._width), np.float32)
        self._own = [dict.fromkeys(tables, unchanged) for _ in range(n_replicas)]  # rows unlike the model's, by table
        self._levels = level_ends(run.params, run.vocabulary.size)
        self._blocks = cut_tables(tables, run.params.vector_size, self._levels)
        self._moments = dict[int, Moments]()
        self.sent = 0  # bytes of what a replica changed

    def _first(self, table: str, rows: int) -> Float32Array:
        values = np.zeros((rows, self._width), np.float32)
        values[:, : self._columns] = make_initial_rows(self._run, table, np.arange(rows))
        return values

    def train(self) -> None:
        """Train all rounds."""
        rounds = AveragingRounds(self._params, self._length, self._run.vocabulary.size)
        for this in rounds:
            merged_at = dict.fromkeys(self._blocks, this.start)
            for step in this.steps:
                self._train_step(step)
                if this.n_replicas > 1:
                    merged = [*self._merged_after(step)]
                    rates = {
                        number: rounds.sum_rates(merged_at[block], step.stop) / this.n_replicas
                        for number, block in merged
                    }
                    self._merge(rates)
                    merged_at |= dict.fromkeys((block for _, block in merged), step.stop)
                    self._moments = {n: known for n, known in self._moments.items() if n not in rates}

    def _train_step(self, step: AveragingStep) -> None:
        several, rows = len(self._own) > 1, self._trained
        tables = Tables(rows["input"].reshape(-1), rows["output"].reshape(-1), self._width, HotRows(0, 0, 0, 1))
        for work, own in zip(step.works, self._own, strict=True):
            for table, (changed, values) in own.items():
                rows[table][changed], self._marks[table][changed] = values, True
            for epoch, start, stop, rate in work.split_by_epoch(self._length):
                for a, b in cut_range(start, stop, 1 << 22):
                    piece = read_piece(self._run, epoch, a, b, rate)
                    self._train(piece.segment, piece.first, piece.last, tables, piece.rate, piece.epoch, self._prepared)
                    if several and self._mark is not None:
                        self._mark(self._prepared, piece.segment, piece.first, piece.last, piece.epoch, self._marks)
            if several:
                own.update({table: self._take(table) for table in own})

    def _take(self, table: str) -> tuple[Int32Array, Float32Array]:
        """Return the rows that a replica changed, with their indices, and give it back the model's."""
        model, trained, marks = self.model[table], self._trained[table], self._marks[table]
        reached = np.flatnonzero(marks | (self._mark is None)).astype(np.int32)
        changed = reached[_is_changed(model.view(np.uint32), trained.view(np.uint32), reached)]
        values = trained[changed]
        trained[changed], marks[:] = model[changed], False
        return changed, values

    def _merged_after(self, step: AveragingStep) -> Iterator[tuple[int, TableBlock]]:
        end = _LONG if step.level is None else self._levels[step.level]
        return ((number, block) for number, block in enumerate(self._blocks) if block.stop <= end)

    def _common(self, block: TableBlock) -> Float32Array:
        return np.ascontiguousarray(self.model[block.table][block.start : block.stop, : self._columns])

    def _merge(self, rates: dict[int, float]) -> None:
        curvatures = dict[str, Curvature]()
        is_merged = {table: np.zeros(len(rows), np.bool_) for table, rows in self.model.items()}
        if BlockTraining(self._run, self._blocks[0], 0.0).rule.fade is not None:
            curvatures = self._curvature()
        for number, rate in rates.items():
            block = self._blocks[number]
            how, base = BlockTraining(self._run, block, rate), self._common(block)
            training = how.row_training(curvatures)
            merged = self._merged(how, base, training)
            for tables in (self.model, self._trained):
                tables[block.table][block.start : block.stop, : self._columns] = merged
            is_merged[block.table][block.start : block.stop] = True
        for own, table in itertools.product(self._own, is_merged):
            rows, values = own[table]
            own[table] = rows[~is_merged[table][rows]], values[~is_merged[table][rows]]

    def _changes(self, own: dict[str, Any], block: TableBlock, base: Float32Array) -> Delta:
        """Return the changes of a replica: of the changed rows alone, as the others merge to the same bits."""
        rows, values = own[block.table]
        first, last = np.searchsorted(rows, (block.start, block.stop))
        rows = rows[first:last] - np.int32(block.start)
        return Delta(subtract_rows(base[rows], values[first:last])[0], rows)

    def _curvature(self) -> dict[str, Curvature]:
        for number, block in enumerate(self._blocks):
            if number not in self._moments:
                self._moments[number] = compute_moments(self._run, block, self._common(block))
        moments = [self._moments[number] for number in range(len(self._blocks))]
        return compute_curvatures(self._run, self._blocks, moments)

    def _merged(self, how: BlockTraining, base: Float32Array, training: Any) -> Float32Array:
        """Return a block merged by the tree of `submit_merge`; one group of replicas is in memory at a time."""
        parts, few = [], len(self._own) <= FAN_IN
        for i in range(0, len(self._own), FAN_IN):
            deltas = [self._changes(own, how.block, base) for own in self._own[i : i + FAN_IN]]
            self.sent += 2 * base.size if i == 0 else 0
            if few:
                return merge_block(how.rule, base, deltas, training)
            parts.append(add_changes(how.rule, base.shape, deltas, training))
        while len(parts) > FAN_IN:
            groups = [parts[i : i + FAN_IN] for i in range(0, len(parts), FAN_IN)]
            parts = [add_changes(how.rule, base.shape, group, training) for group in groups]
        return merge_block(how.rule, base, parts, training)


@kernel
def _is_changed(model: Any, trained: Any, rows: Any) -> Any:
    """Return for each of some rows, of bits, whether one of its values was changed."""
    changed = np.zeros(len(rows), np.bool_)
    for i, row in enumerate(rows):
        different = np.uint32(0)  # the loop runs to its end, so many values are compared at a time
        for k in range(model.shape[1]):
            different |= model[row, k] ^ trained[row, k]
        changed[i] = different != 0
    return changed


class Place(NamedTuple):
    """The text, where it is encoded, and where scores are kept."""

    text: Path
    work: Path
    cache: Store


def train_replicas(params: Params, place: Place) -> tuple[Vectors, int]:
    """Return the vectors of replicas, and the bytes that one of them sends."""
    resources, store = Resources(threads=1), Store(str(place.work))
    with one_thread() as client:
        corpus, vocabulary = read_text(find_sources(place.text), store, params, resources, lambda: client, silent)
    replicas = Replicas(PlannedRun(corpus, vocabulary, store, params, resources).for_tasks(), corpus.n_tokens)
    replicas.train()
    rows = np.ascontiguousarray(replicas.model["input"][:, : params.vector_size])
    return Vectors(vocabulary.load(), rows), replicas.sent


def train_by_package(params: Params, place: Place) -> tuple[Vectors, int]:
    with one_thread() as client:
        return train(place.text, work=place.work, params=params, resources=Resources(threads=1), client=client), 0


def score(params: Params, place: Place) -> Scores:
    """Train and judge, unless that was done before."""
    made = [CODE, params.as_dict(), place.text.stat().st_size]
    name = f"{params.objective.name}-{params.strategy.name}-seed{params.seed}-{digest(made)}.json"

    def make() -> Scores:
        began = time.process_time()
        vectors, sent = (train_replicas if isinstance(params.strategy, Averaging) else train_by_package)(params, place)
        seconds = time.process_time() - began
        mean = np.linalg.norm(vectors.units(np.arange(min(len(vectors), 20_000))).mean(axis=0))
        return {**judged(vectors), "mean": float(mean), "sent": sent / params.epochs / 1e6, "seconds": seconds}

    return kept(place.cache, name, {"params": params.as_dict()}, make)


def variants_of(options: argparse.Namespace, params: Params) -> Iterator[tuple[str, Params]]:
    """Yield the numbers of replicas and rules to compare, one replica first, and rotation behind it."""
    for n in options.replicas:
        for rule in options.rules if n > 1 else [None]:
            changes: dict[str, Any] = {"n_replicas": n, "merge": rule}
            if options.merges and n > 1:
                per_round = min(16, options.merges)
                changes |= {"merges_per_round": per_round, "rounds_per_epoch": -(-options.merges // per_round)}
            if options.frequent_rows and n > 1:
                changes["frequent_rows"] = options.frequent_rows
            yield _name_of(n, rule, options), settled_params(params.replace(**changes))
        if n == 1 and options.rotation is not None and find_objective(params.objective.name).bucket_trainers:
            for partitions, copied, passes in options.rotation or [(None, None, None)]:
                facts = {"partitions": partitions, "copied words": copied, "passes an epoch": passes}
                name = ", ".join(["rotation", *(f"{n} {what}" for what, n in facts.items() if n)])
                # A group for each of eight workers, as "auto" has it: tasks would take most of the time of more groups
                changes = {"n_partitions": partitions, "n_groups": partitions and 8}
                changes |= {"copied_words": copied, "passes_per_epoch": passes}
                yield name, settled_params(params.replace(strategy="rotation", **changes))


def _name_of(n: int, rule: str | None, options: argparse.Namespace) -> str:
    if n == 1:
        return "1 replica"
    merges = f"{options.merges} merges" if options.merges else ""
    rows = f"{options.frequent_rows} frequent rows" if options.frequent_rows else ""
    return ", ".join(filter(None, (f"{n} replicas", rule, merges, rows)))


def measure(session: Session) -> None:
    """Print a row for each text, objective, number of replicas and rule."""
    options, folder = session.options, session.folder
    session.text = name_of(max(parts for parts, _ in options.runs))
    heads = (head for name in NAMES for head in (name, f"{name}: over one replica's"))
    table = session.table("Replicas", (*heads, "mean direction", "MB sent an epoch", "processor s"))
    for (parts, epochs), objective in itertools.product(options.runs, options.objectives):
        text = write_text(folder / f"wiki{parts:g}.txt", parts)
        place = Place(text, folder / f"work{parts:g}", Store(str(options.cache or folder / "cache")))
        params = Params(objective=objective, epochs=epochs, strategy="averaging", vector_size=options.vector_size)
        first = dict[str, float]()
        for variant, variant_params in variants_of(options, params):
            found = means([score(variant_params.replace(seed=seed), place) for seed in options.seeds])
            cells = list[Any]()
            for name in NAMES:
                base = first.setdefault(name, found[name].middle)
                cells += [found[name], f"{found[name].middle / base - 1:+.1%}" if base else "of 0"]
            sent, seconds = (round(found[name].middle) for name in ("sent", "seconds"))
            row = f"{objective}, {10 * parts:g} MB, {counted(epochs, 'epoch')}, {variant}"
            table.row(row, *cells, found["mean"], sent, seconds)


def _run_of(text: str) -> tuple[float, int]:
    parts, epochs = text.split(":")
    return float(parts), int(epochs)


def _rotation_of(text: str) -> tuple[int, int | None, int | None]:
    partitions, copied, passes = (int(part) if part else None for part in f"{text}::".split(":")[:3])
    if partitions is None:
        raise ValueError(text)
    return partitions, copied, passes


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--replicas", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--objectives", nargs="+", default=["sgns"])
    parser.add_argument("--rules", nargs="+", default=["sequential"], help="merge rules of several replicas")
    parser.add_argument(
        "--rotation",
        type=_rotation_of,
        nargs="*",
        metavar="PARTITIONS[:COPIED_WORDS[:PASSES]]",
        help="train by rotation, too, with so many partitions in eight groups, copied words and passes an epoch",
    )
    parser.add_argument("--merges", type=int, help="merges an epoch of the most frequent rows")
    parser.add_argument("--frequent-rows", type=int, help="number of rows that are merged so often")
    parser.add_argument("--runs", type=_run_of, nargs="+", default=[(10, 5)], help="parts of 10 MB, and epochs: 10:5")
    parser.add_argument("--vector-size", type=int, default=Params.vector_size)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--cache", type=Path, help="folder that keeps the scores, so that a run can go on")


BENCHMARK = Benchmark(
    __doc__,
    ("daskw2v/objectives", "daskw2v/sampling", "daskw2v/kernels", "daskw2v/training"),
    Smoke(
        {"seeds": [1], "runs": [(0.05, 1)]},
        ("1 replica", "replicas, sequential", *NAMES),
        ((), ("--replicas", "1", "9", "--merges", "4", "--frequent-rows", "100", "--rotation=16:8:2")),
    ),
    add_arguments,
    measure,
)

if __name__ == "__main__":
    BENCHMARK.main()
