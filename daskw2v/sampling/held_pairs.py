"""Skip-gram pairs of a stretch of the corpus in p * p buckets, in the memory of workers.

A task deals a piece of text. Its result is cut by groups of input partitions: these stay on their workers, so each
worker takes its part of every piece once a pass, from the worker that dealt it. Nothing is written. What a lost worker
held, Dask makes again: a piece is a pure function of the text.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import itemgetter
from typing import NamedTuple

import numpy as np
from distributed import Client, Future

from daskw2v.cluster import gather, total_threads
from daskw2v.cluster.shared_memory import by_fields, share
from daskw2v.sampling.dealing import Dealt
from daskw2v.sampling.pairs import Pairs
from daskw2v.sampling.skipgrams import LAST, Bucket, Dealer, Stretch, cut_stretch, deal_piece
from daskw2v.types import Int64Array


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
        Those of the piece, of which all groups have a part.
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
        `PieceTotals` of all pieces together.
    """

    client: Client
    parts: list[list[Future]]
    together: int
    totals: Future

    @property
    def n_slices(self) -> int:
        """Number of slices."""
        return -(-len(self.parts[0]) // self.together)

    def of_group(self, inputs: int) -> list[list[Future]]:
        """Return the parts of a group of inputs, by slice: what a task that trains them is given."""
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
        found: list[PieceTotals] = gather(self.client, [self.totals], "Dealing pairs")
        return found[0]


def hold_pairs(client: Client, dealer: Dealer, stretch: Stretch, key: str) -> HeldPairs:
    """Submit the dealing of a stretch, in the slices of `skipgrams.build_skipgrams`; wait for nothing.

    Tasks that wait for a worker let all others go first: they fill the gaps of a training. `key` tells their keys from
    those of all other stretches.
    """
    pieces, together = cut_stretch(dealer, stretch, total_threads(client))
    dealt = [
        client.submit(_deal, dealer, piece, key=f"deal-{key}-{number}", priority=LAST, retries=2)
        for number, piece in enumerate(pieces)
    ]

    def taken(group: int) -> list[Future]:
        keys = [f"pairs-{group}-{future.key}" for future in dealt]
        found: list[Future] = client.map(itemgetter(group), dealt, key=keys, priority=1)
        return found

    parts = [taken(group) for group in range(dealer.n_groups)]
    # From the parts of one group: a worker takes them anyway
    totals = client.submit(_totals, *parts[0], key=f"totals-{key}", priority=1)
    return HeldPairs(client, parts, together, totals)


def _deal(dealer: Dealer, stretch: Stretch) -> tuple[PairsPart, ...]:
    """Task: deal a piece of text; return what each group of inputs has of it."""
    began = time.monotonic()
    words, (pairs, *others) = deal_piece(dealer, stretch)
    noise = others[0] if others else Dealt(pairs.entries[:0], np.zeros_like(pairs.edges))
    of_groups = [
        (*_of_group(pairs, group, dealer.n_groups), *_of_group(noise, group, dealer.n_groups))
        for group in range(dealer.n_groups)
    ]
    totals = PieceTotals(words, time.monotonic() - began)
    return tuple(PairsPart(*of_group, totals) for of_group in of_groups)


def _totals(*parts: PairsPart) -> PieceTotals:
    """Task: add up the totals of pieces."""
    return PieceTotals(sum(part.totals.words for part in parts), sum(part.totals.seconds for part in parts))


def _of_group(dealt: Dealt, inputs: int, n_groups: int) -> tuple[Pairs, Int64Array]:
    """Return the entries of a group of inputs, and the bounds of their buckets."""
    buckets = (len(dealt.edges) - 1) // n_groups
    edges = dealt.edges[inputs * buckets : (inputs + 1) * buckets + 1]
    return share(dealt.entries[edges[0] : edges[-1]]), edges - edges[0]


def held_buckets(parts: Sequence[PairsPart]) -> Callable[[int], Bucket]:
    """Return what makes a bucket of a slice, as `skipgrams.read_buckets` reads it, given its place in the group.

    Parameters
    ----------
    parts
        What the slice's pieces have of a group of inputs.
    """
    pairs = _joined([(part.pairs, part.pair_edges) for part in parts])
    noise = _joined([(part.noise, part.noise_edges) for part in parts])
    return lambda place: Bucket(pairs(place), noise(place))


def _joined(parts: Sequence[tuple[Pairs, Int64Array]]) -> Callable[[int], Pairs]:
    """Return what makes a copy of a bucket's entries. It is fast: threads that train wait for each other there."""
    found = [(np.asarray(entries), edges.tolist()) for entries, edges in parts if len(entries)]
    if not found:
        none = np.empty(0, parts[0][0].dtype)
        return lambda place: none
    return lambda place: np.concatenate([entries[edges[place] : edges[place + 1]] for entries, edges in found])
