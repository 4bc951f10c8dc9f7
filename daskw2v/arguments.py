"""Arguments that all stages take: one of another kind is told by name, before anything is done with it."""

from typing import Any

from distributed import Client

from daskw2v.errors import ParameterError
from daskw2v.params import Params, Resources
from daskw2v.storage import Store

_KINDS: dict[str, tuple[type, str, str]] = {
    "store": (Store, "a daskw2v.Store belongs", "daskw2v.Store(url)"),
    "params": (Params, "daskw2v.Params belong", "daskw2v.Params(...)"),
    "resources": (Resources, "daskw2v.Resources belong", "daskw2v.Resources(...)"),
    "client": (Client, "a distributed.Client belongs", "distributed.Client(address)"),
}


def check_arguments(**given: Any) -> None:
    """Refuse arguments that are not what their names say; values, which may hold secrets, are not shown.

    Raises
    ------
    ParameterError
        If one is of another kind.
    """
    for name, value in given.items():
        check_kind(name, value, *_KINDS[name])


def check_kind(name: str, value: Any, kind: type, belongs: str, remedy: str) -> None:
    """Refuse one argument that is not of its kind; raises as `check_arguments` does."""
    if not isinstance(value, kind):
        raise ParameterError(f"{name}: a {type(value).__name__} stands where {belongs}.", f"Give {remedy}.")
