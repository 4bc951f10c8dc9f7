"""Vectors.align: a model in the space of another one."""

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes

from daskw2v import Vectors
from daskw2v.errors import ParameterError, VocabularyError
from daskw2v.models.stored.store import write_vocabulary
from daskw2v.models.stored.tables import create_model, write_table_rows
from daskw2v.models.versions.versions import publish
from daskw2v.objectives.subwords.network import Alphabet, Subwords
from daskw2v.objectives.subwords.training import initial_weights
from daskw2v.store.storage import Store
from daskw2v.vocabulary.vocabulary import Vocabulary

V, D = 60, 5
WORDS = [f"w{i}" for i in range(V)]
ROWS = np.random.default_rng(1).standard_normal((V, D), np.float32)
TURN = np.linalg.qr(np.random.default_rng(2).standard_normal((D, D)))[0]


def units(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_align__is_procrustes_over_the_common_words():
    noise = np.random.default_rng(3).standard_normal((V, D))
    other = Vectors([*WORDS[10:], "new"], np.vstack([(ROWS @ TURN + 0.3 * noise)[10:], np.ones(D)]))
    result = Vectors(WORDS, ROWS, {"params": {"seed": 3}}, stable_ids=np.arange(V)).align(other)
    turn, _ = orthogonal_procrustes(units(ROWS[10:]), units(other.vectors[:-1]))
    np.testing.assert_allclose(result.vectors, ROWS @ turn, atol=1e-4)
    assert result.metadata == {"params": {"seed": 3}}
    assert result.stable_ids.tolist() == list(range(V))
    assert list(result) == WORDS


def test_align__undoes_a_rotation_of_words_and_ngrams():
    vectors = Vectors(WORDS, ROWS).with_ngrams(minn=1, maxn=2, bucket=1000)
    turned = Vectors(WORDS, ROWS @ TURN).with_ngrams(minn=1, maxn=2, bucket=1000)
    result = turned.align(vectors)
    np.testing.assert_allclose(result.vectors, ROWS, atol=1e-5)
    np.testing.assert_allclose(result["w7w7"], turned["w7w7"] @ TURN.T, atol=1e-5)
    assert result.similarity("w1", "w2") == pytest.approx(turned.similarity("w1", "w2"), abs=1e-5)


def test_align__rotates_a_subword_network():
    alphabet = Alphabet.from_words(WORDS)
    network = Subwords(alphabet, initial_weights(D, len(alphabet), seed=1))
    vectors = Vectors(WORDS, ROWS @ TURN, subwords=network)
    result = vectors.align(Vectors(WORDS, ROWS))
    np.testing.assert_allclose(result["unseen"], vectors["unseen"] @ TURN.T, atol=1e-5)


@pytest.fixture
def version(tmp_path):
    models = Store(str(tmp_path)) / "models"
    create_model(models / "v0001-r", {"input": ROWS.shape, "output": ROWS.shape}, 20)
    for table in ("input", "output"):
        for start in range(0, V, 20):
            write_table_rows(models / "v0001-r", table, start, ROWS[start : start + 20])
    write_vocabulary(models / "v0001-r", Vocabulary.from_words(WORDS, range(V, 0, -1)))
    publish(models, "v0001-r", {})
    return str(tmp_path)


@pytest.mark.parametrize("in_memory", [True, False])
def test_align__leaves_out_the_output_table_which_is_in_the_old_space(version, in_memory):
    vectors = Vectors.open(version, in_memory=in_memory)
    result = vectors.align(Vectors(WORDS, ROWS @ TURN))
    np.testing.assert_allclose(result.vectors, ROWS @ TURN, atol=1e-5)
    assert vectors.output_rows() is not None
    for model in (result, result.prefix(D), result.with_ngrams(minn=1, maxn=2, bucket=50)):
        assert model.output_rows() is None
    for model in (vectors.prefix(D), vectors.with_ngrams(minn=1, maxn=2, bucket=50)):
        assert model.output_rows() is not None
    with pytest.raises(ParameterError, match="has no output table with a row for each word"):
        result.predict_output_word(["w1"])


def test_align__refuses_models_without_a_rotation():
    vectors = Vectors(WORDS, ROWS)
    with pytest.raises(ParameterError, match="5 dimensions cannot be aligned with 4"):
        vectors.align(Vectors(WORDS, ROWS[:, :4]))
    with pytest.raises(VocabularyError, match="share 4 words, fewer than their 5 dimensions"):
        vectors.align(Vectors(WORDS[:4], ROWS[:4]))
    with pytest.raises(ParameterError, match="most_words=4 is below the 5 dimensions"):
        vectors.align(vectors, most_words=4)
