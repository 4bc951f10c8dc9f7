import importlib.util
from dataclasses import replace

import numpy as np
import pytest
from examples import model

from daskw2v.errors import MissingExtraError, ParameterError
from daskw2v.models.queries.vectors import Vectors
from daskw2v.reports.wordmap import make_word_map, principal_components
from daskw2v.vocabulary.vocabulary import Vocabulary

TOPICS, OF_A_TOPIC = 12, 50


def topic(word):
    return word[0]


@pytest.fixture(scope="module")
def topics():
    """Words of 12 topics, in turn by frequency: each topic's words are near a point of their own."""
    draw = np.random.default_rng(5)
    words = [f"{chr(97 + i % TOPICS)}{i // TOPICS}" for i in range(TOPICS * OF_A_TOPIC)]
    middles = draw.standard_normal((TOPICS, 40), np.float32)
    rows = middles[np.arange(len(words)) % TOPICS] + draw.standard_normal((len(words), 40), np.float32)
    return Vectors(Vocabulary.from_words(words, range(1000 + len(words), 1000, -1)), rows)


def test_make_word_map__graph_keeps_near_words_near(topics):
    """Bounds are near what it reaches; the plane of principal components, where it starts, is far below them."""
    graph = make_word_map(topics)
    plane = replace(graph, positions=principal_components(topics.units(np.arange(len(topics)))))
    assert graph.kept(10) > 0.47
    assert graph.kept(50) > 0.97
    assert plane.kept(10) < 0.15
    assert plane.kept(50) < 0.55
    assert "joins each word to its 15 nearest" in graph.note


def test_make_word_map__graph_is_the_same_each_time(topics):
    first, second = make_word_map(topics, 300), make_word_map(topics, 300)
    assert np.array_equal(first.positions, second.positions)
    assert [cluster.label for cluster in first.clusters] == [cluster.label for cluster in second.clusters]


def test_make_word_map__graph_has_its_longer_side_across(topics):
    across, up = np.ptp(make_word_map(topics).positions, axis=0)
    assert across >= up


def test_make_word_map__says_which_share_of_neighbours_it_keeps(topics):
    word_map = make_word_map(topics, 80)
    away = np.linalg.norm(word_map.positions[:, None] - word_map.positions, axis=2)
    np.fill_diagonal(away, np.inf)
    on_map = np.argsort(away, axis=1)[:, :10]
    both = [len(set(a) & set(b)) for a, b in zip(word_map.neighbours[:, :10].tolist(), on_map.tolist(), strict=True)]
    assert word_map.kept(10) == pytest.approx(np.mean(both) / 10)
    assert word_map.kept(79) == 1
    assert make_word_map(topics, 10).kept(10) is None


def test_make_word_map__clusters_are_the_topics(topics):
    word_map = make_word_map(topics)
    sizes = [len(cluster.members) for cluster in word_map.clusters]
    assert sorted(np.concatenate([cluster.members for cluster in word_map.clusters])) == list(
        range(len(word_map.words))
    )
    assert sizes == sorted(sizes, reverse=True)
    assert len(sizes) == len(topics) // 60
    for cluster in word_map.clusters:
        assert len(cluster.label) == 3
        ranks = [word_map.words.index(word) for word in cluster.label]
        assert ranks == sorted(ranks)
        assert cluster.word in cluster.members
    of_members = [{topic(word_map.words[i]) for i in cluster.members} for cluster in word_map.clusters]
    # Ten clusters of twelve topics: most topics are whole, and none is in more than two clusters
    assert max(sum(letter in letters for letters in of_members) for letter in "abcdefghijkl") <= 2


def test_make_word_map__few_words_have_no_clusters(plain):
    assert make_word_map(plain).clusters == []


def test_principal_components__keep_what_a_plane_can(plain):
    units = plain.units(np.arange(len(plain))).astype(np.float64)
    positions = principal_components(units)
    centred = units - units.mean(axis=0)
    values = np.linalg.eigvalsh(centred.T @ centred)[::-1]
    assert np.allclose((positions**2).sum(axis=0), values[:2], rtol=1e-4)
    assert abs(positions[:, 0] @ positions[:, 1]) < 1e-4
    assert (positions[np.abs(positions).argmax(axis=0), [0, 1]] > 0).all()


def test_make_word_map__takes_the_most_frequent_words(plain):
    assert make_word_map(plain).words == plain.vocabulary.words
    assert make_word_map(plain, 9).words == plain.vocabulary.words[:9]


def test_make_word_map__finds_neighbours_among_its_words(plain):
    word_map = make_word_map(plain, 40)
    assert word_map.neighbours.shape == word_map.cosines.shape == (40, 15)
    for i in (0, 17, 39):
        expected = plain.most_similar(word_map.words[i], topn=15, restrict_vocab=40)
        assert [word_map.words[j] for j in word_map.neighbours[i]] == [word for word, _ in expected]
        assert np.allclose(word_map.cosines[i], [cosine for _, cosine in expected], atol=1e-6)


@pytest.mark.parametrize(("n", "size"), [(1, 12), (2, 12), (5, 1), (9, 12)])
def test_make_word_map__takes_few_words_and_dimensions(n, size):
    word_map = make_word_map(model([f"w{i}" for i in range(n)], size))
    assert word_map.positions.shape == (n, 2)
    assert np.isfinite(word_map.positions).all()
    assert word_map.neighbours.shape == (n, min(15, n - 1))
    assert not (word_map.neighbours == np.arange(n)[:, None]).any()


@pytest.mark.parametrize("same", [20, 25])
def test_make_word_map__takes_equal_and_zero_vectors(same):
    vectors = model([f"w{i}" for i in range(130)])
    vectors.vectors[: same * 4] = 1
    vectors.vectors[100:] = 0
    word_map = make_word_map(vectors)
    assert np.isfinite(word_map.positions).all()
    assert word_map.neighbours.shape == (130, 15)
    assert not (word_map.neighbours == np.arange(130)[:, None]).any()
    assert sum(len(cluster.members) for cluster in word_map.clusters) == 130


@pytest.mark.parametrize("value", [0, 1])
def test_make_word_map__takes_vectors_that_are_all_equal(value):
    vectors = model([f"w{i}" for i in range(130)])
    vectors.vectors[:] = value
    word_map = make_word_map(vectors)
    assert np.isfinite(word_map.positions).all()
    assert [len(cluster.members) for cluster in word_map.clusters] == [130]


def test_make_word_map__names_what_it_cannot_do(plain):
    with pytest.raises(ParameterError, match=r"map_method='tsne' is unknown. Give one of graph, umap"):
        make_word_map(plain, method="tsne")
    with pytest.raises(ParameterError, match="map_words=0"):
        make_word_map(plain, 0)
    with pytest.raises(ParameterError, match="needs more than 15 words; there are 15"):
        make_word_map(plain, 15, "umap")
    with pytest.raises(ParameterError, match="no words"):
        make_word_map(model([]))


@pytest.mark.skipif(importlib.util.find_spec("umap") is not None, reason="umap is installed")
def test_make_word_map__says_how_to_install_umap(plain):
    with pytest.raises(MissingExtraError, match=r"pip install 'daskw2v\[umap\]'"):
        make_word_map(plain, method="umap")


@pytest.mark.slow
def test_make_word_map__umap_lays_out_all_words(plain):
    pytest.importorskip("umap", reason="umap-learn comes with daskw2v[umap]")
    word_map = make_word_map(plain, method="umap")
    assert word_map.positions.shape == (len(plain), 2)
    assert np.isfinite(word_map.positions).all()
