"""Parquet: blocks are row groups, read directly from Arrow's buffers."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from daskw2v.corpus.files import Source, TextBlock, open_source
from daskw2v.corpus.formats.base import Format, cut_short
from daskw2v.corpus.invalid import InvalidInput
from daskw2v.corpus.pieces import RawText, Tokens, tokens_of
from daskw2v.corpus.tokenizers import Tokenizer
from daskw2v.errors import InputError
from daskw2v.extras import Extra

pa, pc, pq = Extra("pyarrow", "arrow"), Extra("pyarrow.compute", "arrow"), Extra("pyarrow.parquet", "arrow")

_BATCH = 1 << 20  # bytes of a column decoded at once
_ROWS = 1 << 12  # most rows decoded at once, whatever sizes the file declares


@contextmanager
def reading_parquet(url: str) -> Iterator[None]:
    """Turn errors of Arrow on damaged files, including names that are not UTF-8, into an InputError."""
    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{url} cannot be read as Parquet ({error}).", "Write the file again, or leave it out."
        ) from error


def _cut(source: Source, block_bytes: int, storage_options: Mapping[str, Any], timeout: float) -> list[TextBlock]:
    """Combine row groups until they have `block_bytes`, uncompressed and with all columns.

    The bytes of a single column are not read, because damaged metadata of a column makes Arrow end the process.
    """
    if not source.size:
        raise cut_short(source, "Parquet")
    blocks, start, held = [], 0, 0
    sizes = _row_groups(source, storage_options, timeout)
    for stop, group_bytes in enumerate(sizes, 1):
        held += group_bytes
        if held >= block_bytes or stop == len(sizes):
            blocks.append(TextBlock(source, start, stop))
            start, held = stop, 0
    return blocks


def _row_groups(source: Source, storage_options: Mapping[str, Any], timeout: float) -> list[int]:
    with open_source(source, storage_options, timeout) as file, reading_parquet(source.url):
        metadata = pq.ParquetFile(file).metadata
        return [metadata.row_group(g).total_byte_size for g in range(metadata.num_row_groups)]


def _read(
    file: Any, block: TextBlock, column: str, policy: InvalidInput, tokenizer: Tokenizer
) -> Iterator[RawText | Tokens]:
    """Read a column of text, whose lines are sentences, or a column of lists, each of which is a sentence.

    Nulls, in the column or in its lists, and empty tokens are skipped.

    Raises
    ------
    InputError
        If the file is damaged, or the column is missing, has another type or is invalid in strict mode.
    """
    url = block.source.url
    with reading_parquet(url):
        parquet = pq.ParquetFile(file, buffer_size=_BATCH)
        is_list = _holds_lists(parquet.schema_arrow, column, url)
        rows = _batch_rows(parquet.metadata, block)
        place = f"{url}, column {column!r} from row group {block.start} on,"
        before = policy.report.bytes_read
        for batch in parquet.iter_batches(rows, range(block.start, block.stop), columns=[column]):
            array, offset = batch.column(0), policy.report.bytes_read - before
            piece = (
                _sentences(array, place, offset, policy) if is_list else _text(array, place, offset, policy, tokenizer)
            )
            if isinstance(piece, RawText) or len(piece.starts):
                yield piece


def _holds_lists(schema: Any, column: str, url: str) -> bool:
    present = ", ".join(f"{field.name} ({field.type})" for field in schema) or "none"
    matches = schema.get_all_field_indices(column)
    if len(matches) != 1:
        found = f"{len(matches)} columns" if matches else "no column"
        raise InputError(f"{url} has {found} {column!r}.", f"Give column; the columns are: {present}.")
    kind = schema.field(matches[0]).type
    if _is_string(kind):
        return False
    is_list = pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)
    if is_list and (_is_string(kind.value_type) or pa.types.is_integer(kind.value_type)):
        return True
    raise InputError(
        f"Column {column!r} of {url} is of type {kind}; it must be strings, or lists of strings or integers.",
        f"Give column; the columns are: {present}.",
    )


def _is_string(kind: Any) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _batch_rows(metadata: Any, block: TextBlock) -> int:
    """Return the number of rows of a batch; it is limited, since repeated rows take little space in the file."""
    groups = [metadata.row_group(g) for g in range(block.start, block.stop)]
    size: int = sum(group.total_byte_size for group in groups)
    rows: int = sum(group.num_rows for group in groups)
    return min(max(1, rows * _BATCH // max(size, _BATCH)), _ROWS)


def _strings(array: Any) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the bytes (n,) and offsets (t+1,) of a large_string array, without copying the bytes."""
    _, offsets_buffer, data_buffer = array.buffers()
    offsets = np.zeros(1, np.int64)
    if len(array):
        offsets = np.frombuffer(offsets_buffer, np.int64, len(array) + 1, array.offset * 8)
    first, last = int(offsets[0]), int(offsets[-1])
    data = np.frombuffer(data_buffer or b"", np.uint8)  # there is no buffer without bytes
    return data[first:last], offsets - first


def _text(array: Any, place: str, offset: int, policy: InvalidInput, tokenizer: Tokenizer) -> RawText | Tokens:
    strings = array.cast(pa.large_string()).fill_null("")
    empty, newline = (pa.scalar(text, pa.large_string()) for text in ("", "\n"))
    data = _strings(pc.binary_join_element_wise(strings, empty, newline))[0].tobytes()
    policy.report.count_lines(data)
    policy.report.bytes_read += len(data)
    return tokenizer(policy.utf8(data, place, offset))


def _sentences(array: Any, place: str, offset: int, policy: InvalidInput) -> Tokens:
    policy.report.lines += len(array)
    lists = array.cast(pa.large_list(pa.large_string()))
    rows = np.zeros(len(lists) + 1, np.int64)  # index of the first token of each row
    np.cumsum(pc.list_value_length(lists).fill_null(0).to_numpy(), out=rows[1:])
    tokens = lists.flatten()
    keep = pc.greater(pc.binary_length(tokens), 0).fill_null(False)
    kept = np.zeros(len(tokens) + 1, np.int64)  # number of kept tokens before each
    np.cumsum(keep.to_numpy(zero_copy_only=False), out=kept[1:])
    data, offsets = _strings(tokens.filter(keep))
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
    raw = data.tobytes()
    sentences = []
    for start, end in zip(tokens.starts, ends, strict=True):
        words = [raw[offsets[i] : offsets[i + 1]] for i in range(start, end)]
        repaired = [word.decode(errors="replace") for word in words]
        if any(word != text.encode() for word, text in zip(words, repaired, strict=True)):
            if policy.errors == "skip":
                policy.report.skipped += 1
                continue
            policy.report.replaced += 1
        sentences.append(repaired)
    return tokens_of(sentences)


PARQUET = Format(
    name="parquet",
    title="Parquet",
    suffixes=(".parquet", ".pq"),
    cut=_cut,
    read=_read,
    expansion=2.0,
    compressible=False,
    requires=("pyarrow", "arrow"),
)
