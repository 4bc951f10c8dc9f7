import numpy as np
import pytest

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.sampling.segments import Segment
from daskw2v.shards.encode import build_corpus
from daskw2v.store.storage import Store
from daskw2v.vocabulary.count import build_vocabulary

pytest.importorskip("torch", reason="needs daskw2v[torch]")
baseline = pytest.importorskip(
    "benchmarks.context_matrix.vanilla_subwords", reason="no benchmarks here: run pytest as python -m pytest"
)


@pytest.fixture
def text(client, tmp_path):
    """Words of two kinds, told by their beginning, which stand beside their own kind alone."""
    random = np.random.default_rng(3)
    lines = (" ".join(f"{kind}{number}" for number in random.integers(0, 15, 20)) for kind in ("aa", "zz") * 100)
    path, work = tmp_path / "text.txt", Store(str(tmp_path / "work"))
    path.write_text("\n".join(lines))
    params = Params(min_count=1), Resources()
    corpus = build_corpus(str(path), work, *params, client)
    return work, corpus, build_vocabulary(corpus, work, *params, client)


def test_pairs__stand_in_the_order_of_the_text_within_sentences():
    segment = Segment(np.arange(10, 17, dtype=np.int32), np.arange(7), np.array([0, 3, 3, 7]))
    centers, contexts = baseline.pairs_of(segment, 1, 5, 2)
    expected = {11: [10, 12], 12: [10, 11], 13: [14, 15], 14: [13, 15, 16]}
    assert [*zip(centers, contexts, strict=True)] == [(word, near) for word in expected for near in expected[word]]


def test_training__stops_after_the_pairs_asked_for_or_an_epoch(text):
    for asked, trained in ((1000, 1000), (10**9, 200 * (20 * 4 - 6))):
        found = baseline.train_vanilla_subwords(*text, baseline.VanillaSubwords(asked, vector_size=8))
        assert found.pairs == trained
        assert found.vectors.vectors.shape == (30, 8)


def test_training__tells_words_by_what_they_stand_beside(text):
    settings = baseline.VanillaSubwords(10**9, batch=64, alpha=0.003, vector_size=8)
    found = baseline.train_vanilla_subwords(*text, settings)
    kinds = np.array([word[0] == "a" for word in found.vectors.index_to_key])
    rows = found.vectors.vectors - found.vectors.vectors.mean(axis=0)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    alike = rows @ rows.T
    same = kinds[:, None] == kinds
    assert alike[same].mean() > 0.5 > 0 > alike[~same].mean()
    again = baseline.train_vanilla_subwords(*text, settings)
    np.testing.assert_array_equal(found.vectors.vectors, again.vectors.vectors)
