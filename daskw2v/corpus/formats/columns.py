"""Columns of text, of lists of tokens and of weights of rows: how they are found, and read from Arrow's buffers.

What formats of tables share. A path such as doc.body leads to a nested column, in whatever has fields by name: objects
of JSON, types of Arrow. A weight is an integer in another column: how often a row's text counts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from daskw2v.corpus.files import Source, TextBlock, open_source
from daskw2v.corpus.formats.base import Format, cut_short
from daskw2v.corpus.invalid import InvalidInput
from daskw2v.corpus.pieces import RawText, Tokens, offsets_from, tokens_of
from daskw2v.corpus.streams import with_newlines
from daskw2v.corpus.tokenizers import Tokenizer
from daskw2v.errors import InputError
from daskw2v.extras import Extra
from daskw2v.types import Int64Array

pa, pc = Extra("pyarrow", "arrow"), Extra("pyarrow.compute", "arrow")

BATCH = 1 << 20  # bytes of a column decoded at once
ROWS = 1 << 12  # most rows decoded at once, whatever sizes the file declares
MOST_WEIGHT = 1 << 20  # of a row
_REPEATED_ROWS, _REPEATED_BYTES = 1 << 12, 1 << 20  # of repeated rows that are made at once, at most, about
_WEIGHT_RULE = f"A weight is an integer in 0..{MOST_WEIGHT:,}: the times that the row counts."


@contextmanager
def reading_as(title: str, url: str) -> Iterator[None]:
    """Turn errors of Arrow on damaged files, including names that are not UTF-8, into an InputError."""
    try:
        yield
    except MemoryError as error:
        raise InputError(
            f"{url} has a part that does not fit into memory, or is damaged and declares one ({title}).",
            "Write the file again with smaller row groups, record batches or stripes, or leave it out.",
        ) from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{url} cannot be read as {title} ({error}).", "Write the file again, or leave it out."
        ) from error


def cut_evenly(source: Source, parts: int, block_bytes: int) -> list[TextBlock]:
    """Divide a file whose parts, of unknown sizes, are taken to be equal into blocks of about `block_bytes`."""
    step = max(1, parts * block_bytes // source.size)
    return [TextBlock(source, at, min(at + step, parts)) for at in range(0, parts, step)]


class TextColumns(NamedTuple):
    """The columns of a table that hold its text and the weights of its rows.

    Parameters
    ----------
    paths
        Of the column of text, and of the column of weights, if there is one: the names that lead to a column, from the
        name of a column of the file on.
    url, remedy
        The file, and the remedy if the columns hold no text.
    """

    paths: list[list[str]]
    url: str
    remedy: str

    @property
    def names(self) -> list[str]:
        """Paths of the columns, joined by dots."""
        return list(map(".".join, self.paths))

    @property
    def roots(self) -> list[str]:
        """Names of the file's own columns that hold them."""
        return list(dict.fromkeys(path[0] for path in self.paths))

    def arrays(self, batches: Iterable[Any], of: Callable[[Any, list[str]], Any]) -> Iterator[Any]:
        """Yield the text of record batches, in parts that are decoded at once, each row as often as it counts.

        `of` returns the column of a batch that a path leads to. The parts are as `plain` makes them.
        """
        for batch in batches:
            text, *weights = (of(batch, path) for path in self.paths)
            counts, start = [weights_of(array, self.names[1], self.url) for array in weights], 0
            for part in in_slices([_decodable(text)]):
                array = plain(part, self.names[0], self.url, self.remedy)
                yield from repeated(array, counts[0][start : start + len(part)]) if counts else [array]
                start += len(part)


def find_columns(schema: Any, column: str, weight: str | None, url: str) -> TextColumns:
    """Find the columns of text and of weights by their names or paths.

    Raises
    ------
    InputError
        If one is missing, or is there more than once; or the column of text has another type.
    """
    weights = [] if weight is None else [_find(schema, weight, url)[0]]
    path, kind = _find(schema, column, url)
    remedy = _remedy(_kinds(pa.struct(list(schema))))
    if is_text(kind) or pa.types.is_primitive(kind):  # which may hold nulls alone, as `plain` sees
        return TextColumns([path, *weights], url, remedy)
    raise _no_text(column, url, kind, remedy)


Suffixes = tuple[str, ...]
CutTable = Callable[[Any, Source, int], list[TextBlock]]
OpenTable = Callable[[Any, TextBlock], tuple[Any, Callable[[TextColumns], Iterable[Any]]]]
ColumnOf = Callable[[Any, list[str]], Any]


def table_format(
    name: str, title: str, suffixes: Suffixes, unit: str, cut: CutTable, open: OpenTable, of: ColumnOf, **own: Any
) -> Format:
    """Return the format of files of tables, of whose columns Arrow reads a few.

    Parameters
    ----------
    name, title, suffixes, own
        As of `Format`.
    unit
        What blocks are made of, for messages.
    cut
        Divides an open file that is not empty into blocks of about so many bytes.
    open
        Returns the schema of an open file, and a function that yields the record batches of a block, with the columns
        of text and of weights.
    of
        Returns the column of a batch that a path leads to: `column_of` or `checked`.
    """

    def cut_file(source: Source, block_bytes: int, options: Mapping[str, Any], timeout: float) -> list[TextBlock]:
        if not source.size:
            raise cut_short(source, title)
        with open_source(source, options, timeout) as file, reading_as(title, source.url):
            return cut(file, source, block_bytes)

    def read(
        file: Any, block: TextBlock, column: str, policy: InvalidInput, tokenizer: Tokenizer, weight: str | None = None
    ) -> Iterator[RawText | Tokens]:
        url = block.source.url
        with reading_as(title, url):
            schema, batches = open(file, block)
            columns = find_columns(schema, column, weight, url)
            place = f"{url}, column {column!r} from {unit} {block.start} on,"
            yield from read_arrays(columns.arrays(batches(columns), of), place, policy, tokenizer)

    own |= {"compressible": False, "honours": ("column", "weight"), "requires": ("pyarrow", "arrow")}
    return Format(name=name, title=title, suffixes=suffixes, cut=cut_file, read=read, **own)


class NoFieldError(Exception):
    """A path that leads nowhere.

    Parameters
    ----------
    present
        The fields where it ends, by their own paths.
    """

    def __init__(self, present: Mapping[str, object]) -> None:
        super().__init__(present)
        self.present = present


def find_field(path: str, root: Any, fields_of: Callable[[Any], Mapping[str, Any]]) -> tuple[list[str], Any]:
    """Return the names that lead to a nested field, and the field.

    A name may have dots itself. The longest name that fits is taken, so a field called "doc.body" comes before the
    field "body" of "doc".

    Parameters
    ----------
    path
        Names, joined by dots.
    root
        The object that has the first of them.
    fields_of
        Returns the fields of an object by name; none if it has no fields.

    Raises
    ------
    NoFieldError
        If there is no such field.
    """
    names, rest, fields = list[str](), path, fields_of(root)
    while rest not in fields:
        heads = (rest[:at] for at in reversed(range(len(rest))) if rest[at] == ".")
        head = next((head for head in heads if head in fields and fields_of(fields[head])), None)
        if head is None:
            raise NoFieldError({".".join([*names, name]): field for name, field in fields.items()})
        names.append(head)
        rest, fields = rest[len(head) + 1 :], fields_of(fields[head])
    return [*names, rest], fields[rest]


def _find(schema: Any, column: str, url: str) -> tuple[list[str], Any]:
    """Return the names that lead to a column, and its type."""
    root = kind = pa.struct(list(schema))
    try:
        path, _ = find_field(column, root, _kinds)
    except NoFieldError as error:
        raise InputError(f"{url} has no column {column!r}.", _remedy(error.present)) from None
    for name in path:
        if (n := len(kind.get_all_field_indices(name))) > 1:
            raise InputError(f"{url} has {n} columns {column!r}.", _remedy(_kinds(root)))
        kind = kind.field(name).type
    return path, kind


def rows_at_once(size: int, rows: int) -> int:
    """Return how many rows are decoded at once, of rows of a size together; few, as repeated rows take little space."""
    return min(max(1, rows * BATCH // max(size, BATCH)), ROWS)


def in_slices(arrays: Iterable[Any]) -> Iterator[Any]:
    """Divide arrays into slices that are decoded at once."""
    for array in arrays:
        step = rows_at_once(array.nbytes, len(array))
        yield from (array.slice(start, step) for start in range(0, len(array), step))


def plain(array: Any, column: str, url: str, remedy: str) -> Any:
    """Return text as `large_string`, and lists of tokens as `large_list` of that, whatever types hold them.

    A column of any type that holds nulls alone is a column of text.

    Raises
    ------
    InputError
        If it holds neither.
    """
    kind = array.type
    if not is_text(kind):
        if array.null_count < len(array):
            raise _no_text(column, url, kind, remedy)
        return pa.nulls(len(array), pa.large_string())
    return lists_of(array) if is_list(kind) else strings_in(array)


def lists_of(array: Any) -> Any:
    """Return lists of texts, integers or nulls as `large_list` of `large_string`; null lists are empty."""
    offsets = offsets_from(pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False))
    # Not cast: Arrow casts slices of list_view to other values
    return pa.LargeListArray.from_arrays(pa.array(offsets), strings_in(array.flatten()))


def strings_in(array: Any) -> Any:
    """Return texts, categories of texts, integers or nulls as `large_string`."""
    return _decodable(array).cast(pa.large_string())


def is_weight(value: Any) -> bool:
    """Tell whether a value counts a row; true and false do not."""
    return type(value) is int and 0 <= value <= MOST_WEIGHT


def weights_of(array: Any, column: str, place: str) -> Int64Array:
    """Return a column of weights, shape (n,) int64; null, and an empty field of CSV, is 0.

    Raises
    ------
    InputError
        If one is no integer, or out of range.
    """
    kind = array.type
    if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_null(kind)):
        raise InputError(f"{column!r} of {place} is of type {kind}.", _WEIGHT_RULE)
    if pa.types.is_string(kind):  # of CSV
        array = pc.if_else(pc.equal(array, ""), pa.scalar(None, kind), array)
    try:
        values: Int64Array = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    except pa.ArrowInvalid as error:
        raise InputError(f"{column!r} of {place} holds what is no weight ({error}).", _WEIGHT_RULE) from None
    wrong = np.flatnonzero((values < 0) | (values > MOST_WEIGHT))
    if len(wrong):
        raise InputError(f"{column!r} of {place} is {values[wrong[0]]}, which is no weight.", _WEIGHT_RULE)
    return values


def repeated(array: Any, weights: Int64Array) -> Iterator[Any]:
    """Yield an array whose rows stand as often as their weights say, in parts of bounded size."""
    ends = np.cumsum(weights)
    step = max(1, min(_REPEATED_ROWS, _REPEATED_BYTES // _largest(array)))
    for start in range(0, int(ends[-1]) if len(ends) else 0, step):
        numbers = np.arange(start, min(start + step, int(ends[-1])))
        yield array.take(pa.array(np.searchsorted(ends, numbers, side="right")))


def _decodable(array: Any) -> Any:
    """Return an array, with `large_string` in place of categories of `string_view`, which Arrow cannot decode."""
    if pa.types.is_dictionary(array.type) and array.type.value_type == pa.string_view():
        return pa.DictionaryArray.from_arrays(array.indices, array.dictionary.cast(pa.large_string()))
    return array


def _no_text(column: str, url: str, kind: Any, remedy: str) -> InputError:
    return InputError(
        f"Column {column!r} of {url} is of type {kind}; it must be strings, or lists of strings or integers.", remedy
    )


def column_of(batch: Any, path: list[str]) -> Any:
    """Return the column of a record batch that a path leads to, null where a struct around it is."""
    return reduce(_field, path[1:], batch.column(batch.schema.get_field_index(path[0])))


def checked(batch: Any, path: list[str]) -> Any:
    """Return a column of a record batch whose buffers come from a file: offsets out of range would end the process.

    Raises
    ------
    pyarrow.ArrowInvalid
        If buffers are too short, or offsets are out of range. Text may be invalid UTF-8.
    """
    batch.validate()
    array = column_of(batch, path)
    array.view(_as_bytes(array.type)).validate(full=True)
    return array


def read_arrays(
    arrays: Iterable[Any], place: str, policy: InvalidInput, tokenizer: Tokenizer
) -> Iterator[RawText | Tokens]:
    """Read a column of text, whose lines are sentences, or a column of lists, each of which is a sentence.

    Nulls, in the column or in its lists, and empty tokens are skipped.

    Parameters
    ----------
    arrays
        The column, in parts of bounded size, as `plain` makes them.
    place
        Where it begins, for messages.
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
            piece: RawText | Tokens = _sentences(array, place, offset, policy)
        else:
            piece = _text(array, place, offset, policy, tokenizer)
        if isinstance(piece, RawText) or len(piece.starts):
            yield piece


def _field(array: Any, name: str) -> Any:
    return pc.struct_field(array, [array.type.get_field_index(name)])


def _kinds(kind: Any) -> dict[str, Any]:
    """Return the types of a struct's fields by name."""
    fields = [kind.field(i) for i in range(kind.num_fields)] if pa.types.is_struct(kind) else []
    return {field.name: field.type for field in fields}


def _remedy(present: Mapping[str, Any]) -> str:
    columns = ", ".join(f"{name} ({kind})" for name, kind in present.items())
    return f"Give column; the columns are: {columns or 'none'}."


def is_text(kind: Any) -> bool:
    """Tell whether a type is text, or lists of tokens, or holds nulls alone."""
    value = kind.value_type if is_list(kind) else kind
    is_number = is_list(kind) and pa.types.is_integer(value)
    return is_string(value) or is_number or pa.types.is_null(value)


def is_string(kind: Any) -> bool:
    """Tell whether a type is text, also in categories."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return kind in (pa.string(), pa.large_string(), pa.string_view())


def _as_bytes(kind: Any) -> Any:
    """Return a type whose buffers are the same, with bytes in place of text."""
    if pa.types.is_dictionary(kind):
        return pa.dictionary(kind.index_type, _as_bytes(kind.value_type))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_as_bytes(kind.value_type), kind.list_size)
    for is_kind, lists in _lists().items():
        if is_kind(kind):
            return lists(_as_bytes(kind.value_type))
    texts = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}
    return texts.get(kind, kind)


def is_list(kind: Any) -> bool:
    """Tell whether a type is lists that are read."""
    return pa.types.is_fixed_size_list(kind) or any(is_kind(kind) for is_kind in _lists())


def _lists() -> dict[Callable[[Any], bool], Callable[[Any], Any]]:
    """Return the tests for types of lists of any length, and functions that make such a type of a type of values."""
    return {
        pa.types.is_list: pa.list_,
        pa.types.is_large_list: pa.large_list,
        pa.types.is_list_view: pa.list_view,
        pa.types.is_large_list_view: pa.large_list_view,
    }


def strings_of(array: Any) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the bytes (n,) and offsets (t+1,) of a large_string array, without copying the bytes."""
    _, offsets_buffer, data_buffer = array.buffers()
    offsets = np.zeros(1, np.int64)
    if len(array):
        offsets = np.frombuffer(offsets_buffer, np.int64, len(array) + 1, array.offset * 8)
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.frombuffer(data_buffer or b"", np.uint8)  # there is no buffer without bytes
    return data[first:last], offsets - first


def _text(array: Any, place: str, offset: int, policy: InvalidInput, tokenizer: Tokenizer) -> RawText | Tokens:
    strings = array.fill_null("")
    empty, newline = (pa.scalar(text, pa.large_string()) for text in ("", "\n"))
    data = with_newlines(strings_of(pc.binary_join_element_wise(strings, empty, newline))[0].tobytes())
    policy.report.count_lines(data)
    policy.report.bytes_read += len(data)
    return tokenizer(policy.valid_utf8(data, place, offset))


def _sentences(array: Any, place: str, offset: int, policy: InvalidInput) -> Tokens:
    policy.report.lines += len(array)
    rows = offsets_from(pc.list_value_length(array).fill_null(0).to_numpy())  # index of the first token of each row
    tokens = array.flatten()
    keep = pc.greater(pc.binary_length(tokens), 0).fill_null(False)
    kept = offsets_from(keep.to_numpy(zero_copy_only=False))  # number of kept tokens before each
    data, offsets = strings_of(tokens.filter(keep))
    policy.report.bytes_read += len(data)
    bounds = kept[rows]
    starts = bounds[:-1][bounds[1:] > bounds[:-1]]
    return _valid(Tokens(data, offsets, starts), place, offset, policy)


def _valid(tokens: Tokens, place: str, offset: int, policy: InvalidInput) -> Tokens:
    """Return the sentences as valid UTF-8; the policy treats each as a line."""
    data, offsets = tokens.data, tokens.offsets
    if (data < 0x80).all():
        return tokens
    continued = (data[offsets[:-1]] & 0xC0) == 0x80  # valid together, but not token by token
    try:
        if not continued.any():
            data.tobytes().decode()
            return tokens
        at, reason = int(offsets[continued.argmax()]), "invalid start byte"
    except UnicodeDecodeError as error:
        at, reason = error.start, error.reason
    policy.offence(f"{place} at byte {offset + at}", reason)
    ends = [*tokens.starts[1:], len(offsets) - 1]
    raw, sentences = data.tobytes(), []
    for start, end in zip(tokens.starts, ends, strict=True):
        words = [raw[offsets[i] : offsets[i + 1]] for i in range(start, end)]
        repaired = [word.decode(errors="replace") for word in words]
        is_valid = all(word == text.encode() for word, text in zip(words, repaired, strict=True))
        sentences.append(repaired if is_valid else policy.either(repaired, []))
    return tokens_of(sentences)


def _largest(array: Any) -> int:
    """Return about how many bytes the largest row of text, or of a list, takes."""
    if not len(array):
        return 1
    if pa.types.is_string(array.type) or pa.types.is_large_string(array.type):
        return int(pc.max(pc.binary_length(array)).as_py() or 1)
    return max(int(array.slice(row, 1).nbytes) for row in range(len(array)))
