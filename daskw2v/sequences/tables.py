"""Columns of tables, which events and edges share: Parquet, or CSV and TSV, each by its own header.

Only the columns that are named are read. Those of CSV are text, as it is written; a field without characters is null.
Ids of one table may be integers, and ids of another one text: `common_ids` has the rule.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from daskw2v.corpus.files import Source, TextBlock, open_source
from daskw2v.corpus.formats import PARQUET, find_format
from daskw2v.corpus.formats.columns import converting_arrow_errors, is_string
from daskw2v.corpus.formats.csv import DELIMITERS, Table
from daskw2v.errors import InputError
from daskw2v.extras import Extra
from daskw2v.store.retries import TIMEOUT

pa, pc, pq = Extra("pyarrow", "arrow"), Extra("pyarrow.compute", "arrow"), Extra("pyarrow.parquet", "arrow")

INTEGER, UNSIGNED, STRING = "int64", "uint64", "string[pyarrow]"  # kinds of ids, as pandas calls their types
_ROWS = 1 << 16  # rows of a Parquet file read at once


def read_columns(
    block: TextBlock, names: Sequence[str], storage_options: Mapping[str, Any], timeout: float = TIMEOUT
) -> Iterator[dict[str, Any]]:
    """Yield batches of a block's rows: Arrow arrays by the names of their columns.

    Raises
    ------
    InputError
        If the file is no table or is damaged, a column is missing or there more than once, text is not UTF-8, or a row
        of CSV has another number of fields than the header, or repeats it.
    """
    source, read = block.source, _reader(block.source)
    title = find_format(source.format).title
    with open_source(source, storage_options, timeout) as file, converting_arrow_errors(title, source.url):
        yield from read(file, block, names)


def types_of(
    source: Source, names: Sequence[str], storage_options: Mapping[str, Any], timeout: float = TIMEOUT
) -> dict[str, Any]:
    """Return the Arrow types of the columns of a file that `is_typed`; raises as `read_columns` does."""
    with open_source(source, storage_options, timeout) as file, converting_arrow_errors(PARQUET.title, source.url):
        schema = pq.ParquetFile(file).schema_arrow
        _names_in_file(schema.names, names, source.url)
        return {name: schema.field(name).type for name in names}


def check_table(source: Source) -> None:
    """Refuse a file whose format is not read as a table; raises `InputError`."""
    _reader(source)


def is_typed(source: Source) -> bool:
    """Return whether the columns of a table have types; columns of CSV are text."""
    return source.format in _TYPED


def _reader(source: Source) -> "ReadRows":
    if (read := _READERS.get(source.format)) is None:
        raise InputError(f"{source.url} is {source.format}, not a table.", "Give Parquet, CSV or TSV.")
    return read


def _parquet_rows(file: Any, block: TextBlock, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    parquet = pq.ParquetFile(file, page_checksum_verification=True)
    _names_in_file(parquet.schema_arrow.names, names, block.source.url)
    for batch in parquet.iter_batches(_ROWS, range(block.start, block.stop), columns=[*dict.fromkeys(names)]):
        batch.validate(full=True)  # a damaged file may point outside its dictionaries
        columns = {name: batch.column(name) for name in names}
        yield {name: c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for name, c in columns.items()}


def _csv_rows(file: Any, block: TextBlock, names: Sequence[str], delimiter: str) -> Iterator[dict[str, Any]]:
    url = block.source.url
    table = Table(file, block.source, delimiter, _refuse_row)
    columns_in_file = _names_in_file(table.schema.names, names, url)
    for batch in table.batches([*dict.fromkeys(columns_in_file.values())]):
        batch.validate(full=True)
        columns = {name: batch.column(written) for name, written in columns_in_file.items()}
        refuse_header(columns, url)
        yield {name: pc.if_else(pc.equal(texts, ""), None, texts) for name, texts in columns.items()}


ReadRows = Callable[[Any, TextBlock, Sequence[str]], Iterator[dict[str, Any]]]
_READERS: dict[str, ReadRows] = {
    PARQUET.name: _parquet_rows,
    **{name: partial(_csv_rows, delimiter=delimiter) for name, delimiter in DELIMITERS.items()},
}
_TYPED = frozenset([PARQUET.name])


def _refuse_row(location: str, problem: str) -> None:
    raise InputError(f"{location}: {problem}.", "Repair the file: all rows have the fields of its header.")


def _names_in_file(present: Sequence[str], names: Sequence[str], url: str) -> dict[str, str]:
    """Return the columns' names as a file writes them: there may be blanks around them."""
    stripped = [name.strip() for name in present]
    for name in names:
        if (name not in present and stripped.count(name) != 1) or present.count(name) > 1:
            raise InputError(
                f"{url} has no single column {name!r}.",
                f"Its columns are: {', '.join(stripped) or 'none'}. The first row of CSV and TSV names the columns.",
            )
    return {name: name if name in present else present[stripped.index(name)] for name in names}


def refuse_header(columns: Mapping[str, Any], url: str) -> None:
    """Refuse a row of text that holds the names of its columns, as one of files that were joined does.

    Raises
    ------
    InputError
        If a row is a header.
    """
    repeated = reduce(pc.and_, (pc.equal(texts, name) for name, texts in columns.items()))
    if pc.any(repeated).as_py():
        raise InputError(
            f"{url} has a row that is a header: {', '.join(columns)}.",
            "Remove it. CSV and TSV have one header, in the first row; other text has none.",
        )


def value_type(kind: Any) -> Any:
    """Return the type of a column's values, also in categories."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_text(kind: Any) -> bool:
    """Return whether values of a type are text."""
    return is_string(value_type(kind))


def kind_of_ids(kind: Any, url: str, what: str) -> str | None:
    """Return the kind of ids in a column of an Arrow type; None where all are null.

    Parameters
    ----------
    kind, url
        The type, and the file of the column.
    what
        What the ids are, for errors.

    Raises
    ------
    InputError
        If it holds no ids.
    """
    kind = value_type(kind)
    if pa.types.is_null(kind):
        return None
    if is_text(kind):
        return STRING
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return UNSIGNED if pa.types.is_uint64(kind) else INTEGER
    raise InputError(f"{what} of {url} are of type {kind}.", "Give columns of integers or strings.")


def common_ids(kinds: Iterable[tuple[str, str | None]]) -> str:
    """Return the kind of all ids, by the URL and the kind of each column.

    Ids are integers where all columns are; whole numbers of float64 are, too, as pandas makes them of integers with
    missing values. If one column is text, an id is the text of what is written: 7 is "7".
    """
    distinct = {kind for _, kind in kinds}
    return next((kind for kind in (STRING, UNSIGNED, INTEGER) if kind in distinct), STRING)


def parsed_ids(texts: Any) -> tuple[str, Any]:
    """Return the kind of ids that are text of CSV, and the ids: integers if all are written as such, as 007 is not."""
    numbers = integers_in(texts, INTEGER)
    return (STRING, texts) if numbers is None else (INTEGER, numbers)


def integers_in(texts: Any, kind: str) -> Any:
    """Return texts as integers of a kind; None if one of them is not written as an integer is."""
    try:
        numbers = texts.cast(kind)
    except pa.ArrowInvalid:
        return None
    return numbers if pc.all(pc.equal(numbers.cast(texts.type), texts), min_count=0).as_py() else None


def ids_of(array: Any, kind: str, what: str, url: str) -> Any:
    """Return a column as ids of a kind: int64, uint64 or large_string.

    Raises
    ------
    InputError
        If one is not a whole number, or is none of the kind.
    """
    if pa.types.is_floating(array.type):
        array = _whole(array, what, url)
    try:
        return array.cast(pa.large_string() if kind == STRING else kind)
    except pa.ArrowInvalid as error:
        raise InputError(
            f"{what} of {url} are of type {array.type}, those of other columns or files {kind} ({error}).",
            "Cast all of them to strings.",
        ) from None


def _whole(array: Any, what: str, url: str) -> Any:
    """Return floating-point numbers as int64; NaN is null, as pandas writes it."""
    bits = np.finfo(array.type.to_pandas_dtype()).nmant + 1
    numbers = without_nan(array.cast(pa.float64()))
    inexact = pc.greater_equal(pc.abs(numbers), float(1 << bits))
    wrong = numbers.filter(pc.or_(pc.not_equal(numbers, pc.round(numbers)), inexact))
    if len(wrong):
        raise InputError(
            f"{what} of {url} are of type {array.type}, and {wrong[0].as_py()} is no whole number below 2^{bits}.",
            "Cast them to integers or strings where they are written.",
        )
    return numbers.cast(pa.int64())


def without_nan(numbers: Any) -> Any:
    """Return an array of float64 with null in place of NaN."""
    return pc.if_else(pc.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)
