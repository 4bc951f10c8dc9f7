"""Batches: what one task reads. Small files are read many at a time, since each task and each shard takes time."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from daskw2v.corpus.files import TextBlock

_SMALL = 64  # a file is small if so many of them are at most a block
_FILES = 512  # small files in a batch, on average
_PARTS = 8  # that a batch is split into


@dataclass(frozen=True)
class Batch:
    """A block, or several small files that follow each other in the text.

    Parameters
    ----------
    blocks
        The blocks, in the order of the text.
    """

    blocks: tuple[TextBlock, ...]

    @cached_property
    def key(self) -> str:
        """Digest of 20 hexadecimal digits: the key of a single block, or the digest of all keys."""
        keys = [block.key for block in self.blocks]
        return keys[0] if len(keys) == 1 else hashlib.blake2b("".join(keys).encode(), digest_size=10).hexdigest()

    def split(self) -> list["Batch"]:
        """Return smaller batches of the same blocks, to find out which of them is bad."""
        step = -(-len(self.blocks) // _PARTS)
        return [Batch(self.blocks[start : start + step]) for start in range(0, len(self.blocks), step)]


def batch_blocks(blocks: Sequence[TextBlock], block_bytes: int) -> list[Batch]:
    """Put blocks of small files that follow each other into batches; each other block is a batch of its own.

    A batch ends when it has `block_bytes`, and after files whose names have a certain digest, one in 512. So a file
    that is added or removed changes the batch around it, not all that follow.

    Parameters
    ----------
    blocks
        Result of `plan_blocks`.
    block_bytes
        Size of a block in bytes. A file is small if it has at most a 64th of that, as stored.
    """
    return [Batch(tuple(run)) for run in _runs(blocks, block_bytes)]


def _runs(blocks: Sequence[TextBlock], block_bytes: int) -> Iterator[list[TextBlock]]:
    run: list[TextBlock] = []
    held = 0
    for block in blocks:
        if block.source.size * _SMALL > block_bytes:
            if run:
                yield run
            yield [block]
            run, held = [], 0
            continue
        run.append(block)
        held += block.source.size
        if held >= block_bytes or _ends_batch(block.source.url):
            yield run
            run, held = [], 0
    if run:
        yield run


def _ends_batch(url: str) -> bool:
    return int.from_bytes(hashlib.blake2b(url.encode("utf-8", "surrogateescape"), digest_size=4).digest()) % _FILES == 0
