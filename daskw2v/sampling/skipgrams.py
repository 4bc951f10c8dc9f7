"""Skip-gram pairs of a stretch of the corpus in p * p buckets: in files, or in the memory of workers.

A task distributes the pairs of a piece of text to buckets. Several pieces make a slice, which is read at a time.

`build_skipgrams` writes files:

    <piece>/<attempt>/pairs   pairs of a piece of text, in p * p parts, as `pairs.distribute_pairs` returns them
    <piece>/<attempt>/noise   negatives that are not trained with their pair, with some rules, in the same way

The pairs of two groups of partitions are one range of each file. Files are part files (`store.partfile`), as they are
soon deleted.

`submit_pairs` writes nothing. The result of a task is cut by groups of input partitions, which stay on their workers:
so each worker fetches its part of each piece once a pass, from the worker that has it. Dask computes the pieces of a
lost worker again: a piece is a pure function of the text.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from distributed import Client, Future

from daskw2v.cluster.shared_memory import by_fields, share
from daskw2v.cluster.tasks import run_tasks
from daskw2v.cluster.waiting import gather
from daskw2v.cluster.workers import total_threads
from daskw2v.errors import DamageError
from daskw2v.kernels.alias import alias_table
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.sampling.hierarchy import RULES, TNS
from daskw2v.sampling.pairs import (
    PAIR_TYPES,
    SPAN,
    BucketedPairs,
    Noise,
    Pairs,
    bucket_number,
    distribute_pairs,
    empty_pairs,
    pair_type,
)
from daskw2v.sampling.reader import read_text
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import SEGMENT, cut_range
from daskw2v.sampling.settings import NegativeSampling, Partitioned
from daskw2v.shards.layout import digest
from daskw2v.store.limits import refused, shown, typed
from daskw2v.store.partfile import read_parts, write_parts
from daskw2v.store.stage import OpenStage, new_attempt
from daskw2v.store.storage import MANIFEST, Store
from daskw2v.types import Int64Array, UInt64Array
from daskw2v.vocabulary.partition import Partitions

_MIN_PIECE, _MAX_PIECE = SEGMENT // 2, 16 * SEGMENT  # positions
_MAX_JOINED = 2 * SEGMENT  # positions of a task that joins pieces
SLICE = 1 << 16  # positions of a slice for each bucket, at least: fewer pairs would wait for the rows of a partition
_PAIRS, _NOISE = "pairs", "noise"
_ORDER = "inputs"  # buckets of a file are ordered by groups of inputs first
LAST = -(1 << 30)  # below any priority of training


@dataclass(frozen=True)
class BucketArguments:
    """Arguments of tasks that distribute the pairs of a run to buckets.

    Parameters
    ----------
    run
        The run.
    partitions, n_groups
        The partitions of the words, and the number of groups in which partitions are trained.
    weights
        Total weight as negatives of the words of each partition.
    """

    run: Run
    partitions: Partitions
    n_groups: int
    weights: tuple[float, ...]


class Stretch(NamedTuple):
    """Positions start..stop-1 of the corpus in an epoch."""

    epoch: int
    start: int
    stop: int


class Bucket(NamedTuple):
    """The pairs of two partitions, and noise: contexts that are trained with negatives only, in the form of pairs.

    The center of a noise entry is its pair's, or `pairs.missing_row`.
    """

    pairs: Pairs
    noise: Pairs


class StoredPairs(NamedTuple):
    """The folder of stored pairs, and the digest of their attempts, since a folder may get other attempts later."""

    folder: Store
    digest: str


@dataclass(frozen=True)
class SkipGrams:
    """The stored pairs of a stretch.

    Parameters
    ----------
    folder
        The folder of the pairs.
    n_partitions, n_groups, dtype
        Number of partitions p, and of their groups; dtype of the pairs.
    attempts
        Name of the valid attempt of each piece.
    together
        Number of pieces of a slice.
    words, pairs, noise
        Number of known tokens in the stretch before subsampling, of pairs, and of noise entries.
    """

    folder: Store
    n_partitions: int
    n_groups: int
    dtype: str
    attempts: tuple[str, ...]
    together: int
    words: int
    pairs: int
    noise: int

    @property
    def stored(self) -> StoredPairs:
        """The folder and digest of the pairs, for tasks."""
        return StoredPairs(self.folder, digest(list(self.attempts)))

    @property
    def n_slices(self) -> int:
        """Number of slices."""
        return -(-len(self.attempts) // self.together)


def piece_length(n_partitions: int, length: int) -> int:
    """Return the number of positions of a piece of a text of `length` positions, a multiple of `pairs.SPAN`.

    A task distributes one piece. So a text that is long enough has at least as many pieces as there are partitions.
    The more buckets there are, the longer pieces may be, so that a bucket's part is worth reading.
    """
    longest = min(_MAX_PIECE, max(SEGMENT, n_partitions**2 * (SEGMENT >> 8)))
    return max(_MIN_PIECE, min(longest, length // n_partitions) // SPAN * SPAN)


def slice_length(n_partitions: int, length: int) -> int:
    """Return the number of positions of a slice of a text of `length` positions: one piece, or several."""
    piece = piece_length(n_partitions, length)
    return -(-(n_partitions**2 * SLICE) // piece) * piece


def task_length(n_partitions: int, length: int, threads: int | None = None) -> int:
    """Return the number of positions of a task: a piece, or several pieces if few threads hold pairs.

    `length` is the number of positions of the text, `threads` the number of the cluster's threads; None if pairs are
    written.
    """
    piece = piece_length(n_partitions, length)
    return piece if threads is None else piece * max(1, min(_MAX_JOINED, length // threads) // piece)


def max_task_positions(n_partitions: int, length: int, threads: int, workers: int | None = None) -> int:
    """Return the greatest number of positions that the tasks on `threads` threads of one of the workers have at once.

    The number does not fall with more threads, as `task_length` may. `workers` is the number of workers that hold
    pairs, None if pairs are written.
    """
    piece = piece_length(n_partitions, length)
    joined = 0 if workers is None else min(threads * task_length(n_partitions, length, 1), length // workers)
    return max(threads * piece, joined)


def max_slice_length(n_partitions: int, length: int) -> int:
    """Return the greatest number of positions of a slice of a text of `length` positions or fewer.

    The number does not fall as the text grows, as `slice_length` may.
    """
    return n_partitions**2 * SLICE + piece_length(n_partitions, length)


def cut_stretch(arguments: BucketArguments, stretch: Stretch, threads: int | None = None) -> tuple[list[Stretch], int]:
    """Cut a stretch into one stretch of `task_length` for each task; return these, and how many of them make a slice.

    `threads` is as in `task_length`.
    """
    n, length = arguments.partitions.n, stretch.stop - stretch.start
    slice_size = slice_length(n, length)
    task_size = task_length(n, length, threads)
    slices = cut_range(stretch.start, stretch.stop, slice_size)
    stretches = [Stretch(stretch.epoch, *ends) for part in slices for ends in cut_range(*part, task_size)]
    return stretches, -(-slice_size // task_size)


def build_skipgrams(client: Client, arguments: BucketArguments, folder: Store, stretch: Stretch) -> SkipGrams:
    """Write the pairs of a stretch, in buckets, to a folder on the cluster, or return them if they are there already.

    A task holds the text and the pairs of a piece. The tasks have the lowest priority: they fill the gaps of a
    training.
    """
    stored = read_skipgrams(folder)
    if stored is not None:
        return stored
    stage = OpenStage(folder, partial(run_tasks, client, priority=LAST))  # the run holds the lease
    pieces, together = cut_stretch(arguments, stretch)
    jobs = [(arguments, folder, number, piece) for number, piece in enumerate(pieces)]
    written = stage.map("deal", _write_piece, jobs)
    partitions, attempts = arguments.partitions, tuple(piece["attempt"] for piece in written)
    totals = (sum(piece[name] for piece in written) for name in ("words", _PAIRS, _NOISE))
    dtype = pair_type(partitions.max_rows).name
    grams = SkipGrams(folder, partitions.n, arguments.n_groups, dtype, attempts, together, *totals)
    manifest = {"order": _ORDER, **{name: value for name, value in vars(grams).items() if name != "folder"}}
    # Part files are not forced to the disk: pairs are soon deleted, and written again after a power loss
    stage.finish(manifest, [f"{number}/{name}" for number, name in enumerate(attempts)], alone=True)
    return grams


def read_skipgrams(folder: Store) -> SkipGrams | None:
    """Return the stored pairs in a folder; None if they are not complete, or their buckets are in another order."""
    manifest = folder.read_manifest()
    if manifest is None or manifest.get("order") != _ORDER:
        return None
    del manifest["format_version"], manifest["order"]
    grams = typed(SkipGrams, manifest, f"{folder.url}/{MANIFEST}", folder=folder)
    n, n_groups, dtype = grams.n_partitions, grams.n_groups, grams.dtype
    if dtype not in PAIR_TYPES or n_groups < 1 or n % n_groups:
        raise refused(folder.url, f"holds pairs of type {shown(dtype)} in {n_groups} groups of {n} partitions")
    if grams.together < 1:
        raise refused(folder.url, f"has slices of {grams.together} pieces")
    return grams


def _write_piece(arguments: BucketArguments, folder: Store, number: int, stretch: Stretch) -> dict[str, Any]:
    """Task: write the pairs of a piece of text in buckets.

    Returns
    -------
    dict
        "attempt": name of the attempt; "words", "pairs" and "noise": numbers of known tokens, pairs and noise entries.
    """
    words, kinds = distribute_piece(arguments, stretch)
    attempt, sizes = new_attempt(), {_PAIRS: 0, _NOISE: 0}
    for name, kind in zip((_PAIRS, _NOISE), kinds, strict=False):
        write_parts(folder / str(number) / attempt, name, kind.edges, kind.entries)
        sizes[name] = len(kind.entries)
    return {"attempt": attempt, "words": words, **sizes}


def distribute_piece(arguments: BucketArguments, stretch: Stretch) -> tuple[int, list[BucketedPairs]]:
    """Distribute the pairs of a piece of text to buckets.

    Returns
    -------
    words
        Number of known tokens.
    kinds
        Pairs in buckets and, unless the rule is `tns`, noise in buckets.
    """
    segment, words, windows = read_text(arguments.run, *stretch)
    text = segment, stretch.start, stretch.stop, windows, arguments.partitions
    kinds = _list_kinds(arguments, stretch.epoch)
    copies = stream(arguments.run.params.seed, Purpose.COPY, stretch.epoch)
    return words, [distribute_pairs(*text, noise, arguments.n_groups, copies) for noise in kinds]


def _list_kinds(arguments: BucketArguments, epoch: int) -> list[Noise | None]:
    """Return the kinds of entries to distribute, as `noise` of `distribute_pairs`: None for pairs, and noise if any."""
    params = arguments.run.params
    rule, key = RULES[Partitioned.of(params).negative_rule], stream(params.seed, Purpose.PARTITION, epoch)
    if rule == TNS:
        return [None]
    return [None, Noise(rule, NegativeSampling.of(params).negative, _make_alias_table(arguments.weights), key)]


@lru_cache(maxsize=2)
def _make_alias_table(weights: tuple[float, ...]) -> UInt64Array:
    """Return the alias table of partitions with these weights."""
    return alias_table(np.array(weights))


def read_buckets(stored: StoredPairs, number: int, outputs: int, inputs: int) -> list[Bucket]:
    """Read the buckets of two groups of partitions in a slice, all inputs of the first output, then of the next.

    Parameters
    ----------
    stored
        The pairs of a stretch.
    number
        Number of the slice.
    outputs, inputs
        Number of the group of partitions of centers or negatives, and of the group of partitions of contexts.

    Raises
    ------
    DamageError
        If pairs are missing, or are not what was written.
    """
    grams = _open_pairs(stored)
    n, size = grams.n_partitions, grams.n_partitions // grams.n_groups
    first = bucket_number(outputs * size, inputs * size, n, grams.n_groups)
    pieces = range(number * grams.together, min(len(grams.attempts), (number + 1) * grams.together))

    def read(name: str) -> list[Pairs]:
        bounds = n * n, first, first + size**2, grams.dtype, 1
        files = [read_parts(grams.folder / str(k) / grams.attempts[k], name, *bounds) for k in pieces]
        if len(files) == 1:
            return [part.reshape(-1) for part in files[0]]
        return [np.concatenate([part.reshape(-1) for part in parts]) for parts in zip(*files, strict=True)]

    noise = read(_NOISE) if grams.noise else [empty_pairs(0, grams.dtype)] * size**2
    return [Bucket(*kinds) for kinds in zip(read(_PAIRS), noise, strict=True)]


@lru_cache(maxsize=4)
def _open_pairs(stored: StoredPairs) -> SkipGrams:
    """Return stored pairs by their folder and digest; raises DamageError if the folder has other pairs or none."""
    grams = read_skipgrams(stored.folder)
    if grams is None or grams.stored != stored:
        raise DamageError.of(f"{stored.folder.url}/{MANIFEST}", "is gone, or not what was written")
    return grams


class PieceTotals(NamedTuple):
    """Number of known tokens of a piece before subsampling, and seconds that it took to distribute its pairs."""

    words: int
    seconds: float


@by_fields
class PairsPart(NamedTuple):
    """The pairs of a piece of text in the buckets of a group of input partitions, output group after output group.

    Parameters
    ----------
    pairs, noise
        Pairs, and noise as of `Bucket`, bucket by bucket, shapes (n,) and (m,).
    pair_edges, noise_edges
        Bounds of the buckets in `pairs` and in `noise`, shape (buckets + 1,) int64.
    totals
        Totals of the piece, equal in the parts of all groups.
    """

    pairs: Pairs
    pair_edges: Int64Array
    noise: Pairs
    noise_edges: Int64Array
    totals: PieceTotals


@dataclass
class HeldPairs:
    """The pairs of a stretch, as results of tasks in the memory of workers.

    Parameters
    ----------
    client
        The cluster.
    parts
        For each group of input partitions the `PairsPart` of each piece.
    together
        Number of pieces of a slice.
    totals
        `PieceTotals` of all pieces.
    """

    client: Client
    parts: list[list[Future]]
    together: int
    totals: Future

    @property
    def n_slices(self) -> int:
        """Number of slices."""
        return -(-len(self.parts[0]) // self.together)

    def slices_of_group(self, inputs: int) -> list[list[Future]]:
        """Return for each slice the parts of a group of input partitions, as arguments of tasks that train them."""
        parts, n = self.parts[inputs], self.together
        return [parts[k : k + n] for k in range(0, len(parts), n)]

    @property
    def words(self) -> int:
        """Number of known tokens in the stretch before subsampling; waits for all pieces."""
        return self._totals.words

    @property
    def deal_seconds(self) -> float:
        """Seconds of the tasks that distributed the pairs, added up; waits for all pieces."""
        return self._totals.seconds

    @cached_property
    def _totals(self) -> PieceTotals:
        """The totals of all pieces; waits for them."""
        totals: list[PieceTotals] = gather(self.client, [self.totals], "Dealing pairs")
        return totals[0]


def submit_pairs(client: Client, arguments: BucketArguments, stretch: Stretch, key: str) -> HeldPairs:
    """Submit tasks that distribute the pairs of a stretch, in the slices of `build_skipgrams`; wait for nothing.

    The tasks have the lowest priority: they fill the gaps of a training. `key` makes their keys differ from the keys
    of all other stretches.
    """
    pieces, together = cut_stretch(arguments, stretch, total_threads(client))
    futures = [
        client.submit(_hold_piece, arguments, piece, key=f"deal-{key}-{number}", priority=LAST, retries=2)
        for number, piece in enumerate(pieces)
    ]
    parts: list[list[Future]] = [
        client.map(itemgetter(group), futures, key=[f"pairs-{group}-{future.key}" for future in futures], priority=1)
        for group in range(arguments.n_groups)
    ]
    # From the parts of one group: a worker takes them anyway
    totals = client.submit(_add_totals, *parts[0], key=f"totals-{key}", priority=1)
    return HeldPairs(client, parts, together, totals)


def _hold_piece(arguments: BucketArguments, stretch: Stretch) -> tuple[PairsPart, ...]:
    """Task: distribute the pairs of a piece of text; return the part of each group of input partitions."""
    started = time.monotonic()
    words, (pairs, *kinds) = distribute_piece(arguments, stretch)
    noise = kinds[0] if kinds else BucketedPairs(pairs.entries[:0], np.zeros_like(pairs.edges))
    n = arguments.n_groups
    groups = [(*_select_group(pairs, group, n), *_select_group(noise, group, n)) for group in range(n)]
    totals = PieceTotals(words, time.monotonic() - started)
    return tuple(PairsPart(*group_entries, totals) for group_entries in groups)


def _add_totals(*parts: PairsPart) -> PieceTotals:
    """Task: add up the totals of pieces."""
    return PieceTotals(sum(part.totals.words for part in parts), sum(part.totals.seconds for part in parts))


def _select_group(bucketed: BucketedPairs, inputs: int, n_groups: int) -> tuple[Pairs, Int64Array]:
    """Return the entries of group `inputs` of input partitions, in shared memory, and the bounds of their buckets."""
    buckets = (len(bucketed.edges) - 1) // n_groups
    edges = bucketed.edges[inputs * buckets : (inputs + 1) * buckets + 1]
    return share(bucketed.entries[edges[0] : edges[-1]]), edges - edges[0]


def make_bucket_reader(parts: Sequence[PairsPart]) -> Callable[[int], Bucket]:
    """Return a function from a bucket's index to the bucket, as `read_buckets` reads it.

    Parameters
    ----------
    parts
        Parts of a slice's pieces for a group of input partitions. The index is as in `bucket_number`, counted from 0
        in this group.
    """
    pairs = _make_reader([(part.pairs, part.pair_edges) for part in parts])
    noise = _make_reader([(part.noise, part.noise_edges) for part in parts])
    return lambda number: Bucket(pairs(number), noise(number))


def _make_reader(parts: Sequence[tuple[Pairs, Int64Array]]) -> Callable[[int], Pairs]:
    """Return a function from a bucket's index to a copy of its entries in all parts.

    `parts` are entries and the bounds of their buckets. The function is fast, as threads that train wait for it.
    """
    filled = [(np.asarray(entries), edges.tolist()) for entries, edges in parts if len(entries)]
    if not filled:
        no_entries = np.empty(0, parts[0][0].dtype)
        return lambda number: no_entries
    return lambda number: np.concatenate([entries[edges[number] : edges[number + 1]] for entries, edges in filled])
