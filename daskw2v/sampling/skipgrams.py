"""Skip-gram pairs of a stretch of the corpus in p * p buckets: in files, or in the memory of workers.

A task deals a piece of text. Several pieces make a slice, which is what is read at a time.

`build_skipgrams` writes files:

    <piece>/<attempt>/pairs   pairs of a piece of text, in p * p parts, as `pairs.distribute_pairs` puts them
    <piece>/<attempt>/noise   negatives that are not trained with their pair, with some rules, in the same way

The pairs of two groups of partitions are one range of each file. Files are part files (`store.partfile`), as they are
soon deleted.

`submit_pairs` writes nothing. The result of a task is cut by groups of input partitions, which stay on their workers: so
each worker takes its part of every piece once a pass, from the worker that dealt it. What a lost worker held, Dask
makes again: a piece is a pure function of the text.
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

_LEAST_PIECE, _MOST_PIECE = SEGMENT // 2, 16 * SEGMENT  # positions
_JOINED = 2 * SEGMENT  # positions that a task deals, at most, if it joins pieces
SLICE = 1 << 16  # positions of a slice for each bucket, at least: fewer pairs would wait for the rows of a partition
_PAIRS, _NOISE = "pairs", "noise"
_ORDER = "inputs"  # groups that stand side by side in a file first
LAST = -(1 << 30)  # below any priority of training


@dataclass(frozen=True)
class BucketArguments:
    """Arguments of tasks that deal the pairs of a run into buckets.

    Parameters
    ----------
    run
        The run.
    partitions, n_groups
        How words are spread, and in how many groups partitions are trained.
    weights
        Total weight of the negatives of each of the p partitions.
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
    """The pairs of two partitions, and noise: pairs that are trained with negatives only."""

    pairs: Pairs
    noise: Pairs


class StoredPairs(NamedTuple):
    """The folder of pairs, and the digest of its manifest, since pairs may be dealt again into the same folder."""

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
        Number of partitions p, and of their groups; type of the pairs.
    attempts
        The valid attempt of each piece.
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
    """Return the positions of a piece, whole spans of `pairs`.

    A task deals one piece. So a text that is long enough has as many pieces as partitions are trained at a time.
    The more buckets there are, the longer pieces may be, so that a bucket's part is worth reading.
    """
    most = min(_MOST_PIECE, max(SEGMENT, n_partitions**2 * (SEGMENT >> 8)))
    return max(_LEAST_PIECE, min(most, length // n_partitions) // SPAN * SPAN)


def slice_length(n_partitions: int, length: int) -> int:
    """Return the positions of a slice: one piece, or several where buckets are many."""
    piece = piece_length(n_partitions, length)
    return -(-(n_partitions**2 * SLICE) // piece) * piece


def task_length(n_partitions: int, length: int, threads: int | None = None) -> int:
    """Return the positions that a task deals: a piece, or several if few threads hold pairs.

    `threads` is the number of threads that deal pairs to hold; None if pairs are written.
    """
    piece = piece_length(n_partitions, length)
    return piece if threads is None else piece * max(1, min(_JOINED, length // threads) // piece)


def max_task_positions(n_partitions: int, length: int, threads: int, workers: int | None = None) -> int:
    """Return the most positions that so many threads of one of the workers deal at once.

    The number does not fall with more threads, as `task_length` may. `workers` is None if pairs are written.
    """
    piece = piece_length(n_partitions, length)
    joined = 0 if workers is None else min(threads * task_length(n_partitions, length, 1), length // workers)
    return max(threads * piece, joined)


def max_slice_length(n_partitions: int, length: int) -> int:
    """Return the most positions of a slice; the number does not fall as the text grows, as `slice_length` may."""
    return n_partitions**2 * SLICE + piece_length(n_partitions, length)


def cut_stretch(dealer: BucketArguments, stretch: Stretch, threads: int | None = None) -> tuple[list[Stretch], int]:
    """Return the stretches of `task_length` that are dealt each by a task, and how many of them make a slice."""
    n, length = dealer.partitions.n, stretch.stop - stretch.start
    whole = slice_length(n, length)
    one = task_length(n, length, threads)
    slices = cut_range(stretch.start, stretch.stop, whole)
    return [Stretch(stretch.epoch, *ends) for part in slices for ends in cut_range(*part, one)], -(-whole // one)


def build_skipgrams(client: Client, dealer: BucketArguments, folder: Store, stretch: Stretch) -> SkipGrams:
    """Deal the pairs of a stretch into buckets on the cluster, or return them if they are stored already.

    A task holds the text and the pairs of a piece. Tasks that wait for a worker let all others go first: they fill the
    gaps of a training.
    """
    stored = read_skipgrams(folder)
    if stored is not None:
        return stored
    stage = OpenStage(folder, partial(run_tasks, client, priority=LAST))  # the run holds the lease
    pieces, together = cut_stretch(dealer, stretch)
    dealt = stage.map("deal", _write_piece, [(dealer, folder, number, piece) for number, piece in enumerate(pieces)])
    partitions, attempts = dealer.partitions, tuple(piece["attempt"] for piece in dealt)
    totals = (sum(piece[name] for piece in dealt) for name in ("words", _PAIRS, _NOISE))
    dtype = pair_type(partitions.most).name
    grams = SkipGrams(folder, partitions.n, dealer.n_groups, dtype, attempts, together, *totals)
    manifest = {"order": _ORDER, **{name: value for name, value in vars(grams).items() if name != "folder"}}
    # Part files are not forced to the disk: pairs are soon deleted, and dealt again if a power loss took them
    stage.finish(manifest, [f"{number}/{name}" for number, name in enumerate(attempts)], alone=True)
    return grams


def read_skipgrams(folder: Store) -> SkipGrams | None:
    """Return the pairs in a folder, or None if they are not complete, or in the order of an earlier release."""
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


def _write_piece(dealer: BucketArguments, folder: Store, number: int, stretch: Stretch) -> dict[str, Any]:
    """Task: deal a piece of text into buckets; return attempt and numbers of words, pairs, noise entries."""
    words, dealt = distribute_piece(dealer, stretch)
    attempt, sizes = new_attempt(), {_PAIRS: 0, _NOISE: 0}
    for name, kind in zip((_PAIRS, _NOISE), dealt, strict=False):
        write_parts(folder / str(number) / attempt, name, kind.edges, kind.entries)
        sizes[name] = len(kind.entries)
    return {"attempt": attempt, "words": words, **sizes}


def distribute_piece(dealer: BucketArguments, stretch: Stretch) -> tuple[int, list[BucketedPairs]]:
    """Deal a piece of text; return its words, its pairs in buckets and, where the rule has it, noise in buckets."""
    segment, words, windows = read_text(dealer.run, *stretch)
    text = segment, stretch.start, stretch.stop, windows, dealer.partitions
    return words, [distribute_pairs(*text, noise, dealer.n_groups) for noise in _kinds(dealer, stretch.epoch)]


def _kinds(dealer: BucketArguments, epoch: int) -> list[Noise | None]:
    """Return the kinds of entries to deal: None for pairs, and the noise where the rule has it."""
    params = dealer.run.params
    rule, key = RULES[Partitioned.of(params).negative_rule], stream(params.seed, Purpose.PARTITION, epoch)
    if rule == TNS:
        return [None]
    return [None, Noise(rule, NegativeSampling.of(params).negative, _table(dealer.weights), key)]


@lru_cache(maxsize=2)
def _table(weights: tuple[float, ...]) -> UInt64Array:
    """Return the alias table of partitions."""
    return alias_table(np.array(weights))


def read_buckets(stored: StoredPairs, number: int, outputs: int, inputs: int) -> list[Bucket]:
    """Read the buckets of two groups of partitions in a slice, one output partition after the other.

    Parameters
    ----------
    stored
        The pairs of a stretch.
    number
        Of the slice.
    outputs, inputs
        The group of partitions of centers or negatives, and that of contexts.

    Raises
    ------
    DamageError
        If pairs are missing, or are not what was written.
    """
    grams = _open(stored)
    n, size = grams.n_partitions, grams.n_partitions // grams.n_groups
    first = bucket_number(outputs * size, inputs * size, n, grams.n_groups)
    pieces = range(number * grams.together, min(len(grams.attempts), (number + 1) * grams.together))

    def read(name: str) -> list[Pairs]:
        files = [
            read_parts(grams.folder / str(k) / grams.attempts[k], name, n * n, first, first + size**2, grams.dtype, 1)
            for k in pieces
        ]
        if len(files) == 1:
            return [part.reshape(-1) for part in files[0]]
        return [np.concatenate([part.reshape(-1) for part in parts]) for parts in zip(*files, strict=True)]

    noise = read(_NOISE) if grams.noise else [empty_pairs(0, grams.dtype)] * size**2
    return [Bucket(*both) for both in zip(read(_PAIRS), noise, strict=True)]


@lru_cache(maxsize=4)
def _open(stored: StoredPairs) -> SkipGrams:
    """Return pairs that are complete."""
    grams = read_skipgrams(stored.folder)
    if grams is None or grams.stored != stored:
        raise DamageError.of(f"{stored.folder.url}/{MANIFEST}", "is gone, or not what was written")
    return grams


class PieceTotals(NamedTuple):
    """The words of a piece before subsampling, and the seconds that it took to deal it."""

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
        Bounds of the buckets among them, shape (buckets + 1,) int64.
    totals
        Totals of the whole piece, the same in the parts of all groups.
    """

    pairs: Pairs
    pair_edges: Int64Array
    noise: Pairs
    noise_edges: Int64Array
    totals: PieceTotals


@dataclass
class HeldPairs:
    """The pairs of a stretch, as results of tasks.

    Parameters
    ----------
    client
        The cluster.
    parts
        By group of inputs the `PairsPart` of each piece.
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
        """Return the parts of a group of inputs, by slice, as arguments of tasks that train them."""
        parts, n = self.parts[inputs], self.together
        return [parts[k : k + n] for k in range(0, len(parts), n)]

    @property
    def words(self) -> int:
        """Number of known tokens in the stretch before subsampling; waits for all pieces."""
        return self._dealt.words

    @property
    def deal_seconds(self) -> float:
        """Seconds of the tasks that dealt; waits for all pieces."""
        return self._dealt.seconds

    @cached_property
    def _dealt(self) -> PieceTotals:
        totals: list[PieceTotals] = gather(self.client, [self.totals], "Dealing pairs")
        return totals[0]


def submit_pairs(client: Client, dealer: BucketArguments, stretch: Stretch, key: str) -> HeldPairs:
    """Submit the dealing of a stretch, in the slices of `build_skipgrams`; wait for nothing.

    Tasks that wait for a worker let all others go first: they fill the gaps of a training. `key` makes their keys
    differ from the keys of all other stretches.
    """
    pieces, together = cut_stretch(dealer, stretch, total_threads(client))
    dealt = [
        client.submit(_hold_piece, dealer, piece, key=f"deal-{key}-{number}", priority=LAST, retries=2)
        for number, piece in enumerate(pieces)
    ]
    parts: list[list[Future]] = [
        client.map(itemgetter(group), dealt, key=[f"pairs-{group}-{future.key}" for future in dealt], priority=1)
        for group in range(dealer.n_groups)
    ]
    # From the parts of one group: a worker takes them anyway
    totals = client.submit(_totals, *parts[0], key=f"totals-{key}", priority=1)
    return HeldPairs(client, parts, together, totals)


def _hold_piece(dealer: BucketArguments, stretch: Stretch) -> tuple[PairsPart, ...]:
    """Task: deal a piece of text; return its parts by group of inputs."""
    began = time.monotonic()
    words, (pairs, *kinds) = distribute_piece(dealer, stretch)
    noise = kinds[0] if kinds else BucketedPairs(pairs.entries[:0], np.zeros_like(pairs.edges))
    n = dealer.n_groups
    of_groups = [(*_of_group(pairs, group, n), *_of_group(noise, group, n)) for group in range(n)]
    totals = PieceTotals(words, time.monotonic() - began)
    return tuple(PairsPart(*of_group, totals) for of_group in of_groups)


def _totals(*parts: PairsPart) -> PieceTotals:
    """Task: add up the totals of pieces."""
    return PieceTotals(sum(part.totals.words for part in parts), sum(part.totals.seconds for part in parts))


def _of_group(dealt: BucketedPairs, inputs: int, n_groups: int) -> tuple[Pairs, Int64Array]:
    """Return the entries of a group of inputs, and the bounds of their buckets."""
    buckets = (len(dealt.edges) - 1) // n_groups
    edges = dealt.edges[inputs * buckets : (inputs + 1) * buckets + 1]
    return share(dealt.entries[edges[0] : edges[-1]]), edges - edges[0]


def make_bucket_reader(parts: Sequence[PairsPart]) -> Callable[[int], Bucket]:
    """Return a function from the index of a bucket in its group to the bucket, as `read_buckets` reads it.

    Parameters
    ----------
    parts
        Parts of the slice's pieces for a group of inputs.
    """
    pairs = _joined([(part.pairs, part.pair_edges) for part in parts])
    noise = _joined([(part.noise, part.noise_edges) for part in parts])
    return lambda number: Bucket(pairs(number), noise(number))


def _joined(parts: Sequence[tuple[Pairs, Int64Array]]) -> Callable[[int], Pairs]:
    """Return a function that copies a bucket's entries; it is fast, as threads that train wait for it."""
    filled = [(np.asarray(entries), edges.tolist()) for entries, edges in parts if len(entries)]
    if not filled:
        none = np.empty(0, parts[0][0].dtype)
        return lambda number: none
    return lambda number: np.concatenate([entries[edges[number] : edges[number + 1]] for entries, edges in filled])
