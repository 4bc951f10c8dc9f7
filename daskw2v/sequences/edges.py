"""Reads an edge list block by block: a table, or text without a header, with columns separated by blanks."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from daskw2v.corpus.files import Source, TextBlock, open_source
from daskw2v.corpus.formats import TEXT
from daskw2v.corpus.formats.text import read_text_pieces
from daskw2v.corpus.pieces import ReadReport
from daskw2v.errors import InputError, ParameterError
from daskw2v.extras import Extra
from daskw2v.sequences import tables
from daskw2v.sequences.settings import EdgeList
from daskw2v.sequences.tables import ArrowColumns
from daskw2v.store.retries import TIMEOUT
from daskw2v.store.threads import in_threads

pa, pc, pa_csv = Extra("pyarrow", "arrow"), Extra("pyarrow.compute", "arrow"), Extra("pyarrow.csv", "arrow")

_MAX_COLUMNS = 1 << 12  # of a text file
_STRINGS = "If nodes are not integers, give strings=True. A header has only CSV and TSV."
_COMMENT = re.compile(rb"^[#%].*\n", re.MULTILINE)
_NODES = "Nodes"  # in messages
_BLANKS, _NEWLINE = np.frombuffer(b" \t\r", np.uint8), ord("\n")


def read_edges(
    block: TextBlock, edges: EdgeList, kind: str, options: Mapping[str, Any], timeout: float = TIMEOUT
) -> Iterator[list[Any]]:
    """Yield batches of edges of a block: an Arrow array for each role, in the order of `edges.roles`.

    Nodes are int64, uint64 or large_string, by the `kind` that `find_node_kind` returns; weights are double, types of
    nodes large_string. `options` are options for fsspec; `timeout` is in seconds.

    Raises
    ------
    InputError
        If the file is no table or text, or damaged; if a column is missing or has another type; if a node or its type
        is missing, or a weight is not finite and above 0.
    """
    url = block.source.url
    read = _READERS.get(block.source.format, tables.read_columns)
    for columns in read(block, edges.columns, options, timeout):
        arrays = {role: _cast_column(role, columns[name], kind, edges, url) for role, name in edges.roles.items()}
        _check_edges(arrays, url)
        yield list(arrays.values())


def find_node_kind(
    sources: Sequence[Source], edges: EdgeList, options: Mapping[str, Any], timeout: float = TIMEOUT
) -> str:
    """Return the kind of the nodes in all files, by the rule of `common_id_kind`: `INTEGER`, `UNSIGNED` or `STRING`.

    Only the schemas of Parquet are read: nodes of CSV and of other text are `INTEGER`, or `STRING` with
    `edges.strings`. `options` and `timeout` are as in `read_edges`.

    Raises
    ------
    InputError
        If a Parquet file is damaged or lacks a column, or its nodes are neither text nor numbers.
    ParameterError
        If `edges.strings` is set and all files are Parquet.
    """
    typed = [source for source in sources if tables.is_typed(source)]
    if edges.strings and len(typed) == len(sources):
        raise ParameterError("strings=True changes nothing in Parquet, whose columns have a type.", "Leave it out.")
    read = partial(tables.read_types, names=edges.columns, options=options, timeout=timeout)
    kinds = [
        (source.url, tables.find_id_kind(types[name], source.url, _NODES))
        for source, types in zip(typed, in_threads(read, typed), strict=True)
        for name in (edges.source, edges.target)
    ]
    if len(typed) < len(sources):
        kinds.append(("", tables.STRING if edges.strings else tables.INTEGER))
    return tables.common_id_kind(kinds)


def _read_text(
    block: TextBlock, names: Sequence[str], options: Mapping[str, Any], timeout: float
) -> Iterator[ArrowColumns]:
    """Yield batches of lines of text without a header, except comments: Arrow arrays of strings by column."""
    with open_source(block.source, options, timeout) as file:
        for offset, data in read_text_pieces(file, block, ReadReport(), whole_lines=True):
            content = squeeze_blanks(_COMMENT.sub(b"", data)).lstrip(b"\n")
            if content:
                columns = _parse_columns(content, names, f"{block.source.url} from byte {offset} on")
                tables.refuse_header(columns, block.source.url)
                yield columns


_READERS = {TEXT.name: _read_text}  # all other formats are tables


def squeeze_blanks(data: bytes) -> bytes:
    """Return lines of text with one space for each run of blanks, none at ends of lines, and a newline appended.

    Blanks are spaces, tabs and carriage returns.
    """
    text = np.frombuffer(b"\n" + data + b"\n", np.uint8)
    is_blank = np.isin(text, _BLANKS)
    before_word = np.append(~is_blank[1:] & (text[1:] != _NEWLINE), False)
    kept = np.where(is_blank, np.uint8(ord(" ")), text)[~is_blank | before_word]
    starts_line = (kept[1:] == ord(" ")) & (kept[:-1] == _NEWLINE)
    return kept[1:][~starts_line].tobytes()


def _parse_columns(content: bytes, names: Sequence[str], location: str) -> ArrowColumns:
    """Return the first columns of lines of text as Arrow arrays of strings by name; one space separates columns.

    `location` says in messages which lines these are. Lines with another number of columns than the first, or fewer
    than `names`, raise InputError.
    """
    n_columns = content.count(b" ", 0, content.index(b"\n")) + 1
    if n_columns > _MAX_COLUMNS:
        raise InputError(f"{location} has lines of {n_columns:,} columns.", f"Give edges of at most {_MAX_COLUMNS:,}.")
    ignored = (f"column {i}" for i in range(len(names), n_columns))
    try:
        table = pa_csv.read_csv(
            pa.BufferReader(content),
            pa_csv.ReadOptions(use_threads=False, block_size=len(content) + 1, column_names=[*names, *ignored]),
            pa_csv.ParseOptions(delimiter=" ", quote_char=False),
            pa_csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), include_columns=names),
        )
    except pa.ArrowException as error:
        problem = f"{location} cannot be read as edges ({error})."
        raise InputError(problem, f"All lines must have the same number of columns, at least {len(names)}.") from error
    return {name: table.column(name).combine_chunks() for name in names}


def _cast_column(role: str, array: Any, kind: str, edges: EdgeList, url: str) -> Any:
    """Return an Arrow column cast to the type of its role, a key of `edges.roles`; what cannot be cast is refused.

    `kind` is the kind of nodes.
    """
    if role == "weight":
        try:
            return (pc.utf8_trim_whitespace(array) if tables.is_text(array.type) else array).cast(pa.float64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InputError(f"{url} has a weight that is no number ({error}).", "Give finite numbers > 0.") from None
    if role not in ("source", "target"):
        return tables.cast_ids(array, tables.STRING, "Types of nodes", url)
    if kind == tables.STRING or not tables.is_text(array.type):
        return tables.cast_ids(array, kind, _NODES, url)
    texts = pc.utf8_trim_whitespace(array)
    numbers = tables.parse_integers(texts, kind)
    if numbers is None:  # 007 and 7 would be one node
        other = next(text for text in texts if text.is_valid and tables.parse_integers(pa.array([text]), kind) is None)
        raise InputError(f"{url} has the node {other.as_py()!r}, which is not written as an {kind} is.", _STRINGS)
    return numbers


def _has_missing(column: Any) -> bool:
    """Return whether an Arrow array has a null, or a string without characters."""
    strings = pa.types.is_large_string(column.type)
    return bool(column.null_count or (strings and pc.any(pc.equal(pc.binary_length(column), 0)).as_py()))


def _check_edges(columns: dict[str, Any], url: str) -> None:
    """Raise an InputError if edges, Arrow arrays by role, lack a value, or a weight is not finite and above 0."""
    if empty := [role.replace("_", " ") for role, column in columns.items() if _has_missing(column)]:
        raise InputError(f"{url} has edges without {' or '.join(empty)}.", "Fill them in, or leave the edges out.")
    if (weights := columns.get("weight")) is not None:
        valid = pc.and_(pc.is_finite(weights), pc.greater(weights, 0.0))
        if len(wrong := weights.filter(pc.invert(valid))):
            problem = f"{url} has an edge of weight {wrong[0].as_py()}."
            raise InputError(problem, "Give finite weights above 0, or leave it out.")
