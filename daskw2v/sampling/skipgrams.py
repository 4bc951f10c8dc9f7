"""Stored skip-gram pairs of a stretch of the corpus, in p * p buckets.

    rows/<i>/<attempt>   row i: the buckets with contexts in partition i, a Zarr group written by one task
    text/<i>/<attempt>   pairs of a piece of text, by row; deleted when all rows are written

A row has `pairs` (and `noise`: negatives that are not trained with their pair), entries (n, 2) int32 from
`dealing.deal_row`. They are one Zarr shard, of which slices can be read; the bounds of the buckets are its attribute.
Compressed, a pair takes about 3 bytes instead of 8. A piece of text has the entries of `dealing.deal_pairs`,
uncompressed, as a part file (`store.partfile`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np
import zarr
from distributed import Client

from daskw2v.cluster.tasks import run_tasks
from daskw2v.kernels.alias import alias_table
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.sampling.dealing import Dealt, Noise, deal_pairs, deal_row
from daskw2v.sampling.hierarchy import RULES, TNS
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import SEGMENT, cut
from daskw2v.sampling.text import read_text
from daskw2v.store.arrays import open_array, write_array
from daskw2v.store.limits import typed
from daskw2v.store.partfile import part_bounds, read_items, write_parts
from daskw2v.store.stage import OpenStage, groups_exist, new_attempt
from daskw2v.store.storage import MANIFEST, Store
from daskw2v.types import Int32Array, UInt64Array

_CHUNK = 1 << 18  # entries compressed together
_READ, _READS = 1 << 19, 32  # most entries of small buckets to read together, 4 MB; number of such reads to cache
KEPT_BYTES = 8 * _READ * _READS
_KINDS, _EDGES, _HELD = ("pairs", "noise"), "edges", "kinds"


@dataclass(frozen=True)
class Dealer:
    """Arguments of tasks that sort the pairs of a run into buckets.

    Parameters
    ----------
    run
        The run.
    weights
        Total weight of the negatives of each of the p partitions.
    """

    run: Run
    weights: tuple[float, ...]


class Stretch(NamedTuple):
    """Positions start..stop-1 of the corpus in an epoch."""

    epoch: int
    start: int
    stop: int


class Bucket(NamedTuple):
    """The pairs of two partitions: contexts and centers of pairs, and of noise entries, shapes (2, n) int32."""

    pairs: Int32Array
    noise: Int32Array


@dataclass(frozen=True)
class SkipGrams:
    """The stored pairs of a stretch.

    Parameters
    ----------
    home
        Their folder.
    rows
        The valid attempt of each row of buckets.
    words, pairs, noise
        Number of known tokens in the stretch before subsampling, of pairs, and of noise entries.
    """

    home: Store
    rows: tuple[str, ...]
    words: int
    pairs: int
    noise: int

    def row(self, number: int) -> Store:
        """Return the Zarr group of a row of buckets."""
        return self.home / "rows" / str(number) / self.rows[number]


def build_skipgrams(client: Client, dealer: Dealer, home: Store, stretch: Stretch) -> SkipGrams:
    """Sort the pairs of a stretch into buckets on the cluster, or return them if that was done before.

    A task holds the pairs of SEGMENT positions, or twice those of a row: 1/p of the stretch's pairs.
    """
    known = read_skipgrams(home)
    if known is not None:
        return known
    stage = OpenStage(home, partial(run_tasks, client))  # the run holds the lease
    stretches = [Stretch(stretch.epoch, a, b) for a, b in cut(stretch.start, stretch.stop, SEGMENT)]
    dealt = stage.map("deal", _deal_text, [(dealer, home, number, part) for number, part in enumerate(stretches)])
    attempts = [text["attempt"] for text in dealt]
    kinds, n = _KINDS[: 1 if RULES[dealer.run.params.negative_rule] == TNS else 2], len(dealer.weights)
    names = stage.map("gather", _gather_row, [(home, attempts, kinds, row, n) for row in range(n)])
    totals = {name: sum(text[name] for text in dealt) for name in ("words", *_KINDS)}
    stage.finish({"rows": names, **totals}, [f"rows/{row}/{name}" for row, name in enumerate(names)])
    return SkipGrams(home, tuple(names), **totals)


def read_skipgrams(home: Store) -> SkipGrams | None:
    """Return the pairs in a folder, or None if they are not complete."""
    manifest = home.read_manifest()
    if manifest is None:
        return None
    del manifest["format_version"]
    found = typed(SkipGrams, manifest, f"{home.url}/{MANIFEST}", home=home)
    return found if groups_exist(home, [f"rows/{i}/{name}" for i, name in enumerate(found.rows)]) else None


def _deal_text(dealer: Dealer, home: Store, number: int, stretch: Stretch) -> dict[str, Any]:
    """Task: sort a piece of text into rows of buckets; return attempt and numbers of words, pairs, noise entries."""
    segment, words, windows = read_text(dealer.run, *stretch)
    attempt, sizes = new_attempt(), []
    place = home / "text" / str(number) / attempt
    for name, noise in zip(_KINDS, (None, _noise(dealer, stretch.epoch)), strict=True):
        if name == "pairs" or noise is not None:
            centers = segment.centers(stretch.start, stretch.stop)
            found = deal_pairs(segment, *centers, windows, len(dealer.weights), noise)
            write_parts(place, name, found.edges, found.entries)
            sizes.append(len(found.entries))
    return {"attempt": attempt, "words": words, **dict(zip(_KINDS, [*sizes, 0], strict=False))}


def _noise(dealer: Dealer, epoch: int) -> Noise | None:
    params = dealer.run.params
    rule, key = RULES[params.negative_rule], stream(params.seed, Purpose.PARTITION, epoch)
    return None if rule == TNS else Noise(rule, params.negative, _table(dealer.weights), key)


@lru_cache(maxsize=2)
def _table(weights: tuple[float, ...]) -> UInt64Array:
    return alias_table(np.array(weights))


def _gather_row(home: Store, attempts: Sequence[str], kinds: Sequence[str], row: int, n_partitions: int) -> str:
    """Task: gather a row from all pieces of text and sort it into its buckets; return the attempt."""
    texts = [home / "text" / str(number) / attempt for number, attempt in enumerate(attempts)]
    attempt = new_attempt()
    group = (home / "rows" / str(row) / attempt).create_group()
    group.attrs[_HELD] = list(kinds)
    for name in kinds:
        _write(group, name, deal_row(_join(texts, name, row, n_partitions), n_partitions))
    return attempt


def _join(texts: Sequence[Store], name: str, row: int, n_partitions: int) -> Int32Array:
    """Read the entries of a row from all pieces of text, one after the other."""
    bounds = [part_bounds(text, name, row) for text in texts]
    ends = np.cumsum([0, *(bound.stop - bound.start for bound in bounds)])
    entries = np.empty((ends[-1], 2), np.int32)
    for text, bound, a, b in zip(texts, bounds, ends[:-1], ends[1:], strict=True):
        entries[a:b] = read_items(text, name, n_partitions, bound, np.int32, 2)
    return entries


def _write(group: zarr.Group, name: str, dealt: Dealt) -> None:
    write_array(group, name, dealt.entries, _CHUNK, one_shard=True, attributes={_EDGES: dealt.edges.tolist()})


def _open(group: zarr.Group, name: str) -> Dealt:
    """Open what `_write` wrote, without reading the entries."""
    array = open_array(group, name)
    return Dealt(array, np.array(array.attrs[_EDGES]))  # type: ignore[arg-type]


def _read(dealt: Dealt, number: int) -> Int32Array:
    return np.asarray(dealt.entries[dealt.edges[number] : dealt.edges[number + 1]])


@lru_cache(maxsize=256)
def _open_row(row: Store) -> list[Dealt]:
    """Open a row of buckets. It is cached, as the files never change."""
    group = row.open_group()
    held: Any = group.attrs[_HELD]
    return [_open(group, name) for name in held]


def read_bucket(row: Store, number: int) -> Bucket:
    """Read a bucket of a row.

    Raises
    ------
    StoreError
        If the row is missing.
    """
    none = np.empty((0, 2), np.int32)
    pairs, noise, *_ = *(_bucket(row, kind, number) for kind in range(len(_open_row(row)))), none
    return Bucket(*(np.ascontiguousarray(entries.T) for entries in (pairs, noise)))


def _bucket(row: Store, kind: int, number: int) -> Int32Array:
    edges = _open_row(row)[kind].edges
    together = int(_READ * (len(edges) - 1) // max(1, edges[-1]))
    if together < 2:
        return _read(_open_row(row)[kind], number)
    first = number // together * together
    a, b = edges[number : number + 2] - edges[first]
    return _read_several(row, kind, first, first + together)[a:b]


@lru_cache(maxsize=_READS)
def _read_several(row: Store, kind: int, first: int, last: int) -> Int32Array:
    """Read small buckets together, as each read takes milliseconds and the others are needed next."""
    dealt = _open_row(row)[kind]
    return np.asarray(dealt.entries[dealt.edges[first] : dealt.edges[min(last, len(dealt.edges) - 1)]])
