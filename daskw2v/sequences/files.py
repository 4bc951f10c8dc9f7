"""Files of a stage: whole Parquet files of columns and lists, and the identity that names what is built from files."""

import io
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from daskw2v.corpus.files import Source
from daskw2v.errors import DamageError
from daskw2v.extras import Extra
from daskw2v.shards.layout import digest
from daskw2v.store.checksums import twice
from daskw2v.store.storage import Store
from daskw2v.types import Int64Array

pa, pq = Extra("pyarrow", "arrow"), Extra("pyarrow.parquet", "arrow")


def write_columns(store: Store, name: str, columns: Mapping[str, Any]) -> bytes:
    """Write Arrow arrays as a Parquet file, atomically, with checksums; return its bytes, equal for equal arrays."""
    sink = io.BytesIO()
    pq.write_table(pa.table(dict(columns)), sink, write_page_checksum=True)
    store.write_bytes(name, content := sink.getvalue())
    return content


def write_lists(store: Store, name: str, column: str, items: Any, edges: Int64Array) -> bytes:
    """Write lists as a column: list i is items[edges[i] : edges[i + 1]] of an Arrow array."""
    return write_columns(store, name, {column: pa.LargeListArray.from_arrays(pa.array(edges), items)})


def read_column(store: Store, name: str, column: str) -> Any:
    """Read a column that `write_columns` wrote, as an Arrow array; raises as `read_columns` does."""
    return read_columns(store, name, [column]).column(column).combine_chunks()


def read_columns(store: Store, name: str, columns: Sequence[str] | None = None) -> Any:
    """Read columns that `write_columns` wrote, all by default, as an Arrow table.

    Raises
    ------
    DamageError
        If the file is missing or damaged.
    """
    return twice(partial(_read_columns, store, name, columns))


def _read_columns(store: Store, name: str, columns: Sequence[str] | None) -> Any:
    content = store.read_bytes(name)
    if content is None:
        raise DamageError.of(f"{store.url}/{name}", "is gone")
    try:
        return pq.read_table(io.BytesIO(content), columns=columns, page_checksum_verification=True)
    except (pa.ArrowException, OSError) as error:
        raise DamageError.of(f"{store.url}/{name}", f"is damaged ({error})") from error


def identity_of(sources: Sequence[Source], described: Mapping[str, Any], *options: Any) -> str:
    """Return a digest of the contents of files and of how they are read: settings by name, and other values."""
    contents = [[source.url, source.size, source.version, source.format] for source in sources]
    return digest([contents, described, *options])
