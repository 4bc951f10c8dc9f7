"""Excerpts are corpora of some positions: the same words, and a sentence begins where something was left out."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskw2v import Params, Resources
from daskw2v.corpus import streams
from daskw2v.corpus.files import Batch
from daskw2v.corpus.pieces import ReadReport
from daskw2v.corpus.sources import find_sources, plan_blocks
from daskw2v.kernels.rng import Purpose, stream
from daskw2v.sampling.excerpt import STRETCH, find_block_ranges, join_ranges, make_excerpt, sample_ranges
from daskw2v.sampling.reader import SegmentReader
from daskw2v.shards.encode import build_corpus, encode_batch
from daskw2v.shards.layout import BatchBlock, Corpus, Shard
from daskw2v.store.storage import Store
from daskw2v.vocabulary.count import build_vocabulary

PARAMS = Params(min_count=1)
SENTENCES = [[f"w{(7 * i + j) % 50}" for j in range(1 + i % 9)] for i in range(400)]
WORDS = [word for sentence in SENTENCES for word in sentence]
STARTS = np.cumsum([0, *map(len, SENTENCES)])[:-1]


@pytest.fixture(scope="module", params=["64 MiB", "2 KiB"])
def text(request, tmp_path_factory, client):
    """A corpus of two files, in two shards or many, with its vocabulary."""
    folder = tmp_path_factory.mktemp("text")
    for name, part in (("a", SENTENCES[:250]), ("b", SENTENCES[250:])):
        (folder / f"{name}.txt").write_text("\n".join(map(" ".join, part)) + "\n")
    store, resources = Store(str(folder / "work")), Resources(block_size=request.param)
    corpus = build_corpus(str(folder / "*.txt"), store, PARAMS, resources, client)
    return folder, resources, corpus, build_vocabulary(corpus, store, PARAMS, resources, client)


def read(corpus, vocabulary):
    """Return the words of a corpus, and where its sentences start."""
    keep = np.full(vocabulary.size, 2**32, np.uint64)
    reader = SegmentReader(vocabulary.store, corpus, vocabulary)
    segment, _ = reader.read(0, corpus.n_tokens, 5, keep, stream(1, Purpose.SUBSAMPLE))
    words = vocabulary.load().words
    return [words[id_] for id_ in segment.tokens], segment.bounds[:-1].tolist()


RANGES = st.lists(st.integers(0, len(WORDS)), unique=True, min_size=2, max_size=12).map(
    lambda edges: list(zip(sorted(edges)[::2], sorted(edges)[1::2], strict=False))
)


@pytest.mark.sampled(1)
@settings(max_examples=20)
@given(ranges=RANGES)
def test_make_excerpt__is_the_words_of_its_ranges(text, ranges):
    *_, corpus, vocabulary = text
    part = make_excerpt(corpus, ranges)
    words, starts = read(part, vocabulary)
    expected, begins = [], []
    for a, b in join_ranges(ranges):
        begins += [len(expected), *(len(expected) + start - a for start in STARTS if a < start < b)]
        expected += WORDS[a:b]
    assert (words, starts, part.n_tokens) == (expected, begins, len(expected))


@pytest.mark.slow
@settings(max_examples=20)
@given(ranges=RANGES, inner=RANGES)
def test_make_excerpt__of_an_excerpt(text, ranges, inner):
    *_, corpus, vocabulary = text
    outer = make_excerpt(corpus, ranges)
    inner = [(a, min(b, outer.n_tokens)) for a, b in inner if a < outer.n_tokens]
    words, _ = read(outer, vocabulary)
    part = make_excerpt(outer, inner)
    if part.n_tokens:
        assert read(part, vocabulary)[0] == [word for a, b in inner for word in words[a:b]]


def test_make_excerpt__is_saved_as_any_corpus(text):
    *_, corpus, vocabulary = text
    part = make_excerpt(corpus, [(3, 40), (900, 1000)])
    part.save(vocabulary.store)
    actual = Corpus.load(vocabulary.store, part.name)
    assert actual == part
    assert read(actual, vocabulary) == read(part, vocabulary)


def test_make_excerpt__has_an_identity_of_its_own(text):
    *_, corpus, _ = text
    whole, part, other = (make_excerpt(corpus, [(0, n)]) for n in (corpus.n_tokens, 50, 51))
    assert len({corpus.identity, whole.identity, part.identity, other.identity}) == 4
    assert make_excerpt(corpus, [(0, 20), (20, 50)]).identity == part.identity


def test_find_block_ranges__are_the_text_of_files(text):
    folder, resources, corpus, vocabulary = text
    blocks = plan_blocks(find_sources(str(folder / "b.txt")), resources.block_bytes)
    assert find_block_ranges(corpus, vocabulary.store, [block.key for block in blocks]) == [(STARTS[250], len(WORDS))]


FILES = st.lists(st.lists(st.integers(0, 5), max_size=4), min_size=2, max_size=6)  # tokens of each sentence


@pytest.mark.slow
@settings(max_examples=30)
@given(files=FILES, shard_bytes=st.integers(1, 60), wanted=st.sets(st.integers(0, 5)), twice=st.booleans())
def test_find_block_ranges__are_those_of_files_in_a_batch(tmp_path_factory, files, shard_bytes, wanted, twice):
    """Whatever its shards are: a sentence may be in several."""
    folder = tmp_path_factory.mktemp("batch")
    for number, sentences in enumerate(files):
        (folder / f"{number}.txt").write_text("".join("w " * n + "\n" for n in sentences) or "\n")
    batch = Batch(tuple(plan_blocks(find_sources(str(folder / "*.txt")), 1 << 30)))
    store = Store(str(folder / "work"))
    rules = {"column": "text", "errors": "strict", "tokenizer": "whitespace", "shard_bytes": shard_bytes}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "CHUNK", 4)
        patch.setattr(streams, "LONGEST", 4)
        manifest = encode_batch(batch, store, **rules)
    shards = tuple(Shard(**shard, block=batch.key) for shard in manifest["shards"]) * (1 + twice)
    counts = zip(batch.blocks, manifest["sentences"], strict=True)
    parts = tuple(BatchBlock(batch.key, block.key, n) for block, n in counts)
    corpus = Corpus("", shards, (), ReadReport(), parts=parts)
    keys = [block.key for number, block in enumerate(batch.blocks) if number in wanted]
    edges = np.cumsum([0, *(sum(sentences) for sentences in files * (1 + twice))]).tolist()
    expected = [(edges[i], edges[i + 1]) for i in range(len(edges) - 1) if i % len(files) in wanted]
    assert find_block_ranges(corpus, store, keys) == join_ranges(expected)


@given(edges=st.lists(st.integers(0, 10**7), unique=True, min_size=2, max_size=6), share=st.floats(0, 1))
def test_sample__takes_a_share_of_each_stretch(edges, share):
    edges = sorted(edges)
    ranges = list(zip(edges[::2], edges[1::2], strict=False))
    sample = sample_ranges(ranges, share, seed=3)
    assert all(any(a <= first and last <= b for a, b in ranges) for first, last in sample)
    wanted, actual = (sum(b - a for a, b in some) for some in (ranges, sample))
    stretches = sum(-(-(b - a) // STRETCH) for a, b in ranges)
    assert share * wanted - 1e-6 <= actual <= share * wanted + stretches
    assert sample == join_ranges(sample)
    if share == 1:
        assert sample == join_ranges(ranges)


@pytest.mark.parametrize(("chunks", "pieces", "longest"), [(100, 100, 0.05), (1000, 256, 0.2), (100_000, 5000, 1)])
def test_sample__of_a_long_text_leaves_chunks_out(chunks, pieces, longest):
    sample = sample_ranges([(0, chunks * STRETCH)], 0.05, seed=3)
    lengths = [stop - start for start, stop in sample]
    assert len(sample) == pytest.approx(pieces, rel=0.01)
    assert max(lengths) == pytest.approx(longest * STRETCH, rel=0.03)
    assert sum(lengths) == pytest.approx(0.05 * chunks * STRETCH, rel=1e-3)


def test_sample__is_another_one_by_another_seed():
    assert sample_ranges([(0, 10**6)], 0.1, 1) != sample_ranges([(0, 10**6)], 0.1, 2)
