"""Attempts: random names that bind tables, vocabulary, manifest, list of sources and index to their version.

A version or checkpoint gets its attempt when it is created. The folder may have another name.
"""

from collections.abc import Collection, Mapping
from typing import Any

import zarr

from daskw2v.errors import DamageError
from daskw2v.store.arrays import finish_arrays
from daskw2v.store.checksums import FOREIGN, PLACE, Written
from daskw2v.store.durability import durable
from daskw2v.store.storage import MANIFEST, Store

ATTEMPT = "attempt"  # in manifests


@durable()
def finish_tables(store: Store, written: Collection[Written]) -> None:
    """Bind the chunks of tables to their places in the version; from then on others are refused.

    Parameters
    ----------
    store
        Folder of the version.
    written
        The results of `write_table_rows` or `write_partition` of all tasks.

    Raises
    ------
    DamageError
        If a chunk was not written.
    """
    finish_arrays(store.open_group(writable=True), written)


def create_part(store: Store, name: str) -> zarr.Group:
    """Create an empty group in a version, and bind it to the version's attempt; an existing one is deleted."""
    (store / name).remove()
    store.check()
    return store.open_group(writable=True).create_group(name)


def attempt_of(store: Store) -> str:
    """Return the attempt of a version; empty if an older daskw2v wrote it.

    Raises
    ------
    DamageError
        If the version is damaged.
    """
    place: Any = store.open_group().attrs.get(PLACE)
    return str(place.get("attempt", "")) if isinstance(place, dict) else ""


def check_attempt(store: Store, manifest: Mapping[str, Any], name: str = MANIFEST) -> None:
    """Check that a manifest, the file `name`, belongs to the tables beside it.

    Raises
    ------
    DamageError
        If it is of another version or attempt.
    """
    if manifest.get(ATTEMPT, "") != attempt_of(store):
        raise DamageError.of(f"{store.url}/{name}", FOREIGN)
