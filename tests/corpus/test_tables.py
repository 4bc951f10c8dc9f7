"""Tables in Parquet, Arrow IPC and ORC: the same tokens from the same rows, whatever the blocks."""

from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.orc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.collections.parts import tables_of
from daskw2v.corpus import formats
from daskw2v.corpus.files import open_source
from daskw2v.corpus.formats import columns
from daskw2v.corpus.sources import find_sources, plan_blocks
from daskw2v.errors import InputError
from tests.support.reading import read, sentences


def parquet(path, table, rows):
    pq.write_table(table, path / "a.parquet", row_group_size=rows)
    return path / "a.parquet"


def arrow(path, table, rows):
    pa.feather.write_feather(table, path / "a.feather", chunksize=rows)
    return path / "a.feather"


def stream(path, table, rows):
    with pa.ipc.new_stream(path / "a.arrows", table.schema) as writer:
        writer.write_table(table, max_chunksize=rows)
    return path / "a.arrows"


def orc(path, table, rows):
    pa.orc.write_table(table, path / "a.orc", stripe_size=rows, batch_size=rows)
    return path / "a.orc"


ALL = [parquet, arrow, stream, orc]
WRITE = pytest.mark.parametrize("write", ALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


def table(array):
    return pa.table({"other": pa.array([0] * len(array), pa.int64()), "text": array})


def written(write, folder, array, rows=3):
    return write(folder, table(array), rows)


@pytest.mark.slow
@given(st.lists(st.none() | st.text("ab é\n日", max_size=6), max_size=9), st.integers(1, 4), st.integers(1, 5000))
def test_strings__have_lines_as_sentences_in_every_format(folder, texts, rows, block_bytes):
    lines = "\n".join(text or "" for text in texts).split("\n")
    for write in ALL:
        path = written(write, folder, pa.array(texts, pa.string()), rows)
        pieces, report = read(path, block_bytes=block_bytes)
        assert sentences(pieces) == [line.split() for line in lines if line.split()]
        assert all(piece.data.endswith(b"\n") for piece in pieces)
        assert report.lines == (len(lines) if texts else 0)


@given(
    st.lists(st.none() | st.lists(st.none() | st.text("a é\n", max_size=3), max_size=4), max_size=9),
    st.integers(1, 4),
    st.integers(1, 5000),
)
def test_lists__are_sentences_of_tokens_in_every_format(folder, values, rows, block_bytes):
    kept = [[token for token in row or [] if token] for row in values]
    for write in ALL:
        path = written(write, folder, pa.array(values, pa.list_(pa.string())), rows)
        pieces, report = read(path, tokenizer="normalize", block_bytes=block_bytes)
        assert sentences(pieces) == [row for row in kept if row]
        assert (report.lines, report.bytes_read) == (len(values), sum(len(t.encode()) for row in kept for t in row))


ARROW = pytest.mark.parametrize("write", [arrow, stream])


TEXTS = pa.array(["one two", None, "", "a text longer than a view holds"])
OF_ALL_TYPES = [
    TEXTS.cast(pa.large_string()),
    TEXTS.cast(pa.string_view()),
    TEXTS.dictionary_encode(),
    # As polars writes its categories
    pa.DictionaryArray.from_arrays(
        pa.array([1, None, 0, 2], pa.uint32()), pa.array(["", *TEXTS[::3].to_pylist()], pa.string_view())
    ),
]


@ARROW
@pytest.mark.parametrize("array", OF_ALL_TYPES, ids=lambda array: str(array.type))
def test_arrow__has_text_of_every_type(tmp_path, write, array, monkeypatch):
    monkeypatch.setattr(columns, "ROWS", 2)  # arrays are sliced
    expected = [["one", "two"], ["a", "text", "longer", "than", "a", "view", "holds"]]
    assert sentences(read(written(write, tmp_path, array))[0]) == expected
    assert [text for part in tables_of(array, "text") for text in part["text"].to_pylist()] == [
        "one two",
        "",
        "",
        "a text longer than a view holds",
    ]
    for lists in (
        pa.ListArray.from_arrays([0, 2, 2, 3, 4], array),
        pa.ListViewArray.from_arrays(pa.array([0, 3, 2, 3], pa.int32()), pa.array([2, 0, 1, 1], pa.int32()), array),
    ):
        tokens = [["one two"], ["a text longer than a view holds"]]
        assert sentences(read(written(write, tmp_path, lists, rows=4))[0]) == tokens
        kept = [text for part in tables_of(lists, "text") for text in part["text"].to_pylist()]
        assert kept == [["one two", None], [], [""], tokens[1]]


NO_TEXT = [pa.nulls(2), pa.array([None, None], pa.float64()), pa.array([[], None], pa.list_(pa.null()))]


@pytest.mark.parametrize("write", [parquet, arrow, stream])  # ORC has no type of nulls
@pytest.mark.parametrize("array", NO_TEXT, ids=lambda array: str(array.type))
def test_column__without_values_is_no_text(tmp_path, write, array):
    """As pandas writes a column in which a part of a table has no value."""
    assert sentences(read(written(write, tmp_path, array))[0]) == []
    assert not any(text for part in tables_of(array, "text") for text in part["text"].to_pylist())


@ARROW
@pytest.mark.parametrize(
    "kind",
    [pa.list_(pa.int64(), 2), pa.large_list(pa.uint8()), pa.list_view(pa.int64()), pa.large_list_view(pa.int8())],
    ids=str,
)
def test_arrow__has_lists_of_integers_of_every_type(tmp_path, write, kind):
    assert sentences(read(written(write, tmp_path, pa.array([[1, 2], [3, 4]], kind)))[0]) == [["1", "2"], ["3", "4"]]


@pytest.mark.parametrize("compression", ["lz4", "zstd", "uncompressed"])
def test_arrow__of_polars_is_read(tmp_path, compression):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"text": ["one two", None, "a text longer than a view holds"], "n": [1, 2, 3]})
    frame.write_ipc(tmp_path / "a.arrow", compression=compression)
    frame.write_ipc_stream(tmp_path / "b.arrow", compression=compression)
    expected = [["one", "two"], ["a", "text", "longer", "than", "a", "view", "holds"]]
    assert [sentences(read(tmp_path / name)[0]) for name in ("a.arrow", "b.arrow")] == [expected] * 2


def test_arrow__has_record_batches_as_blocks(tmp_path):
    path = written(arrow, tmp_path, pa.array(["a word"] * 1000), 100)
    spans = [(block.start, block.stop) for block in plan_blocks(find_sources(path), path.stat().st_size // 4)]
    assert spans == [(0, 2), (2, 4), (4, 6), (6, 8), (8, 10)]
    assert len(plan_blocks(find_sources(path), 1)) == 10
    assert len(plan_blocks(find_sources(written(stream, tmp_path, pa.array(["a"] * 1000), 100)), 1)) == 1


def test_orc__has_stripes_as_blocks(tmp_path):
    texts = [f"{i:0200x}" for i in range(5000)]
    pa.orc.write_table(pa.table({"text": texts}), tmp_path / "a.orc", stripe_size=1 << 16, batch_size=64)
    part = plan_blocks(find_sources(tmp_path / "a.orc"), 1)
    assert len(part) == pa.orc.ORCFile(tmp_path / "a.orc").nstripes > 2
    assert sentences(read(tmp_path / "a.orc")[0]) == [[text] for text in texts]


@pytest.mark.parametrize("write", [arrow, stream, orc])
def test_strings__are_decoded_in_slices(tmp_path, write, monkeypatch):
    monkeypatch.setattr(columns, "BATCH", 1000)
    texts = [f"{i:09d}" for i in range(1000)]
    pieces, report = read(written(write, tmp_path, pa.array(texts), 500), block_bytes=1 << 20)
    assert sentences(pieces) == [[text] for text in texts]
    assert max(len(piece.data) for piece in pieces) < 3000
    assert report.bytes_read == 10_000


@WRITE
def test_column__must_be_there_and_of_text(tmp_path, write):
    path = written(write, tmp_path, pa.array(["a"]))
    with pytest.raises(InputError, match=r"no column 'body'.*other \(int64\), text \(string\)"):
        read(path, column="body")
    with pytest.raises(InputError, match=r"Column 'other' of .* is of type int64"):
        read(path, column="other")


def raw(values):
    """Strings that nobody checked."""
    binary = pa.array(values, pa.binary())
    return pa.StringArray.from_buffers(len(values), binary.buffers()[1], binary.buffers()[2])


@WRITE
def test_text__that_is_no_utf8_is_repaired_dropped_or_refused(tmp_path, write):
    path = written(write, tmp_path, raw([b"one", b"tw\xffo", b"three"]))
    with pytest.raises(InputError, match=r"column 'text' from .* 0 on, at byte 6: invalid start byte"):
        read(path)
    pieces, report = read(path, errors="replace")
    assert (sentences(pieces), report.replaced) == ([["one"], ["tw\ufffdo"], ["three"]], 1)
    pieces, report = read(path, errors="skip")
    assert (sentences(pieces), report.skipped) == ([["one"], ["three"]], 1)


@pytest.mark.parametrize(("write", "title"), [(arrow, "Arrow IPC"), (orc, "ORC")])
def test_file__that_is_cut_or_of_another_kind_is_refused(tmp_path, write, title):
    path = written(write, tmp_path, pa.array(["some text"] * 100), 10)
    for content in (path.read_bytes()[:-9], b"nothing of the kind"):
        path.write_bytes(content)
        with pytest.raises(InputError, match=f"cannot be read as {title}"):
            read(path)
    path.write_bytes(b"")
    with pytest.raises(InputError, match=f"it is empty, which no {title} file is"):
        read(path)


def test_stream__that_is_cut_is_refused(tmp_path):
    path = written(stream, tmp_path, pa.array(["some text"] * 100), 10)
    path.write_bytes(path.read_bytes()[:-500])
    with pytest.raises(InputError, match="cannot be read as Arrow IPC"):
        read(path)


def test_arrow__with_offsets_out_of_range_is_refused(tmp_path):
    offsets = pa.py_buffer(np.array([0, 2**31 - 1, 3], np.int32))
    path = written(stream, tmp_path, pa.StringArray.from_buffers(2, offsets, pa.py_buffer(b"one")))
    with pytest.raises(InputError, match=r"cannot be read as Arrow IPC \(.*offset"):
        read(path)


def test_arrow__of_a_size_beyond_memory_is_refused(tmp_path):
    path = written(stream, tmp_path, pa.array(["one"]))
    path.write_bytes(b"\xff\xff\xff\xff\xff\xff\xff\x7f" + path.read_bytes()[8:])
    with pytest.raises(InputError, match="Arrow IPC"):
        read(path)


def test_feather__of_version_1_is_refused(tmp_path):
    (tmp_path / "a.feather").write_bytes(b"FEA1" + bytes(100))
    with pytest.raises(InputError, match=r"a\.feather is Feather of version 1.*version 2"):
        read(tmp_path / "a.feather")


@pytest.mark.parametrize("name", ["a.arrow.gz", "a.feather.zst", "a.orc.gz"])
def test_table__is_refused_compressed_as_a_whole(tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(InputError, match="is not read compressed"):
        find_sources(tmp_path / name)


class Counting:
    """A file that counts the bytes read of it."""

    def __init__(self, file):
        self.file, self.bytes = file, 0

    def read(self, size=-1):
        data = self.file.read(size)
        self.bytes += len(data)
        return data

    def __getattr__(self, name):
        return getattr(self.file, name)


def test_arrow__reads_no_more_than_its_column(tmp_path, monkeypatch):
    wide = pa.table({"text": ["one two"], "wide": [b"x" * (16 << 20)]})
    with pa.ipc.new_file(tmp_path / "a.arrow", wide.schema) as writer:
        writer.write_table(wide)
    opened = []

    @contextmanager
    def counted(*given):
        with open_source(*given) as file:
            opened.append(Counting(file))
            yield opened[-1]

    monkeypatch.setattr(formats, "open_source", counted)
    assert sentences(read(tmp_path / "a.arrow")[0]) == [["one", "two"]]
    assert 0 < sum(file.bytes for file in opened) < 1 << 20
