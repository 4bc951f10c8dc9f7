"""Reads and writes Parquet files of a stage, and computes the identity of a result that depends on files."""

import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from daskw2v.corpus.files import Source
from daskw2v.errors import DamageError
from daskw2v.extras import Extra
from daskw2v.shards.layout import digest
from daskw2v.store.checksums import retry_damaged
from daskw2v.store.limits import refused, shown, typed
from daskw2v.store.storage import Store
from daskw2v.types import Int64Array

T = TypeVar("T", bound=NamedTuple)

pa, pq = Extra("pyarrow", "arrow"), Extra("pyarrow.parquet", "arrow")


def write_table(store: Store, name: str, table: Any) -> bytes:
    """Write an Arrow table as a Parquet file, atomically, with checksums; return the file's bytes.

    Equal tables have equal bytes.
    """
    sink = io.BytesIO()
    pq.write_table(table, sink, write_page_checksum=True)
    store.write_bytes(name, content := sink.getvalue())
    return content


def make_list_table(column: str, items: Any, offsets: Int64Array) -> Any:
    """Return an Arrow table with one column of lists, of which list i is items[offsets[i] : offsets[i + 1]].

    `items` is an Arrow array; `offsets` has the shape (lists + 1,).
    """
    return pa.table({column: pa.LargeListArray.from_arrays(pa.array(offsets), items)})


def read_column(store: Store, name: str, column: str) -> Any:
    """Return a column of a file that `write_table` wrote, as one Arrow array; raises as `read_table` does."""
    return read_table(store, name, [column]).column(column).combine_chunks()


def read_table(store: Store, name: str, columns: Sequence[str] | None = None) -> Any:
    """Return columns of a file that `write_table` wrote, all by default, as an Arrow table.

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

    return retry_damaged(read)


def digest_inputs(sources: Sequence[Source], described: Mapping[str, Any], *options: Any) -> str:
    """Return a digest of the identities of files and of how they are read.

    Parameters
    ----------
    sources
        The files; url, size, version and format count.
    described
        The settings by which the files are read, by name.
    options
        Further values on which the result depends.
    """
    contents = [[source.url, source.size, source.version, source.format] for source in sources]
    return digest([contents, described, *options])


def parse_tuples(kind: type[T], entries: Sequence[Any], url: str) -> list[T]:
    """Convert lists of a manifest to named tuples of a class; `url` is that of the manifest, for errors.

    Raises
    ------
    StoreError
        If an entry is no list of values of the fields' types.
    """
    for entry in entries:
        if not isinstance(entry, list | tuple) or len(entry) != len(kind._fields):
            raise refused(url, f"holds no {kind.__name__}: {shown(entry)}")
    return [typed(kind, dict(zip(kind._fields, entry, strict=True)), url) for entry in entries]
