"""Things with names: objectives, devices, strategies, merge rules."""

from collections.abc import Mapping
from typing import TypeVar

from daskw2v.errors import ParameterError

T = TypeVar("T")


def find(registry: Mapping[str, T], kind: str, name: str) -> T:
    """Return the entry of that name.

    Raises
    ------
    ParameterError
        If there is none; the message lists what exists. Nothing else is taken in its place.
    """
    try:
        return registry[name]
    except KeyError:
        raise ParameterError(f"{kind}={name!r} does not exist.", f"Choose one of: {', '.join(registry)}.") from None
