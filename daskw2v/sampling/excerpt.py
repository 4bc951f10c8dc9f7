"""Excerpts of a corpus: some ranges of its positions, as a corpus of their own. Nothing is read, written or copied."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np

from daskw2v.sampling.rng import Purpose, draws, stream
from daskw2v.shards.layout import Corpus, Shard, digest

Range = tuple[int, int]
STRETCH = 1 << 20  # positions of which a sample takes one piece, at least: a chunk of codes, so that each is read once
PLACES = 256  # pieces that are enough; where there are more, stretches are longer, and chunks between pieces not read


def excerpt(corpus: Corpus, ranges: Sequence[Range]) -> Corpus:
    """Return the corpus of some ranges of positions; each begins a sentence, unless it follows the one before.

    Its shards are parts of the corpus', and its identity is that of the corpus and the ranges.

    Parameters
    ----------
    corpus
        A corpus.
    ranges
        First positions and those past the last, in ascending order, none in two of them.
    """
    joined = join_ranges(ranges)
    shards = tuple(part for start, stop in joined for part in _parts(corpus, start, stop))
    return replace(corpus, asked=digest([corpus.identity, joined]), shards=shards, bad_blocks=())


def join_ranges(ranges: Sequence[Range]) -> list[Range]:
    """Return the same positions as ranges with gaps between them; empty ones are left out."""
    joined: list[Range] = []
    for start, stop in ranges:
        if start >= stop:
            continue
        if joined and joined[-1][1] == start:
            joined[-1] = joined[-1][0], stop
        else:
            joined.append((start, stop))
    return joined


def _parts(corpus: Corpus, start: int, stop: int) -> Iterator[Shard]:
    bounds = corpus.bounds
    for number in range(int(np.searchsorted(bounds, start, side="right")) - 1, len(corpus.shards)):
        shard, origin = corpus.shards[number], int(bounds[number])
        a, b = max(start - origin, 0), min(stop - origin, shard.n_tokens)
        if a >= b:
            return
        begins = origin + a == start or (a == 0 and shard.begins)
        yield replace(shard, n_tokens=b - a, first=shard.first + a, begins=begins)


def ranges_of_blocks(corpus: Corpus, blocks: Collection[str]) -> list[Range]:
    """Return the positions of those blocks' text, which are named by their keys."""
    named, bounds = set(blocks), corpus.bounds.tolist()
    return join_ranges([(bounds[i], bounds[i + 1]) for i, shard in enumerate(corpus.shards) if shard.block in named])


def other_ranges(ranges: Sequence[Range], n_tokens: int) -> list[Range]:
    """Return the positions below `n_tokens` that ranges leave out; these are in ascending order."""
    edges = [0, *(edge for one in join_ranges(ranges) for edge in one), n_tokens]
    return join_ranges(list(zip(edges[::2], edges[1::2], strict=True)))


def sample_ranges(ranges: Sequence[Range], share: float, seed: int) -> list[Range]:
    """Return a sample of some positions: of each stretch of them one piece, whose place is drawn.

    What is drawn depends on the positions and the seed, not on shards.

    Parameters
    ----------
    ranges
        As `excerpt` takes them.
    share
        Of each stretch, in 0..1.
    seed
        Of the draws.
    """
    pieces, key = list[Range](), stream(seed, Purpose.EXCERPT)
    n = sum(stop - start for start, stop in ranges)
    length = max(STRETCH, int(min(STRETCH / share, n / PLACES))) if share else STRETCH
    for start, stop in ranges:
        stretches = np.arange(start, stop, length)
        ends = np.minimum(stretches + length, stop)
        lengths = np.ceil((ends - stretches) * share).astype(np.int64)
        free = (ends - stretches - lengths + 1).astype(np.uint64)
        first = stretches + (draws(key, stretches.astype(np.uint64)) % free).astype(np.int64)
        pieces += zip(first.tolist(), (first + lengths).tolist(), strict=True)
    return join_ranges(pieces)
