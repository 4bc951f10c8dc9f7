"""Columns of tables, which events and edges share: Parquet, or CSV and TSV, each by its own header.

Only the columns that are named are read. Those of CSV are text, as it is written; a field without characters is null.
Ids of one table may be integers, and ids of another one text: `common_id_kind` has the rule.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import Any

import numpy as np

from daskw2v.corpus.files import Source, TextBlock, open_source
from daskw2v.corpus.formats import PARQUET, find_format
from daskw2v.corpus.formats.columns import converting_arrow_errors, is_string
from daskw2v.corpus.formats.csv import DELIMITERS, CsvTable
from daskw2v.errors import InputError
from daskw2v.extras import Extra
from daskw2v.store.retries import TIMEOUT

pa, pc, pq = Extra("pyarrow", "arrow"), Extra("pyarrow.compute", "arrow"), Extra("pyarrow.parquet", "arrow")

INTEGER, UNSIGNED, STRING = "int64", "uint64", "string[pyarrow]"  # kinds of ids, as pandas calls their types
_ROWS = 1 << 16  # rows of a Parquet file read at once
ArrowColumns = dict[str, Any]  # Arrow arrays by the names of their columns


def read_columns(
    block: TextBlock, names: Sequence[str], options: Mapping[str, Any], timeout: float = TIMEOUT
) -> Iterator[ArrowColumns]:
    """Yield batches of a block's rows: Arrow arrays of the columns `names`, by name.

    `options` are options for fsspec, and `timeout` is in seconds.

    Raises
    ------
    InputError
        If the file is no table or is damaged, a column is missing or occurs more than once, text is not UTF-8, or a
        row of CSV has another number of fields than the header, or repeats it.
    """
    source, read = block.source, _find_reader(block.source)
    title = find_format(source.format).title
    with open_source(source, options, timeout) as file, converting_arrow_errors(title, source.url):
        yield from read(file, block, names)


def read_types(source: Source, names: Sequence[str], options: Mapping[str, Any], timeout: float) -> dict[str, Any]:
    """Return the Arrow types of columns of a Parquet file by their names; raises as `read_columns` does."""
    with open_source(source, options, timeout) as file, converting_arrow_errors(PARQUET.title, source.url):
        schema = pq.ParquetFile(file).schema_arrow
        _find_names(schema.names, names, source.url)
        return {name: schema.field(name).type for name in names}


def check_table(source: Source) -> None:
    """Refuse a file whose format is not read as a table; raises `InputError`."""
    _find_reader(source)


def is_typed(source: Source) -> bool:
    """Return whether the columns of a file have types, as in Parquet; columns of CSV are text."""
    return _READERS.get(source.format) is _read_parquet


def _find_reader(source: Source) -> "ReadRows":
    """Return the function that yields the rows of a file; raises InputError if its format is no table."""
    if (read := _READERS.get(source.format)) is None:
        raise InputError(f"{source.url} is {source.format}, not a table.", "Give Parquet, CSV or TSV.")
    return read


def _read_parquet(file: Any, block: TextBlock, names: Sequence[str]) -> Iterator[ArrowColumns]:
    """Yield batches of the rows of a block of a Parquet file."""
    parquet = pq.ParquetFile(file, page_checksum_verification=True)
    _find_names(parquet.schema_arrow.names, names, block.source.url)
    for batch in parquet.iter_batches(_ROWS, range(block.start, block.stop), columns=[*dict.fromkeys(names)]):
        batch.validate(full=True)  # a damaged file may point outside its dictionaries
        columns = {name: batch.column(name) for name in names}
        yield {name: c.dictionary_decode() if pa.types.is_dictionary(c.type) else c for name, c in columns.items()}


def _read_csv(file: Any, block: TextBlock, names: Sequence[str], delimiter: str) -> Iterator[ArrowColumns]:
    """Yield batches of the rows of a CSV file, whose arrays are strings."""
    url = block.source.url
    table = CsvTable(file, block.source, delimiter, _refuse_row)
    columns_in_file = _find_names(table.schema.names, names, url)
    for batch in table.batches([*dict.fromkeys(columns_in_file.values())]):
        batch.validate(full=True)
        columns = {name: batch.column(written) for name, written in columns_in_file.items()}
        refuse_header(columns, url)
        yield {name: pc.if_else(pc.equal(texts, ""), None, texts) for name, texts in columns.items()}


# Called with an open file, the block of it to read, and names of columns; yields as `read_columns` does
ReadRows = Callable[[Any, TextBlock, Sequence[str]], Iterator[ArrowColumns]]
_CSV_READERS = {name: partial(_read_csv, delimiter=delimiter) for name, delimiter in DELIMITERS.items()}
_READERS: dict[str, ReadRows] = {PARQUET.name: _read_parquet, **_CSV_READERS}


def _refuse_row(location: str, problem: str) -> None:
    """Raise an InputError for a row of CSV; `location` is its file and line."""
    raise InputError(f"{location}: {problem}.", "Repair the file: all rows have the fields of its header.")


def _find_names(names_in_file: Sequence[str], names: Sequence[str], url: str) -> dict[str, str]:
    """Return the name of each column as the file writes it, which may have blanks around it.

    `names_in_file` are all columns of the file. A column that is missing or ambiguous raises InputError.
    """
    stripped = [name.strip() for name in names_in_file]
    for name in names:
        if (name not in names_in_file and stripped.count(name) != 1) or names_in_file.count(name) > 1:
            raise InputError(
                f"{url} has no single column {name!r}.",
                f"Its columns are: {', '.join(stripped) or 'none'}. The first row of CSV and TSV names the columns.",
            )
    return {name: name if name in names_in_file else names_in_file[stripped.index(name)] for name in names}


def refuse_header(columns: ArrowColumns, url: str) -> None:
    """Refuse columns of text in which a row repeats the header, as in files that were joined.

    Raises
    ------
    InputError
        If a row is a header.
    """
    repeated = reduce(pc.and_, (pc.equal(texts, name) for name, texts in columns.items()))
    if pc.any(repeated).as_py():
        problem = f"{url} has a row that is a header: {', '.join(columns)}."
        raise InputError(problem, "Remove it. CSV and TSV have one header, in the first row; other text has none.")


def value_type(arrow_type: Any) -> Any:
    """Return the Arrow type of a column's values: for a dictionary type, the type of its values."""
    return arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type


def is_text(arrow_type: Any) -> bool:
    """Return whether the values of a column of an Arrow type are text."""
    return is_string(value_type(arrow_type))


def find_id_kind(arrow_type: Any, url: str, subject: str) -> str | None:
    """Return the kind of ids in a column: `INTEGER` (also for floats), `UNSIGNED` or `STRING`; None for the type null.

    Parameters
    ----------
    arrow_type
        Type of the column.
    url, subject
        The file, and what the ids are, such as "Users"; for errors.

    Raises
    ------
    InputError
        If values of the type are neither text nor numbers.
    """
    arrow_type = value_type(arrow_type)
    if pa.types.is_null(arrow_type):
        return None
    if is_text(arrow_type):
        return STRING
    if pa.types.is_integer(arrow_type) or pa.types.is_floating(arrow_type):
        return UNSIGNED if pa.types.is_uint64(arrow_type) else INTEGER
    raise InputError(f"{subject} of {url} are of type {arrow_type}.", "Give columns of integers or strings.")


def common_id_kind(kinds: Iterable[tuple[str, str | None]]) -> str:
    """Return the kind that ids of several columns have in common; `kinds` are the URL and the kind of each column.

    Ids are integers where all columns are; whole numbers of float64 are, too, as pandas makes them of integers with
    missing values. If one column is text, or none has a kind, all ids are text as it is written: 7 is "7".
    """
    distinct = {kind for _, kind in kinds}
    return next((kind for kind in (STRING, UNSIGNED, INTEGER) if kind in distinct), STRING)


def parse_ids(texts: Any) -> tuple[str, Any]:
    """Return the kind of ids in a column of CSV, and the ids as an Arrow array.

    They are `INTEGER` if all are written as integers are, which 007 is not, else `STRING`.
    """
    numbers = parse_integers(texts, INTEGER)
    return (STRING, texts) if numbers is None else (INTEGER, numbers)


def parse_integers(texts: Any, kind: str) -> Any:
    """Return an Arrow array of strings as integers of a kind; None if one is not written as an integer is."""
    try:
        numbers = texts.cast(kind)
    except pa.ArrowInvalid:
        return None
    return numbers if pc.all(pc.equal(numbers.cast(texts.type), texts), min_count=0).as_py() else None


def cast_ids(array: Any, kind: str, subject: str, url: str) -> Any:
    """Return an Arrow array of ids cast to a kind: int64, uint64 or large_string.

    `subject` says what the ids are, such as "Users", and `url` is their file; for errors.

    Raises
    ------
    InputError
        If an id is a fraction, or is not of the kind.
    """
    if pa.types.is_floating(array.type):
        array = _cast_whole_numbers(array, subject, url)
    try:
        return array.cast(pa.large_string() if kind == STRING else kind)
    except pa.ArrowInvalid as error:
        problem = f"{subject} of {url} are of type {array.type}, those of other columns or files {kind} ({error})."
        raise InputError(problem, "Cast all of them to strings.") from None


def _cast_whole_numbers(array: Any, subject: str, url: str) -> Any:
    """Return an Arrow array of whole floating-point numbers as int64; NaN, which pandas writes for null, is null."""
    bits = np.finfo(array.type.to_pandas_dtype()).nmant + 1
    numbers = without_nan(array.cast(pa.float64()))
    inexact = pc.greater_equal(pc.abs(numbers), float(1 << bits))
    wrong = numbers.filter(pc.or_(pc.not_equal(numbers, pc.round(numbers)), inexact))
    if len(wrong):
        raise InputError(
            f"{subject} of {url} are of type {array.type}, and {wrong[0].as_py()} is no whole number below 2^{bits}.",
            "Cast them to integers or strings where they are written.",
        )
    return numbers.cast(pa.int64())


def without_nan(numbers: Any) -> Any:
    """Return an Arrow array of float64 with NaN replaced by null."""
    return pc.if_else(pc.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)
