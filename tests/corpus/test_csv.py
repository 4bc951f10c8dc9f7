"""CSV and TSV: the rows that Python's csv module writes, whatever their quotes and lines."""

import csv
import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daskw2v.config.params import Params
from daskw2v.corpus.formats import check_formats
from daskw2v.corpus.formats import csv as module
from daskw2v.corpus.sources import find_sources, plan_blocks
from daskw2v.errors import InputError, ParameterError
from tests.support.reading import read, sentences


def table(texts, **dialect):
    """Return rows of three columns, the second of them text."""
    file = io.StringIO(newline="")
    writer = csv.writer(file, **dialect)
    writer.writerow(["id", "text", "more"])
    writer.writerows([i, text, 'a "b", c\td\n'] for i, text in enumerate(texts))
    return file.getvalue().encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("csv")


TEXTS = st.lists(st.text("ab é\n日\",;\t'", max_size=8), max_size=9)


@given(
    TEXTS,
    st.sampled_from([("a.csv", {}), ("a.tsv", {"delimiter": "\t"}), ("a.csv", {"delimiter": ";"})]),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
)
def test_rows__have_text_whose_lines_are_sentences(folder, texts, kind, end, quoted):
    name, dialect = kind
    content = table(texts, lineterminator=end, quoting=csv.QUOTE_ALL if quoted else csv.QUOTE_MINIMAL, **dialect)
    path = folder / name
    path.write_bytes(content)
    pieces, report = read(path, also={"delimiter": dialect.get("delimiter")})
    lines = "\n".join(texts).split("\n")
    assert sentences(pieces) == [line.split() for line in lines if line.split()]
    assert report.lines == (len(lines) if texts else 0)


@given(TEXTS)
def test_file__is_one_block_compressed_or_not(folder, texts):
    (folder / "a.csv").write_bytes(table(texts))
    (folder / "b.csv.gz").write_bytes(gzip.compress(table(texts)))
    assert len(plan_blocks(find_sources(folder / "a.csv"), 1)) == 1
    assert read(folder / "a.csv")[1] == read(folder / "b.csv.gz")[1]
    assert sentences(read(folder / "a.csv")[0]) == sentences(read(folder / "b.csv.gz")[0])


def test_column__is_found_by_its_name_alone(tmp_path):
    (tmp_path / "a.csv").write_text("id,doc.body,a b\n1,one,two\n")
    assert sentences(read(tmp_path / "a.csv", column="doc.body")[0]) == [["one"]]
    assert sentences(read(tmp_path / "a.csv", column="a b")[0]) == [["two"]]
    assert sentences(read(tmp_path / "a.csv", column="id")[0]) == [["1"]]
    with pytest.raises(InputError, match=r"a\.csv has no column 'doc'.*id \(string\), doc\.body \(string\), a b"):
        read(tmp_path / "a.csv", column="doc")


def test_column__that_is_there_twice_is_refused(tmp_path):
    (tmp_path / "a.csv").write_text("text,text\n1,one\n")
    with pytest.raises(InputError, match="has 2 columns 'text'"):
        read(tmp_path / "a.csv")


def test_header__may_not_be_as_long_as_a_text(tmp_path):
    (tmp_path / "a.csv").write_text("text" * (1 << 16))
    with pytest.raises(InputError, match="header of more than 131,072 bytes"):
        read(tmp_path / "a.csv")


@pytest.mark.parametrize(("row", "fields"), [("3", 1), ("3,c,d", 3), (",,,", 4)])
def test_row__of_another_number_of_fields_is_refused_or_dropped_and_counted(tmp_path, row, fields):
    (tmp_path / "a.csv").write_text(f'id,text\n1,"a\nb"\n\n{row}\n4,d\n')
    message = rf"a\.csv, row \d \(the header is row 1\): {fields} fields, where the header has 2\. Repair.*errors="
    with pytest.raises(InputError, match=message):
        read(tmp_path / "a.csv")
    for errors in ("replace", "skip"):
        pieces, report = read(tmp_path / "a.csv", errors=errors)
        assert sentences(pieces) == [["a"], ["b"], ["d"]]
        assert (report.skipped, report.lines) == (1, 3)
        assert f"{fields} fields" in report.first_offence


@pytest.mark.parametrize("pad", range(4))
def test_header__is_found_wherever_the_text_after_it_is_cut(tmp_path, monkeypatch, pad):
    monkeypatch.setattr(module, "CHUNK", 20 + pad)
    (tmp_path / "a.csv").write_bytes('\ufeffid,text,"é"\n1,日本日本日本,x\n'.encode())
    assert sentences(read(tmp_path / "a.csv")[0]) == [["日本日本日本"]]
    assert sentences(read(tmp_path / "a.csv", column="é")[0]) == [["x"]]


def test_invalid_utf8__is_told_by_its_row(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"id,text\n" + b"1,one\n" * 5000 + b"2,tw\xffo\n")
    with pytest.raises(InputError, match=r"column 'text' from row 4098 on, at byte 3618: invalid start byte"):
        read(tmp_path / "a.csv")
    _, report = read(tmp_path / "a.csv", errors="replace")
    assert (report.replaced, report.skipped) == (1, 0)
    assert read(tmp_path / "a.csv", errors="skip")[1].skipped == 1


def test_row__of_an_open_quote_is_refused_where_it_begins(tmp_path):
    (tmp_path / "a.csv").write_text("text\n" + "one\n" * 500 + '"two\n' + f"{'three' * 200_000}\n" * 34)
    with pytest.raises(
        InputError, match=r"cannot be read as CSV after row \d.*A row may have 16,777,216 bytes; an open"
    ):
        read(tmp_path / "a.csv")


@pytest.mark.parametrize("shift", range(3))
def test_rows__are_parsed_in_bounded_parts(tmp_path, shift):
    """Of 16 MiB, which end between two rows, in a line or in one of the quotes; a row may take most of them."""
    line = '"a'[:shift] + "x" * 99_990
    texts = [f"{i}\n{line}\n\n{line}" for i in range(120)] + ["y" * 15_000_000]
    (tmp_path / "a.csv").write_bytes(table(texts))
    pieces, report = read(tmp_path / "a.csv")
    assert sentences(pieces) == [*([part] for i in range(120) for part in (str(i), line, line)), texts[-1:]]
    assert report.lines == 120 * 4 + 1


@pytest.mark.parametrize(
    ("name", "params", "refused"),
    [
        ("a.csv", {"delimiter": ";"}, False),
        ("a.tsv", {"delimiter": ";"}, False),
        ("a.txt", {"delimiter": ";"}, True),
        ("a.jsonl", {"delimiter": ";"}, True),
        ("a.txt", {}, False),
    ],
)
def test_delimiter__is_refused_where_no_csv_is_read(tmp_path, name, params, refused):
    (tmp_path / name).write_text("text\n")
    sources = find_sources(tmp_path / name)
    if not refused:
        check_formats((source.format for source in sources), Params(**params))
        return
    with pytest.raises(ParameterError, match=r"delimiter=';' changes nothing for format='\w+'; it is for csv, tsv\."):
        check_formats((source.format for source in sources), Params(**params))
