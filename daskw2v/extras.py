"""Optional dependencies, imported only by the features that need them."""

import importlib
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

from daskw2v.errors import MissingExtraError


def one_thread() -> AbstractContextManager[Any]:
    """Limit BLAS and OpenMP to one thread, as more threads are slower for matrices of a few hundred rows.

    On a busy machine, threads that wait for each other take ten times as long.

    Raises
    ------
    MissingExtraError
        If threadpoolctl, which scikit-learn brings, is not installed.
    """
    limits: AbstractContextManager[Any] = needed("threadpoolctl", "evaluation").threadpool_limits(1)
    return limits


class Extra:
    """A module of an extra, imported when one of its names is first used.

    Most runs read no Parquet: Arrow takes 40 MB and .07 s.

    Parameters
    ----------
    module, extra
        As for `needed`, which raises where a name is used.
    """

    def __init__(self, module: str, extra: str) -> None:
        self._module, self._extra = module, extra

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # inspection asks for such names, and imports nothing
            raise AttributeError(name)
        return getattr(needed(self._module, self._extra), name)


def needed(module: str, extra: str, instead: str = "") -> ModuleType:
    """Import a module that comes with an extra of this package.

    Parameters
    ----------
    module
        Full name of the module, such as `sklearn.cluster`.
    extra
        The extra that installs it, such as `evaluation`.
    instead
        Sentence to add to the remedy.

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
