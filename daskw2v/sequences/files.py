"""Files of a stage: Parquet files that are written and read whole, and the identity of a result of files."""

import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from daskw2v.corpus.files import Source
from daskw2v.errors import DamageError
from daskw2v.extras import Extra
from daskw2v.shards.layout import digest
from daskw2v.store.checksums import twice
from daskw2v.store.limits import refused, shown, typed
from daskw2v.store.storage import Store
from daskw2v.types import Int64Array

T = TypeVar("T", bound=NamedTuple)

pa, pq = Extra("pyarrow", "arrow"), Extra("pyarrow.parquet", "arrow")


def write_table(store: Store, name: str, table: Any) -> bytes:
    """Write an Arrow table as a Parquet file, atomically, with checksums; return its bytes, equal for equal tables."""
    sink = io.BytesIO()
    pq.write_table(table, sink, write_page_checksum=True)
    store.write_bytes(name, content := sink.getvalue())
    return content


def table_of_lists(column: str, items: Any, edges: Int64Array) -> Any:
    """Return an Arrow table with a column of lists: list i is items[edges[i] : edges[i + 1]] of an Arrow array."""
    return pa.table({column: pa.LargeListArray.from_arrays(pa.array(edges), items)})


def read_column(store: Store, name: str, column: str) -> Any:
    """Read a column that `write_table` wrote, as an Arrow array; raises as `read_table` does."""
    return read_table(store, name, [column]).column(column).combine_chunks()


def read_table(store: Store, name: str, columns: Sequence[str] | None = None) -> Any:
    """Read columns that `write_table` wrote, all by default, as an Arrow table.

    Raises
    ------
    DamageError
        If the file is missing or damaged.
    """

    def read() -> Any:
        content = store.read_bytes(name)
        if content is None:
            raise DamageError.of(f"{store.url}/{name}", "is gone")
        try:
            return pq.read_table(io.BytesIO(content), columns=columns, page_checksum_verification=True)
        except (pa.ArrowException, OSError) as error:
            raise DamageError.of(f"{store.url}/{name}", f"is damaged ({error})") from error

    return twice(read)


def identity_of(sources: Sequence[Source], described: Mapping[str, Any], *options: Any) -> str:
    """Return a digest of the contents of files and of how they are read: settings by name, and other values."""
    contents = [[source.url, source.size, source.version, source.format] for source in sources]
    return digest([contents, described, *options])


def tuples_of(kind: type[T], entries: Sequence[Any], url: str) -> list[T]:
    """Return the named tuples that lists in the manifest at a URL stand for.

    Raises
    ------
    StoreError
        If an entry is no list of values of the fields' types.
    """
    for entry in entries:
        if not isinstance(entry, list | tuple) or len(entry) != len(kind._fields):
            raise refused(url, f"holds no {kind.__name__}: {shown(entry)}")
    return [typed(kind, dict(zip(kind._fields, entry, strict=True)), url) for entry in entries]
