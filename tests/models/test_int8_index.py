"""Tables of int8: the kernel equals its reference, bounds hold, and searches are exact."""

import gzip
import sys

import numpy as np
import pytest

from daskw2v import Params, train
from daskw2v.errors import StoreError
from daskw2v.kernels.search import bounds, bounds_reference
from daskw2v.models.index import kinds
from daskw2v.models.index.kinds import Int8Index, quantize_queries, quantize_vectors
from daskw2v.models.index.vectors import IndexedVectors, build_index
from daskw2v.models.stored import blocks
from daskw2v.models.stored.blocks import normalize_rows
from daskw2v.models.stored.index_files import IndexSummary, describe_file, write_index
from daskw2v.models.stored.store import read_attempt, write_vocabulary
from daskw2v.models.stored.tables import create_model, write_table_rows
from daskw2v.models.versions.versions import publish
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary


def indexed_by(rows, effort=16, threads=1):
    """Return vectors with a table, in memory."""
    table = Int8Index(rows.shape, effort)
    table.add(0, normalize_rows(rows), threads)
    return IndexedVectors(Vocabulary.from_words(map(str, range(len(rows))), [1] * len(rows)), rows, searcher=table)


def skewed(n_words, dimensions, seed=0):
    """Return vectors like trained ones: clusters, many lengths, a few large components, and a zero vector."""
    random = np.random.default_rng(seed)
    rows = (
        random.standard_normal((n_words, dimensions))
        + 3 * random.standard_normal((20, dimensions)).repeat(-(-n_words // 20), axis=0)[:n_words]
    )
    rows *= np.exp(random.standard_normal((n_words, 1)) + random.standard_normal((1, dimensions)))
    rows[n_words // 2] = 0
    return rows.astype(np.float32)


@pytest.mark.parametrize(("words", "dimensions", "queries"), [(1, 1, 1), (70, 3, 2), (130, 33, 5), (64, 300, 1)])
def test_kernel__equals_its_reference(words, dimensions, queries):
    random = np.random.default_rng(words)
    codes = random.integers(-127, 128, (words, dimensions), np.int8)
    asked = random.integers(-32767, 32768, (queries, dimensions), np.int16)
    steps, errors, scales = (random.random(n, np.float32) for n in (words, words, queries))
    first, scores = words // 3, np.full((queries, words), np.nan, np.float32)
    bounds(codes, steps, errors, first, words, asked, scales, 0, scores)
    assert np.isnan(scores[:, :first]).all()
    assert np.allclose(
        scores[:, first:], bounds_reference(codes, steps, errors, asked, scales)[:, first:], rtol=1e-5, atol=1e-2
    )


@pytest.mark.parametrize("dimensions", [1, 300, 5000])
def test_sums__stay_within_int32(dimensions):
    units = normalize_rows(np.ones((1, dimensions), np.float32))
    codes, steps, errors = quantize_vectors(units)
    queries, scales, lost = quantize_queries(units)
    assert 127 * np.abs(queries.astype(np.int64)).sum() < 1 << 31
    scores = np.empty((1, 1), np.float32)
    bounds(codes, steps, errors, 0, 1, queries, scales, 0, scores)
    assert 1 <= scores[0, 0] + lost[0] < 1.001


@pytest.mark.parametrize("dimensions", [1, 12, 300])
def test_bounds__are_kept(dimensions):
    units = normalize_rows(skewed(500, dimensions))
    queries, scales, lost = quantize_queries(units[:100])
    exact = units[:100].astype(np.float64) @ units.T
    scores = bounds_reference(*quantize_vectors(units), queries, scales) + lost[:, None]
    assert (scores >= exact).all()
    assert scores.mean() < exact.mean() + 0.1


@pytest.mark.parametrize("topn", [1, 10, 200])
@pytest.mark.parametrize("dimensions", [3, 100])
def test_nearest__is_exact_search(dimensions, topn):
    rows = skewed(2000, dimensions)
    vectors = indexed_by(rows)
    result, cosines = vectors.nearest(rows[:600], topn)  # several parts of queries
    _, exact = vectors.exact(rows[:600], topn)
    assert np.allclose(cosines, exact, atol=1e-6)  # of equal cosines, either word may come first
    assert np.allclose(
        np.einsum("nd,nkd->nk", normalize_rows(rows[:600]), normalize_rows(rows)[result]), exact, atol=1e-6
    )


def test_nearest__searches_again_where_bounds_do_not_suffice():
    rows = np.ones((400, 50), np.float32) + 1e-4 * np.random.default_rng(0).standard_normal((400, 50), np.float32)
    vectors = indexed_by(rows)
    assert vectors.searcher.candidates(normalize_rows(rows[:5]), 10).bounds.min() > 1
    assert np.array_equal(vectors.nearest(rows[:5])[0], vectors.exact(rows[:5])[0])


def test_bounds__suffice_for_most_queries():
    rows = skewed(5000, 100)
    vectors = indexed_by(rows, effort=128)
    bounds_of_others = vectors.searcher.candidates(normalize_rows(rows[:500]), 10).bounds
    assert np.mean(bounds_of_others > vectors.exact(rows[:500])[1][:, -1]) < 0.01


def test_threads__find_the_same(monkeypatch):
    monkeypatch.setattr(blocks, "THREAD_ROWS", 100)
    monkeypatch.setattr(kinds, "BLOCK_WORDS", 70)
    rows, result = skewed(1000, 20), []
    for n in (1, 3):
        monkeypatch.setattr("daskw2v.models.stored.blocks.usable_cores", lambda n=n: n)
        vectors = indexed_by(rows, threads=n)
        result.append((vectors.searcher.content(), *vectors.nearest(rows[:30])))
    for one, three in zip(*result, strict=True):
        assert np.array_equal(one, three)


@pytest.mark.slow
def test_index__of_trained_vectors_finds_all_without_usearch(data, client, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "usearch", None)
    lines = gzip.decompress((data / "corpus" / "wiki" / "part-00.txt.gz").read_bytes()).split(b"\n")[:3000]
    (tmp_path / "text.txt").write_bytes(b"\n".join(lines))
    vectors = train(
        [tmp_path / "text.txt"], work=tmp_path / "work", params=Params(min_count=2, epochs=2), client=client
    )
    summary = build_index(tmp_path / "work", kind="int8")
    assert (summary.kind, summary.connectivity, summary.expansion) == ("int8", 0, 0)
    assert summary.recall >= 0.999  # of two words whose cosines are the same but for rounding, either may be the tenth
    assert summary.size == summary.words * (summary.dimensions + 8) + 4 * summary.dimensions
    indexed, units = IndexedVectors.open(tmp_path / "work"), vectors.units(range(1000))
    exact = vectors.nearest(units, 11)[1]
    assert np.allclose(indexed.nearest(units, 11)[1], exact, atol=1e-6)
    assert np.mean(indexed.searcher.candidates(units, 11).bounds > exact[:, -1]) < 0.01
    assert indexed.most_similar("city") == [
        (word, pytest.approx(score)) for word, score in vectors.most_similar("city")
    ]
    assert [w for w, _ in indexed.analogy("man", "he", "she", topn=5)] == [
        w for w, _ in vectors.analogy("man", "he", "she", topn=5)
    ]


def test_open__refuses_a_table_of_another_size(tmp_path):
    version, content = Store(str(tmp_path)) / "models" / "v0001-a", np.zeros(99, np.uint8)
    create_model(version, {"input": (3, 2)}, 3)
    write_table_rows(version, "input", 0, np.ones((3, 2), np.float32))
    write_vocabulary(version, Vocabulary.from_words(["a", "b", "c"], [3, 2, 1]))
    publish(Store(str(tmp_path)) / "models", version.name, {})
    summary = IndexSummary(3, 2, 0, 0, 1.0, 3, *describe_file(content), read_attempt(version), "int8")
    write_index(version, summary, content)
    with pytest.raises(StoreError, match=r"has 99 bytes, a table of this shape 38\."):
        IndexedVectors.open(tmp_path)
