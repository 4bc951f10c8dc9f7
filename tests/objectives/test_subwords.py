import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from daskw2v.errors import MissingExtraError, StoreError
from daskw2v.objectives.subwords import training
from daskw2v.objectives.subwords.network import BEGIN, END, UNKNOWN, Alphabet, Subwords, compute_vectors
from daskw2v.objectives.subwords.training import initial_weights
from daskw2v.store.arrays import write_array
from daskw2v.store.storage import Store

WORDS = ["", "a", "banana", "mañana", "incomprehensibilities", "x" * 40, "naïve", "🎈", "nana"]


@pytest.fixture(scope="module")
def alphabet():
    return Alphabet.from_words(WORDS)


@pytest.fixture(scope="module")
def weights(alphabet):
    return initial_weights(20, len(alphabet), 3)


def test_from_words__selects_the_characters_of_most_words():
    assert Alphabet.from_words(["bbb", "ab", "ca", "a"]).characters == "abc"
    assert Alphabet.from_words(["bbb", "ab", "ca", "a"], 2).characters == "ab"
    assert len(Alphabet.from_words(["bbb", "ab", "ca", "a"], 2)) == 5


def test_encode__marks_begin_and_end_and_pads():
    encoded = Alphabet("ab", 6).encode(["ba", "", "azb"])
    assert encoded.dtype == np.int32
    assert encoded.tolist() == [
        [BEGIN, 5, 4, END, 0, 0],
        [BEGIN, END, 0, 0, 0, 0],
        [BEGIN, 4, UNKNOWN, 5, END, 0],
    ]


@pytest.mark.parametrize(("length", "shown"), [(6, "abef"), (7, "abcef"), (8, "abcdef"), (3, "a")])
def test_encode__keeps_head_and_tail_of_a_long_word(length, shown):
    alphabet = Alphabet("abcdef", length)
    assert np.array_equal(alphabet.encode(["abcdef"]), alphabet.encode([shown]))


def test_encode__accepts_no_words_and_no_known_characters():
    assert Alphabet("ab").encode([]).shape == (0, 24)
    assert Alphabet("").encode(["ab"])[0, :4].tolist() == [BEGIN, UNKNOWN, UNKNOWN, END]


@given(st.lists(st.text(st.characters(codec=None), max_size=40)), st.lists(st.text(st.characters(codec=None))))
def test_encode__numbers_known_characters_of_any_text(known, words):
    alphabet = Alphabet.from_words(known, 20)
    assert len(set(alphabet.characters)) == len(alphabet.characters) <= 20
    for word, line in zip(words, alphabet.encode(words).tolist(), strict=True):
        begin, *inner, end = line[: len(line) - line[::-1].index(END)]
        shown = word if len(word) <= 22 else word[:11] + word[-11:]
        assert (begin, end) == (BEGIN, END)
        assert not any(line[len(inner) + 2 :])
        assert [None if n == UNKNOWN else alphabet.characters[n - 4] for n in inner] == [
            character if character in alphabet.characters else None for character in shown
        ]


@pytest.mark.parametrize("vector_size", [50, 300])
def test_initial_weights__give_rows_the_spread_of_other_objectives(vector_size):
    rng = np.random.default_rng(1)
    words = ["".join(rng.choice([*"abcdefghijklmnopqrstuvwxyz"], rng.integers(3, 12))) for _ in range(2000)]
    alphabet = Alphabet.from_words(words)
    rows = compute_vectors(initial_weights(vector_size, len(alphabet), 1), alphabet.encode(words))
    assert rows.dtype == np.float32
    assert rows.std() == pytest.approx(8 / vector_size / np.sqrt(12), rel=0.1)
    assert np.square(rows.mean(axis=0)).sum() < 0.12 * np.square(rows).sum(axis=1).mean()


def test_initial_weights__follow_their_seed():
    first, again, other = (initial_weights(10, 30, seed) for seed in (1, 1, 2))
    for name, values in first.items():
        assert values.dtype == np.float32
        assert np.array_equal(values, again[name])
        assert name == "bias" or not np.array_equal(values, other[name])


def plain_row(weights, numbers):
    """Return the vector of a word by convolutions, position by position."""
    vectors = [weights["characters"][n - 1] for n in numbers]
    widths, zero = (2, 3, 4, 5), np.zeros_like(vectors[0])
    padded = vectors + [zero] * max(widths)
    values = [
        np.tanh(np.concatenate(padded[i : i + width]) @ weights[f"filters_{width}"])
        for i in range(len(vectors))
        for width in widths
    ]
    values += [np.zeros(100)] * (len(widths) * 24 - len(values))  # up to the longest word
    return np.concatenate(values) @ weights["output"] + weights["bias"]


def test_compute_vectors__is_a_convolution(alphabet, weights):
    weights = {name: values.astype(np.float64) for name, values in weights.items()}
    characters = alphabet.encode(WORDS)
    rows = compute_vectors(weights, characters)
    assert rows.dtype == np.float64
    for row, line in zip(rows, characters, strict=True):
        np.testing.assert_allclose(row, plain_row(weights, line[line > 0]), rtol=1e-12, atol=1e-15)


def test_compute_vectors__treats_each_word_alone(alphabet, weights):
    characters = alphabet.encode(WORDS)
    together = compute_vectors(weights, characters)
    alone = np.concatenate([compute_vectors(weights, line[None]) for line in characters])
    np.testing.assert_allclose(together, alone, atol=1e-6)
    many = compute_vectors(weights, np.tile(characters, (120, 1)))  # more words than a batch of the network
    np.testing.assert_allclose(many, np.tile(together, (120, 1)), atol=1e-6)
    assert compute_vectors(weights, characters[:0]).shape == (0, 20)


def test_subwords__are_stored_and_read(alphabet, weights, tmp_path):
    subwords, group = Subwords(alphabet, weights), Store(str(tmp_path)).create_group()
    subwords.save(group)
    loaded = Subwords.load(group)
    assert loaded.alphabet == alphabet
    assert loaded.vector_size == 20
    assert {name: values.tolist() for name, values in loaded.weights.items()} == {
        name: values.tolist() for name, values in weights.items()
    }
    assert np.array_equal(loaded.vectors(WORDS), subwords.vectors(WORDS))


def test_subwords__keep_their_sizes(alphabet, monkeypatch, tmp_path):
    monkeypatch.setattr(training, "WIDTHS", (1, 3, 12))
    monkeypatch.setattr(training, "FILTERS", 6)
    monkeypatch.setattr(training, "CHARACTER_SIZE", 4)
    subwords, group = Subwords(alphabet, initial_weights(8, len(alphabet), 1)), Store(str(tmp_path)).create_group()
    subwords.save(group)
    monkeypatch.undo()
    assert np.array_equal(Subwords.load(group).vectors(WORDS), subwords.vectors(WORDS))


def replace(name, change):
    def damage(group):
        values = change(group[name][:])
        del group[name]
        write_array(group, name, values)

    return damage


def set_first(value):
    def change(values):
        values[0] = value
        return values

    return change


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda group: group.__delitem__("filters_3"), "filters_3 is missing"),
        (replace("output", lambda values: values[:400]), "is of an earlier daskw2v.*Delete the version"),
        (replace("bias", set_first(np.nan)), "bias holds NaN or infinity.*Train again"),
        (replace("output", set_first(np.inf)), "output holds NaN or infinity"),
        (replace("output", lambda values: values[:-1]), r"damaged: .* is float32 of shape"),
        (replace("filters_2", lambda values: values[:-1]), r"filters_2 is float32 of shape \(63, 100\), not .*64, 100"),
        (replace("characters", lambda values: values[1:]), r"characters is float32 of shape"),
        (replace("characters", lambda values: values[0]), r"characters is float32 of shape"),
        (replace("output", lambda values: values.astype(np.float64)), "output is float64"),
        (lambda group: group.attrs.__delitem__("characters"), "its attributes characters, length and widths"),
        (lambda group: group.attrs.update({"characters": [1 << 30]}), "its attributes"),
        (lambda group: group.attrs.update({"length": "24"}), "its attributes"),
        (lambda group: group.attrs.update({"widths": []}), "its attributes"),
        (lambda group: group.attrs.update({"widths": [0]}), "its attributes"),
        (lambda group: group.attrs.update({"widths": [2, 2]}), "its attributes"),
    ],
)
def test_subwords__detect_damage(alphabet, weights, damage, message, tmp_path):
    group = Store(str(tmp_path)).create_group()
    Subwords(alphabet, weights).save(group)
    damage(group)
    with pytest.raises(StoreError, match=message):
        Subwords.load(group)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(st.characters(codec=None)), max_size=5))
def test_subwords__compute_vectors_of_any_text(words):
    alphabet = Alphabet("abc")
    rows = Subwords(alphabet, initial_weights(4, len(alphabet), 1)).vectors(words)
    assert rows.shape == (len(words), 4)
    assert np.isfinite(rows).all()


@pytest.mark.parametrize(
    "call", [training.forward, lambda *arguments: training.gradients(*arguments, np.ones((9, 20)))]
)
def test_training__names_the_extra(alphabet, weights, call, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"torch is not installed.*pip install 'daskw2v\[torch\]'"):
        call(weights, alphabet.encode(WORDS))
