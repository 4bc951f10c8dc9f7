"""Optional dependencies: imported where a measure needs them, so that nobody else must install them."""

import importlib
from contextlib import AbstractContextManager
from types import ModuleType
from typing import Any

from daskw2v.errors import MissingExtraError


def one_thread() -> AbstractContextManager[Any]:
    """Let BLAS and OpenMP have one thread: for matrices of some hundred rows others cost more than they do.

    On a machine with other work they wait for each other, which takes ten times as long.

    Raises
    ------
    MissingExtraError
        If threadpoolctl, which scikit-learn brings, is not installed.
    """
    limits: AbstractContextManager[Any] = needed("threadpoolctl", "evaluation").threadpool_limits(1)
    return limits


def needed(module: str, extra: str, instead: str = "") -> ModuleType:
    """Import a module that comes with an extra of this package.

    Parameters
    ----------
    module
        Its full name, such as `sklearn.cluster`.
    extra
        The extra that installs it, such as `evaluation`.
    instead
        When another one is needed, and which.

    Raises
    ------
    MissingExtraError
        If it is not installed.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise  # it is installed: what is missing is a module of its own
        raise MissingExtraError(
            f"{module.partition('.')[0]} is not installed.",
            f"Run: pip install 'daskw2v[{extra}]'. {instead}".rstrip(),
        ) from None
