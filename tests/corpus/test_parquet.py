import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.corpus.formats import columns
from daskw2v.errors import InputError
from tests.support.reading import read, sentences


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("parquet") / "a.parquet"


def write(path, array, rows=3):
    pq.write_table(pa.table({"other": pa.nulls(len(array)), "text": array}), path, row_group_size=rows)


STRINGS = [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]


@given(st.lists(st.none() | st.text("ab é\n日", max_size=6), max_size=9), st.sampled_from(STRINGS))
def test_strings__have_lines_as_sentences(path, texts, kind):
    write(path, pa.array(texts, pa.string()).cast(kind))
    pieces, report = read(path)
    lines = "\n".join(text or "" for text in texts).split("\n")
    assert sentences(pieces) == [line.split() for line in lines if line.split()]
    assert all(piece.data.endswith(b"\n") for piece in pieces)
    assert report.lines == (len(lines) if texts else 0)


LISTS = [pa.list_(pa.string()), pa.large_list(pa.string()), pa.large_list(pa.large_string())]


@given(
    st.lists(st.none() | st.lists(st.none() | st.text("a é\n", max_size=3), max_size=4), max_size=9),
    st.sampled_from(LISTS),
)
def test_lists__are_sentences_of_tokens_as_they_are(path, rows, kind):
    write(path, pa.array(rows, kind))
    pieces, report = read(path, tokenizer="normalize")
    kept = [[token for token in row or [] if token] for row in rows]
    assert sentences(pieces) == [row for row in kept if row]
    assert (report.lines, report.bytes_read) == (len(rows), sum(len(t.encode()) for row in kept for t in row))
    for piece in pieces:
        assert (piece.data.dtype, piece.offsets.dtype, piece.starts.dtype) == (np.uint8, np.int64, np.int64)


@pytest.mark.parametrize("kind", [pa.int8(), pa.int32(), pa.int64(), pa.uint64()])
def test_lists__of_integers_become_decimals(path, kind):
    write(path, pa.array([[1, 20, None], [], None, [103 if kind != pa.int8() else 7]], pa.list_(kind)))
    assert sentences(read(path)[0])[0] == ["1", "20"]
    assert len(sentences(read(path)[0])) == 2


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (pa.list_(pa.int64()), [-(2**63), -1, 0, 2**63 - 1]),
        (pa.large_list(pa.int64()), [-5, 7]),
        (pa.list_(pa.uint64()), [0, 2**64 - 1]),
        (pa.list_(pa.int8()), [-128, 127]),
    ],
)
def test_lists__of_integers_keep_sign_and_size(path, kind, values):
    write(path, pa.array([values, values[::-1]], kind))
    words = [str(value) for value in values]
    assert sentences(read(path, tokenizer="normalize")[0]) == [words, words[::-1]]


@pytest.mark.parametrize("kind", [pa.list_(pa.int64(), 2), pa.list_(pa.dictionary(pa.int32(), pa.string()))])
def test_lists__may_be_of_fixed_size_or_of_dictionaries(path, kind):
    values = [[1, 2], [3, 4]] if pa.types.is_fixed_size_list(kind) else [["1", "2"], ["3", "4"]]
    write(path, pa.array(values, kind))
    assert sentences(read(path)[0]) == [["1", "2"], ["3", "4"]]


def test_strings__are_read_in_bounded_batches(path, monkeypatch):
    monkeypatch.setattr(columns, "BATCH", 1000)
    texts = [f"{i:09d}" for i in range(1000)]
    write(path, pa.array(texts), rows=500)
    pieces, report = read(path, block_bytes=1 << 20)
    assert sentences(pieces) == [[text] for text in texts]
    assert max(len(piece.data) for piece in pieces) < 3000
    assert report.bytes_read == 10_000


def test_strings__are_given_to_functions(path):
    write(path, pa.array(["a,b c\nd", "", "e"]))
    assert sentences(read(path, tokenizer="regex:[^,]+")[0]) == [["a", "b c"], ["d"], ["e"]]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1]),
        pa.array([b"a"]),
        pa.array([[1.5]]),
        pa.array([[float("nan")]], pa.list_(pa.float32())),
        pa.array([[["a"]]]),
        pa.array([[[1]]]),
        pa.array([[True]]),
        pa.array([None, 1.5]),
        pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    ],
    ids=lambda array: str(array.type),
)
def test_column__must_be_strings_or_lists(path, array):
    write(path, array)
    with pytest.raises(InputError, match=r"Column 'text' of .* is of type .*columns are: other \(null\), text \("):
        read(path)


def test_column__must_be_there(path):
    write(path, pa.array(["a"]))
    with pytest.raises(InputError, match=r"no column 'body'.*other \(null\), text \(string\)"):
        read(path, column="body")


def test_damaged__is_refused(path):
    write(path, pa.array([f"some text {i}" for i in range(1000)]), rows=1000)
    data = bytearray(path.read_bytes())
    data[4:2000] = b"\xff" * 1996
    path.write_bytes(bytes(data))
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        read(path)


def raw_strings(values):
    """Strings that nobody checked."""
    binary = pa.array(values, pa.binary())
    return pa.StringArray.from_buffers(len(values), binary.buffers()[1], binary.buffers()[2])


def test_strings__that_are_no_utf8_are_repaired_dropped_or_refused(path):
    write(path, raw_strings([b"one", b"tw\xffo", b"three"]))
    with pytest.raises(InputError, match="column 'text' from row group 0 on, at byte 6: invalid start byte"):
        read(path)
    pieces, report = read(path, errors="replace")
    assert (sentences(pieces), report.replaced) == ([["one"], ["tw\ufffdo"], ["three"]], 1)
    pieces, report = read(path, errors="skip")
    assert (sentences(pieces), report.skipped) == ([["one"], ["three"]], 1)


@pytest.mark.parametrize(
    ("words", "repaired"),
    [([b"a\xff", b"b"], ["a\ufffd", "b"]), ([b"a\xc3", b"\xa9b"], ["a\ufffd", "\ufffdb"])],
)
def test_lists__that_are_no_utf8_are_repaired_dropped_or_refused(path, words, repaired):
    write(path, pa.ListArray.from_arrays([0, 1, 3, 4], raw_strings([b"x", *words, "é".encode()])))
    with pytest.raises(InputError, match=r"column 'text' from row group 0 on, at byte [23]: invalid"):
        read(path)
    pieces, report = read(path, errors="replace")
    assert (sentences(pieces), report.replaced) == ([["x"], repaired, ["é"]], 1)
    pieces, report = read(path, errors="skip")
    assert (sentences(pieces), report.skipped) == ([["x"], ["é"]], 1)
