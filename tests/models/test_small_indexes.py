"""Tables of signs and of product-quantized vectors: kernels equal their references; recall; damage."""

import numpy as np
import pytest

from daskw2v.errors import ParameterError, StoreError
from daskw2v.kernels import search
from daskw2v.models.index import kinds
from daskw2v.models.index.kinds import BinaryIndex, ProductIndex
from daskw2v.models.index.vectors import IndexedVectors, build_index
from daskw2v.models.stored import blocks
from daskw2v.models.stored.blocks import normalize_rows
from daskw2v.models.stored.quantization import CENTROIDS, find_centroids
from daskw2v.vocabulary.vocabulary import Vocabulary

SMALL = [BinaryIndex, ProductIndex]


def planted(n_words, dimensions, seed=0):
    """Return vectors like trained ones: a mean, clusters, and components of decreasing size."""
    random = np.random.default_rng(seed)
    centers = random.standard_normal((-(-n_words // 500), dimensions)).repeat(500, axis=0)[:n_words]
    rows = centers + 0.7 * random.standard_normal((n_words, dimensions)) + random.standard_normal(dimensions)
    return (rows * np.linspace(1, 0.3, dimensions)).astype(np.float32)


def indexed_by(kind, rows, effort=128, threads=1, parts=1):
    """Return vectors with a table that was filled in several parts, in memory."""
    table, units = kind(rows.shape, effort), normalize_rows(rows)
    for ids in np.array_split(np.arange(len(rows)), parts):
        table.add(int(ids[0]), units[ids], threads)
    again = kind(rows.shape, effort)
    again.read(table.content(), "memory")
    return IndexedVectors(Vocabulary.from_words(map(str, range(len(rows))), [1] * len(rows)), rows, searcher=again)


def recall(vectors, rows, topn=10):
    result, _ = vectors.nearest(rows, topn)
    exact, _ = vectors.exact(rows, topn)
    return np.mean([len({*a} & {*b}) / topn for a, b in zip(result.tolist(), exact.tolist(), strict=True)])


@pytest.mark.parametrize(("words", "width", "queries"), [(1, 1, 1), (300, 2, 3), (700, 5, 2)])
def test_agreements__equal_their_reference(words, width, queries):
    random = np.random.default_rng(words)
    codes, asked = (random.integers(0, 1 << 64, (n, width), np.uint64) for n in (words, queries))
    first, scores = words // 3, np.full((queries, words), np.nan, np.float32)
    search.agreements(codes, first, words, asked, 0, scores)
    assert np.isnan(scores[:, :first]).all()
    assert np.array_equal(scores[:, first:], search.agreements_reference(codes, asked)[:, first:])


@pytest.mark.parametrize(("words", "parts", "queries"), [(1, 1, 1), (300, 7, 3), (130, 25, 2)])
def test_sums__equal_their_reference(words, parts, queries):
    random = np.random.default_rng(words)
    codes = random.integers(0, 256, (words, parts), np.uint8)
    tables = random.standard_normal((queries, parts, 256), np.float32)
    first, scores = words // 3, np.full((queries, words), np.nan, np.float32)
    search.sums(codes, first, words, tables, 0, scores)
    assert np.isnan(scores[:, :first]).all()
    assert np.allclose(scores[:, first:], search.sums_reference(codes, tables)[:, first:], atol=1e-4)


@pytest.mark.parametrize(("n", "size"), [(1, 1), (500, 4), (400, 16)])
def test_assign__finds_the_nearest_centroid(n, size):
    random = np.random.default_rng(n)
    vectors, centroids = random.standard_normal((n, size), np.float32), random.standard_normal((size, 256), np.float32)
    codes = np.empty(n, np.uint8)
    search.assign(vectors, centroids, np.empty(256, np.float32), codes)
    assert np.array_equal(codes, search.assign_reference(vectors, centroids))


def test_centroids__are_closer_than_drawn_vectors():
    vectors = planted(3000, 4)

    def error(centroids):
        return np.mean((vectors - centroids[:, search.assign_reference(vectors, centroids)].T) ** 2)

    drawn = vectors[np.random.default_rng(1).permutation(len(vectors))[:CENTROIDS]].T
    assert error(find_centroids(vectors, 0)) < 0.8 * error(drawn)
    assert np.array_equal(find_centroids(vectors, 0), find_centroids(vectors, 0))


@pytest.mark.parametrize("n", [1, 2, 255, 256])
def test_centroids__of_few_vectors_are_these(n):
    vectors = np.random.default_rng(n).standard_normal((n, 3)).astype(np.float32)
    result = find_centroids(vectors, 0)
    assert np.allclose(result[:, search.assign_reference(vectors, result)].T, vectors, atol=1e-6)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", SMALL)
def test_recall__grows_with_effort(kind):
    rows = planted(4000, 100)
    few, many = (recall(indexed_by(kind, rows, effort), rows[::20]) for effort in (20, 400))
    assert few < many
    assert many > 0.8
    assert recall(indexed_by(kind, rows, len(rows)), rows[::200]) == 1


@pytest.mark.parametrize("kind", SMALL)
@pytest.mark.parametrize("dimensions", [1, 3, 63, 64, 65, 100])
def test_nearest__has_exact_cosines_in_every_dimension(kind, dimensions):
    rows = planted(200, dimensions)
    rows[7] = 0
    result, cosines = indexed_by(kind, rows, effort=50).nearest(rows[:9], 5)
    assert result.shape == (9, 5)
    assert np.allclose(
        np.einsum("nd,nkd->nk", normalize_rows(rows[:9]), normalize_rows(rows)[result]), cosines, atol=1e-6
    )


@pytest.mark.parametrize("kind", SMALL)
def test_index__is_the_same_by_any_number_of_threads_and_parts(kind, monkeypatch):
    rows, result = planted(1000, 20), []
    rows[:500] = rows[500:]  # what centers and centroids are made of is the same in one part and two
    monkeypatch.setattr(blocks, "THREAD_ROWS", 100)
    for threads, parts, block in ((1, 1, 1 << 16), (3, 1, 70)):
        monkeypatch.setattr(kinds, "BLOCK_WORDS", block)
        monkeypatch.setattr("daskw2v.models.stored.blocks.usable_cores", lambda threads=threads: threads)
        vectors = indexed_by(kind, rows, threads=threads, parts=parts, effort=len(rows))
        result.append((vectors.searcher.content(), *vectors.nearest(rows[:30])))
    for one, three in zip(*result, strict=True):
        assert np.array_equal(one, three)
    assert recall(indexed_by(kind, rows, effort=300, parts=2), rows[:50], 2) > 0.9


@pytest.mark.parametrize("kind", SMALL)
@pytest.mark.parametrize("n_bytes", [0, 3, 99])
def test_read__refuses_a_file_of_another_size(kind, n_bytes):
    with pytest.raises(StoreError, match=f"has {n_bytes} bytes|has parts of 0 dimensions"):
        kind((30, 20), 128).read(np.zeros(n_bytes, np.uint8), "index")


@pytest.mark.parametrize("part_size", [0, -1, 65, 2**31 - 1, 5])
def test_read__refuses_parts_that_no_index_has(part_size):
    content = ProductIndex((30, 20), 128).content().copy()
    content[:4].view("<i4")[0] = part_size
    with pytest.raises(StoreError, match=f"has parts of {part_size} dimensions|a table of this shape"):
        ProductIndex((30, 20), 128).read(content, "index")


def test_read__refuses_centroids_that_are_not_finite():
    content = ProductIndex((30, 20), 128).content().copy()
    content[4:8].view("<f4")[0] = np.nan
    with pytest.raises(StoreError, match="a centroid that is not finite"):
        ProductIndex((30, 20), 128).read(content, "index")


def test_sizes__are_a_16th_and_a_32nd():
    shape = (100_000, 128)
    assert len(BinaryIndex(shape, 1).content()) == 100_000 * 16 + 4 * 128
    assert len(ProductIndex(shape, 1).content()) == 100_000 * 32 + 4 + 4 * 256 * 128
    assert len(ProductIndex(shape, 1, part_size=8).content()) == 100_000 * 16 + 4 + 4 * 256 * 128


@pytest.mark.parametrize("part_size", [0, 65])
def test_build__refuses_parts_out_of_range(tmp_path, part_size):
    with pytest.raises(ParameterError, match=f"part_size={part_size} is out of range|part_size={part_size} "):
        build_index(tmp_path, kind="product", part_size=part_size)
