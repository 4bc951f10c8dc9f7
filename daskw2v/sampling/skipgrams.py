"""Skip-gram shards: the pairs of a stretch of the corpus on disk, in p * p buckets.

    rows/<i>/<attempt>   row i: the buckets whose contexts are in partition i, a Zarr group written whole by one task
    text/<i>/<attempt>   a piece of text, dealt into rows; deleted when all rows are gathered

A row holds `pairs` (and `noise`: negatives that are trained elsewhere than their pair), entries (n, 2) int32 as of
`dealing.deal_row`: one Zarr shard, of which a slice can be read; their edges are its attribute. A pair takes some 3
bytes of the 8 when compressed. A piece of text holds the same as of `dealing.deal_pairs`, in files as they are: edges,
then entries.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import zarr
from distributed import Client

from daskw2v.raw import part_bounds, read_items, write_parts
from daskw2v.sampling.alias import alias_table
from daskw2v.sampling.dealing import Dealt, Integers, Noise, deal_pairs, deal_row
from daskw2v.sampling.hierarchy import RULES, TNS
from daskw2v.sampling.rng import Purpose, stream
from daskw2v.sampling.run import Run
from daskw2v.sampling.segments import SEGMENT, cut
from daskw2v.sampling.text import read_text
from daskw2v.shards.layout import groups_exist
from daskw2v.shards.tasks import new_attempt, run_tasks
from daskw2v.storage import Store, open_array, write_array

_CHUNK = 1 << 18  # entries compressed together: a small bucket is read out of one
_READ, _READS = 1 << 19, 32  # entries read together at most, where buckets are smaller: 4 MB; such reads that are kept
KEPT_BYTES = 8 * _READ * _READS
_KINDS, _EDGES, _HELD = ("pairs", "noise"), "edges", "kinds"


@dataclass(frozen=True)
class Dealer:
    """What deals the pairs of a run.

    Parameters
    ----------
    run
        The run.
    weights
        What all negatives of each partition weigh together, p of them.
    """

    run: Run
    weights: tuple[float, ...]


class Stretch(NamedTuple):
    """Positions start..stop-1 of the corpus, with the draws of an epoch."""

    epoch: int
    start: int
    stop: int


class Bucket(NamedTuple):
    """What two partitions train together: contexts and centers of pairs, and of noise, shapes (2, n) int32."""

    pairs: Integers
    noise: Integers


@dataclass(frozen=True)
class SkipGrams:
    """The pairs of a stretch, on disk.

    Parameters
    ----------
    home
        Where they lie.
    rows
        The attempt that counts of each row of buckets.
    words, pairs, noise
        Words of the vocabulary in the stretch, before subsampling; its pairs; and negatives trained elsewhere.
    """

    home: Store
    rows: tuple[str, ...]
    words: int
    pairs: int
    noise: int

    def row(self, number: int) -> Store:
        """Return where a row of buckets lies."""
        return self.home / "rows" / str(number) / self.rows[number]


def build_skipgrams(client: Client, dealer: Dealer, home: Store, stretch: Stretch) -> SkipGrams:
    """Deal the pairs of a stretch on the cluster; those that lie at home already are returned.

    In memory a task holds the pairs of SEGMENT positions, or a row: 1/p of the stretch's pairs, twice.
    """
    known = _read_manifest(home)
    if known is not None:
        return known
    stretches = [Stretch(stretch.epoch, a, b) for a, b in cut(stretch.start, stretch.stop, SEGMENT)]
    texts = {number: (dealer, home, number, part) for number, part in enumerate(stretches)}
    dealt = dict(run_tasks(client, "deal", _deal_text, texts))
    attempts = [dealt[number]["attempt"] for number in range(len(stretches))]
    kinds, n = _KINDS[: 1 if RULES[dealer.run.params.negative_rule] == TNS else 2], len(dealer.weights)
    jobs = {row: (home, attempts, kinds, row, n) for row in range(n)}
    rows = dict(run_tasks(client, "gather", _gather_row, jobs))
    totals = {name: sum(entry[name] for entry in dealt.values()) for name in ("words", *_KINDS)}
    names = [rows[number] for number in range(n)]
    home.write_manifest({"rows": names, **totals})
    (home / "text").remove()
    return SkipGrams(home, tuple(names), **totals)


def _read_manifest(home: Store) -> SkipGrams | None:
    manifest = home.read_manifest()
    if manifest is None:
        return None
    found = SkipGrams(home, tuple(manifest["rows"]), *(manifest[name] for name in ("words", *_KINDS)))
    return found if groups_exist(home, [f"rows/{i}/{name}" for i, name in enumerate(found.rows)]) else None


def _deal_text(dealer: Dealer, home: Store, number: int, stretch: Stretch) -> dict[str, Any]:
    """Task: deal a piece of text into rows of buckets; return the attempt, its words, pairs and noise."""
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
def _table(weights: tuple[float, ...]) -> npt.NDArray[np.uint64]:
    return alias_table(np.array(weights))


def _gather_row(home: Store, attempts: Sequence[str], kinds: Sequence[str], row: int, n_partitions: int) -> str:
    """Task: gather a row from all pieces of text and deal it into its buckets; return the attempt."""
    texts = [home / "text" / str(number) / attempt for number, attempt in enumerate(attempts)]
    attempt = new_attempt()
    group = (home / "rows" / str(row) / attempt).create_group()
    group.attrs[_HELD] = list(kinds)
    for name in kinds:
        _write(group, name, deal_row(_join(texts, name, row, n_partitions), n_partitions))
    return attempt


def _join(texts: Sequence[Store], name: str, row: int, n_partitions: int) -> Integers:
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
    """Open what `_write` wrote: the entries stay on disk."""
    array = open_array(group, name)
    return Dealt(array, np.array(array.attrs[_EDGES]))  # type: ignore[arg-type]


def _read(dealt: Dealt, number: int) -> Integers:
    return np.asarray(dealt.entries[dealt.edges[number] : dealt.edges[number + 1]])


@lru_cache(maxsize=256)
def _open_row(row: Store) -> list[Dealt]:
    """Open a row of buckets. Only a cache: what lies there never changes."""
    group = row.open_group()
    held: Any = group.attrs[_HELD]
    return [_open(group, name) for name in held]


def read_bucket(row: Store, number: int) -> Bucket:
    """Read a bucket of a row.

    Raises
    ------
    StoreError
        If the row is gone.
    """
    none = np.empty((0, 2), np.int32)
    pairs, noise, *_ = *(_bucket(row, kind, number) for kind in range(len(_open_row(row)))), none
    return Bucket(*(np.ascontiguousarray(entries.T) for entries in (pairs, noise)))


def _bucket(row: Store, kind: int, number: int) -> Integers:
    edges = _open_row(row)[kind].edges
    together = int(_READ * (len(edges) - 1) // max(1, edges[-1]))
    if together < 2:
        return _read(_open_row(row)[kind], number)
    first = number // together * together
    a, b = edges[number : number + 2] - edges[first]
    return _read_several(row, kind, first, first + together)[a:b]


@lru_cache(maxsize=_READS)
def _read_several(row: Store, kind: int, first: int, last: int) -> Integers:
    """Read small buckets together, since each read takes milliseconds: the next meetings of a row need the others."""
    dealt = _open_row(row)[kind]
    return np.asarray(dealt.entries[dealt.edges[first] : dealt.edges[min(last, len(dealt.edges) - 1)]])
