"""The installed release of the package."""

from importlib import metadata


def installed() -> str:
    """Return the installed release; a text if the package runs from its sources without being installed."""
    try:
        return metadata.version("daskw2v")
    except metadata.PackageNotFoundError:
        return "unknown (not installed)"


VERSION = installed()
