"""Which release of the package this is."""

from importlib import metadata


def installed() -> str:
    """Return the release that is installed, or that none is: the package may be run from its sources alone."""
    try:
        return metadata.version("daskw2v")
    except metadata.PackageNotFoundError:
        return "unknown (not installed)"


VERSION = installed()
