"""Reading an edge list: Parquet, CSV with a header, or columns of text parted by blanks, block by block."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from daskw2v.corpus.formats import text_pieces
from daskw2v.corpus.pieces import ReadReport
from daskw2v.corpus.sources import Block, Source, open_source, reading_parquet
from daskw2v.errors import InputError
from daskw2v.steady import PATIENCE

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq
except ImportError:  # build_graph tells the user
    pa = pc = pa_csv = pq = None

_ROWS = 1 << 16  # of a Parquet file, read at once
_COMMENT = re.compile(rb"^[#%].*\n", re.MULTILINE)
_BLANKS, _NEWLINE = np.frombuffer(b" \t\r", np.uint8), ord("\n")


@dataclass(frozen=True, kw_only=True)
class EdgeList:
    """How edges stand in their files.

    Parameters
    ----------
    source, target
        Columns (Parquet), or names in the first line (files `.csv`), of the two nodes. Any other text has no header:
        its columns are source, target and, if there is one, weight, parted by blanks or tabs; lines that begin with #
        or % are comments, and columns beyond these are left out.
    weight
        Column of a number above 0, named in the same way; every edge weighs 1 where this is None.
    directed
        Whether an edge leads only from source to target.
    strings
        Whether nodes of text files are named by strings; else by integers. Parquet knows by itself.
    """

    source: str = "source"
    target: str = "target"
    weight: str | None = None
    directed: bool = False
    strings: bool = False

    @property
    def columns(self) -> list[str]:
        """The names of what is read."""
        return [self.source, self.target, *([] if self.weight is None else [self.weight])]


def read_edges(
    block: Block, edges: EdgeList, storage_options: Mapping[str, Any], patience: float = PATIENCE
) -> Iterator[list[Any]]:
    """Yield columns of edges, some at a time: Arrow arrays of source and target, int64 or large_string, and weights.

    Raises
    ------
    InputError
        If the file is damaged, lacks a column, or has one of another type; if a node is missing, or a weight is not
        above 0.
    """
    source = block.source
    with open_source(source, storage_options, patience) as file:
        if source.format == "parquet":
            found = _read_parquet(file, block, edges)
        elif source.format == "text":
            header = _header(source, storage_options, patience) if _is_csv(source) else None
            found = _read_text(file, block, edges, header)
        else:
            raise InputError(f"{source.url} is {source.format}, which holds no edges.", "Give Parquet, CSV or text.")
        for columns in found:
            _check(columns, source.url)
            yield columns


def _is_csv(source: Source) -> bool:
    return ".csv" in source.url.lower().rsplit("/", 1)[-1]


def _read_parquet(file: Any, block: Block, edges: EdgeList) -> Iterator[list[Any]]:
    url = block.source.url
    with reading_parquet(url):
        parquet = pq.ParquetFile(file)
        missing = [name for name in edges.columns if len(parquet.schema_arrow.get_all_field_indices(name)) != 1]
        if missing:
            raise _no_column(url, missing[0], parquet.schema_arrow.names)
        kinds = [parquet.schema_arrow.field(name).type for name in edges.columns]
        wanted = [_kind_of(kind, url) for kind in kinds[:2]] + [pa.float64()] * len(kinds[2:])
        groups = range(block.start, block.stop)
        for batch in parquet.iter_batches(_ROWS, groups, columns=edges.columns):
            yield [batch.column(name).cast(kind) for name, kind in zip(edges.columns, wanted, strict=True)]


def _kind_of(kind: Any, url: str) -> Any:
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_integer(inner):
        return pa.int64()
    if pa.types.is_string(inner) or pa.types.is_large_string(inner):
        return pa.large_string()
    raise InputError(f"Nodes of {url} are of type {kind}.", "Give columns of integers or strings.")


def _header(source: Source, storage_options: Mapping[str, Any], patience: float) -> list[str]:
    """Return the names in the first line of a CSV file, which its other blocks lack."""
    with open_source(source, storage_options, patience) as file:
        piece = next(text_pieces(file, Block(source, 0, 1), ReadReport(), whole_lines=True), (0, b"\n"))[1]
    line = piece[: piece.index(b"\n")].decode(errors="replace")
    return [name.strip().strip('"') for name in line.split(",")]


def _read_text(file: Any, block: Block, edges: EdgeList, header: list[str] | None) -> Iterator[list[Any]]:
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
            with _explained(f"{url} from byte {offset} on", edges):
                yield _parsed(content, header, edges)


def squeezed(data: bytes) -> bytes:
    """Return lines with one space for each run of blanks, and none at their ends."""
    text = np.frombuffer(b"\n" + data + b"\n", np.uint8)
    blank = np.isin(text, _BLANKS)
    before_word = np.append(~blank[1:] & (text[1:] != _NEWLINE), False)
    kept = np.where(blank, np.uint8(ord(" ")), text)[~blank | before_word]
    at_start = (kept[1:] == ord(" ")) & (kept[:-1] == _NEWLINE)
    return kept[1:][~at_start].tobytes()


def _parsed(content: bytes, header: list[str] | None, edges: EdgeList) -> list[Any]:
    names = header
    if names is None:
        n_columns = content[: content.index(b"\n")].count(b" ") + 1
        names = edges.columns + [f"column {i}" for i in range(len(edges.columns), n_columns)]
    node = pa.large_string() if edges.strings else pa.int64()
    kinds = dict(zip(edges.columns, [node, node, pa.float64()], strict=False))
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
        hint = "" if edges.strings else " Nodes that are no integers need strings=True."
        raise InputError(
            f"{place} cannot be read as edges ({error}).",
            f"Every line must have {len(edges.columns)} or more columns, as many as the others.{hint}",
        ) from error


def _no_column(url: str, name: str, present: list[str]) -> InputError:
    return InputError(
        f"{url} has no single column {name!r}.",
        f"Name source, target and weight among: {', '.join(present) or 'none'}.",
    )


def _are_strings(nodes: Any) -> bool:
    return bool(pa.types.is_large_string(nodes.type))


def _check(columns: list[Any], url: str) -> None:
    unnamed = any(pc.any(pc.equal(pc.binary_length(nodes), 0)).as_py() for nodes in columns[:2] if _are_strings(nodes))
    if unnamed or any(column.null_count for column in columns):
        raise InputError(f"{url} has edges without source, target or weight.", "Fill these in, or leave the edges out.")
    for weights in columns[2:]:
        valid = pc.and_(pc.is_finite(weights), pc.greater(weights, 0.0))
        if not pc.all(valid, min_count=0).as_py():
            found = weights.filter(pc.invert(valid))[0].as_py()
            raise InputError(f"{url} has an edge of weight {found}.", "Give finite weights above 0, or leave it out.")
