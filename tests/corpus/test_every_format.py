"""The same rows in every format, in files of any cut: tokens are counted as plain Python counts them."""

import csv
import gzip
import json
import re
from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import feather, orc
from pyarrow import parquet as pq

from daskw2v.corpus.pieces import RawText
from tests.support.reading import read

AWKWARD = [
    "007", "7", "07.0", "NA", "null", "nan", "None", "true", "", " ", "-0", "1e5", "0x1F", "2026-11-29", "12:30",
    "9" * 20, 'say "x"', "'", "a,b;c|d", "a\tb", "two\nlines", "cr\r\nlf", "é", "日本 語", "😀", "#", "%", "=1", "\\n",
]  # fmt: skip
TEXT = st.sampled_from(AWKWARD) | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=9)
ROWS = st.lists(st.tuples(TEXT | st.none(), st.integers(0, 9)), max_size=9)
COLUMNS = st.permutations(["text", "count", "other"])


def counted(texts):
    """Count what stands between bytes up to 0x20."""
    return Counter(token for text in texts for token in re.findall(rb"[^\0- ]+", text))


def counted_in(pieces):
    """Count the tokens of pieces that were read."""
    found = Counter()
    for piece in pieces:
        bounds = () if isinstance(piece, RawText) else zip(piece.offsets, piece.offsets[1:], strict=False)
        found += (
            counted([piece.data]) if isinstance(piece, RawText) else Counter(bytes(piece.data[a:b]) for a, b in bounds)
        )
    return found


def dicts_of(rows, columns):
    values = {"text": [text for text, _ in rows], "count": [n for _, n in rows], "other": ["x,\n\"'" for _ in rows]}
    return [dict(zip(columns, row, strict=True)) for row in zip(*(values[name] for name in columns), strict=True)]


def write_text(path, rows, columns):
    path.write_bytes("".join(f"{text or ''}\n" for text, _ in rows).encode())


def write_csv(path, rows, columns, **dialect):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns, **dialect)
        writer.writeheader()
        writer.writerows(dicts_of(rows, columns))


def write_lines(path, rows, columns):
    lines = "".join(json.dumps(row, ensure_ascii=len(rows) % 2 == 0) + "\n" for row in dicts_of(rows, columns))
    path.write_bytes(gzip.compress(lines.encode()) if path.suffix == ".gz" else lines.encode())


def table_of(rows, columns):
    types = {"text": pa.string(), "count": pa.int64(), "other": pa.string()}
    return pa.Table.from_pylist(dicts_of(rows, columns), pa.schema([(name, types[name]) for name in columns]))


def write_ipc(path, rows, columns):
    table = table_of(rows, columns)
    with pa.ipc.new_file(path, table.schema) as file:
        file.write_table(table, max_chunksize=2)


WRITERS = {
    "txt": write_text,
    "csv": write_csv,
    "tsv": lambda *file: write_csv(*file, delimiter="\t", quoting=csv.QUOTE_ALL, lineterminator="\n"),
    "jsonl": write_lines,
    "jsonl.gz": write_lines,
    "parquet": lambda path, *rows: pq.write_table(table_of(*rows), path, row_group_size=2),
    "arrow": write_ipc,
    "feather": lambda path, *rows: feather.write_feather(table_of(*rows), path, chunksize=3),
    "orc": lambda path, *rows: orc.write_table(table_of(*rows), path, stripe_size=64),
}


@pytest.mark.parametrize("suffix", WRITERS)
@settings(max_examples=20)
@given(st.lists(st.tuples(ROWS, COLUMNS), min_size=1, max_size=3), st.sampled_from([1, 7, 1000]))
def test_tokens__are_counted_as_in_plain_python(tmp_path_factory, suffix, files, block_bytes):
    folder = tmp_path_factory.mktemp("files")
    for number, (rows, columns) in enumerate(files):
        WRITERS[suffix](folder / f"{number}.{suffix}", rows, columns)
    pieces, _ = read(folder, block_bytes=block_bytes)
    assert counted_in(pieces) == counted((text or "").encode() for rows, _ in files for text, _ in rows)
