"""What rows of features stand for: looked up, saved, and found again by another model."""

from decimal import Decimal

import numpy as np
import pytest

from daskw2v.errors import DamageError, Daskw2vError, ParameterError
from daskw2v.features.keys import FeatureColumn, FeatureKeys, HashedNGrams, interpolate_knots
from daskw2v.features.ngrams import hash_words
from daskw2v.features.words import (
    WordFeatures,
    compose_vectors,
    solve_own_rows,
    sum_features,
    total_weights,
    weigh_own_rows,
)
from daskw2v.store.storage import Store

COLUMNS = (
    FeatureColumn("brand", 2.0, values=("acme", "zorg", "7")),
    FeatureColumn("price", 1.0, knots=(1.0, 2.0, 4.0)),
)
NGRAMS = HashedNGrams(3, 4, 50)


def keys(words=("cat", "cart")):
    buckets = np.unique(hash_words(words, *NGRAMS)[1])[::-1].astype(np.int32)
    return FeatureKeys(COLUMNS, NGRAMS, buckets)


def test_values__have_the_rows_and_weights_of_their_columns():
    actual = keys().find_values(
        [
            {"brand": "zorg", "price": 3.0},
            {"brand": ["acme", "unheard", 7]},
            {},
            {"price": 0.5, "brand": None},
            {"price": 9},
        ]
    )
    assert actual.offsets.tolist() == [0, 3, 5, 5, 6, 7]
    assert actual.rows.tolist() == [1, 4, 5, 0, 2, 3, 5]
    assert actual.weights.tolist() == [2.0, 0.5, 0.5, 2.0, 2.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("item", "rows"),
    [
        ({"brand": ["acme", "zorg", "acme"]}, [0, 1]),
        ({"brand": [7, "7"]}, [2]),
        ({"brand": 7.0}, [2]),
        ({"brand": [None, np.nan, np.inf, "zorg"]}, [1]),
        ({"price": Decimal("1.0")}, [3]),
    ],
)
def test_values__count_once_in_any_type(item, rows):
    """As in a table; None and NaN are no categories, even where one has that name."""
    named = FeatureKeys((FeatureColumn("brand", 2.0, values=("acme", "zorg", "7", "None", "nan")), COLUMNS[1]))
    rows = [row + 2 if row > 2 else row for row in rows]
    assert named.find_values([item]).rows.tolist() == rows


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ({"colour": "red"}, "'colour' is no column.*brand, price"),
        ({"price": "3"}, "price='3' is no finite number"),
        ({"price": float("nan")}, "no finite number"),
        ({"price": True}, "no finite number"),
        ({"price": float("-inf")}, "no finite number"),
        ({"price": 10**400}, "no finite number"),
        ({"price": Decimal("sNaN")}, "no finite number"),
        ({"brand": {"a": 1}}, "is no category"),
        ({"brand": b"acme"}, "is no category"),
        ({"brand": [["acme"]]}, "is no category"),
    ],
)
def test_wrong_values__are_refused(item, message):
    with pytest.raises(ParameterError, match=message):
        keys().find_values([item])


def test_ngrams__have_rows_behind_the_table_and_others_none():
    them = keys()
    actual = them.find_ngrams(["cat", "dog"])
    _, buckets = hash_words(["cat"], *NGRAMS)
    first = actual.rows[: actual.offsets[1]]
    assert (first >= 6).all()
    np.testing.assert_array_equal(them.buckets[first - 6], buckets)
    assert len(them) == 6 + len(them.buckets)


def test_what_is_saved__is_loaded(tmp_path):
    them = keys()
    them.save(Store(str(tmp_path / "keys")).create_group())
    again = FeatureKeys.load(Store(str(tmp_path / "keys")).open_group())
    assert again.columns == them.columns
    assert again.ngrams == them.ngrams
    np.testing.assert_array_equal(again.buckets, them.buckets)


@pytest.mark.parametrize(
    "damage",
    [{"ngrams": None}, {"ngrams": {"minn": 3, "maxn": 4, "bucket": 1}}, {"columns": 3}, {"columns": [{"name": 1}]}],
)
def test_damaged_keys__are_refused(tmp_path, damage):
    group = Store(str(tmp_path / "keys")).create_group()
    keys().save(group)
    group.attrs.update(damage)
    with pytest.raises(Daskw2vError, match="keys"):
        FeatureKeys.load(Store(str(tmp_path / "keys")).open_group())


def test_lost_buckets__are_refused(tmp_path):
    keys().save(Store(str(tmp_path / "keys")).create_group())
    (Store(str(tmp_path / "keys")) / "buckets").remove()
    with pytest.raises(DamageError, match="buckets"):
        FeatureKeys.load(Store(str(tmp_path / "keys")).open_group())


def test_match_keys__compares_rows_by_their_meaning():
    base = keys()
    other = FeatureKeys(
        (
            FeatureColumn("price", 1.0, knots=(2.0, 3.0)),
            FeatureColumn("brand", 1.0, values=("zorg", "new")),
            FeatureColumn("x", 1, ("a",)),
        ),
        NGRAMS,
        np.array([base.buckets[1], 49 if 49 not in base.buckets else 48], np.int32),
    )
    actual = base.match_keys(other)
    assert actual.n_words == len(other)
    rows = [actual.rows[a:b].tolist() for a, b in zip(actual.offsets, actual.offsets[1:], strict=False)]
    assert rows == [[4], [4, 5], [1], [], [], [7], []]
    longer = FeatureKeys(ngrams=HashedNGrams(3, 5, 50), buckets=base.buckets)
    assert longer.match_keys(other).rows.tolist() == [1], "numbers mean the same whatever lengths there are"
    assert FeatureKeys(ngrams=HashedNGrams(3, 4, 51), buckets=base.buckets).match_keys(other).rows.size == 0


def test_shares__of_numbers_between_knots():
    below, shares = interpolate_knots(np.array([0.0, 1.0, 1.5, 3.0, 4.0, 9.0]), np.array([1.0, 2.0, 4.0]))
    assert below.tolist() == [0, 0, 0, 1, 1, 1]
    assert shares.tolist() == [0.0, 0.0, 0.5, 0.5, 1.0, 1.0]
    assert interpolate_knots(np.array([3.0]), np.array([7.0]))[1].tolist() == [0.0]


def test_solve_own_rows__are_those_with_which_words_have_their_vectors():
    rng = np.random.default_rng(0)
    table = rng.normal(size=(len(keys()), 8)).astype(np.float32)
    actual = weigh_own_rows(keys().find_ngrams(["cat", "cart"]), np.array([10, 1]), 4)
    assert actual.own[0] == 2.5**2 * actual.offsets[1]
    assert actual.own[1] == max(1.0, 0.25**2 * (actual.offsets[2] - actual.offsets[1]))
    vectors = rng.normal(size=(2, 8)).astype(np.float32)
    own = solve_own_rows(actual, vectors, lambda rows: table[rows])
    np.testing.assert_allclose(compose_vectors(actual, own, lambda rows: table[rows]), vectors, rtol=1e-4, atol=1e-5)


def test_own_weights__have_squares_in_float32():
    """Training divides by them: a word whose own weight has none would never move."""
    actual = weigh_own_rows(keys().find_ngrams(["cat"]), np.array([10**17]), 1)
    assert np.isfinite(actual.own * actual.own).all()


def test_sums__leave_out_what_no_row_stands_for():
    them = keys()
    actual, table = them.find_ngrams(["cat", "dog"]), np.ones((len(them), 3), np.float32)
    known = (actual.rows[: actual.offsets[1]] >= 0).sum()
    assert sum_features(actual, lambda rows: table[rows], 3)[0].tolist() == [known] * 3
    assert total_weights(actual).tolist() == np.diff(actual.offsets).tolist()


def test_known_features__have_rows():
    offsets, rows = np.array([0, 2, 2, 5]), np.array([3, -1, -1, 0, 1], np.int32)
    own = np.ones(3, np.float32)
    for weights in (np.zeros(0, np.float32), np.arange(5, dtype=np.float32)):
        actual = WordFeatures(offsets, rows, weights, own).drop_missing()
        assert (actual.offsets.tolist(), actual.rows.tolist()) == ([0, 1, 1, 3], [3, 0, 1])
        assert actual.expand_weights().tolist() == ([0, 3, 4] if len(weights) else [1, 1, 1])
        assert actual.own is own
