"""Secrets, in options and in URLs: they are used, and neither shown nor written."""

from typing import Any

from daskw2v.errors import ParameterError
from daskw2v.safe_text import without_secrets

_REMEDY = "Give secrets in storage_options or the environment; a signed URL has to be downloaded first."


class Options(dict[str, Any]):
    """Options for fsspec, of which only names are shown: Dask writes the arguments of tasks that fail into its logs."""

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{name!r}: ..." for name in self) + "}"


def refuse_secret(name: str, value: Any, remedy: str = _REMEDY) -> None:
    """Refuse the value of a setting that holds a secret: settings stand in logs, messages and manifests.

    Raises
    ------
    ParameterError
        If it is, or holds, a URL with a secret.
    """
    safe = without_secrets(value)
    if safe is not value and safe != value:
        raise ParameterError(f"{name}={safe!r} holds a secret, and URLs are stored and shown.", remedy)
