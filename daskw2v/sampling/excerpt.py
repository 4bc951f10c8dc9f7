"""Excerpts: ranges of a corpus's positions as another corpus, made without reading or copying text."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np

from daskw2v.kernels.rng import Purpose, draws, stream
from daskw2v.shards.layout import BatchBlock, Corpus, Shard, digest, read_starts
from daskw2v.store.storage import Store
from daskw2v.types import Int64Array

Range = tuple[int, int]
STRETCH = 1 << 20  # fewest positions for each piece of a sample: a chunk of codes, so that a chunk has one piece
PLACES = 256  # enough pieces; in longer text, stretches are longer, and chunks without a piece are not read


def make_excerpt(corpus: Corpus, ranges: Sequence[Range]) -> Corpus:
    """Return the corpus of ranges of positions; a new sentence begins at each gap between ranges.

    Shards of an excerpt are parts of the corpus's shards, and its identity is made of the corpus and the ranges.

    Parameters
    ----------
    corpus
        A corpus.
    ranges
        Ascending, disjoint ranges of positions, from the first to one past the last.
    """
    joined = join_ranges(ranges)
    shards = tuple(part for start, stop in joined for part in _parts(corpus, start, stop))
    return replace(corpus, asked=digest([corpus.identity, joined]), shards=shards, bad_blocks=(), parts=())


def join_ranges(ranges: Sequence[Range]) -> list[Range]:
    """Join adjacent ranges and drop empty ones."""
    joined: list[Range] = []
    for start, stop in ranges:
        if joined and joined[-1][1] == start < stop:
            joined[-1] = joined[-1][0], stop
        elif start < stop:
            joined.append((start, stop))
    return joined


def _parts(corpus: Corpus, start: int, stop: int) -> Iterator[Shard]:
    for number, a, b in corpus.shards_in(start, stop):
        shard = corpus.shards[number]
        begins = bool(corpus.bounds[number] + a == start) or (a == 0 and shard.begins)
        yield replace(shard, n_tokens=b - a, first=shard.first + a, begins=begins)


def find_block_ranges(corpus: Corpus, store: Store, blocks: Collection[str]) -> list[Range]:
    """Return the positions of the blocks with these keys.

    Parameters
    ----------
    corpus
        A corpus, not an excerpt.
    store
        The work directory, with the starts of sentences: by them the blocks of a batch are found.
    blocks
        Keys of blocks.
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
            ranges += _of_parts(parts[shard.block], named, before[shard.block], origin, positions)
        before[shard.block] += shard.n_sentences
    return join_ranges(ranges)


def _of_parts(
    parts: Sequence[BatchBlock], named: Collection[str], before: int, origin: int, positions: Int64Array
) -> Iterator[Range]:
    """Yield the positions in a shard of the named blocks of a batch.

    Parameters
    ----------
    parts, named
        The blocks of the batch, and the keys of the blocks to yield.
    before
        Number of sentences that start in earlier shards of the batch; it may be in the text several times.
    origin, positions
        Position at which the shard begins; positions at which its sentences begin, and its end.
    """
    edges = np.cumsum([0, *(part.n_sentences for part in parts)])
    inside = int(positions[0] > origin)  # the shard begins inside a sentence, which is that of the shard before
    first = (before - inside) % edges[-1] + inside
    bounds = np.where(edges < first, origin, positions[np.clip(edges - first, 0, len(positions) - 1)]).tolist()
    for part, start, stop in zip(parts, bounds, bounds[1:], strict=False):
        if part.block in named:
            yield start, stop


def complement_ranges(ranges: Sequence[Range], n_tokens: int) -> list[Range]:
    """Return the positions below `n_tokens` outside of the ranges, which are ascending."""
    edges = [0, *(edge for one in join_ranges(ranges) for edge in one), n_tokens]
    return join_ranges(list(zip(edges[::2], edges[1::2], strict=True)))


def sample_ranges(ranges: Sequence[Range], share: float, seed: int) -> list[Range]:
    """Return a sample of positions: one piece of each stretch, at a random position.

    The sample depends on the positions and the seed, not on shards.

    Parameters
    ----------
    ranges
        Ranges to sample from, as in `make_excerpt`.
    share
        Share of each stretch to take, 0..1.
    seed
        Seed of the draws.
    """
    n = sum(stop - start for start, stop in ranges)
    length = max(STRETCH, int(min(STRETCH / share, n / PLACES))) if share else STRETCH
    return draw_pieces(ranges, share, length, stream(seed, Purpose.EXCERPT))


def draw_pieces(ranges: Sequence[Range], share: float, length: int, key: np.uint64) -> list[Range]:
    """Return a share of each stretch of `length` positions, one piece at a position drawn from the stream `key`."""
    pieces = list[Range]()
    for start, stop in ranges:
        stretches = np.arange(start, stop, length)
        ends = np.minimum(stretches + length, stop)
        lengths = np.ceil((ends - stretches) * share).astype(np.int64)
        free = (ends - stretches - lengths + 1).astype(np.uint64)
        first = stretches + (draws(key, stretches.astype(np.uint64)) % free).astype(np.int64)
        pieces += zip(first.tolist(), (first + lengths).tolist(), strict=True)
    return join_ranges(pieces)
