"""Writes a Lance dataset: a fragment for each block of rows, and one commit, which makes them a dataset.

`lance.write_dataset` takes an iterator of blocks too, but turns errors that the iterator raises into errors of its own.
"""

from collections.abc import Mapping
from typing import Any

from daskw2v.errors import ParameterError
from daskw2v.extras import Extra
from daskw2v.models.queries.frames import arrow_schema
from daskw2v.models.queries.vectors import Vectors
from daskw2v.models.stored.files import new_folder
from daskw2v.store.storage import Store

lance, fragment = Extra("lance", "lance"), Extra("lance.fragment", "lance")


def write_lance(vectors: Vectors, url: str, storage_options: Mapping[str, Any] | None) -> None:
    """Write the columns of `to_arrow` into a folder of this machine.

    Raises
    ------
    ParameterError
        If the folder is elsewhere: Lance has a client of its own for object stores, with options of its own.
    StoreError
        If there is something in the folder, or a vector is not finite.
    MissingExtraError
        If pylance is not installed.
    """
    if Store(url, dict(storage_options or {})).local_path is None:
        raise ParameterError(f"{url} is not on this machine.", "Export to a local folder .lance, and copy that.")
    with new_folder(url, storage_options) as made:
        folder = made.url
        written = (fragment.write_fragments(batch, folder, mode="create") for batch in vectors.record_batches())
        fragments = [one for block in written for one in block]
        lance.LanceDataset.commit(folder, lance.LanceOperation.Overwrite(arrow_schema(vectors.vector_size), fragments))
