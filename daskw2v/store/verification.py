"""Finds all damaged files in a folder; reading would stop at the first."""

import math
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any, TypeVar

import numpy as np

from daskw2v.errors import DamageError, StoreError
from daskw2v.store.arrays import StoredArray, open_array
from daskw2v.store.checksums import CHUNKS, CRC, METADATA, Grid, NodeLocations, retry_damaged, verify_metadata
from daskw2v.store.storage import Store
from daskw2v.store.threads import in_threads
from daskw2v.store.zarr_schema import check_metadata

T = TypeVar("T")


def find_damage(folder: Store, *, full: bool = False, skip: str | None = None) -> list[DamageError]:
    """Return the damage of all manifests, Zarr metadata, and chunks of arrays below a folder; other files are not read.

    Parameters
    ----------
    folder
        The folder.
    full
        Whether to read all chunks and compare their checksums. By default only their sizes are compared.
    skip
        Name of a folder in `folder` that is not checked; None checks all.

    Returns
    -------
    list of DamageError
        One for each damaged or missing file, in order of their paths.

    Raises
    ------
    FormatError
        If a manifest is of another format.
    StoreError
        If the store fails.
    """
    sizes = {path: size for path, size in folder.sizes().items() if path.partition("/")[0] != skip}
    read_file = partial(_read_json, folder, NodeLocations(folder.url))
    read = {METADATA: read_file(METADATA)} if METADATA in sizes else {}  # first, as it names the attempt
    files = [path for path in sizes if path.endswith(".json") and path != METADATA]
    read |= zip(files, in_threads(read_file, files), strict=True)
    damages = {path: value for path, value in read.items() if isinstance(value, DamageError)}
    damages |= {path: _make_missing(folder, path) for path in _find_needed(sizes) if path not in sizes}
    arrays = {
        path.removesuffix(f"/{METADATA}"): values
        for path, values in read.items()
        if _is_metadata(path) and not isinstance(values, DamageError) and values["node_type"] == "array"
    }
    for path, values in arrays.items():
        damages |= dict(_check_sizes(folder, path, values, sizes))
    if full:
        opened = in_threads(partial(_open_array, folder, METADATA in sizes), list(arrays))
        chunks = [
            (array, number)
            for path, array in zip(arrays, opened, strict=True)
            if isinstance(array, StoredArray)
            for file, number in _list_files(path, arrays[path])
            if file in sizes and file not in damages
        ]
        for damage in (*opened, *in_threads(lambda chunk: _check_chunk(*chunk), chunks)):
            if isinstance(damage, DamageError):
                damages.setdefault(damage.url.removeprefix(f"{folder.url}/"), damage)
    return [damages[path] for path in sorted(damages)]


def _catch_damage(read: Callable[[], T]) -> T | DamageError:
    """Return the result of `read`, or the DamageError that it raises."""
    try:
        return read()
    except DamageError as damage:
        return damage


def _read_json(folder: Store, locations: NodeLocations, path: str) -> dict[str, Any] | DamageError:
    """Return the values of a manifest or of Zarr metadata at a path below a folder, or the damage of the file."""
    url = f"{folder.url}/{path}"

    def read() -> dict[str, Any]:
        if not _is_metadata(path):
            return folder.read_manifest(path) or {}
        content = folder.read_bytes(path) or b""
        values = verify_metadata(content, url)
        try:
            check_metadata(values, url)
        except StoreError as error:
            raise DamageError(error.problem, error.remedy, url=url) from error
        locations.check_node(path, values)
        return values

    return _catch_damage(lambda: retry_damaged(read))


def _is_metadata(path: str) -> bool:
    """Return whether a path is that of a Zarr node's metadata."""
    return path.rpartition("/")[2] == METADATA


def _find_needed(sizes: Mapping[str, int]) -> set[str]:
    """Return the paths of the metadata that chunks among the paths in `sizes` need: of their arrays, and of groups."""
    paths = set()
    for array in {path.partition(CHUNKS)[0] for path in sizes if CHUNKS in path}:
        names = array.split("/")
        paths |= {"/".join([*names[:depth], METADATA]) for depth in range(len(names) + 1)}
    return paths


def _make_missing(folder: Store, path: str) -> DamageError:
    """Return the damage of a missing file."""
    return DamageError.of(f"{folder.url}/{path}", "is missing")


def _list_files(path: str, values: Mapping[str, Any]) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the path of each file of an array, and the file's index along each axis.

    `path` and `values` are the path and the metadata of the array.
    """
    for number in product(*map(range, Grid.of(values).files)):
        yield f"{path}{CHUNKS}{'/'.join(map(str, number))}", number


def _check_sizes(
    folder: Store, path: str, values: Mapping[str, Any], sizes: Mapping[str, int]
) -> Iterator[tuple[str, DamageError]]:
    """Yield the path and the damage of each file of an array that is missing or has a wrong size.

    `path` and `values` are the path and the metadata of the array; `sizes` are the sizes of files by path.
    """
    step = values["chunk_grid"]["configuration"]["chunk_shape"]
    is_compressed = [codec["name"] for codec in values["codecs"]] != ["bytes", "crc32c"]
    full_size = math.prod(step) * np.dtype(values["data_type"]).itemsize + CRC
    for file, _ in _list_files(path, values):
        size = sizes.get(file)
        if size is None:
            yield file, _make_missing(folder, file)
        elif size <= CRC or not (is_compressed or size == full_size):
            yield file, DamageError.of(f"{folder.url}/{file}", f"has {size:,} bytes, which is not what was written")


def _open_array(folder: Store, is_group: bool, path: str) -> StoredArray | DamageError:
    """Return the array at a path, opened from the group of the folder if `is_group`; or the damage of the array."""
    parent, _, name = path.rpartition("/")
    if is_group:
        return _catch_damage(lambda: open_array(folder.open_group(), path))
    return _catch_damage(lambda: open_array((folder / parent).open_group(), name))


def _check_chunk(array: StoredArray, number: tuple[int, ...]) -> DamageError | None:
    """Read the file of an array with this index along each axis; return the file's damage, or None."""
    step = array.shards or array.chunks
    read = _catch_damage(lambda: array[tuple(slice(i * k, (i + 1) * k) for i, k in zip(number, step, strict=True))])
    return read if isinstance(read, DamageError) else None
