"""The keys of the rows of a table of features: first values of a user's table, then buckets of n-grams."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from itertools import accumulate
from numbers import Real
from typing import Any, NamedTuple, Self

import numpy as np
import zarr

from daskw2v.errors import DamageError, ParameterError
from daskw2v.features.ngrams import hash_words
from daskw2v.features.words import WordFeatures
from daskw2v.fields import PickledFields
from daskw2v.store.arrays import read_array, write_array
from daskw2v.store.limits import typed
from daskw2v.types import Float32Array, Int32Array, Int64Array

_BUCKETS, _COLUMNS, _NGRAMS, _PRUNED = "buckets", "columns", "ngrams", "pruned"
_NO_WEIGHTS = np.zeros(0, np.float32)


class HashedNGrams(NamedTuple):
    """Lengths of the n-grams of words, and number of their buckets, as in Params; no n-grams where maxn is 0."""

    minn: int = 0
    maxn: int = 0
    bucket: int = 1


class FeatureColumn(NamedTuple):
    """A column of a table of features.

    Parameters
    ----------
    name
        Name of the column.
    weight
        Weight of the column's features; an n-gram has the weight 1.
    values
        The categories that have rows, in the order of the rows; empty for a column of numbers.
    knots
        The numbers that have rows, ascending; a number between two knots has a share of both. Empty for a column of
        categories.
    """

    name: str
    weight: float
    values: tuple[str, ...] = ()
    knots: tuple[float, ...] = ()

    @property
    def size(self) -> int:
        """Number of the column's rows."""
        return len(self.values) or len(self.knots)


def interpolate_knots(numbers: Any, knots: Any) -> tuple[Int64Array, Any]:
    """Return the shares of knots in numbers, by linear interpolation.

    Parameters
    ----------
    numbers, knots
        Numbers, shape (n,), and one or more ascending knots, both NumPy arrays of floats.

    Returns
    -------
    below
        Index of the knot below each number, clipped to 0 .. max(0, knots - 2), shape (n,) int64.
    share
        Share of the next knot, 0..1, shape (n,) float64. A number outside the knots belongs to the nearest one alone.
    """
    last = max(len(knots) - 2, 0)
    below = np.clip(np.searchsorted(knots, numbers, side="right") - 1, 0, last)
    if len(knots) == 1:
        return below, np.zeros(len(numbers))
    width = knots[below + 1] - knots[below]
    return below, np.clip((numbers - knots[below]) / width, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class FeatureKeys(PickledFields):
    """The key of each row of a table of features: a category, a knot or a bucket of n-grams.

    Parameters
    ----------
    columns
        Columns of the user's table, whose rows come first.
    ngrams, buckets
        The n-grams, and the bucket of each row of n-grams; these rows follow. Shape (n,) int32.
    pruned
        Whether means leave out n-grams without a row, as in fastText's pruned models; otherwise these count as zeros.
    """

    columns: tuple[FeatureColumn, ...] = ()
    ngrams: HashedNGrams = HashedNGrams()
    buckets: Int32Array = field(default_factory=lambda: np.zeros(0, np.int32))
    pruned: bool = False

    def __len__(self) -> int:
        """Return the number of rows."""
        return self.first_ngram + len(self.buckets)

    @property
    def first_ngram(self) -> int:
        """Index of the first row of n-grams, which is the number of rows of the user's table."""
        return sum(column.size for column in self.columns)

    @cached_property
    def _sorted_buckets(self) -> tuple[Int32Array, Int64Array]:
        """The buckets in ascending order, and the index of each in `buckets`."""
        order = np.argsort(self.buckets)
        return self.buckets[order], order

    def find_rows(self, buckets: Int32Array) -> Int32Array:
        """Return the row of each bucket, -1 for a bucket without a row, shape of `buckets`."""
        known, order = self._sorted_buckets
        if not len(known):
            return np.full(len(buckets), -1, np.int32)
        indices = np.minimum(np.searchsorted(known, buckets), len(known) - 1)
        rows: Int32Array = np.where(known[indices] == buckets, self.first_ngram + order[indices], -1).astype(np.int32)
        return rows

    @cached_property
    def _column_rows(self) -> list[tuple[int, dict[str, int]]]:
        """The first row of each column, and the index of each category among the column's rows."""
        firsts = accumulate((column.size for column in self.columns), initial=0)
        numbers = ({value: n for n, value in enumerate(column.values)} for column in self.columns)
        return list(zip(firsts, numbers, strict=False))

    def select_ngrams(self, ngrams: Int64Array) -> "FeatureKeys":
        """Return keys with all rows of the user's table, and the rows of n-grams with these indices in `buckets`.

        `ngrams` has the shape (m,) int64. If some are left out, the keys are `pruned`.
        """
        return replace(self, buckets=self.buckets[ngrams], pruned=self.pruned or len(ngrams) < len(self.buckets))

    def find_ngrams(self, words: Sequence[str]) -> WordFeatures:
        """Return the n-grams of words as features; an n-gram without a row has the row -1, or is left out if `pruned`.

        The weight of the words' own rows is 0.
        """
        return self.join_ngrams(*hash_words(words, *self.ngrams), np.zeros(len(words), np.float32))

    def join_ngrams(self, offsets: Int64Array, buckets: Int32Array, own: Float32Array) -> WordFeatures:
        """Return the features of n words from the buckets of their n-grams, as `find_ngrams` does from the words.

        Parameters
        ----------
        offsets, buckets
            As `hash_words` returns them: bounds of each word's buckets, shape (n + 1,) int64, and the buckets, int32.
        own
            Weights of the words' own rows, shape (n,) float32.
        """
        features = WordFeatures(offsets, self.find_rows(buckets), _NO_WEIGHTS, own)
        return features.drop_missing() if self.pruned else features

    def find_values(self, items: Sequence[Mapping[str, Any]]) -> WordFeatures:
        """Return the features of items, each a mapping of columns to a category, a list of them, a number, or None.

        None and categories without a row are left out. The weight of an item's own row is 0.

        Raises
        ------
        ParameterError
            If the keys lack a column, or a value is of another kind than its column.
        """
        pairs, offsets = list[tuple[int, float]](), [0]
        names = {column.name: n for n, column in enumerate(self.columns)}
        for item in items:
            for name, value in item.items():
                if name not in names:
                    problem = f"{name!r} is no column that the model has rows of."
                    raise ParameterError(problem, f"Leave it out; the columns are: {', '.join(names)}.")
                pairs += self._find_weighted_rows(names[name], value)
            offsets.append(len(pairs))
        rows, weights = np.array([row for row, _ in pairs], np.int32), np.array([w for _, w in pairs], np.float32)
        return WordFeatures(np.array(offsets), rows, weights, np.zeros(len(items), np.float32))

    def match_keys(self, other: "FeatureKeys") -> WordFeatures:
        """Return for each row of another table the rows of this table with the same key, as features.

        These are the row of the same category, the rows of the knots around a knot, or the row of the same bucket if
        both tables have as many buckets.
        """
        kinds = {column.name: bool(column.knots) for column in self.columns}
        values = [
            {column.name: value} if kinds.get(column.name) == bool(column.knots) else {}
            for column in other.columns
            for value in column.values or column.knots
        ]
        table_features = self.find_values(values)
        same_buckets = self.ngrams.bucket == other.ngrams.bucket  # whatever the lengths of n-grams are
        rows = self.find_rows(other.buckets) if same_buckets else np.full(len(other.buckets), -1, np.int32)
        known = rows >= 0
        offsets = np.concatenate([table_features.offsets, table_features.offsets[-1] + np.cumsum(known)])
        weights = np.concatenate([table_features.weights, np.ones(known.sum(), np.float32)])
        own = np.zeros(len(offsets) - 1, np.float32)
        return WordFeatures(offsets, np.concatenate([table_features.rows, rows[known]]), weights, own)

    def _find_weighted_rows(self, number: int, value: Any) -> list[tuple[int, float]]:
        """Return the rows, with their weights, of a value of the column `number`.

        The value is a category, a list of categories, a number, or None, which has no rows.
        """
        column, (first, numbers) = self.columns[number], self._column_rows[number]
        if value is None:
            return []
        if column.knots:
            below, share = interpolate_knots(np.array([_to_number(column.name, value)]), np.array(column.knots))
            pairs = [(int(below[0]), 1.0 - float(share[0])), (int(below[0]) + 1, float(share[0]))]
            return [(first + n, column.weight * part) for n, part in pairs if part]
        values = value if isinstance(value, list | tuple | set | frozenset | np.ndarray) else [value]
        for item in values:
            if isinstance(item, Iterable) and not isinstance(item, str):
                problem = f"{column.name}={item!r:.60} is no category."
                raise ParameterError(problem, "Give a string, an integer, or a list of them.")
        categories = dict.fromkeys(format_category(item) for item in values if item is not None and not _is_nan(item))
        return [(first + numbers[name], column.weight) for name in categories if name in numbers]

    def save(self, group: zarr.Group) -> None:
        """Write the keys into a Zarr group."""
        write_array(group, _BUCKETS, self.buckets)
        columns = [{**c._asdict(), "values": list(c.values), "knots": list(c.knots)} for c in self.columns]
        group.attrs.update({_NGRAMS: self.ngrams._asdict(), _COLUMNS: columns, _PRUNED: self.pruned})

    @classmethod
    def load(cls, group: zarr.Group) -> Self:
        """Return the keys that `save` wrote to a Zarr group.

        Raises
        ------
        StoreError
            If an array or attribute is missing or damaged, or two of them contradict each other.
        """
        url, listed = str(group.store_path), group.attrs.get(_COLUMNS)
        ngrams, buckets = typed(HashedNGrams, group.attrs.get(_NGRAMS), url), read_array(group, _BUCKETS)
        pruned = group.attrs.get(_PRUNED, False)  # versions of before have none that are
        if not isinstance(listed, list) or not isinstance(pruned, bool):
            raise DamageError.of(url, "names no columns, or does not say whether n-grams are pruned")
        fits = buckets.dtype == np.int32 and buckets.ndim == 1 and ngrams.minn <= ngrams.maxn and ngrams.bucket >= 1
        if not fits or (len(buckets) and not 0 <= buckets.min() <= buckets.max() < ngrams.bucket):
            raise DamageError.of(url, f"has buckets that are not of {ngrams}")
        return cls(tuple(typed(FeatureColumn, entry, url) for entry in listed), ngrams, buckets, pruned)


def format_category(value: Any) -> str:
    """Return the text of a category; of the float 1.0 it is "1", as pandas turns integers into floats beside nulls."""
    return str(int(value) if isinstance(value, float | np.floating) and value.is_integer() else value)


def _to_number(name: str, value: Any) -> float:
    """Return a value of a column of numbers as a float; a value that is no finite number raises ParameterError."""
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, Real | Decimal) else float(value)
    except (OverflowError, ValueError):  # an integer beyond floats, a signalling NaN
        number = math.nan
    if not math.isfinite(number):
        problem = f"{name}={value!r:.60} is no finite number, as that column holds."
        raise ParameterError(problem, "Give a number, or leave it out.")
    return number


def _is_nan(value: Any) -> bool:
    """Return whether a value is a floating-point NaN."""
    return isinstance(value, float | np.floating) and bool(np.isnan(value))
