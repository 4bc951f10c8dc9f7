"""Finds all damaged files in a folder at once, where reading stops at the first."""

import math
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from typing import Any

import numpy as np

from daskw2v.errors import DamageError, StoreError
from daskw2v.store.arrays import StoredArray, open_array
from daskw2v.store.checksums import METADATA, Places, twice, verify_metadata
from daskw2v.store.storage import Store
from daskw2v.store.zarr_schema import check_metadata

_THREADS = 16  # to read, which is mostly waiting
_CRC = 4  # bytes
_CHUNKS = "/c/"  # between an array's path and a chunk's number


def find_damage(folder: Store, *, full: bool = False, skip: str | None = None) -> list[DamageError]:
    """Return the damage below a folder: manifests, metadata, and chunks of arrays.

    Parameters
    ----------
    folder
        The folder.
    full
        Whether to read all chunks and compare their checksums. By default only their sizes are compared.
    skip
        Name of a folder in it that is passed over.

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
    sizes, places = folder.sizes(), Places(folder.url)
    sizes = {path: size for path, size in sizes.items() if path.partition("/")[0] != skip}
    read = {METADATA: _read(folder, places, METADATA)} if METADATA in sizes else {}  # first, as it names the attempt
    with ThreadPoolExecutor(_THREADS) as pool:
        files = [path for path in sizes if path.endswith(".json") and path != METADATA]
        read |= zip(files, pool.map(lambda path: _read(folder, places, path), files), strict=True)
        found = {path: value for path, value in read.items() if isinstance(value, DamageError)}
        found |= {path: _missing(folder, path) for path in _needed(sizes) if path not in sizes}
        arrays = {
            path.removesuffix(f"/{METADATA}"): values
            for path, values in read.items()
            if _is_metadata(path) and not isinstance(values, DamageError) and values["node_type"] == "array"
        }
        for path, values in arrays.items():
            found |= dict(_check_sizes(folder, path, values, sizes))
        if full:
            stored = dict(
                zip(arrays, pool.map(lambda path: _open(folder, path, METADATA in sizes), arrays), strict=True)
            )
            chunks = [
                (array, number)
                for path, array in stored.items()
                if isinstance(array, StoredArray)
                for number in product(*map(range, _grid(arrays[path])))
                if _file(path, number) in sizes and _file(path, number) not in found
            ]
            damages = [*stored.values(), *pool.map(lambda chunk: _check_chunk(*chunk), chunks)]
            for damage in damages:
                if isinstance(damage, DamageError):
                    found.setdefault(damage.url.removeprefix(f"{folder.url}/"), damage)
    return [found[path] for path in sorted(found)]


def _read(folder: Store, places: Places, path: str) -> dict[str, Any] | DamageError:
    """Return what a JSON file holds, or what is wrong with it."""
    place = f"{folder.url}/{path}"

    def read() -> dict[str, Any]:
        if not _is_metadata(path):
            return folder.read_manifest(path) or {}
        content = folder.read_bytes(path) or b""
        values = verify_metadata(content, place)
        try:
            check_metadata(values, place)
        except StoreError as error:
            raise DamageError(error.problem, error.remedy, url=place) from error
        places.read(path, values)
        return values

    try:
        return twice(read)
    except DamageError as damage:
        return damage


def _is_metadata(path: str) -> bool:
    return path.rpartition("/")[2] == METADATA


def _needed(sizes: Mapping[str, int]) -> set[str]:
    """Return the metadata that chunks need: those of their arrays, and of the groups of these."""
    needed = set()
    for array in {path.partition(_CHUNKS)[0] for path in sizes if _CHUNKS in path}:
        names = array.split("/")
        needed |= {"/".join([*names[:depth], METADATA]) for depth in range(len(names) + 1)}
    return needed


def _missing(folder: Store, path: str) -> DamageError:
    return DamageError.of(f"{folder.url}/{path}", "is missing")


def _grid(values: Mapping[str, Any]) -> list[int]:
    """Return the number of files of an array along each axis."""
    step = values["chunk_grid"]["configuration"]["chunk_shape"]
    return [-(-n // k) for n, k in zip(values["shape"], step, strict=True)]


def _file(path: str, number: tuple[int, ...]) -> str:
    return f"{path}{_CHUNKS}{'/'.join(map(str, number))}"


def _check_sizes(
    folder: Store, path: str, values: Mapping[str, Any], sizes: Mapping[str, int]
) -> Iterator[tuple[str, DamageError]]:
    """Yield the files of an array that are missing, or of another size than they should have, and what is wrong."""
    step = values["chunk_grid"]["configuration"]["chunk_shape"]
    packed = [codec["name"] for codec in values["codecs"]] != ["bytes", "crc32c"]
    whole = math.prod(step) * np.dtype(values["data_type"]).itemsize + _CRC
    for number in product(*map(range, _grid(values))):
        file = _file(path, number)
        size = sizes.get(file)
        if size is None:
            yield file, _missing(folder, file)
        elif size <= _CRC or not (packed or size == whole):
            yield file, DamageError.of(f"{folder.url}/{file}", f"has {size:,} bytes, which is not what was written")


def _open(folder: Store, path: str, is_group: bool) -> StoredArray | DamageError:
    """Open an array, through the group at the folder where that is one; return what is wrong with it."""
    parent, _, name = path.rpartition("/")
    try:
        return open_array(folder.open_group(), path) if is_group else open_array((folder / parent).open_group(), name)
    except DamageError as damage:
        return damage


def _check_chunk(array: StoredArray, number: tuple[int, ...]) -> DamageError | None:
    """Read a file of an array; return what is wrong with it."""
    step = array.shards or array.chunks
    try:
        array[tuple(slice(i * k, (i + 1) * k) for i, k in zip(number, step, strict=True))]
    except DamageError as damage:
        return damage
    return None
