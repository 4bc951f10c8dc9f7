"""Which features of words Params ask for."""

from daskw2v.config.params import Params
from daskw2v.features.settings import FeatureTable, NGrams

FEATURES = "features"  # the name of the table of their rows
_NGRAMS = 12  # rows of n-grams a word of a vocabulary, at most, by estimate
_EACH, _COLUMNS = 25, 8  # n-grams of a word, and features that a table gives it, by estimate


def has_features(params: Params) -> bool:
    """Tell whether words have features."""
    return params.features is not None


def features_bytes(params: Params, n_words: int) -> dict[str, int]:
    """Return the bytes of the features of n words, and of their numbers in a thread, by estimate, by what they are."""
    if not has_features(params):
        return {}
    table = FeatureTable.find(params) is not None
    each = (0 if NGrams.find(params) is None else _EACH) + (_COLUMNS if table else 0)
    weights = 4 if table else 0
    return {"features of words": n_words * (8 + 4 + each * (4 + weights)) + 4 * (n_words + most_rows(params, n_words))}


def most_rows(params: Params, n_words: int) -> int:
    """Return the rows that a table of features has for a vocabulary of n words, at most, by estimate."""
    ngrams = NGrams.find(params)
    of_letters = 0 if ngrams is None else min(ngrams.bucket, _NGRAMS * n_words)
    return of_letters + (0 if FeatureTable.find(params) is None else n_words)
