"""The installed release of the package."""

from importlib import metadata


def installed() -> str:
    """Return the version of the installed package, or "unknown (not installed)" if it runs from its sources."""
    try:
        return metadata.version("daskw2v")
    except metadata.PackageNotFoundError:
        return "unknown (not installed)"


VERSION = installed()
