"""Alignment: a copy of a new version that is rotated into the space of the published one.

All tables of a model are rotated in the same way, so dot products stay, and with them scores and losses.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from distributed import Client

from daskw2v.models.alignment import Alignment, rotate_network, rotate_rows
from daskw2v.models.stored.store import (
    read_features,
    read_sources,
    read_subwords,
    read_vocabulary,
    write_features,
    write_sources,
    write_subwords,
    write_vocabulary,
)
from daskw2v.store.arrays import read_array, write_array
from daskw2v.store.storage import Store
from daskw2v.training.start.blocks import declare_like, rewrite
from daskw2v.types import Float32Array, Float64Array, RowIds

_ROTATION = "rotation"


def write_aligned(client: Client, source: Store, target: Store, alignment: Alignment | None) -> None:
    """Write a rotated copy of a version, without the manifest, which makes it a finished version.

    Tables are rotated on the cluster, one task for each block or partition. The rotation is stored with them, as
    `rotation`. Only tables, vocabulary, subword network, keys of features and the list of source files are copied.

    Parameters
    ----------
    client
        The cluster.
    source
        The version as it was trained.
    target
        Folder of the copy. Existing files are replaced, so an interrupted call can be repeated.
    alignment
        Result of `find_alignment`; None copies without rotating.

    Raises
    ------
    StoreError
        If a part of the source is missing or damaged.
    """
    network = read_subwords(source)
    declare_like(source, target, subwords=network is not None)
    if alignment is not None:
        write_array(target.open_group(writable=True), _ROTATION, alignment.rotation)
    write_vocabulary(target, read_vocabulary(source))
    write_sources(target, read_sources(source) or [])
    if network is not None:
        write_subwords(target, network if alignment is None else rotate_network(network, alignment.rotation))
    keys = read_features(source)
    if keys is not None:
        write_features(target, keys)
    rewrite(client, "align", _copy_rows if alignment is None else partial(_rotate_rows, target), source, target)


def read_rotation(store: Store) -> Float64Array:
    """Return the rotation of a version, shape (D, D) float64; `vectors @ rotation.T` reverts the rotation.

    Raises
    ------
    StoreError
        If the version was not rotated.
    """
    return read_array(store.open_group(), _ROTATION)


def read_alignment(store: Store, recorded: Mapping[str, Any]) -> Alignment:
    """Return the alignment of a version from its rotation and `recorded`, the result of `Alignment.as_dict`.

    Raises as `read_rotation` does.
    """
    return Alignment(read_rotation(store), **{name: recorded[name] for name in ("shared", "words", "before", "after")})


def _rotate_rows(target: Store, table: str, ids: RowIds, rows: Float32Array) -> Float32Array:
    """Return rows of a table, rotated by the rotation in the folder `target`; a `RowsChange` of `rewrite`."""
    return rotate_rows(rows, read_rotation(target))


def _copy_rows(table: str, ids: RowIds, rows: Float32Array) -> Float32Array:
    """Return rows of a table unchanged; a `RowsChange` of `rewrite`."""
    return rows
