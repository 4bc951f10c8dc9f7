"""Weights of named things, such as columns: a mapping, or texts such as "brand=2"."""

from collections.abc import Mapping
from typing import Any

from daskw2v.config.settings import Constraint

_MOST = 1e6


def weights_of(given: Any) -> tuple[tuple[str, float], ...]:
    """Return names and weights, by name, given as a mapping, pairs, or texts such as "brand=2".

    Raises
    ------
    ValueError, TypeError
        If one is none of these, a weight is not in 0..1,000,000, or a name occurs twice.
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
    if isinstance(weight, bool | str) or not 0 <= weight <= _MOST:
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
    _are_weights, f'a mapping of names to weights in 0..{_MOST:,.0f}, or texts such as "brand=2"', weights_of,
    item="NAME=WEIGHT",
)  # fmt: skip
