"""Columns of text, of lists of tokens and of weights of rows: how they are named, and read from Arrow's buffers.

All formats of tables use this module. A path such as doc.body leads to a nested column, in an object of JSON or a
struct of Arrow. A weight is an integer in a further column: how often a row's text counts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskw2v.corpus.files import Source, TextBlock, open_source
from daskw2v.corpus.formats.base import Format, empty_file_error
from daskw2v.corpus.invalid import InvalidInput
from daskw2v.corpus.pieces import Piece, RawText, Tokens, make_tokens, offsets_from
from daskw2v.corpus.streams import with_newlines
from daskw2v.corpus.tokenizers import Tokenizer
from daskw2v.errors import InputError
from daskw2v.extras import Extra
from daskw2v.types import Int64Array

pa, pc = Extra("pyarrow", "arrow"), Extra("pyarrow.compute", "arrow")

BATCH = 1 << 20  # bytes of a column decoded at once
ROWS = 1 << 12  # maximum number of rows decoded at once, whatever sizes the file declares
MAX_WEIGHT = 1 << 20  # of a row
_REPEATED_ROWS, _REPEATED_BYTES = 1 << 12, 1 << 20  # repeated rows made at once, and their bytes, at most, about
_WEIGHT_RULE = f"A weight is an integer in 0..{MAX_WEIGHT:,}: the times that the row counts."


@contextmanager
def converting_arrow_errors(title: str, url: str) -> Iterator[None]:
    """Turn errors that Arrow raises in the block about a damaged file into an InputError.

    Parameters
    ----------
    title, url
        Title of the file's format, and the file's URL, for messages.
    """
    try:
        yield
    except MemoryError as error:
        raise InputError(
            f"{url} has a part that does not fit into memory, or is damaged and declares one ({title}).",
            "Write the file again with smaller row groups, record batches or stripes, or leave it out.",
        ) from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        problem = f"{url} cannot be read as {title} ({error})."
        raise InputError(problem, "Write the file again, or leave it out.") from error


def cut_evenly(source: Source, parts: int, block_bytes: int) -> list[TextBlock]:
    """Return blocks of about `block_bytes` of a file of `parts` record batches or stripes, all assumed equal."""
    step = max(1, parts * block_bytes // source.size)
    return [TextBlock(source, start, min(start + step, parts)) for start in range(0, parts, step)]


class TextColumns(NamedTuple):
    """The columns of a table that hold its text and the weights of its rows.

    Parameters
    ----------
    paths
        Path of the column of text, and path of the column of weights, if there is one. A path is the names that lead to
        a column, from the name of a column of the file on.
    url, remedy
        URL of the file, and the remedy in the message if the column holds no text.
    """

    paths: list[list[str]]
    url: str
    remedy: str

    @property
    def names(self) -> list[str]:
        """Paths of the columns, each joined by dots."""
        return list(map(".".join, self.paths))

    @property
    def roots(self) -> list[str]:
        """Names of the file's columns that the paths of text and weights begin with, each once."""
        return list(dict.fromkeys(path[0] for path in self.paths))

    def arrays(self, batches: Iterable[Any], get_column: "GetColumn") -> Iterator[Any]:
        """Yield the column of text of record batches, each row as often as its weight says.

        Parameters
        ----------
        batches
            Record batches of Arrow.
        get_column
            Returns the column of a batch that a path leads to.

        Yields
        ------
        Array
            Parts of the column that are decoded at once, as `convert_text` makes them.
        """
        for batch in batches:
            text, *weights = (get_column(batch, path) for path in self.paths)
            counts, start = [read_weights(array, self.names[1], self.url) for array in weights], 0
            for part in cut_slices([_make_decodable(text)]):
                array = convert_text(part, self.names[0], self.url, self.remedy)
                yield from repeat_rows(array, counts[0][start : start + len(part)]) if counts else [array]
                start += len(part)


def find_columns(schema: Any, column: str, weight: str | None, url: str) -> TextColumns:
    """Find the columns of text and of weights in an Arrow schema.

    Parameters
    ----------
    schema, url
        Schema of a file, and the file's URL.
    column, weight
        Name, or path joined by dots, of the column of text, and of the column of weights; None without weights.

    Raises
    ------
    InputError
        If a column is missing, or a name occurs more than once; or the column of text has a type that is no text. A
        column of numbers passes, as it may hold nulls alone: `convert_text` checks that.
    """
    weights = [] if weight is None else [_find(schema, weight, url)[0]]
    path, kind = _find(schema, column, url)
    remedy = _list_columns(_field_types(pa.struct(list(schema))))
    if is_text(kind) or pa.types.is_primitive(kind):
        return TextColumns([path, *weights], url, remedy)
    raise _no_text_error(column, url, kind, remedy)


Suffixes = tuple[str, ...]
CutTable = Callable[[Any, Source, int], list[TextBlock]]
OpenTable = Callable[[Any, TextBlock], tuple[Any, Callable[[TextColumns], Iterable[Any]]]]
GetColumn = Callable[[Any, list[str]], Any]


def table_format(
    name: str,
    title: str,
    suffixes: Suffixes,
    unit: str,
    cut: CutTable,
    open: OpenTable,
    get_column: GetColumn,
    **fields: Any,
) -> Format:
    """Return a format of tables, of whose columns Arrow reads those of text and weights.

    Parameters
    ----------
    name, title, suffixes, fields
        As of `Format`.
    unit
        Name of the parts of a file that blocks are made of, for messages.
    cut
        Function of an open file that is not empty, its source and a size in bytes; returns blocks of about this size.
    open
        Function of an open file and a block; returns the schema of the file, and a function of `TextColumns` that
        yields the record batches of the block with these columns.
    get_column
        Function of a record batch and a path; returns the column that the path leads to: `get_column` or
        `get_checked_column` of this module.
    """

    def cut_file(source: Source, block_bytes: int, options: Mapping[str, Any], timeout: float) -> list[TextBlock]:
        """Return the blocks of a file, as `Format.cut` does."""
        if not source.size:
            raise empty_file_error(source, title)
        with open_source(source, options, timeout) as file, converting_arrow_errors(title, source.url):
            return cut(file, source, block_bytes)

    def read(
        file: Any, block: TextBlock, column: str, policy: InvalidInput, tokenizer: Tokenizer, weight: str | None = None
    ) -> Iterator[Piece]:
        """Read a block, as `Format.read` does."""
        url = block.source.url
        with converting_arrow_errors(title, url):
            schema, batches = open(file, block)
            columns = find_columns(schema, column, weight, url)
            location = f"{url}, column {column!r} from {unit} {block.start} on,"
            yield from read_arrays(columns.arrays(batches(columns), get_column), location, policy, tokenizer)

    fields |= {"compressible": False, "honours": ("column", "weight"), "requires": ("pyarrow", "arrow")}
    return Format(name=name, title=title, suffixes=suffixes, cut=cut_file, read=read, **fields)


class NoFieldError(Exception):
    """The error of a path of which a name is missing.

    Parameters
    ----------
    present
        The fields that exist where the name is missing, by their paths.
    """

    def __init__(self, present: Mapping[str, object]) -> None:
        super().__init__(present)
        self.present = present


def find_field(path: str, root: Any, fields_of: Callable[[Any], Mapping[str, Any]]) -> tuple[list[str], Any]:
    """Return the names that lead to a nested field, and the field.

    Names may contain dots. The longest name that exists goes first: a field called "doc.body" comes before the field
    "body" of "doc".

    Parameters
    ----------
    path
        Names, joined by dots.
    root
        The object that has the field of the first name.
    fields_of
        Returns the fields of an object by name; an empty mapping if the object has no fields.

    Raises
    ------
    NoFieldError
        If there is no such field.
    """
    names, rest, fields = list[str](), path, fields_of(root)
    while rest not in fields:
        heads = (rest[:dot] for dot in reversed(range(len(rest))) if rest[dot] == ".")
        head = next((head for head in heads if head in fields and fields_of(fields[head])), None)
        if head is None:
            raise NoFieldError({".".join([*names, name]): field for name, field in fields.items()})
        names.append(head)
        rest, fields = rest[len(head) + 1 :], fields_of(fields[head])
    return [*names, rest], fields[rest]


def _find(schema: Any, column: str, url: str) -> tuple[list[str], Any]:
    """Return the names that lead to a column of an Arrow schema, and the column's type; raises as `find_columns`."""
    root = kind = pa.struct(list(schema))
    try:
        path, _ = find_field(column, root, _field_types)
    except NoFieldError as error:
        raise InputError(f"{url} has no column {column!r}.", _list_columns(error.present)) from None
    for name in path:
        if (n := len(kind.get_all_field_indices(name))) > 1:
            raise InputError(f"{url} has {n} columns {column!r}.", _list_columns(_field_types(root)))
        kind = kind.field(name).type
    return path, kind


def rows_at_once(size: int, rows: int) -> int:
    """Return how many rows to decode at once, where `rows` rows have `size` bytes together: about `BATCH` bytes.

    It is `ROWS` at most: rows that a file has once for many equal rows may grow when they are decoded.
    """
    return min(max(1, rows * BATCH // max(size, BATCH)), ROWS)


def cut_slices(arrays: Iterable[Any]) -> Iterator[Any]:
    """Yield slices of Arrow arrays, or of record batches, that are small enough to be decoded at once."""
    for array in arrays:
        step = rows_at_once(array.nbytes, len(array))
        yield from (array.slice(start, step) for start in range(0, len(array), step))


def convert_text(array: Any, column: str, url: str, remedy: str) -> Any:
    """Return an Arrow array of texts or of lists of tokens as `large_string`, or as `large_list` of `large_string`.

    An array of any type that holds nulls alone becomes an array of texts.

    Parameters
    ----------
    array
        The array, of any type.
    column, url, remedy
        Name of the column, URL of its file, and the remedy, for the message.

    Raises
    ------
    InputError
        If the array holds neither texts nor lists of tokens.
    """
    kind = array.type
    if not is_text(kind):
        if array.null_count < len(array):
            raise _no_text_error(column, url, kind, remedy)
        return pa.nulls(len(array), pa.large_string())
    return convert_lists(array) if is_list(kind) else convert_strings(array)


def convert_lists(array: Any) -> Any:
    """Return an Arrow array of lists of texts, integers or nulls as `large_list` of `large_string`.

    Null lists become empty lists.
    """
    offsets = offsets_from(pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False))
    # Not cast: Arrow casts slices of list_view to wrong values
    return pa.LargeListArray.from_arrays(pa.array(offsets), convert_strings(array.flatten()))


def convert_strings(array: Any) -> Any:
    """Return an Arrow array of texts, categories of texts, integers or nulls as `large_string`."""
    return _make_decodable(array).cast(pa.large_string())


def is_weight(value: Any) -> bool:
    """Return whether a value is a valid weight: an integer, but no bool, in 0..`MAX_WEIGHT`."""
    return type(value) is int and 0 <= value <= MAX_WEIGHT


def read_weights(array: Any, column: str, source: str) -> Int64Array:
    """Return the weights of n rows, shape (n,) int64; null, and an empty field of CSV, is 0.

    Parameters
    ----------
    array
        An Arrow array of integers, of strings of integers, or of nulls.
    column, source
        Name of the column, and the file or input that it belongs to, for messages.

    Raises
    ------
    InputError
        If a weight is no integer, or out of range.
    """
    kind = array.type
    if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_null(kind)):
        raise InputError(f"{column!r} of {source} is of type {kind}.", _WEIGHT_RULE)
    if pa.types.is_string(kind):  # of CSV
        array = pc.if_else(pc.equal(array, ""), pa.scalar(None, kind), array)
    try:
        values: Int64Array = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid as error:
        raise InputError(f"{column!r} of {source} holds what is no weight ({error}).", _WEIGHT_RULE) from None
    wrong = np.flatnonzero((values < 0) | (values > MAX_WEIGHT))
    if len(wrong):
        raise InputError(f"{column!r} of {source} is {values[wrong[0]]}, which is no weight.", _WEIGHT_RULE)
    return values


def repeat_rows(array: Any, weights: Int64Array) -> Iterator[Any]:
    """Yield the n rows of an Arrow array, each as often as its weight says, in parts of bounded size.

    `weights` has shape (n,), int64.
    """
    ends = np.cumsum(weights)
    step = max(1, min(_REPEATED_ROWS, _REPEATED_BYTES // _largest_row(array)))
    for start in range(0, int(ends[-1]) if len(ends) else 0, step):
        numbers = np.arange(start, min(start + step, int(ends[-1])))
        yield array.take(pa.array(np.searchsorted(ends, numbers, side="right")))


def _make_decodable(array: Any) -> Any:
    """Return an Arrow array unchanged, but with categories of `large_string` if it has categories of `string_view`.

    Arrow cannot decode the latter.
    """
    if pa.types.is_dictionary(array.type) and array.type.value_type == pa.string_view():
        return pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pa.large_string()))
    return array


def _no_text_error(column: str, url: str, kind: Any, remedy: str) -> InputError:
    """Return the error for a column whose Arrow type is neither text nor lists of tokens."""
    problem = f"Column {column!r} of {url} is of type {kind}; it must be strings, or lists of strings or integers."
    return InputError(problem, remedy)


def get_column(batch: Any, path: list[str]) -> Any:
    """Return the column of a record batch that a path leads to; rows are null where a struct on the path is null."""
    return reduce(_get_field, path[1:], batch.column(batch.schema.get_field_index(path[0])))


def get_checked_column(batch: Any, path: list[str]) -> Any:
    """Return the column of a record batch that a path leads to, after a check of the batch's buffers.

    Buffers that are read from a file may hold offsets out of range, which would end the process.

    Raises
    ------
    pyarrow.ArrowInvalid
        If buffers are too short, or offsets are out of range. Text may be invalid UTF-8.
    """
    batch.validate()
    array = get_column(batch, path)
    array.view(_to_bytes_type(array.type)).validate(full=True)
    return array


def read_arrays(arrays: Iterable[Any], location: str, policy: InvalidInput, tokenizer: Tokenizer) -> Iterator[Piece]:
    """Yield the sentences of a column: the lines of a column of texts, or the lists of a column of lists.

    Nulls, in the column or in its lists, and empty tokens are skipped.

    Parameters
    ----------
    arrays
        The column, in parts of bounded size, as `convert_text` makes them.
    location
        The file, column and row at which the column begins, for messages.
    policy, tokenizer
        As for `Format.read`.

    Raises
    ------
    InputError
        If text is invalid in strict mode.
    """
    before = policy.report.bytes_read
    for array in arrays:
        offset = policy.report.bytes_read - before
        if is_list(array.type):
            piece: Piece = _read_lists(array, location, offset, policy)
        else:
            piece = _read_texts(array, location, offset, policy, tokenizer)
        if isinstance(piece, RawText) or len(piece.starts):
            yield piece


def _get_field(array: Any, name: str) -> Any:
    """Return the field of an Arrow array of structs that has a name."""
    return pc.struct_field(array, [array.type.get_field_index(name)])


def _field_types(kind: Any) -> dict[str, Any]:
    """Return the types of the fields of an Arrow struct type, by name; an empty dict for another type."""
    fields = [kind.field(i) for i in range(kind.num_fields)] if pa.types.is_struct(kind) else []
    return {field.name: field.type for field in fields}


def _list_columns(present: Mapping[str, Any]) -> str:
    """Return the remedy of a message that lists the columns of a file; `present` has their types by name."""
    columns = ", ".join(f"{name} ({kind})" for name, kind in present.items())
    return f"Give column; the columns are: {columns or 'none'}."


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type is text, categories of text, null, or lists of texts, integers or nulls."""
    value = kind.value_type if is_list(kind) else kind
    is_number = is_list(kind) and pa.types.is_integer(value)
    return is_string(value) or is_number or pa.types.is_null(value)


def is_string(kind: Any) -> bool:
    """Return whether an Arrow type is text, or categories of text."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def _to_bytes_type(kind: Any) -> Any:
    """Return the Arrow type with the same buffers as a type, but with bytes in place of text."""
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _to_bytes_type(kind.value_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_to_bytes_type(kind.value_type), kind.list_size)
    for is_kind, lists in _list_types().items():
        if is_kind(kind):
            return lists(_to_bytes_type(kind.value_type))
    texts = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}
    return texts.get(kind, kind)


def is_list(kind: Any) -> bool:
    """Return whether an Arrow type is lists of any kind."""
    return pa.types.is_fixed_size_list(kind) or any(is_kind(kind) for is_kind in _list_types())


def _list_types() -> dict[Callable[[Any], bool], Callable[[Any], Any]]:
    """Return, for each kind of Arrow lists of any length: a test for such a type, and the function that makes one.

    The function takes the type of the values.
    """
    return {
        pa.types.is_list: pa.list_,
        pa.types.is_large_list: pa.large_list,
        pa.types.is_list_view: pa.list_view,
        pa.types.is_large_list_view: pa.large_list_view,
    }


def strings_of(array: Any) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the bytes (n,), not copied, and the offsets (t + 1,) of t texts in an Arrow array of type large_string.

    The first offset is 0.
    """
    _, offsets_buffer, data_buffer = array.buffers()
    offsets = np.zeros(1, np.int64)
    if len(array):
        offsets = np.frombuffer(offsets_buffer, np.int64, len(array) + 1, array.offset * 8)
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.frombuffer(data_buffer or b"", np.uint8)  # there is no buffer without bytes
    return data[first:last], offsets - first


def _read_texts(array: Any, location: str, offset: int, policy: InvalidInput, tokenizer: Tokenizer) -> Piece:
    """Return the texts of a `large_string` array as text or tokens; `offset` is the number of bytes before it."""
    strings = array.fill_null("")
    empty, newline = (pa.scalar(text, pa.large_string()) for text in ("", "\n"))
    data = with_newlines(strings_of(pc.binary_join_element_wise(strings, empty, newline))[0].tobytes())
    policy.report.count_lines(data)
    policy.report.bytes_read += len(data)
    return tokenizer(policy.valid_utf8(data, location, offset))


def _read_lists(array: Any, location: str, offset: int, policy: InvalidInput) -> Tokens:
    """Return the lists of a `large_list` array as sentences; `offset` is the number of bytes before it."""
    policy.report.lines += len(array)
    rows = offsets_from(pc.list_value_length(array).fill_null(0).to_numpy())  # index of the first token of each row
    tokens = array.flatten()
    is_kept = pc.greater(pc.binary_length(tokens), 0).fill_null(False)
    n_before = offsets_from(is_kept.to_numpy(zero_copy_only=False))  # number of kept tokens before each token
    data, offsets = strings_of(tokens.filter(is_kept))
    policy.report.bytes_read += len(data)
    bounds = n_before[rows]
    starts = bounds[:-1][bounds[1:] > bounds[:-1]]
    return _valid_tokens(Tokens(data, offsets, starts), location, offset, policy)


def _valid_tokens(tokens: Tokens, location: str, offset: int, policy: InvalidInput) -> Tokens:
    """Return sentences with valid UTF-8; the policy repairs, skips or refuses sentences with invalid UTF-8."""
    data, offsets = tokens.data, tokens.offsets
    if (data < 0x80).all():
        return tokens
    continued = (data[offsets[:-1]] & 0xC0) == 0x80  # valid together, but not token by token
    try:
        if not continued.any():
            data.tobytes().decode()
            return tokens
        first, reason = int(offsets[continued.argmax()]), "invalid start byte"
    except UnicodeDecodeError as error:
        first, reason = error.start, error.reason
    policy.note_offence(f"{location} at byte {offset + first}", reason)
    ends = [*tokens.starts[1:], len(offsets) - 1]
    raw, sentences = data.tobytes(), []
    for start, end in zip(tokens.starts, ends, strict=True):
        words = [raw[offsets[i] : offsets[i + 1]] for i in range(start, end)]
        repaired = [word.decode(errors="replace") for word in words]
        is_valid = all(word == text.encode() for word, text in zip(words, repaired, strict=True))
        sentences.append(repaired if is_valid else policy.choose(repaired, []))
    return make_tokens(sentences)


def _largest_row(array: Any) -> int:
    """Return about how many bytes the largest row of an Arrow array of texts or lists has, at least 1 for texts."""
    if not len(array):
        return 1
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return int(pc.max(pc.binary_length(array)).as_py() or 1)
    return max(int(array.slice(row, 1).nbytes) for row in range(len(array)))
