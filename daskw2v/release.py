"""Which release of the package this is."""

from importlib import metadata


def _installed() -> str:
    try:
        return metadata.version("daskw2v")
    except metadata.PackageNotFoundError:
        return "unknown (not installed)"


VERSION = _installed()
