"""Optional dependencies, imported only by the features that need them."""

import importlib
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

from daskw2v.errors import MissingExtraError


def one_thread() -> AbstractContextManager[Any]:
    """Return a context manager that limits BLAS and OpenMP to one thread, from this call to the end of the block.

    More threads are slower for matrices of a few hundred rows; on a busy machine, threads that wait for each other take
    ten times as long.

    Raises
    ------
    MissingExtraError
        If threadpoolctl, which scikit-learn brings, is not installed.
    """
    limits: AbstractContextManager[Any] = needed("threadpoolctl", "evaluation").threadpool_limits(1)
    return limits


class Extra:
    """A module of an optional dependency, imported when one of its names is first used.

    Most runs read no Parquet, and importing Arrow takes 40 MB and .07 s.

    Parameters
    ----------
    module, extra
        As for `needed`, which raises its error when a name is used.
    """

    def __init__(self, module: str, extra: str) -> None:
        self._module, self._extra = module, extra

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # `inspect` reads such names, and is to import nothing
            raise AttributeError(name)
        return getattr(needed(self._module, self._extra), name)


def needed(module: str, extra: str, instead: str = "") -> ModuleType:
    """Import a module of an optional dependency and return it, or raise a MissingExtraError.

    Parameters
    ----------
    module
        Full name of the module, such as `sklearn.cluster`.
    extra
        The extra of this package that installs the module, such as `evaluation`.
    instead
        A sentence to add to the error's remedy.

    Raises
    ------
    MissingExtraError
        If the module is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # the package is installed, but a module that it imports is missing
        raise MissingExtraError(
            f"{module.partition('.')[0]} is not installed.", f"Run: pip install 'daskw2v[{extra}]'. {instead}".rstrip()
        ) from None
