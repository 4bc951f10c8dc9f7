"""Excerpts: ranges of a corpus's positions as another corpus, without reading or copying text."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np

from daskw2v.kernels.rng import Purpose, draws, stream
from daskw2v.shards.layout import BatchBlock, Corpus, Shard, digest, read_starts
from daskw2v.store.storage import Store
from daskw2v.types import Int64Array

Range = tuple[int, int]  # positions: the first, and one past the last
STRETCH = 1 << 20  # positions for each piece of a sample, at least: a chunk of codes, so that a chunk has one piece
MAX_PIECES = 256  # in longer text, stretches are longer, and chunks without a piece are not read


def make_excerpt(corpus: Corpus, ranges: Sequence[Range]) -> Corpus:
    """Return the excerpt of a corpus: a corpus of ranges of its positions.

    A new sentence begins at each gap between ranges. Shards of an excerpt are parts of the corpus's shards, and its
    identity is made of the corpus and the ranges.

    Parameters
    ----------
    corpus
        A corpus.
    ranges
        Ascending, disjoint ranges of positions.
    """
    joined = join_ranges(ranges)
    shards = tuple(part for start, stop in joined for part in _cut_shards(corpus, start, stop))
    return replace(corpus, asked=digest([corpus.identity, joined]), shards=shards, bad_blocks=(), parts=())


def join_ranges(ranges: Sequence[Range]) -> list[Range]:
    """Return ascending ranges with adjacent ones joined and empty ones dropped."""
    joined: list[Range] = []
    for start, stop in ranges:
        if joined and joined[-1][1] == start < stop:
            joined[-1] = joined[-1][0], stop
        elif start < stop:
            joined.append((start, stop))
    return joined


def _cut_shards(corpus: Corpus, start: int, stop: int) -> Iterator[Shard]:
    """Yield the parts of shards with the positions start..stop-1, at the first of which a sentence begins."""
    for number, a, b in corpus.shards_in(start, stop):
        shard = corpus.shards[number]
        begins = bool(corpus.bounds[number] + a == start) or (a == 0 and shard.begins)
        yield replace(shard, n_tokens=b - a, first=shard.first + a, begins=begins)


def find_block_ranges(corpus: Corpus, store: Store, blocks: Collection[str]) -> list[Range]:
    """Return the ranges of positions of blocks.

    Parameters
    ----------
    corpus
        A corpus, not an excerpt.
    store
        The work directory, which has the starts of sentences: they divide a batch into blocks.
    blocks
        Keys of the blocks (`TextBlock.key`).
    """
    named, parts, before = set(blocks), defaultdict[str, list[BatchBlock]](list), Counter[str]()
    for part in corpus.parts:
        parts[part.batch].append(part)
    ranges = list[Range]()
    for shard, origin in zip(corpus.shards, corpus.bounds.tolist(), strict=False):
        if shard.block not in parts:
            ranges += [(origin, origin + shard.n_tokens)] if shard.block in named else []
        elif not named.isdisjoint(part.block for part in parts[shard.block]):
            positions = origin + np.append(read_starts(store, shard), shard.n_tokens)
            ranges += _find_ranges(parts[shard.block], named, before[shard.block], origin, positions)
        before[shard.block] += shard.n_sentences
    return join_ranges(ranges)


def _find_ranges(
    parts: Sequence[BatchBlock], named: Collection[str], before: int, origin: int, positions: Int64Array
) -> Iterator[Range]:
    """Yield the ranges of positions that blocks of a batch have in a shard.

    Parameters
    ----------
    parts, named
        The blocks of the batch, and the keys of the blocks to yield.
    before
        Number of sentences that start in earlier shards of the batch. The batch may be in the text several times.
    origin, positions
        Position at which the shard begins; positions at which its sentences begin, and the position of its end.
    """
    edges = np.cumsum([0, *(part.n_sentences for part in parts)])
    inside = int(positions[0] > origin)  # the shard begins inside the last sentence of the shard before
    first = (before - inside) % edges[-1] + inside
    bounds = np.where(edges < first, origin, positions[np.clip(edges - first, 0, len(positions) - 1)]).tolist()
    for part, start, stop in zip(parts, bounds, bounds[1:], strict=False):
        if part.block in named:
            yield start, stop


def complement_ranges(ranges: Sequence[Range], n_tokens: int) -> list[Range]:
    """Return the ranges of the positions below `n_tokens` that are in none of the ascending ranges."""
    bounds = [0, *(bound for pair in join_ranges(ranges) for bound in pair), n_tokens]
    return join_ranges(list(zip(bounds[::2], bounds[1::2], strict=True)))


def sample_ranges(ranges: Sequence[Range], share: float, seed: int) -> list[Range]:
    """Return a sample of ranges of positions: of each stretch one piece, at a random position.

    The sample depends on the positions and the seed, not on shards.

    Parameters
    ----------
    ranges
        Ranges to sample from, as in `make_excerpt`. They are cut into stretches of STRETCH positions or more.
    share
        Share of each stretch that the sample has, 0..1.
    seed
        Seed of the random positions.
    """
    n = sum(stop - start for start, stop in ranges)
    length = max(STRETCH, int(min(STRETCH / share, n / MAX_PIECES))) if share else STRETCH
    return draw_pieces(ranges, share, length, stream(seed, Purpose.EXCERPT))


def draw_pieces(ranges: Sequence[Range], share: float, length: int, key: np.uint64) -> list[Range]:
    """Return one piece, at a random position, of each stretch of `length` positions or rest of a range.

    A piece has the share `share`, 0..1, of its stretch, rounded up. `key` is the key of the random positions.
    """
    pieces = list[Range]()
    for start, stop in ranges:
        stretches = np.arange(start, stop, length)
        ends = np.minimum(stretches + length, stop)
        lengths = np.ceil((ends - stretches) * share).astype(np.int64)
        free = (ends - stretches - lengths + 1).astype(np.uint64)
        first = stretches + (draws(key, stretches.astype(np.uint64)) % free).astype(np.int64)
        pieces += zip(first.tolist(), (first + lengths).tolist(), strict=True)
    return join_ranges(pieces)
