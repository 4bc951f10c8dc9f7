"""Names of versions: a number and the run, as in v0002-3f2a."""

import re
from collections.abc import Collection

from daskw2v.errors import DamageError, FormatError
from daskw2v.models.versions.served import read_served
from daskw2v.store.storage import Store

VERSION = re.compile(r"v(\d{4,})-([^/\\]+)")
RUN = re.compile("[0-9a-f]{12}")


def next_version(models: Store, run_id: str, damaged: Collection[str] = ()) -> str:
    """Return the name of a run's version: the existing one, finished or not, or a new one with the next number.

    Parameters
    ----------
    models
        Folder of the versions.
    run_id
        The run.
    damaged
        Names of versions that do not count as existing, as those that are being deleted, or of another daskw2v.
    """
    condemned = read_served(models).condemned
    numbers = [0]
    for name in (*models.children(), *condemned):
        match = VERSION.fullmatch(name)
        if match and match[2] == run_id and name not in (*damaged, *condemned) and not _is_foreign(models / name):
            return name
        if match:
            numbers.append(int(match[1]))
    return f"v{max(numbers) + 1:04}-{run_id}"


def _is_foreign(version: Store) -> bool:
    try:
        version.read_manifest()
    except FormatError:
        return True
    except DamageError:  # its reader says so
        pass
    return False


def number_of(version: str) -> int:
    """Return the number in a version's name."""
    match = VERSION.fullmatch(version)
    assert match is not None
    return int(match[1])


def run_of(version: str) -> str:
    """Return the run in a version's name."""
    return version.partition("-")[2]
