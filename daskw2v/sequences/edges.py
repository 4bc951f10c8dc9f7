"""Reads an edge list block by block: Parquet, CSV with a header, or text with columns separated by blanks."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from daskw2v.corpus.files import Source, TextBlock, open_source
from daskw2v.corpus.formats import PARQUET, TEXT
from daskw2v.corpus.formats.columns import reading_as
from daskw2v.corpus.formats.text import text_pieces
from daskw2v.corpus.pieces import ReadReport
from daskw2v.errors import InputError, ParameterError
from daskw2v.extras import Extra
from daskw2v.sequences.kinds import EdgeList
from daskw2v.store.retries import TIMEOUT

pa, pc = Extra("pyarrow", "arrow"), Extra("pyarrow.compute", "arrow")
pa_csv, pq = Extra("pyarrow.csv", "arrow"), Extra("pyarrow.parquet", "arrow")

_COLUMNS = 1 << 12  # most of a text file
_ROWS = 1 << 16  # rows of a Parquet file read at once
_COMMENT = re.compile(rb"^[#%].*\n", re.MULTILINE)
_NODES = ("source", "target")  # roles of columns
_BLANKS, _NEWLINE = np.frombuffer(b" \t\r", np.uint8), ord("\n")


def read_edges(
    block: TextBlock, edges: EdgeList, storage_options: Mapping[str, Any], timeout: float = TIMEOUT
) -> Iterator[list[Any]]:
    """Yield batches of edges: the Arrow arrays of `edges.roles`.

    Nodes are int64 or large_string, weights double, types of nodes large_string.

    Raises
    ------
    InputError
        If the file is damaged, or a column is missing or has another type; if a node or its type is missing, or a
        weight is not above 0.
    """
    source = block.source
    with open_source(source, storage_options, timeout) as file:
        read = _READERS.get(source.format)
        if read is None:
            raise InputError(f"{source.url} is {source.format}, not a table of edges.", "Give Parquet, CSV or text.")
        for columns in read(file, block, edges, storage_options, timeout):
            _check(dict(zip(edges.roles, columns, strict=True)), source.url)
            yield columns


def _is_csv(source: Source) -> bool:
    return ".csv" in source.url.lower().rsplit("/", 1)[-1]


def _read_parquet(file: Any, block: TextBlock, edges: EdgeList, *_: Any) -> Iterator[list[Any]]:
    url = block.source.url
    with reading_as(PARQUET.title, url):
        parquet = pq.ParquetFile(file)
        missing = [name for name in edges.columns if len(parquet.schema_arrow.get_all_field_indices(name)) != 1]
        if missing:
            raise _no_column(url, missing[0], parquet.schema_arrow.names)
        wanted = {
            name: _kind_of(role, parquet.schema_arrow.field(name).type, url) for role, name in edges.roles.items()
        }
        groups = range(block.start, block.stop)
        for batch in parquet.iter_batches(_ROWS, groups, columns=edges.columns):
            yield [batch.column(name).cast(kind) for name, kind in wanted.items()]


def _kind_of(role: str, kind: Any, url: str) -> Any:
    """Return the type that a column of this type is read as."""
    if role == "weight":
        return pa.float64()
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_integer(inner):
        return pa.int64() if role in _NODES else pa.large_string()
    if pa.types.is_string(inner) or pa.types.is_large_string(inner):
        return pa.large_string()
    what = "Nodes" if role in _NODES else "Types of nodes"
    raise InputError(f"{what} of {url} are of type {kind}.", "Give columns of integers or strings.")


def _header(source: Source, storage_options: Mapping[str, Any], timeout: float) -> list[str]:
    """Return the column names in the first line of a CSV file, for blocks that do not start there."""
    with open_source(source, storage_options, timeout) as file:
        piece = next(text_pieces(file, TextBlock(source, 0, 1), ReadReport(), whole_lines=True), (0, b"\n"))[1]
    end = piece.index(b"\n")
    if piece.count(b",", 0, end) >= _COLUMNS:
        raise InputError(f"{source.url} has a header of more than {_COLUMNS:,} columns.", "Leave columns out.")
    line = piece[:end].decode(errors="replace")
    return [name.strip().strip('"') for name in line.split(",")]


def _read_text(
    file: Any, block: TextBlock, edges: EdgeList, storage_options: Mapping[str, Any], timeout: float
) -> Iterator[list[Any]]:
    header = _header(block.source, storage_options, timeout) if _is_csv(block.source) else None
    url, at_header = block.source.url, header is not None and block.start == 0
    missing = [name for name in edges.columns if header is not None and header.count(name) != 1]
    if missing:
        raise _no_column(url, missing[0], header or [])
    for offset, data in text_pieces(file, block, ReadReport(), whole_lines=True):
        content = data[data.index(b"\n") + 1 :] if at_header else data
        at_header = False
        if header is None:
            content = squeezed(_COMMENT.sub(b"", content)).lstrip(b"\n")
        if content:
            place = f"{url} from byte {offset} on"
            with _explained(place, edges):
                yield _parsed(content, header, edges, place)


_TYPED = frozenset([PARQUET.name])  # formats whose columns have a type
_READERS: Mapping[str, Callable[..., Iterator[list[Any]]]] = {PARQUET.name: _read_parquet, TEXT.name: _read_text}


def check_strings(sources: Iterable[Source], edges: EdgeList) -> None:
    """Refuse nodes that are to be strings where the columns of all files have a type; raises `ParameterError`."""
    if edges.strings and _TYPED.issuperset(source.format for source in sources):
        raise ParameterError(
            "strings=True changes nothing in Parquet, whose columns have a type.", "Leave strings out."
        )


def squeezed(data: bytes) -> bytes:
    """Return lines with each run of blanks replaced by one space, and without blanks at their ends."""
    text = np.frombuffer(b"\n" + data + b"\n", np.uint8)
    blank = np.isin(text, _BLANKS)
    before_word = np.append(~blank[1:] & (text[1:] != _NEWLINE), False)
    kept = np.where(blank, np.uint8(ord(" ")), text)[~blank | before_word]
    at_start = (kept[1:] == ord(" ")) & (kept[:-1] == _NEWLINE)
    return kept[1:][~at_start].tobytes()


def _parsed(content: bytes, header: list[str] | None, edges: EdgeList, place: str) -> list[Any]:
    names = header
    if names is None:
        n_columns = content.count(b" ", 0, content.index(b"\n")) + 1
        if n_columns > _COLUMNS:
            raise InputError(f"{place} has lines of {n_columns:,} columns.", f"Give edges of at most {_COLUMNS:,}.")
        names = edges.columns + [f"column {i}" for i in range(len(edges.columns), n_columns)]
    node, text = pa.large_string() if edges.strings else pa.int64(), pa.large_string()
    of_role = {"source": node, "target": node, "weight": pa.float64(), "source_type": text, "target_type": text}
    kinds = {name: of_role[role] for role, name in edges.roles.items()}
    table = pa_csv.read_csv(
        pa.BufferReader(content),
        pa_csv.ReadOptions(use_threads=False, block_size=len(content) + 1, column_names=names),
        pa_csv.ParseOptions(delimiter=" " if header is None else ",", quote_char=False if header is None else '"'),
        pa_csv.ConvertOptions(
            column_types=kinds, include_columns=edges.columns, null_values=[""], strings_can_be_null=True
        ),
    )
    return [table.column(name).combine_chunks() for name in edges.columns]


@contextmanager
def _explained(place: str, edges: EdgeList) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError) as error:
        hint = "" if edges.strings else " If nodes are not integers, give strings=True."
        raise InputError(
            f"{place} cannot be read as edges ({error}).",
            f"All lines must have the same number of columns, at least {len(edges.columns)}.{hint}",
        ) from error


def _no_column(url: str, name: str, present: list[str]) -> InputError:
    return InputError(
        f"{url} has no single column {name!r}.",
        f"Name source, target, weight and types among: {', '.join(present) or 'none'}.",
    )


def _is_empty(column: Any) -> bool:
    """Tell whether an item is missing, or a string without characters."""
    strings = pa.types.is_large_string(column.type)
    return bool(column.null_count or (strings and pc.any(pc.equal(pc.binary_length(column), 0)).as_py()))


def _check(columns: dict[str, Any], url: str) -> None:
    if empty := [role.replace("_", " ") for role, column in columns.items() if _is_empty(column)]:
        raise InputError(f"{url} has edges without {' or '.join(empty)}.", "Fill them in, or leave the edges out.")
    if (weights := columns.get("weight")) is not None:
        valid = pc.and_(pc.is_finite(weights), pc.greater(weights, 0.0))
        if not pc.all(valid, min_count=0).as_py():
            found = weights.filter(pc.invert(valid))[0].as_py()
            raise InputError(f"{url} has an edge of weight {found}.", "Give finite weights above 0, or leave it out.")
