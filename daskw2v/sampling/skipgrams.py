"""Stored skip-gram pairs of a stretch of the corpus, in p * p buckets.

    <piece>/<attempt>/pairs   pairs of a piece of text, in p * p parts, as `dealing.deal_pairs` puts them
    <piece>/<attempt>/noise   the same of negatives that are not trained with their pair, with some rules

A bucket is one part of each piece, one after the other: its pairs do not depend on how the text is cut into pieces.
Files are part files (`store.partfile`), as they are soon deleted.
"""

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
from distributed import Client

from daskw2v.cluster.tasks import run_tasks
from daskw2v.errors import DamageError
from daskw2v.kernels.alias import alias_table
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.sampling.dealing import SPAN, Noise, deal_pairs
from daskw2v.sampling.hierarchy import RULES, TNS
from daskw2v.sampling.pairs import PAIR_TYPES, Pairs, empty_pairs, pair_type
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import SEGMENT, cut
from daskw2v.sampling.text import read_text
from daskw2v.shards.layout import digest
from daskw2v.store.limits import refused, shown, typed
from daskw2v.store.partfile import read_parts, write_parts
from daskw2v.store.stage import OpenStage, new_attempt
from daskw2v.store.storage import MANIFEST, Store
from daskw2v.types import UInt64Array
from daskw2v.vocabulary.partition import Partitions

_LEAST_PIECE, _MOST_PIECE = 4 * SPAN, 16 * SEGMENT  # positions
_READ, _READS = 1 << 19, 32  # most pairs of small buckets to read together; number of such reads to cache
KEPT_PAIRS = _READ * _READS
_PAIRS, _NOISE = "pairs", "noise"
_LAST = -(1 << 30)  # a priority below those of training


@dataclass(frozen=True)
class Dealer:
    """Arguments of tasks that deal the pairs of a run into buckets.

    Parameters
    ----------
    run
        The run.
    partitions
        How words are spread.
    weights
        Total weight of the negatives of each of the p partitions.
    """

    run: Run
    partitions: Partitions
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


class Place(NamedTuple):
    """Where pairs are: their folder, and the digest of its manifest, since pairs may be dealt there again."""

    home: Store
    digest: str


@dataclass(frozen=True)
class SkipGrams:
    """The stored pairs of a stretch.

    Parameters
    ----------
    home
        Their folder.
    n_partitions, dtype
        Number of partitions p, and type of the pairs.
    attempts
        The valid attempt of each piece.
    words, pairs, noise
        Number of known tokens in the stretch before subsampling, of pairs, and of noise entries.
    """

    home: Store
    n_partitions: int
    dtype: str
    attempts: tuple[str, ...]
    words: int
    pairs: int
    noise: int

    @property
    def place(self) -> Place:
        """Where they are, for tasks."""
        return Place(self.home, digest(list(self.attempts)))


def piece_length(n_partitions: int, length: int) -> int:
    """Return the positions of a piece, whole spans of `dealing`.

    A task deals one piece. So there are at least as many as partitions are trained at a time, if the text has enough.
    The more buckets there are, the longer pieces may be, so that a bucket's part is worth reading.
    """
    most = min(_MOST_PIECE, max(SEGMENT, n_partitions**2 * (SEGMENT >> 8)))
    return max(_LEAST_PIECE, min(most, length // n_partitions) // SPAN * SPAN)


def build_skipgrams(client: Client, dealer: Dealer, home: Store, stretch: Stretch) -> SkipGrams:
    """Deal the pairs of a stretch into buckets on the cluster, or return them if that was done before.

    A task holds the text and the pairs of a piece. Tasks that wait for a worker let all others go first: they fill the
    gaps of a training.
    """
    known = read_skipgrams(home)
    if known is not None:
        return known
    stage = OpenStage(home, partial(run_tasks, client, priority=_LAST))  # the run holds the lease
    pieces = cut(stretch.start, stretch.stop, piece_length(dealer.partitions.n, stretch.stop - stretch.start))
    jobs = [(dealer, home, number, Stretch(stretch.epoch, a, b)) for number, (a, b) in enumerate(pieces)]
    dealt = stage.map("deal", _deal_piece, jobs)
    found = SkipGrams(
        home,
        dealer.partitions.n,
        pair_type(dealer.partitions.most).name,
        tuple(piece["attempt"] for piece in dealt),
        *(sum(piece[name] for piece in dealt) for name in ("words", _PAIRS, _NOISE)),
    )
    manifest = {name: value for name, value in vars(found).items() if name != "home"}
    stage.finish(manifest, [f"{number}/{name}" for number, name in enumerate(found.attempts)])
    return found


def read_skipgrams(home: Store) -> SkipGrams | None:
    """Return the pairs in a folder, or None if they are not complete."""
    manifest = home.read_manifest()
    if manifest is None:
        return None
    del manifest["format_version"]
    found = typed(SkipGrams, manifest, f"{home.url}/{MANIFEST}", home=home)
    if found.dtype not in PAIR_TYPES or found.n_partitions < 1:
        raise refused(home.url, f"holds pairs of type {shown(found.dtype)} in {found.n_partitions} partitions")
    return found


def _deal_piece(dealer: Dealer, home: Store, number: int, stretch: Stretch) -> dict[str, Any]:
    """Task: deal a piece of text into buckets; return attempt and numbers of words, pairs, noise entries."""
    segment, words, windows = read_text(dealer.run, *stretch)
    attempt, sizes = new_attempt(), {_PAIRS: 0, _NOISE: 0}
    place = home / str(number) / attempt
    for name, noise in _kinds(dealer, stretch.epoch).items():
        dealt = deal_pairs(segment, stretch.start, stretch.stop, windows, dealer.partitions, noise)
        write_parts(place, name, dealt.edges, dealt.entries)
        sizes[name] = len(dealt.entries)
    return {"attempt": attempt, "words": words, **sizes}


def _kinds(dealer: Dealer, epoch: int) -> dict[str, Noise | None]:
    """Return what is dealt: pairs, and noise where the rule has it."""
    params = dealer.run.params
    rule, key = RULES[params.negative_rule], stream(params.seed, Purpose.PARTITION, epoch)
    if rule == TNS:
        return {_PAIRS: None}
    return {_PAIRS: None, _NOISE: Noise(rule, params.negative, _table(dealer.weights), key)}


@lru_cache(maxsize=2)
def _table(weights: tuple[float, ...]) -> UInt64Array:
    return alias_table(np.array(weights))


def read_bucket(place: Place, output: int, input: int) -> Bucket:
    """Read the bucket of two partitions.

    Parameters
    ----------
    place
        Where the pairs of a stretch are.
    output, input
        The partition of centers or negatives, and that of contexts.

    Raises
    ------
    DamageError
        If pairs are gone, or not what was written.
    """
    grams = _open(place)
    n, names = grams.n_partitions, (_PAIRS, _NOISE) if grams.noise else (_PAIRS,)
    most = min(n, max(1, _READ * n**2 // max(1, grams.pairs + grams.noise)))
    together = 1 << most.bit_length() - 1  # groups of partitions are often powers of two
    first = input // together * together
    last = min(n, first + together)
    found = [_read(place, name, output, first, last)[input - first] for name in names]
    return Bucket(found[0], found[1] if grams.noise else empty_pairs(0, grams.dtype))


@lru_cache(maxsize=4)
def _open(place: Place) -> SkipGrams:
    """Return pairs that are complete."""
    found = read_skipgrams(place.home)
    if found is None or found.place != place:
        raise DamageError.of(f"{place.home.url}/{MANIFEST}", "is gone, or not what was written")
    return found


@lru_cache(maxsize=_READS)
def _read(place: Place, name: str, output: int, first: int, last: int) -> list[Pairs]:
    """Read the buckets of an output partition and the input partitions first..last-1.

    Small ones are read together: each read takes as long as some thousand pairs, and the others are needed next.
    """
    grams = _open(place)
    n, row = grams.n_partitions, output * grams.n_partitions
    pieces = [
        read_parts(grams.home / str(number) / attempt, name, n * n, row + first, row + last, grams.dtype, 1)
        for number, attempt in enumerate(grams.attempts)
    ]
    return [np.concatenate([part.reshape(-1) for part in parts]) for parts in zip(*pieces, strict=True)]
