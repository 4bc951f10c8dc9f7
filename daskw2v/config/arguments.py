"""Checks of the types of the arguments that stages share."""

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
    """Raise a ParameterError if an argument is not of the type that its name says: `store`, `params` and so on.

    Values, which may hold secrets, are not shown.
    """
    for name, value in arguments.items():
        check_type(name, value, *_TYPES[name])


def check_type(name: str, value: Any, cls: Any, example: str) -> None:
    """Raise a ParameterError if the argument of this name is not of a class; `example` is a call that makes one."""
    if not isinstance(value, cls):
        wanted = example.partition("(")[0]
        raise ParameterError(f"{name} must be a {wanted}, not a {type(value).__name__}.", f"Give {example}.")
