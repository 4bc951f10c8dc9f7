"""New versions in the space of the published one."""

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes

from daskw2v.errors import ParameterError, StoreError, VocabularyError
from daskw2v.evaluation import evaluate
from daskw2v.models.alignment import find_alignment
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.store import finish, read_subwords, write_subwords, write_vocabulary
from daskw2v.models.stored.tables import create_model, open_table, read_table, write_partition, write_table_rows
from daskw2v.objectives.subwords.network import Alphabet, Subwords
from daskw2v.objectives.subwords.training import initial_weights
from daskw2v.retraining.align import read_rotation, write_aligned
from daskw2v.store.storage import Store
from daskw2v.training.start import blocks
from daskw2v.vocabulary.partition import Partitions
from daskw2v.vocabulary.vocabulary import Vocabulary

SIZE = 6
WORDS = [f"w{i}" for i in range(50)]


def vectors(words, rows):
    return Vectors(Vocabulary.from_words(words, range(len(words), 0, -1)), np.asarray(rows, np.float32))


def random_rotation(seed, determinant):
    """Return an orthogonal matrix: a rotation proper, or, where the determinant is -1, a reflection."""
    matrix = np.linalg.qr(np.random.default_rng(seed).standard_normal((SIZE, SIZE)))[0]
    matrix[:, 0] *= determinant * np.sign(np.linalg.det(matrix))
    return matrix


def units(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def rows():
    return np.random.default_rng(1).standard_normal((len(WORDS), SIZE))


@pytest.mark.parametrize("determinant", [1, -1])
def test_find_alignment__undoes_any_rotation(rows, determinant):
    turn = random_rotation(2, determinant)
    actual = find_alignment(vectors(WORDS, 3 * rows @ turn.T), vectors(WORDS, rows))
    np.testing.assert_allclose(actual.rotation, turn, atol=1e-6)
    assert (actual.shared, actual.words) == (50, 50)
    assert actual.before < 0.9
    assert actual.after == pytest.approx(1)
    assert actual.residual == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("n", [40, 20_000])
def test_find_alignment__is_procrustes_of_unit_vectors_on_shared_words(n):
    """Those of many words are multiplied part by part."""
    rng, words = np.random.default_rng(3), [f"w{i}" for i in range(n + 10)]
    rows, theirs = rng.standard_normal((n + 10, SIZE)), ["only", *words[:n][::-1]]
    published = rows[:n][::-1] @ random_rotation(4, -1) + 0.3 * rng.standard_normal((n, SIZE))
    actual = find_alignment(vectors(words, rows), vectors(theirs, np.vstack([np.ones(SIZE), published])), n)
    ours, others = units(rows[:n]), units(published[::-1])
    expected, scale = orthogonal_procrustes(ours, others)
    np.testing.assert_allclose(actual.rotation, expected, atol=1e-5)
    np.testing.assert_allclose(actual.rotation @ actual.rotation.T, np.eye(SIZE), atol=1e-12)
    assert actual.shared == actual.words == n
    assert actual.before == pytest.approx(np.mean(np.sum(ours * others, axis=1)), rel=1e-5)
    assert actual.after == pytest.approx(np.mean(np.sum(ours @ expected * others, axis=1)), rel=1e-5)
    assert actual.after == pytest.approx(scale / n, rel=1e-5)
    assert actual.residual == pytest.approx(np.sqrt(np.mean(np.sum((ours @ expected - others) ** 2, axis=1))), rel=1e-4)
    assert set(actual.as_dict()) == {"shared", "words", "before", "after", "residual"}


def test_find_alignment__takes_the_most_frequent_words(rows):
    published = np.vstack([rows[:20] @ random_rotation(5, 1), np.random.default_rng(6).standard_normal((30, SIZE))])
    actual = find_alignment(vectors(WORDS, rows), vectors(WORDS, published), most_words=20)
    assert (actual.shared, actual.words) == (50, 20)
    assert actual.after == pytest.approx(1)


def test_find_alignment__leaves_what_is_zero_out_of_the_sum(rows):
    rows[10:] = 0
    actual = find_alignment(vectors(WORDS, rows), vectors(WORDS, rows))
    assert actual.after == pytest.approx(10 / 50)


@pytest.mark.parametrize(
    ("words", "columns", "most_words", "error", "message"),
    [
        ([*WORDS[:5], "x", "y"], SIZE, 50, VocabularyError, "share 5 words, fewer than their 6 dimensions"),
        (["x"], SIZE, 50, VocabularyError, "share 0 words"),
        (WORDS, SIZE - 1, 50, ParameterError, "6 dimensions cannot be aligned with 5"),
        (WORDS, SIZE, 5, ParameterError, "most_words=5 is below the 6 dimensions"),
    ],
)
def test_find_alignment__refuses_what_has_no_rotation(rows, words, columns, most_words, error, message):
    with pytest.raises(error, match=message):
        find_alignment(vectors(WORDS, rows), vectors(words, np.ones((len(words), columns))), most_words)


def write_version(store, rows, outputs, n_partitions, row_block=8):
    create_model(store, {"input": rows.shape, "output": outputs.shape}, row_block, n_partitions)
    for table, values in (("input", rows), ("output", outputs)):
        if n_partitions == 1:
            write_table_rows(store, table, 0, values)
        else:
            for part in range(n_partitions):
                write_partition(store, table, part, values[Partitions(len(values), n_partitions).words(part)])
    words = [f"w{i}" for i in range(len(rows))]
    write_vocabulary(store, Vocabulary.from_words(words, range(len(words), 0, -1)))


@pytest.mark.parametrize("n_partitions", [1, 4])
def test_write_aligned__keeps_all_dot_products_and_scores(client, tmp_path, monkeypatch, rows, n_partitions):
    monkeypatch.setattr(blocks, "rows_per_block", lambda size: 17)  # several tasks a table
    rows = rows.astype(np.float32)
    outputs = np.random.default_rng(7).standard_normal((len(WORDS) - 1, SIZE), np.float32)  # as of inner nodes
    source, target = Store(str(tmp_path / "source")), Store(str(tmp_path / "target"))
    write_version(source, rows, outputs, n_partitions)
    published = vectors(WORDS, rows @ random_rotation(8, -1))
    actual = find_alignment(vectors(WORDS, rows), published)
    write_aligned(client, source, target, actual)
    write_aligned(client, source, target, actual)  # once more: as after a call that was cut short
    finish(target, {"alignment": actual.as_dict()})
    assert open_table(target, "input").partitions == open_table(source, "input").partitions
    np.testing.assert_allclose(read_table(target, "input"), published.vectors, atol=1e-5)
    turned = read_table(target, "input"), read_table(target, "output")
    np.testing.assert_allclose(turned[0] @ turned[1].T, rows @ outputs.T, atol=1e-5)  # what losses are made of
    np.testing.assert_allclose(turned[0] @ turned[0].T, rows @ rows.T, atol=1e-5)
    np.testing.assert_array_equal(read_rotation(target), actual.rotation)
    np.testing.assert_allclose(turned[1] @ actual.rotation.T, outputs, atol=1e-5)
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text("".join(f"w{i}\tw{49 - i}\t{i % 7}\n" for i in range(25)))
    finish(source, {})
    scores = [evaluate(Vectors.open(store.url), similarity=[pairs]).scores()["pairs"] for store in (source, target)]
    assert scores[0] == pytest.approx(scores[1])


def test_write_aligned__turns_all_rows_of_a_large_block(client, tmp_path):
    rows = np.random.default_rng(9).standard_normal((20_000, SIZE), np.float32)
    source, target = Store(str(tmp_path / "source")), Store(str(tmp_path / "target"))
    write_version(source, rows, rows, 1, row_block=len(rows))
    words, turn = [f"w{i}" for i in range(len(rows))], random_rotation(8, -1)
    write_aligned(client, source, target, find_alignment(vectors(words, rows), vectors(words, rows @ turn)))
    finish(target, {})
    for table in ("input", "output"):
        np.testing.assert_allclose(read_table(target, table), rows @ turn, atol=1e-5)


@pytest.mark.parametrize("n_partitions", [1, 4])
def test_write_aligned__copies_what_needs_no_turn(client, tmp_path, rows, n_partitions):
    rows, outputs = rows.astype(np.float32), np.ones((len(WORDS) - 1, SIZE), np.float32)
    source, target = Store(str(tmp_path / "source")), Store(str(tmp_path / "target"))
    write_version(source, rows, outputs, n_partitions)
    write_aligned(client, source, target, None)
    finish(target, {})
    np.testing.assert_array_equal(read_table(target, "input"), rows)
    np.testing.assert_array_equal(read_table(target, "output"), outputs)
    with pytest.raises(StoreError, match="rotation"):
        read_rotation(target)


def test_write_aligned__turns_the_network_that_words_follow_from(client, tmp_path, rows):
    words = ["sing", "singer", "bridge", "bridges", "walk", "walked", "zebra"]
    alphabet = Alphabet.from_words(words)
    weights = initial_weights(SIZE, len(alphabet), 1)
    weights["bias"][:] = np.arange(SIZE)
    network = Subwords(alphabet, weights)
    source, target = Store(str(tmp_path / "source")), Store(str(tmp_path / "target"))
    create_model(source, {"input": (len(words), SIZE)}, 8, subwords=True)
    write_table_rows(source, "input", 0, network.vectors(words))
    write_subwords(source, network)
    write_vocabulary(source, Vocabulary.from_words(words, range(7, 0, -1)))
    turn = random_rotation(9, 1)
    known = vectors(words, network.vectors(words))
    actual = find_alignment(known, vectors(words, known.vectors @ turn), most_words=7)
    write_aligned(client, source, target, actual)
    finish(target, {})
    turned = read_subwords(target)
    np.testing.assert_allclose(turned.vectors(words), read_table(target, "input"), atol=1e-5)
    unseen = ["singers", "walks", "gnu"]
    np.testing.assert_allclose(turned.vectors(unseen), network.vectors(unseen) @ actual.rotation, atol=1e-5)
    np.testing.assert_allclose(weights["bias"], np.arange(SIZE))


def test_read_rotation__says_where_there_is_none(tmp_path):
    store = Store(str(tmp_path))
    create_model(store, {"input": (1, 2)}, 1)
    with pytest.raises(StoreError, match="rotation is missing"):
        read_rotation(store)
