"""Checks the types of the arguments that stages share, before anything is done with them."""

from typing import Any

from distributed import Client

from daskw2v.config.params import Params
from daskw2v.config.resources import Resources
from daskw2v.errors import ParameterError
from daskw2v.store.storage import Store

_TYPES: dict[str, tuple[Any, str]] = {
    "store": (Store, "daskw2v.stages.Store(url)"),
    "params": (Params, "daskw2v.Params(...)"),
    "resources": (Resources, "daskw2v.Resources(...)"),
    "client": (Client | None, "distributed.Client(address)"),
}


def check_arguments(**arguments: Any) -> None:
    """Refuse arguments that are not of the types that their names say; values, which may hold secrets, are not shown.

    Raises
    ------
    ParameterError
        If one is of another type.
    """
    for name, value in arguments.items():
        check_type(name, value, *_TYPES[name])


def check_type(name: str, value: Any, cls: Any, example: str) -> None:
    """Refuse one argument that is not of its type, of which a call is an example; raises as `check_arguments` does."""
    if not isinstance(value, cls):
        wanted = example.partition("(")[0]
        raise ParameterError(f"{name} must be a {wanted}, not a {type(value).__name__}.", f"Give {example}.")
