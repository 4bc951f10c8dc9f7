import importlib.util

import numpy as np
import pytest
from examples import model

from daskw2v.errors import MissingExtraError, ParameterError
from daskw2v.report.wordmap import word_map


def test_word_map__pca_keeps_what_a_plane_can(plain):
    found = word_map(plain)
    units = plain.units(np.arange(len(plain))).astype(np.float64)
    centred = units - units.mean(axis=0)
    values = np.linalg.eigvalsh(centred.T @ centred)[::-1]
    assert found.words == plain.vocabulary.words
    assert np.allclose((found.places**2).sum(axis=0), values[:2], rtol=1e-4)
    assert abs(found.places[:, 0] @ found.places[:, 1]) < 1e-4
    share = values[:2].sum() / values.sum()
    assert f"of 12 dimensions. They explain {100 * share:.0f}" in found.note
    assert (found.places[np.abs(found.places).argmax(axis=0), [0, 1]] > 0).all()


def test_word_map__finds_neighbours_among_its_words(plain):
    found = word_map(plain, 40, n_neighbours=3)
    assert found.neighbours.shape == found.cosines.shape == (40, 3)
    for i in (0, 17, 39):
        expected = plain.most_similar(found.words[i], topn=3, restrict_vocab=40)
        assert [found.words[j] for j in found.neighbours[i]] == [word for word, _ in expected]
        assert np.allclose(found.cosines[i], [cosine for _, cosine in expected], atol=1e-6)


@pytest.mark.parametrize(("n", "size"), [(1, 12), (2, 12), (5, 1), (9, 12)])
def test_word_map__takes_few_words_and_dimensions(n, size):
    found = word_map(model([f"w{i}" for i in range(n)], size))
    assert found.places.shape == (n, 2)
    assert np.isfinite(found.places).all()
    assert found.neighbours.shape == (n, min(8, n - 1))
    assert not (found.neighbours == np.arange(n)[:, None]).any()


def test_word_map__takes_equal_and_zero_vectors():
    vectors = model([f"w{i}" for i in range(30)])
    vectors.vectors[:20] = 1
    vectors.vectors[25:] = 0
    found = word_map(vectors, n_neighbours=4)
    assert np.isfinite(found.places).all()
    assert found.neighbours.shape == (30, 4)
    assert not (found.neighbours == np.arange(30)[:, None]).any()


def test_word_map__names_what_it_cannot_do(plain):
    with pytest.raises(ParameterError, match=r"map_method='tsne' is unknown. Give one of pca, umap"):
        word_map(plain, method="tsne")
    with pytest.raises(ParameterError, match="map_words=0"):
        word_map(plain, 0)
    with pytest.raises(ParameterError, match="needs more than 15 words; there are 15"):
        word_map(plain, 15, "umap")
    with pytest.raises(ParameterError, match="no words"):
        word_map(model([]))


@pytest.mark.skipif(importlib.util.find_spec("umap") is not None, reason="umap is installed")
def test_word_map__says_how_to_install_umap(plain):
    with pytest.raises(MissingExtraError, match=r"pip install 'daskw2v\[umap\]'"):
        word_map(plain, method="umap")


def test_word_map__umap_lays_out_all_words(plain):
    pytest.importorskip("umap", reason="umap-learn comes with daskw2v[umap]")
    found = word_map(plain, method="umap")
    assert found.places.shape == (len(plain), 2)
    assert np.isfinite(found.places).all()
