"""Secrets, in options and in URLs: they are used, and neither shown nor written."""

import re
from typing import Any

from daskw2v.errors import Daskw2vError, InputError

# A user alone is a token in URLs of the web, and a name in others; github://owner:repository@branch/ has no password
_USER = re.compile(r"((?<=http://)|(?<=https://)|(?<=webdav://))[^/?#]*@|(?<=://)(?<!github://)[^/@]*:[^/]*@", re.I)
_PARTS = "sig|token|secret|pass|pwd|auth|jwt|credential|key"  # of names
_NAMES = "code|sas"  # whole names: barcode is no secret
_QUERY = re.compile(rf"[?&;#]([^?&;#=]*({_PARTS})[^&;#=]*|{_NAMES})=.*", re.I | re.DOTALL)


class Options(dict[str, Any]):
    """Options for fsspec, of which only names are shown: Dask writes the arguments of tasks that fail into its logs."""

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{name!r}: ..." for name in self) + "}"


def redacted(url: str) -> str:
    """Return a URL without user names, passwords, and what is signed."""
    return _QUERY.sub("?...", _USER.sub("...@", url))


def refuse_secret(url: str, error: type[Daskw2vError] = InputError) -> str:
    """Return a URL that holds no secret: URLs stand in logs, messages and manifests.

    Raises
    ------
    Daskw2vError
        Of the class that is given, if it holds one.
    """
    if "://" in url and redacted(url) != url:
        raise error(
            f"The URL {redacted(url)} holds a secret, and URLs are stored and shown.",
            "Give secrets in storage_options or the environment; a signed URL has to be downloaded first.",
        )
    return url
