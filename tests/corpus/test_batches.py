"""Batches: small files are read many at a time."""

import random

from hypothesis import given
from hypothesis import strategies as st

from daskw2v.corpus.files import Batch, Source, TextBlock, batch_blocks

BLOCK = 1 << 20
LARGE = BLOCK // 64 + 1


def blocks_of(sizes):
    sources = [Source(f"/text/{name}.txt", size, "v", "text", None) for name, size in sizes.items()]
    return [TextBlock(s, start, min(start + BLOCK, s.size)) for s in sources for start in range(0, s.size, BLOCK)]


@given(st.lists(st.integers(1, 2 * LARGE) | st.just(3 * BLOCK), max_size=200))
def test_batches__are_the_blocks_in_order_and_no_longer_than_a_block(sizes):
    blocks = blocks_of(dict(enumerate(sizes)))
    batches = batch_blocks(blocks, BLOCK)
    assert [block for batch in batches for block in batch.blocks] == blocks
    for batch in batches:
        if len(batch.blocks) > 1:
            assert max(block.source.size for block in batch.blocks) < LARGE
            assert sum(block.source.size for block in batch.blocks) < BLOCK + LARGE


def test_batches__of_files_that_are_not_small_have_the_keys_of_their_blocks():
    blocks = blocks_of({"a": LARGE, "b": 3 * BLOCK, "c": LARGE})
    assert [batch.key for batch in batch_blocks(blocks, BLOCK)] == [block.key for block in blocks]
    assert Batch(tuple(blocks[:1])).key == "d45a7a4a3b5e5d016891"  # work directories have folders of this name


def test_batches__of_many_small_files_are_few():
    batches = batch_blocks(blocks_of(dict.fromkeys(range(20_000), 10)), BLOCK)
    assert 20 < len(batches) < 80


def test_batches__that_do_not_have_the_file_stay_when_one_comes_or_goes():
    names = random.Random(0).sample(range(10**6), 20_000)
    before, after = (
        {batch.key for batch in batch_blocks(blocks_of(dict.fromkeys(sorted(selected), 10)), BLOCK)}
        for selected in (names, names[1:])
    )
    assert len(before - after) == 1


def test_split__gives_fewer_blocks_each_until_one_is_alone():
    batch, depth = Batch(tuple(blocks_of(dict.fromkeys(range(512), 1)))), 0
    while len(batch.blocks) > 1:
        parts = batch.split()
        assert [block for part in parts for block in part.blocks] == list(batch.blocks)
        batch, depth = parts[-1], depth + 1
    assert depth == 3
