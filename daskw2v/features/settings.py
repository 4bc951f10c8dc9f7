"""Settings of words' features, which are n-grams and columns of a table; and estimates of their memory."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from daskw2v.config.choice import Group
from daskw2v.config.params import Params
from daskw2v.config.settings import URL, WEIGHTS, AxisName, integer, setting
from daskw2v.errors import ParameterError

_option = partial(setting, stage="train")
_KERNEL: tuple[AxisName, ...] = ("objective", "strategy", "device")
FEATURES = "features"  # name of the table of the features' rows
_NGRAM_ROWS = 12  # rows of n-grams for each word of a vocabulary, at most, by estimate
_NGRAMS, _COLUMNS = 25, 8  # n-grams of a word, and its features from a table, by estimate


@dataclass(frozen=True, kw_only=True)
class ComposedWords(Group):
    """Words whose vectors are composed of rows of their own and of their features."""

    axis = "features"

    prior_count: int = _option(
        2000,
        "occurrences of a word at which its own row weighs as much as all of its n-grams and features: four times as "
        "much at twice as many, but never less than one of them; 0 gives all rows the same weight, as fastText",
        integer(0, 2**62),
    )

    def check(self, settings: Any) -> None:
        """Raise a ParameterError for frozen words, whose vectors other words would move."""
        if (frozen := settings.flat()["frozen_words"]) is not None:
            problem = f"frozen_words={frozen!r} cannot hold vectors whose n-grams or features other words move."
            raise ParameterError(problem, "Leave frozen_words out, or maxn and features.")


@dataclass(frozen=True, kw_only=True)
class NGrams(ComposedWords):
    """Composes a word's vector of its own row and of its n-grams' (Bojanowski et al. 2017).

    Parameters
    ----------
    maxn, minn
        Most and fewest characters of an n-gram, marks of the word's begin and end included.
    bucket
        Numbers that n-grams are hashed to.
    prior_count
        Occurrences of a word at which its own row weighs as much as all others; 0 gives all the same weight.

    Raises
    ------
    ParameterError
        If a value is outside its range; the message names field, value and range.

    Examples
    --------
    >>> from daskw2v import NGrams, Params
    >>> Params(features=NGrams(maxn=6)) == Params(maxn=6)
    True
    """

    minn: int = _option(
        3, "fewest characters of an n-gram, marks of the word's begin and end included", integer(1, 255)
    )
    maxn: int = _option(
        0,
        "most characters of an n-gram: a word's vector is composed of its own row and of its n-grams'; 0 for none",
        integer(0, 255),
        honoured_by=_KERNEL,
        key=True,
    )
    bucket: int = _option(2_000_000, "numbers that n-grams are hashed to", integer(1, 2**31 - 1))

    def check(self, settings: Any) -> None:
        """Raise a ParameterError for a range that has no n-gram, and as `ComposedWords` does."""
        super().check(settings)
        if self.minn > self.maxn:
            problem = f"minn={self.minn} is above maxn={self.maxn}: no n-gram is as long."
            raise ParameterError(problem, "Give a minn of at most maxn.")


@dataclass(frozen=True, kw_only=True)
class FeatureTable(ComposedWords):
    """Composes a word's vector of its own row and of the rows of its features in a table, such as a brand.

    Parameters
    ----------
    table
        URL of a table with the column word, or item, and others (Parquet, CSV, or a folder of them).
    weights
        Weights of its columns, 1 for columns that are not named; 0 leaves a column out.
    prior_count
        As in `NGrams`.

    Raises
    ------
    ParameterError
        If a value is outside its range; the message names field, value and range.

    Examples
    --------
    >>> from daskw2v import FeatureTable, Params
    >>> params = Params(features=FeatureTable("items.parquet", weights={"brand": 0.5}))
    >>> params == Params(features="items.parquet", feature_weights={"brand": 0.5})
    True
    """

    table: str | None = _option(
        None,
        "URL of a table with the column word, or item, and others, such as a brand (Parquet, CSV, or a folder of "
        "them): a word's vector is composed of its own row and of those of what the table says of it",
        URL,
        honoured_by=_KERNEL,
        key=True,
        flat="features",
    )
    weights: tuple[Any, ...] = _option(
        (),
        "weights of the columns of that table, 1 for those that are not named; 0 leaves a column out",
        WEIGHTS,
        flat="feature_weights",
    )


@dataclass(frozen=True, kw_only=True)
class NGramsAndTable(NGrams, FeatureTable):
    """Composes a word's vector of its own row and of the rows of its n-grams and of its features in a table.

    Its settings are the settings of `NGrams` and of `FeatureTable`.

    Raises
    ------
    ParameterError
        If a value is outside its range; the message names field, value and range.

    Examples
    --------
    >>> from daskw2v import NGramsAndTable, Params
    >>> Params(features=NGramsAndTable(table="items.parquet", maxn=6)) == Params(features="items.parquet", maxn=6)
    True
    """


CLASSES = (NGrams, FeatureTable, NGramsAndTable)


def has_features(params: Params) -> bool:
    """Return whether words have features by these Params."""
    return params.features is not None


def features_bytes(params: Params, n_words: int) -> dict[str, int]:
    """Return an estimate of the bytes of the features of `n_words` words, as one item by its name in messages.

    The estimate includes the row numbers of a thread, but not the rows. Without features the result is empty.
    """
    if not has_features(params):
        return {}
    table = FeatureTable.find(params) is not None
    n_features = (0 if NGrams.find(params) is None else _NGRAMS) + (_COLUMNS if table else 0)
    ragged_bytes = n_words * (8 + 4 + n_features * (4 + (4 if table else 0)))
    return {"features of words": ragged_bytes + 4 * (n_words + max_feature_rows(params, n_words))}


def max_feature_rows(params: Params, n_words: int) -> int:
    """Return an estimate of the greatest number of rows of a table of features, for `n_words` words."""
    ngrams = NGrams.find(params)
    ngram_rows = 0 if ngrams is None else min(ngrams.bucket, _NGRAM_ROWS * n_words)
    return ngram_rows + (0 if FeatureTable.find(params) is None else n_words)
