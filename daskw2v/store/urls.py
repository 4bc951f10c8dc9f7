"""URLs and paths that users pass: their filesystems, and the secrets that they may hold."""

import os
from collections.abc import Mapping
from typing import Any

from fsspec.core import url_to_fs

from daskw2v.errors import MissingExtraError, ParameterError
from daskw2v.safe_text import without_secrets

Location = str | os.PathLike[str]  # an fsspec URL or a local path
_REMEDY = "Give secrets in storage_options or the environment; a signed URL has to be downloaded first."


def is_location(value: Any) -> bool:
    """Return whether a value may be a URL or path: text or a `PathLike`, not empty, and without a NUL byte."""
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    return isinstance(text, str) and bool(text) and "\0" not in text


def as_url(value: Location, name: str) -> str:
    """Return a URL or path as text.

    Parameters
    ----------
    value
        The user's value.
    name
        Name of the setting, such as "work".

    Raises
    ------
    ParameterError
        If the value is neither text nor a path, is empty or has a NUL byte; or if it holds a secret.
    """
    if not is_location(value):
        raise ParameterError(f"{name}={value!r} is no URL or path.", "Give text that is not empty, or a pathlib.Path.")
    url = os.fspath(value)
    refuse_secret(name, url)
    return url


def make_absolute(url: str) -> str:
    """Return the absolute path of a local path, with ~ expanded and / as the separator; a URL as it is.

    Raises
    ------
    ParameterError
        If the home directory of ~ or ~user is unknown.
    """
    if "://" in url or "::" in url:
        return url
    path = os.path.expanduser(url).replace(os.sep, "/")
    if path.startswith("~"):
        problem = f"No home directory is known for {url!r}."
        raise ParameterError(problem, f"Set HOME, or give the path without ~; ./{path} names what is called so here.")
    return os.path.abspath(path).replace(os.sep, "/")


def is_private(url: str) -> bool:
    """Return whether a URL is of fsspec's filesystem in memory, which other processes cannot read."""
    return url.startswith("memory://")


def filesystem(url: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    """Return fsspec's filesystem of a URL, and the path in it.

    Raises
    ------
    ParameterError
        If the URL has a protocol that does not exist.
    MissingExtraError
        If the protocol needs a package that is not installed.
    """
    protocol = url.partition("://")[0]  # the only part of a URL that surely holds no secret
    try:
        fs, path = url_to_fs(url, **options)
    except ImportError as error:
        raise MissingExtraError(
            f"URLs of {protocol}:// need a package that is not installed ({error}).",
            "Install it here and on all workers; for s3, gs and hf, run: pip install 'daskw2v[s3]', 'daskw2v[gcs]' or "
            "'daskw2v[hub]'.",
        ) from error
    except ValueError as error:
        problem = f"A URL of {protocol}:// cannot be opened: {error}."
        raise ParameterError(problem, "Give a path, or a URL of a protocol of fsspec.") from error
    return fs, path


class Options(dict[str, Any]):
    """Options for fsspec whose repr shows only names: Dask writes the arguments of failed tasks into its logs."""

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{name!r}: ..." for name in self) + "}"


def refuse_secret(name: str, value: Any, remedy: str = _REMEDY) -> None:
    """Refuse the value of a setting that holds a secret, as settings are written to logs, messages and manifests.

    Raises
    ------
    ParameterError
        If the value is, or contains, a URL with a secret.
    """
    safe = without_secrets(value)
    if safe is not value and safe != value:
        raise ParameterError(f"{name}={safe!r} holds a secret, and URLs are stored and shown.", remedy)
