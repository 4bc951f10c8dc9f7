"""The meaning of the rows of a table of features: values of a user's table first, then buckets of n-grams."""

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
from daskw2v.features.ngrams import ngrams_of
from daskw2v.features.words import WordFeatures
from daskw2v.fields import PickledFields
from daskw2v.store.arrays import read_array, write_array
from daskw2v.store.limits import typed
from daskw2v.types import Float32Array, Int32Array, Int64Array

_BUCKETS, _COLUMNS, _NGRAMS, _PRUNED = "buckets", "columns", "ngrams", "pruned"
_NO_WEIGHTS = np.zeros(0, np.float32)


class HashedNGrams(NamedTuple):
    """The n-grams that words have, as in Params; none where maxn is 0."""

    minn: int = 0
    maxn: int = 0
    bucket: int = 1


class FeatureColumn(NamedTuple):
    """A column of a table of features.

    Parameters
    ----------
    name
        Its name.
    weight
        Weight of its features; that of an n-gram is 1.
    values
        The categories that have rows, in their order; empty for a column of numbers.
    knots
        The numbers that have rows, ascending; a number between two of them has a share of both. Empty for a column of
        categories.
    """

    name: str
    weight: float
    values: tuple[str, ...] = ()
    knots: tuple[float, ...] = ()

    @property
    def size(self) -> int:
        """Number of its rows."""
        return len(self.values) or len(self.knots)


def shares_of(numbers: Any, knots: Any) -> tuple[Int64Array, Any]:
    """Return the knot below each number, int64, and the share of the next knot, float64, both of shape (n,)."""
    last = max(len(knots) - 2, 0)
    below = np.clip(np.searchsorted(knots, numbers, side="right") - 1, 0, last)
    if len(knots) == 1:
        return below, np.zeros(len(numbers))
    width = knots[below + 1] - knots[below]
    return below, np.clip((numbers - knots[below]) / width, 0.0, 1.0)


@dataclass(frozen=True, eq=False)
class FeatureKeys(PickledFields):
    """The meaning of each row of a table of features.

    Parameters
    ----------
    columns
        Columns of a table, whose rows come first.
    ngrams, buckets
        N-grams, and the bucket of each of their rows, which follow the table's, shape (n,) int32.
    pruned
        Whether means leave out n-grams without a row, as in fastText's pruned models; otherwise these count as zeros.
    """

    columns: tuple[FeatureColumn, ...] = ()
    ngrams: HashedNGrams = HashedNGrams()
    buckets: Int32Array = field(default_factory=lambda: np.zeros(0, np.int32))
    pruned: bool = False

    def __len__(self) -> int:
        """Count the rows."""
        return self.first_ngram + len(self.buckets)

    @property
    def first_ngram(self) -> int:
        """Number of the rows of the table, which come before the rows of n-grams."""
        return sum(column.size for column in self.columns)

    @cached_property
    def _in_order(self) -> tuple[Int32Array, Int64Array]:
        """The buckets in ascending order, and the number of each."""
        order = np.argsort(self.buckets)
        return self.buckets[order], order

    def rows_of(self, buckets: Int32Array) -> Int32Array:
        """Return the row of each bucket, -1 where there is none."""
        known, order = self._in_order
        if not len(known):
            return np.full(len(buckets), -1, np.int32)
        places = np.minimum(np.searchsorted(known, buckets), len(known) - 1)
        rows: Int32Array = np.where(known[places] == buckets, self.first_ngram + order[places], -1).astype(np.int32)
        return rows

    @cached_property
    def _places(self) -> list[tuple[int, dict[str, int]]]:
        """The first row of each column, and the number of each of its categories."""
        firsts = accumulate((column.size for column in self.columns), initial=0)
        numbers = ({value: n for n, value in enumerate(column.values)} for column in self.columns)
        return list(zip(firsts, numbers, strict=False))

    def kept(self, ngrams: Int64Array) -> "FeatureKeys":
        """Return the keys of the table and of the n-grams whose buckets have these indices, shape (m,) int64."""
        return replace(self, buckets=self.buckets[ngrams], pruned=self.pruned or len(ngrams) < len(self.buckets))

    def of_words(self, words: Sequence[str]) -> WordFeatures:
        """Return the n-grams of words; the row of an unknown n-gram is -1, and the weight of each own row is 0."""
        return self.of_ngrams(*ngrams_of(words, *self.ngrams), np.zeros(len(words), np.float32))

    def of_ngrams(self, offsets: Int64Array, buckets: Int32Array, own: Float32Array) -> WordFeatures:
        """Return the features of n words from their n-grams.

        Parameters
        ----------
        offsets, buckets
            As `ngrams_of` returns them: bounds of each word's buckets, shape (n + 1,) int64, and the buckets, int32.
        own
            Weights of the words' own rows, shape (n,) float32.
        """
        features = WordFeatures(offsets, self.rows_of(buckets), _NO_WEIGHTS, own)
        return features.known() if self.pruned else features

    def of_values(self, items: Sequence[Mapping[str, Any]]) -> WordFeatures:
        """Return the features of items, each a mapping of columns to a category, a list of them, or a number.

        Categories without a row are left out. The weight of an item's own row is 0.

        Raises
        ------
        ParameterError
            If there is no such column, or a value is of another kind than the column.
        """
        pairs, offsets = list[tuple[int, float]](), [0]
        names = {column.name: n for n, column in enumerate(self.columns)}
        for item in items:
            for name, value in item.items():
                if name not in names:
                    raise ParameterError(
                        f"{name!r} is no column that the model has rows of.",
                        f"Leave it out; the columns are: {', '.join(names)}.",
                    )
                pairs += self._weighted_rows(names[name], value)
            offsets.append(len(pairs))
        rows, weights = np.array([row for row, _ in pairs], np.int32), np.array([w for _, w in pairs], np.float32)
        return WordFeatures(np.array(offsets), rows, weights, np.zeros(len(items), np.float32))

    def of_keys(self, other: "FeatureKeys") -> WordFeatures:
        """Return, for each row of another table, the rows of this one with the same meaning.

        They are the rows of the same category, of the knots around a knot, or of the same bucket if there are as many
        buckets.
        """
        kinds = {column.name: bool(column.knots) for column in self.columns}
        values = [
            {column.name: value} if kinds.get(column.name) == bool(column.knots) else {}
            for column in other.columns
            for value in column.values or column.knots
        ]
        of_table = self.of_values(values)
        alike = self.ngrams.bucket == other.ngrams.bucket  # whatever the lengths of n-grams are
        rows = self.rows_of(other.buckets) if alike else np.full(len(other.buckets), -1, np.int32)
        known = rows >= 0
        offsets = np.concatenate([of_table.offsets, of_table.offsets[-1] + np.cumsum(known)])
        weights = np.concatenate([of_table.weights, np.ones(known.sum(), np.float32)])
        own = np.zeros(len(offsets) - 1, np.float32)
        return WordFeatures(offsets, np.concatenate([of_table.rows, rows[known]]), weights, own)

    def _weighted_rows(self, number: int, value: Any) -> list[tuple[int, float]]:
        """Return the rows and weights of a value of a column."""
        column, (first, numbers) = self.columns[number], self._places[number]
        if value is None:
            return []
        if column.knots:
            below, share = shares_of(np.array([_number(column.name, value)]), np.array(column.knots))
            pairs = [(int(below[0]), 1.0 - float(share[0])), (int(below[0]) + 1, float(share[0]))]
            return [(first + n, column.weight * part) for n, part in pairs if part]
        values = value if isinstance(value, list | tuple | set | frozenset | np.ndarray) else [value]
        for one in values:
            if isinstance(one, Iterable) and not isinstance(one, str):
                raise ParameterError(
                    f"{column.name}={one!r:.60} is no category.", "Give a string, an integer, or a list of them."
                )
        named = dict.fromkeys(category(one) for one in values if one is not None and not _is_nan(one))
        return [(first + numbers[name], column.weight) for name in named if name in numbers]

    def save(self, group: zarr.Group) -> None:
        """Write the keys into a Zarr group."""
        write_array(group, _BUCKETS, self.buckets)
        columns = [{**c._asdict(), "values": list(c.values), "knots": list(c.knots)} for c in self.columns]
        group.attrs.update({_NGRAMS: self.ngrams._asdict(), _COLUMNS: columns, _PRUNED: self.pruned})

    @classmethod
    def load(cls, group: zarr.Group) -> Self:
        """Read what `save` wrote.

        Raises
        ------
        DamageError
            If an array or attribute is missing or damaged, or they contradict each other.
        """
        url, listed = str(group.store_path), group.attrs.get(_COLUMNS)
        ngrams, buckets = typed(HashedNGrams, group.attrs.get(_NGRAMS), url), read_array(group, _BUCKETS)
        pruned = group.attrs.get(_PRUNED, False)  # versions of before have none that are
        if not isinstance(listed, list) or not isinstance(pruned, bool):
            raise DamageError.of(url, "names no columns, or does not say whether n-grams are pruned")
        fits = buckets.dtype == np.int32 and buckets.ndim == 1 and ngrams.minn <= ngrams.maxn and ngrams.bucket >= 1
        if not fits or (len(buckets) and not 0 <= buckets.min() <= buckets.max() < ngrams.bucket):
            raise DamageError.of(url, f"has buckets that are not of {ngrams}")
        return cls(tuple(typed(FeatureColumn, one, url) for one in listed), ngrams, buckets, pruned)


def category(value: Any) -> str:
    """Return the text of a category; that of 1.0 is "1", as pandas turns integers into floats beside nulls."""
    return str(int(value) if isinstance(value, float | np.floating) and value.is_integer() else value)


def _number(name: str, value: Any) -> float:
    """Return a value of a column of numbers."""
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, Real | Decimal) else float(value)
    except (OverflowError, ValueError):  # an integer beyond floats, a signalling NaN
        number = math.nan
    if not math.isfinite(number):
        raise ParameterError(
            f"{name}={value!r:.60} is no finite number, as that column holds.", "Give a number, or leave it out."
        )
    return number


def _is_nan(value: Any) -> bool:
    return isinstance(value, float | np.floating) and bool(np.isnan(value))
