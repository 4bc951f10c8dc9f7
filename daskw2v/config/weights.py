"""Weights of named things, such as columns: a mapping, or texts such as "brand=2"."""

from collections.abc import Mapping
from typing import Any

from daskw2v.config.settings import Constraint

_LEAST, _MOST = 1e-6, 1e6  # of weights that are not 0: their sums and squares are float32


def weights_of(given: Any) -> tuple[tuple[str, float], ...]:
    """Return names and weights, by name, given as a mapping, pairs, or texts such as "brand=2".

    Raises
    ------
    ValueError, TypeError
        If one is none of these, a weight is neither 0 nor in 0.000001..1,000,000, or a name occurs twice.
    """
    pairs = given.items() if isinstance(given, Mapping) else [_pair(one) for one in given]
    found = sorted((_name(name), _weight(weight)) for name, weight in pairs)
    if len(dict(found)) != len(found):
        raise ValueError("a name occurs twice")
    return tuple(found)


def _pair(given: Any) -> tuple[Any, Any]:
    if isinstance(given, str):
        name, equals, weight = given.rpartition("=")
        if not equals:
            raise ValueError(given)
        return name.strip(), float(weight)
    name, weight = given
    return name, weight


def _name(name: Any) -> str:
    if not (isinstance(name, str) and name):
        raise ValueError(name)
    return name


def _weight(weight: Any) -> float:
    if isinstance(weight, bool | str) or not (weight == 0 or _LEAST <= weight <= _MOST):
        raise ValueError(weight)
    return float(weight) + 0.0


def _are_weights(value: Any) -> bool:
    if isinstance(value, str):
        return False
    try:
        weights_of(value)
    except (ValueError, TypeError):
        return False
    return True


WEIGHTS = Constraint(
    _are_weights, f'a mapping of names to weights, 0 or in {_LEAST:f}..{_MOST:,.0f}, or texts such as "brand=2"',
    weights_of, item="NAME=WEIGHT",
)  # fmt: skip
