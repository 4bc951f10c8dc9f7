"""Which features of words Params ask for."""

from dataclasses import fields

from daskw2v.config.params import Params
from daskw2v.config.settings import default_of
from daskw2v.errors import ParameterError

FEATURES = "features"  # the name of the table of their rows
_NGRAMS = 12  # rows of n-grams a word of a vocabulary, at most, by estimate
_EACH, _COLUMNS = 25, 8  # n-grams of a word, and features that a table gives it, by estimate


def has_features(params: Params) -> bool:
    """Tell whether words have features."""
    return bool(params.maxn or params.features)


def check_features(params: Params) -> None:
    """Refuse features that nothing would read, or that do not go with other Params.

    Raises
    ------
    ParameterError
        If that is so.
    """
    for f in fields(params):
        owners = [name for name in ("maxn", "features") if name in f.metadata["needs"]]
        value = getattr(params, f.name)
        if owners and value != default_of(f) and not any(getattr(params, name) for name in owners):
            raise ParameterError(
                f"{f.name}={value!r} changes nothing without {' or '.join(owners)}.",
                f"Give {' or '.join(owners)}, or leave {f.name} out.",
            )
    if params.maxn and params.minn > params.maxn:
        raise ParameterError(
            f"minn={params.minn} is above maxn={params.maxn}: no n-gram is as long.", "Give a minn of at most maxn."
        )
    if has_features(params) and params.frozen_words is not None:
        raise ParameterError(
            f"frozen_words={params.frozen_words!r} cannot hold vectors whose n-grams or features other words move.",
            "Leave frozen_words out, or maxn and features.",
        )


def features_bytes(params: Params, n_words: int) -> dict[str, int]:
    """Return the bytes of the features of n words, and of their numbers in a thread, by estimate, by what they are."""
    if not has_features(params):
        return {}
    each = (_EACH if params.maxn else 0) + (_COLUMNS if params.features else 0)
    weights = 4 if params.features else 0
    return {"features of words": n_words * (8 + 4 + each * (4 + weights)) + 4 * (n_words + most_rows(params, n_words))}


def most_rows(params: Params, n_words: int) -> int:
    """Return the rows that a table of features has for a vocabulary of n words, at most, by estimate."""
    of_letters = min(params.bucket, _NGRAMS * n_words) if params.maxn else 0
    return of_letters + (n_words if params.features else 0)
